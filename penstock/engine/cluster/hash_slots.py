"""Which of the 16384 slots a key is in (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/)."""

from binascii import crc_hqx
from typing import Final

SLOTS: Final = 16384
_LETTERS: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"


def slot_of(key: bytes) -> int:
    """The slot, by the part between the first `{` and the next `}` if there is something between them.

    >>> slot_of(b"foo"), slot_of(b"{foo}bar"), slot_of(b"{}foo"), slot_of(b"foo{{bar}}zap"), slot_of(b"")
    (12182, 12182, 9500, 4015, 0)
    """
    start = key.find(b"{")
    if start >= 0:
        end = key.find(b"}", start + 1)
        if end > start + 1:
            key = key[start + 1 : end]
    return crc_hqx(key, 0) % SLOTS  # CRC16/XMODEM


class SlotTags:
    """For each slot four letters that are in it. Made by a node, for CLUSTERSCAN: other servers need no table.

    The checksum of a text is that of its first half before zeros, xor that of its second half behind zeros: about one
    of twelve first halves has a second one.

    >>> tags = SlotTags()
    >>> tags.of(0), slot_of(tags.of(0)), slot_of(tags.of(16383))
    (b'01s6', 0, 16383)
    """

    __slots__ = ("_ends", "_pairs")

    def __init__(self) -> None:
        self._pairs = [bytes((first, second)) for first in _LETTERS for second in _LETTERS]
        self._ends = {crc_hqx(b"\0\0" + pair, 0) % SLOTS: pair for pair in self._pairs}

    def of(self, slot: int) -> bytes:
        for start in self._pairs:
            end = self._ends.get(slot ^ crc_hqx(start + b"\0\0", 0) % SLOTS)
            if end is not None:
                return start + end
        raise AssertionError("each slot has a tag of four letters")


def ranges(owned: bytearray) -> list[tuple[int, int]]:
    """The first and last slot of each run of bytes that are not 0."""
    found: list[tuple[int, int]] = []
    at = 0
    while at < len(owned):
        if not owned[at]:
            at += 1
            continue
        end = owned.find(0, at)
        end = len(owned) if end < 0 else end
        found.append((at, end - 1))
        at = end
    return found
