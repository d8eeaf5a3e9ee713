"""Reads the options of PENSTOCK.POLICY into settings, and refuses what they cannot be."""

from typing import Final

from penstock.commands.streams.stream_arguments import REFERENCE_WORDS
from penstock.engine import arguments, refusals
from penstock.errors import ReplyError
from penstock.storage.policies.group_policy import GroupSettings
from penstock.storage.policies.stream_policies import NONE, StreamSettings
from penstock.storage.streams.trim import ACKNOWLEDGED

RETENTION_OPTIONS: Final = frozenset((b"MAXLEN", b"MAXAGE", *REFERENCE_WORDS))
FORWARD_OPTIONS: Final = frozenset((b"FORWARD", b"AT", b"AFTER"))
STREAM_OPTIONS: Final = RETENTION_OPTIONS | FORWARD_OPTIONS
GROUP_OPTIONS: Final = frozenset((b"ACKWAIT", b"BACKOFF", b"JITTER", b"MAXDELIVER", b"DEADLETTER", b"REAP", b"KEY"))
MOST_DELIVERIES: Final = 1_000_000
LONGEST_ACK_WAIT_MS: Final = 2_592_000_000  # 30 days
NO_LEAST: Final = -(2**63)
_UNSET: Final = b"NONE"


class OptionReader:
    """The options of one request, from an index on; each may be given once."""

    __slots__ = ("_args", "_at", "named")

    def __init__(self, args: list[bytes], at: int) -> None:
        self._args = args
        self._at = at
        self.named: set[bytes] = set()

    def next(self, known: frozenset[bytes]) -> bytes:
        """The next option, in upper case, which must be one of the known ones; empty at the end."""
        if self._at >= len(self._args):
            return b""
        word = self._args[self._at].upper()
        self._at += 1
        if word not in known:
            if word in STREAM_OPTIONS:
                raise ReplyError(b"ERR %b is a policy of streams, not of groups" % word)
            if word in GROUP_OPTIONS:
                raise ReplyError(b"ERR %b is a policy of groups: say GROUP name before it" % word)
            raise refusals.syntax()
        if word in self.named:
            raise ReplyError(b"ERR %b specified multiple times" % word)
        self.named.add(word)
        return word

    def value(self) -> bytes:
        """The word behind the option."""
        if self._at >= len(self._args):
            raise refusals.syntax()
        self._at += 1
        return self._args[self._at - 1]

    def name(self) -> bytes | None:
        """The name behind the option; None if the word is NONE."""
        word = self.value()
        return None if word.upper() == _UNSET else word

    def number(self, least: int) -> int:
        """The number behind the option, at least `least`; NONE if the word is that."""
        option, word = self._args[self._at - 1].upper(), self.value()
        if word.upper() == _UNSET:
            return NONE
        number = arguments.integer(word)
        if number < least:
            raise ReplyError(b"ERR %b must be at least %d" % (option, least))
        return number

    def bounded(self, least: int, most: int) -> int:
        """As `number`, within bounds."""
        option = self._args[self._at - 1].upper()
        number = self.number(NO_LEAST)
        if number != NONE and not least <= number <= most:
            raise ReplyError(b"ERR %b must be between %d and %d" % (option, least, most))
        return number

    def delays(self) -> tuple[int, int]:
        """The shortest and the longest delay behind BACKOFF; NONE for both if one word says that."""
        word = self.value()
        if word.upper() == _UNSET:
            return NONE, NONE
        longest = self._args[self._at] if self._at < len(self._args) else b""
        self._at += 1
        if arguments.is_integer(word) and arguments.is_integer(longest) and 1 <= int(word) <= int(longest):
            return int(word), int(longest)
        raise ReplyError(b"ERR BACKOFF needs a shortest and a longest delay")


def read_stream_options(settings: StreamSettings, reader: OptionReader) -> None:
    """Change the settings as the options say; ReplyError for a word."""
    while option := reader.next(STREAM_OPTIONS):
        if option == b"MAXLEN":
            settings.max_length = reader.number(0)
        elif option == b"MAXAGE":
            settings.max_age_ms = reader.number(1)
        elif option == b"FORWARD":
            settings.forward = reader.name()
        elif option == b"AT":
            settings.at_field = reader.name()
        elif option == b"AFTER":
            settings.after_ms = reader.number(0)
        else:
            if len(reader.named & REFERENCE_WORDS.keys()) > 1:
                raise refusals.syntax()
            settings.references = REFERENCE_WORDS[option]


def refuse_stream_settings(settings: StreamSettings) -> None:
    """Refuse what the whole of a stream's settings cannot be."""
    if settings.max_length == 0 and settings.references != ACKNOWLEDGED:
        raise ReplyError(b"ERR MAXLEN 0 needs ACKED")
    if settings.forward is None and (settings.at_field is not None or settings.after_ms != NONE):
        raise ReplyError(b"ERR AT and AFTER need FORWARD")


def read_group_options(settings: GroupSettings, reader: OptionReader) -> None:
    """As `read_stream_options`, for a group."""
    while option := reader.next(GROUP_OPTIONS):
        if option == b"ACKWAIT":
            settings.ack_wait_ms = reader.bounded(1, LONGEST_ACK_WAIT_MS)
        elif option == b"BACKOFF":
            settings.backoff_min_ms, settings.backoff_max_ms = reader.delays()
        elif option == b"JITTER":
            settings.jitter_percent = reader.bounded(0, 100)
        elif option == b"MAXDELIVER":
            settings.max_deliver = reader.bounded(1, MOST_DELIVERIES)
        elif option == b"DEADLETTER":
            settings.dead_letter = reader.name()
        elif option == b"KEY":
            settings.key_field = reader.name()
        else:
            settings.reap_ms = reader.number(1)


def refuse_group_settings(settings: GroupSettings) -> None:
    """Refuse what the whole of a group's settings cannot be."""
    if settings.max_deliver != NONE and settings.dead_letter is None:
        raise ReplyError(b"ERR MAXDELIVER needs DEADLETTER")
    if settings.key_field is not None and settings.ack_wait_ms == NONE:
        raise ReplyError(b"ERR KEY needs ACKWAIT")
    if settings.jitter_percent != NONE and settings.backoff_min_ms == NONE:
        raise ReplyError(b"ERR JITTER needs BACKOFF")
