"""Asking ranges of arrays: what is there, what matches, what it adds up to; and how an array is kept.

Tests: cases commands/test_arrays, commands/test_regexes; model storage/test_arrays.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from penstock.commands.arrays.array_values import index_word, pairs_reply, read_array
from penstock.engine import arguments, numbers, refusals
from penstock.engine.arguments import MAX_INT64, MIN_INT64
from penstock.engine.context import Context
from penstock.engine.matching.globs import Glob
from penstock.engine.numbers import LongDouble
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types.arrays import NONE, SLICE, SPARSE, Array

Predicate: TypeAlias = Callable[[bytes], bool]

KINDS: Final = (b"EXACT", b"MATCH", b"GLOB", b"RE")
MOST_PREDICATES: Final = 250
RANGE_COMPLEXITY: Final = "O(log(N)+M) where N is the number of items and M the number of those in the range."
LEAST_WINDOW: Final = 8  # places of a dense slice


def _indexes(found: Array, first: int, last: int) -> list[int]:
    """The indexes with items, in the direction of the range."""
    if first <= last:
        return found.indexes(first, last)
    return found.indexes(last, first)[::-1]


def _limit(word: bytes) -> int:
    limit = arguments.integer(word)
    if limit <= 0:
        raise ReplyError(b"ERR LIMIT must be positive")
    return limit


@command(
    "ARSCAN key start:integer end:integer [LIMIT limit]",
    "8.8.0 readonly | keys 1 RO access",
    "Answers the items of a range with their indexes; backwards if it ends before it starts.",
    RANGE_COMPLEXITY,
)
def arscan(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) not in (4, 6):
        raise refusals.arity(b"arscan")
    first, last = index_word(args[2]), index_word(args[3])
    limit = NONE
    if len(args) == 6:
        if args[4].upper() != b"LIMIT":
            raise refusals.syntax()
        limit = _limit(args[5])
    found = read_array(ctx, args[1])
    if found is None:
        return reply.EMPTY_ARRAY
    indexes = _indexes(found, first, last)
    return pairs_reply(found, indexes if limit == NONE else indexes[:limit])


# -- ARGREP ----------------------------------------------------------------------------------------------------------


class Condition:
    """The condition of ARGREP: its predicates, and whether all or one of them must hold."""

    __slots__ = ("_tests", "all_hold", "limit", "no_case", "predicates", "with_values")

    def __init__(self, args: list[bytes]) -> None:
        self.all_hold = self.no_case = self.with_values = False
        self.limit = NONE
        self.predicates: list[tuple[bytes, bytes]] = []
        at = 4
        while at < len(args):
            word = args[at].upper()
            if word in KINDS and at + 1 < len(args):
                if len(self.predicates) == MOST_PREDICATES:
                    raise ReplyError(b"ERR too many predicates, maximum is %d" % MOST_PREDICATES)
                self.predicates.append((word, args[at + 1]))
                at += 2
            elif word == b"LIMIT" and at + 1 < len(args):
                self.limit = _limit(args[at + 1])
                at += 2
            elif word in (b"AND", b"OR"):
                self.all_hold = word == b"AND"
                at += 1
            elif word == b"WITHVALUES":
                self.with_values = True
                at += 1
            elif word == b"NOCASE":
                self.no_case = True
                at += 1
            else:
                raise refusals.syntax()
        if not self.predicates:
            raise refusals.syntax()
        self._tests = [self._test(kind, text) for kind, text in self.predicates]

    def found(self, array: Array, indexes: list[int]) -> list[int]:
        """The indexes of the items that match, up to the limit."""
        tests = self._tests
        matching: list[int] = []
        for index in indexes:
            item = array.items[index]
            if self.no_case:
                item = item.lower()
            if all(test(item) for test in tests) if self.all_hold else any(test(item) for test in tests):
                matching.append(index)
                if len(matching) == self.limit:
                    break
        return matching

    def _test(self, kind: bytes, text: bytes) -> Predicate:
        if kind == b"GLOB":
            return Glob(text, self.no_case).matches
        if kind == b"RE":
            from penstock.engine.matching import regexes  # imported late: its tables are seldom used

            return regexes.Regex(text, self.no_case, regexes.MOST_STEPS // len(self.predicates)).matches
        if self.no_case:
            text = text.lower()
        if kind == b"EXACT":
            return lambda item: item == text
        return lambda item: text in item


def _grep_index(word: bytes, found: Array | None) -> int:
    if word == b"-":
        return 0
    if word == b"+":
        return max(found.extent() - 1, 0) if found is not None else 0
    return index_word(word)


@command(
    "ARGREP key start end predicate:<EXACT exact|MATCH substring|GLOB pattern:string|RE regex:string> "
    "[<EXACT exact|MATCH substring|GLOB pattern:string|RE regex:string> ...] "
    "combination:[AND|OR] [LIMIT limit] [WITHVALUES] [NOCASE]",
    "8.8.0 readonly | keys 1 RO access | arity -6",
    "Answers the indexes of the items in a range that match.",
    "O(N*P) where N is the number of items in the range and P the number of predicates.",
)
def argrep(ctx: Context, args: list[bytes]) -> bytes:
    for word in args[2:4]:
        _grep_index(word, None)
    condition = Condition(args)
    found = read_array(ctx, args[1])
    if found is None:
        return reply.EMPTY_ARRAY
    matching = condition.found(found, _indexes(found, _grep_index(args[2], found), _grep_index(args[3], found)))
    if condition.with_values:
        return pairs_reply(found, matching)
    return reply.array([reply.integer(index) for index in matching])


# -- AROP ------------------------------------------------------------------------------------------------------------


@command(
    "AROP key start:integer end:integer operation:<SUM|MIN|MAX|AND|OR|XOR|USED|MATCH value>",
    "8.8.0 readonly | keys 1 RO access",
    "Adds up, compares, combines or counts the items of a range.",
    RANGE_COMPLEXITY,
)
def arop(ctx: Context, args: list[bytes]) -> bytes:
    first, last = sorted((index_word(args[2]), index_word(args[3])))
    operation = args[4].upper()
    if operation not in (b"SUM", b"MIN", b"MAX", b"AND", b"OR", b"XOR", b"USED", b"MATCH"):
        raise ReplyError(b"ERR unknown operation")
    if operation == b"MATCH" and len(args) != 6:
        raise ReplyError(b"ERR MATCH requires a value argument")
    if operation != b"MATCH" and len(args) != 5:
        raise refusals.arity(b"arop")
    found = read_array(ctx, args[1])
    items = [] if found is None else [found.items[index] for index in found.indexes(first, last)]
    if operation == b"USED":
        return reply.integer(len(items))
    if operation == b"MATCH":
        return reply.integer(items.count(args[5]))
    if operation in (b"SUM", b"MIN", b"MAX"):
        return _reckoned(operation, items, ctx.resp3)
    return _combined(operation, items, ctx.resp3)


def _number(item: bytes) -> LongDouble | None:
    """An item as a finite number; None if it is none."""
    if arguments.is_integer(item):
        return LongDouble(int(item), 0)
    try:
        return numbers.long_double(item)
    except ReplyError:
        return None


def _reckoned(operation: bytes, items: list[bytes], resp3: bool) -> bytes:
    found = [number for number in map(_number, items) if number is not None]
    if not found:
        return reply.null(resp3)
    if operation == b"SUM":
        total = numbers.rounded(sum([number.trunc() for number in found if number.is_whole()]), 1)
        for number in found:
            if not number.is_whole():
                total = numbers.long_double_sum(total, number)
        return reply.bulk(b"inf" if total is None else numbers.long_double_text(total))
    return reply.bulk(numbers.long_double_text(min(found) if operation == b"MIN" else max(found)))


def _combined(operation: bytes, items: list[bytes], resp3: bool) -> bytes:
    whole = [number.trunc() for number in map(_number, items) if number is not None]
    whole = [number for number in whole if MIN_INT64 <= number <= MAX_INT64]
    if not whole:
        return reply.null(resp3)
    result = whole[0]
    for number in whole[1:]:
        if operation == b"AND":
            result &= number
        elif operation == b"OR":
            result |= number
        else:
            result ^= number
    return reply.integer(result)


# -- ARINFO ----------------------------------------------------------------------------------------------------------


@command(
    "ARINFO key [FULL]",
    "8.8.0 readonly | keys 1 RO access",
    "Tells how many items an array has, and how a Redis would keep them.",
    "O(N) where N is the number of items.",
)
def arinfo(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) > 3 or (len(args) == 3 and args[2].upper() != b"FULL"):
        raise refusals.syntax()
    found = read_array(ctx, args[1])
    if found is None:
        raise refusals.no_such_key()
    slices = found.slice_sizes()
    following = 0 if found.cursor == NONE else (found.cursor + 1) % (2**64 - 1)
    fields = [
        (b"count", reply.integer(len(found))),
        (b"len", reply.integer(found.extent())),
        (b"next-insert-index", reply.integer(following)),
        (b"slices", reply.integer(len(slices))),
        (b"directory-size", reply.integer(len(slices))),
        (b"super-dir-entries", reply.ZERO),
        (b"slice-size", reply.integer(SLICE)),
    ]
    if len(args) == 3:
        fields += _full(slices, ctx.resp3)
    return reply.fields(fields, ctx.resp3)


def _full(slices: dict[int, list[int]], resp3: bool) -> list[tuple[bytes, bytes]]:
    dense = [offsets for offsets in slices.values() if len(offsets) > SPARSE]
    sparse = [offsets for offsets in slices.values() if len(offsets) <= SPARSE]
    windows = [_window(offsets) for offsets in dense]
    fills = [len(offsets) / window for offsets, window in zip(dense, windows, strict=True)]
    return [
        (b"dense-slices", reply.integer(len(dense))),
        (b"sparse-slices", reply.integer(len(sparse))),
        (b"avg-dense-size", _average([float(window) for window in windows], resp3)),
        (b"avg-dense-fill", _average(fills, resp3)),
        (b"avg-sparse-size", _average([float(len(offsets)) for offsets in sparse], resp3)),
    ]


def _window(offsets: list[int]) -> int:
    """The places of a dense slice: a power of two."""
    return max(LEAST_WINDOW, 1 << (offsets[-1] - offsets[0]).bit_length())


def _average(values: list[float], resp3: bool) -> bytes:
    return reply.double(numbers.score_text(sum(values) / len(values) if values else 0.0), resp3)
