"""List commands with positions: read, set, insert and remove items in the middle, and find positions.

Tests: transcripts lists; cases commands/test_lists; law against_redis/test_lists_beside_redis; model
storage/test_lists.
"""

from typing import Final

from penstock.commands.lists.list_ends import list_at, listpack_size, notify_removed, read_list
from penstock.engine import arguments, refusals
from penstock.engine.arguments import MAX_INT64, MIN_INT64
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types.lists import List

NO_PIVOT: Final = b":-1\r\n"  # LINSERT found no item that equals the pivot


def bounds(start: int, stop: int, length: int) -> tuple[int, int]:
    """A range of Redis (both ends included, negative from the end) as a Python range; (0, 0) if it is empty."""
    if start < 0:
        start = max(start + length, 0)
    stop = (stop + length if stop < 0 else min(stop, length - 1)) + 1
    return (start, stop) if start < stop else (0, 0)


@command(
    "LINDEX key index",
    "1.0.0 readonly | keys 1 RO access",
    "Returns the item at a position in a list.",
    "O(N) where N is the number of items between the position and the nearer end.",
)
def lindex(ctx: Context, args: list[bytes]) -> bytes:
    found = read_list(ctx, args[1])
    if found is None:
        return reply.null(ctx.resp3)
    at = arguments.integer(args[2])
    if not -found.length <= at < found.length:
        return reply.null(ctx.resp3)
    return reply.bulk(found.item(at % found.length))


@command(
    "LRANGE key start:integer stop:integer",
    "1.0.0 readonly | keys 1 RO access",
    "Returns the items of a list from one position to another.",
    "O(S+N) where S is the distance of the range from the nearer end and N the number of its items.",
)
def lrange(ctx: Context, args: list[bytes]) -> bytes:
    start, stop = arguments.integer(args[2]), arguments.integer(args[3])
    found = read_list(ctx, args[1])
    if found is None:
        return reply.EMPTY_ARRAY
    start, stop = bounds(start, stop, found.length)
    return reply.bulks(found.slice(start, stop)) if stop else reply.EMPTY_ARRAY


@command(
    "LSET key index element",
    "1.0.0 write denyoom | keys 1 RW update",
    "Replaces the item at a position in a list.",
    "O(N) where N is the number of items between the position and the nearer end.",
)
def lset(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    found = list_at(ctx, key)
    if found is None:
        raise refusals.no_such_key()
    at = arguments.integer(args[2])
    found.grow(args[3:], listpack_size(ctx))  # before the index is looked at, as in Redis
    if not -found.length <= at < found.length:
        raise ReplyError(b"ERR index out of range")
    found.replace(at % found.length, args[3])
    found.shrink(listpack_size(ctx))
    _notify(ctx, key, b"lset")
    ctx.log_request(args)
    return reply.OK


@command(
    "LINSERT key where:<BEFORE|AFTER> pivot element",
    "2.2.0 write denyoom | keys 1 RW insert",
    "Inserts an item before or after the first one that equals the pivot.",
    "O(N) where N is the number of items before the pivot.",
)
def linsert(ctx: Context, args: list[bytes]) -> bytes:
    _, key, where, pivot, item = args
    if where.upper() not in (b"BEFORE", b"AFTER"):
        raise refusals.syntax()
    found = list_at(ctx, key)
    if found is None:
        return reply.ZERO
    found.grow(args[4:], listpack_size(ctx))  # even if the pivot is not there, as in Redis
    places = found.positions(pivot, 0, 1, MAX_INT64, from_left=True)
    if not places:
        return NO_PIVOT
    found.insert(places[0] + (where.upper() == b"AFTER"), item)
    ctx.signal(key)  # as list_ends.push
    _notify(ctx, key, b"linsert")
    ctx.log_request(args)
    return reply.integer(found.length)


def _notify(ctx: Context, key: bytes, name: bytes) -> None:
    ctx.touch(key)
    ctx.event("l", name, key)
    ctx.dirty += 1


@command(
    "LREM key count element",
    "1.0.0 write | keys 1 RW delete",
    "Removes items that equal a given one: all, or a number of them from the left or the right.",
    "O(N+M) where N is the length of the list and M is the number of elements removed.",
)
def lrem(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    count = arguments.integer(args[2])
    if count == MIN_INT64:
        raise ReplyError(b"ERR value is out of range, value must between -%d and %d" % (MAX_INT64, MAX_INT64))
    found = list_at(ctx, key)
    if found is None:
        return reply.ZERO
    removed = found.remove(args[3], abs(count) or MAX_INT64, count >= 0)
    if removed:
        ctx.event("l", b"lrem", key)
        ctx.dirty += removed
        notify_removed(ctx, key, found)
        ctx.log_request(args)
    return reply.integer(removed)


@command(
    "LTRIM key start:integer stop:integer",
    "1.0.0 write | keys 1 RW delete",
    "Keeps the items of a list from one position to another and removes all others.",
    "O(N) where N is the number of elements to be removed by the operation.",
)
def ltrim(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    start, stop = arguments.integer(args[2]), arguments.integer(args[3])
    found = list_at(ctx, key)
    if found is None:
        return reply.OK
    length = found.length
    found.trim(*bounds(start, stop, length))
    ctx.event("l", b"ltrim", key)
    notify_removed(ctx, key, found)
    if found.length < length:
        ctx.dirty += length - found.length
        ctx.log_request(args)
    return reply.OK


# -- finding ---------------------------------------------------------------------------------------------------------


class Search:
    """The options of LPOS."""

    __slots__ = ("max_count", "max_scanned", "rank", "wants_all")

    def __init__(self) -> None:
        self.rank = 1
        self.max_count = 1
        self.max_scanned = MAX_INT64  # items to compare
        self.wants_all = False  # COUNT was given: the reply is an array


def _read_search(args: list[bytes]) -> Search:
    search = Search()
    for at in range(3, len(args), 2):
        option = args[at].upper()
        if at + 1 == len(args) or option not in (b"RANK", b"COUNT", b"MAXLEN"):
            raise refusals.syntax()
        if option == b"RANK":
            search.rank = arguments.integer(args[at + 1])
            if search.rank == MIN_INT64:
                raise ReplyError(b"ERR value is out of range, value must between -%d and %d" % (MAX_INT64, MAX_INT64))
            if search.rank == 0:
                raise ReplyError(
                    b"ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... "
                    b"or use negative to start from the end of the list"
                )
            continue
        number = arguments.at_least(0, args[at + 1], b"ERR %b can't be negative" % option)
        if option == b"COUNT":
            search.max_count, search.wants_all = number or MAX_INT64, True
        else:
            search.max_scanned = number or MAX_INT64
    return search


@command(
    "LPOS key element [RANK rank:integer] [COUNT num-matches:integer] [MAXLEN len:integer]",
    "6.0.6 readonly | keys 1 RO access",
    "Returns the positions of the items that equal a given one.",
    "O(N) where N is the number of items compared, at most MAXLEN.",
)
def lpos(ctx: Context, args: list[bytes]) -> bytes:
    search = _read_search(args)
    found = read_list(ctx, args[1])
    places = [] if found is None else _places(found, args[2], search)
    if search.wants_all:
        return reply.array([reply.integer(place) for place in places])
    return reply.integer(places[0]) if places else reply.null(ctx.resp3)


def _places(found: List, item: bytes, search: Search) -> list[int]:
    return found.positions(item, abs(search.rank) - 1, search.max_count, search.max_scanned, search.rank > 0)
