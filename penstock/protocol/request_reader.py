"""Requests out of a client's bytes, at hiredis's speed where they are ordinary.

hiredis reads *replies*. Arrays of bulk strings are replies too, but hiredis also takes what Redis refuses: words of
another type (`+PING`, `=8`, `:5`, `*1` inside), other aggregates (`>1`, `~1`, `|1`), null arrays; and it reserves
memory by the announced count. So it is given whole requests only, and whatever it returns is compared with the bytes
before anyone sees it (`as_sent`). All the rest goes to the plain reader: errors, inline lines, words with odd types,
huge counts, words that span two blocks, and everything before authentication.

Two sorts of input are so frequent that they have ways of their own: a request that comes alone (cut.py), and a pipeline
of requests that begin alike (alike.py).
"""

from collections import deque
from itertools import chain
from typing import Final, cast

import hiredis

from penstock.errors import ProtocolError
from penstock.protocol import native_parser, reply
from penstock.protocol.limits import BLOCK, Limits
from penstock.protocol.lone_request import IS_COMPILED, one_request
from penstock.protocol.request_batch import NO_SHAPE, Alike, alike, shape_of
from penstock.protocol.strict_parser import WEB_INITIALS, PlainReader, is_web

# Every digit becomes 0 and every type but `*` and `$` becomes +, so that one search finds them all.
_KINDS: Final = bytes.maketrans(b"0123456789=(>~|-:,#_%!", b"0000000000++++++++++++")
_ODD_TYPE: Final = b"\r\n+"
_ODD_WORDS: Final = (b"\r\n$1\r\n>\r\n", b"\r\n$1\r\n+\r\n", b"\r\n$1\r\n-\r\n")
_NEXT_REQUEST: Final = b"\r\n*0"
_HUGE_COUNT: Final = b"*00000"  # hiredis would reserve 80 KB and more for the words of such an array
_STAR: Final = ord("*")
_CR: Final = ord("\r")
_LISTS: Final = {list}

_PROBE: Final = b"*1\r\n$5\r\nprobe\r\n"
_PROBED: Final = [b"probe"]
_NOT_YET: Final = object()


class RequestReader:
    """Bytes in (`feed`), requests out (`next`, one by one, so that each is judged by the limits of its moment).

    Input is read in blocks of at most 64 KiB. `_text[_at:]` and then `_later` are unread. A block's whole requests
    wait in `_ready`, and its bytes, `_ready_size`, count as unread until the last of them has been taken. While
    `_plain` is amid a request it gets the blocks; `_is_odd` keeps it at a block that hiredis could not read.
    """

    __slots__ = (
        "_at",
        "_failure",
        "_fed",
        "_hiredis",
        "_is_cut",
        "_is_odd",
        "_later",
        "_limits",
        "_may_be_web",
        "_plain",
        "_ready",
        "_ready_size",
        "_shape",
        "_text",
        "is_idle",
    )

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._plain = PlainReader(limits)
        self._hiredis = hiredis.Reader(notEnoughData=_NOT_YET)
        self._text = b""
        self._at = 0
        self._later = bytearray()
        self._ready: deque[list[bytes]] = deque()
        self._ready_size = 0
        self._is_odd = False
        self._is_cut = False
        self._may_be_web = False
        self._fed = 0
        self._failure: bytes | None = None
        self._shape = NO_SHAPE  # of the requests that were alike last
        self.is_idle = False  # known to be: nothing waits, and the next byte begins a request

    @property
    def pending(self) -> int:
        """Bytes fed and not yet read; the whole words of an unfinished request are read, as in Redis."""
        return self._ready_size + self._plain.unread + len(self._text) - self._at + len(self._later)

    @property
    def is_amid(self) -> bool:
        """Is anything left of what was fed: a whole request, or a part of one?"""
        return self.pending > 0 or self._plain.is_amid

    def feed(self, data: bytes) -> None:
        """Take what a client sent; ProtocolError with an empty text when too much of it waits (Redis closes)."""
        self.is_idle = False
        if self._failure is not None:
            return
        self._fed += len(data)
        if self._at == len(self._text) and not self._later:
            self._text = data
            self._at = 0
            if not self._ready_size and not self._plain.is_amid and len(data) <= self._limits.query_buffer_limit:
                return
        else:
            self._later += data
        if self.pending > self._limits.query_buffer_limit:
            raise self._failed(b"")

    def only(self, data: bytes) -> list[bytes] | None:
        """The one ordinary request that `data` is, where the reader is idle; None where it is not: nothing was taken.

        What a client sends that waits for each reply.
        """
        if not self.is_idle or len(data) > self._limits.at_a_glance:
            return None
        request = one_request(data)
        if request is None or (request[0][:2] in WEB_INITIALS and is_web(request[0])):
            return None
        self._fed += len(data)
        return request

    def alike(self, data: bytes, wanted: frozenset[bytes]) -> Alike | None:
        """The requests that `data` begins with, if they are alike (alike.py) and the reader is idle.

        They count as read. What follows them, from `size` on, is for `at_once` or `feed`.
        """
        if not self.is_idle or len(data) > self._limits.at_a_glance:
            return None
        return self._alike_in(data, wanted)

    def next_alike(self, wanted: frozenset[bytes]) -> Alike | None:
        """As `alike`, of the bytes that were fed and wait: a part of a pipeline too long to come at once.

        They count as read, unless `put_back_alike` is called next.
        """
        if self._ready or self._plain.is_amid or self._failure is not None or not self._limits.at_a_glance:
            return None
        found = self._alike_in(self._block(), wanted)
        if found is not None:
            self._at += found.size
        return found

    def _alike_in(self, data: bytes, wanted: frozenset[bytes]) -> Alike | None:
        if not data.startswith(self._shape.start):
            self._shape = shape_of(data, wanted)
        return alike(data, self._shape)

    def put_back_alike(self, requests: Alike) -> None:
        """What `next_alike` just gave is to be read again."""
        self._at -= requests.size

    def at_once(self, data: bytes) -> list[list[bytes]]:
        """What `feed` and `next` come to where nothing waits and all of `data` is ordinary whole requests.

        Empty where it is not: then nothing was taken.
        """
        if self._ready or self._later or self._at != len(self._text) or self._plain.is_amid or len(data) > BLOCK:
            return []
        if self._failure is not None or self._is_cut or len(data) > self._limits.query_buffer_limit:
            return []
        if IS_COMPILED and self.is_idle and len(data) <= self._limits.at_a_glance:
            requests = native_parser.requests(data)
            if requests and not any(words[0][:2] in WEB_INITIALS and is_web(words[0]) for words in requests):
                self._fed += len(data)
                return requests
        self._text, self._at = data, 0
        request = self._read_quickly(data)
        self._is_odd = False
        if (
            request is not None
            and self._at == len(data)
            and not self._may_be_web
            and (request[0][:2] not in WEB_INITIALS or not is_web(request[0]))
        ):
            self._fed += len(data)
            self.is_idle = True
            return [request, *self.rest(len(self._ready))]
        self._text, self._at = b"", 0
        self._ready.clear()
        self._ready_size = 0
        self._is_cut = False
        return []

    def next(self) -> list[bytes] | None:
        """The next whole request, never empty, or None: more bytes are needed.

        ProtocolError where no request can be read; it is raised again whenever the next one is asked for.
        """
        if self._ready:
            request: list[bytes] | None = self._ready.popleft()
            if not self._ready:
                self._ready_size = 0
        elif self._failure is not None:
            raise ProtocolError(self._failure)
        else:
            try:
                request = self._read()
            except ProtocolError as error:
                raise self._failed(error.text) from None
        if request is not None and request[0][:2] in WEB_INITIALS and is_web(request[0]):
            raise self._failed(b"")
        return request

    def rest(self, most: int) -> list[list[bytes]]:
        """The requests that were read together with the last one, `most` at the most; what `next` would return."""
        ready = self._ready
        if not ready or self._may_be_web:
            return []
        if len(ready) <= most:
            taken = list(ready)
            ready.clear()
            self._ready_size = 0
            return taken
        return [ready.popleft() for _ in range(most)]

    def put_back(self, requests: list[list[bytes]]) -> None:
        """Requests that `rest` gave are to be read again."""
        self.is_idle = False
        if not self._ready:
            self._ready_size = sum(map(size_of, requests))
        self._ready.extendleft(reversed(requests))

    def _failed(self, text: bytes) -> ProtocolError:
        self._failure = text
        self._ready.clear()
        self._ready_size = 0
        self._text = b""
        self._at = 0
        self._later = bytearray()
        self._plain = PlainReader(self._limits)
        return ProtocolError(text)

    def _read(self) -> list[bytes] | None:
        plain = self._plain
        while True:
            if plain.is_amid:
                request = plain.next()
                if request is not None:
                    if not self._is_odd:
                        self._at -= plain.give_back()
                    return request
            block = self._block()
            if not block:
                return None
            if plain.is_amid or self._is_cut:
                self._is_odd = self._is_cut = False
            else:
                request = self._read_quickly(block)
                if request is not None:
                    return request
            plain.feed(block)
            self._at += len(block)

    def _block(self) -> bytes:
        """The next bytes to read, not yet taken; empty when there are none."""
        if self._at == len(self._text):
            if not self._later:
                return b""
            self._text = bytes(self._later[:BLOCK])
            del self._later[:BLOCK]
            self._at = 0
        if self._at == 0 and len(self._text) <= BLOCK:
            return self._text
        return self._text[self._at : self._at + BLOCK]

    def _read_quickly(self, block: bytes) -> list[bytes] | None:
        """Take the whole requests at the head of a block, and return the first; None takes nothing.

        Sets _is_odd if the plain reader must read all of the block, _is_cut if it goes on behind what was taken.
        """
        self._is_odd = True
        if not self._limits.authenticated or self._limits.max_bulk_len < BLOCK:
            return None
        kinds = block.translate(_KINDS)
        if kinds[0] != _STAR or kinds.find(_HUGE_COUNT) >= 0:
            return None
        last_at = kinds.rfind(_NEXT_REQUEST) + 2
        try:
            request = self._one(block, kinds) if last_at == 1 else self._several(block, kinds, last_at)
        except (hiredis.ProtocolError, TypeError):  # the second: a map whose key is an array
            request = None
        if request is None:
            self._hiredis = hiredis.Reader(notEnoughData=_NOT_YET)  # it may keep bytes of what it could not read
        return request

    def _one(self, block: bytes, kinds: bytes) -> list[bytes] | None:
        """The request that a block seems to be, the commonest case by far."""
        reader = self._hiredis
        reader.feed(block)
        reply: object = reader.gets()
        if reply is _NOT_YET:
            self._is_odd = False
            return None
        if reader.has_data() or type(reply) is not list or not one_as_sent(block, kinds, reply):
            return None
        self._is_odd = self._may_be_web = False
        self._at += len(block)
        return reply

    def _several(self, block: bytes, kinds: bytes, last_at: int) -> list[bytes] | None:
        """The first of the requests in a block whose last one, whole or not, seems to begin at last_at."""
        reader = self._hiredis
        reader.feed(block, 0, last_at)
        replies: list[object] = list(iter(reader.gets, _NOT_YET))
        reader.feed(_PROBE)
        if reader.gets() != _PROBED:
            return None  # hiredis was amid something, which took the probe: no request begins at last_at
        reader.feed(block, last_at, len(block) - last_at)
        last: object = reader.gets()
        is_cut = last is _NOT_YET
        if is_cut:
            self._hiredis = hiredis.Reader(notEnoughData=_NOT_YET)
            block = block[:last_at]
            kinds = kinds[:last_at]
        elif reader.has_data():
            return None
        else:
            replies.append(last)
        if set(map(type, replies)) != _LISTS:
            return None
        requests = cast(list[list[bytes]], replies)
        if not all_as_sent(block, kinds, requests):
            return None
        self._is_odd = False
        self._is_cut = is_cut
        self._at += len(block)
        self._may_be_web = _may_be_web(block)
        self._ready.extend(requests)
        request = self._ready.popleft()
        self._ready_size = len(block) if self._ready else 0
        return request


def _may_be_web(block: bytes) -> bool:
    """Whether a word of some request in a block begins like those that only browsers send first."""
    lowered = block.lower()
    return b"\r\npost" in lowered or b"\r\nhost:" in lowered


def one_as_sent(block: bytes, kinds: bytes, request: list[bytes]) -> bool:
    """Is `block` this request, just as Redis wants it written? See all_as_sent; hiredis read nothing else in it."""
    try:
        text = b"".join(request)
    except TypeError:
        return False
    if not request:
        return False
    if _CR not in text and block.count(b"\r\n") == 2 * len(request) + 1 and _has_no_odd_type(block, kinds, request):
        return True
    return packed(request) == block


def all_as_sent(block: bytes, kinds: bytes, requests: list[list[bytes]]) -> bool:
    """Is `block` these requests and no other byte, just as Redis wants them written? (`kinds`: see _KINDS.)

    hiredis read them, found `*` first, and checked every number and the line end behind it; it looked neither at the
    two bytes behind a word, nor refused other types. If no word has a CR, then only those lines and word ends have
    line ends, so as many as there should be means that every word has its own; so every header stands behind one,
    and a header of another type would show. If a word has a CR or begins like a header, pack and compare: three times
    the price, a third of the plain reader's.
    """
    words = list(chain.from_iterable(requests))
    try:
        text = b"".join(words)
    except TypeError:
        return False
    if not all(requests):
        return False
    if (
        _CR not in text
        and block.count(b"\r\n") == 2 * len(words) + len(requests)
        and _has_no_odd_type(block, kinds, words)
    ):
        return True
    return b"".join([packed(request) for request in requests]) == block


def _has_no_odd_type(block: bytes, kinds: bytes, words: list[bytes]) -> bool:
    """Whether every line that begins like a header of another type is a word that stream commands often have.

    (Behind a word `$1` such a line could be a header after all.)
    """
    odd = kinds.count(_ODD_TYPE)
    if not odd:
        return True
    return odd == sum(map(block.count, _ODD_WORDS)) and b"$1" not in words


def packed(request: list[bytes]) -> bytes:
    """A request written as an array of bulk strings."""
    return reply.bulks(request)


class CountingReader(RequestReader):
    """A reader of a log: it also says where the last request that it returned ended.

    `offset` counts bytes since the first one fed; behind it are bytes that were not read as a request.
    """

    __slots__ = ("_into_block", "offset")

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self.offset = 0
        self._into_block = 0

    def next(self) -> list[bytes] | None:
        request = super().next()
        if request is None:
            return None
        if self._ready:
            # What waits was written the one way that hiredis accepts, so its size can be computed.
            self._into_block += size_of(request)
            self.offset = self._fed - self.pending + self._into_block
        else:
            self._into_block = 0
            self.offset = self._fed - self.pending
        return request


def size_of(request: list[bytes]) -> int:
    """len(packed(request)), without packing it."""
    return sum([len(word) + len(str(len(word))) + 5 for word in request]) + len(str(len(request))) + 3
