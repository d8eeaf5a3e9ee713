"""The context of a handler: the client's session, its database, the time, and functions to report a change."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from penstock.engine import refusals
from penstock.engine.effects import newer, pack
from penstock.engine.session import Session
from penstock.engine.state import REPLIES_WITHHELD
from penstock.engine.table.row import Row
from penstock.engine.waiting.blocked_request import BlockedRequest
from penstock.protocol import reply
from penstock.storage.key_table import KeyTable
from penstock.storage.keyspace import Database, Value
from penstock.storage.lazy_free import LARGEST_AT_ONCE, effort
from penstock.storage.streams import ids
from penstock.storage.streams.stream import Stream
from penstock.storage.types.large_strings import LargeString

if TYPE_CHECKING:
    from penstock.engine.server_state import ServerState

BLOCKED: Final = b"(nothing yet)"  # returned by a handler that blocked its session; compared by identity


class Context:
    """One request in hand, and the doors to the parts of the server. The engine aims one at each request in turn.

    The doors are filled once: a handler names a part, never the engine. Time is read once a request: `now_ms` stays the
    same through an EXEC.
    """

    __slots__ = (
        "_databases", "_id_reply", "_ms", "_seq", "access", "args", "attempt", "blocking", "chance", "clients", "clock",
        "cluster", "commands", "compatibility", "conditions", "db", "db_index", "dirty", "effects", "form_limits",
        "in_script", "key_events", "keyspace", "lazy_free", "memory", "now_ms", "now_us", "persistence", "policies",
        "replication", "resp3", "row", "runner", "scripts", "server", "session", "settings", "statistics",
        "subscriptions", "telemetry", "text", "waiting", "waits",
    )  # fmt: skip

    def __init__(self, server: "ServerState", session: Session) -> None:
        self.server = server  # for functions of the engine that work on all of it
        self.settings = server.settings
        self.keyspace = server.keyspace
        self.effects = server.effects
        self.statistics = server.statistics
        self.blocking = server.blocking
        self.clients = server.clients
        self.key_events = server.key_events
        self.conditions = server.conditions
        self.access = server.access
        self.chance = server.chance
        self.clock = server.clock
        self.cluster = server.cluster
        self.commands = server.commands
        self.compatibility = server.compatibility
        self.form_limits = server.form_limits
        self.lazy_free = server.lazy_free
        self.memory = server.memory
        self.persistence = server.persistence
        self.policies = server.policies
        self.replication = server.replication
        self.runner = server.runner
        self.scripts = server.scripts
        self.subscriptions = server.subscriptions
        self.telemetry = server.telemetry
        self.waiting = server.waiting
        self.session = session
        self.db_index = 0
        self._databases = server.keyspace.databases
        self.db: Database = self._databases[0]
        self.now_us = 0
        self.now_ms = 0
        self.resp3 = False
        self.dirty = 0  # changes since the start, for INFO
        self.in_script = False  # the context is that of a script's requests
        self.waits = True  # whether the request may wait (not inside EXEC, not while the log is replayed)
        self.attempt: BlockedRequest | None = None  # the blocked request that is being tried again
        self.row: Row | None = None  # the row and the words in hand, for a handler that blocks
        self.args: list[bytes] = []
        self._ms = self._seq = 0  # of the id that was asked for last in `id_reply`
        self._id_reply = reply.bulk(b"0-0")
        self.text = b""  # the bytes that asked for `args`, where they were kept

    def begin(self, session: Session, now_us: int) -> None:
        self.session = session
        self.now_us = now_us
        self.now_ms = now_us // 1000
        self.resp3 = session.resp == 3
        self.db_index = session.db_index
        self.db = self._databases[session.db_index]

    def resume(self, row: Row | None, args: list[bytes]) -> None:
        """Continue with a request after other requests were run within it."""
        self.row, self.args, self.text = row, args, b""

    def select(self, db_index: int) -> None:
        """Work in another database from here on (SELECT; the session's own number is the caller's to set)."""
        self.db_index = db_index
        self.db = self._databases[db_index]

    # -- what the client may know of (compat-version) ----------------------------------------------------------------

    def hides(self, word: bytes) -> bool:
        """Whether the request in hand must not know an option. A line of the log knows everything."""
        return self.row is not None and word in self.row.hidden and not self.session.privileged

    def speaks_valkey(self) -> bool:
        """Whether the request in hand is read as by Valkey; a line of the log never is."""
        return self.compatibility.is_valkey and not self.session.privileged

    def shown(self, fields: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """A reply's fields without those that are hidden."""
        if self.row is None or not self.row.hidden:
            return fields
        return [field for field in fields if field[0] not in self.row.hidden]

    def id_reply(self, ms: int, seq: int) -> bytes:
        """An id as a bulk string. Within a millisecond, XADDs to many streams make the same id one after the other."""
        if ms != self._ms or seq != self._seq:
            self._ms, self._seq = ms, seq
            self._id_reply = reply.bulk(ids.text_of(ms, seq))
        return self._id_reply

    def sees_expired(self) -> bool:
        """Whether the request in hand finds what has expired: a line of the log, or CLIENT IMPORT-SOURCE (Valkey)."""
        session = self.session
        return session.privileged or (session.imports and self.conditions.imports)

    def keeps_past(self) -> bool:
        """Whether a time in the past deletes nothing: in the log the DEL follows; import-mode (Valkey)."""
        return self.session.privileged or self.conditions.imports

    # -- reading ----------------------------------------------------------------------------------------------------

    def value(self, key: bytes) -> Value | None:
        """The live value of a key, or None; a key found overdue is removed on the way (lazy expiry)."""
        db = self.db
        if db.expires and self._is_overdue(key):
            return None
        return db.values.get(key)

    def has(self, key: bytes) -> bool:
        """Whether `value` would find a value. Of a packed string no object is made."""
        db = self.db
        if db.expires and self._is_overdue(key):
            return False
        return key in db.values

    def looked_up(self, key: bytes) -> bool:
        """As `has`, counted as `read` counts."""
        if self.has(key):
            self.statistics.hits += 1
            return True
        self._missed(key)
        return False

    def _is_overdue(self, key: bytes) -> bool:
        """Whether a key's time has passed; then it is removed, if it may be, and never seen."""
        when_ms = self.db.expires.get(key)
        return when_ms is not None and when_ms < self.now_ms and self.expire(key)

    def look(self, key: bytes) -> Value | None:
        """As `value`, for a caller that does not change it."""
        db = self.db
        if db.expires and self._is_overdue(key):
            return None
        return db.values.look(key)

    def read(self, key: bytes) -> Value | None:
        """As `look`, counted in INFO's keyspace_hits and keyspace_misses: for commands that only read."""
        value = self.look(key)
        if value is None:
            self._missed(key)
        else:
            self.statistics.hits += 1
        return value

    def _missed(self, key: bytes) -> None:
        self.statistics.misses += 1
        self.event("m", b"keymiss", key)

    def stream(self, key: bytes) -> Stream | None:
        """The stream at a key, None where there is no key, WRONGTYPE where there is something else."""
        value = self.value(key)
        if value is None or isinstance(value, Stream):
            return value
        raise refusals.wrong_type()

    def read_stream(self, key: bytes) -> Stream | None:
        """As `stream`, counted as `read` counts; what reads pending lists, and XACK, go this way too (Redis 8.6.3)."""
        value = self.read(key)
        if value is None or isinstance(value, Stream):
            return value
        raise refusals.wrong_type()

    def string(self, key: bytes) -> bytes | None:
        """The string at a key, None where there is no key, WRONGTYPE where there is something else."""
        value = self.value(key)
        if value is None or isinstance(value, bytes):
            return value
        if isinstance(value, LargeString):
            return value.text()
        raise refusals.wrong_type()

    # -- changing ---------------------------------------------------------------------------------------------------

    def put(self, key: bytes, value: Value) -> None:
        """Set a key, new or not; blocked readers of it are looked at after the request."""
        self.db.put(key, value)
        self.touch(key)
        self.signal(key)

    def remove(self, key: bytes) -> Value | None:
        """Take a key away for any reason: watchers and blocked readers learn of it."""
        if self.blocking.by_key:
            self.blocking.leave_key(self.db_index, key, self.now_ms)  # RENAME and MOVE put the value elsewhere
        value = self.db.remove(key)
        if value is not None:
            self.touch(key)
            self.signal(key)
        return value

    def _writes_over_import(self) -> bool:
        """Whether the request may write in import-mode: to what has expired it must not add (Valkey 9.1.2)."""
        return self.conditions.imports and self.row is not None and self.row.write

    def expire(self, key: bytes) -> bool:
        """Remove a key past its time; False where it must stay for now (a pause, a replica).

        Logged as `DEL key` (Redis 8.6.3).
        """
        if self.sees_expired():
            return False
        if self.conditions.keeps_expired(self.now_ms) and not self._writes_over_import():
            return True  # invisible, but kept
        value = self.remove(key)
        self.log(b"DEL", key)
        self.end_expired(key, value)
        return True

    def expire_overdue(self, most: int) -> int:
        """Remove at most so many keys past their time, as `expire` does, each logged as a unit of its own.

        Not while they must stay. How many; there may be more. O(most), O(most * log n) with a scan.
        """
        effects, blocking = self.effects, self.blocking
        keys = self.db.overdue(self.now_ms, most)
        if blocking.by_key:
            for key in keys:
                blocking.note_seen(self.db_index, key)
        expired = self.db.take_overdue(keys)
        if effects.log is not None:
            effects.add_units(self.db_index, [pack((b"DEL", key)) for key, _ in expired])
        is_followed = self.clients.follows_changes or bool(blocking.by_key)
        for key, value in expired:
            if is_followed:
                self.touch(key)
                self.signal(key)
            self.end_expired(key, value)
        return len(expired)

    def end_expired(self, key: bytes, value: Value | None) -> None:
        """A key was removed because its time has passed."""
        if not isinstance(value, bytes):
            self.free_lazily(value)
        if self.key_events.letters:
            self.event("x", b"expired", key)
        self.statistics.expired += 1

    def free_lazily(self, value: Value | KeyTable | None) -> None:
        """A value, or all of a database, was deleted and is not referenced elsewhere: free it.

        Bit by bit; at once where there is a limit of memory, for what is free is to be used, and while a log is loaded,
        for no time is given to it then.
        """
        if value is not None and not self.memory.limit and not self.conditions.loading:
            self.lazy_free.take(value)

    def count_lazily_freed(self, value: Value | KeyTable | None) -> None:
        """For INFO's lazyfreed_objects: what Redis would free in a thread of its own."""
        if isinstance(value, KeyTable):
            self.statistics.lazyfreed += len(value)
        elif value is not None and effort(value) > LARGEST_AT_ONCE:
            self.statistics.lazyfreed += 1

    # -- telling ----------------------------------------------------------------------------------------------------

    def log(self, *words: bytes) -> None:
        """An effect: a line of the log's next unit."""
        self.effects.add(self.db_index, words)

    def log_request(self, args: list[bytes]) -> None:
        """The request as typed is the effect."""
        effects = self.effects
        if effects.log is not None:
            text = self.text if args is self.args else b""
            effects.add_packed(self.db_index, text or reply.bulks(args))

    def log_newer(self, words: list[bytes]) -> None:
        """A line in words of Redis 8.12; a private one where an older Redis must be able to load the log."""
        effects = self.effects
        if effects.log is not None:
            effects.add_packed(self.db_index, newer(words, effects.compat.has_8_12))

    def touch(self, key: bytes) -> None:
        """A key's value changed: WATCH makes transactions fail, clients that track it are notified (Redis 8.6.3)."""
        if self.clients.follows_changes:
            self.clients.note_change(self.session, self.db_index, key)

    def count_group_changes(self, key: bytes, count: int) -> None:
        """Groups of a stream, or their pending entries, changed: with watch-group-changes the key changed, too.

        (Redis 8.6.3; Valkey counts it as one since 9.1.3.)
        """
        self.dirty += count
        if self.clients.follows_groups and count:
            self.touch(key)

    def signal(self, key: bytes) -> None:
        """Blocked readers of a key may have something now: they are served after the whole request."""
        if self.blocking.by_key:
            self.blocking.signal(self.db_index, key)

    def is_awaited(self, key: bytes) -> bool:
        """Whether a request is blocked at a key."""
        return (self.db_index, key) in self.blocking.by_key

    def event(self, kind: str, name: bytes, key: bytes) -> None:
        """A keyspace event of one class letter: event("t", b"xadd", key)."""
        if self.key_events.letters:
            self.key_events.publish(self.db_index, kind, name, key)

    def part_event(self, kind: str, name: bytes, key: bytes, parts: Sequence[bytes]) -> None:
        """As `event`, with the fields or members that it is about, for clients that want these (Redis 8.8)."""
        if self.key_events.letters:
            self.key_events.publish(self.db_index, kind, name, key)
            if self.key_events.of_parts:
                self.key_events.publish_parts(self.db_index, kind, name, key, parts)

    def notify_flush(self, is_lazy: bool) -> bytes:
        """A database was emptied: notify clients that track keys. Returns the message to send before the reply.

        is_lazy: by an asynchronous request, whose reply Redis does not send from another thread.
        """
        is_first = self.waits and not is_lazy and not self.session.state & REPLIES_WITHHELD
        return self.clients.tracking.note_flush(self.session, is_first, self.clients.outgoing)

    def notify_reload(self) -> None:
        """All data were replaced: as after a flush, but the session itself is notified after its reply."""
        self.clients.tracking.note_flush(self.session, False, self.clients.outgoing)

    def show_to_monitors(self, row: Row, request: list[bytes]) -> None:
        """MONITOR: a request of this session was run."""
        self.clients.show_to_monitors(self.session, self.db_index, row, request, self.now_us)

    def show_script(self) -> None:
        """MONITOR: a request that runs a script is shown before the requests of the script (Redis 8.6.3)."""
        if self.clients.monitors and not self.session.privileged:
            assert self.row is not None, "a request that runs has a row"
            self.show_to_monitors(self.row, self.args)

    def close(self, session: Session) -> None:
        """Close a connection; the one whose request is being run, when its reply has been sent."""
        if session is self.session or session.is_master:  # the link to the master looks at it
            session.closing = True
        else:
            self.clients.to_close.append(session)
