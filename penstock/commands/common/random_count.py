"""The count argument of SRANDMEMBER and HRANDFIELD, and the random names that it asks for (Redis 8.6.3)."""

import random
from typing import Final

from penstock.engine import arguments
from penstock.engine.arguments import MAX_INT64
from penstock.errors import ReplyError
from penstock.storage.types.random_index import IndexedNames

MAX_DRAWS: Final = 1 << 24  # with repetitions; Redis has no limit and runs until its memory is full


def read_count(word: bytes) -> int:
    """Read a count; the most negative 64-bit integer is refused."""
    count = arguments.integer(word)
    if count < -MAX_INT64:
        raise ReplyError(b"ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807")
    return count


def random_names(indexed: IndexedNames, count: int, chance: random.Random) -> list[bytes]:
    """`count` different names; if `count` is negative, -count names that may repeat. O(names + count)."""
    if count < -MAX_DRAWS:
        raise ReplyError(b"ERR value is out of range")
    if count < 0:
        return chance.choices(indexed.names, k=-count)
    return chance.sample(indexed.names, min(count, len(indexed.names)))
