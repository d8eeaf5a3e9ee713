"""Compression of entries, by the library zstandard: up to 128 at a time, 0.2 us an entry, 0.05 us back.

Compressed are the older entries of each stream (Stream._seal), all entries of a stream that rests, and all but the
newest of one that grows slowly (Packing).

Neighbours have field names, ids and much of their values in common: segments of small JSON values shrink to a quarter
of their size and less, of random bytes to two thirds.
"""

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from zstandard import ZstdCompressor, ZstdDecompressor

    from penstock.storage.streams.segment import Segment

LEVEL: Final = 1
MOST_READY: Final = 32  # segments that are kept as they are sent after they were read, of at most 64 KiB or one entry

REST_MS: Final = 1000  # a stream rests if it got no entry for so long, or up to twice as long
SLOW: Final = 128  # entries: a stream that gets fewer in REST_MS grows slowly
LEAST_SEGMENTS: Final = 128  # as many must wait for the first round: for fewer the library, 3 MB, is not worth it
NEVER_SEEN: Final = -1


class Compressor:
    """Compresses segments, and remembers which of them were read last: those are kept decompressed, too.

    One for all streams of a server, because the library's objects are not for several threads. The library is imported
    when the first segment is compressed: most servers have no stream that is so long.
    """

    __slots__ = ("_compressor", "_decompressor", "_most_ready", "_next", "_ready")

    def __init__(self, most_ready: int = MOST_READY) -> None:
        self._most_ready = most_ready
        self._compressor: ZstdCompressor | None = None  # until it is needed
        self._decompressor: ZstdDecompressor | None = None  # until it is needed
        self._ready: list[Segment] = []  # a ring: `_next` is the one read longest ago
        self._next = 0

    def compressed(self, text: bytes) -> bytes:
        """The text compressed; the text itself where there is no memory for that. O(n)."""
        from zstandard import ZstdCompressor, ZstdError

        try:
            if self._compressor is None:
                self._compressor = ZstdCompressor(level=LEVEL)
            packed = self._compressor.compress(text)
        except (MemoryError, ZstdError):
            return text
        return packed[:-1] + packed[-1:]  # a copy: the library's has been shrunk, and splits the room that is free now

    def expanded(self, packed: bytes) -> bytes:
        """The decompressed text. O(n)."""
        if self._decompressor is None:
            from zstandard import ZstdDecompressor

            self._decompressor = ZstdDecompressor()
        return self._decompressor.decompress(packed)

    def keep_ready(self, segment: "Segment") -> None:
        """A segment was decompressed: drop the decompressed bytes of the one that was read longest ago. O(1)."""
        ready = self._ready
        if len(ready) < self._most_ready:
            ready.append(segment)
            return
        former, ready[self._next] = ready[self._next], segment
        if former.compressed and former is not segment:
            former.forget_ready()
        self._next = (self._next + 1) % self._most_ready


class Growing(Protocol):
    """A stream, as far as it matters here."""

    entries_added: int
    segments: "list[Segment]"

    def compress_next(self, newer: int) -> bool:
        """See Stream.compress_next."""


class Packing:
    """Streams that were noted because they have segments to compress, which is done once they rest or grow slowly.

    Rounds are REST_MS apart. In each, `step` looks at one stream after the other: one that got SLOW entries or more
    since the last round waits for the next one. With each step, a segment of another is compressed: of a stream that
    rests all of them, of one that grows slowly all but the last, which takes further entries.
    """

    __slots__ = ("_growing", "_later", "_least", "_next_ms", "_round")

    def __init__(self, least: int = LEAST_SEGMENTS) -> None:
        self._least = least
        self._round: dict[Growing, int] = {}  # streams, and their entries_added when they were looked at
        self._growing: dict[Growing, int] = {}  # as `_round`; they grow slowly
        self._later: dict[Growing, int] = {}  # for the next round
        self._next_ms = 0  # monotonic

    def note(self, stream: Growing) -> None:
        """A stream has a segment that is to be compressed when it rests. O(1)."""
        if stream not in self._later and stream not in self._round and stream not in self._growing:
            self._later[stream] = NEVER_SEEN

    def forget(self, stream: Growing) -> None:
        """A stream was deleted, and is not to be kept alive. O(1)."""
        self._later.pop(stream, None)
        self._round.pop(stream, None)
        self._growing.pop(stream, None)

    def forget_all(self) -> None:
        """As `forget`, of all streams."""
        self._later, self._round, self._growing = {}, {}, {}

    @property
    def is_behind(self) -> bool:
        """Whether a round is not over."""
        return bool(self._round or self._growing)

    def is_due(self, now_ms: int) -> bool:
        """Whether a step is to be made now. now_ms: of the monotonic clock. O(1); O(LEAST_SEGMENTS) at first."""
        if self.is_behind or now_ms < self._next_ms:
            return self.is_behind
        waiting = 0
        for stream in self._later:
            waiting += len(stream.segments)
            if waiting >= self._least:
                return True
        return False

    def step(self, now_ms: int) -> None:
        """Look at one stream; `is_due` must hold. O(bytes of a segment)."""
        if self._growing:
            stream, seen = self._growing.popitem()
            left = self._growing if stream.compress_next(1) else self._later
            left[stream] = seen
            return
        if not self._round:
            self._round, self._later = self._later, self._round
            self._next_ms = now_ms + REST_MS
            self._least = 0
        stream, seen = self._round.popitem()
        added = stream.entries_added
        if added == seen:
            if stream.compress_next(0):
                self._round[stream] = seen
        elif seen != NEVER_SEEN and 0 < added - seen < SLOW:
            self._growing[stream] = added
        else:
            self._later[stream] = added
