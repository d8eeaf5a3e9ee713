"""BGREWRITEAOF, BGSAVE, SAVE and LASTSAVE.

BGREWRITEAOF only sets a flag; the server starts the rewrite at the end of the turn (server/turns/log_writer.py). An
RDB file is saved, or a child process started that saves it, while the command runs (server/files/snapshots.py).

Tests: transcripts info; cases commands/test_persistence, server/test_snapshots.
"""

from typing import Final

from penstock.engine import refusals
from penstock.engine.aof.persistence import REWRITE
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply

SAVE_RUNS: Final = b"ERR Background save already in progress"
OTHER_CHILD: Final = (
    b"ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule a"
    b" BGSAVE whenever possible."
)


# -- commands ---------------------------------------------------------------------------------------------------------


@command(
    "BGREWRITEAOF", "1.0.0 admin noscript no_async_loading", "Rewrites the log in the background to a shorter one."
)
def bgrewriteaof(ctx: Context, args: list[bytes]) -> bytes:
    state = ctx.persistence
    if state.child == REWRITE:
        raise ReplyError(b"ERR Background append only file rewriting already in progress")
    if state.saves.runs or not ctx.waits:  # inside EXEC, no child is started (Redis 8.6.3)
        state.rewrite_scheduled = True
        return reply.simple(b"Background append only file rewriting scheduled")
    state.child = REWRITE
    ctx.persistence.wanted_rewrite = True
    return reply.simple(b"Background append only file rewriting started")


@command(
    "BGSAVE [SCHEDULE@3.2.2]",
    "1.0.0 admin noscript no_async_loading",
    "Saves an RDB file in a child process.",
    history=(("3.2.2", "Added the `SCHEDULE` option."),),
)
def bgsave(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) > 2 or (len(args) == 2 and args[1].upper() != b"SCHEDULE"):
        raise refusals.syntax()
    state = ctx.persistence
    saves = state.saves
    if saves.runs:
        raise ReplyError(SAVE_RUNS)
    is_in_exec = not ctx.waits
    if state.child or is_in_exec:
        if len(args) == 1 and not is_in_exec:
            raise ReplyError(OTHER_CHILD)
        saves.scheduled = True
        return reply.simple(b"Background saving scheduled")
    if saves.begin is None or saves.begin():
        raise ReplyError(b"ERR")  # the server's log says why
    return reply.simple(b"Background saving started")


@command(
    "SAVE",
    "1.0.0 admin noscript no_async_loading no_multi",
    "Saves an RDB file; no other request is served meanwhile.",
    "O(N) where N is the total number of keys in all databases",
)
def save(ctx: Context, args: list[bytes]) -> bytes:
    saves = ctx.persistence.saves
    if saves.runs:
        raise ReplyError(SAVE_RUNS)
    if saves.save is None or saves.save():
        raise ReplyError(b"ERR")  # the server's log says why
    return reply.OK


@command(
    "LASTSAVE",
    "1.0.0 loading stale fast | acl admin dangerous | tips nondeterministic_output",
    "Returns the unix time in seconds of the last RDB file, or of the server's start.",
)
def lastsave(ctx: Context, args: list[bytes]) -> bytes:
    return reply.integer(ctx.persistence.saves.last_save_s)
