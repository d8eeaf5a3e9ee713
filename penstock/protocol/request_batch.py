"""Batches: consecutive requests of one client that have the same first words and shape, or one request.

A producer's pipeline repeats `XADD key * field value`, a worker's `XACK key group id`, a cache's `GET key`. Such
requests stay one batch from the reader to the place that runs them, where all of them pass together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.native.resp_sizes import request_bytes, words_bytes
from penstock.protocol import reply

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

PREFIX_WORDS: Final = 3  # XADD key *, XACK key group
_STAR_WITHIN: Final = 6  # a `*` among so many words ends the prefix: XADD key MAXLEN ~ length *
_IDMP_AT: Final = 2  # XADD key IDMP producer id *
_IDMP_WORDS: Final = 2  # of each request's own: producer, id
_ID_AT: Final = 2  # XADD key id
ID_WORDS: Final = 1
_ZERO: Final = 48
_NINE: Final = 57
MOST_POSITIONS: Final = 16  # words of a request of which each position is a column
NO_WORDS: Final[list[bytes]] = []
NO_COLUMNS: Final[list[list[bytes]]] = []


class RequestBatch:
    """`count` consecutive requests of `width` words each.

    One request: `prefix` has all its words. Several, of a command with columns: `prefix` has their common first words.
    Behind them are pairs of a word that is the same in all (`names`) and one that may differ (`columns`: a list for
    each position, with a word of each request), or words that may all differ (no names). Several of another command,
    or with very many words: `prefix` has its name, and there are neither names nor columns.

    One request that came alone has its bytes, too, and so may several that have neither names nor columns (`text_of`).

    Between the prefix and the columns XADDs may have words of each request's own (`own`: a list for each position): an
    id; or the two words of IDMP, and then words that are the same in all (`middle`: up to the `*`).

    >>> RequestBatch([b"XACK", b"s", b"g"], [], [[b"1-1", b"2-1"]], 2).request(1)
    [b'XACK', b's', b'g', b'2-1']
    """

    __slots__ = (
        "_requests", "_tails", "_texts", "columns", "count", "middle", "names", "own", "prefix", "text", "width",
    )  # fmt: skip

    def __init__(
        self,
        prefix: list[bytes],
        names: list[bytes],
        columns: list[list[bytes]],
        count: int,
        tails: list[bytes] | None = None,
        requests: list[list[bytes]] | None = None,
        own: list[list[bytes]] = NO_COLUMNS,
        middle: list[bytes] = NO_WORDS,
        texts: list[bytes] = NO_WORDS,
    ) -> None:
        self.prefix = prefix
        self.names = names
        self.columns = columns
        self.count = count
        self.own = own
        self.middle = middle
        self.text = b""
        self._tails = tails
        self._texts = texts
        self._requests = requests
        if count == 1:
            self.width = len(prefix)
        elif requests is not None:
            self.width = len(requests[0])
        else:
            self.width = len(prefix) + len(own) + len(middle) + len(names) + len(columns)

    def become(self, request: list[bytes], text: bytes) -> RequestBatch:
        """Be one request from here on, which came alone, with its bytes. Only for a batch of one."""
        self.prefix = request
        self.width = len(request)
        self.text = text
        return self

    def request(self, at: int) -> list[bytes]:
        """The words of one request. The caller may keep the list and must not change it. O(width)."""
        if self._requests is not None:
            return self._requests[at]
        if not self.columns:
            return self.prefix
        words = self.prefix[:]
        if self.own:
            for column in self.own:
                words.append(column[at])
            words += self.middle
        names = self.names
        for place, column in enumerate(self.columns):
            if names:
                words.append(names[place])
            words.append(column[at])
        return words

    def most_bytes(self) -> int:
        """An upper bound for the size of each request, in bytes of RESP. O(words)."""
        if self._requests is not None:
            return max(map(request_bytes, self._requests))
        longest = [max(column, key=len) for column in self.own + self.columns]
        return request_bytes(self.prefix + self.middle + self.names + longest)

    def text_of(self, at: int) -> bytes:
        """The bytes of one request; empty if they were not kept."""
        return self._texts[at] if self._texts else self.text

    def is_one_repeated(self) -> bool:
        """Whether all its requests have the same words. O(words)."""
        if self._requests is not None:
            return self._requests.count(self._requests[0]) == self.count
        return all(column.count(column[0]) == self.count for column in self.own + self.columns)

    def words_at(self, position: int) -> list[bytes]:
        """The words of all requests at a position behind the prefix; not if there are names. The caller must not change
        the list. O(count)."""
        if self._requests is not None:
            return [request[position] for request in self._requests]
        return self.columns[position - len(self.prefix)]

    def words_from(self, position: int, at: int) -> list[bytes]:
        """The words of one request from a position behind the prefix on; not if there are names. O(width)."""
        if self._requests is not None:
            return self._requests[at][position:]
        columns = self.columns
        return [columns[place][at] for place in range(position - len(self.prefix), len(columns))]

    def tails(self) -> list[bytes]:
        """For each request the bytes of its names and columns, in RESP."""
        if self._tails is None:
            heads = [reply.bulk(name) for name in self.names] or [b""] * len(self.columns)
            parts = [list(map(head.__add__, map(reply.bulk, self.columns[at]))) for at, head in enumerate(heads)]
            self._tails = list(map(b"".join, zip(*parts, strict=True)))
        return self._tails

    def part(self, start: int, stop: int) -> RequestBatch:
        """The requests from one position up to another. O(their number)."""
        count = stop - start
        if count == self.count:
            return self
        if self._requests is not None:
            return same_shape(self._requests[start:stop], self._texts[start:stop])
        if count == 1:
            return one(self.request(start))
        tails = None if self._tails is None else self._tails[start:stop]
        columns = [column[start:stop] for column in self.columns]
        own = [column[start:stop] for column in self.own] if self.own else NO_COLUMNS
        return RequestBatch(self.prefix, self.names, columns, count, tails, None, own, self.middle)

    def after(self, done: int) -> RequestBatch:
        """The batch without its first requests. O(what is left)."""
        return self.part(done, self.count)

    def packed(self) -> list[bytes]:
        """The requests as arrays of bulk strings. O(words)."""
        return [reply.bulks(self.request(at)) for at in range(self.count)]

    def word_bytes(self) -> int:
        """Bytes of the words alone. O(words)."""
        if self._requests is not None:
            total = 0
            for request in self._requests:
                total += bytes_of(request)
            return total
        each = bytes_of(self.prefix)
        if self.count == 1:
            return each
        total = self.count * (each + bytes_of(self.middle) + bytes_of(self.names))
        for column in self.own:
            total += bytes_of(column)
        for column in self.columns:
            total += bytes_of(column)
        return total

    def size(self) -> int:
        """Bytes of the requests as arrays of bulk strings. O(words)."""
        if self.count == 1:
            return request_bytes(self.request(0))
        if self._requests is not None:
            return sum(map(request_bytes, self._requests))
        size = self.count * (len(b"*%d\r\n" % self.width) + words_bytes(self.prefix) + words_bytes(self.middle))
        for column in self.own:
            size += words_bytes(column)
        return size + sum([len(tail) for tail in self.tails()])


def bytes_of(words: list[bytes]) -> int:
    """Bytes of words. O(words)."""
    total: i64 = 0
    for word in words:
        total += len(word)
    return total


def one(request: list[bytes]) -> RequestBatch:
    """A batch of one request."""
    return RequestBatch(request, NO_WORDS, NO_COLUMNS, 1)


def same_shape(requests: list[list[bytes]], texts: list[bytes] = NO_WORDS) -> RequestBatch:
    """A batch of requests that have one name and as many words; the lists are kept. texts: their bytes, or nothing."""
    if len(requests) == 1:
        return one(requests[0])
    name = requests[0][:1]
    return RequestBatch(name, NO_WORDS, NO_COLUMNS, len(requests), None, requests, NO_COLUMNS, NO_WORDS, texts)


COLUMNS: Final = 1
REQUESTS: Final = 2
OWN: Final = 4
POSITIONS: Final = 8
"""Which neighbours of a command are a batch, if they have as many words; a command's shape is a sum of these.

COLUMNS: those with an equal prefix, and behind it columns; with OWN, columns also where words of each request's own
come before them: an id behind the key, or two words behind an IDMP. POSITIONS: those that have the same name, with a
column for each word behind it. REQUESTS: those that have the same name, if they fit neither; such a command may be run
in a row, however its batch is kept."""


def layout(request: list[bytes], shape: int) -> tuple[int, int, int]:
    """Of a request in a batch with columns: how many words are the prefix, how many behind it are its own, and how many
    come before its columns. (0, 0, 0): it stays alone.

    Words between its own and the columns are the batch's middle.

    >>> layout([b"XADD", b"key", b"MAXLEN", b"~", b"9", b"*", b"field", b"value"], COLUMNS | OWN)
    (6, 0, 6)
    >>> layout([b"XADD", b"key", b"5-1", b"field", b"value"], COLUMNS | OWN)
    (2, 1, 3)
    >>> layout([b"XADD", b"key", b"IDMP", b"producer", b"id", b"*", b"field", b"value"], COLUMNS | OWN)
    (3, 2, 6)
    """
    if shape & OWN and len(request) > _ID_AT + ID_WORDS + 1:
        if is_id(request[_ID_AT]):
            before = _ID_AT + ID_WORDS
            return (0, 0, 0) if (len(request) - before) & 1 else (_ID_AT, ID_WORDS, before)
        if request[_IDMP_AT].upper() == b"IDMP":
            own_from = _IDMP_AT + 1
            behind_own = own_from + _IDMP_WORDS
            if b"*" not in request[behind_own : _STAR_WITHIN + own_from]:
                return 0, 0, 0
            before = request.index(b"*", behind_own) + 1
            behind = len(request) - before
            return (0, 0, 0) if behind < 2 or behind & 1 else (own_from, _IDMP_WORDS, before)
    width = prefix_words(request)
    return width, 0, width


def is_id(word: bytes) -> bool:
    """Whether a word behind the key is an id, if it is a word of an XADD: no option begins with a digit."""
    return len(word) > 0 and _ZERO <= word[0] <= _NINE


def fit_columns(first: list[bytes], second: list[bytes], shape: int) -> bool:
    """Whether two requests of as many words are of one batch with columns.

    >>> fit_columns([b"XACK", b"key", b"group", b"1-1"], [b"XACK", b"key", b"other", b"1-1"], COLUMNS)
    False
    """
    if len(first) < PREFIX_WORDS or first[1] != second[1]:
        return False
    width, own, before = layout(first, shape)
    if width == 0 or (own == ID_WORDS and not is_id(second[width])):
        return False
    for at in range(before, len(first) - 1, 2):
        if first[at] != second[at]:
            return False
    behind_own = width + own
    return first[:width] == second[:width] and first[behind_own:before] == second[behind_own:before]


def prefix_words(request: list[bytes]) -> int:
    """How many words of a request are the prefix of its batch with columns; 0 if the words behind them fit none."""
    width = PREFIX_WORDS
    if b"*" in request[PREFIX_WORDS - 1 : _STAR_WITHIN]:
        width = request.index(b"*", PREFIX_WORDS - 1) + 1
    behind = len(request) - width
    return 0 if behind < 1 or (behind > 1 and behind & 1) else width


def batches_from(batches: list[RequestBatch], place: int, at: int) -> list[RequestBatch]:
    """The batches from a place on, without the first requests of the first of them."""
    first = batches[place]
    rest = batches[place + 1 :]
    return rest if at == first.count else [first.after(at), *rest]
