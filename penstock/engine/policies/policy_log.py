"""The lines about policies in the server's log: at most one a minute for each stream or group and kind of event."""

from collections.abc import Callable
from typing import Final

from penstock.storage.deadlines import NEVER

EVERY_MS: Final = 60_000
MOST: Final = 1000  # subjects and kinds that are remembered; further ones are not reported until some are a minute old
NAMES: Final = 3  # that a line shows
MOST_NAMES: Final = 10_000  # that are told from one another; further ones are counted each time
NOTICE: Final = 2
WARNING: Final = 3

SET: Final = 0  # kinds of events
MOVED: Final = 1
STUCK: Final = 2
REAPED: Final = 3
RELEASED: Final = 4
EXPIRED: Final = 5
MISSED: Final = 6
NO_SERIES: Final = 7
IDLE: Final = 8
BY_NAME: Final = (MISSED, NO_SERIES, IDLE)  # what these count has a name: it is counted once in a line


class Note:
    """Events of one kind since the last line about them: how many, the words of the last one, the names in order.

    reported_ms: when the last line was written; -EVERY_MS before the first.
    """

    __slots__ = ("count", "names", "reported_ms", "words")

    def __init__(self) -> None:
        self.count = 0
        self.words = ""
        self.names: dict[str, None] = {}
        self.reported_ms = -EVERY_MS


class PolicyLog:
    """Collects events and reports them. report: takes a level and a line; None: nothing is reported or kept.

    due_ms: when `report_due` has a line to write; NEVER if it has none.
    """

    __slots__ = ("_notes", "due_ms", "report")

    def __init__(self) -> None:
        self.report: Callable[[int, str], None] | None = None
        self._notes: dict[tuple[str, int], Note] = {}
        self.due_ms = NEVER

    def note(self, subject: str, kind: int, count: int, words: str, names: list[str]) -> None:
        """Something happened to a stream or a group. O(names)."""
        if self.report is None:
            return
        note = self._notes.get((subject, kind))
        if note is None:
            if len(self._notes) >= MOST:
                return
            note = self._notes[(subject, kind)] = Note()
        note.count += len([name for name in names if name not in note.names]) if kind in BY_NAME else count
        note.words = words
        if len(note.names) < MOST_NAMES:
            note.names.update(dict.fromkeys(names))
        self.due_ms = min(self.due_ms, note.reported_ms + EVERY_MS)

    def move(self, by_ms: int) -> None:
        """Unix time has jumped: what waits to be reported does not wait longer or shorter. O(subjects)."""
        for note in self._notes.values():
            note.reported_ms += by_ms
        self.due_ms += 0 if self.due_ms == NEVER else by_ms

    def report_due(self, now_ms: int) -> None:
        """Report what was not reported within the last minute, and forget what has been quiet since. O(subjects)."""
        self.due_ms = NEVER
        for (subject, kind), note in list(self._notes.items()):
            next_ms = note.reported_ms + EVERY_MS
            if next_ms > now_ms:
                self.due_ms = min(self.due_ms, next_ms)  # to report it, or to forget it
            elif not note.count:
                del self._notes[(subject, kind)]
            elif self.report is not None:
                self.report(
                    WARNING if kind in (STUCK, RELEASED, EXPIRED, NO_SERIES, IDLE) else NOTICE,
                    _line(subject, kind, note),
                )
                note.count, note.names, note.reported_ms = 0, {}, now_ms
                self.due_ms = min(self.due_ms, now_ms + EVERY_MS)


def _line(subject: str, kind: int, note: Note) -> str:
    if kind == SET:
        return f"policy of {subject}: {note.words}"
    if kind == MOVED:
        return f"{subject}: {note.count} {'entry' if note.count == 1 else 'entries'} moved to {note.words}"
    if kind == EXPIRED:
        return f"{subject}: {'1 entry' if note.count == 1 else f'{note.count} entries'} expired and were dropped"
    if kind == STUCK:
        return f"{subject}: nothing moves: {note.words}"
    if kind == RELEASED:
        entries = "1 entry was" if note.count == 1 else f"{note.count} entries were"
        return f"{subject}: the connection of {note.words} ended, {entries} given back"
    names = ", ".join(list(note.names)[:NAMES]) + (", ..." if note.count > min(len(note.names), NAMES) else "")
    if kind == MISSED:
        return f"{subject}: times of {'1 entry' if note.count == 1 else f'{note.count} entries'} were missed: {names}"
    if kind == IDLE:
        groups, keep = (f"group {names} was", "it keeps") if note.count == 1 else (f"groups {names} were", "they keep")
        return f"{subject}: {groups} not read for {note.words} ms, {keep} no entries"
    if kind == NO_SERIES:
        entries = "1 entry has" if note.count == 1 else f"{note.count} entries have"
        return f"{subject}: {entries} no valid {note.words}: {names}"
    consumers = "consumer was" if note.count == 1 else "consumers were"
    return f"{subject}: {note.count} {consumers} removed, not seen for {note.words} ms: {names}"


def shown(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
