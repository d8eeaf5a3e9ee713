"""Streams to which the server itself appends entries: dead letters, and scheduled entries that are due.

A move asks nothing about rights: they are asked when a policy with targets begins to be in force at a key (`admit`).
"""

from penstock.engine.context import Context
from penstock.engine.state import RESTRICTED
from penstock.protocol import entries
from penstock.storage.keyspace import Value, type_name
from penstock.storage.policies.stream_policies import AT_ONCE
from penstock.storage.streams import ids
from penstock.storage.streams.stream import Stream


def of_stream(stream: Stream) -> list[bytes]:
    """The targets of a stream's policies and of those of its groups. O(groups), O(1) without policies."""
    policies = stream.policies
    if policies is None:
        return []
    found = [] if policies.settings.forward is None else [policies.settings.forward]
    for group in stream.groups.values():
        target = None if group.policy is None else group.policy.settings.dead_letter
        if target is not None:
            found.append(target)
    return found


def admit(ctx: Context, key: bytes, value: Value) -> None:
    """Refuse to put a value at a key of any database, if its policies have targets and the user may not set them there.

    Nothing may have been changed yet.
    """
    if ctx.session.state & RESTRICTED and isinstance(value, Stream):
        admit_link(ctx, key, of_stream(value))


def admit_link(ctx: Context, key: bytes, targets: list[bytes]) -> None:
    """Refuse policies that move entries of a key to targets, unless the user may read and write the key and write them.

    The right to read is asked, too, for what moves to a target can be read there.
    """
    if targets and ctx.session.state & RESTRICTED:
        assert ctx.row is not None, "a request that runs has a row"
        ctx.access.admit_link(ctx.session, ctx.row, ctx.args, key, targets)


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


def leads_back(ctx: Context, source: bytes, target: bytes) -> bool:
    """Whether FORWARDs lead from a target back to the stream that has it. O(streams that follow one another)."""
    seen: set[bytes] = set()
    forward: bytes | None = target
    while forward is not None and forward not in seen:
        if forward == source:
            return True
        seen.add(forward)
        value = ctx.value(forward)
        policies = value.policies if isinstance(value, Stream) else None
        forward = None if policies is None else policies.settings.forward
    return False


def append_with(ctx: Context, target: bytes, entry: bytes, names: tuple[bytes, ...], words: list[bytes]) -> None:
    """As `append`, an entry's own fields and others behind them: names, and a word for each."""
    fields = entries.fields_of(entry)
    for name, word in zip(names, words, strict=True):
        fields += (name, word)
    append(ctx, target, fields)


def append(ctx: Context, target: bytes, fields: list[bytes]) -> None:
    """Append an entry, logged; the target is made if it is missing. Nothing may be wrong with it."""
    stream = ctx.stream(target)
    if stream is None:
        stream = ctx.form_limits.new_stream()
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
