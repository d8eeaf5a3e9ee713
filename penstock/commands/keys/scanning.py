"""KEYS, SCAN, RANDOMKEY and DBSIZE: list, iterate, pick and count keys.

Tests: transcripts scan; cases commands/test_scanning; model storage/test_key_table.
"""

from typing import Final

from penstock.commands.common.key_scan import KeyScan, value_met
from penstock.commands.common.scan_cursor import read_cursor, read_glob
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.protocol import reply

DRAWS: Final = 100  # RANDOMKEY gives up after so many expired keys, if they cannot be removed


@command(
    "KEYS pattern",
    "1.0.0 readonly | acl dangerous | tips request_policy:all_shards nondeterministic_output_order",
    "Returns all keys that match a pattern.",
    "O(N) with N being the number of keys in the database.",
)
def keys(ctx: Context, args: list[bytes]) -> bytes:
    """Expired keys are left out, but not removed."""
    glob = read_glob(args[1])
    expires, now_ms = ctx.db.expires, ctx.now_ms
    hides = len(expires) > 0 and not ctx.sees_expired()
    shown = []
    for key in ctx.db.values.starting(b"" if glob is None else glob.start()):
        if (glob is None or glob.matches(key)) and (not hides or expires.get(key, now_ms) >= now_ms):
            shown.append(key)
    return reply.bulks(_in_own_slots(ctx, shown))


@command(
    "SCAN cursor [MATCH pattern] [COUNT count] [TYPE type@6.0.0]",
    "2.8.0 readonly | tips nondeterministic_output request_policy:special response_policy:special",
    "Iterates over the keys of a database, some in each call.",
    "O(COUNT) for every call, O(N) for a complete iteration, N being the number of keys in the database. The first "
    "calls after a minute without SCAN put many keys in order, piece by piece, and return none.",
    history=(("6.0.0", "Added the `TYPE` subcommand."),),
)
def scan(ctx: Context, args: list[bytes]) -> bytes:
    """A cursor is a position in the keys' HashOrder: the server remembers nothing between two calls."""
    cursor = read_cursor(args[1])
    options = KeyScan()
    for at in range(2, len(args), 2):
        options.read(ctx, args[at].upper(), args, at)
    names_found, following = ctx.db.in_order(ctx.now_ms).walk(cursor, options.count)
    shown = options.chosen(ctx, _in_own_slots(ctx, names_found))
    return reply.array([reply.bulk(b"%d" % following), reply.bulks(shown)])


def _in_own_slots(ctx: Context, names: list[bytes]) -> list[bytes]:
    """Those of the keys that a node of a cluster shows; all without a cluster."""
    cluster = ctx.cluster
    return names if cluster is None else cluster.node.shown(names)


@command(
    "RANDOMKEY",
    "1.0.0 readonly | tips request_policy:all_shards response_policy:special nondeterministic_output",
    "Returns a random key of the database.",
    "O(1); O(N) after a minute without RANDOMKEY and SCAN, where N is the number of keys.",
)
def randomkey(ctx: Context, args: list[bytes]) -> bytes:
    """All keys are equally likely."""
    draws = 0
    while len(ctx.db) and draws < DRAWS:
        key = ctx.db.in_order(ctx.now_ms).any_of(ctx.chance)
        if not _in_own_slots(ctx, [key]):
            shown = _in_own_slots(ctx, list(ctx.db.values))
            if not shown:
                break
            key = ctx.chance.choice(shown)
        if value_met(ctx, key) is not None:
            return reply.bulk(key)
        draws += key in ctx.db.values
    return reply.null(ctx.resp3)


@command(
    "DBSIZE",
    "1.0.0 readonly fast | acl keyspace | tips request_policy:all_shards response_policy:agg_sum | group server",
    "Returns the number of keys in the database.",
)
def dbsize(ctx: Context, args: list[bytes]) -> bytes:
    """Expired keys that are not removed yet count, as in Redis."""
    return reply.integer(len(ctx.db))
