"""A selector: commands, keys, channels and databases that a user may use together."""

from enum import IntEnum
from typing import Final

from penstock.engine.access.allowed_databases import NOT_REFUSED, AllowedDatabases
from penstock.engine.access.command_catalog import CommandCatalog
from penstock.engine.access.rule_error import RuleError
from penstock.engine.matching.globs import Glob
from penstock.engine.table.row import Row

EVERYTHING: Final = b"*"
SPACES: Final = b" \t\n\v\f\r\0"
SYNTAX: Final = b"Syntax error"
UNKNOWN: Final = b"Unknown command or category name in ACL"
ALL_COMMANDS: Final = "+@all"
NO_COMMANDS: Final = "-@all"


class Reason(IntEnum):
    """Why a request is refused. If several selectors refuse it, the highest reason is reported (Redis 8.6.3)."""

    DATABASE = 0
    COMMAND = 1
    KEY = 2
    CHANNEL = 3


class Denial:
    """Why a request is refused, and the position of the word that is not allowed.

    It is 0 for the command, and for the database that is selected.
    """

    __slots__ = ("position", "reason")

    def __init__(self, reason: Reason, position: int) -> None:
        self.reason = reason
        self.position = position

    def outranks(self, other: "Denial") -> bool:
        """Whether this one is reported if both are found: the last word counts among equal reasons (Redis 8.6.3)."""
        return (self.reason, self.position) > (other.reason, other.position)


class KeyPattern:
    """Keys that may be read, changed, or both."""

    __slots__ = ("_glob", "pattern", "reads", "writes")

    def __init__(self, pattern: bytes, reads: bool, writes: bool) -> None:
        self.pattern = pattern
        self.reads = reads
        self.writes = writes
        self._glob = Glob(pattern)

    def allows(self, key: bytes, reads: bool, writes: bool) -> bool:
        return (self.reads or not reads) and (self.writes or not writes) and self._glob.matches(key)

    def text(self) -> bytes:
        """As ACL LIST shows it."""
        if self.reads and self.writes:
            return b"~" + self.pattern
        return (b"%R~" if self.reads else b"%W~") + self.pattern


class Selector:
    """Allowed commands, keys, channels, databases. A request is allowed if one selector of its user allows all of it.

    `allowed` has the names of rows; `first_arguments` has, by a row's name, the first arguments with which a command
    that is not allowed as a whole may be run (in lower case); `_rules` are the rules about commands as they are shown.
    """

    __slots__ = (
        "_catalog", "_channel_globs", "_rules", "all_channels", "all_keys", "allowed", "channels", "databases",
        "first_arguments", "keys",
    )  # fmt: skip

    def __init__(self, catalog: CommandCatalog, databases: AllowedDatabases) -> None:
        self._catalog = catalog
        self.databases = databases
        self.all_keys = False
        self.keys: list[KeyPattern] = []
        self.all_channels = False
        self.channels: list[bytes] = []
        self._channel_globs: list[Glob] = []
        self.allowed: set[str] = set()
        self.first_arguments: dict[str, list[str]] = {}
        self._rules: list[str] = [NO_COMMANDS]

    def copy(self) -> "Selector":
        copied = Selector(self._catalog, self.databases)
        copied.all_keys, copied.keys = (
            self.all_keys,
            [KeyPattern(kept.pattern, kept.reads, kept.writes) for kept in self.keys],
        )
        copied.all_channels, copied.channels = self.all_channels, list(self.channels)
        copied._channel_globs = list(self._channel_globs)
        copied.allowed = set(self.allowed)
        copied.first_arguments = {name: list(words) for name, words in self.first_arguments.items()}
        copied._rules = list(self._rules)
        return copied

    # -- asking -----------------------------------------------------------------------------------------------------

    @property
    def allows_everything(self) -> bool:
        if self.databases.numbers is not None:
            return False
        return self.all_keys and self.all_channels and self.allowed >= self._catalog.names

    def allows_anyhow(self, row: Row) -> bool:
        """Whether it allows a command whatever its arguments are."""
        if row.name not in self.allowed or (row.has_keys and not self.all_keys):
            return False
        if self.databases.numbers is not None and self._depends_on_database(row):
            return False
        return self.all_channels or row.channels is None

    def _depends_on_database(self, row: Row) -> bool:
        return (
            row.has_keys or row.databases is not None or row.in_every_database or self._catalog.uses_database(row, [])
        )

    def denial(self, row: Row, request: list[bytes], db_index: int) -> Denial | None:
        """Why it does not allow a request in a database; None if it does. O(keys * patterns)."""
        if self.databases.numbers is not None:
            refused = self.databases.refused_word(self._catalog, row, request, db_index)
            if refused != NOT_REFUSED:
                return Denial(Reason.DATABASE, refused)
        if not self._allows_command(row, request):
            return Denial(Reason.COMMAND, 0)
        if row.has_keys and not self.all_keys:
            only = row.only_key
            for one in (only,) if only is not None else row.key_places(request):
                if not self.allows_key(request[one.position], one.reads, one.writes):
                    return Denial(Reason.KEY, one.position)
        channels = row.channels
        if not self.all_channels and channels is not None:
            for at in range(channels.first, len(request) if channels.to_end else channels.first + 1):
                if not self.allows_channel(request[at], channels.are_patterns):
                    return Denial(Reason.CHANNEL, at)
        return None

    def _allows_command(self, row: Row, request: list[bytes]) -> bool:
        if row.name in self.allowed or row.no_auth:
            return True
        words = self.first_arguments.get(row.name)
        return words is not None and len(request) > 1 and _text(request[1]) in words

    def allows_key(self, key: bytes, reads: bool, writes: bool) -> bool:
        """Whether one of its patterns allows this access to a key."""
        if self.all_keys:
            return True
        return any(pattern.allows(key, reads, writes) for pattern in self.keys)

    def refused_link(self, key: bytes, targets: list[bytes]) -> bytes | None:
        """The first refused key: `key`, for reading and writing, or a target, for writing; None if all are allowed."""
        if not self.allows_key(key, True, True):
            return key
        for target in targets:
            if not self.allows_key(target, False, True):
                return target
        return None

    def allows_channel(self, channel: bytes, is_pattern: bool) -> bool:
        """Whether it allows a channel. A pattern to subscribe to must be one of its own (Redis 8.6.3)."""
        if self.all_channels:
            return True
        if is_pattern:
            return channel in self.channels
        return any(glob.matches(channel) for glob in self._channel_globs)

    def reads_every_key(self) -> bool:
        return self.all_keys or any(kept.reads and kept.pattern == EVERYTHING for kept in self.keys)

    # -- changing ---------------------------------------------------------------------------------------------------

    def allow_all_keys(self) -> None:
        self.all_keys = True
        self.keys = []

    def forget_keys(self) -> None:
        self.all_keys = False
        self.keys = []

    def add_keys(self, pattern: bytes, reads: bool, writes: bool) -> None:
        """Add a pattern; to one that it has already, the rights are added."""
        for kept in self.keys:
            if kept.pattern == pattern:
                kept.reads, kept.writes = kept.reads or reads, kept.writes or writes
                return
        self.keys.append(KeyPattern(pattern, reads, writes))

    def allow_all_channels(self) -> None:
        self.all_channels = True
        self.channels, self._channel_globs = [], []

    def forget_channels(self) -> None:
        self.all_channels = False
        self.channels, self._channel_globs = [], []

    def add_channels(self, pattern: bytes) -> None:
        if pattern not in self.channels:
            self.channels.append(pattern)
            self._channel_globs.append(Glob(pattern))

    def allow_all_commands(self) -> None:
        self.allowed = set(self._catalog.names)
        self.first_arguments = {}
        self._rules = [ALL_COMMANDS]

    def forget_commands(self) -> None:
        self.allowed = set()
        self.first_arguments = {}
        self._rules = [NO_COMMANDS]

    def change_category(self, category: str, allow: bool) -> None:
        """+@category, -@category; RuleError if there is no such category."""
        names = self._catalog.names_in(category)
        if not names:
            raise RuleError(UNKNOWN)
        self._change(names, allow)
        self._note_rule("@" + category, allow)

    def change_command(self, name: str, allow: bool) -> None:
        """+command, -command, +container|subcommand, +command|argument (in lower case).

        RuleError if there is no such command.
        """
        row = self._catalog.find(name)
        if row is not None:
            self._change([row.name, *[below.name for below in row.subcommands.values()]], allow)
        else:
            self._allow_first_argument(name, allow)
        self._note_rule(name, allow)

    def _allow_first_argument(self, name: str, allow: bool) -> None:
        above, bar, argument = name.rpartition("|")
        row = self._catalog.find(above)
        if not bar or not allow or row is None:
            raise RuleError(UNKNOWN)
        if "|" in above:
            raise RuleError(b"Allowing first-arg of a subcommand is not supported")
        if not argument or has_spaces(argument.encode(errors="surrogateescape")):
            raise RuleError(SYNTAX)  # Redis 8.6.3 takes spaces, and stops when it is asked to show the rule
        if row.subcommands:
            raise RuleError(UNKNOWN)
        words = self.first_arguments.setdefault(row.name, [])
        if argument not in words:
            words.append(argument)

    def _change(self, names: list[str], allow: bool) -> None:
        if allow:
            self.allowed.update(names)
        else:
            self.allowed.difference_update(names)
        for name in names:
            self.first_arguments.pop(name, None)

    def _note_rule(self, name: str, allow: bool) -> None:
        """A rule takes the place of those with its name, and of those about a command's subcommands (Redis 8.6.3)."""
        below = name + "|"
        self._rules = [kept for kept in self._rules if kept[1:] != name and not kept[1:].startswith(below)]
        self._rules.append(("+" if allow else "-") + name)

    # -- showing ----------------------------------------------------------------------------------------------------

    def command_text(self) -> bytes:
        return " ".join(self._rules).encode(errors="surrogateescape")

    def key_text(self) -> bytes:
        return b"~*" if self.all_keys else b" ".join([kept.text() for kept in self.keys])

    def channel_text(self) -> bytes:
        return b"&*" if self.all_channels else b" ".join([b"&" + channel for channel in self.channels])

    def text(self) -> bytes:
        """Its rules as ACL LIST shows them."""
        channels = self.channel_text() if self.all_channels else b" ".join([b"resetchannels", self.channel_text()])
        databases = b"" if self.databases.numbers is None else self.databases.text()
        parts = (self.key_text(), channels, databases, self.command_text())
        return b" ".join([part.strip() for part in parts if part])


def has_spaces(word: bytes) -> bool:
    """Whether a word has white space or a NUL byte, which names and patterns must not have."""
    return any(byte in SPACES for byte in word)


def _text(word: bytes) -> str:
    return word.lower().decode(errors="surrogateescape")
