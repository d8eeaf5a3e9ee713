"""PFADD, PFCOUNT, PFMERGE: how many different elements were counted, by estimate. The value is a string.

Tests: transcripts encodings; cases commands/test_hyperloglog; law against_redis/test_new_families_beside_redis; model
storage/test_hyperloglogs.
"""

from penstock.commands.common.overwriting import create
from penstock.commands.strings.strings import read_string
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types import hll_registers
from penstock.storage.types import hyperloglog as hll
from penstock.storage.types.hll_sparse import CorruptHyperLogLog
from penstock.storage.types.hyperloglog import HyperLogLog
from penstock.storage.types.string_forms import raw_string


def hyperloglog_at(ctx: Context, key: bytes) -> bytes | None:
    """The HyperLogLog at a key; None without the key, WRONGTYPE for another value."""
    return _checked(ctx.string(key))


def read_hyperloglog(ctx: Context, key: bytes) -> bytes | None:
    """As `hyperloglog_at`, counted as a read: by PFCOUNT, and by PFMERGE for all of its keys (Redis 8.6.3)."""
    return _checked(read_string(ctx, key))


def _checked(value: bytes | None) -> bytes | None:
    if value is not None and not hll.is_valid(value):
        raise ReplyError(b"WRONGTYPE Key is not a valid HyperLogLog string value.")
    return value


def corrupt() -> ReplyError:
    return ReplyError(b"INVALIDOBJ Corrupted HLL object detected")


def registers_of(value: bytes) -> bytes:
    """All registers, a byte each; INVALIDOBJ where the sparse form is broken."""
    try:
        return hll.registers_of(value)
    except CorruptHyperLogLog:
        raise corrupt() from None


def changeable(ctx: Context, value: bytes | None) -> HyperLogLog:
    """One to change, empty where there was no key."""
    return HyperLogLog(hll.EMPTY if value is None else value, ctx.settings.number("hll-sparse-max-bytes"))


def keep(ctx: Context, key: bytes, is_new: bool, value: bytes) -> None:
    """Put a changed value at its key; the time of expiry stays."""
    kept = raw_string(value)
    if is_new:
        create(ctx, key, kept)
    else:
        ctx.put(key, kept)


@command(
    "PFADD key [element [element ...]]",
    "2.8.9 write denyoom fast | keys 1 RW insert",
    "Counts elements in a HyperLogLog, made where there is none; answers whether a register changed.",
    "O(1) to add every element.",
)
def pfadd(ctx: Context, args: list[bytes]) -> bytes:
    """Where the value turns out to be corrupt, nothing is counted; Redis keeps what it had counted until then."""
    key = args[1]
    value = hyperloglog_at(ctx, key)
    changed = changeable(ctx, value)
    count = 0
    try:
        for element in args[2:]:
            count += changed.add(element)
    except CorruptHyperLogLog:
        raise corrupt() from None
    if value is not None and not count:
        return reply.ZERO
    changed.mark_out_of_date()
    keep(ctx, key, value is None, changed.value())
    ctx.event("$", b"pfadd", key)
    ctx.dirty += count + (value is None)
    ctx.log_request(args)
    return reply.ONE


@command(
    "PFCOUNT key [key ...]",
    "2.8.9 readonly | "
    "keys 1..-1 RW access # RW because it may change the internal representation of the key, and propagate to "
    "replicas | "
    "traits may_replicate spreads",
    "Estimates how many different elements HyperLogLogs have counted together.",
    "O(1) with a very small average constant time when called with a single key. O(N) with N being the number of"
    " keys, and much bigger constant times, when called with multiple keys.",
)
def pfcount(ctx: Context, args: list[bytes]) -> bytes:
    """The estimate of a single key is kept in its value, which is a change: watched, and logged as PFCOUNT."""
    if len(args) > 2:
        return reply.integer(hll_registers.cardinality(_united(ctx, args[1:])))
    key = args[1]
    value = read_hyperloglog(ctx, key)
    if value is None:
        return reply.ZERO
    estimate = hll.estimate(value)
    if estimate is not None:
        return reply.integer(estimate)
    estimate = hll_registers.cardinality(registers_of(value))
    ctx.put(key, raw_string(hll.with_estimate(value, estimate)))
    ctx.dirty += 1
    ctx.log_request(args)
    return reply.integer(estimate)


def _united(ctx: Context, keys: list[bytes]) -> bytes:
    """The registers of all keys together; what is missing is empty."""
    registers = bytes(hll_registers.REGISTERS)
    for key in keys:
        value = read_hyperloglog(ctx, key)
        if value is not None:
            registers = hll_registers.largest(registers, registers_of(value))
    return registers


def _is_dense(ctx: Context, key: bytes) -> bool:
    value = hyperloglog_at(ctx, key)
    return value is not None and hll.is_dense(value)


@command(
    "PFMERGE destkey:key [sourcekey:key [sourcekey:key ...]]",
    "2.8.9 write denyoom | keys 1 RW access insert; 2..-1 RO access",
    "Unites HyperLogLogs into one.",
    "O(N) to merge N HyperLogLogs, but with high constant times.",
)
def pfmerge(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    registers = _united(ctx, args[1:])
    value = hyperloglog_at(ctx, key)
    merged = changeable(ctx, value)
    if any(_is_dense(ctx, source) for source in args[1:]):
        merged.to_dense()
    merged.unite(registers)
    merged.mark_out_of_date()
    keep(ctx, key, value is None, merged.value())
    ctx.event("$", b"pfadd", key)
    ctx.dirty += 1
    ctx.log_request(args)
    return reply.OK
