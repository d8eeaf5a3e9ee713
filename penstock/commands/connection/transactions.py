"""Transactions: MULTI queues requests, and EXEC runs them as one unit, unless a watched key has changed.

Tests: transcripts transactions, watch, stale_keys; cases commands/test_transactions; law test_law_of_doors.
"""

from typing import Final

from penstock.engine.context import BLOCKED, Context
from penstock.engine.session import Session
from penstock.engine.table.command_table import command
from penstock.engine.table.key_place import KeyPlace
from penstock.errors import ReplyError
from penstock.protocol import reply

CONDITIONS: Final = {b"IFEQ": 3, b"IFNE": 3, b"NX": 2, b"XX": 2}  # of EXEC, with the words of each


@command(
    "MULTI",
    "1.2.0 noscript loading stale fast allow_busy | traits never_queued | group transactions",
    "Starts a transaction: the following requests are queued.",
)
def multi(ctx: Context, args: list[bytes]) -> bytes:
    session = ctx.session
    if session.queue is not None:
        raise ReplyError(b"ERR MULTI calls can not be nested")
    session.queue = []
    session.queue_failed = False
    return reply.OK


def _condition_keys(args: list[bytes]) -> list[KeyPlace]:
    """The keys of EXEC's conditions."""
    places: list[KeyPlace] = []
    at = 1
    while at + 1 < len(args):
        places.append(KeyPlace(at + 1, ["RO", "access"]))
        at += CONDITIONS.get(args[at].upper(), 2)
    return places


@command(
    "EXEC condition:[IFEQ (ifeq-key:string ifeq-value)@valkey-9.2.0|IFNE (ifne-key:string ifne-value)@valkey-9.2.0|"
    "NX nx-key:string@valkey-9.2.0|XX xx-key:string@valkey-9.2.0] ...",
    "1.2.0 noscript loading stale skip_slowlog | traits never_queued | group transactions",
    "Runs the queued requests as one unit, without requests of other clients between them.",
    "Depends on commands in the transaction",
    find_keys=_condition_keys,
)
def exec_(ctx: Context, args: list[bytes]) -> bytes:
    """If a request fails, its reply is its error; the others are run nevertheless.

    The engine logs all of them as one unit, and tries blocked requests again after the last. If a script among them
    runs for too long, the rest of the queue waits until it ends, and other clients get BUSY.
    """
    session = ctx.session
    queue, failed = session.queue, session.queue_failed
    if queue is None:
        raise ReplyError(b"ERR EXEC without MULTI")
    broken = session.watch_broken or _watches_overdue(ctx)
    _leave(ctx, session)
    if failed:
        raise ReplyError(b"EXECABORT Transaction discarded because of previous errors.")
    if broken or (len(args) > 1 and not _conditions_hold(ctx, args)):
        return reply.null_array(ctx.resp3)
    waits, row = ctx.waits, ctx.row
    replies: list[bytes] = []
    ctx.waits = False
    try:
        left = ctx.runner.run_queue(ctx, queue, replies)
    finally:
        ctx.waits = waits
        ctx.resume(row, args)
    if ctx.conditions.busy:
        ctx.scripts.hold(ctx, left, replies)
        return BLOCKED
    return reply.array(replies)


def _conditions_hold(ctx: Context, args: list[bytes]) -> bool:
    """Whether all of EXEC's conditions hold, which are read before the first is looked at. (Valkey 9.2, its notes.)"""
    conditions: list[list[bytes]] = []
    at = 1
    while at < len(args):
        words = CONDITIONS.get(args[at].upper(), len(args))
        if at + words > len(args):
            raise ReplyError(b"EXECABORT Transaction discarded because of: invalid check condition syntax")
        conditions.append(args[at : at + words])
        at += words
    return all(_holds(ctx, condition) for condition in conditions)


def _holds(ctx: Context, condition: list[bytes]) -> bool:
    word, key = condition[0].upper(), condition[1]
    if word in (b"NX", b"XX"):
        return ctx.has(key) == (word == b"XX")
    return (ctx.string(key) == condition[2]) == (word == b"IFEQ")


def _watches_overdue(ctx: Context) -> bool:
    """Whether a watched key has expired since WATCH, which removed keys that were expired then."""
    databases, session = ctx.keyspace.databases, ctx.session
    if not session.watched:
        return False
    return any(
        databases[db_index].expires.get(key, ctx.now_ms) < ctx.now_ms
        for db_index, key in session.watched - session.watched_stale
    )


@command(
    "DISCARD",
    "2.0.0 noscript loading stale fast allow_busy | traits never_queued | group transactions",
    "Discards the queued requests.",
    "O(N), when N is the number of queued commands",
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
    ctx.clients.unwatch(session)


@command(
    "WATCH key [key ...]",
    "2.2.0 noscript loading stale fast allow_busy | keys 1..-1 RO | traits never_queued | group transactions",
    "Makes the next EXEC run nothing if one of these keys is changed before it.",
    "O(1) for every key.",
)
def watch(ctx: Context, args: list[bytes]) -> bytes:
    """An expired key is removed first, so that its later removal does not count as a change."""
    session = ctx.session
    if session.queue is not None:
        raise ReplyError(b"ERR WATCH inside MULTI is not allowed")
    for key in args[1:]:
        ctx.value(key)
        ctx.clients.watch(session, ctx.db_index, key)
    return reply.OK


@command("UNWATCH", "2.2.0 noscript loading stale fast allow_busy | group transactions", "Stops watching all keys.")
def unwatch(ctx: Context, args: list[bytes]) -> bytes:
    ctx.clients.unwatch(ctx.session)
    return reply.OK
