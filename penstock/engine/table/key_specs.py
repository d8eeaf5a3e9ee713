"""Where a request's keys are: the notation of `keys=` in a declaration, and the keys of a request at hand.

    2 RW update                 the word at index 2 (the name has index 0)
    1..-1 RW delete             from index 1 to the last word
    1..-1/2 OW update           every second of them
    numkeys@2 RO access         index 2 holds their number, they follow; numkeys@2/2: each is followed by something
    STREAMS@4..half RO access   the first half of what follows the word STREAMS, looked for from index 4
    KEYS@-2..-1 RW delete       all that follows KEYS, looked for backwards from the last word but one
    ? RO access                 cannot be told

Several are parted by a semicolon; behind ` # ` stands a note for COMMAND INFO. The flags are Redis's.

A word tells clients only where keys may be: a value may be spelled like it, and an option may come twice. A command
with such a place declares a function that reads its options as its handler does (`find_keys`).
"""

import re
from typing import Final

from penstock.engine import arguments
from penstock.engine.table.key_place import KeyPlace

HALF: Final = 2
C_NUMBER: Final = re.compile(rb"[ \t-\r]*[+-]?[0-9]{1,100}")


class KeySpec:
    """One key specification, in the terms of COMMAND INFO.

    Begin: `index`, or `keyword` looked for from `index`; find: `counted` (their number precedes them) or a range
    to `last` (0: one key; negative: from the request's end) by `step`, of which only 1/limit where limit is set.
    """

    __slots__ = ("counted", "flags", "index", "keyword", "last", "limit", "note", "step", "unknown")

    def __init__(self, text: str) -> None:
        text, _, self.note = text.strip().partition(" # ")
        place, *self.flags = text.split()
        self.unknown = place == "?"
        self.index = 0
        self.keyword = ""
        self.counted = False
        self.last = 0
        self.step = 1
        self.limit = 0
        if not self.unknown:
            self._read_place(place)

    def _read_place(self, place: str) -> None:
        place, _, step = place.partition("/")
        self.step = int(step or 1)
        begin, _, last = place.partition("..")
        if last == "half":
            self.last = -1
            self.limit = HALF
        else:
            self.last = int(last or 0)
        keyword, at, index = begin.rpartition("@")
        self.index = int(index)
        self.counted = keyword == "numkeys"
        if at and not self.counted:
            self.keyword = keyword

    @property
    def is_key(self) -> bool:
        """Whether it is of keys: channels have some, too."""
        return "not_key" not in self.flags

    @property
    def fixed(self) -> bool:
        """Whether it is a range that begins at an index."""
        return not (self.unknown or self.counted or self.keyword)

    @property
    def knows_places(self) -> bool:
        """Whether it says where the keys of a request are, without a look at the request's options."""
        return not (self.unknown or self.keyword)

    def positions(self, args: list[bytes], is_lenient: bool = False) -> list[int]:
        """The keys' indexes in a request; none where it does not say. ValueError: the request is malformed.

        is_lenient: the number of keys is what C's atoi reads.
        """
        if not self.knows_places:
            return []
        first = self.index
        if self.counted:
            if first >= len(args) or not (is_lenient or arguments.is_integer(args[first])):
                raise ValueError("no number of keys")
            count = _c_int(args[first]) if is_lenient else int(args[first])
            first, last = first + 1, first + 1 + (count - 1) * self.step
            if last < first or last >= len(args):
                raise ValueError("more keys than words")
        else:
            last = len(args) + self.last if self.last < 0 else first + self.last
        if last >= len(args):
            raise ValueError("the keys reach beyond the last word")
        return list(range(first, last + 1, self.step))


def parse(keys: str) -> list[KeySpec]:
    """The specifications of a row's `keys`, in order."""
    return [KeySpec(text) for text in keys.split(";")] if keys else []


def fixed_range(specs: list[KeySpec]) -> tuple[int, int, int]:
    """First key, last key and step as COMMAND INFO gives them; zeros where no key has a fixed place."""
    first, last, step = 0, 0, 0
    for spec in specs:
        if not spec.fixed:
            continue
        if not first:
            first, step = spec.index, spec.step
        last = spec.last if spec.last < 0 else spec.index + spec.last
    return first, last, step


def only_place(specs: list[KeySpec]) -> KeyPlace | None:
    """The key of a command that has one, always at the same place and used in the same way; None for others."""
    if len(specs) != 1 or not specs[0].fixed or specs[0].last or not specs[0].is_key:
        return None
    return KeyPlace(specs[0].index, specs[0].flags)


def places(specs: list[KeySpec], args: list[bytes], are_movable: bool) -> list[KeyPlace]:
    """Where the keys of a request with right arity are; none where that is not known.

    are_movable: the command is declared with `movablekeys`.
    """
    try:
        return _all_places(specs, args, False)
    except ValueError:
        if not are_movable or any(spec.counted and spec.step > 1 for spec in specs):  # MSETEX: one look
            return []
    try:
        return _all_places(sorted(specs, key=_is_not_counted), args, True)
    except ValueError:
        return []


def _all_places(specs: list[KeySpec], args: list[bytes], is_lenient: bool) -> list[KeyPlace]:
    """As `places`; ValueError if the request is malformed.

    Redis looks a second time, leniently, and says nothing then of keys beside a bad number of keys (8.6.3): such a
    request is refused when it is run.
    """
    found: list[KeyPlace] = []
    has_flags = not (is_lenient and any(spec.counted for spec in specs))
    for spec in specs:
        if spec.is_key:
            found += [KeyPlace(at, spec.flags if has_flags else []) for at in spec.positions(args, is_lenient)]
    return found


def _is_not_counted(spec: KeySpec) -> bool:
    return not spec.counted


def _c_int(word: bytes) -> int:
    """A word as C's atoi reads it: the digits at its start, as a 32-bit number; 0 if there are none.

    >>> _c_int(b"1.5"), _c_int(b"+2x"), _c_int(b"x"), _c_int(b"4294967297")
    (1, 2, 0, 1)
    """
    digits = C_NUMBER.match(word)
    number = max(-(2**63), min(int(digits[0]), 2**63 - 1)) if digits is not None else 0
    return (number + 2**31) % 2**32 - 2**31
