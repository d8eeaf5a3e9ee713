"""How many names chance is to draw from a value, as SRANDMEMBER and HRANDFIELD ask for them (Redis 8.6.3)."""

import random
from typing import Final

from penstock.engine import arguments
from penstock.engine.arguments import MAX_INT64
from penstock.errors import ReplyError
from penstock.storage.types.random_index import IndexedNames

MOST_DRAWS: Final = 1 << 24  # with repetitions; Redis goes on until its memory is full


def read_count(word: bytes) -> int:
    """A number whose negative is a number, too."""
    count = arguments.integer(word)
    if count < -MAX_INT64:
        raise ReplyError(b"ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807")
    return count


def drawn(draw: IndexedNames, count: int, chance: random.Random) -> list[bytes]:
    """`count` different names; -count of them with repetitions where it is negative."""
    if count < -MOST_DRAWS:
        raise ReplyError(b"ERR value is out of range")
    if count < 0:
        return chance.choices(draw.names, k=-count)
    return chance.sample(draw.names, min(count, len(draw.names)))
