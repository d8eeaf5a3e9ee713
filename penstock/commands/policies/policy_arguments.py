"""Reads the options of PENSTOCK.POLICY into settings, and refuses what they cannot be."""

from typing import Final

from penstock.commands.streams.stream_arguments import REFERENCE_WORDS
from penstock.engine import arguments, refusals
from penstock.errors import ReplyError
from penstock.storage.policies.stream_policies import NONE, StreamSettings
from penstock.storage.streams.stream import ACKNOWLEDGED

STREAM_OPTIONS: Final = (b"MAXLEN", b"MAXAGE", *REFERENCE_WORDS)
RETENTION_OPTIONS: Final = frozenset(STREAM_OPTIONS)
_UNSET: Final = b"NONE"


class OptionReader:
    """The options of one request, from an index on; each may be given once."""

    __slots__ = ("_args", "_at", "named")

    def __init__(self, args: list[bytes], at: int) -> None:
        self._args = args
        self._at = at
        self.named: set[bytes] = set()

    def next(self) -> bytes:
        """The next option, in upper case; empty at the end."""
        if self._at >= len(self._args):
            return b""
        word = self._args[self._at].upper()
        self._at += 1
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

    def number(self, least: int) -> int:
        """The number behind the option, at least `least`; NONE if the word is that."""
        option, word = self._args[self._at - 1].upper(), self.value()
        if word.upper() == _UNSET:
            return NONE
        number = arguments.integer(word)
        if number < least:
            raise ReplyError(b"ERR %b must be at least %d" % (option, least))
        return number


def read_stream_options(settings: StreamSettings, reader: OptionReader) -> None:
    """Change the settings as the options say. ReplyError for a word, and then for what the whole would be."""
    while option := reader.next():
        if option == b"MAXLEN":
            settings.max_length = reader.number(0)
        elif option == b"MAXAGE":
            settings.max_age_ms = reader.number(1)
        elif option in REFERENCE_WORDS:
            if len(reader.named & REFERENCE_WORDS.keys()) > 1:
                raise refusals.syntax()
            settings.references = REFERENCE_WORDS[option]
        else:
            raise refusals.syntax()
    if settings.max_length == 0 and settings.references != ACKNOWLEDGED:
        raise ReplyError(b"ERR MAXLEN 0 needs ACKED")
