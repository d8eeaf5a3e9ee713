"""COMMANDLOG, as Valkey calls the log of slow requests (Valkey 9.1.2). Of large requests and replies it has none.

Tests: cases commands/test_valkey_dialect.
"""

from typing import Final

from penstock.commands.common.help import help_reply
from penstock.commands.server.slowlog import read_count, slow_requests
from penstock.engine.context import Context
from penstock.engine.table.command_table import command, container
from penstock.errors import ReplyError
from penstock.protocol import reply

TYPES: Final = "type:<SLOW|LARGE-REQUEST|LARGE-REPLY>"

container("COMMANDLOG", group="server", since="8.1.0", only_in="valkey", summary="Commands for logs of requests.")


@command(
    "COMMANDLOG|GET",
    f"count:integer {TYPES}",
    group="server",
    since="8.1.0",
    only_in="valkey",
    flags="admin loading stale",
    tips="request_policy:all_nodes nondeterministic_output",
    complexity="O(N) where N is the number of entries returned",
    summary="Lists requests of a log, the newest first.",
)
def commandlog_get(ctx: Context, args: list[bytes]) -> bytes:
    count = read_count(args[2])
    return slow_requests(ctx, count) if _is_slow(args[3]) else reply.EMPTY_ARRAY


@command(
    "COMMANDLOG|LEN",
    TYPES,
    group="server",
    since="8.1.0",
    only_in="valkey",
    flags="admin loading stale",
    tips="request_policy:all_nodes response_policy:agg_sum nondeterministic_output",
    summary="Returns the number of requests in a log.",
)
def commandlog_len(ctx: Context, args: list[bytes]) -> bytes:
    return reply.integer(len(ctx.telemetry.slow_log.requests) if _is_slow(args[2]) else 0)


@command(
    "COMMANDLOG|RESET",
    TYPES,
    group="server",
    since="8.1.0",
    only_in="valkey",
    flags="admin loading stale",
    tips="request_policy:all_nodes response_policy:all_succeeded",
    complexity="O(N) where N is the number of entries in the commandlog",
    summary="Empties a log.",
)
def commandlog_reset(ctx: Context, args: list[bytes]) -> bytes:
    if _is_slow(args[2]):
        ctx.telemetry.slow_log.requests.clear()
    return reply.OK


@command(
    "COMMANDLOG|HELP",
    group="server",
    since="8.1.0",
    only_in="valkey",
    flags="loading stale",
    summary="Lists the subcommands.",
)
def commandlog_help(ctx: Context, args: list[bytes]) -> bytes:
    return help_reply(
        "COMMANDLOG",
        [
            (
                "GET <count> <type>",
                "List <count> requests of a log (-1: all), newest first. Each has its id, the unix time, its duration\n"
                "in microseconds, its arguments, the client's address and name.",
            ),
            ("LEN <type>", "Return the number of requests in a log."),
            ("RESET <type>", "Empty a log."),
        ],
    )


def _is_slow(word: bytes) -> bool:
    """Whether a word names the log of slow requests; ReplyError if it names none."""
    name = word.upper()
    if name not in (b"SLOW", b"LARGE-REQUEST", b"LARGE-REPLY"):
        raise ReplyError(b"ERR type should be one of the following: slow, large-request, large-reply")
    return name == b"SLOW"
