"""SLOWLOG: the requests that took longer than slowlog-log-slower-than.

Tests: transcripts slowlog; cases commands/test_slowlog.
"""

from typing import Final

from penstock.commands.common.help import declare_help
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command, container
from penstock.engine.telemetry.request_log import RequestLog
from penstock.protocol import reply

DEFAULT_SHOWN: Final = 10
ALL: Final = -1


container("SLOWLOG", group="server", since="2.2.12", summary="Commands for the log of slow requests.")


@command(
    "SLOWLOG|GET [count]",
    "2.2.12 admin loading stale | tips request_policy:all_nodes nondeterministic_output",
    "Lists slow requests, the newest first.",
    "O(N) where N is the number of entries returned",
    history=(("4.0.0", "Added client IP address, port and name to the reply."),),
)
def slowlog_get(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) > 3:
        raise refusals.unknown_or_wrong(args[1], args[0])
    return newest(ctx, ctx.telemetry.slow_log, read_count(args[2]) if len(args) == 3 else DEFAULT_SHOWN)


def read_count(word: bytes) -> int:
    """How many requests are to be shown: ALL or more."""
    return arguments.at_least(ALL, word, b"ERR count should be greater than or equal to -1")


def newest(ctx: Context, log: RequestLog, count: int) -> bytes:
    """The newest requests of a log as a reply."""
    kept = list(log.requests)
    shown = [ctx.shown(request.fields()) for request in (kept if count == ALL else kept[:count])]
    return reply.array([reply.array([element for _, element in fields]) for fields in shown])


@command(
    "SLOWLOG|LEN",
    "2.2.12 admin loading stale | tips request_policy:all_nodes response_policy:agg_sum nondeterministic_output",
    "Returns the number of slow requests in the log.",
)
def slowlog_len(ctx: Context, args: list[bytes]) -> bytes:
    return reply.integer(len(ctx.telemetry.slow_log.requests))


@command(
    "SLOWLOG|RESET",
    "2.2.12 admin loading stale | tips request_policy:all_nodes response_policy:all_succeeded",
    "Empties the log of slow requests.",
    "O(N) where N is the number of entries in the slowlog",
)
def slowlog_reset(ctx: Context, args: list[bytes]) -> bytes:
    ctx.telemetry.slow_log.requests.clear()
    return reply.OK


declare_help(
    "SLOWLOG",
    "6.2.0",
    [
        (
            "GET [<count>]",
            "List <count> slow requests (default: 10, -1: all), newest first. Each has its id, the\n"
            "unix time, its duration in microseconds, its arguments, the client's address and name,\n"
            "and how many arguments it had before they were shortened (from 8.10 on).",
        ),
        ("LEN", "Return the number of slow requests in the log."),
        ("RESET", "Empty the log."),
    ],
)
