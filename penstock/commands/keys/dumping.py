"""DUMP and RESTORE: move a value to another key or server.

Tests: transcripts dump_restore; cases commands/test_dumping, storage/test_rdb_payloads; law
storage/test_rdb_mutations.
"""

from typing import Final

from penstock.commands.common.overwriting import create, notify_overwritten
from penstock.commands.keys import payloads
from penstock.engine import arguments, refusals
from penstock.engine.aof import rewrite
from penstock.engine.aof.rewrite_progress import Progress
from penstock.engine.arguments import MAX_INT64
from penstock.engine.context import Context
from penstock.engine.memory.recency import NOT_KNOWN, NotingContext
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.rdb.errors import correction
from penstock.storage.types.arrays import Array

HIGHEST_FREQUENCY: Final = 255


@command(
    "DUMP key",
    "2.6.0 readonly | keys 1 RO access | traits only_looks | tips nondeterministic_output",
    "Answers a value as bytes that RESTORE takes, here and on a Redis.",
    "O(1) to access the key and additional O(N*M) to serialize it, where N is the number of "
    "Redis objects composing the value and M their average size. For small string values the "
    "time complexity is thus O(1)+O(1*M) where M is small, so simply O(1).",
)
def dump(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    value = ctx.read(key)
    if value is None:
        return reply.null(ctx.resp3)
    return reply.bulk(payloads.payload_of(value, ctx.settings))


class Options:
    """The options after the payload. `idle_s` and `frequency` are kept if the eviction policy uses them."""

    __slots__ = ("absolute", "frequency", "idle_s", "replaces")

    def __init__(self) -> None:
        self.idle_s = NOT_KNOWN
        self.frequency = NOT_KNOWN
        self.absolute = False
        self.replaces = False


def _read(args: list[bytes]) -> Options:
    options = Options()
    access = b""  # IDLETIME or FREQ, whichever was given
    at = 4
    while at < len(args):
        option = args[at].upper()
        if option == b"REPLACE":
            options.replaces = True
        elif option == b"ABSTTL":
            options.absolute = True
        elif option in (b"IDLETIME", b"FREQ") and at + 1 < len(args) and access in (b"", option):
            access = option
            at += 1
            number = arguments.integer(args[at])
            if option == b"IDLETIME" and number < 0:
                raise ReplyError(b"ERR Invalid IDLETIME value, must be >= 0")
            if option == b"FREQ" and not 0 <= number <= HIGHEST_FREQUENCY:
                raise ReplyError(b"ERR Invalid FREQ value, must be >= 0 and <= 255")
            if option == b"IDLETIME":
                options.idle_s = number
            else:
                options.frequency = number
        else:
            raise refusals.syntax()
        at += 1
    return options


RESTORE_SYNTAX: Final = (
    "key ttl:integer serialized-value [REPLACE@3.0.0] [ABSTTL@5.0.0] [IDLETIME seconds@5.0.0] "
    "[FREQ frequency:integer@5.0.0]"
)
RESTORE_COMPLEXITY: Final = (
    "O(1) to create the new key and additional O(N*M) to reconstruct the serialized value, where N is the number of "
    "Redis objects composing the value and M their average size. "
    "For small string values the time complexity is thus O(1)+O(1*M) where M is small, so "
    "simply O(1). However for sorted set values the complexity is O(N*M*log(N)) because "
    "inserting values into sorted sets is O(log(N))."
)
RESTORE_HISTORY: Final = (
    ("3.0.0", "Added the `REPLACE` modifier."),
    ("5.0.0", "Added the `ABSTTL` modifier."),
    ("5.0.0", "Added the `IDLETIME` and `FREQ` options."),
)


@command(
    f"RESTORE {RESTORE_SYNTAX}",
    "2.6.0 write denyoom | keys 1 OW update | acl dangerous",
    "Makes a key of what DUMP answered, here or on a Redis.",
    RESTORE_COMPLEXITY,
    history=RESTORE_HISTORY,
)
@command(
    f"RESTORE-ASKING {RESTORE_SYNTAX}",
    "3.0.0 write denyoom asking | keys 1 OW update | acl keyspace dangerous | group server | doc_flags syscmd",
    "RESTORE as MIGRATE sends it to a node that imports a slot.",
    RESTORE_COMPLEXITY,
    history=RESTORE_HISTORY,
)
def restore(ctx: Context, args: list[bytes]) -> bytes:
    """Logged as the requests that make the value: a Redis that is too old for the payload may load them."""
    key = args[1]
    options = _read(args)
    old = ctx.value(key)
    if old is not None and not options.replaces:
        raise ReplyError(b"BUSYKEY Target key name already exists.")
    ttl_ms = arguments.integer(args[2])
    if ttl_ms < 0:
        raise ReplyError(b"ERR Invalid TTL value, must be >= 0")
    corrections: list[str] = []
    value = payloads.value_from(args[3], ctx, corrections)
    if corrections:
        ctx.persistence.report(f"RESTORE: {correction(key, ctx.db_index, corrections)}.")
    when_ms = min(ttl_ms if options.absolute else ctx.now_ms + ttl_ms, MAX_INT64)
    is_blessed = key in ctx.db.blessed
    if old is not None:
        ctx.remove(key)
        ctx.log(b"DEL", key)
    if ttl_ms and when_ms <= ctx.now_ms and not ctx.conditions.imports:
        if old is not None:
            ctx.event("g", b"del", key)
            ctx.dirty += 1
        ctx.statistics.expired += 1
        return reply.OK
    create(ctx, key, value)
    if isinstance(ctx, NotingContext):
        ctx.recall(key, options.idle_s, options.frequency)
    if isinstance(value, Array):
        ctx.replication.note_array()
    if ctx.effects.log is not None:
        for line in rewrite.value_lines(key, value, ctx.settings, ctx.effects.compat, Progress()):
            ctx.effects.add_packed(ctx.db_index, line)
    if is_blessed and ctx.db.blessed.add(key):
        ctx.log_newer([b"BLESS", b"SET", key, b"NO-EVICT"])
    if ttl_ms:
        ctx.db.expire_at(key, when_ms)
        ctx.log(b"PEXPIREAT", key, b"%d" % when_ms)
    ctx.event("g", b"restore", key)
    if old is not None:
        notify_overwritten(ctx, key, old, value)
    ctx.dirty += 1
    return reply.OK
