"""When keys were last used, or how often: kept only while maxmemory-policy asks for it (lru, lrm, lfu).

A context that notes it takes the place of the engine's ordinary one then, so that it costs nothing otherwise.
"""

from typing import Final

from penstock.engine.context import Context
from penstock.engine.server_state import ServerState
from penstock.engine.session import Session
from penstock.storage.keyspace import Value

NEW: Final = 5  # the frequency of a key that has just been made
MOST: Final = 255
MINUTE_MS: Final = 60_000
NOT_KNOWN: Final = -1  # since when a key is idle, or how often it is used
SLACK: Final = 1000  # notes of deleted keys that may remain


class Uses:
    """Of each database's keys, by name: the time of their last use in ms, or (frequency, time) as one number.

    since_ms: when the policy was chosen; a key without a note has not been used since.
    """

    __slots__ = ("by_key", "since_ms")

    def __init__(self, databases: int, now_ms: int) -> None:
        self.by_key: list[dict[bytes, int]] = [{} for _ in range(databases)]
        self.since_ms = now_ms

    def idle_ms(self, db_index: int, key: bytes, now_ms: int) -> int:
        return max(now_ms - self.by_key[db_index].get(key, self.since_ms), 0)

    def frequency(self, db_index: int, key: bytes, now_ms: int, decay_minutes: int) -> int:
        """0 to 255, less for every so many minutes without a use."""
        noted = self.by_key[db_index].get(key)
        if noted is None:
            return 0
        count, minute = noted & MOST, noted >> 8
        if not decay_minutes:
            return count
        return max(count - (now_ms // MINUTE_MS - minute) // decay_minutes, 0)


class NotingContext(Context):
    """A context that notes the use of keys."""

    __slots__ = ("counts", "reads", "uses")

    def __init__(self, server: ServerState, session: Session, policy: str) -> None:
        super().__init__(server, session)
        self.uses = Uses(len(server.keyspace.databases), server.clock.now_us() // 1000)
        self.counts = policy.endswith("lfu")
        self.reads = not policy.endswith("lrm")  # where reading is a use, too

    def value(self, key: bytes) -> Value | None:
        return self._noted(key, super().value(key))

    def look(self, key: bytes) -> Value | None:
        return self._noted(key, super().look(key))

    def _noted(self, key: bytes, value: Value | None) -> Value | None:
        if value is not None and self.reads and (self.row is None or not self.row.only_looks):
            self.note(key)
        return value

    def touch(self, key: bytes) -> None:
        super().touch(key)
        if not self.counts or key not in self.uses.by_key[self.db_index]:
            self.note(key)

    def remove(self, key: bytes) -> Value | None:
        removed = super().remove(key)
        self.uses.by_key[self.db_index].pop(key, None)
        return removed

    def note(self, key: bytes) -> None:
        """The key is used now, unless the client said that its doing is no use (CLIENT NO-TOUCH)."""
        notes = self.uses.by_key[self.db_index]
        if self.session.no_touch and key in notes:
            return
        notes[key] = self._counted(key, notes) if self.counts else self.now_ms
        if len(notes) > 2 * len(self.db.values) + SLACK:
            self.uses.by_key[self.db_index] = {key: note for key, note in notes.items() if key in self.db.values}

    def recall(self, key: bytes, idle_s: int, frequency: int) -> None:
        """Record a key's idle time or frequency from another server (RESTORE); NOT_KNOWN if it did not send one."""
        notes = self.uses.by_key[self.db_index]
        if self.counts and frequency != NOT_KNOWN:
            notes[key] = self.now_ms // MINUTE_MS << 8 | frequency
        elif not self.counts and idle_s != NOT_KNOWN:
            notes[key] = max(self.now_ms - idle_s * 1000, 0)

    def _counted(self, key: bytes, notes: dict[bytes, int]) -> int:
        """One use more: the more there were, the less likely it counts, so that 255 stand for a million."""
        settings = self.settings
        minute = self.now_ms // MINUTE_MS
        if key not in notes:
            return minute << 8 | NEW
        count = self.uses.frequency(self.db_index, key, self.now_ms, settings.number("lfu-decay-time"))
        rises = max(count - NEW, 0) * settings.number("lfu-log-factor") + 1
        if count < MOST and self.chance.random() * rises < 1:
            count += 1
        return minute << 8 | count


def choose_context(server: ServerState) -> None:
    """Give the engine the context that its eviction policy needs; recorded uses are forgotten."""
    policy = server.settings.text("maxmemory-policy")
    wanted = policy.endswith(("lru", "lrm", "lfu"))
    old = server.context
    if not wanted and not isinstance(old, NotingContext):
        return
    made = NotingContext(server, old.session, policy) if wanted else Context(server, old.session)
    made.dirty = old.dirty
    made.begin(old.session, old.now_us)
    server.context = made


def beside(server: ServerState, session: Session) -> Context:
    """A context for another session (a script's), which notes where the engine's own does."""
    context = server.context
    if not isinstance(context, NotingContext):
        return Context(server, session)
    made = NotingContext(server, session, server.settings.text("maxmemory-policy"))
    made.uses = context.uses
    return made


def uses_of(server: ServerState) -> Uses | None:
    """The recorded uses; None if the policy records none."""
    context = server.context
    return context.uses if isinstance(context, NotingContext) else None
