"""Commands for the whole server: TIME, ROLE, LOLWUT, WAIT, WAITAOF, SHUTDOWN (Redis 8.6.3)."""

from typing import Final

from penstock.commands.common import timeouts
from penstock.engine import arguments, refusals
from penstock.engine.context import BLOCKED, Context
from penstock.engine.table.command_table import command
from penstock.engine.versions import PENSTOCK_VERSION
from penstock.engine.waiting import sync_waiting
from penstock.engine.waiting.blocked_request import BlockedRequest
from penstock.errors import ReplyError
from penstock.protocol import reply

POSITIVE: Final = b"ERR value is out of range, must be positive"
NOT_SAVED: Final = b"ERR Errors trying to SHUTDOWN. Check logs."
SHUTDOWN_OPTIONS: Final = (b"SAVE", b"NOSAVE", b"NOW", b"FORCE", b"ABORT")
DRAWING: Final = """\
        ___________
       |           |        what is held back
   ~~~~|~~~~~~     |~~~~~
       |      | | |         is let out
       |______|_|_|_____
               \\_\\_\\______   in measured amounts
"""


@command(
    "TIME",
    group="server",
    since="2.6.0",
    flags="loading stale fast",
    tips="nondeterministic_output",
    summary="Returns the server's time.",
)
def time_(ctx: Context, args: list[bytes]) -> bytes:
    seconds, micros = divmod(ctx.engine.clock.now_us(), 1_000_000)  # not ctx.now_us, which stands still within a script
    return reply.bulks([b"%d" % seconds, b"%d" % micros])


@command(
    "ROLE",
    group="server",
    since="2.8.12",
    flags="noscript loading stale fast",
    acl="admin dangerous",
    summary="Returns the server's role and its replicas; always a master without replicas here.",
)
def role(ctx: Context, args: list[bytes]) -> bytes:
    return reply.array([reply.bulk(b"master"), reply.ZERO, reply.EMPTY_ARRAY])


@command(
    "LOLWUT",
    "[VERSION version:integer]",
    group="server",
    since="5.0.0",
    flags="readonly fast",
    complexity="",
    summary="Draws a picture, with the version.",
)
def lolwut(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) > 2 and args[1].upper() == b"VERSION":
        arguments.integer(args[2])
    compatibility = ctx.engine.compatibility
    text = f"{DRAWING}\nPenstock {PENSTOCK_VERSION}. {compatibility.server.title()} ver. {compatibility.version}\n"
    return reply.verbatim(text.encode(), ctx.resp3)


# -- waiting for replicas and syncs -----------------------------------------------------------------------------------


@command(
    "WAIT",
    "numreplicas timeout:integer",
    group="generic",
    since="3.0.0",
    flags="blocking",
    acl="connection -keyspace",
    tips="request_policy:all_shards response_policy:agg_min",
    summary="Waits until this connection's writes are on a number of replicas. There are no replicas here.",
)
def wait(ctx: Context, args: list[bytes]) -> bytes:
    replicas = arguments.integer(args[1])
    deadline_ms = timeouts.deadline(args[2], ctx.now_ms)
    if replicas <= 0 or not ctx.waits:
        return reply.ZERO
    _blocked(ctx, deadline_ms, reply.ZERO)
    return BLOCKED


@command(
    "WAITAOF",
    "numlocal:integer numreplicas timeout:integer",
    group="generic",
    since="7.2.0",
    flags="blocking",
    acl="connection -keyspace",
    tips="request_policy:all_shards response_policy:agg_min",
    summary="Waits until this connection's writes are synced to this server's disk and those of replicas.",
)
def waitaof(ctx: Context, args: list[bytes]) -> bytes:
    """Waits for all units appended so far, not only this connection's, so it may wait a little longer than Redis."""
    engine = ctx.engine
    local = arguments.integer(args[1])
    if local not in (0, 1):
        raise ReplyError(b"ERR value is out of range, value must between 0 and 1")
    replicas = arguments.integer_or(args[2], POSITIVE)
    if replicas < 0:
        raise ReplyError(POSITIVE)
    deadline_ms = timeouts.deadline(args[3], ctx.now_ms)
    logged = engine.persistence.log is not None and engine.settings.yes("appendonly")
    if local and not logged:
        raise ReplyError(b"ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.")
    unit = engine.persistence.appended_units()
    synced = logged and unit <= engine.persistence.synced_units()
    answer = sync_waiting.SYNCED if synced else sync_waiting.NOT_SYNCED
    if ((synced or not local) and replicas == 0) or not ctx.waits:
        return answer
    blocked = _blocked(ctx, deadline_ms, answer)
    if logged and not synced:
        engine.sync_waiting.add(blocked, unit, replicas > 0)
    return BLOCKED


def _blocked(ctx: Context, deadline_ms: int, timeout_reply: bytes) -> BlockedRequest:
    assert ctx.row is not None, "a request that runs has a row"
    blocked = BlockedRequest(ctx.session, ctx.row, ctx.args, ctx.db_index, [], deadline_ms, timeout_reply)
    ctx.engine.block(blocked)
    return blocked


# -- SHUTDOWN ---------------------------------------------------------------------------------------------------------


@command(
    "SHUTDOWN",
    "save-selector:[NOSAVE|SAVE] [NOW@7.0.0] [FORCE@7.0.0] [ABORT@7.0.0]",
    group="server",
    since="1.0.0",
    flags="admin noscript loading stale no_multi allow_busy",
    complexity=(
        "O(N) when saving, where N is the total number of keys in all databases when saving data, otherwise O(1)"
    ),
    history=(("7.0.0", "Added the `NOW`, `FORCE` and `ABORT` modifiers."),),
    summary="Stops the server after all acknowledged writes, or an RDB file, are on disk.",
)
def shutdown(ctx: Context, args: list[bytes]) -> bytes:
    """In the log's replay it is refused, even with NOW. (Redis 8.6.3 refuses it there only without NOW.)"""
    options = [word.upper() for word in args[1:]]
    if not all(option in SHUTDOWN_OPTIONS for option in options):
        raise refusals.syntax()
    chosen = set(options)
    if {b"SAVE", b"NOSAVE"} <= chosen or (b"ABORT" in chosen and len(chosen) > 1):
        raise refusals.syntax()
    if b"ABORT" in chosen:
        raise ReplyError(
            b"ERR No shutdown in progress."
        )  # a shutdown does not wait for replicas, so it cannot be aborted
    if not ctx.waits:
        raise ReplyError(b"ERR SHUTDOWN without NOW or ABORT isn't allowed for DENY BLOCKING client")
    saves = ctx.engine.persistence.saves
    is_wanted = b"NOSAVE" not in chosen and (b"SAVE" in chosen or saves.points()) and not ctx.engine.loading
    if is_wanted and (saves.save is None or saves.save()) and b"FORCE" not in chosen:
        raise ReplyError(NOT_SAVED)
    ctx.engine.wanted_shutdown = True
    ctx.session.closing = True
    return reply.NO_REPLY
