"""Reading the words that the stream commands share: ids by context, ranges, lists of ids, trims.

Which forms an id may take depends on the place (Redis 8.6.3); every refusal is Redis's.
"""

from typing import Final

from penstock.engine import arguments, refusals
from penstock.errors import ReplyError
from penstock.storage.streams import ids, stream
from penstock.storage.streams.ids import IdColumns, StreamId
from penstock.storage.streams.stream import Trim

REFERENCE_WORDS: Final = {
    b"KEEPREF": stream.KEEP_REFERENCES,
    b"DELREF": stream.DELETE_REFERENCES,
    b"ACKED": stream.ACKNOWLEDGED,
}


def stream_id(word: bytes) -> StreamId:
    """A plain id: no `-`, no `+`; a missing sequence number is 0."""
    try:
        return ids.parse(word)
    except ValueError:
        raise refusals.bad_id() from None


def stream_ids(texts: list[bytes]) -> list[StreamId]:
    """Plain ids, all of them or a refusal."""
    try:
        return [ids.parse(text) for text in texts]
    except ValueError:
        raise refusals.bad_id() from None


def id_columns(texts: list[bytes]) -> IdColumns:
    """As `stream_ids`, in the form for many."""
    try:
        return ids.parse_all(texts)
    except ValueError:
        raise refusals.bad_id() from None


def bounded_id(word: bytes, missing_seq: int = 0) -> StreamId:
    """An id, or `-` for the smallest and `+` for the largest."""
    if word == b"-":
        return ids.ZERO
    if word == b"+":
        return ids.MAX
    try:
        return ids.parse(word, missing_seq)
    except ValueError:
        raise refusals.bad_id() from None


def range_start(word: bytes) -> StreamId:
    """The start of a range: `(` excludes the id itself."""
    if len(word) > 1 and word.startswith(b"("):
        start = stream_id(word[1:])
        if start == ids.MAX:
            raise ReplyError(b"ERR invalid start ID for the interval")
        return start + 1
    return bounded_id(word)


def range_end(word: bytes) -> StreamId:
    """The end of a range: a missing sequence number is the largest; `(` excludes the id itself."""
    if len(word) > 1 and word.startswith(b"("):
        try:
            end = ids.parse(word[1:], ids.HALF)
        except ValueError:
            raise refusals.bad_id() from None
        if end == ids.ZERO:
            raise ReplyError(b"ERR invalid end ID for the interval")
        return end - 1
    return bounded_id(word, ids.HALF)


class TrimWords:
    """The trimming options of XADD and XTRIM while they are read.

    `threshold_at` and `sign_at` are places in the request, 0 where the option is not given.
    """

    __slots__ = ("approximate", "by_length", "given", "limit", "limit_given", "sign_at", "threshold", "threshold_at")

    def __init__(self) -> None:
        self.given = False
        self.by_length = True
        self.approximate = False
        self.threshold = 0
        self.threshold_at = 0
        self.sign_at = 0
        self.limit = 0
        self.limit_given = False

    def read(self, args: list[bytes], at: int) -> int:
        """Read MAXLEN, MINID or LIMIT at a place that has a word behind it; the place of the last word read."""
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
        """LIMIT goes with `~` only; the log's replay is let through (Redis 8.6.3)."""
        if self.limit and not self.given:
            raise ReplyError(b"ERR syntax error, LIMIT cannot be used without specifying a trimming strategy")
        if self.limit_given and not self.approximate and not privileged:
            raise ReplyError(b"ERR syntax error, LIMIT cannot be used without the special ~ option")

    def trim(self, references: int, node_entries: int) -> Trim:
        """What to do; without a LIMIT, `~` goes through a hundred nodes' worth of entries."""
        limit = 0
        if self.approximate:
            limit = self.limit
            if not self.limit_given:
                limit = min(100 * node_entries, 1_000_000) if node_entries > 0 else 10_000
        return Trim(self.by_length, self.threshold, self.approximate, limit, references)


def numbered_ids(
    args: list[bytes], start: int, count_text: bytes, mismatch_text: bytes, most: int
) -> tuple[list[bytes], int]:
    """`numids id [id ...]` from `start` on: the ids' words and the place of the last one."""
    if not arguments.is_integer(args[start]) or not 1 <= int(args[start]) <= most:
        raise ReplyError(count_text)
    count = int(args[start])
    if count > len(args) - start - 1:
        raise ReplyError(mismatch_text)
    return args[start + 1 : start + 1 + count], start + count
