"""LCS: the longest common subsequence of two strings.

Each row of the usual table is one integer; bit j is set if the row's value grows at column j (Hyyrö, "Bit-Parallel
LCS-length Computation Revisited", 2004). So a row costs a few operations on long integers, not one for each cell.

Tests: transcripts strings; cases commands/test_strings.
"""

from typing import Final

from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.keyspace import text_of

CELL_BYTES: Final = 4  # of one cell in Redis's table; its size limits the strings

Match = tuple[int, int, int]  # where a common run starts in each string, and its length


def rows_of(one: bytes, other: bytes) -> list[int]:
    """The rows of the table, one more than `one` has bytes.

    In row i, bit j is set if the longest common subsequence of one[:i] and other[:j + 1] is longer than that of one[:i]
    and other[:j].

    >>> [f"{row:03b}" for row in rows_of(b"ab", b"xab")]
    ['000', '010', '110']
    """
    all_bits = (1 << len(other)) - 1
    positions: dict[int, int] = {}  # by letter, a bit set
    for at, letter in enumerate(other):
        positions[letter] = positions.get(letter, 0) | 1 << at
    complement = all_bits  # of the row
    rows = [0]
    for letter in one:
        matching = complement & positions.get(letter, 0)
        complement = (complement + matching | complement - matching) & all_bits
        rows.append(all_bits ^ complement)
    return rows


def matches_of(one: bytes, other: bytes) -> list[Match]:
    """The runs of a longest common subsequence, the last first; if there are several, those of Redis 8.6.3."""
    rows = rows_of(one, other)
    found: list[Match] = []
    at, to = len(one), len(other)
    length = rows[at].bit_count()
    run = 0
    while at and to:
        if one[at - 1] == other[to - 1]:
            at, to, length, run = at - 1, to - 1, length - 1, run + 1
            continue
        if run:
            found.append((at, to, run))
            run = 0
        above = (rows[at - 1] & (1 << to) - 1).bit_count()
        before = length - (rows[at] >> to - 1 & 1)
        if above > before:
            at, length = at - 1, above
        else:
            to, length = to - 1, before
    if run:
        found.append((at, to, run))
    return found


class Options:
    """The options after the keys."""

    __slots__ = ("min_length", "shows_places", "shows_size", "wants_length")

    def __init__(self) -> None:
        self.wants_length = False
        self.shows_places = False
        self.shows_size = False  # of each match
        self.min_length = 0  # bytes; shorter matches are not shown


def _read(args: list[bytes]) -> Options:
    options = Options()
    at = 3
    while at < len(args):
        option = args[at].upper()
        if option == b"IDX":
            options.shows_places = True
        elif option == b"LEN":
            options.wants_length = True
        elif option == b"WITHMATCHLEN":
            options.shows_size = True
        elif option == b"MINMATCHLEN" and at + 1 < len(args):
            at += 1
            options.min_length = arguments.integer(args[at])
        else:
            raise refusals.syntax()
        at += 1
    if options.wants_length and options.shows_places:
        raise ReplyError(b"ERR If you want both the length and indexes, please just use IDX.")
    return options


@command(
    "LCS key1:key key2:key#0 [LEN] [IDX] [MINMATCHLEN min-match-len:integer] [WITHMATCHLEN]",
    "7.0.0 readonly | keys 1..1 RO access",
    "Finds the longest common subsequence of two strings.",
    "O(N*M) where N and M are the lengths of s1 and s2, respectively",
)
def lcs(ctx: Context, args: list[bytes]) -> bytes:
    values = [ctx.read(key) for key in args[1:3]]
    one, other = [b"" if value is None else text_of(value) for value in values]
    if one is None or other is None:
        raise ReplyError(b"ERR The specified keys must contain string values")
    options = _read(args)
    size = (len(one) + 1) * (len(other) + 1) * CELL_BYTES
    if size > ctx.settings.number("proto-max-bulk-len"):
        raise ReplyError(b"ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")
    if options.wants_length:
        return reply.integer(rows_of(one, other)[-1].bit_count())
    matches = matches_of(one, other)
    if options.shows_places:
        return _places(matches, options, ctx.resp3)
    return reply.bulk(b"".join([one[at : at + length] for at, _, length in reversed(matches)]))


def _places(matches: list[Match], options: Options, resp3: bool) -> bytes:
    """IDX's reply: the matches that are long enough, and the total length of all matches."""
    shown: list[bytes] = []
    for at, to, length in matches:
        if length >= options.min_length:
            parts = [_place(at, length), _place(to, length)]
            shown.append(reply.array([*parts, reply.integer(length)] if options.shows_size else parts))
    total = sum([length for _, _, length in matches])
    return reply.fields([(b"matches", reply.array(shown)), (b"len", reply.integer(total))], resp3)


def _place(start: int, length: int) -> bytes:
    return reply.array([reply.integer(start), reply.integer(start + length - 1)])
