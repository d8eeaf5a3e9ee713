"""HIMPORT: hashes made from values alone, their fields named once a connection. (Redis 8.10, documentation.)

A fieldset is a list of field names that a connection, or a script for itself, has prepared. The documentation has no
texts of refusals; that about the number of values, and the order of the fields, clients' tests expect of a Redis 8.10.

Tests: cases commands/test_commands_since_8_8.
"""

from penstock.commands.common.overwriting import overwrite
from penstock.commands.hashes.hash_access import hash_at, note_size
from penstock.engine.context import Context
from penstock.engine.session import Session
from penstock.engine.table.command_table import command, container
from penstock.engine.telemetry.client_memory import HELD_NAME
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types.hashes import Hash

container("HIMPORT", group="hash", since="8.10.0", summary="Makes hashes from values of prepared fields.")


@command(
    "HIMPORT|PREPARE fieldset-name field [field ...]",
    "8.10.0",
    "Names the fields of the hashes that this connection will import.",
    "O(N) where N is the number of fields.",
)
def himport_prepare(ctx: Context, args: list[bytes]) -> bytes:
    fields = args[3:]
    if len(set(fields)) < len(fields):
        raise ReplyError(b"ERR duplicate field name in fieldset")
    session = ctx.session
    if not session.fieldsets:
        session.fieldsets = {}
    _discard(session, args[2])
    session.fieldsets[args[2]] = fields
    session.fieldset_bytes += _memory_of(args[2], fields)
    return reply.OK


@command(
    "HIMPORT|SET key fieldset-name value [value ...]",
    "8.10.0 write denyoom | keys 2 OW update",
    "Makes a hash of the prepared fields with these values, in place of one that was there.",
    "O(N) where N is the number of fields.",
)
def himport_set(ctx: Context, args: list[bytes]) -> bytes:
    """Logged as DEL and HSET, which any Redis knows and which need no fieldset."""
    key, values = args[2], args[4:]
    existed = hash_at(ctx, key) is not None
    fields = ctx.session.fieldsets.get(args[3])
    if fields is None:
        raise ReplyError(b"ERR no such fieldset")
    if len(values) != len(fields):
        raise ReplyError(b"ERR value count does not match fieldset field count")
    imported = Hash()
    effect = [b"HSET", key]
    for field, value in sorted(zip(fields, values, strict=True), key=_place):
        effect += (field, value)
    imported.put_all(effect[2:])
    note_size(ctx, imported, effect[2:])
    if existed:
        ctx.log(b"DEL", key)
    overwrite(ctx, key, imported)
    ctx.part_event("h", b"hset", key, fields)
    ctx.dirty += 1
    ctx.log(*effect)
    return reply.OK


def _place(pair: tuple[bytes, bytes]) -> tuple[int, bytes]:
    """Short fields come first."""
    return len(pair[0]), pair[0]


@command(
    "HIMPORT|DISCARD fieldset-name",
    "8.10.0",
    "Forgets the fields that were prepared under a name; answers 1, or 0 where there were none.",
)
def himport_discard(ctx: Context, args: list[bytes]) -> bytes:
    return reply.ONE if _discard(ctx.session, args[2]) else reply.ZERO


def _discard(session: Session, name: bytes) -> bool:
    """Forget a fieldset; whether there was one."""
    if name not in session.fieldsets:
        return False
    session.fieldset_bytes -= _memory_of(name, session.fieldsets.pop(name))
    return True


def _memory_of(name: bytes, fields: list[bytes]) -> int:
    """What a fieldset counts as its client's memory. O(fields)."""
    return sum([len(field) + HELD_NAME for field in fields], len(name) + HELD_NAME)


@command(
    "HIMPORT|DISCARDALL",
    "8.10.0",
    "Forgets all fields that were prepared, and counts the names.",
    "O(N) where N is the number of fieldsets.",
)
def himport_discardall(ctx: Context, args: list[bytes]) -> bytes:
    count = len(ctx.session.fieldsets)
    ctx.session.forget_fieldsets()
    return reply.integer(count)
