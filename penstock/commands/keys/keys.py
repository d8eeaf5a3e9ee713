"""Commands for keys of any type: remove, test, type, rename, move, copy.

Tests: transcripts copy_rename_move; cases commands/test_keys; law commands/test_random_requests.
"""

from typing import Final

from penstock.commands.common.overwriting import create, delete, notify_overwritten
from penstock.engine import arguments, refusals
from penstock.engine.arguments import MAX_INT32, MIN_INT32
from penstock.engine.context import Context
from penstock.engine.policies import targets
from penstock.engine.table.command_table import command
from penstock.engine.table.option_table import OptionTable
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.keyspace import Value, type_name
from penstock.storage.types.string_forms import under_other_key


@command(
    "DEL key [key ...]",
    "1.0.0 write | keys 1..-1 RM delete | tips request_policy:multi_shard response_policy:agg_sum",
    "Removes keys and returns how many existed.",
    "O(1) for each key; the memory of a stream with M segments is freed in O(M), in steps.",
)
def del_(ctx: Context, args: list[bytes]) -> bytes:
    return _removed(ctx, args, is_lazy=ctx.settings.yes("lazyfree-lazy-user-del"))


def _removed(ctx: Context, args: list[bytes], is_lazy: bool) -> bytes:
    removed = 0
    for key in args[1:]:
        removed += delete(ctx, key, is_lazy)
    if removed:
        ctx.log_request(args)
    return reply.integer(removed)


@command(
    "UNLINK key [key ...]",
    "4.0.0 write fast | keys 1..-1 RM delete | tips request_policy:multi_shard response_policy:agg_sum",
    "Removes keys and returns how many existed; the same as DEL in Penstock.",
    "O(1) for each key; memory is freed as by DEL.",
)
def unlink(ctx: Context, args: list[bytes]) -> bytes:
    return _removed(ctx, args, is_lazy=True)


@command(
    "EXISTS key [key ...]",
    "1.0.0 readonly fast | keys 1..-1 RO | tips request_policy:multi_shard response_policy:agg_sum",
    "Returns how many of the given keys exist; a repeated key counts again.",
    "O(N) where N is the number of keys to check.",
    history=(("3.0.3", "Accepts multiple `key` arguments."),),
)
def exists(ctx: Context, args: list[bytes]) -> bytes:
    return reply.integer(_count(ctx, args[1:]))


@command(
    "TOUCH key [key ...]",
    "3.2.1 readonly fast | keys 1..-1 RO | tips request_policy:multi_shard response_policy:agg_sum",
    "Returns how many of the given keys exist, and counts as a use of them.",
    "O(N) where N is the number of keys that will be touched.",
)
def touch(ctx: Context, args: list[bytes]) -> bytes:
    return reply.integer(_count(ctx, args[1:]))


def _count(ctx: Context, keys: list[bytes]) -> int:
    count = 0
    for key in keys:
        count += ctx.looked_up(key)
    return count


@command("TYPE key", "1.0.0 readonly fast | keys 1 RO | traits only_looks", "Returns the type of the value at a key.")
def type_(ctx: Context, args: list[bytes]) -> bytes:
    value = ctx.read(args[1])
    return reply.simple(b"none" if value is None else type_name(value))


# -- renaming --------------------------------------------------------------------------------------------------------


@command(
    "RENAME key newkey:key",
    "1.0.0 write | keys 1 RW access delete; 2 OW update",
    "Renames a key; a key with the new name is replaced.",
)
def rename(ctx: Context, args: list[bytes]) -> bytes:
    key, new_key = args[1], args[2]
    value = ctx.value(key)
    if value is None:
        raise refusals.no_such_key()
    if key == new_key:
        return reply.OK
    targets.admit(ctx, new_key, value)
    _rename(ctx, key, value, new_key, ctx.value(new_key))
    ctx.log_request(args)
    return reply.OK


@command(
    "RENAMENX key newkey:key",
    "1.0.0 write fast | keys 1 RW access delete; 2 OW insert",
    "Renames a key, unless a key with the new name exists.",
    history=(("3.2.0", "The command no longer returns an error when source and destination names are the same."),),
)
def renamenx(ctx: Context, args: list[bytes]) -> bytes:
    key, new_key = args[1], args[2]
    value = ctx.value(key)
    if value is None:
        raise refusals.no_such_key()
    if key == new_key or ctx.value(new_key) is not None:
        return reply.ZERO
    targets.admit(ctx, new_key, value)
    _rename(ctx, key, value, new_key, None)
    ctx.log_request(args)
    return reply.ONE


def _rename(ctx: Context, key: bytes, value: Value, new_key: bytes, old: Value | None) -> None:
    """Move a value and its time of expiry to another key of the database; `old` is the value that it replaces."""
    ctx.touch(key)  # a client that tracks both names gets this one first (Redis 8.6.3)
    kept = under_other_key(value, key, new_key) if isinstance(value, bytes) else value
    _create(ctx, new_key, kept, ctx.db.expires.get(key), key in ctx.db.blessed)
    ctx.remove(key)
    ctx.event("g", b"rename_from", key)
    ctx.event("g", b"rename_to", new_key)
    if old is not None:
        notify_overwritten(ctx, new_key, old, value)
    ctx.dirty += 1


# -- across databases ------------------------------------------------------------------------------------------------


def _home_of_moved(args: list[bytes]) -> list[int]:
    return [2]


@command(
    "MOVE key db:integer",
    "1.0.0 write fast | keys 1 RW access update",
    "Moves a key to another database, unless it has a key with this name.",
    databases=_home_of_moved,
)
def move(ctx: Context, args: list[bytes]) -> bytes:
    if ctx.cluster is not None:
        raise ReplyError(b"ERR MOVE is not allowed in cluster mode")
    key, home = args[1], ctx.db_index
    target = _read_database(ctx, args[2])
    if target == home:
        raise _same_object()
    value = ctx.value(key)
    if value is None:
        return reply.ZERO
    targets.admit(ctx, key, value)
    when_ms, is_blessed = ctx.db.expires.get(key), key in ctx.db.blessed
    ctx.select(target)
    exists_there = ctx.value(key) is not None
    if not exists_there:
        _create(ctx, key, value, when_ms, is_blessed)
    ctx.select(home)
    if exists_there:
        return reply.ZERO
    ctx.remove(key)
    ctx.event("g", b"move_from", key)
    ctx.select(target)
    ctx.event("g", b"move_to", key)
    ctx.select(home)
    ctx.dirty += 1
    ctx.log_request(args)
    return reply.ONE


COPY_OPTIONS: Final = OptionTable({b"REPLACE": 0, b"DB": 1})


def _home_of_copy(args: list[bytes]) -> list[int]:
    """None where a word is no option: the handler refuses the request then."""
    places: list[int] = []
    at = 3
    while at < len(args):
        option = args[at].upper()
        words = COPY_OPTIONS.words(option, args, at)
        if words == 0:
            return []
        if option == b"DB":
            places.append(at + 1)
        at += words
    return places


@command(
    "COPY source:key destination:key [DB destination-db:integer] [REPLACE]",
    "6.2.0 write denyoom | keys 1 RO access; 2 OW update",
    "Copies a value, with its time of expiry, to another key or another database.",
    "O(1) for strings, O(N) for a stream with N segments and pending blocks, O(N) for N parts of others.",
    databases=_home_of_copy,
)
def copy(ctx: Context, args: list[bytes]) -> bytes:
    source, destination, home = args[1], args[2], ctx.db_index
    target, replaces = home, False
    at = 3
    while at < len(args):
        option = args[at].upper()
        words = COPY_OPTIONS.words(option, args, at)
        if words == 0:
            raise refusals.syntax()
        if option == b"DB":
            target = _read_database(ctx, args[at + 1])
        else:
            replaces = True
        at += words
    if source == destination and target == home:
        raise _same_object()
    value = ctx.read(source)
    if value is None:
        return reply.ZERO
    targets.admit(ctx, destination, value)
    when_ms, is_blessed = ctx.db.expires.get(source), source in ctx.db.blessed
    ctx.select(target)
    old = ctx.value(destination)
    if old is not None and not replaces:
        ctx.select(home)
        return reply.ZERO
    ctx.blocking.leave_key(home, source, ctx.now_ms)
    copied = under_other_key(value, source, destination) if isinstance(value, bytes) else value.copy()
    _create(ctx, destination, copied, when_ms, is_blessed)
    ctx.event("g", b"copy_to", destination)
    if old is not None:
        notify_overwritten(ctx, destination, old, copied)
    ctx.select(home)
    ctx.dirty += 1
    ctx.log_request(args)
    return reply.ONE


def _create(ctx: Context, key: bytes, value: Value, when_ms: int | None, is_blessed: bool) -> None:
    """Create a key with a value, the time of expiry that the value had, and the protection of its key."""
    create(ctx, key, value)
    if is_blessed:
        ctx.db.blessed.add(key)
    else:
        ctx.db.blessed.drop(key)
    if when_ms is not None:
        ctx.db.expire_at(key, when_ms)


def _read_database(ctx: Context, word: bytes) -> int:
    """Read a database number; ReplyError with Redis's texts."""
    number = arguments.integer(word)
    if not MIN_INT32 <= number <= MAX_INT32:
        raise ReplyError(b"ERR value is out of range, value must between -2147483648 and 2147483647")
    if not 0 <= number < len(ctx.keyspace.databases):
        raise ReplyError(b"ERR DB index is out of range")
    return number


def _same_object() -> ReplyError:
    return ReplyError(b"ERR source and destination objects are the same")
