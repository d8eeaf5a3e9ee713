"""KEYS, SCAN, RANDOMKEY and DBSIZE: list, iterate, pick and count keys.

Tests: transcripts scan; cases commands/test_scanning; model storage/test_key_table.
"""

from typing import Final

from penstock.commands.common.scan_cursor import PAGE, not_an_option, read_count, read_cursor, read_glob
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.table.client_compat import VALKEY_TYPES
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.keyspace import Value, type_name

DRAWS: Final = 100  # RANDOMKEY gives up after so many expired keys, if they cannot be removed


@command(
    "KEYS",
    "pattern",
    since="1.0.0",
    flags="readonly",
    acl="dangerous",
    tips="request_policy:all_shards nondeterministic_output_order",
    complexity="O(N) with N being the number of keys in the database.",
    summary="Returns all keys that match a pattern.",
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
    "SCAN",
    "cursor [MATCH pattern] [COUNT count] [TYPE type@6.0.0]",
    since="2.8.0",
    flags="readonly",
    tips="nondeterministic_output request_policy:special response_policy:special",
    complexity=(
        "O(COUNT) for every call, O(N) for a complete iteration, N being the number of keys in the database. The first "
        "calls after a minute without SCAN put many keys in order, piece by piece, and return none."
    ),
    history=(("6.0.0", "Added the `TYPE` subcommand."),),
    summary="Iterates over the keys of a database, some in each call.",
)
def scan(ctx: Context, args: list[bytes]) -> bytes:
    """A cursor is a position in the keys' HashOrder: the server remembers nothing between two calls."""
    cursor = read_cursor(args[1])
    count, glob, kind = PAGE, None, b""
    typed = False
    at = 2
    while at < len(args):
        option = args[at].upper()
        if option == b"COUNT" and at + 1 < len(args):
            count = read_count(args[at + 1])
        elif option == b"MATCH" and at + 1 < len(args):
            glob = read_glob(args[at + 1])
        elif option == b"TYPE" and at + 1 < len(args):
            kind, typed = args[at + 1].lower(), True
            if ctx.compatibility.is_valkey and kind not in VALKEY_TYPES:
                raise ReplyError(b"ERR unknown type name '%b'" % refusals.c_string(args[at + 1]))
        else:
            raise not_an_option(ctx, option)
        at += 2
    names_found, following = ctx.db.in_order(ctx.now_ms).walk(cursor, count)
    shown = _in_own_slots(ctx, names_found)
    if glob is not None:
        shown = [key for key in shown if glob.matches(key)]
    if typed or ctx.db.expires:
        met = [(key, _value_met(ctx, key)) for key in shown]
        shown = [key for key, value in met if value is not None and (not typed or type_name(value) == kind)]
    return reply.array([reply.bulk(b"%d" % following), reply.bulks(shown)])


def _in_own_slots(ctx: Context, names: list[bytes]) -> list[bytes]:
    """Those of the keys that a node of a cluster shows; all without a cluster."""
    cluster = ctx.cluster
    return names if cluster is None else cluster.node.shown(names)


def _value_met(ctx: Context, key: bytes) -> Value | None:
    """The live value of a key that the request has not named; the key is removed if it has expired.

    In a transaction or a script `lazyexpire-nested-arbitrary-keys no` forbids that.
    """
    is_overdue = ctx.db.expires.get(key, ctx.now_ms) < ctx.now_ms
    if is_overdue and not ctx.waits and not ctx.settings.yes("lazyexpire-nested-arbitrary-keys"):
        return None
    return ctx.look(key)


@command(
    "RANDOMKEY",
    since="1.0.0",
    flags="readonly",
    tips="request_policy:all_shards response_policy:special nondeterministic_output",
    complexity="O(1); O(N) after a minute without RANDOMKEY and SCAN, where N is the number of keys.",
    summary="Returns a random key of the database.",
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
        if _value_met(ctx, key) is not None:
            return reply.bulk(key)
        draws += key in ctx.db.values
    return reply.null(ctx.resp3)


@command(
    "DBSIZE",
    group="server",
    since="1.0.0",
    flags="readonly fast",
    acl="keyspace",
    tips="request_policy:all_shards response_policy:agg_sum",
    summary="Returns the number of keys in the database.",
)
def dbsize(ctx: Context, args: list[bytes]) -> bytes:
    """Expired keys that are not removed yet count, as in Redis."""
    return reply.integer(len(ctx.db))
