"""Reads requests from a client's bytes: one reader with three parsers.

strict_parser    plain Python, word by word: reads any input at any split, and owns every error text; the oracle.
native_parser    byte loops that mypyc turns into C: how the compiled build reads ordinary input.
line_parser      splits and slices: how the uncompiled build reads ordinary input.

A fast parser reads the whole, ordinary requests at the start of the unread bytes. The strict parser reads all others:
errors, inline requests, words of other types, huge counts and sizes, requests that are not whole, and everything before
authentication.
"""

from typing import Final

from penstock.errors import ProtocolError
from penstock.native.build import IS_COMPILED
from penstock.protocol import native_parser
from penstock.protocol.limits import BLOCK, Limits
from penstock.protocol.native_parser import LONGEST_KEPT
from penstock.protocol.request_batch import NO_WORDS, RequestBatch, one
from penstock.protocol.strict_parser import StrictParser

if not IS_COMPILED:
    from penstock.protocol import line_parser  # its tables take half a megabyte

NOTHING: Final[list[RequestBatch]] = []
NO_BYTES: Final = bytearray()  # never changed
MOST_SIZED: Final = 64  # of more requests the bytes are estimated by their number: measuring takes as long as parsing
NEW_ENTRIES: Final = b">"  # the last word of a worker's XREADGROUP
STRICT_BLOCK: Final = 16 * 1024  # bytes that the strict parser gets at a time; it gives back those behind a request


class RequestReader:
    """Bytes in (`feed`), batches of requests out (`take`), `put_back` for those that were not handled.

    `text[_at:]` and then `_later` are unread. `_ready` are batches that were parsed and not taken; their `_ready_size`
    bytes count as unread. While `_strict` is inside a request it gets the bytes; it also gets the next `_strict_size`
    bytes, which a fast parser could not read. `_is_plain`: there is nothing but `text`.

    `_single` is each request that comes alone, one after the other: it is not kept beyond the next `take`.

    `_repeated` is the last read of new entries, if nothing came with it, and `_repeated_text` the bytes that asked for
    it: a worker asks for the same again and again.

    `_strict` and `_later` are made when they are needed: many clients never do.

    limits: those that hold; `use_limits` gives others.
    pending: bytes fed and not taken; of many requests that were put back, an estimate by their number. Whole words of
    an unfinished request count as taken, as in Redis.
    shapes: of the batches of commands that have one, by their names in upper and lower case.
    """

    __slots__ = (
        "_at", "_failure", "_is_plain", "_later", "_ready", "_ready_size", "_repeated", "_repeated_text", "_shapes",
        "_single", "_strict", "_strict_size", "_taken", "_taken_size", "limits", "pending", "text",
    )  # fmt: skip

    def __init__(self, limits: Limits, shapes: dict[bytes, int] | None = None) -> None:
        self.limits = limits
        self._shapes: dict[bytes, int] = {} if shapes is None else shapes
        self._strict: StrictParser | None = None  # until it is needed
        self._single = one(NO_WORDS)
        self.text = b""
        self._at = 0
        self._later = NO_BYTES
        self._ready = NOTHING
        self._ready_size = 0
        self._taken = NOTHING
        self._taken_size = 0
        self._repeated: RequestBatch | None = None
        self._repeated_text = b""
        self._strict_size = 0
        self._failure: bytes | None = None
        self._is_plain = True
        self.pending = 0

    @property
    def is_amid(self) -> bool:
        """Whether a request, or a part of one, has been fed and not taken."""
        return self.pending > 0 or (self._strict is not None and self._strict.is_amid)

    def use_limits(self, limits: Limits) -> None:
        """Apply other limits from the next word on."""
        self.limits = limits
        if self._strict is not None:
            self._strict.limits = limits

    def feed(self, data: bytes) -> None:
        """Add what a client sent; ProtocolError with an empty text if too many bytes are unread (Redis closes)."""
        if self._is_plain and not self.pending:
            self.text = data
            self._at = 0
            self.pending = len(data)
        elif self._failure is None:
            if self._later:
                self._later += data
            else:
                self._later = bytearray(data)
            self._is_plain = False
            self._count_pending()
        if self.pending > self.limits.query_buffer_limit:
            raise self._failed(b"")

    def take(self, limit: int) -> list[RequestBatch]:
        """The next requests: `limit` or a few more, because batches are not cut; none if more bytes are needed.

        ProtocolError if the bytes are no request; every later call raises it again. Before authentication one request
        at a time, because AUTH changes the limits.
        """
        if self._is_plain:
            if not self.pending:
                return NOTHING
            if self.limits.at_a_glance:
                found = self._take_fast(limit)
                if found:
                    return found
        if self._ready:
            return self._take_ready(limit)
        if self._failure is not None:
            raise ProtocolError(self._failure)
        self._is_plain = False
        strict = self._strict
        if strict is None:
            strict = self._strict = StrictParser(self.limits)
        try:
            while True:
                if strict.is_amid:
                    request = strict.next()
                    if request is not None:
                        given_back = strict.give_back()
                        self._at -= given_back
                        self._strict_size += given_back if self._strict_size else 0
                        self._update_pending()
                        return [one(request)]
                elif not self._strict_size and self.limits.at_a_glance:
                    found = self._take_fast(limit)
                    if found:
                        self._update_pending()
                        return found
                block = self._block(STRICT_BLOCK)
                if not block:
                    self._update_pending()
                    return NOTHING
                strict.feed(block)
                self._at += len(block)
                self._strict_size = max(self._strict_size - len(block), 0)
        except ProtocolError as error:
            raise self._failed(error.text) from None

    def _update_pending(self) -> None:
        """Compute `_is_plain` and `pending`."""
        is_amid = self._strict is not None and self._strict.is_amid
        self._is_plain = not (self._later or self._ready or self._strict_size or is_amid or self._failure is not None)
        self._count_pending()

    def _count_pending(self) -> None:
        unread = len(self.text) - self._at + len(self._later)
        self.pending = self._ready_size + unread
        if self._strict is not None:
            self.pending += self._strict.unread

    def rest(self) -> None:
        """All that came was handled: let go of it; to be called if `text` is longer than LONGEST_KEPT.

        O(1), but for freeing it.
        """
        if not self.pending:
            self.text = b""
            self._at = 0
            self._taken = NOTHING
            self._single.become(NO_WORDS, b"")

    def put_back(self, batches: list[RequestBatch]) -> None:
        """Return batches that the last `take` gave; the next `take` gives them first."""
        count = count_of(batches)
        if count <= MOST_SIZED:
            size = sum([batch.size() for batch in batches])
        else:
            size = self._taken_size * count // count_of(self._taken)
        self._ready_size += size
        self._ready = batches + self._ready
        self._is_plain = False
        self._count_pending()

    # -- the fast parsers -------------------------------------------------------------------------------------------

    def _take_fast(self, limit: int) -> list[RequestBatch]:
        """Whole ordinary requests at the start of the unread bytes; none if the strict parser must read on."""
        if self._at == len(self.text) and not self._move_up():
            return NOTHING
        text, start = self.text, self._at
        if text == self._repeated_text and not start and self._repeated is not None:
            self._taken, self._taken_size = [self._repeated], len(text)
            self._at, self.pending = len(text), 0
            return self._taken
        found: list[RequestBatch] = []
        if IS_COMPILED:
            self._at = native_parser.batches(text, start, limit, self._shapes, found, self._single)
        else:
            request = None if start else line_parser.single_request(text)
            if request is not None:
                found.append(self._single.become(request, text))
                self._at = len(text)
            else:
                self._at = line_parser.batches(text, start, limit, self._shapes, found, self._single)
                if not found:  # a second look at these bytes would take as long
                    self._strict_size = min(len(text) - start, BLOCK)
        self.pending = len(text) - self._at
        self._taken, self._taken_size = found, self._at - start
        if len(found) == 1 and found[0] is self._single:
            single = found[0]
            if single.prefix[-1] == NEW_ENTRIES:
                self._keep_read(single)
        return found

    def _keep_read(self, single: RequestBatch) -> None:
        """Keep the read of new entries that is all that has come, if it is short."""
        if len(single.text) <= LONGEST_KEPT:
            self._repeated, self._repeated_text = single, single.text
            self._single = one(NO_WORDS)

    def _take_ready(self, limit: int) -> list[RequestBatch]:
        ready = self._ready
        count = stop = 0
        while stop < len(ready) and count < limit:
            count += ready[stop].count
            stop += 1
        self._taken, self._ready = ready[:stop], ready[stop:]
        if not self._ready:
            self._taken_size = self._ready_size
        elif count <= MOST_SIZED:
            self._taken_size = sum([batch.size() for batch in self._taken])
        else:
            self._taken_size = self._ready_size * count // count_of(ready)
        self._ready_size -= self._taken_size
        self._update_pending()
        return self._taken

    def _move_up(self) -> bool:
        """Make `_later` the text; whether there was any."""
        if not self._later:
            return False
        self.text = bytes(self._later)
        self._later = NO_BYTES
        self._at = 0
        return True

    def _block(self, most: int) -> bytes:
        """The next unread bytes, which stay unread; empty if there are none."""
        if self._at == len(self.text) and not self._move_up():
            return b""
        if self._at == 0 and len(self.text) <= most:
            return self.text
        return self.text[self._at : self._at + most]

    def _failed(self, text: bytes) -> ProtocolError:
        self._failure = text
        self._is_plain = False
        self._ready = NOTHING
        self._ready_size = 0
        self.text = b""
        self._at = 0
        self._later = NO_BYTES
        self._strict = None
        self.pending = 0
        return ProtocolError(text)


def count_of(batches: list[RequestBatch]) -> int:
    """How many requests batches have."""
    return sum([batch.count for batch in batches])
