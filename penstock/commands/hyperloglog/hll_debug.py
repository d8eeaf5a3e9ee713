"""PFDEBUG and PFSELFTEST: looking inside HyperLogLogs.

Tests: cases commands/test_hyperloglog; model storage/test_hyperloglogs.
"""

from typing import Final

from penstock.commands.hyperloglog.hyperloglog import changeable, corrupt, hyperloglog_at
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types import hll_registers, hll_sparse
from penstock.storage.types import hyperloglog as hll
from penstock.storage.types.hll_sparse import CorruptHyperLogLog
from penstock.storage.types.hyperloglog import HyperLogLog

SPARSE_BYTES: Final = 1000
TESTED: Final = (1, 10, 100, 1000, 3000)  # elements after which the estimate is looked at
MOST_OFF: Final = 0.05  # of the true number; the standard error is 0.0081


@command(
    "PFDEBUG subcommand key",
    "2.8.9 write denyoom admin | keys 2 RW access | doc_flags syscmd",
    "Looks inside a HyperLogLog: GETREG, DECODE, ENCODING, or TODENSE.",
    "N/A",
)
def pfdebug(ctx: Context, args: list[bytes]) -> bytes:
    action, key = args[1].upper(), args[2]
    if action == b"SIMD":
        return _simd(key)
    value = hyperloglog_at(ctx, key)
    if value is None:
        raise ReplyError(b"ERR The specified key does not exist")
    if action == b"GETREG":
        dense = _made_dense(ctx, args, value)
        return reply.array([reply.integer(register) for register in hll.registers_of(dense)])
    if action == b"TODENSE":
        return reply.ZERO if _made_dense(ctx, args, value) is value else reply.ONE
    if action == b"ENCODING":
        return reply.simple(b"dense" if hll.is_dense(value) else b"sparse")
    if action != b"DECODE":
        raise ReplyError(b"ERR Unknown PFDEBUG subcommand '%b'" % refusals.c_string(args[1]))
    if hll.is_dense(value):
        raise ReplyError(b"ERR HLL encoding is not sparse")
    try:
        return reply.bulk(hll_sparse.described(value))
    except CorruptHyperLogLog:
        raise corrupt() from None


def _simd(word: bytes) -> bytes:
    """There is one way of counting here; what Redis would answer."""
    if word.upper() == b"ON":
        return reply.simple(b"enabled")
    if word.upper() == b"OFF":
        return reply.simple(b"disabled")
    raise ReplyError(b"ERR Argument must be ON or OFF")


def _made_dense(ctx: Context, args: list[bytes], value: bytes) -> bytes:
    """The value in its dense form, at its key too; the same object where it was dense."""
    if hll.is_dense(value):
        return value
    changed = changeable(ctx, value)
    try:
        changed.to_dense()
    except CorruptHyperLogLog:
        raise corrupt() from None
    dense = changed.value()
    ctx.put(args[2], dense)
    ctx.dirty += 1
    ctx.log_request(args)
    return dense


@command("PFSELFTEST", "2.8.9 admin | doc_flags syscmd", "Tests registers and estimates of HyperLogLogs.", "N/A")
def pfselftest(ctx: Context, args: list[bytes]) -> bytes:
    """Counts 3,000 elements in two ways, one of which begins sparse and becomes dense on the way.

    Registers must be equal, and estimates near.  10 ms; uncompiled 50 ms.
    """
    dense = HyperLogLog(hll.EMPTY, 0)
    sparse = HyperLogLog(hll.EMPTY, SPARSE_BYTES)
    dense.to_dense()
    for number in range(1, TESTED[-1] + 1):
        element = b"element %d" % number
        if dense.add(element) != sparse.add(element):
            raise ReplyError(b"ERR TESTFAILED sparse and dense form disagree about element %d" % number)
        if number in TESTED:
            _check(dense.value(), sparse.value(), number)
    return reply.OK


def _check(dense: bytes, sparse: bytes, count: int) -> None:
    registers = hll.registers_of(dense)
    if registers != hll.registers_of(sparse) or hll_registers.packed(registers) != dense[hll_registers.HEADER :]:
        raise ReplyError(b"ERR TESTFAILED registers differ after %d elements" % count)
    estimate = hll_registers.cardinality(registers)
    if abs(estimate - count) > max(1, MOST_OFF * count):
        raise ReplyError(b"ERR TESTFAILED %d elements are estimated as %d" % (count, estimate))
