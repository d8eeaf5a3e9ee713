"""SORT: the parts of a list, set or sorted set in order, by themselves or by what other keys say of them."""

from typing import Final

from penstock.commands.common.overwriting import delete, overwrite
from penstock.commands.hashes.hash_access import hash_at
from penstock.commands.sorted_sets.zset_bounds import c_double
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
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
NO_NUMBER: Final = b"ERR One or more scores can't be converted into double"
SORT_COMPLEXITY: Final = (
    "O(N+M*log(M)) where N is the number of elements in the list or set to sort, and M the number of returned "
    "elements. When the elements are not sorted, complexity is O(N)."
)
SORT_ACL: Final = "dangerous list set sortedset -keyspace"
PATTERN_KEYS: Final = (
    "? RO access # For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the "
    "content of the key we sort"
)


class Pattern:
    """The name of a key, or of a hash's field, in which the first star stands for the part that is sorted.

    Without a star it names nothing. A field stands behind an arrow, and the star before that.
    """

    __slots__ = ("after", "before", "field", "has_star", "is_itself")

    def __init__(self, word: bytes) -> None:
        text = refusals.c_string(word)
        self.is_itself = text == ITSELF
        self.before, star, rest = text.partition(b"*")
        self.has_star = bool(star)
        self.after, _, self.field = rest.partition(ARROW)
        if not self.field:
            self.after = rest  # an arrow with nothing behind it belongs to the name

    def value(self, ctx: Context, part: bytes) -> bytes | None:
        """What a part leads to: a string or a field's value; None where there is none."""
        if self.is_itself:
            return part
        if not self.has_star:
            return None
        key = self.before + part + self.after
        found = ctx.read(key)
        if not self.field:
            return text_of(found)
        fields = hash_at(ctx, key) if isinstance(found, Hash) else None
        return None if fields is None else fields.fields.get(self.field)


class Asked:
    """What SORT's words say."""

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


def _read(args: list[bytes], may_store: bool) -> Asked:
    asked = Asked()
    at = 2
    while at < len(args):
        option, following = args[at].upper(), len(args) - at - 1
        if option in (b"ASC", b"DESC"):
            asked.descending = option == b"DESC"
        elif option == b"ALPHA":
            asked.by_bytes = True
        elif option == b"LIMIT" and following >= 2:
            asked.offset = max(arguments.integer(args[at + 1]), 0)
            asked.count = arguments.integer(args[at + 2])
            at += 2
        elif option == b"STORE" and following and may_store:
            asked.store_at = args[at + 1]
            at += 1
        elif option == b"BY" and following:
            asked.by = Pattern(args[at + 1])
            asked.sorts = asked.sorts and asked.by.has_star
            at += 1
        elif option == b"GET" and following:
            asked.gets.append(Pattern(args[at + 1]))
            at += 1
        else:
            raise refusals.syntax()
        at += 1
    return asked


# -- sorting ---------------------------------------------------------------------------------------------------------


def _parts(ctx: Context, key: bytes, asked: Asked) -> list[bytes]:
    """What is to be sorted, in the order in which it is kept."""
    value = ctx.read(key)
    if value is None:
        return []
    if isinstance(value, List):
        return list(value.items)
    if isinstance(value, SortedSet):
        return [member for _, member in value.order]
    if not isinstance(value, Set):
        raise refusals.wrong_type()
    if not asked.sorts and asked.store_at is not None:  # what is stored must be the same when the log is replayed
        asked.sorts = asked.by_bytes = True
        asked.by = None
    return list(value.members)


def _in_order(ctx: Context, parts: list[bytes], asked: Asked) -> list[bytes]:
    if not asked.sorts:
        return parts[::-1] if asked.descending else parts
    weights: list[bytes | None] = [*parts] if asked.by is None else [asked.by.value(ctx, part) for part in parts]
    if not asked.by_bytes:
        return _by_numbers(parts, weights, asked.descending)
    # The locale is C, whose order ends at a NUL byte; what is stored is compared to the end.
    cut = asked.store_at is None
    keys = [(weight is not None, _cut(weight or b"", cut)) for weight in weights]
    order = sorted(range(len(parts)), key=keys.__getitem__, reverse=asked.descending)
    return [parts[at] for at in order]


def _by_numbers(parts: list[bytes], weights: list[bytes | None], descending: bool) -> list[bytes]:
    """Parts of equal numbers stand in the order of their bytes; what there is not is 0."""
    numbered: list[tuple[float, bytes]] = []
    for part, weight in zip(parts, weights, strict=True):
        number = 0.0 if weight is None else c_double(weight)
        if number is None:
            raise ReplyError(NO_NUMBER)
        numbered.append((number, part))
    numbered.sort(reverse=descending)
    return [part for _, part in numbered]


def _cut(text: bytes, cut: bool) -> bytes:
    return refusals.c_string(text) if cut else text


# -- the commands ----------------------------------------------------------------------------------------------------


@command(
    "SORT",
    "key [by-pattern:BY pattern:pattern#1] [limit:LIMIT (offset count)] "
    "[get-pattern:GET pattern:pattern#1 [GET pattern ...]] order:[ASC|DESC] [sorting:ALPHA] "
    "[STORE destination:key#2]",
    group="generic",
    since="1.0.0",
    flags="write denyoom movablekeys",
    keys=(
        f"1 RO access; {PATTERN_KEYS}; ? OW update # For the optional STORE keyword. It is marked 'unknown' because "
        "the keyword can appear anywhere in the argument array"
    ),
    acl=SORT_ACL,
    complexity=SORT_COMPLEXITY,
    summary="Returns what is in a list, set or sorted set in order, or stores it as a list.",
)
def sort(ctx: Context, args: list[bytes]) -> bytes:
    asked = _read(args, may_store=True)
    found = _found(ctx, args[1], asked)
    if asked.store_at is None:
        return _answer(ctx, found)
    if not found:
        if delete(ctx, asked.store_at):
            ctx.log_request(args)
        return reply.ZERO
    overwrite(ctx, asked.store_at, List([text or b"" for text in found]))
    ctx.event("l", b"sortstore", asked.store_at)
    ctx.dirty += len(found)
    ctx.log_request(args)
    return reply.integer(len(found))


@command(
    "SORT_RO",
    "key [by-pattern:BY pattern:pattern#1] [limit:LIMIT (offset count)] "
    "[get-pattern:GET pattern:pattern#1 [GET pattern ...]] order:[ASC|DESC] [sorting:ALPHA]",
    group="generic",
    since="7.0.0",
    flags="readonly movablekeys",
    keys=f"1 RO access; {PATTERN_KEYS}",
    acl=SORT_ACL,
    complexity=SORT_COMPLEXITY,
    summary="Returns what is in a list, set or sorted set in order.",
)
def sort_ro(ctx: Context, args: list[bytes]) -> bytes:
    return _answer(ctx, _found(ctx, args[1], _read(args, may_store=False)))


def _found(ctx: Context, key: bytes, asked: Asked) -> list[bytes | None]:
    """The sorted parts within the limits, or what the patterns of GET lead to from each."""
    parts = _in_order(ctx, _parts(ctx, key, asked), asked)
    parts = parts[asked.offset : None if asked.count < 0 else asked.offset + asked.count]
    if not asked.gets:
        return [*parts]
    return [pattern.value(ctx, part) for part in parts for pattern in asked.gets]


def _answer(ctx: Context, found: list[bytes | None]) -> bytes:
    return reply.array([reply.null(ctx.resp3) if text is None else reply.bulk(text) for text in found])
