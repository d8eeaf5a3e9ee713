"""A digest of the databases' contents, to compare before and after (DEBUG DIGEST).

It differs from Redis's digest. Delivery times, delivery counts and consumers without pending entries are left out,
because no log has all of them.
"""

from collections.abc import Iterable
from hashlib import sha1
from typing import Final

from penstock.storage.keyspace import Keyspace, Value, type_name
from penstock.storage.streams.ids import MAX, ZERO
from penstock.storage.streams.stream import Stream

NOTHING: Final = bytes(20)


def of_value(value: Value | None) -> bytes:
    """A digest of 20 bytes; zeros if there is no value."""
    if value is None:
        return NOTHING
    digest = sha1()
    for part in _parts(value):
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.digest()


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
        for pending_slot in group.pel.by_id.walk(ZERO):
            block, slot = pending_slot
            parts += [b"%d" % block.id_at(slot), group.pel.owner_name(pending_slot)]
    return parts


def of_keyspace(keyspace: Keyspace) -> bytes:
    """A digest of 20 bytes that does not depend on the order of the keys; zeros if there are none."""
    total = 0
    for index, db in enumerate(keyspace.databases):
        for key, value in db.values.items():
            hashed = b"%d %d %b %b" % (index, db.expires.get(key, 0), of_value(value), key)
            total ^= int.from_bytes(sha1(hashed).digest(), "big")
    return total.to_bytes(20, "big")
