"""Reads arguments that several stream commands have: ids, ranges, lists of ids, trims.

Which forms an id may have depends on the argument (Redis 8.6.3). Every ReplyError has Redis's text.
"""

from typing import Final

from penstock.engine import arguments, refusals
from penstock.errors import ReplyError
from penstock.storage.streams import ids
from penstock.storage.streams.ids import IdColumns, IdHalves, StreamId
from penstock.storage.streams.trim import ACKNOWLEDGED, DELETE_REFERENCES, KEEP_REFERENCES, Trim

REFERENCE_WORDS: Final = {b"KEEPREF": KEEP_REFERENCES, b"DELREF": DELETE_REFERENCES, b"ACKED": ACKNOWLEDGED}


def stream_id(word: bytes) -> StreamId:
    """An id, not `-` or `+`; a missing sequence number is 0."""
    try:
        return ids.parse(word)
    except ValueError:
        raise refusals.bad_id() from None


def id_halves(word: bytes) -> IdHalves:
    """As `stream_id`."""
    try:
        return ids.parse_halves(word)
    except ValueError:
        raise refusals.bad_id() from None


def stream_ids(texts: list[bytes]) -> list[StreamId]:
    """Ids as `stream_id` reads them; ReplyError if one of them is malformed."""
    try:
        return [ids.parse(text) for text in texts]
    except ValueError:
        raise refusals.bad_id() from None


def id_columns(texts: list[bytes]) -> IdColumns:
    """As `stream_ids`, as columns."""
    try:
        return ids.parse_all(texts)
    except ValueError:
        raise refusals.bad_id() from None


def bounded_id(word: bytes, missing_seq: int = 0) -> StreamId:
    """An id, or `-` for the lowest and `+` for the highest."""
    if word == b"-":
        return ids.ZERO
    if word == b"+":
        return ids.MAX
    try:
        return ids.parse(word, missing_seq)
    except ValueError:
        raise refusals.bad_id() from None


def range_start(word: bytes) -> StreamId:
    """The start of a range; `(` excludes the id."""
    if len(word) > 1 and word.startswith(b"("):
        start = stream_id(word[1:])
        if start == ids.MAX:
            raise ReplyError(b"ERR invalid start ID for the interval")
        return start + 1
    return bounded_id(word)


def range_end(word: bytes) -> StreamId:
    """The end of a range; `(` excludes the id. A missing sequence number is the highest."""
    if len(word) > 1 and word.startswith(b"("):
        try:
            end = ids.parse(word[1:], ids.HALF)
        except ValueError:
            raise refusals.bad_id() from None
        if end == ids.ZERO:
            raise ReplyError(b"ERR invalid end ID for the interval")
        return end - 1
    return bounded_id(word, ids.HALF)


class TrimArguments:
    """The trim options of XADD and XTRIM.

    `given`: MAXLEN or MINID was read. `threshold_at` and `sign_at` are indexes in the request, 0 if they are missing.
    """

    __slots__ = (
        "_node_entries", "_trim", "approximate", "by_length", "given", "limit", "limit_given", "sign_at", "threshold",
        "threshold_at",
    )  # fmt: skip

    def __init__(self) -> None:
        self.given = False
        self.by_length = True
        self.approximate = False
        self.threshold = 0
        self.threshold_at = 0
        self.sign_at = 0
        self.limit = 0
        self.limit_given = False
        self._trim: Trim | None = None  # the last one, and for which limit of nodes it was made
        self._node_entries = 0

    def read(self, args: list[bytes], at: int) -> int:
        """Read MAXLEN, MINID or LIMIT at an index that is not the last; returns the index of the last word read."""
        word = args[at].upper()
        if word == b"LIMIT":
            self.limit = arguments.integer(args[at + 1])
            if self.limit < 0:
                raise ReplyError(b"ERR The LIMIT argument must be >= 0.")
            self.limit_given = True
            return at + 1
        if self.given:
            raise ReplyError(b"ERR syntax error, MAXLEN and MINID options at the same time are not compatible")
        self.given = True
        self.by_length = word == b"MAXLEN"
        at += 1
        if args[at] in (b"~", b"=") and at + 1 < len(args):
            self.approximate = args[at] == b"~"
            self.sign_at = at
            at += 1
        self.threshold_at = at
        if self.by_length:
            self.threshold = arguments.integer(args[at])
            if self.threshold < 0:
                raise ReplyError(b"ERR The MAXLEN argument must be >= 0.")
        else:
            self.threshold = stream_id(args[at])
        return at

    def refuse_misuse(self, privileged: bool) -> None:
        """Refuse LIMIT without `~`, except in the log's replay (Redis 8.6.3)."""
        if self.limit and not self.given:
            raise ReplyError(b"ERR syntax error, LIMIT cannot be used without specifying a trimming strategy")
        if self.limit_given and not self.approximate and not privileged:
            raise ReplyError(b"ERR syntax error, LIMIT cannot be used without the special ~ option")

    def trim(self, references: int, node_entries: int) -> Trim:
        """The trim to carry out. With `~` but without LIMIT, the limit is a hundred nodes' worth of entries.

        A producer's options are kept (xadd.py), and so is the trim.
        """
        known = self._trim
        if known is not None and node_entries == self._node_entries and references == known.references:
            return known
        limit = 0
        if self.approximate:
            limit = self.limit
            if not self.limit_given:
                limit = min(100 * node_entries, 1_000_000) if node_entries > 0 else 10_000
        self._node_entries = node_entries
        self._trim = trim = Trim(self.by_length, self.threshold, self.approximate, limit, references)
        return trim


def numbered_ids(
    args: list[bytes], start: int, count_text: bytes, mismatch_text: bytes, max_count: int
) -> tuple[list[bytes], int]:
    """Read `numids id [id ...]` from `start` on; returns the ids' texts and the index of the last one."""
    if not arguments.is_integer(args[start]) or not 1 <= int(args[start]) <= max_count:
        raise ReplyError(count_text)
    count = int(args[start])
    if count > len(args) - start - 1:
        raise ReplyError(mismatch_text)
    return args[start + 1 : start + 1 + count], start + count
