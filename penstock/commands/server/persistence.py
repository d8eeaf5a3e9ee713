"""What is known of the log from within: INFO's numbers, the commands that save, DEBUG RELOAD.

Penstock writes no RDB file, and says so: BGSAVE and SAVE are refused, and LASTSAVE and INFO tell of no save, as a Redis
that never saved does. The log keeps every change; BGREWRITEAOF is wished for here and begun by the server at the end of
its turn (server/log_writer.py).
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
    summary="Rewrites the log in the background, as short as it can be.",
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
    summary="Is refused: there is no RDB file. The log keeps everything.",
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
    summary="Is refused: there is no RDB file. The log keeps everything.",
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
    summary="Tells when an RDB file was last saved, in unix seconds: never, so since when the server runs.",
)
def lastsave(ctx: Context, args: list[bytes]) -> bytes:
    return reply.integer(ctx.engine.persistence.started_s)
