"""A server's settings: one value for each directive, read by name; CONFIG SET changes all that it names, or none."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from penstock.config import harmless_values
from penstock.config.cluster_directives import CLUSTER
from penstock.config.directive_types import BadValue, BufferLimits, Folder, SavePoints
from penstock.config.directives import USED, Directive
from penstock.config.ignored_directives import ACCEPTED
from penstock.errors import ReplyError

DIRECTIVES: Final[dict[str, Directive]] = {row.name: row for row in (*USED, *CLUSTER, *ACCEPTED)}
_OF_VALKEY: Final = {row.valkey_name: row for row in DIRECTIVES.values() if row.valkey_name}
_BY_NAME: Final[dict[str, Directive]] = (
    DIRECTIVES | {row.alias: row for row in DIRECTIVES.values() if row.alias} | _OF_VALKEY
)
_IGNORED_NAMES: Final = frozenset(row.name for row in ACCEPTED)
_BUFFERS: Final = BufferLimits()

# Directives that a redis.conf may still have, although CONFIG GET does not know them (Redis 8.6.3). They are skipped.
_OBSOLETE: Final = frozenset({
    "io-threads-do-reads", "list-max-ziplist-entries", "list-max-ziplist-value", "lua-replicate-commands",
})  # fmt: skip

_OTHER_LINES: Final = frozenset({"include", "loadmodule", "rename-command", "user"})  # of a file, and no directives
_IGNORED_AT_START: Final = _IGNORED_NAMES - {"daemonize"}
SIMILAR: Final = 0.8  # of a name that is suggested: one or two letters differ

# Read once, because a process may have many servers. A folder's value depends on the working directory.
_FOLDERS: Final = tuple(row for row in DIRECTIVES.values() if isinstance(row.kind, Folder))
_DEFAULTS: Final[dict[str, str]] = {
    row.name: row.kind.read([row.default], row.default) for row in DIRECTIVES.values() if row not in _FOLDERS
}
_DEFAULT_NUMBERS: Final[dict[str, int]] = {
    name: DIRECTIVES[name].kind.number(value) for name, value in _DEFAULTS.items()
}


def is_of_valkey(compat_version: str) -> bool:
    """Whether a value of `compat-version` is a version of Valkey's."""
    return compat_version.startswith("valkey")


class Settings:
    """The values of all directives, by name. Names and aliases match in upper or lower case.

    Invariant: every directive has a value that its type's `read` returned; `_numbers` has the same value as a number.

    file: the configuration file that the server was started with, as an absolute path; CONFIG REWRITE writes it.
    set_at_start: the directives that a file or a flag set. renamed: the rename-command lines as (old, new); with an
    empty new name, the command is removed. users: the words of each `user` line after the first word.
    """

    __slots__ = (
        "_numbers", "_refusers", "_values", "_watched_always", "_watchers", "file", "renamed", "set_at_start", "users",
    )  # fmt: skip

    def __init__(self) -> None:
        self._values: dict[str, str] = dict(_DEFAULTS)
        self._numbers: dict[str, int] = dict(_DEFAULT_NUMBERS)
        self._watchers: dict[str, list[Callable[[], None]]] = {}
        self._refusers: dict[str, list[Callable[[], None]]] = {}
        self._watched_always: set[str] = set()
        self.file: str | None = None
        self.set_at_start: dict[str, None] = {}
        self.renamed: list[tuple[str, str]] = []
        self.users: list[list[str]] = []
        for row in _FOLDERS:
            self._keep(row, row.kind.read([row.default], row.default))

    # -- reading ----------------------------------------------------------------------------------------------------

    def number(self, name: str) -> int:
        """A value that is a number: a count, a number of bytes, permission bits."""
        return self._numbers[name]

    def yes(self, name: str) -> bool:
        """Whether a yes/no directive is yes."""
        return self._values[name] == "yes"

    def text(self, name: str) -> str:
        """The value as CONFIG GET shows it, except that notify-keyspace-events has letters in place of A."""
        return self._values[name]

    def words(self, name: str) -> list[str]:
        """The words of a value that may have several (bind)."""
        return self._values[name].split()

    def buffer_limits(self) -> dict[str, tuple[int, int, int]]:
        """client-output-buffer-limit by class (normal, slave, pubsub): hard limit and soft limit in bytes, seconds."""
        return _BUFFERS.limits(self._values["client-output-buffer-limit"])

    def canonical(self, name: str) -> str:
        """The value as CONFIG GET shows it."""
        row = _BY_NAME[name]
        return row.kind.shown(self._values[row.name])

    def written(self, row: Directive) -> list[str]:
        """The value as lines of a configuration file."""
        return [f"{row.name} {value}" for value in row.kind.written(self._values[row.name])]

    # -- changing ---------------------------------------------------------------------------------------------------

    def watch(self, name: str, callback: Callable[[], None], always: bool = False, may_refuse: bool = False) -> None:
        """Register a watcher: `callback` is called after CONFIG SET changed the directive.

        always: it is called, too, if CONFIG SET names the directive with the value that it has.
        may_refuse: it raises BadValue if the change is impossible (a port that is in use). CONFIG SET is then refused
        with this text, and all values are restored. Such watchers are called before all others, which hear of no change
        that is refused: what they do may have no way back (a password that was set by ACL SETUSER is forgotten).
        """
        watchers = self._refusers if may_refuse else self._watchers
        watchers.setdefault(name, []).append(callback)
        if always:
            self._watched_always.add(name)

    def set_pairs(self, pairs: Sequence[tuple[str, str]], protected_too: bool = False) -> None:
        """CONFIG SET: change all pairs, or none. ReplyError if it is refused.

        Checked in Redis's order: first each name (unknown, immutable, protected, duplicate), then each value, then
        values that must not be ignored (harmless_values.py), then the watchers (Redis 8.6.3).
        """
        rows: list[Directive] = []
        seen: set[str] = set()
        for name, _ in pairs:
            row = self.seen(name)
            if row is None:
                raise ReplyError(_raw(f"ERR Unknown option or number of arguments for CONFIG SET - '{name}'"))
            if row.immutable:
                raise _refusal(name, "can't set immutable config")
            if row.protected and not protected_too:
                raise _refusal(name, "can't set protected config")
            if row.name in seen:  # also by an alias, as in Redis 8.10
                raise _refusal(name, "duplicate parameter")
            seen.add(row.name)
            rows.append(row)
        before = dict(self._values)
        for row, (name, value) in zip(rows, pairs, strict=True):
            try:
                self._keep(row, row.kind.read([value], self._values[row.name]))
            except BadValue as problem:
                self._restore(before)
                raise _refusal(name, problem.text) from None
        harmful, instead = harmless_values.problem([row.name for row in rows], self.text)
        if harmful:
            self._restore(before)
            raise _refusal(harmful, instead)
        self._notify_watchers(rows, [name for name, _ in pairs], before)

    def force(self, name: str, value: str) -> None:
        """Give a directive the value that follows from another, whatever was set."""
        row = _BY_NAME[name]
        self._keep(row, row.kind.read([value], self._values[name]))

    def read_line(self, words: Sequence[str], loaded: set[str]) -> None:
        """Read one line of a file or one flag, split into words; BadValue if it is wrong.

        `loaded` has the directives that this load has already set: a further `save` line adds to the first.
        """
        name = words[0].lower()
        row = _BY_NAME.get(name)
        if name == "rename-command" and len(words) == 3:
            self.renamed.append((words[1], words[2]))
        elif name == "user" and len(words) > 1:
            if any(words[1] == user[0] for user in self.users):
                raise BadValue(
                    f"Error in user declaration '{words[1]}': Duplicate user found."
                    " A user can only be defined once in config files"
                )
            self.users.append(list(words[1:]))
        elif name == "loadmodule":
            raise BadValue("Penstock cannot load modules: they are written for Redis's own process")
        elif name in _OBSOLETE:
            return
        elif row is None or (len(words) == 1 and not row.kind.several):
            raise BadValue("wrong number of arguments" if row else _unknown(name))
        else:
            value = row.kind.read(words[1:] or [""], self._values[row.name])
            if isinstance(row.kind, SavePoints) and row.name in loaded and value:
                value = f"{self._values[row.name]} {value}".strip()
            loaded.add(row.name)
            self.set_at_start[row.name] = None
            self._keep(row, value)

    def note(self, name: str, value: str) -> None:
        """A value that a command changes (REPLICAOF): CONFIG GET and REWRITE show it, watchers are called."""
        self._keep(DIRECTIVES[name], value)
        for callback in self._watchers.get(name, ()):
            callback()

    def _keep(self, row: Directive, value: str) -> None:
        self._values[row.name] = value
        self._numbers[row.name] = row.kind.number(value)

    def _restore(self, before: dict[str, str]) -> None:
        for name, value in before.items():
            self._keep(DIRECTIVES[name], value)

    def _notify_watchers(self, rows: Sequence[Directive], names: Sequence[str], before: dict[str, str]) -> None:
        """Call the watchers of the changed directives, first those that may refuse.

        If one does, all values are restored, and all watchers of the directives so far are called again.
        """
        now, always = self._values, self._watched_always
        changed = [row.name for row in rows if now[row.name] != before[row.name] or row.name in always]
        shown = {row.name: name for row, name in zip(rows, names, strict=True)}
        called: list[Callable[[], None]] = []
        asked: list[str] = []
        for name in changed:
            for refuser in self._refusers.get(name, ()):
                if refuser in called:
                    continue
                called.append(refuser)
                try:
                    refuser()
                except BadValue as problem:
                    self._restore(before)
                    self._undo(asked)
                    raise _refusal(shown[name], problem.text) from None
            if name in self._refusers:
                asked.append(name)
        for name in changed:
            for callback in self._watchers.get(name, ()):
                if callback not in called:
                    called.append(callback)
                    callback()

    def _undo(self, asked: Sequence[str]) -> None:
        """Directives that no watcher has refused have their former values again."""
        for name in asked:
            for callback in [*self._refusers[name], *self._watchers.get(name, ())]:
                with suppress(BadValue):  # a file that was read before may be gone
                    callback()

    # -- listing ----------------------------------------------------------------------------------------------------

    def names(self) -> Iterable[str]:
        """All names and aliases that a pattern of CONFIG GET can match."""
        return (name for name, row in _BY_NAME.items() if not row.hidden and self.seen(name) is not None)

    def seen(self, name: str) -> Directive | None:
        """The directive that a client asks for by a name; None if the server that this one passes for has none."""
        name = name.lower()
        row = _BY_NAME.get(name)
        if row is not None and (row.only_in or name in _OF_VALKEY):
            return row if self.passes_for_valkey else None
        return row

    @property
    def passes_for_valkey(self) -> bool:
        """Whether clients see a Valkey (compat-version)."""
        return is_of_valkey(self._values["compat-version"])

    @staticmethod
    def row(name: str) -> Directive | None:
        """The directive with a name or alias, in upper or lower case; None if there is none."""
        return _BY_NAME.get(name.lower())

    @staticmethod
    def begins_line(name: str) -> bool:
        """Whether a line of a file may begin with a name in lower case."""
        return name in _BY_NAME or name in _OBSOLETE or name in _OTHER_LINES

    def harmful(self) -> str:
        """The error for a start that would ignore a directive that it must not ignore; "" if there is none."""
        name, instead = harmless_values.problem(self.set_at_start, self.text)
        return f"{name} {self.text(name)}: {instead}." if name else ""

    @property
    def warnings(self) -> list[str]:
        """Lines to print at the start about surprising settings."""
        lines = []
        if "appendonly" in self.set_at_start and not self.yes("appendonly") and not self.text("save"):
            lines.append("appendonly is no, and there are no save points: only SAVE and BGSAVE save anything")
        if self.yes("daemonize"):
            lines.append("daemonize is yes: Penstock stays in the foreground; use a service manager")
        ignored = [name for name in self.set_at_start if name in _IGNORED_AT_START]
        if ignored:
            lines.append("accepted and without effect here: " + ", ".join(ignored))
        return lines


def _unknown(name: str) -> str:
    """Redis's error for a directive that does not exist, and the directive with the most similar name, if any."""
    return "Bad directive or wrong number of arguments" + "".join([f"\nDid you mean {one}?" for one in nearest(name)])


def nearest(name: str) -> list[str]:
    """The directive with the most similar name; none if there is no similar one."""
    from difflib import get_close_matches  # imported late: a start without mistakes does without it

    return get_close_matches(name, _BY_NAME, 1, SIMILAR)


def _refusal(name: str, why: str) -> ReplyError:
    return ReplyError(_raw(f"ERR CONFIG SET failed (possibly related to argument '{name}') - {why}"))


def _raw(text: str) -> bytes:
    """The bytes of a text that may have bytes from a client that are not UTF-8."""
    return text.encode(errors="surrogateescape")
