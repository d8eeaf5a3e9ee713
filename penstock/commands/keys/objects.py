"""OBJECT: describes how a value is stored, as far as that has a meaning in Penstock.

Tests: transcripts encodings, object; cases commands/test_encodings; law against_redis/test_encodings_beside_redis.
"""

from typing import Final

from penstock.commands.common.help import declare_help
from penstock.engine import arguments, encodings
from penstock.engine.context import Context
from penstock.engine.memory import recency
from penstock.engine.table.command_table import command, container
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.keyspace import Value
from penstock.storage.streams.stream import Stream
from penstock.storage.types.large_strings import LargeString
from penstock.storage.types.sorted_sets import SortedSet
from penstock.storage.types.string_forms import LONGEST_EMBEDDED
from penstock.storage.types.string_marks import RawString, UnconvertedString

HELP: Final = (
    ("ENCODING <key>", "Return the encoding of the value of <key>."),
    ("FREQ <key>", "Return how often <key> is used, under an LFU policy."),
    ("IDLETIME <key>", "Return for how many seconds <key> has not been used, under an LRU or LRM policy."),
    ("REFCOUNT <key>", "Return how many references the value of <key> has; always 1."),
)

container("OBJECT", group="generic", since="2.2.3", summary="Commands that describe how a value is stored.")


def _look(ctx: Context, key: bytes) -> Value | None:
    """The value of a key. Counts a hit or a miss, but sends no event for a miss (Redis 8.6.3)."""
    value = ctx.look(key)
    if value is None:
        ctx.statistics.misses += 1
    else:
        ctx.statistics.hits += 1
    return value


@command(
    "OBJECT|ENCODING key",
    "2.2.3 readonly | keys 2 RO | traits only_looks | tips nondeterministic_output",
    "Returns the encoding of a value, as Redis names it.",
)
def encoding(ctx: Context, args: list[bytes]) -> bytes:
    key = args[2]
    value = _look(ctx, key)
    if value is None:
        return reply.null(ctx.resp3)
    if isinstance(value, SortedSet) and value.is_large and ctx.compatibility.is_valkey_since("9.2.0"):
        return reply.bulk(b"btree")
    return reply.bulk(encoding_of(key, value))


def encoding_of(key: bytes, value: Value) -> bytes:
    """The name of the encoding."""
    if not isinstance(value, bytes):
        if isinstance(value, LargeString):
            return b"raw"
        return b"stream" if isinstance(value, Stream) else encodings.of_collection(value)
    if isinstance(value, RawString):
        return b"raw"
    if arguments.is_integer(value) and not isinstance(value, UnconvertedString):
        return b"int"
    return b"embstr" if len(key) + len(value) <= LONGEST_EMBEDDED else b"raw"


@command(
    "OBJECT|FREQ key",
    "4.0.0 readonly | keys 2 RO | traits only_looks | tips nondeterministic_output",
    "Returns how often a key is used, from 0 to 255, if maxmemory-policy is an LFU policy.",
)
def freq(ctx: Context, args: list[bytes]) -> bytes:
    if _look(ctx, args[2]) is None:
        return reply.null(ctx.resp3)
    settings, uses = ctx.settings, recency.uses_of(ctx.server)
    if uses is None or not settings.text("maxmemory-policy").endswith("lfu"):
        raise ReplyError(
            b"ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when"
            b" switching between policies at runtime LRU and LFU data will take some time to adjust."
        )
    return reply.integer(uses.frequency(ctx.db_index, args[2], ctx.now_ms, settings.number("lfu-decay-time")))


@command(
    "OBJECT|IDLETIME key",
    "2.2.3 readonly | keys 2 RO | traits only_looks | tips nondeterministic_output",
    "Returns the seconds since the last use of a key, if maxmemory-policy is an LRU or LRM policy.",
)
def idletime(ctx: Context, args: list[bytes]) -> bytes:
    """Redis records the use of keys under any policy. Here it is 0 under policies that do not need it."""
    if _look(ctx, args[2]) is None:
        return reply.null(ctx.resp3)
    if ctx.settings.text("maxmemory-policy").endswith("lfu"):
        raise ReplyError(
            b"ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching"
            b" between policies at runtime LRU and LFU data will take some time to adjust."
        )
    uses = recency.uses_of(ctx.server)
    return reply.ZERO if uses is None else reply.integer(uses.idle_ms(ctx.db_index, args[2], ctx.now_ms) // 1000)


@command(
    "OBJECT|REFCOUNT key",
    "2.2.3 readonly | keys 2 RO | traits only_looks | tips nondeterministic_output",
    "Returns 1 for any value, as Redis does.",
)
def refcount(ctx: Context, args: list[bytes]) -> bytes:
    return reply.null(ctx.resp3) if _look(ctx, args[2]) is None else reply.ONE


declare_help("OBJECT", "6.2.0", HELP)
