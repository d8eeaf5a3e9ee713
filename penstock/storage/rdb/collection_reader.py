"""Lists, sets, hashes and sorted sets as RDB keeps them, in every form since Redis 2.

Everything is checked: what is empty, doubled, out of order or of the wrong size is refused.
"""

import re
from itertools import pairwise
from math import inf
from typing import Final

from penstock.storage.rdb import listpack, old_blobs
from penstock.storage.rdb.errors import BadRdb, EmptyValue, shown
from penstock.storage.rdb.rdb_format import PACKED_NODE, PLAIN_NODE
from penstock.storage.rdb.source import Source
from penstock.storage.types.hashes import Hash
from penstock.storage.types.lists import List
from penstock.storage.types.sets import Form, Set
from penstock.storage.types.sorted_sets import SortedSet

NO_TIME: Final = 0  # of a hash's field
VALKEY_NO_TIME: Final = -1
LATEST_MS: Final = (1 << 46) - 1  # a field's latest time of expiry
MAX_INT64: Final = (1 << 63) - 1
LATEST_READ_MS: Final = (1 << 48) - 2  # that Redis 8.6.3 loads, though none of its commands sets more than LATEST_MS

OLD_NAN: Final = 253
OLD_INFINITE: Final = 254
OLD_NEGATIVE_INFINITE: Final = 255

_SCORE: Final = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_INFINITE: Final = {b"inf": inf, b"+inf": inf, b"-inf": -inf}


def empty(what: str) -> EmptyValue:
    return EmptyValue(f"an empty {what}")


def strings(source: Source, each: int = 1) -> list[bytes]:
    """A count and that many strings, or `each` times as many."""
    count = source.count(each)
    return [source.string() for _ in range(count * each)]


# -- lists ------------------------------------------------------------------------------------------------------------


def list_of(items: list[bytes]) -> List:
    if not items:
        raise empty("list")
    return List(items)


def quicklist(source: Source) -> List:
    """Nodes that are ziplists (Redis 3.2 to 6.2)."""
    items: list[bytes] = []
    for _ in range(source.count(1)):
        items += old_blobs.ziplist(source.string())
    return list_of(items)


def quicklist_2(source: Source) -> List:
    """Nodes that are listpacks, or one item each (Redis 7.0)."""
    items: list[bytes] = []
    for _ in range(source.count(2)):
        container = source.length()
        node = source.string()
        if container == PLAIN_NODE:
            items.append(node)
        elif container == PACKED_NODE:
            items += listpack.texts(node)
        else:
            raise BadRdb(f"a list's node is of the unknown kind {container}")
    return list_of(items)


# -- sets -------------------------------------------------------------------------------------------------------------


def set_of(members: list[bytes]) -> Set:
    if not members:
        raise empty("set")
    made = Set(members)
    if len(made) != len(members):
        raise BadRdb("a set has a member twice")
    return made


def listpack_set(source: Source) -> Set:
    """Its members may all be integers: then it had another member once."""
    made = set_of(listpack.texts(source.string()))
    made.take_form(Form.LISTPACK)
    return made


# -- hashes -----------------------------------------------------------------------------------------------------------


def hash_of(words: list[bytes]) -> Hash:
    """From fields and values in turn."""
    if not words:
        raise empty("hash")
    if len(words) % 2:
        raise BadRdb("a hash has a field without a value")
    made = Hash()
    if 2 * made.put_all(words) != len(words):
        raise BadRdb("a hash has a field twice")
    return made


def _with_times(source: Source, words: list[bytes], times: list[int], no_time: int, most_ms: int) -> Hash:
    """From fields and values in turn, and a time of expiry for each field, which is at most `most_ms`.

    What is later than LATEST_MS, which is in the year 4199, expires then: no HPEXPIREAT of ours could say it.
    """
    made = hash_of(words)
    for field, when_ms in zip(words[::2], times, strict=True):
        if when_ms != no_time:
            if not 0 <= when_ms <= most_ms:
                raise BadRdb("a hash's field has an impossible time of expiry")
            if when_ms > LATEST_MS:
                source.correct(f"the field {shown(field)} expires at {when_ms} ms, and is kept up to {LATEST_MS}")
            made.expire_at(field, min(when_ms, LATEST_MS))
    return made


def timed_hash(source: Source) -> Hash:
    """A hash table with times given by their distance to the earliest (Redis 7.4)."""
    earliest_ms = source.signed(8)
    words: list[bytes] = []
    times: list[int] = []
    for _ in range(source.count(3)):
        distance = source.length()
        times.append(earliest_ms + distance - 1 if distance else NO_TIME)
        words += (source.string(), source.string())
    return _with_times(source, words, times, NO_TIME, LATEST_READ_MS)


def timed_hash_pre_ga(source: Source) -> Hash:
    words: list[bytes] = []
    times: list[int] = []
    for _ in range(source.count(3)):
        times.append(source.length())
        words += (source.string(), source.string())
    return _with_times(source, words, times, NO_TIME, LATEST_READ_MS)


def timed_hash_of_valkey(source: Source) -> Hash:
    """Each field's time stands behind its value (Valkey 9: its HPEXPIREAT takes any time)."""
    words: list[bytes] = []
    times: list[int] = []
    for _ in range(source.count(10)):
        words += (source.string(), source.string())
        times.append(source.signed(8))
    return _with_times(source, words, times, VALKEY_NO_TIME, MAX_INT64)


def timed_listpack_hash(source: Source) -> Hash:
    """Fields, values and times in turn; the earliest time comes first, fields without one last (Redis 7.4)."""
    source.signed(8)  # the earliest time, which is also that of the first field
    made = timed_listpack_hash_pre_ga(source)
    made.keep_times()
    return made


def timed_listpack_hash_pre_ga(source: Source) -> Hash:
    found = listpack.elements(source.string())
    if len(found) % 3:
        raise BadRdb("a hash has a field without a value or a time")
    words: list[bytes] = []
    times: list[int] = []
    for at in range(0, len(found), 3):
        words += listpack.texts_of(found[at : at + 2])
        time = found[at + 2]
        if isinstance(time, bytes):
            raise BadRdb("a hash's field has no number for its time of expiry")
        times.append(time)
    if any((one or LATEST_MS + 1) > (other or LATEST_MS + 1) for one, other in pairwise(times)):
        raise BadRdb("a hash's fields are not in the order of their times of expiry")
    return _with_times(source, words, times, NO_TIME, LATEST_READ_MS)


def hash_of_fields(source: Source) -> Hash:
    """All fields, then a listpack of their values (Redis 8.10's DUMP; not seen on a server)."""
    fields = strings(source)
    return hash_of_template(fields, listpack.texts(source.string()))


def hash_of_template(fields: list[bytes], values: list[bytes]) -> Hash:
    if len(fields) != len(values):
        raise BadRdb("a hash has another number of values than of fields")
    return hash_of([word for pair in zip(fields, values, strict=True) for word in pair])


# -- sorted sets ------------------------------------------------------------------------------------------------------


def sorted_set_of(pairs: list[tuple[float, bytes]]) -> SortedSet:
    if not pairs:
        raise empty("sorted set")
    for score, _ in pairs:
        if score != score:
            raise BadRdb("a sorted set has a score that is no number")
    made = SortedSet(pairs)
    if len(made) != len(pairs):
        raise BadRdb("a sorted set has a member twice")
    return made


def sorted_set(source: Source) -> SortedSet:
    pairs: list[tuple[float, bytes]] = []
    for _ in range(source.count(9)):
        member = source.string()
        pairs.append((source.double(), member))
    return sorted_set_of(pairs)


def text_sorted_set(source: Source) -> SortedSet:
    """Scores are texts behind their length (before Redis 4.0)."""
    pairs: list[tuple[float, bytes]] = []
    for _ in range(source.count(2)):
        member = source.string()
        pairs.append((_old_double(source), member))
    return sorted_set_of(pairs)


def _old_double(source: Source) -> float:
    size = source.byte()
    if size == OLD_INFINITE:
        return inf
    if size == OLD_NEGATIVE_INFINITE:
        return -inf
    if size == OLD_NAN:
        raise BadRdb("a sorted set has a score that is no number")
    return score_of(source.take(size))


def of_members_and_scores(words: list[bytes]) -> SortedSet:
    if len(words) % 2:
        raise BadRdb("a sorted set has a member without a score")
    return sorted_set_of([(score_of(words[at + 1]), words[at]) for at in range(0, len(words), 2)])


def score_of(text: bytes) -> float:
    """A score that is kept as text."""
    if _SCORE.fullmatch(text) is not None:
        return float(text)
    if text not in _INFINITE:
        raise BadRdb("a sorted set has a score that is no number")
    return _INFINITE[text]
