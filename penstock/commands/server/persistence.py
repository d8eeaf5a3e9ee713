"""BGREWRITEAOF, BGSAVE, SAVE and LASTSAVE.

Penstock writes no RDB file. BGSAVE and SAVE are refused; LASTSAVE and INFO show what a Redis shows that never saved.
The log has every change. BGREWRITEAOF only sets a flag; the server starts the rewrite at the end of the turn
(server/log_writer.py).
"""

from typing import TYPE_CHECKING, Final

from penstock.engine import refusals
from penstock.engine.aof.persistence import REWRITE
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply

if TYPE_CHECKING:
    pass

NO_SNAPSHOTS: Final = b"ERR this server keeps an append-only log and writes no RDB file; use BGREWRITEAOF"


# -- commands ---------------------------------------------------------------------------------------------------------


@command(
    "BGREWRITEAOF",
    group="server",
    since="1.0.0",
    flags="admin noscript no_async_loading",
    summary="Rewrites the log in the background to a shorter one.",
)
def bgrewriteaof(ctx: Context, args: list[bytes]) -> bytes:
    state = ctx.engine.persistence
    if state.child == REWRITE:
        raise ReplyError(b"ERR Background append only file rewriting already in progress")
    state.child = REWRITE
    ctx.engine.wanted_rewrite = True
    return reply.simple(b"Background append only file rewriting started")


@command(
    "BGSAVE",
    "[SCHEDULE@3.2.2]",
    group="server",
    since="1.0.0",
    flags="admin noscript no_async_loading",
    history=(("3.2.2", "Added the `SCHEDULE` option."),),
    summary="Saves an RDB file; always refused here, because the log has every change.",
)
def bgsave(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) > 2 or (len(args) == 2 and args[1].upper() != b"SCHEDULE"):
        raise refusals.syntax()
    raise ReplyError(NO_SNAPSHOTS)


@command(
    "SAVE",
    group="server",
    since="1.0.0",
    flags="admin noscript no_async_loading no_multi",
    complexity="O(N) where N is the total number of keys in all databases",
    summary="Saves an RDB file; always refused here, because the log has every change.",
)
def save(ctx: Context, args: list[bytes]) -> bytes:
    raise ReplyError(NO_SNAPSHOTS)


@command(
    "LASTSAVE",
    group="server",
    since="1.0.0",
    flags="loading stale fast",
    acl="admin dangerous",
    tips="nondeterministic_output",
    summary="Returns the unix time in seconds of the last RDB file; here always the time of the server's start.",
)
def lastsave(ctx: Context, args: list[bytes]) -> bytes:
    return reply.integer(ctx.engine.persistence.started_s)
