"""Arrays at keys: found, made, their changes noted; and the indexes that requests name. (Redis 8.8, documentation.)"""

from penstock.commands.common.overwriting import create
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types.arrays import MOST_INDEX, Array


def array_at(ctx: Context, key: bytes) -> Array | None:
    """The array at a key that may change, None where there is no key; WRONGTYPE for anything else."""
    value = ctx.value(key)
    if value is None or isinstance(value, Array):
        return value
    raise refusals.wrong_type()


def read_array(ctx: Context, key: bytes) -> Array | None:
    """As `array_at`, for a command that only reads: hits and misses are counted."""
    value = ctx.read(key)
    if value is None or isinstance(value, Array):
        return value
    raise refusals.wrong_type()


def array_made(ctx: Context, key: bytes) -> Array:
    """As `array_at`; where there is no key, one is made, to which something must be added at once."""
    found = array_at(ctx, key)
    if found is None:
        found = Array()
        create(ctx, key, found)
    return found


def index_word(word: bytes, most: int = MOST_INDEX) -> int:
    """An index: digits alone, at most 2**64 - 2."""
    if not word.isdigit() or len(word) > 20 or int(word) > most:
        raise ReplyError(b"ERR invalid array index")
    return int(word)


def notify_changed(ctx: Context, args: list[bytes], event: bytes, changes: int) -> None:
    """Items were set, or the cursor moved; the request as typed is the effect."""
    ctx.touch(args[1])
    ctx.event("a", event, args[1])
    ctx.dirty += changes
    ctx.log_request(args)
    ctx.replication.note_array()


def item_reply(found: Array | None, index: int, resp3: bool) -> bytes:
    item = None if found is None else found.items.get(index)
    return reply.null(resp3) if item is None else reply.bulk(item)


def pairs_reply(found: Array, indexes: list[int]) -> bytes:
    """Indexes with their items, as arrays of two."""
    return reply.array([b"*2\r\n" + reply.integer(index) + reply.bulk(found.items[index]) for index in indexes])
