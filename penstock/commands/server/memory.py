"""MEMORY: the memory of keys and of the server, as far as Python can measure it (Redis 8.6.3).

Tests: transcripts info; cases commands/test_memory_usage, commands/test_debug; law
against_redis/test_memory_beside_redis.
"""

import sys
from typing import Final

from penstock.commands.common.help import declare_help
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.memory import redis_sizes
from penstock.engine.memory.value_sizes import EXPIRY_OVERHEAD, KEY_OVERHEAD, dataset_bytes
from penstock.engine.table.command_table import command, container
from penstock.protocol import reply

SMALL_BYTES: Final = 64 * 1024 * 1024
EVERY_PART: Final = 1 << 62  # SAMPLES 0


container("MEMORY", group="server", since="4.0.0", summary="Commands for memory usage.")


@command(
    "MEMORY|USAGE key [SAMPLES count]",
    "4.0.0 readonly | keys 2 RO | traits only_looks",
    "Estimates the bytes that Redis would use for a key and its value.",
    "O(N) where N is the number of samples.",
)
def memory_usage_(ctx: Context, args: list[bytes]) -> bytes:
    """An estimate of what Redis would use for the value, for comparison; MEMORY STATS shows what is used here."""
    at, sampled = 3, redis_sizes.SAMPLED
    while at < len(args):
        if args[at].upper() != b"SAMPLES" or at + 1 == len(args):
            raise refusals.syntax()
        wanted = arguments.integer(args[at + 1])
        if wanted < 0:
            raise refusals.syntax()
        sampled = max(wanted, redis_sizes.SAMPLED) if wanted else EVERY_PART
        at += 2
    value = ctx.value(args[2])
    if value is None:
        return reply.null(ctx.resp3)
    return reply.integer(redis_sizes.usage_in_redis(args[2], value, sampled))


@command(
    "MEMORY|STATS",
    "4.0.0 | tips nondeterministic_output request_policy:all_shards response_policy:special",
    "Returns the server's memory usage in detail.",
)
def memory_stats(ctx: Context, args: list[bytes]) -> bytes:
    keyspace = ctx.keyspace
    used, peak = ctx.memory.read(), ctx.telemetry.identity.usage.peak()
    dataset = dataset_bytes(keyspace)
    keys = sum(len(db) for db in keyspace.databases)
    startup = ctx.telemetry.identity.startup_bytes
    zero = reply.ZERO

    def ratio(part: float, whole: float) -> bytes:
        return reply.double(b"%.17g" % (part / whole if whole else 0.0), ctx.resp3)

    databases = [
        (
            b"db.%d" % index,
            reply.fields(
                ctx.shown(
                    [
                        (b"overhead.hashtable.main", reply.integer(db.values.table_bytes())),
                        (b"overhead.hashtable.expires", reply.integer(len(db.expires) * EXPIRY_OVERHEAD)),
                        (b"overhead.hashtable.blessed", reply.integer(len(db.blessed) * KEY_OVERHEAD)),
                    ]
                ),
                ctx.resp3,
            ),
        )
        for index, db in enumerate(keyspace.databases)
        if db.values
    ]
    return reply.fields(
        [
            (b"peak.allocated", reply.integer(peak)),
            (b"total.allocated", reply.integer(used)),
            (b"startup.allocated", reply.integer(startup)),
            (b"replication.backlog", reply.integer(ctx.replication.kept_bytes)),
            (b"replica.fullsync.buffer", zero),
            (b"clients.slaves", zero),
            (b"clients.normal", zero),
            (b"cluster.links", zero),
            (b"aof.buffer", zero),
            (b"lua.caches", zero),
            (b"functions.caches", zero),
            (b"script.VMs", zero),
            *databases,
            (b"overhead.db.hashtable.lut", zero),
            (b"overhead.db.hashtable.rehashing", zero),
            (b"overhead.total", reply.integer(max(used - dataset, 0))),
            (b"db.dict.rehashing.count", zero),
            (b"keys.count", reply.integer(keys)),
            (b"keys.bytes-per-key", reply.integer(dataset // keys if keys else 0)),
            (b"dataset.bytes", reply.integer(dataset)),
            (b"dataset.percentage", ratio(100.0 * dataset, used)),
            (b"peak.percentage", ratio(100.0 * used, peak)),
            (b"allocator.allocated", reply.integer(used)),
            (b"allocator.active", reply.integer(used)),
            (b"allocator.resident", reply.integer(used)),
            (b"allocator.muzzy", zero),
            (b"allocator-fragmentation.ratio", ratio(1, 1)),
            (b"allocator-fragmentation.bytes", zero),
            (b"allocator-rss.ratio", ratio(1, 1)),
            (b"allocator-rss.bytes", zero),
            (b"rss-overhead.ratio", ratio(1, 1)),
            (b"rss-overhead.bytes", zero),
            (b"fragmentation", ratio(1, 1)),
            (b"fragmentation.bytes", zero),
        ],
        ctx.resp3,
    )


@command(
    "MEMORY|DOCTOR",
    "4.0.0 | tips nondeterministic_output request_policy:all_shards response_policy:special",
    "Reports problems with the server's memory usage.",
)
def memory_doctor(ctx: Context, args: list[bytes]) -> bytes:
    used, peak = ctx.memory.read(), ctx.telemetry.identity.usage.peak()
    if used < SMALL_BYTES:
        text = b"The server uses little memory: there is nothing to report.\n"
    elif peak > used * 3 // 2:
        text = b"The server once used %d bytes, more than 1.5 times the present %d.\n" % (peak, used)
    else:
        text = b"There are no problems.\n"
    return reply.verbatim(text, ctx.resp3)


@command(
    "MEMORY|PURGE",
    "4.0.0 | tips request_policy:all_shards response_policy:all_succeeded",
    "Returns unused memory to the system.",
    "Depends on how much memory is allocated, could be slow",
)
def memory_purge(ctx: Context, args: list[bytes]) -> bytes:
    """Python returns what it can itself; the C library keeps what larger objects leave. Up to 1 ms a megabyte."""
    ctx.memory.give_back()
    return reply.OK


@command(
    "MEMORY|MALLOC-STATS",
    "4.0.0 | tips nondeterministic_output request_policy:all_shards response_policy:special",
    "Returns statistics of the allocator.",
    "Depends on how much memory is allocated, could be slow",
)
def memory_malloc_stats(ctx: Context, args: list[bytes]) -> bytes:
    text = b"Python's own allocator: %d blocks in use\n" % sys.getallocatedblocks()
    return reply.verbatim(text, ctx.resp3)


declare_help(
    "MEMORY",
    "4.0.0",
    [
        ("DOCTOR", "Report problems with the memory usage."),
        ("MALLOC-STATS", "Return statistics of the allocator."),
        ("PURGE", "Return unused memory to the system."),
        ("STATS", "Return the memory usage in detail."),
        ("USAGE <key> [SAMPLES <count>]", "Estimate the bytes used by <key> and its value."),
    ],
)
