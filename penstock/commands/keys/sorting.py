"""SORT: the parts of a list, set or sorted set, ordered by their own values or by values of other keys.

Tests: transcripts sort; cases commands/test_sorted_sets; law against_redis/test_sorting_beside_redis,
test_law_of_keys.
"""

from itertools import pairwise
from typing import Final

from penstock.commands.common.live_parts import read_live
from penstock.commands.common.overwriting import delete, overwrite
from penstock.commands.common.repeated_values import require_fitting
from penstock.commands.sorted_sets.zset_bounds import c_double
from penstock.engine import arguments, refusals
from penstock.engine.cluster.hash_slots import slot_of
from penstock.engine.context import Context
from penstock.engine.state import RESTRICTED
from penstock.engine.table.command_table import command
from penstock.engine.table.key_place import KeyPlace
from penstock.engine.table.option_table import OptionTable
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.keyspace import text_of
from penstock.storage.types.hashes import Hash
from penstock.storage.types.lists import List
from penstock.storage.types.sets import Set
from penstock.storage.types.sorted_sets import SortedSet

ITSELF: Final = b"#"
ARROW: Final = b"->"
UNLIMITED: Final = -1
DENIED: Final = b"ERR %b option of SORT denied due to insufficient ACL permissions."
NO_NUMBER: Final = b"ERR One or more scores can't be converted into double"
SORT_COMPLEXITY: Final = (
    "O(N+M*log(M)) where N is the number of elements in the list or set to sort, and M the number of returned "
    "elements. When the elements are not sorted, complexity is O(N)."
)
SORT_ACL: Final = "dangerous list set sortedset -keyspace"
SORT_RO_OPTIONS: Final = {b"ASC": 0, b"DESC": 0, b"ALPHA": 0, b"LIMIT": 2, b"BY": 1, b"GET": 1}
SORTED: Final = "RO access"
STORED: Final = "OW update"
PATTERN_KEYS: Final = (
    "? RO access # For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the "
    "content of the key we sort"
)


OPTIONS: Final = OptionTable(SORT_RO_OPTIONS | {b"STORE": 1})
RO_OPTIONS: Final = OptionTable(SORT_RO_OPTIONS)


class Pattern:
    """The name of a key, or of a field in a hash, with a star that stands for a part.

    Without a star it names nothing. The field follows an arrow, `->`, after the star.
    """

    __slots__ = ("after", "before", "field", "has_star", "is_itself")

    def __init__(self, word: bytes) -> None:
        text = refusals.c_string(word)
        self.is_itself = text == ITSELF
        self.before, star, rest = text.partition(b"*")
        self.has_star = bool(star)
        self.after, _, self.field = rest.partition(ARROW)
        if not self.field:
            self.after = rest  # an arrow at the end belongs to the name of the key

    def value(self, ctx: Context, part: bytes) -> bytes | None:
        """The string or field named for a part; None if there is none."""
        if self.is_itself:
            return part
        if not self.has_star:
            return None
        key = self.before + part + self.after
        found = ctx.read(key)
        if not self.field:
            return text_of(found)
        fields = read_live(ctx, key, found, (self.field,)) if isinstance(found, Hash) else None
        return None if fields is None else fields.get(self.field)


class SortArguments:
    """The options of SORT."""

    __slots__ = ("by", "by_bytes", "count", "descending", "gets", "offset", "sorts", "store_at")

    def __init__(self) -> None:
        self.by: Pattern | None = None
        self.sorts = True
        self.by_bytes = False
        self.descending = False
        self.offset = 0
        self.count = UNLIMITED
        self.gets: list[Pattern] = []
        self.store_at: bytes | None = None


def _refuse_other_slots(ctx: Context, key: bytes, pattern: bytes, option: bytes) -> None:
    """In a cluster the keys of a pattern must be in the slot of the key that is sorted, which only a hash tag shows.

    A pattern without a star is one key for GET, and for BY none (Redis 8.6.3).
    """
    if ctx.cluster is None or pattern == b"#" or (b"*" not in pattern and option == b"BY"):
        return
    if b"*" not in pattern and slot_of(pattern) == slot_of(key):
        return
    name = pattern.partition(b"->")[0]
    start = name.find(b"{")
    end = name.find(b"}", start + 1)
    is_fixed = 0 <= start < end - 1 and b"*" not in name[start:end]
    if not is_fixed or slot_of(name) != slot_of(key):
        raise ReplyError(
            b"ERR %b option of SORT denied in Cluster mode when keys formed by the pattern may be in different slots."
            % option
        )


def _read(ctx: Context, args: list[bytes], known: OptionTable, reads_every_key: bool) -> SortArguments:
    """The options. The user must have the right to read every key for BY and GET, which name others (Redis 8.6.3)."""
    options = SortArguments()
    at = 2
    while at < len(args):
        option = args[at].upper()
        words = known.words(option, args, at)
        if not words:
            raise refusals.syntax()
        if option in (b"ASC", b"DESC"):
            options.descending = option == b"DESC"
        elif option == b"ALPHA":
            options.by_bytes = True
        elif option == b"LIMIT":
            options.offset = max(arguments.integer(args[at + 1]), 0)
            options.count = arguments.integer(args[at + 2])
        elif option == b"STORE":
            options.store_at = args[at + 1]
        elif option == b"BY":
            _refuse_other_slots(ctx, args[1], args[at + 1], option)
            options.by = Pattern(args[at + 1])
            if options.by.has_star and not reads_every_key:
                raise ReplyError(DENIED % b"BY")
            options.sorts = options.sorts and options.by.has_star
        else:
            if not reads_every_key:
                raise ReplyError(DENIED % b"GET")
            _refuse_other_slots(ctx, args[1], args[at + 1], option)
            options.gets.append(Pattern(args[at + 1]))
        at += words
    return options


def _find_keys(args: list[bytes]) -> list[KeyPlace]:
    """The keys of SORT but for those of BY and GET: the one that is sorted, and the last of those behind STORE."""
    stores = OPTIONS.places_of(b"STORE", args, 2)
    return [KeyPlace(1, SORTED.split()), *[KeyPlace(at + 1, STORED.split()) for at in stores[-1:]]]


# -- sorting ---------------------------------------------------------------------------------------------------------


def _parts(ctx: Context, key: bytes, options: SortArguments) -> list[bytes]:
    """The parts to be sorted, in the order in which they are stored."""
    value = ctx.read(key)
    if value is None:
        return []
    if isinstance(value, List):
        return value.slice(0, len(value))
    if isinstance(value, SortedSet):
        value.is_large = True  # Redis converts a small one, and keeps it so
        return [member for _, member in value.pairs()]
    if not isinstance(value, Set):
        raise refusals.wrong_type()
    # A replay of the log must store the same order, and a script answer the same (Redis 8.6.3).
    if not options.sorts and (options.store_at is not None or ctx.in_script):
        options.sorts = options.by_bytes = True
        options.by = None
    if not options.sorts:
        options.descending = False  # a set has no order that could be turned round
    members = read_live(ctx, key, value, value.expires)
    return [] if members is None else members.listed()


def _in_order(ctx: Context, parts: list[bytes], options: SortArguments) -> list[bytes]:
    if not options.sorts:
        return parts[::-1] if options.descending else parts
    weights: list[bytes | None] = [*parts] if options.by is None else [options.by.value(ctx, part) for part in parts]
    if not options.by_bytes:
        return _by_numbers(parts, weights, options.descending)
    # As with the C locale, comparison ends at a NUL byte; but not with STORE.
    cut = options.store_at is None
    keys = [(weight is not None, _cut(weight or b"", cut)) for weight in weights]
    order = sorted(range(len(parts)), key=keys.__getitem__, reverse=options.descending)
    return [parts[at] for at in order]


def _by_numbers(parts: list[bytes], weights: list[bytes | None], descending: bool) -> list[bytes]:
    """Sort by numbers; parts with equal numbers by their bytes. A missing number is 0.

    The numbers alone are compared first: Python compares floats in a tenth of the time that pairs take.
    """
    parsed = [0.0 if weight is None else c_double(weight) for weight in weights]
    numbers = [number for number in parsed if number is not None]
    if len(numbers) < len(parsed):
        raise ReplyError(NO_NUMBER)
    order = sorted(range(len(parts)), key=numbers.__getitem__, reverse=descending)
    found = [parts[at] for at in order]
    ranked = [numbers[at] for at in order]
    start = end = 0  # of parts with equal numbers
    for place in [place for place, (one, following) in enumerate(pairwise(ranked)) if one == following]:
        if place >= end:
            found[start:end] = sorted(found[start:end], reverse=descending)
            start = place
        end = place + 2
    found[start:end] = sorted(found[start:end], reverse=descending)
    return found


def _cut(text: bytes, cut: bool) -> bytes:
    return refusals.c_string(text) if cut else text


# -- the commands ----------------------------------------------------------------------------------------------------


@command(
    "SORT key [by-pattern:BY pattern:pattern#1] [limit:LIMIT (offset count)] "
    "[get-pattern:GET pattern:pattern#1 [GET pattern ...]] order:[ASC|DESC] [sorting:ALPHA] "
    "[STORE destination:key#2]",
    "1.0.0 write denyoom movablekeys | "
    f"keys 1 {SORTED}; {PATTERN_KEYS}; ? {STORED} # For the optional STORE keyword. It is marked 'unknown' because "
    "the keyword can appear anywhere in the argument array | "
    f"acl {SORT_ACL}",
    "Sorts the parts of a list, set or sorted set, and returns them or stores them as a list.",
    SORT_COMPLEXITY,
    find_keys=_find_keys,
)
def sort(ctx: Context, args: list[bytes]) -> bytes:
    options = _read(ctx, args, OPTIONS, reads_every_key=_reads_every_key(ctx))
    found = _found(ctx, args[1], options)
    if options.store_at is None:
        return reply.bulks_or_nulls(found, ctx.resp3)
    if not found:
        if delete(ctx, options.store_at):
            ctx.log_request(args)
        return reply.ZERO
    stored = List([text or b"" for text in found])
    stored.choose_form(ctx.settings.number("list-max-listpack-size"))
    overwrite(ctx, options.store_at, stored)
    ctx.event("l", b"sortstore", options.store_at)
    ctx.dirty += len(found)
    ctx.log_request(args)
    return reply.integer(len(found))


@command(
    "SORT_RO key [by-pattern:BY pattern:pattern#1] [limit:LIMIT (offset count)] "
    "[get-pattern:GET pattern:pattern#1 [GET pattern ...]] order:[ASC|DESC] [sorting:ALPHA]",
    f"7.0.0 readonly movablekeys | keys 1 {SORTED}; {PATTERN_KEYS} | acl {SORT_ACL}",
    "Sorts the parts of a list, set or sorted set, and returns them.",
    SORT_COMPLEXITY,
)
def sort_ro(ctx: Context, args: list[bytes]) -> bytes:
    found = _found(ctx, args[1], _read(ctx, args, RO_OPTIONS, reads_every_key=_reads_every_key(ctx)))
    return reply.bulks_or_nulls(found, ctx.resp3)


def _reads_every_key(ctx: Context) -> bool:
    session = ctx.session
    return not session.state & RESTRICTED or (
        ctx.row is not None and session.user.reads_every_key(ctx.row, ctx.args, ctx.db_index)
    )


def _found(ctx: Context, key: bytes, options: SortArguments) -> list[bytes | None]:
    """The sorted parts within LIMIT, or the values of the patterns of GET for each of them."""
    parts = _in_order(ctx, _parts(ctx, key, options), options)
    parts = parts[options.offset : None if options.count < 0 else options.offset + options.count]
    if not options.gets:
        return [*parts]
    found: list[bytes | None] = []
    size = 0
    for part in parts:
        for pattern in options.gets:
            value = pattern.value(ctx, part)
            size += 0 if value is None else len(value)
            require_fitting(size)
            found.append(value)
    return found
