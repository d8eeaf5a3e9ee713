"""COMMANDLOG: the slow log, and those of large requests and large replies (Valkey 9.1.2).

Tests: cases commands/test_valkey_dialect.
"""

from typing import Final

from penstock.commands.common.help import declare_help
from penstock.commands.server.slowlog import newest, read_count
from penstock.engine.context import Context
from penstock.engine.table.command_table import command, container
from penstock.engine.telemetry.request_log import RequestLog
from penstock.errors import ReplyError
from penstock.protocol import reply

TYPES: Final = "type:<SLOW|LARGE-REQUEST|LARGE-REPLY>"

container("COMMANDLOG", group="server", since="8.1.0", only_in="valkey", summary="Commands for logs of requests.")


@command(
    f"COMMANDLOG|GET count:integer {TYPES}",
    "8.1.0 admin loading stale | tips request_policy:all_nodes nondeterministic_output | only_in valkey",
    "Lists requests of a log, the newest first.",
    "O(N) where N is the number of entries returned",
)
def commandlog_get(ctx: Context, args: list[bytes]) -> bytes:
    count = read_count(args[2])
    return newest(ctx, _log(ctx, args[3]), count)


@command(
    f"COMMANDLOG|LEN {TYPES}",
    "8.1.0 admin loading stale | tips request_policy:all_nodes response_policy:agg_sum nondeterministic_output | "
    "only_in valkey",
    "Returns the number of requests in a log.",
)
def commandlog_len(ctx: Context, args: list[bytes]) -> bytes:
    return reply.integer(len(_log(ctx, args[2]).requests))


@command(
    f"COMMANDLOG|RESET {TYPES}",
    "8.1.0 admin loading stale | tips request_policy:all_nodes response_policy:all_succeeded | only_in valkey",
    "Empties a log.",
    "O(N) where N is the number of entries in the commandlog",
)
def commandlog_reset(ctx: Context, args: list[bytes]) -> bytes:
    _log(ctx, args[2]).requests.clear()
    return reply.OK


declare_help(
    "COMMANDLOG",
    "8.1.0",
    [
        (
            "GET <count> <type>",
            "List <count> requests of a log (-1: all), newest first. Each has its id, the unix time, its duration\n"
            "in microseconds or its size in bytes, its arguments, the client's address and name.",
        ),
        ("LEN <type>", "Return the number of requests in a log."),
        ("RESET <type>", "Empty a log."),
    ],
)


def _log(ctx: Context, word: bytes) -> RequestLog:
    """The log that a word names; ReplyError if it names none."""
    telemetry = ctx.telemetry
    logs = {
        b"SLOW": telemetry.slow_log,
        b"LARGE-REQUEST": telemetry.large.requests,
        b"LARGE-REPLY": telemetry.large.replies,
    }
    found = logs.get(word.upper())
    if found is None:
        raise ReplyError(b"ERR type should be one of the following: slow, large-request, large-reply")
    return found
