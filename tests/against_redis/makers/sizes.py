"""INFO keysizes among random requests about values of all types."""

from typing import ClassVar, Final

from tests.against_redis.makers.hashes import Hashes
from tests.against_redis.makers.lists import Lists
from tests.against_redis.makers.scripts import Scripts
from tests.against_redis.makers.sets import Sets
from tests.against_redis.makers.shared import Maker, Row
from tests.against_redis.makers.sortedsets import SortedSets
from tests.against_redis.makers.sorting import Sorting
from tests.against_redis.makers.strings import Strings
from tests.support.random_words import Request

NOT_COUNTED_BY_REDIS: Final = ("SETBIT", "BITFIELD")  # of a string that is there (docs/differences.md)


class Sizes(Maker):
    """How many values there are of each size."""

    kind = "streams"

    def rows(self) -> list[Row]:
        return [(60, "INFO", self.sizes)]

    def sizes(self) -> Request:
        return ["INFO", "keysizes"]


class CountedStrings(Strings):
    """Strings with sizes that Redis counts after every change."""

    weights: ClassVar = {name: weight for name, weight in Strings.weights.items() if name not in NOT_COUNTED_BY_REDIS}


MEASURED: Final[tuple[type[Maker], ...]] = (
    Sizes, CountedStrings, Hashes, Lists, Scripts, Sets, SortedSets, Sorting,
)  # fmt: skip
