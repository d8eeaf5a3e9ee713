"""Keys of every type as the page shows them: where SCAN has met them, and what is in one."""

from typing import Any, Final, NamedTuple

from penstock.observe.console import names
from penstock.observe.console.engine_client import Words
from penstock.observe.console.replies import RefusedByServer, checked

MEMBERS: Final = 100  # rows of a value, a page
LAST_CURSOR: Final = 2**63


class Reading(NamedTuple):
    """How a type is read: the request for its size, and one that a place (an index or a cursor) goes into."""

    size: bytes
    read: bytes
    by_cursor: bool
    options: tuple[bytes, ...] = ()


READINGS: Final = {
    b"list": Reading(b"LLEN", b"LRANGE", False),
    b"zset": Reading(b"ZCARD", b"ZRANGE", False, (b"WITHSCORES",)),
    b"hash": Reading(b"HLEN", b"HSCAN", True),
    b"set": Reading(b"SCARD", b"SSCAN", True),
}


def about_requests(key: bytes) -> list[Words]:
    """The requests about each key."""
    return [[b"TYPE", key], [b"PTTL", key], [b"MEMORY", b"USAGE", key]]


def about_row(key: bytes, kind: Any, ttl_ms: Any, memory: Any) -> dict[str, object]:
    """A key with its type; `ttl_ms` is None where it does not expire, `memory` where the user may not ask.

    RefusedByServer, also where it is gone.
    """
    kind_name = checked(kind)
    if kind_name == b"none":
        raise RefusedByServer("The key is not there.")
    return {
        "key": names.token(key),
        "type": kind_name.decode(),
        "ttl_ms": ttl_ms if isinstance(ttl_ms, int) and ttl_ms >= 0 else None,
        "memory": memory if isinstance(memory, int) else None,
    }


def value_requests(key: bytes, kind: bytes, place: int) -> list[Words]:
    """The size of a value, and the part of it that begins at a place; nothing for a type that is not shown."""
    if kind == b"string":
        return [[b"STRLEN", key], [b"GETRANGE", key, b"0", b"%d" % (names.LONG - 1)]]
    reading = READINGS.get(kind)
    if reading is None:
        return []
    if reading.by_cursor:
        words = [reading.read, key, b"%d" % place, b"COUNT", b"%d" % MEMBERS]
    else:
        words = [reading.read, key, b"%d" % place, b"%d" % (place + MEMBERS - 1), *reading.options]
    return [[reading.size, key], words]


def value_shown(kind: bytes, place: int, replies: list[Any]) -> dict[str, object]:
    """The rows [name, value] of a value; `next` is the place at which they go on, 0 at the end. RefusedByServer."""
    if not replies:
        return {"size": None, "rows": [], "next": 0}
    size, found = checked(replies[0]), checked(replies[1])
    if kind == b"string":
        more = {"size": size} if size > len(found) else {}
        return {"size": size, "rows": [[{"text": ""}, {"text": names.token(found)} | more]], "next": 0}
    following = 0
    if READINGS[kind].by_cursor:
        following, found = int(found[0]), found[1]
    elif place + MEMBERS < size:
        following = place + MEMBERS
    if kind in (b"hash", b"zset"):
        pairs = list(zip(found[::2], found[1::2], strict=True))
        rows = [[names.shortened(name, names.SHORT), names.shortened(value, names.SHORT)] for name, value in pairs]
    elif kind == b"list":
        rows = [[{"text": str(at)}, names.shortened(value, names.SHORT)] for at, value in enumerate(found, place)]
    else:
        rows = [[{"text": ""}, names.shortened(value, names.SHORT)] for value in found]
    return {"size": size, "rows": rows, "next": following}


def slow_row(entry: Any) -> dict[str, object]:
    """A request of the slow log."""
    number, at_s, took_us, words, client, name = entry[:6]
    return {
        "id": number,
        "at_ms": at_s * 1000,
        "took_us": took_us,
        "line": names.token(names.request_line(words).encode()),
        "client": names.token(client),
        "name": names.token(name),
    }
