"""LATENCY: commands that took longer than latency-monitor-threshold, and histograms of all times (Redis 8.6.3).

Tests: transcripts info; cases commands/test_slowlog.
"""

from typing import Final

from penstock.commands.common.help import declare_help
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command, container
from penstock.engine.table.row import Row
from penstock.engine.telemetry.statistics import RowStatistics
from penstock.errors import ReplyError
from penstock.protocol import reply

GRAPH_WIDTH: Final = 60


container("LATENCY", group="server", since="2.8.13", summary="Commands for execution times.")


@command(
    "LATENCY|LATEST",
    "2.8.13 admin noscript loading stale | "
    "tips nondeterministic_output request_policy:all_nodes response_policy:special",
    "Lists the latest delay of each kind.",
)
def latency_latest(ctx: Context, args: list[bytes]) -> bytes:
    return reply.array(
        [
            reply.array(
                [
                    reply.bulk(name),
                    reply.integer(event.samples[-1][0]),
                    reply.integer(event.samples[-1][1]),
                    reply.integer(event.worst_ms),
                ]
            )
            for name, event in ctx.telemetry.latency.events.items()
        ]
    )


@command(
    "LATENCY|HISTORY event",
    "2.8.13 admin noscript loading stale | "
    "tips nondeterministic_output request_policy:all_nodes response_policy:special",
    "Lists the delays of one kind.",
)
def latency_history(ctx: Context, args: list[bytes]) -> bytes:
    event = ctx.telemetry.latency.events.get(args[2])
    samples = event.samples if event is not None else ()
    return reply.array([reply.array([reply.integer(when_s), reply.integer(ms)]) for when_s, ms in samples])


@command(
    "LATENCY|RESET [event [event ...]]",
    "2.8.13 admin noscript loading stale | tips request_policy:all_nodes response_policy:agg_sum",
    "Removes the recorded delays, of all kinds or of some.",
)
def latency_reset(ctx: Context, args: list[bytes]) -> bytes:
    events = ctx.telemetry.latency.events
    names = args[2:] or list(events)
    return reply.integer(sum(events.pop(name, None) is not None for name in names))


@command(
    "LATENCY|HISTOGRAM [command [command ...]]",
    "7.0.0 admin noscript loading stale | "
    "tips nondeterministic_output request_policy:all_nodes response_policy:special",
    "Returns how many calls of each command took at most 1, 2, 4, 8 ... microseconds.",
    "O(N) where N is the number of commands with latency information being retrieved.",
)
def latency_histogram(ctx: Context, args: list[bytes]) -> bytes:
    counted = ctx.statistics.rows
    if len(args) == 2:
        names = list(counted)
    else:
        names = [row.name for word in args[2:] for row in _rows_called(ctx, word)]
    histograms = [(name.lower().encode(), counted[name]) for name in names if name in counted and counted[name].calls]
    return reply.fields([(name, _histogram(row, ctx.resp3)) for name, row in histograms], ctx.resp3)


def _rows_called(ctx: Context, word: bytes) -> list[Row]:
    """The row with a name (`client|list`), with its subcommands."""
    name, _, subcommand = word.upper().partition(b"|")
    row = ctx.commands.rows.get(name)
    if row is None:
        return []
    if subcommand:
        return [row.subcommands[subcommand]] if subcommand in row.subcommands else []
    return [row, *row.subcommands.values()]


def _histogram(row: RowStatistics, resp3: bool) -> bytes:
    steps = [(reply.integer(usec), reply.integer(count)) for usec, count in row.times.cumulated()]
    return reply.fields([(b"calls", reply.integer(row.calls)), (b"histogram_usec", reply.mapping(steps, resp3))], resp3)


@command(
    "LATENCY|GRAPH event",
    "2.8.13 admin noscript loading stale | "
    "tips nondeterministic_output request_policy:all_nodes response_policy:special",
    "Draws a graph of the delays of one kind.",
)
def latency_graph(ctx: Context, args: list[bytes]) -> bytes:
    event = ctx.telemetry.latency.events.get(args[2])
    if event is None:
        raise ReplyError(b"ERR No samples available for event '%b'" % refusals.c_string(args[2]))
    times = [ms for _, ms in event.samples]
    name = args[2].decode(errors="replace")
    lines = [f"{name} - high {max(times)} ms, low {min(times)} ms (all time high {event.worst_ms} ms)", "-" * 80]
    for when_s, ms in event.samples:
        bar = "#" * max(ms * GRAPH_WIDTH // max(*times, 1), 1)
        lines.append(f"{ctx.now_ms // 1000 - when_s:>8}s ago {bar} {ms}")
    return reply.verbatim("".join([line + "\n" for line in lines]).encode(), ctx.resp3)


@command(
    "LATENCY|DOCTOR",
    "2.8.13 admin noscript loading stale | "
    "tips nondeterministic_output request_policy:all_nodes response_policy:special",
    "Summarizes the recorded delays.",
)
def latency_doctor(ctx: Context, args: list[bytes]) -> bytes:
    lines = []
    if not ctx.settings.number("latency-monitor-threshold"):
        lines.append("Delays are not recorded: CONFIG SET latency-monitor-threshold <milliseconds> starts it.")
    elif not ctx.telemetry.latency.events:
        lines.append("No command took longer than latency-monitor-threshold.")
    for name, event in ctx.telemetry.latency.events.items():
        times = [ms for _, ms in event.samples]
        mean = sum(times) / len(times)
        lines.append(f"{name.decode()}: {len(times)} delays, {mean:.0f} ms on average, {event.worst_ms} ms at worst.")
    if ctx.telemetry.latency.events:
        lines.append("SLOWLOG GET lists the requests. Reading many entries without COUNT takes long.")
    return reply.verbatim("".join([line + "\n" for line in lines]).encode(), ctx.resp3)


declare_help(
    "LATENCY",
    "2.8.13",
    [
        ("DOCTOR", "Summarize the recorded delays."),
        ("GRAPH <event>", "Draw a graph of the delays of a kind (command, fast-command)."),
        ("HISTORY <event>", "List the delays of a kind: time, milliseconds."),
        ("LATEST", "List the latest delay of each kind: time, milliseconds, and the worst."),
        ("RESET [<event> ...]", "Remove the recorded delays, of all kinds or of some."),
        ("HISTOGRAM [<command> ...]", "Return histograms of the times that commands took."),
    ],
)
