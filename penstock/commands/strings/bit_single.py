"""Single bits of a string: the first byte's highest bit is bit 0."""

from penstock.commands.strings.string_changes import Change
from penstock.commands.strings.strings import read_part
from penstock.engine import arguments
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply


def bit_offset(ctx: Context, word: bytes, width: int = 0) -> int:
    """A place in bits; `#n` is the nth field of that width, where there is one."""
    text = b"ERR bit offset is not an integer or out of range"
    if width and word.startswith(b"#"):
        offset = arguments.integer_or(word[1:], text) * width
    else:
        offset = arguments.integer_or(word, text)
    longest = ctx.engine.settings.number("proto-max-bulk-len")
    if offset < 0 or (offset >> 3 >= longest and not ctx.session.privileged):
        raise ReplyError(text)
    return offset


@command(
    "GETBIT",
    "key offset",
    group="bitmap",
    since="2.2.0",
    flags="readonly fast",
    keys="1 RO access",
    summary="Answers one bit of the string at a key.",
)
def getbit(ctx: Context, args: list[bytes]) -> bytes:
    offset = bit_offset(ctx, args[2])
    value = read_part(ctx, args[1])
    if value is None or offset >> 3 >= len(value):
        return reply.ZERO
    return reply.ONE if value[offset >> 3] & 0x80 >> (offset & 7) else reply.ZERO


@command(
    "SETBIT",
    "key offset value:integer",
    group="bitmap",
    since="2.2.0",
    flags="write denyoom",
    keys="1 RW access update",
    complexity="O(1), and O(N) in what the string grows by. A string shorter than 32 KB is written anew.",
    summary="Sets or clears one bit of the string at a key, which is filled up with zero bytes; answers the old bit.",
)
def setbit(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    offset = bit_offset(ctx, args[2])
    if args[3] not in (b"0", b"1"):
        raise ReplyError(b"ERR bit is not an integer or out of range")
    wanted = args[3] == b"1"
    change = Change(ctx, key)
    at, mask = offset >> 3, 0x80 >> (offset & 7)
    was = at < change.length and bool(change.buffer[at] & mask)
    if was == wanted and at < change.length:
        return reply.ONE if was else reply.ZERO  # nothing changes, and nobody is told
    text = change.extend(at + 1)
    text[at] = text[at] | mask if wanted else text[at] & ~mask
    change.keep(ctx)
    ctx.event("$", b"setbit", key)
    ctx.dirty += 1
    ctx.log_request(args)
    return reply.ONE if was else reply.ZERO
