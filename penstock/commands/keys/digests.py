"""A fingerprint of what the databases hold, to compare before and after (DEBUG DIGEST).

It is our own: Redis's differs, and nobody compares the two. Times, delivery counts and consumers without pending
entries are left out, since no log carries all of them.
"""

from collections.abc import Iterable
from hashlib import sha1
from typing import Final

from penstock.storage.keyspace import Keyspace, Value, type_name
from penstock.storage.streams.ids import MAX, ZERO
from penstock.storage.streams.stream import Stream

NOTHING: Final = bytes(20)


def of_value(value: Value | None) -> bytes:
    """Twenty bytes; zeros where there is no value."""
    if value is None:
        return NOTHING
    made = sha1()
    for part in _parts(value):
        made.update(b"%d:" % len(part))
        made.update(part)
    return made.digest()


def _parts(value: Value) -> Iterable[bytes]:
    if isinstance(value, Stream):
        return _stream_parts(value)
    return [type_name(value), *([value] if isinstance(value, bytes) else value.parts())]


def _stream_parts(stream: Stream) -> list[bytes]:
    parts = [b"stream", b"%d %d %d" % (stream.last_id, stream.max_deleted_id, stream.entries_added)]
    for segment, start, stop in stream.runs(ZERO, MAX, stream.length):
        parts += segment.entry_list(start, stop)
    for group in stream.groups_by_name():
        parts += [group.name, b"%d %d" % (group.last_id, group.entries_read)]
        for held in group.walk(ZERO):
            block, slot = held
            parts += [b"%d" % block.id_at(slot), group.owner_name(held)]
    return parts


def of_keyspace(keyspace: Keyspace) -> bytes:
    """Twenty bytes, whatever the order of the keys; zeros where there are none."""
    total = 0
    for index, db in enumerate(keyspace.databases):
        for key, value in db.values.items():
            placed = b"%d %d %b %b" % (index, db.expires.get(key, 0), of_value(value), key)
            total ^= int.from_bytes(sha1(placed).digest(), "big")
    return total.to_bytes(20, "big")
