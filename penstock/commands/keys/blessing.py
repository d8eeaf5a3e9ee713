"""BLESS: keys that eviction never chooses. (Redis 8.12, documentation.)

Tests: transcripts blessed_keys; cases commands/test_blessing.
"""

from typing import Final

from penstock.commands.common.collection_scan import answer
from penstock.commands.common.help import declare_help
from penstock.commands.common.scan_cursor import read_count, read_cursor
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command, container
from penstock.protocol import reply

PAGE: Final = 1024  # the default COUNT

HELP: Final = (
    ("CLEAR <key> NO-EVICT", "Let eviction choose a key again."),
    ("GET <key>", "Return the flags of a key."),
    ("SCAN <cursor> NO-EVICT [COUNT <count>]", "Iterate over the blessed keys of the database."),
    ("SET <key> NO-EVICT", "Protect a key from eviction."),
)

container("BLESS", group="generic", since="8.12.0", summary="Commands for keys that are never evicted.")
declare_help("BLESS", "8.12.0", HELP)


def _check(ctx: Context, key: bytes, flag: bytes) -> None:
    """The flag must be NO-EVICT, and the key be there."""
    if flag.upper() != b"NO-EVICT":
        raise refusals.syntax()
    if not ctx.has(key):
        raise refusals.no_such_key()


@command(
    "BLESS|SET key flag:<NO-EVICT>",
    "8.12.0 write denyoom fast | keys 2 RW | acl dangerous -keyspace",
    "Protects a key from eviction.",
)
def bless_set(ctx: Context, args: list[bytes]) -> bytes:
    key = args[2]
    _check(ctx, key, args[3])
    if not ctx.db.blessed.add(key):
        return reply.ZERO
    return _notify(ctx, args, b"bless")


@command(
    "BLESS|CLEAR key flag:<NO-EVICT>",
    "8.12.0 write fast | keys 2 RW | acl dangerous -keyspace",
    "Lets eviction choose a key again.",
)
def bless_clear(ctx: Context, args: list[bytes]) -> bytes:
    key = args[2]
    _check(ctx, key, args[3])
    if not ctx.db.blessed.drop(key):
        return reply.ZERO
    return _notify(ctx, args, b"unbless")


def _notify(ctx: Context, args: list[bytes], event: bytes) -> bytes:
    ctx.event("g", event, args[2])
    ctx.dirty += 1
    ctx.log_newer(args)
    return reply.ONE


@command("BLESS|GET key", "8.12.0 fast | keys 2 RO | traits only_looks", "Lists what a key is protected from.")
def bless_get(ctx: Context, args: list[bytes]) -> bytes:
    if not ctx.has(args[2]):
        raise refusals.no_such_key()
    return reply.bulks([b"NO-EVICT"] if args[2] in ctx.db.blessed else [])


@command(
    "BLESS|SCAN cursor flag:<NO-EVICT> [COUNT count]",
    "8.12.0",
    "Iterates over the blessed keys of a database, some in each call.",
    "O(COUNT) for every call, O(N) for a complete iteration, N being the number of blessed keys in the database.",
)
def bless_scan(ctx: Context, args: list[bytes]) -> bytes:
    cursor, count = read_cursor(args[2]), PAGE
    options = args[4:]
    if args[3].upper() != b"NO-EVICT" or len(options) not in (0, 2):
        raise refusals.syntax()
    if options:
        if options[0].upper() != b"COUNT":
            raise refusals.syntax()
        count = read_count(options[1])
    found, following = ctx.db.blessed.walk(cursor, count)
    return answer(following, [key for key in found if ctx.has(key)])
