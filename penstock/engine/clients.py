"""The clients of a server: their sessions, their watched and tracked keys, monitors, and messages to send to them."""

import random

from penstock.config.settings import Settings
from penstock.engine.conditions import Conditions
from penstock.engine.session import NO_PLACES, Session
from penstock.engine.state import LOADING, MONITORED, TRACKED
from penstock.engine.table.known_commands import KnownCommands
from penstock.engine.table.row import Row
from penstock.engine.telemetry import monitor_line
from penstock.engine.telemetry.client_memory import HELD_NAME
from penstock.engine.tracking.tracking import Tracking
from penstock.protocol import reply


class Clients:
    """The sessions by their ids, and the sets of them that something is done for.

    outgoing: replies and messages to other clients than the one whose request is handled, in order. to_close: sessions
    whose connections are to be closed. The caller of the engine takes both. watchers: by database and key.
    follows_changes: whether a client watches keys, or tracks them (CLIENT TRACKING). follows_groups: whether changes of
    a stream's groups count for them, too. master: the link to the master that is followed, as CLIENT LIST shows it;
    None while it is down.
    """

    __slots__ = (
        "_commands", "_conditions", "_settings", "follows_changes", "follows_groups", "master", "monitors", "next_id",
        "outgoing", "sessions", "to_close", "tracking", "watchers",
    )  # fmt: skip

    def __init__(
        self, settings: Settings, chance: random.Random, conditions: Conditions, commands: KnownCommands
    ) -> None:
        self._commands = commands
        self._conditions = conditions
        self._settings = settings
        self.next_id = 1
        self.sessions: dict[int, Session] = {}
        self.master: Session | None = None
        self.tracking = Tracking(settings, chance, self.sessions)
        self.watchers: dict[tuple[int, bytes], set[Session]] = {}
        self.follows_changes = False
        self.follows_groups = False
        settings.watch("watch-group-changes", self._use_setting)
        self._use_setting()
        self.monitors: set[Session] = set()
        self.outgoing: list[tuple[Session, bytes]] = []
        self.to_close: list[Session] = []

    def _use_setting(self) -> None:
        self.follows_groups = self._settings.yes("watch-group-changes")

    def listed(self) -> list[Session]:
        """The sessions that CLIENT LIST shows and CLIENT KILL closes. O(n)."""
        master = self.master
        return [*self.sessions.values()] if master is None else [*self.sessions.values(), master]

    def as_client_wants(self, session: Session, answer: bytes) -> bytes:
        """A reply, or nothing where CLIENT REPLY OFF or SKIP withholds it."""
        if session.reply_skip:
            session.reply_skip -= 1
            return reply.NO_REPLY
        return reply.NO_REPLY if session.is_silent else answer

    def withhold(self, session: Session, replies: list[bytes], first: int) -> None:
        """Take back the replies from a place on that CLIENT REPLY OFF or SKIP withholds."""
        replies[first:] = [wanted for answer in replies[first:] if (wanted := self.as_client_wants(session, answer))]

    # -- MONITOR ----------------------------------------------------------------------------------------------------

    def monitor(self, session: Session, holds: bool) -> None:
        """A session begins to be shown every request, or ends (MONITOR, RESET, its connection's end)."""
        session.monitors = holds
        if holds:
            self.monitors.add(session)
        else:
            self.monitors.discard(session)
        self._conditions.set(MONITORED, bool(self.monitors))

    def show_to_monitors(self, session: Session, db_index: int, row: Row, request: list[bytes], now_us: int) -> None:
        """After the request was run, in the database it left the session in (Redis 8.6.3)."""
        if not monitor_line.is_shown(row):
            return
        line = monitor_line.line(self._commands, session, db_index, row, request, now_us)
        self.outgoing += [(monitor, line) for monitor in self.monitors if not monitor.is_silent]

    # -- changes (WATCH, CLIENT TRACKING) ---------------------------------------------------------------------------

    def watch(self, session: Session, db_index: int, key: bytes) -> None:
        """WATCH: the session's next EXEC fails if the key changes before."""
        if (db_index, key) not in session.watched:
            session.watched_bytes += len(key) + HELD_NAME
        if not session.watched:
            session.watched, session.watched_stale = set(), set()
        session.watched.add((db_index, key))
        self.watchers.setdefault((db_index, key), set()).add(session)
        self.follows_changes = True

    def unwatch(self, session: Session) -> None:
        """Forget what a session watches (EXEC, DISCARD, UNWATCH, RESET, the end of the connection)."""
        if session.watched:
            for place in session.watched:
                watching = self.watchers[place]
                watching.discard(session)
                if not watching:
                    del self.watchers[place]
            session.watched = session.watched_stale = NO_PLACES
            session.watched_bytes = 0
            self.follows_changes = bool(self.watchers) or self.tracking.follows_changes
        session.watch_broken = False

    def note_tracking(self) -> None:
        """A session has begun or ended to track keys."""
        self._conditions.set(TRACKED, bool(self.tracking.sessions))
        self.follows_changes = bool(self.watchers) or self.tracking.follows_changes

    def note_change(self, session: Session, db_index: int, key: bytes) -> None:
        """A key has changed while a session's request was run: for WATCH, and for CLIENT TRACKING."""
        for watching in self.watchers.get((db_index, key), ()):
            watching.watch_broken = True
        if self.tracking.follows_changes:
            if not self._conditions.bits & LOADING:
                self.tracking.note_change(session, key, self.outgoing)
        elif not self.watchers:
            self.follows_changes = False  # no client tracks keys any more, and the last one that was read has changed
