"""Transactions: requests queued by MULTI and run by EXEC as one, unless a watched key has changed."""

from penstock.engine.context import BLOCKED, Context
from penstock.engine.session import Session
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply


@command(
    "MULTI",
    group="transactions",
    since="1.2.0",
    flags="noscript loading stale fast allow_busy",
    summary="Begins a transaction: requests are queued from here on.",
)
def multi(ctx: Context, args: list[bytes]) -> bytes:
    session = ctx.session
    if session.queue is not None:
        raise ReplyError(b"ERR MULTI calls can not be nested")
    session.queue = []
    session.queue_failed = False
    return reply.OK


@command(
    "EXEC",
    group="transactions",
    since="1.2.0",
    flags="noscript loading stale skip_slowlog",
    complexity="Depends on commands in the transaction",
    summary="Runs the queued requests, all at one time and with nobody else's between them.",
)
def exec_(ctx: Context, args: list[bytes]) -> bytes:
    """A request that fails answers its error in its place; the others are run all the same.

    What they all logged is one unit, and blocked readers are served after the last: the engine sees to both. While a
    script among them takes long the rest waits, as everybody does (script_busy.py).
    """
    session = ctx.session
    queue, failed = session.queue, session.queue_failed
    if queue is None:
        raise ReplyError(b"ERR EXEC without MULTI")
    broken = session.watch_broken or _watches_overdue(ctx)
    _leave(ctx, session)
    if failed:
        raise ReplyError(b"EXECABORT Transaction discarded because of previous errors.")
    if broken:
        return reply.null_array(ctx.resp3)
    engine, waits, row = ctx.engine, ctx.waits, ctx.row
    answers: list[bytes] = []
    ctx.waits = False
    try:
        left = engine.run_queue(ctx, queue, answers)
    finally:
        ctx.waits, ctx.row, ctx.args = waits, row, args
    if engine.busy:
        engine.scripts.hold(ctx, left, answers)
        return BLOCKED
    return reply.array(answers)


def _watches_overdue(ctx: Context) -> bool:
    """Whether the time of a watched key has passed since WATCH, which removed what was overdue then."""
    databases = ctx.engine.keyspace.databases
    return any(databases[db_index].expires.get(key, ctx.now_ms) < ctx.now_ms for db_index, key in ctx.session.watched)


@command(
    "DISCARD",
    group="transactions",
    since="2.0.0",
    flags="noscript loading stale fast allow_busy",
    complexity="O(N), when N is the number of queued commands",
    summary="Gives the queued requests up.",
)
def discard(ctx: Context, args: list[bytes]) -> bytes:
    session = ctx.session
    if session.queue is None:
        raise ReplyError(b"ERR DISCARD without MULTI")
    _leave(ctx, session)
    return reply.OK


def _leave(ctx: Context, session: Session) -> None:
    session.queue = None
    session.queue_failed = False
    ctx.engine.unwatch(session)


@command(
    "WATCH",
    "key [key ...]",
    group="transactions",
    since="2.2.0",
    flags="noscript loading stale fast allow_busy",
    keys="1..-1 RO",
    complexity="O(1) for every key.",
    summary="Lets the next EXEC do nothing if one of these keys has changed until then.",
)
def watch(ctx: Context, args: list[bytes]) -> bytes:
    """An overdue key is removed first: that it goes is no change, it was gone when the client looked."""
    session = ctx.session
    if session.queue is not None:
        raise ReplyError(b"ERR WATCH inside MULTI is not allowed")
    for key in args[1:]:
        ctx.value(key)
        place = (ctx.db_index, key)
        session.watched.add(place)
        ctx.engine.watchers.setdefault(place, set()).add(session)
    return reply.OK


@command(
    "UNWATCH",
    group="transactions",
    since="2.2.0",
    flags="noscript loading stale fast allow_busy",
    summary="Forgets every watched key.",
)
def unwatch(ctx: Context, args: list[bytes]) -> bytes:
    ctx.engine.unwatch(ctx.session)
    return reply.OK
