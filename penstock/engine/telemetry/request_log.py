"""A log of requests that went over a limit, newest first: of slow ones, or of large ones (COMMANDLOG)."""

from collections import deque

from penstock.config.settings import Settings
from penstock.engine.session import Session
from penstock.engine.table.known_commands import KnownCommands
from penstock.engine.table.row import Row
from penstock.engine.telemetry.redaction import redacted
from penstock.protocol import reply


class LoggedRequest:
    """One line of the log. `words`: the first of `word_count`, shortened. amount: microseconds, or bytes."""

    __slots__ = ("address", "amount", "id", "name", "started_s", "word_count", "words")

    def __init__(
        self, id: int, started_s: int, amount: int, words: list[bytes], word_count: int, address: str, name: bytes
    ) -> None:
        self.id = id
        self.started_s = started_s  # unix time in seconds
        self.amount = amount
        self.words = words
        self.word_count = word_count
        self.address = address
        self.name = name  # of the client

    def fields(self) -> list[tuple[bytes, bytes]]:
        """The elements of the reply, each behind a name of ours."""
        return [
            (b"id", reply.integer(self.id)),
            (b"started", reply.integer(self.started_s)),
            (b"amount", reply.integer(self.amount)),
            (b"words", reply.bulks(self.words)),
            (b"address", reply.bulk(self.address.encode())),
            (b"name", reply.bulk(self.name)),
            (b"word-count", reply.integer(self.word_count)),
        ]


class RequestLog:
    """The latest requests, newest first, as many as the directive `most` says.

    Ids grow for ever: RESET empties the log and does not start them again.
    """

    def __init__(self, settings: Settings, commands: KnownCommands, most: str) -> None:
        self._settings = settings
        self._commands = commands
        self._most = most
        self.requests: deque[LoggedRequest] = deque()
        self.next_id = 0

    def add(self, session: Session, row: Row, request: list[bytes], now_us: int, amount: int) -> None:
        """Keep a request with what it took; the oldest ones make room.

        With a directive of 0 it is not kept, and what is there stays. What a script asks has no address in Redis, and
        that of the script's client in Valkey. (Redis 8.6.3, Valkey 9.1.2.)
        """
        most = self._settings.number(self._most)
        if not most:
            return
        number = self._settings.number
        shown = redacted(self._commands, row, request)
        kept = _shortened(shown, number("slowlog-entry-max-argc"), number("slowlog-entry-max-string-len"))
        address, name = session.address, session.name
        if session.asks_for is not None:
            is_shown = self._settings.passes_for_valkey
            address, name = (session.asks_for.address, session.asks_for.name) if is_shown else ("", b"")
        self.requests.appendleft(
            LoggedRequest(self.next_id, now_us // 1_000_000, amount, kept, len(request), address, name)
        )
        self.next_id += 1
        while len(self.requests) > most:
            self.requests.pop()


def _shortened(request: list[bytes], most_words: int, longest: int) -> list[bytes]:
    """The first words; the last one says how many more there were."""
    kept = [_cut(word, longest) for word in request[:most_words]]
    if len(request) > most_words:
        kept[-1] = b"... (%d more arguments)" % (len(request) - most_words + 1)
    return kept


def _cut(word: bytes, longest: int) -> bytes:
    more = len(word) - longest
    return word if more <= 0 else b"%b... (%d more bytes)" % (word[:longest], more)
