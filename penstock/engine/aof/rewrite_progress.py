"""How far a fresh base of the log is: counted where its lines are made, reported by the child that writes it."""

from struct import Struct
from typing import Final

from penstock.storage.keyspace import Keyspace
from penstock.storage.streams.stream import Stream

_LAYOUT: Final = Struct("<6Q")

PACKED_BYTES: Final = _LAYOUT.size


class Progress:
    """`keys` of `keys_total` are begun, `steps` of `steps_total` done: an entry, a pending entry, any other value.

    `written` bytes have been; `copied` are the bytes of memory that the child does not share with the server any more,
    since one of the two has written to them.
    """

    __slots__ = ("copied", "keys", "keys_total", "steps", "steps_total", "written")

    def __init__(self) -> None:
        self.keys = 0
        self.keys_total = 0
        self.steps = 0
        self.steps_total = 0
        self.written = 0
        self.copied = 0

    def expect(self, keyspace: Keyspace) -> None:
        """Count the keys and the steps of a keyspace."""
        for db in keyspace.databases:
            self.keys_total += len(db.values)
            for value in db.values.values():
                self.steps_total += steps_of(value) if isinstance(value, Stream) else 1

    @property
    def share(self) -> float:
        """The part that is done, from 0 to 1."""
        return min(1.0, self.steps / self.steps_total) if self.steps_total else 0.0

    def packed(self) -> bytes:
        """PACKED_BYTES bytes."""
        return _LAYOUT.pack(self.keys, self.keys_total, self.steps, self.steps_total, self.written, self.copied)


def unpacked(report: bytes) -> Progress:
    """The progress that `packed` made these bytes of."""
    progress = Progress()
    numbers: tuple[int, int, int, int, int, int] = _LAYOUT.unpack(report)
    progress.keys, progress.keys_total, progress.steps, progress.steps_total = numbers[:4]
    progress.written, progress.copied = numbers[4:]
    return progress


def steps_of(stream: Stream) -> int:
    return stream.length + sum(group.pel.count for group in stream.groups.values())
