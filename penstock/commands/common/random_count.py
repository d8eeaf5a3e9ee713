"""The count of SRANDMEMBER, HRANDFIELD and ZRANDMEMBER, and the random names that it asks for (Redis 8.6.3)."""

from collections.abc import Callable, Collection
from random import Random
from typing import Final

from penstock.engine import arguments
from penstock.engine.arguments import MAX_INT64
from penstock.errors import ReplyError
from penstock.storage.types.scan_order import HashOrder

MAX_DRAWS: Final = 1 << 24  # with repetitions; Redis has no limit and runs until its memory is full
SHARE: Final = 3  # from a third of all names on, names are drawn from a list of all
FEW: Final = 64  # names of which a list is made in any case


def read_count(word: bytes) -> int:
    """Read a count; the most negative 64-bit integer is refused."""
    count = arguments.integer(word)
    if count < -MAX_INT64:
        raise ReplyError(b"ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807")
    return count


def random_name(names: Collection[bytes], in_order: Callable[[], HashOrder], chance: Random) -> bytes:
    """One of some names. O(1). in_order: as in random_names."""
    return chance.choice(list(names)) if len(names) <= FEW else in_order().any_of(chance)


def random_names(
    names: Collection[bytes], in_order: Callable[[], HashOrder], count: int, chance: Random
) -> list[bytes]:
    """`count` different names; if `count` is negative, -count names that may repeat. O(count).

    in_order: gives the order of the names, where a few of many are wanted.
    """
    if count < -MAX_DRAWS:
        raise ReplyError(b"ERR value is out of range")
    if len(names) <= FEW or SHARE * abs(count) >= len(names):
        listed = list(names)
        return chance.choices(listed, k=-count) if count < 0 else chance.sample(listed, min(count, len(listed)))
    order = in_order()
    if count < 0:
        return [order.any_of(chance) for _ in range(-count)]
    found: dict[bytes, None] = {}
    while len(found) < count:
        found[order.any_of(chance)] = None
    return list(found)
