"""Reads the options of PENSTOCK.POLICY into settings, and refuses what they cannot be."""

from typing import Final

from penstock.commands.streams.stream_arguments import REFERENCE_WORDS
from penstock.engine import arguments, refusals
from penstock.engine.table.key_place import KeyPlace
from penstock.engine.table.option_table import OptionTable
from penstock.errors import ReplyError
from penstock.storage.policies.group_policy import FOREVER, GroupSettings
from penstock.storage.policies.stream_policies import NONE, StreamSettings
from penstock.storage.streams.trim import ACKNOWLEDGED

RETENTION_OPTIONS: Final = frozenset((b"MAXLEN", b"MAXAGE", b"MAXBYTES", *REFERENCE_WORDS))
IDLE_GROUP: Final = b"IDLEGROUP"
SWEPT_OPTIONS: Final = RETENTION_OPTIONS | {IDLE_GROUP}
FORWARD: Final = b"FORWARD"
EVERY: Final = b"EVERY"
MISSED: Final = b"MISSED"
MISSED_WORDS: Final = frozenset((b"ONCE", b"ALL", b"SKIP"))
FORWARD_OPTIONS: Final = frozenset((FORWARD, b"AT", b"AFTER", EVERY))
DEAD_LETTER: Final = b"DEADLETTER"
STREAM_AT: Final = 2  # where the options of a stream begin
GROUP_AT: Final = 4  # those of a group
CHANGED: Final = "RW update"
COPIED: Final = "RW access update"  # where a target gets its entries
TARGET: Final = "RW insert"
MOST_DELIVERIES: Final = 1_000_000
LONGEST_ACK_WAIT_MS: Final = 2_592_000_000  # 30 days
LONGEST_RATE_MS: Final = 2_592_000_000  # 30 days
MOST_RATED: Final = 100_000
MOST_IN_FLIGHT: Final = 1_000_000
LONGEST_AGING_MS: Final = 2_592_000_000  # 30 days
PAUSE: Final = b"PAUSE"
RATE: Final = b"RATE"
_UNSET: Final = b"NONE"


class PolicyOptions(OptionTable):
    """Options that NONE alone, in place of all values, unsets."""

    def words(self, option: bytes, args: list[bytes], at: int) -> int:
        words = super().words(option, args, at)
        return 2 if self.has(option) and is_unset(args, at) else words


def is_unset(args: list[bytes], at: int) -> bool:
    """Whether NONE follows the option at a place."""
    return at + 1 < len(args) and args[at + 1].upper() == _UNSET


STREAM_OPTIONS: Final = PolicyOptions(
    {b"MAXLEN": 1, b"MAXAGE": 1, b"MAXBYTES": 1, IDLE_GROUP: 1, b"AT": 1, b"AFTER": 1, FORWARD: 1, EVERY: 1, MISSED: 1}
    | dict.fromkeys(REFERENCE_WORDS, 0)
)
GROUP_OPTIONS: Final = PolicyOptions({
    b"ACKWAIT": 1, b"BACKOFF": 2, b"JITTER": 1, b"MAXDELIVER": 1, DEAD_LETTER: 1, b"REAP": 1, b"KEY": 1,
    PAUSE: 1, RATE: 2, b"INFLIGHT": 1, b"EXPIRE": 1, b"EXPIREAT": 1,
    b"PARALLEL": 1, b"FAIR": 1, b"PRIORITY": 1, b"AGING": 1, b"LOOKAHEAD": 1, b"ONDISCONNECT": 1,
})  # fmt: skip


class OptionReader:
    """The options of one request, from an index on; each may be given once. `_end`: behind those of the last one."""

    __slots__ = ("_args", "_at", "_end", "named")

    def __init__(self, args: list[bytes], at: int) -> None:
        self._args = args
        self._at = self._end = at
        self.named: set[bytes] = set()

    def next(self, known: OptionTable) -> bytes:
        """The next option, in upper case, which must be one of the known ones; empty at the end."""
        at = self._end
        if at >= len(self._args):
            return b""
        word = self._args[at].upper()
        words = known.words(word, self._args, at)
        self._at, self._end = at + 1, at + words if words else len(self._args)
        if not known.has(word):
            if STREAM_OPTIONS.has(word):
                raise ReplyError(b"ERR %b is a policy of streams, not of groups" % word)
            if GROUP_OPTIONS.has(word):
                raise ReplyError(b"ERR %b is a policy of groups: say GROUP name before it" % word)
            raise refusals.syntax()
        if word in self.named:
            raise ReplyError(b"ERR %b specified multiple times" % word)
        self.named.add(word)
        return word

    def value(self) -> bytes:
        """The word behind the option."""
        if self._at >= self._end:
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
        option, word = self._args[self._at - 1].upper(), self.value()
        if word.upper() == _UNSET:
            return NONE
        number = arguments.integer(word)
        if not least <= number <= most:
            raise ReplyError(b"ERR %b must be between %d and %d" % (option, least, most))
        return number

    def rate(self) -> tuple[int, int]:
        """How many deliveries, and in how many ms, behind RATE; NONE for both if one word says that."""
        word = self.value()
        if word.upper() == _UNSET:
            return NONE, NONE
        span = self._args[self._at] if self._at < self._end else b""
        self._at += 1
        if arguments.is_integer(word) and arguments.is_integer(span):
            number, span_ms = int(word), int(span)
            if 1 <= number <= MOST_RATED and 1 <= span_ms <= LONGEST_RATE_MS:
                return number, span_ms
        raise ReplyError(b"ERR RATE needs a number of deliveries and a time in ms")

    def pause(self, now_ms: int) -> int:
        """When the pause given to PAUSE ends, in unix ms; NONE if it is unset or in the past."""
        word = self.value()
        if word.upper() == _UNSET:
            return NONE
        if word.upper() == b"FOREVER":
            return FOREVER
        is_relative = word.startswith(b"+")
        number = word[1:] if is_relative else word
        if arguments.is_integer(number) and int(number) >= 0:
            until_ms = int(number) + (now_ms if is_relative else 0)
            if until_ms < FOREVER:
                return until_ms if until_ms > now_ms else NONE
        raise ReplyError(b"ERR PAUSE must be FOREVER, a unix time in ms, or +ms")

    def gives_back(self) -> bool:
        """Whether RELEASE is behind ONDISCONNECT."""
        word = self.value().upper()
        if word not in (b"RELEASE", _UNSET):
            raise ReplyError(b"ERR ONDISCONNECT must be RELEASE")
        return word == b"RELEASE"

    def missed(self) -> bytes | None:
        """The word behind MISSED; None if it is NONE."""
        word = self.value().upper()
        if word not in MISSED_WORDS and word != _UNSET:
            raise ReplyError(b"ERR MISSED must be ONCE, ALL or SKIP")
        return None if word == _UNSET else word

    def is_fair(self) -> bool:
        """Whether YES is behind FAIR."""
        word = self.value().upper()
        if word not in (b"YES", b"NO", _UNSET):
            raise ReplyError(b"ERR FAIR must be YES or NO")
        return word == b"YES"

    def delays(self) -> tuple[int, int]:
        """The shortest and the longest delay behind BACKOFF; NONE for both if one word says that."""
        word = self.value()
        if word.upper() == _UNSET:
            return NONE, NONE
        longest = self._args[self._at] if self._at < self._end else b""
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
        elif option == b"MAXBYTES":
            settings.max_bytes = reader.number(1)
        elif option == IDLE_GROUP:
            settings.idle_group_ms = reader.number(1)
        elif option == FORWARD:
            settings.forward = reader.name()
        elif option == b"AT":
            settings.at_field = reader.name()
        elif option == b"AFTER":
            settings.after_ms = reader.number(0)
        elif option == EVERY:
            settings.every_field = reader.name()
        elif option == MISSED:
            settings.missed = reader.missed()
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
    if settings.idle_group_ms != NONE and settings.references != ACKNOWLEDGED:
        raise ReplyError(b"ERR IDLEGROUP needs ACKED")
    if settings.every_field is not None and settings.forward is None:
        raise ReplyError(b"ERR EVERY needs FORWARD")
    if settings.missed is not None and settings.every_field is None:
        raise ReplyError(b"ERR MISSED needs EVERY")


def read_group_options(settings: GroupSettings, reader: OptionReader, now_ms: int) -> None:
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
        elif option == DEAD_LETTER:
            settings.dead_letter = reader.name()
        elif option == b"KEY":
            settings.key_field = reader.name()
        elif option == PAUSE:
            settings.paused_until_ms = reader.pause(now_ms)
        elif option == RATE:
            settings.rate, settings.rate_ms = reader.rate()
        elif option == b"INFLIGHT":
            settings.in_flight = reader.bounded(1, MOST_IN_FLIGHT)
        elif option == b"PARALLEL":
            settings.parallel = reader.bounded(1, MOST_IN_FLIGHT)
        elif option == b"FAIR":
            settings.fair = reader.is_fair()
        elif option == b"PRIORITY":
            settings.priority_field = reader.name()
        elif option == b"AGING":
            settings.aging_ms = reader.bounded(1, LONGEST_AGING_MS)
        elif option == b"LOOKAHEAD":
            settings.look_ahead = reader.bounded(0, MOST_IN_FLIGHT)
        elif option == b"EXPIRE":
            settings.expire_ms = reader.number(1)
        elif option == b"EXPIREAT":
            settings.expire_field = reader.name()
        elif option == b"ONDISCONNECT":
            settings.gives_back = reader.gives_back()
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
    if settings.in_flight != NONE and settings.ack_wait_ms == NONE:
        raise ReplyError(b"ERR INFLIGHT needs ACKWAIT")
    if settings.priority_field is not None and settings.ack_wait_ms == NONE:
        raise ReplyError(b"ERR PRIORITY needs ACKWAIT")
    if settings.parallel != NONE and settings.key_field is None:
        raise ReplyError(b"ERR PARALLEL needs KEY")
    if settings.fair and settings.key_field is None:
        raise ReplyError(b"ERR FAIR needs KEY")
    if settings.aging_ms != NONE and settings.priority_field is None:
        raise ReplyError(b"ERR AGING needs PRIORITY")
    if settings.look_ahead != NONE and settings.key_field is None and settings.priority_field is None:
        raise ReplyError(b"ERR LOOKAHEAD needs KEY or PRIORITY")


# -- keys -------------------------------------------------------------------------------------------------------------


def is_of_group(args: list[bytes]) -> bool:
    """Whether a request sets the policy of a group."""
    return len(args) > STREAM_AT and args[STREAM_AT].upper() == b"GROUP"


def find_keys(args: list[bytes]) -> list[KeyPlace]:
    """The keys of PENSTOCK.POLICY: the stream, and the target of its entries, or of a group's."""
    known, option, at = (
        (GROUP_OPTIONS, DEAD_LETTER, GROUP_AT) if is_of_group(args) else (STREAM_OPTIONS, FORWARD, STREAM_AT)
    )
    targets = [place + 1 for place in known.places_of(option, args, at) if not is_unset(args, place)]
    source = KeyPlace(1, (COPIED if targets else CHANGED).split())
    return [source, *[KeyPlace(place, TARGET.split()) for place in targets]]
