"""Where a request's keys are: the notation of `keys=` in a declaration, and the keys of a request at hand.

    2 RW update                 the word at index 2 (the name has index 0)
    1..-1 RW delete             from index 1 to the last word
    1..-1/2 OW update           every second of them
    numkeys@2 RO access         index 2 holds their number, they follow; numkeys@2/2: each is followed by something
    STREAMS@4..half RO access   the first half of what follows the word STREAMS, looked for from index 4
    KEYS@-2..-1 RW delete       all that follows KEYS, looked for backwards from the last word but one
    ? RO access                 cannot be told

Several are parted by a semicolon; behind ` # ` stands a note for COMMAND INFO. The flags are Redis's.
"""

import re
from typing import Final

from penstock.engine import arguments
from penstock.engine.table.row import Row
from penstock.errors import ReplyError

HALF: Final = 2
XREADGROUP_OPTIONS: Final = 4  # where its key specification has STREAMS looked for
C_NUMBER: Final = re.compile(rb"[ \t-\r]*[+-]?[0-9]{1,100}")
WITHOUT_SECOND_LOOK: Final = ("MSETEX",)
_CONDITIONS: Final = frozenset((b"IFEQ", b"IFNE", b"IFDEQ", b"IFDNE"))  # of SET and DELEX

_OPTIONS: Final[dict[bytes, int]] = {  # of XREAD and XREADGROUP, and how many words follow each
    b"BLOCK": 1,
    b"CLAIM": 1,
    b"COUNT": 1,
    b"GROUP": 2,
    b"MAXCOUNT": 1,
    b"MAXSIZE": 1,
    b"NOACK": 0,
}

_BITFIELD_READERS: Final[dict[bytes, int]] = {b"GET": 2, b"OVERFLOW": 1}  # and how many words follow each
_SORT_OPTIONS: Final[dict[bytes, int]] = {b"LIMIT": 2, b"BY": 1, b"GET": 1}
MIGRATE_SECRETS: Final[dict[bytes, int]] = {b"AUTH": 1, b"AUTH2": 2}  # and how many words follow each
MIGRATED_KEY: Final = 3
MIGRATE_OPTIONS: Final = 6  # where they begin


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
    def fixed(self) -> bool:
        """Whether it is a range that begins at an index."""
        return not (self.unknown or self.counted or self.keyword)

    def positions(self, args: list[bytes], is_lenient: bool = False) -> list[int]:
        """The keys' indexes in a request; none where a keyword is missing. ValueError: the request is malformed.

        is_lenient: the number of keys is what C's atoi reads, and a keyword with nothing behind it is none.
        """
        first = self._first(args)
        if first < 0 or (is_lenient and self.keyword and first >= len(args)):
            return []
        if self.counted:
            if first >= len(args) or not (is_lenient or arguments.is_integer(args[first])):
                raise ValueError("no number of keys")
            count = _c_int(args[first]) if is_lenient else int(args[first])
            first, last = first + 1, first + 1 + (count - 1) * self.step
            if last < first or last >= len(args):
                raise ValueError("more keys than words")
        elif self.limit:
            last = first + (len(args) - first) // self.limit - 1
        else:
            last = len(args) + self.last if self.last < 0 else first + self.last
        if last >= len(args):
            raise ValueError("the keys reach beyond the last word")
        return list(range(first, last + 1, self.step))

    def _first(self, args: list[bytes]) -> int:
        """Where the keys (or their number) begin; -1 where nothing tells."""
        if self.unknown:
            return -1
        if not self.keyword:
            return self.index
        wanted = self.keyword.encode()
        if wanted == b"STREAMS" and self.index == XREADGROUP_OPTIONS:
            first = _behind_streams(args)
            if first > self.index:
                return first
        places = range(self.index, len(args)) if self.index > 0 else range(len(args) + self.index, 0, -1)
        for place in places:
            if args[place].upper() == wanted:
                return place + 1
        return -1


def _behind_streams(args: list[bytes]) -> int:
    """The word behind the option STREAMS of XREADGROUP; -1 where an unknown option stands before it.

    The options are walked as the command does: a group, consumer or count named STREAMS is none. Redis 8.6.3 takes the
    first such word; a user could read a stream through a group of that name, and be asked for another key's rights.
    """
    at = 1
    while at < len(args):
        word = args[at].upper()
        if word == b"STREAMS":
            return at + 1
        if word not in _OPTIONS:
            return -1
        at += 1 + _OPTIONS[word]
    return -1


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


def has_keys(row: Row) -> bool:
    """Whether any specification of the row tells of keys (channels have some too: `not_key`)."""
    return any("not_key" not in spec.flags for spec in parse(row.keys))


def of_keys(row: Row) -> list[KeySpec]:
    """The specifications of a row that tell of keys."""
    return [spec for spec in parse(row.keys) if "not_key" not in spec.flags]


def named_keys(row: Row, specs: list[KeySpec], args: list[bytes]) -> list[bytes]:
    """The keys of a request with right arity; none where they cannot be told. `specs` are the row's."""
    return [args[at] for at, _ in places_of(row, specs, args)]


def keys_of(row: Row, args: list[bytes]) -> list[tuple[bytes, list[str]]]:
    """The keys of a request with right arity, each with its specification's flags.

    Refused as COMMAND GETKEYS does where there are none and the command must have some.
    """
    places = places_of(row, parse(row.keys), args)
    if not places and "no_mandatory_keys" not in row.flags:
        raise ReplyError(b"ERR Invalid arguments specified for command")
    return [(args[at], flags) for at, flags in places]


def places_of(row: Row, specs: list[KeySpec], args: list[bytes]) -> list[tuple[int, list[str]]]:
    """The positions of the keys in a request with right arity, each with its flags; `specs` are the row's.

    None where the request is such that they cannot be told.
    """
    if row.name == "MIGRATE":
        return [(at, specs[0].flags) for at in _migrated(args)]
    try:
        found = _all_places(row, specs, args, False)
    except ValueError:
        if "movablekeys" not in row.flags or row.name in WITHOUT_SECOND_LOOK:
            return []
        try:
            found = _all_places(row, sorted(specs, key=_is_not_counted), args, True)
        except ValueError:
            return []
    if row.name == "SORT":
        found += [(at, specs[-1].flags) for at in _sort_target(args)]
    return found


def _all_places(row: Row, specs: list[KeySpec], args: list[bytes], is_lenient: bool) -> list[tuple[int, list[str]]]:
    """As `places_of`; ValueError if the request is malformed.

    Redis looks a second time, leniently, and says nothing then of keys beside a bad number of keys (8.6.3): such a
    request is refused when it is run.
    """
    found: list[tuple[int, list[str]]] = []
    has_flags = not (is_lenient and any(spec.counted for spec in specs))
    for spec in specs:
        if "not_key" not in spec.flags:
            flags = _flags(row, spec, args) if has_flags else []
            found += [(at, flags) for at in spec.positions(args, is_lenient)]
    return found


def _is_not_counted(spec: KeySpec) -> bool:
    return not spec.counted


def _c_int(word: bytes) -> int:
    """What C's atoi makes of a word: the digits at its start, as a 32-bit number; 0 if there are none.

    >>> _c_int(b"1.5"), _c_int(b"+2x"), _c_int(b"x"), _c_int(b"4294967297")
    (1, 2, 0, 1)
    """
    digits = C_NUMBER.match(word)
    number = max(-(2**63), min(int(digits[0]), 2**63 - 1)) if digits is not None else 0
    return (number + 2**31) % 2**32 - 2**31


def has_varying_flags(row: Row) -> bool:
    """Whether the flags of the row's keys depend on the request."""
    return row.name in ("SET", "BITFIELD", "DELEX")


def _flags(row: Row, spec: KeySpec, args: list[bytes]) -> list[str]:
    """A specification's flags; where they vary with the request, those of this one (Redis 8.6.3)."""
    if row.name == "SET":
        options = {word.upper() for word in args[3:]}
        if b"GET" in options:
            return ["RW", "access", "update"]
        return ["OW", "update"] if options.isdisjoint(_CONDITIONS) else ["RW", "update"]
    if row.name == "BITFIELD":
        return ["RO", "access"] if _only_gets(args) else ["RW", "access", "update"]
    if row.name == "DELEX":
        return ["RM" if _CONDITIONS.isdisjoint([word.upper() for word in args[2:]]) else "RW", "delete"]
    return spec.flags


def _only_gets(args: list[bytes]) -> bool:
    """Whether a BITFIELD has no other subcommands than GET and OVERFLOW, each with all its words."""
    at = 2
    while at < len(args):
        words = _BITFIELD_READERS.get(args[at].upper(), len(args))
        if at + words >= len(args):
            return False
        at += 1 + words
    return True


def _migrated(args: list[bytes]) -> list[int]:
    """The keys of MIGRATE: its third argument, or those behind KEYS if that is empty; none if both name keys.

    KEYS as the last word counts as none (Redis 8.6.3).
    """
    at = MIGRATE_OPTIONS
    while at < len(args):
        word = args[at].upper()
        if word == b"KEYS" and at + 1 < len(args):
            return [] if args[MIGRATED_KEY] else list(range(at + 1, len(args)))
        at += 1 + MIGRATE_SECRETS.get(word, 0)
    return [MIGRATED_KEY]


def _sort_target(args: list[bytes]) -> list[int]:
    """Where SORT stores: the word behind the last STORE that is no option's value."""
    target: list[int] = []
    at = 2
    while at < len(args):
        word = args[at].upper()
        if word == b"STORE" and at + 1 < len(args):
            target = [at + 1]
        at += 1 + _SORT_OPTIONS.get(word, 0)
    return target
