"""SLOWLOG: the requests that took longer than slowlog-log-slower-than."""

from collections import deque
from typing import Final

from penstock.commands.common.help import help_reply
from penstock.config.settings import Settings
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.session import Session
from penstock.engine.table.command_table import Row, command, container
from penstock.engine.telemetry.redaction import redacted
from penstock.errors import ReplyError
from penstock.protocol import reply

DEFAULT_SHOWN: Final = 10
ALL: Final = -1


class SlowRequest:
    """One line of the log."""

    __slots__ = ("address", "id", "name", "started_s", "usec", "words")

    def __init__(self, id: int, started_s: int, usec: int, words: list[bytes], address: str, name: bytes) -> None:
        self.id = id
        self.started_s = started_s  # unix time in seconds
        self.usec = usec
        self.words = words
        self.address = address
        self.name = name  # of the client

    def as_reply(self) -> bytes:
        return reply.array(
            [
                reply.integer(self.id),
                reply.integer(self.started_s),
                reply.integer(self.usec),
                reply.bulks(self.words),
                reply.bulk(self.address.encode()),
                reply.bulk(self.name),
            ]
        )


class SlowLog:
    """The slow requests of late, newest first.

    Ids grow for ever: RESET empties the log and does not start them again.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.requests: deque[SlowRequest] = deque()
        self.next_id = 0

    def add(self, session: Session, row: Row, request: list[bytes], now_us: int, usec: int) -> None:
        """Keep a request that took `usec`; the oldest ones make room."""
        number = self._settings.number
        kept = _shortened(
            redacted(row.name, request), number("slowlog-entry-max-argc"), number("slowlog-entry-max-string-len")
        )
        self.requests.appendleft(
            SlowRequest(self.next_id, now_us // 1_000_000, usec, kept, session.address, session.name)
        )
        self.next_id += 1
        self.shorten()

    def shorten(self) -> None:
        """Let the oldest go while there are more than slowlog-max-len."""
        most = self._settings.number("slowlog-max-len")
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


container("SLOWLOG", group="server", since="2.2.12", summary="Looks into the log of slow requests.")


@command(
    "SLOWLOG|GET",
    "[count]",
    group="server",
    since="2.2.12",
    flags="admin loading stale",
    tips="request_policy:all_nodes nondeterministic_output",
    complexity="O(N) where N is the number of entries returned",
    history=(("4.0.0", "Added client IP address, port and name to the reply."),),
    summary="Lists slow requests, the newest first.",
)
def slowlog_get(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) > 3:
        raise refusals.unknown_or_wrong(args[1], args[0])
    count = DEFAULT_SHOWN
    if len(args) == 3:
        refusal = b"ERR count should be greater than or equal to -1"
        count = arguments.integer_or(args[2], refusal)
        if count < ALL:
            raise ReplyError(refusal)
    kept = list(ctx.engine.slow_log.requests)
    return reply.array([slow.as_reply() for slow in (kept if count == ALL else kept[:count])])


@command(
    "SLOWLOG|LEN",
    group="server",
    since="2.2.12",
    flags="admin loading stale",
    tips="request_policy:all_nodes response_policy:agg_sum nondeterministic_output",
    summary="Counts the slow requests that are kept.",
)
def slowlog_len(ctx: Context, args: list[bytes]) -> bytes:
    return reply.integer(len(ctx.engine.slow_log.requests))


@command(
    "SLOWLOG|RESET",
    group="server",
    since="2.2.12",
    flags="admin loading stale",
    tips="request_policy:all_nodes response_policy:all_succeeded",
    complexity="O(N) where N is the number of entries in the slowlog",
    summary="Empties the log of slow requests.",
)
def slowlog_reset(ctx: Context, args: list[bytes]) -> bytes:
    ctx.engine.slow_log.requests.clear()
    return reply.OK


@command(
    "SLOWLOG|HELP",
    group="server",
    since="6.2.0",
    flags="loading stale",
    summary="Explains the subcommands.",
)
def slowlog_help(ctx: Context, args: list[bytes]) -> bytes:
    return help_reply(
        "SLOWLOG",
        [
            (
                "GET [<count>]",
                "List slow requests, newest first: 10 of them unless <count> says another number,\n"
                "-1 all. Each has its id, the time, how long it took (us), its words, the client's\n"
                "address and name.",
            ),
            ("LEN", "Count the slow requests that are kept."),
            ("RESET", "Forget them."),
        ],
    )
