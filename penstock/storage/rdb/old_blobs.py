"""The blobs of older versions, and that of sets of integers: ziplists, zipmaps, intsets. Read, and intsets written."""

from itertools import pairwise
from typing import Final

from penstock.storage.rdb.errors import BadRdb

ZIPLIST_HEADER: Final = 10  # bytes: size, offset of the last entry, count
ZIPLIST_END: Final = 0xFF
LONG: Final = 0xFE  # a length of four bytes follows
UNCOUNTED: Final = 65535

ZIPMAP_END: Final = 0xFF
ZIPMAP_UNCOUNTED: Final = 0xFE

INTSET_HEADER: Final = 8  # bytes: width, count


def ziplist(blob: bytes) -> list[bytes]:
    """The entries of a ziplist as texts.  O(n)."""
    last = len(blob) - 1
    if last < ZIPLIST_HEADER or int.from_bytes(blob[:4], "little") != last + 1 or blob[last] != ZIPLIST_END:
        raise BadRdb("a ziplist has another size than it says")
    found: list[bytes] = []
    at = last_at = ZIPLIST_HEADER
    before = 0  # bytes of the entry before
    while at < last:
        start = at
        if blob[at] == LONG:
            length_before = int.from_bytes(blob[at + 1 : at + 5], "little")
            at += 5
        else:
            length_before = blob[at]
            at += 1
        if length_before != before or at >= last:
            raise BadRdb("an entry of a ziplist has another length than stands behind it")
        at, text = _ziplist_value(blob, at)
        if at > last:
            raise BadRdb("an entry of a ziplist is cut off")
        found.append(text)
        before, last_at = at - start, start
    count = int.from_bytes(blob[8:10], "little")
    if count not in (len(found), UNCOUNTED):
        raise BadRdb(f"a ziplist says that it has {count} entries, and has {len(found)}")
    if int.from_bytes(blob[4:8], "little") != last_at:
        raise BadRdb("a ziplist's last entry is elsewhere than it says")
    return found


def _ziplist_value(blob: bytes, at: int) -> tuple[int, bytes]:
    """Where the entry with its encoding at a place ends, and its text; what is cut off ends behind the blob."""
    first = blob[at]
    if first < 0x40:
        stop = at + 1 + first
        return stop, blob[at + 1 : stop]
    if first < 0x80:
        stop = at + 2 + ((first & 63) << 8 | blob[at + 1])
        return stop, blob[at + 2 : stop]
    if first == 0x80:
        stop = at + 5 + int.from_bytes(blob[at + 1 : at + 5], "big")
        return stop, blob[at + 5 : stop]
    if 0xF1 <= first <= 0xFD:
        return at + 1, b"%d" % ((first & 15) - 1)
    width = {0xC0: 2, 0xD0: 4, 0xE0: 8, 0xF0: 3, 0xFE: 1}.get(first, 0)
    if not width:
        raise BadRdb(f"the byte {first} begins no entry of a ziplist")
    stop = at + 1 + width
    return stop, b"%d" % int.from_bytes(blob[at + 1 : stop], "little", signed=True)


def zipmap(blob: bytes) -> list[bytes]:
    """The fields and values of a zipmap, in turn."""
    last = len(blob) - 1
    if last < 1 or blob[last] != ZIPMAP_END:
        raise BadRdb("a zipmap has no end")
    found: list[bytes] = []
    at = 1
    while at < last:
        for unused_follows in (False, True):
            size = blob[at] if at < last else ZIPMAP_END
            at += 1
            if size == LONG:
                size = int.from_bytes(blob[at : at + 4], "little")
                at += 4
                if size < LONG:
                    raise BadRdb("a zipmap has a length that is longer than it must be")
            elif size == ZIPMAP_END:
                raise BadRdb("a zipmap has a field without a value")
            unused = 0
            if unused_follows:
                unused = blob[at] if at < last else 0
                at += 1
            if at + size + unused > last:
                raise BadRdb("a zipmap's text is cut off")
            found.append(blob[at : at + size])
            at += size + unused
    if blob[0] != ZIPMAP_UNCOUNTED and blob[0] * 2 != len(found):
        raise BadRdb(f"a zipmap says that it has {blob[0]} fields, and has {len(found) // 2}")
    return found


def intset(blob: bytes) -> list[bytes]:
    """The members of a set of integers as texts, in ascending order."""
    width = int.from_bytes(blob[:4], "little")
    count = int.from_bytes(blob[4:8], "little")
    if width not in (2, 4, 8) or len(blob) != INTSET_HEADER + width * count:
        raise BadRdb("a set of integers has another size than it says")
    numbers = [
        int.from_bytes(blob[at : at + width], "little", signed=True) for at in range(INTSET_HEADER, len(blob), width)
    ]
    if any(one >= other for one, other in pairwise(numbers)):
        raise BadRdb("a set of integers is not in ascending order")
    return [b"%d" % number for number in numbers]


def packed_intset(numbers: list[int]) -> bytes:
    """An intset of ascending numbers, each as wide as the widest needs."""
    widest = max(abs(numbers[0]) - (numbers[0] < 0), abs(numbers[-1]) - (numbers[-1] < 0))
    width = 2 if widest < 1 << 15 else 4 if widest < 1 << 31 else 8
    body = [number.to_bytes(width, "little", signed=True) for number in numbers]
    return width.to_bytes(4, "little") + len(numbers).to_bytes(4, "little") + b"".join(body)
