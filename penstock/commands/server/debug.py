"""DEBUG: the subcommands that test suites use (Redis 8.6.3). Needs enable-debug-command.

Tests: transcripts stale_keys; cases commands/test_debug.
"""

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from penstock.commands.common.help import help_reply
from penstock.commands.keys import digests
from penstock.commands.keys.objects import encoding_of
from penstock.commands.server import debug_protocol
from penstock.engine import arguments, protected_commands, refusals
from penstock.engine.aof import reload
from penstock.engine.context import Context
from penstock.engine.memory.value_sizes import memory_usage
from penstock.engine.table.command_table import command
from penstock.engine.telemetry.client_memory import memory_of
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.keyspace import Value
from penstock.storage.streams.stream import Stream
from penstock.storage.types.large_strings import LargeString

NUMBER: Final = re.compile(rb"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
SIZE: Final = re.compile(rb"(\d+)(b|k|kb|m|mb|g|gb)?", re.IGNORECASE)
UNITS: Final = {b"b": 1, b"k": 10**3, b"kb": 2**10, b"m": 10**6, b"mb": 2**20, b"g": 10**9, b"gb": 2**30}
FOUR_GB: Final = 2**32
SMALLEST_BUCKET: Final = 15  # powers of two, in DEBUG CLIENT-EVICTION
LARGEST_BUCKET: Final = 33
LRU_CLOCK_BITS: Final = 24
RELOAD_OPTIONS: Final = frozenset({b"MERGE", b"NOFLUSH", b"NOSAVE"})
NEED_LOADED_KEYS: Final = (b"RELOAD", b"LOADAOF", b"POPULATE")

Subcommand: TypeAlias = Callable[[Context, list[bytes]], bytes]


@command(
    "DEBUG",
    "1.0.0 admin noscript loading stale | traits guarded_by_debug only_looks | arity -2 | doc_flags syscmd",
    "Inspects and disturbs the server, for tests.",
    "Depends on subcommand.",
)
def debug(ctx: Context, args: list[bytes]) -> bytes:
    if ctx.row is not None:
        protected_commands.require_allowed(ctx.settings, ctx.session, ctx.row)
    entry = SUBCOMMANDS.get(args[1].upper())
    if entry is not None:
        min_words, max_words, subcommand = entry
        if min_words <= len(args) - 2 <= max_words:
            if ctx.conditions.loading and not ctx.session.privileged and args[1].upper() in NEED_LOADED_KEYS:
                raise refusals.loading()
            return subcommand(ctx, args)
    raise refusals.unknown_or_wrong(args[1], args[0])


# -- time and the log -------------------------------------------------------------------------------------------------


def _sleep(ctx: Context, args: list[bytes]) -> bytes:
    """Takes the number at the start of the word; if there is none, it is 0."""
    number = NUMBER.match(args[2])
    seconds = float(number[0]) if number else 0.0
    if seconds > 0:
        ctx.clock.sleep(seconds)
    return reply.OK


def _set_active_expire(ctx: Context, args: list[bytes]) -> bytes:
    ctx.conditions.active_expiry = _c_integer(args[2]) != 0
    return reply.OK


def _pause_cron(ctx: Context, args: list[bytes]) -> bytes:
    ctx.conditions.cron_is_paused = _c_integer(args[2]) != 0
    return reply.OK


def _set_disable_deny_scripts(ctx: Context, args: list[bytes]) -> bytes:
    ctx.scripts.calls.allows_noscript = _c_integer(args[2]) != 0
    return reply.OK


def _c_integer(word: bytes) -> int:
    number = re.match(rb"\s*[+-]?\d+", word)
    return int(number[0]) if number else 0


def _change_repl_id(ctx: Context, args: list[bytes]) -> bytes:
    ctx.replication.change_id()
    return reply.OK


def _reload(ctx: Context, args: list[bytes]) -> bytes:
    options = {word.upper() for word in args[2:]}
    if not options <= RELOAD_OPTIONS:
        raise ReplyError(b"ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.")
    saves = ctx.persistence.saves
    if not options or saves.save is None or saves.load is None:
        reload.reload(ctx.server, ctx.now_ms)
    elif b"NOSAVE" not in options and saves.save():
        raise ReplyError(b"ERR")
    elif saves.load(b"NOFLUSH" not in options, b"MERGE" in options):
        raise ReplyError(b"ERR Error trying to load the RDB dump, check server logs")
    ctx.notify_reload()
    return reply.OK


def _loadaof(ctx: Context, args: list[bytes]) -> bytes:
    reload.reload_from_log(ctx.server)
    ctx.notify_reload()
    return reply.OK


# -- values -----------------------------------------------------------------------------------------------------------


def _value(ctx: Context, key: bytes) -> Value:
    value = ctx.value(key)
    if value is None:
        raise refusals.no_such_key()
    return value


def _object(ctx: Context, args: list[bytes]) -> bytes:
    key = args[2]
    value = _value(ctx, key)
    clock = ctx.now_ms // 1000 % (1 << LRU_CLOCK_BITS)
    return reply.simple(
        b"Value at:0x%x refcount:1 encoding:%b serializedlength:%d lru:%d lru_seconds_idle:0"
        % (id(value), encoding_of(key, value), memory_usage(key, value), clock)
    )


def _sdslen(ctx: Context, args: list[bytes]) -> bytes:
    key = args[2]
    value = _value(ctx, key)
    if not isinstance(value, bytes | LargeString) or encoding_of(key, value) == b"int":
        raise ReplyError(b"ERR Not an sds encoded string.")
    return reply.simple(
        b"key_sds_len:%d, key_sds_avail:0, key_zmalloc: %d, val_sds_len:%d, val_sds_avail:0, val_zmalloc: 0"
        % (len(key), len(key), len(value))
    )


def _listpack(ctx: Context, args: list[bytes]) -> bytes:
    """There is no listpack to print; the reply says whether Redis has one, which test suites ask for."""
    if not encoding_of(args[2], _value(ctx, args[2])).startswith(b"listpack"):
        raise ReplyError(b"ERR Not a listpack encoded object.")
    return reply.simple(b"Listpack structure printed on stdout")


def _quicklist(ctx: Context, args: list[bytes]) -> bytes:
    if encoding_of(args[2], _value(ctx, args[2])) != b"quicklist":
        raise ReplyError(b"ERR Not a quicklist encoded object.")
    return reply.simple(b"Quicklist structure printed on stdout")


def _digest_value(ctx: Context, args: list[bytes]) -> bytes:
    return reply.array([reply.simple(digests.of_value(ctx.value(key)).hex().encode()) for key in args[2:]])


def _populate(ctx: Context, args: list[bytes]) -> bytes:
    """Create strings `prefix:0`, `prefix:1`, ... with values `value:0`, ...; existing keys stay. Not logged."""
    count = arguments.not_negative(args[2])
    prefix = args[3] if len(args) > 3 else b"key"
    size = arguments.not_negative(args[4]) if len(args) > 4 else 0
    for number in range(count):
        key = b"%b:%d" % (prefix, number)
        if not ctx.has(key):
            value = b"value:%d" % number
            ctx.put(key, value[:size].ljust(size, b"\0") if size else value)
    return reply.OK


# -- tables -----------------------------------------------------------------------------------------------------------


def _htstats(ctx: Context, args: list[bytes]) -> bytes:
    index = arguments.integer(args[2])
    if not 0 <= index < len(ctx.keyspace.databases):
        raise ReplyError(b"ERR Out of range database")
    db = ctx.keyspace.databases[index]
    text = b"[Dictionary HT]\n%b[Expires HT]\n%b" % (_table(len(db.values)), _table(len(db.expires)))
    return reply.verbatim(text, ctx.resp3)


def _table(count: int) -> bytes:
    return b" number of elements: %d\n" % count if count else b""


def _htstats_key(ctx: Context, args: list[bytes]) -> bytes:
    value = _value(ctx, args[2])
    if encoding_of(args[2], value) not in (b"hashtable", b"skiplist"):
        raise ReplyError(b"ERR The value stored at the specified key is not represented using an hash table")
    assert not isinstance(value, Stream), "a stream has no table"
    return reply.verbatim(_table(len(value)), ctx.resp3)


# -- accepted, without effect -----------------------------------------------------------------------------------------


def _ok(ctx: Context, args: list[bytes]) -> bytes:
    return reply.OK


def _switch(ctx: Context, args: list[bytes]) -> bytes:
    arguments.integer(args[2])
    return reply.OK


def _packed_threshold(ctx: Context, args: list[bytes]) -> bytes:
    size = SIZE.fullmatch(args[2])
    if size is None or int(size[1]) * UNITS[(size[2] or b"b").lower()] > FOUR_GB:
        raise ReplyError(b"ERR argument must be a memory value bigger than 1 and smaller than 4gb")
    return reply.OK


def _replybuffer(ctx: Context, args: list[bytes]) -> bytes:
    option = args[2].upper()
    if option == b"RESIZING":
        return reply.OK
    if option != b"PEAK-RESET-TIME":
        raise refusals.unknown_or_wrong(args[1], args[0])
    if args[3].upper() not in (b"NEVER", b"RESET"):
        arguments.integer(args[3])
    return reply.OK


def _client_eviction(ctx: Context, args: list[bytes]) -> bytes:
    """How many clients take how much memory, by powers of two."""
    if not ctx.settings.text("maxmemory-clients").rstrip("%").strip("0"):
        raise ReplyError(b"ERR maxmemory-clients is disabled.")
    sizes = [memory_of(session) for session in ctx.clients.sessions.values() if not session.is_replica]
    lines: list[str] = []
    for power in range(SMALLEST_BUCKET, LARGEST_BUCKET + 1):
        low = 0 if power == SMALLEST_BUCKET else 1 << power - 1
        high = (1 << power) - 1
        is_last = power == LARGEST_BUCKET
        inside = [size for size in sizes if low <= size and (is_last or size <= high)]
        shown = f"{low:10d}+{'':11}" if is_last else f"{low:10d} - {high:10d}"
        lines.append(f"bucket {shown}: tot-mem: {sum(inside):10d}, clients: {len(inside)}\n")
    return reply.bulk("".join(lines).encode())


# -- HELP -------------------------------------------------------------------------------------------------------------

HELP: Final = (
    ("CHANGE-REPL-ID", "Change the replication id."),
    ("DIGEST", "Return a digest of all databases."),
    ("DIGEST-VALUE <key> [<key> ...]", "Return digests of values."),
    ("ERROR <text>", "Return an error with this text."),
    ("HTSTATS <dbid> [full]", "Count the keys of a database and those with a time of expiry."),
    ("LOADAOF", "Load the log again."),
    ("LOG <text>", "Accepted without effect."),
    ("OBJECT <key>", "Describe how a value is stored."),
    ("POPULATE <count> [<prefix>] [<size>]", "Create <count> strings, named <prefix>:<number>. They are not logged."),
    (
        "PROTOCOL <type>",
        "Return a reply of a type: string, integer, double, bignum, null, array,\n"
        "set, map, attrib, push, verbatim, true, false.",
    ),
    (
        "RELOAD [<option> ...]",
        "Load again what a rewrite of the log would keep. With options: save the RDB\n"
        "file unless NOSAVE, empty the keyspace unless NOFLUSH, load the file; its\n"
        "keys replace others with MERGE.",
    ),
    ("PAUSE-CRON <0|1>", "Stop what is done ten times a second, or go on with it."),
    ("SDSLEN <key>", "Return the lengths of a key and its string."),
    ("SET-ACTIVE-EXPIRE <0|1>", "Switch the removal of expired keys in the background off or on."),
    ("SET-DISABLE-DENY-SCRIPTS <0|1>", "Let scripts call commands about the server, or refuse them again."),
    ("SLEEP <seconds>", "Stop the server for this time."),
)


def _digest(ctx: Context, args: list[bytes]) -> bytes:
    return reply.simple(digests.of_keyspace(ctx.keyspace).hex().encode())


def _protocol(ctx: Context, args: list[bytes]) -> bytes:
    return debug_protocol.sample(args[2].lower(), ctx.resp3)


# -- the table --------------------------------------------------------------------------------------------------------

ANY: Final = 2**31  # any number of arguments

SUBCOMMANDS: Final[dict[bytes, tuple[int, int, Subcommand]]] = {  # by name: minimum and maximum of arguments
    b"AOF-FLUSH-SLEEP": (1, 1, _ok),
    b"CHANGE-REPL-ID": (0, 0, _change_repl_id),
    b"CLIENT-EVICTION": (0, 0, _client_eviction),
    b"DICT-RESIZING": (1, 1, _ok),
    b"DIGEST": (0, 0, _digest),
    b"DIGEST-VALUE": (0, ANY, _digest_value),
    b"ERROR": (1, 1, lambda ctx, args: reply.error(reply.flat(args[2]))),
    b"HELP": (0, 0, lambda ctx, args: help_reply("DEBUG", HELP)),
    b"HTSTATS": (1, ANY, _htstats),
    b"HTSTATS-KEY": (1, 2, _htstats_key),
    b"KEYSIZES-HIST-ASSERT": (1, 1, _switch),
    b"LISTPACK": (1, 1, _listpack),
    b"LOADAOF": (0, 0, _loadaof),
    b"LOG": (1, 1, _ok),
    b"OBJECT": (1, 1, _object),
    b"PAUSE-CRON": (1, 1, _pause_cron),
    b"POPULATE": (1, 3, _populate),
    b"PROTOCOL": (1, 1, _protocol),
    b"QUICKLIST": (1, 2, _quicklist),
    b"QUICKLIST-PACKED-THRESHOLD": (1, 1, _packed_threshold),
    b"RELOAD": (0, ANY, _reload),
    b"REPLY-COPY-AVOIDANCE": (1, 1, _ok),
    b"REPLYBUFFER": (2, 2, _replybuffer),
    b"SDSLEN": (1, 1, _sdslen),
    b"SET-ACTIVE-EXPIRE": (1, 1, _set_active_expire),
    b"SET-DISABLE-DENY-SCRIPTS": (1, 1, _set_disable_deny_scripts),
    b"SET-SKIP-CHECKSUM-VALIDATION": (1, 1, _ok),
    b"SLEEP": (1, 1, _sleep),
    b"STRUCTSIZE": (0, 0, lambda ctx, args: reply.bulk(b"bits:64 ")),
}
