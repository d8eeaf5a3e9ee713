"""HRANDFIELD and HSCAN: random fields of a hash, and all fields in steps.

Tests: transcripts hashes; cases commands/test_hashes; law against_redis/test_hashes_beside_redis.
"""

from typing import Final

from penstock.commands.common import collection_scan
from penstock.commands.common.live_parts import has_expired, read_live, shown, shows
from penstock.commands.common.random_count import random_name, random_names, read_count
from penstock.commands.common.repeated_values import repeated_bulks, repeated_pairs
from penstock.commands.common.scan_cursor import read_cursor
from penstock.commands.hashes.hash_access import read_hash
from penstock.engine import refusals
from penstock.engine.arguments import MAX_INT64
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types.hashes import Hash

MOST_WITH_VALUES: Final = MAX_INT64 // 2


@command(
    "HRANDFIELD key options:[count [WITHVALUES]]",
    "6.2.0 readonly | keys 1 RO access | tips nondeterministic_output",
    "Returns random fields of a hash; with a negative count they may repeat.",
    "O(N) where N is the number of fields returned; the first call is O(M) for M fields in the hash.",
)
def hrandfield(ctx: Context, args: list[bytes]) -> bytes:
    key, chance = args[1], ctx.chance
    if len(args) == 2:
        found = _live(ctx, key)
        if found is None:
            return reply.null(ctx.resp3)
        return reply.bulk(random_name(found.names(), found.in_order, chance))
    count = read_count(args[2])
    with_values = len(args) > 3
    if len(args) > 4 or (with_values and args[3].upper() != b"WITHVALUES"):
        raise refusals.syntax()
    if with_values and not -MOST_WITH_VALUES <= count <= MOST_WITH_VALUES:
        raise ReplyError(b"ERR value is out of range")
    found = _live(ctx, key)
    if found is None or not count:
        return reply.EMPTY_ARRAY
    fields = list(found.names()) if count >= len(found) else random_names(found.names(), found.in_order, count, chance)
    if count < 0:
        if not with_values:
            return repeated_bulks(fields)
        drawn = list(set(fields))
        return repeated_pairs(fields, drawn, list(map(reply.bulk, found.values_of(drawn))), ctx.resp3)
    if not with_values:
        return reply.bulks(fields)
    if ctx.resp3:
        return reply.array([reply.bulks([field, found.value(field)]) for field in fields])
    return reply.bulks(_with_values(found, fields))


def _live(ctx: Context, key: bytes) -> Hash | None:
    """The hash at a key without its expired fields, which are removed."""
    found = read_hash(ctx, key)
    return found if found is None or found.due is None else read_live(ctx, key, found, found.expires)


@command(
    "HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES@~7.4.0]",
    "2.8.0 readonly | keys 1 RO access | tips nondeterministic_output",
    "Iterates over the fields of a hash, some in each call, with or without their values.",
    "O(1) for every call. O(N) for a complete iteration, including enough command calls for "
    "the cursor to return back to 0. N is the number of elements inside the collection.",
)
def hscan(ctx: Context, args: list[bytes]) -> bytes:
    cursor = read_cursor(args[2])
    found = read_hash(ctx, args[1])
    if found is None:
        return collection_scan.answer(0, [])
    scan = collection_scan.read_options(ctx, args, cursor, b"NOVALUES")
    following = 0
    if not found.is_large:
        found = shown(ctx, found)
        if found is None:
            return collection_scan.answer(0, [])
        if scan.glob is None and not scan.only_names:
            return collection_scan.answer(0, found.words())
        fields = scan.matching(found.names())
    else:
        fields, following, found.scan_order = scan.step(found.in_order())
        if has_expired(ctx, found):
            fields = [field for field in fields if shows(ctx, found, field)]
    return collection_scan.answer(following, fields if scan.only_names else _with_values(found, fields))


def _with_values(found: Hash, fields: list[bytes]) -> list[bytes]:
    return [word for pair in zip(fields, found.values_of(fields), strict=True) for word in pair]
