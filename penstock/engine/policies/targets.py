"""Streams to which the server itself appends entries: dead letters, and scheduled entries that are due."""

from penstock.engine.context import Context
from penstock.protocol import entries
from penstock.storage.keyspace import type_name
from penstock.storage.policies.stream_policies import AT_ONCE
from penstock.storage.streams import ids
from penstock.storage.streams.stream import Stream


def problem_with(ctx: Context, source: bytes, target: bytes) -> bytes:
    """Why nothing can be appended to a target; empty if nothing is wrong."""
    value = ctx.value(target)
    if target == source:
        return b"%b is the stream itself" % target
    if value is not None and not isinstance(value, Stream):
        return b"%b holds a %b" % (target, type_name(value))
    if value is not None and value.last_id == ids.MAX:
        return b"%b has no ids left" % target
    return b""


def append(ctx: Context, target: bytes, fields: list[bytes]) -> None:
    """Append an entry, logged; the target is made if it is missing. Nothing may be wrong with it."""
    stream = ctx.stream(target)
    if stream is None:
        stream = ctx.engine.new_stream()
        ctx.db.put(target, stream)
        ctx.event("n", b"new", target)
    ms, seq = stream.next_id(ctx.now_ms)
    assert ms >= 0, "the caller looked"
    text = ids.text_of(ms, seq)
    stream.append(ms, seq, entries.encode(text, fields), fields)
    ctx.log(b"XADD", target, text, *fields)
    ctx.dirty += 1
    ctx.touch(target)
    ctx.signal(target)
    ctx.event("t", b"xadd", target)
    if stream.policies is not None:  # its own trim, and its own moves, come with the next tick
        stream.policies.due_ms = AT_ONCE
        ctx.db.note_policies(target, stream)
