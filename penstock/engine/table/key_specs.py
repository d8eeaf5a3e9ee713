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

from typing import Final

from penstock.engine import arguments
from penstock.engine.table.row import Row
from penstock.errors import ReplyError

HALF: Final = 2

_OPTIONS: Final[dict[bytes, int]] = {  # of XREAD and XREADGROUP, and how many words follow each
    b"BLOCK": 1,
    b"CLAIM": 1,
    b"COUNT": 1,
    b"GROUP": 2,
    b"MAXCOUNT": 1,
    b"MAXSIZE": 1,
    b"NOACK": 0,
}


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

    def positions(self, args: list[bytes]) -> list[int]:
        """The keys' indexes in a request; none where a keyword is missing. ValueError: the request is malformed."""
        first = self._first(args)
        if first < 0:
            return []
        if self.counted:
            if first >= len(args) or not arguments.is_integer(args[first]):
                raise ValueError("no number of keys")
            first, last = first + 1, first + int(args[first]) * self.step
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
        if wanted == b"STREAMS":
            return _behind_streams(args)
        places = range(self.index, len(args)) if self.index > 0 else range(len(args) + self.index, 0, -1)
        for place in places:
            if args[place].upper() == wanted:
                return place + 1
        return -1


def _behind_streams(args: list[bytes]) -> int:
    """The word behind the option STREAMS of XREAD and XREADGROUP; -1 where an unknown option stands before it.

    The options are walked as the commands do: a group, consumer or count named STREAMS is none.
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


def named_keys(specs: list[KeySpec], args: list[bytes]) -> list[bytes]:
    """The keys of a request with right arity, by the specifications of its row; none where it is malformed."""
    try:
        return [args[place] for spec in specs for place in spec.positions(args)]
    except ValueError:
        return []


def keys_of(row: Row, args: list[bytes]) -> list[tuple[bytes, list[str]]]:
    """The keys of a request with right arity, each with its specification's flags.

    Refused as COMMAND GETKEYS does where there are none and the command must have some.
    """
    found: list[tuple[bytes, list[str]]] = []
    try:
        for spec in parse(row.keys):
            if "not_key" in spec.flags:
                continue
            flags = _flags(row, spec, args)
            found += [(args[place], flags) for place in spec.positions(args)]
    except ValueError:
        found = []
    if not found and "no_mandatory_keys" not in row.flags:
        raise ReplyError(b"ERR Invalid arguments specified for command")
    return found


def _flags(row: Row, spec: KeySpec, args: list[bytes]) -> list[str]:
    """A specification's flags; where they vary with the request, those of this one."""
    if row.name == "SET":
        return ["RW", "access", "update"] if b"GET" in [word.upper() for word in args[3:]] else ["OW", "update"]
    return spec.flags
