"""FLUSHDB, FLUSHALL and SWAPDB: empty or exchange whole databases.

Tests: transcripts stale_keys, copy_rename_move; cases commands/test_databases, commands/test_freeing_in_steps.
"""

from typing import Final

from penstock.engine import arguments, refusals
from penstock.engine.arguments import MAX_INT32, MIN_INT32
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply

FLUSH_HISTORY: Final = (
    ("4.0.0", "Added the `ASYNC` flushing mode modifier."),
    ("6.2.0", "Added the `SYNC` flushing mode modifier."),
)


@command(
    "FLUSHDB flush-type:[ASYNC@4.0.0|SYNC@6.2.0]",
    "1.0.0 write | acl dangerous keyspace | tips request_policy:all_shards response_policy:all_succeeded | "
    "group server",
    "Empties the selected database.",
    "O(N) where N is the number of keys in the selected database",
    history=FLUSH_HISTORY,
)
def flushdb(ctx: Context, args: list[bytes]) -> bytes:
    is_lazy = _read_flush(ctx, args)
    _flush(ctx, ctx.db_index)
    ctx.log_request(args)
    return ctx.notify_flush(is_lazy) + reply.OK


@command(
    "FLUSHALL flush-type:[ASYNC@4.0.0|SYNC@6.2.0]",
    "1.0.0 write | acl dangerous keyspace | tips request_policy:all_shards response_policy:all_succeeded | "
    "group server | traits in_every_database",
    "Empties every database.",
    "O(N) where N is the total number of keys in all databases",
    history=FLUSH_HISTORY,
)
def flushall(ctx: Context, args: list[bytes]) -> bytes:
    is_lazy = _read_flush(ctx, args)
    for db_index in range(len(ctx.keyspace.databases)):
        _flush(ctx, db_index)
    ctx.log_request(args)
    if not ctx.conditions.loading:
        ctx.persistence.saves.flushed()
    return ctx.notify_flush(is_lazy) + reply.OK


def _read_flush(ctx: Context, args: list[bytes]) -> bool:
    """Whether the flush is asynchronous. In both cases keys are removed at once, and their memory is freed in steps.

    The only difference is when the session itself is notified (CLIENT TRACKING): with ASYNC after its reply.
    """
    if len(args) > 2 or (len(args) == 2 and args[1].upper() not in (b"SYNC", b"ASYNC")):
        raise refusals.syntax()
    if len(args) == 2:
        return args[1].upper() == b"ASYNC"
    return ctx.settings.yes("lazyfree-lazy-user-flush")


def _flush(ctx: Context, db_index: int) -> None:
    db = ctx.keyspace.databases[db_index]
    for watched_index, key in ctx.clients.watchers:
        if watched_index == db_index and key in db.values:
            _break_watches(ctx, db_index, key)
    ctx.dirty += len(db)
    values = db.values
    db.clear()
    ctx.count_lazily_freed(values)
    ctx.free_lazily(values)
    _signal_all(ctx, db_index)


def _swapped(args: list[bytes]) -> list[int]:
    return [1, 2]


@command(
    "SWAPDB index1:integer index2:integer",
    "4.0.0 write fast | acl dangerous keyspace | group server",
    "Exchanges two databases; clients keep the number of the one they selected.",
    "O(N) where N is the count of clients watching or blocking on keys from both databases.",
    databases=_swapped,
)
def swapdb(ctx: Context, args: list[bytes]) -> bytes:
    if ctx.cluster is not None:
        raise ReplyError(b"ERR SWAPDB is not allowed in cluster mode")
    one = arguments.within(MIN_INT32, MAX_INT32, args[1], b"ERR invalid first DB index")
    other = arguments.within(MIN_INT32, MAX_INT32, args[2], b"ERR invalid second DB index")
    keyspace = ctx.keyspace
    count = len(keyspace.databases)
    if not (0 <= one < count and 0 <= other < count):
        raise ReplyError(b"ERR DB index is out of range")
    if one != other:
        ctx.blocking.leave_databases(one, other, ctx.now_ms)
        keyspace.swap(one, other)
        ctx.select(ctx.db_index)  # this number may be another database now
        _break_swapped(ctx, one, other)
        _break_swapped(ctx, other, one)
        _signal_all(ctx, one)
        _signal_all(ctx, other)
    ctx.dirty += 1
    ctx.log_request(args)
    return reply.OK


def _break_swapped(ctx: Context, db_index: int, partner: int) -> None:
    """Mark the watches of an exchanged database as broken if there was a key, or there is one now (Redis 8.6.3).

    A key that had expired when it came is none, neither now nor when it goes, nor when EXEC finds it.
    """
    databases = ctx.keyspace.databases
    now, before = databases[db_index], databases[partner]
    for watched_index, key in ctx.clients.watchers:
        if watched_index != db_index:
            continue
        place = (db_index, key)
        is_live = key in now.values and now.expires.get(key, ctx.now_ms) >= ctx.now_ms
        for session in ctx.clients.watchers[place]:
            if is_live or (key in before.values and place not in session.watched_stale):
                session.watch_broken = True
            elif key in now.values:
                session.watched_stale.add(place)
            else:
                session.watched_stale.discard(place)


def _break_watches(ctx: Context, db_index: int, key: bytes) -> None:
    for session in ctx.clients.watchers[(db_index, key)]:
        session.watch_broken = True


def _signal_all(ctx: Context, db_index: int) -> None:
    """Signal all keys for which clients of a database wait: their requests are tried again after this one."""
    blocking = ctx.blocking
    for waited_index, key in list(blocking.by_key):
        if waited_index == db_index:
            blocking.signal(db_index, key)
