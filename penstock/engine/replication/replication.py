"""Replication as the engine knows it: the ids, the stream of changes, the replicas.

The stream is the log's units, one after another, from the moment when the first replica asks for a copy. Until then
nothing is kept, and a change costs nothing more. The server sends it (server/replication).
"""

import random
from typing import Final

from penstock.clock import Clock
from penstock.config.settings import Settings
from penstock.engine.aof import aof_compat
from penstock.engine.aof.aof_compat import AofCompat
from penstock.engine.replication import replica as states
from penstock.engine.replication import stream_versions
from penstock.engine.replication.backlog import Backlog
from penstock.engine.replication.failover_state import Failover, Place
from penstock.engine.replication.master import Master
from penstock.engine.replication.replica import Replica
from penstock.engine.session import Session
from penstock.engine.telemetry.identity import NO_ID, new_id
from penstock.errors import ReplyError
from penstock.protocol import private_lines, reply
from penstock.protocol.log_reader import next_request

GETACK: Final = reply.bulks([b"REPLCONF", b"GETACK", b"*"])
NO_OFFSET: Final = -1
READ_ONLY: Final = b"READONLY You can't write against a read only replica."
MASTER_DOWN: Final = b"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."


class Stream:
    """Takes what replicas are to get (an EffectLog). `unsent` is the part that the server has not taken yet.

    offset: bytes so far, of an earlier stream of the same history too.
    """

    def __init__(self, offset: int, backlog_bytes: int) -> None:
        self.offset = offset
        self.backlog = Backlog(offset, backlog_bytes)
        self.unsent: list[bytes] = []
        self.last_write = offset  # where the last change ended; what follows is PINGs and messages

    def append(self, unit: bytes) -> None:
        if private_lines.BEGINNING in unit:  # no replica is sent what only a log may hold
            unit = _public(unit)
        self.say(unit)
        self.last_write = self.offset

    def say(self, request: bytes) -> None:
        """A request that is no change."""
        self.offset += len(request)
        self.unsent.append(request)

    def take(self) -> bytes:
        """The bytes to be sent now; they go into the backlog."""
        if not self.unsent:
            return b""
        sent = self.unsent[0] if len(self.unsent) == 1 else b"".join(self.unsent)
        self.unsent = []
        self.backlog.append(sent)
        return sent


def _public(unit: bytes) -> bytes:
    """A unit of the log without private lines; empty, or the choice of a database, if nothing else is in it."""
    public: list[tuple[bytes, bytes]] = []  # the name of a command, and the line
    at = 0
    while at < len(unit):
        words, end = next_request(unit, at)
        if words and not unit.startswith(private_lines.BEGINNING, at):
            public.append((words[0], unit[at:end]))
        at = end
    if all(name in (b"MULTI", b"EXEC", b"SELECT") for name, _ in public):
        public = [one for one in public if one[0] == b"SELECT"]
    return b"".join([line for _, line in public])


class Replication:
    """One server's part in replication.

    id: the history that the data belong to; second_id: the one before, up to `second_offset` the same.
    replicas: those that sent PSYNC or SYNC. stream: None until the first of them. pending_syncs: their PSYNC or SYNC
    the server has still to answer. wants_acks: replicas are to be asked how far they are (WAIT).
    """

    def __init__(self, settings: Settings, clock: Clock, chance: random.Random) -> None:
        self._settings = settings
        self._clock = clock
        self._chance = chance
        self.id = new_id(chance)
        self.second_id = NO_ID
        self.second_offset = NO_OFFSET
        self.stream: Stream | None = None
        self._offset = 0  # of the stream that was given up
        self.replicas: list[Session] = []
        self.pending_syncs: list[Session] = []
        self.words = AofCompat()  # that the stream has
        self._earlier_words: list[tuple[int, AofCompat]] = []  # each with the offset up to which the stream had them
        self.master: Master | None = None  # that this server follows
        self.stream_db = 0  # the database that the master's stream is in
        self.is_amid = False  # the master's stream is between MULTI and EXEC
        self.is_partial = False  # the data are a part of a copy, of which the rest could not be loaded
        self.wants_acks = False
        self.has_new_arrays = False  # and the stream is one for replicas that hold none
        self._arrays_until = 0  # the offset up to which such a stream has changes of arrays
        self.failover = Failover()
        self.full_syncs = 0
        self.partial_syncs = 0
        self.partial_syncs_refused = 0
        settings.watch("repl-backlog-size", self._resize)

    def now_ms(self) -> int:
        """A time that never jumps: for how long links are up or silent, and until when a failover waits."""
        return self._clock.monotonic_us() // 1000

    def timeout_ms(self) -> int:
        """For how long a link may be silent, or take nothing (repl-timeout)."""
        return self._settings.number("repl-timeout") * 1000

    # -- the stream -------------------------------------------------------------------------------------------------

    @property
    def offset(self) -> int:
        """Bytes of the stream so far."""
        return self._offset if self.stream is None else self.stream.offset

    @property
    def last_write_offset(self) -> int:
        """Where the last change ended in the stream."""
        return self._offset if self.stream is None else self.stream.last_write

    @property
    def kept_bytes(self) -> int:
        """Of the stream, for replicas with a cut link."""
        return 0 if self.stream is None else self.stream.backlog.end - self.stream.backlog.start

    def open_stream(self) -> Stream:
        """The stream; it begins now if it has not yet. Its log is the caller's to join (Effects.replicate)."""
        if self.stream is None:
            self.stream = Stream(self._offset, self._settings.number("repl-backlog-size"))
        return self.stream

    def close_stream(self) -> None:
        """There was no replica for long: the next one gets a full copy, with a new replication id."""
        self._offset = self.offset
        self.stream = None
        self.words = AofCompat()
        self._earlier_words = []
        self.change_id()

    def change_id(self) -> None:
        """Take a new replication id: every replica needs a full copy."""
        self.id = new_id(self._chance)
        self.second_id, self.second_offset = NO_ID, NO_OFFSET

    def new_history(self) -> None:
        """The data are a history of their own from here on; replicas so far may go on (PSYNC with the id before).

        Not where the master's stream ended amid a transaction: they have its first part, and would take for the rest
        of it what comes now.
        """
        second_id, second_offset = self.id, self.offset + 1
        self.change_id()
        if not self.is_amid:
            self.second_id, self.second_offset = second_id, second_offset
        self.stream_db, self.is_amid = 0, False

    def _resize(self) -> None:
        if self.stream is not None:
            self.stream.backlog.limit = self._settings.number("repl-backlog-size")

    def say(self, request: bytes) -> None:
        """Send replicas a request that is no change (PING, PUBLISH), if there are any."""
        if self.stream is not None and self.master is None:
            self.stream.say(request)

    def spread(self, request: list[bytes]) -> None:
        """A message that subscribers of the replicas are to get, too."""
        if self.stream is not None and self.master is None:
            self.stream.say(reply.bulks(request))

    # -- as a replica -----------------------------------------------------------------------------------------------

    def adopt(self, replication_id: str, offset: int, stream_db: int) -> None:
        """The data are a copy of the master's, as of an offset of its stream, which is in a database there."""
        self.stream_db, self.is_amid = stream_db, False
        self.is_partial = False
        self.id = replication_id
        self.second_id, self.second_offset = NO_ID, NO_OFFSET
        self._offset = offset
        self.stream = None
        self._earlier_words = []
        self.open_stream()

    def continue_stream(self, new_id: str) -> bool:
        """The master continues the stream; returns whether its replication id has changed."""
        is_new = new_id not in ("", self.id)
        if is_new:
            self.second_id, self.second_offset = self.id, self.offset + 1
            self.id = new_id
        self.open_stream()
        return is_new

    def pass_on(self, piece: bytes) -> None:
        """A piece of the master's stream was applied: our own replicas get the same bytes."""
        self.open_stream().append(piece)

    def admit_write_on_replica(self) -> None:
        """READONLY where clients may not write on a replica (Redis 8.6.3)."""
        if self._settings.yes("replica-read-only"):
            raise ReplyError(READ_ONLY)

    def is_stale(self) -> bool:
        """Whether the server has lost its master, and may not serve data that may be out of date."""
        master = self.master
        return master is not None and not master.is_up and not self._settings.yes("replica-serve-stale-data")

    # -- replicas ---------------------------------------------------------------------------------------------------

    def state_of(self, session: Session) -> Replica:
        """The state of a replica; made at its first REPLCONF, PSYNC or SYNC."""
        found = session.replica
        if found is None:
            found = session.replica = Replica(self.now_ms())
        return found

    def arrive(self, session: Session, asked_id: bytes, asked_offset: int, is_plain_sync: bool) -> None:
        """A client sent PSYNC or SYNC: it is a replica, and the server replies."""
        found = self.state_of(session)
        found.asked_id = asked_id.decode(errors="replace")
        found.asked_offset = asked_offset
        found.is_plain_sync = is_plain_sync
        found.state = states.WAITS
        found.since_ms = found.ack_ms = self.now_ms()
        session.note_replica()
        self.replicas.append(session)
        self._choose_words()
        self.pending_syncs.append(session)

    def forget(self, session: Session) -> None:
        """A replica's connection was closed."""
        if session.replica is not None and session.replica.is_attached:
            self.replicas.remove(session)
            if session in self.pending_syncs:
                self.pending_syncs.remove(session)

    def can_continue(self, found: Replica) -> bool:
        """Whether a replica may continue with the backlog, without a full copy."""
        if self.stream is None or found.is_plain_sync or found.asked_offset < 1:
            return False
        offset = found.asked_offset - 1
        is_ours = found.asked_id == self.id or (
            found.asked_id == self.second_id and found.asked_offset <= self.second_offset
        )
        if offset < self._arrays_until and not self.reads_arrays(found):
            return False
        return is_ours and self.stream.backlog.has(offset) and self._knows_words_since(found, offset)

    def acknowledged(self, found: Replica, offset: int, synced: int) -> None:
        """REPLCONF ACK: so much is applied, and so much of it safe on the replica's disk (NO_ACK: unknown)."""
        found.ack_ms = self.now_ms()
        found.acked = max(found.acked, offset)
        found.synced = max(found.synced, synced)
        if found.state == states.RECEIVES and found.is_sent:
            found.state = states.ONLINE  # it has loaded the snapshot
        found.sends_acks = found.sends_acks or found.state == states.ONLINE

    def _choose_words(self) -> None:
        """A replica has come: the stream has the words that all replicas know."""
        known = AofCompat(consumer=aof_compat.consumer_of(self._settings))
        for session in self.replicas:
            if session.replica is not None and not session.replica.wants_only_snapshot:
                known = known.within(self._known_to(session.replica))
        if not known.equals(self.words):
            start = 0 if self.stream is None else self.stream.backlog.start
            kept = [one for one in self._earlier_words if one[0] > start]
            self._earlier_words = [*kept, (self.offset, self.words)]
            self.words = known

    def _known_to(self, found: Replica) -> AofCompat:
        at_least = aof_compat.version_of(self._settings.text("rdb-compat-version"))
        return found.kind.compat(at_least, aof_compat.consumer_of(self._settings))

    def knows_all_words(self, found: Replica) -> bool:
        """Whether a replica knows whatever a stream may have; one that wants a snapshot alone is sent none."""
        return found.wants_only_snapshot or self._known_to(found).equals(AofCompat())

    def reads_field_times(self, found: Replica) -> bool:
        """Whether a replica can load a snapshot that has the times of hash fields (RDB 12)."""
        at_least = aof_compat.version_of(self._settings.text("rdb-compat-version"))
        return max(found.kind.version, at_least) >= stream_versions.FIRST_WITH_FIELD_TIMES

    def note_array(self) -> None:
        """An array changes: a replica that does not know the words would skip them in silence."""
        self.has_new_arrays = self.has_new_arrays or not self.words.releases

    def replicas_without_arrays(self) -> list[Session]:
        """The replicas that do not know arrays: they cannot follow a stream with changes of arrays."""
        self.has_new_arrays = False
        self._arrays_until = self.offset
        return [one for one in self.replicas if one.replica is not None and not self.reads_arrays(one.replica)]

    def reads_arrays(self, found: Replica) -> bool:
        """Whether a replica knows arrays (Redis 8.8), or only wants a snapshot and does not follow."""
        return found.wants_only_snapshot or self._known_to(found).releases

    def reads_all(self, found: Replica) -> bool:
        """Whether a replica reads everything in a snapshot, Penstock's own fields included: a Penstock."""
        return found.kind.version == aof_compat.NEWEST

    def _knows_words_since(self, found: Replica, offset: int) -> bool:
        """Whether a replica knows every command in the stream from an offset on."""
        known = self._known_to(found)
        since = [words for end, words in self._earlier_words if end > offset]
        return all(words.within(known).equals(words) for words in [*since, self.words])

    def acked(self, offset: int) -> int:
        """How many replicas have applied so much."""
        return sum([one.acked >= offset for one in self.online()])

    def synced(self, offset: int) -> int:
        """How many replicas have so much on their disks."""
        return sum([one.synced >= offset for one in self.online()])

    def place_of(self, session: Session, found: Replica) -> Place:
        """A replica's address: the one that it announced, or that of its connection."""
        return found.host or session.address.rpartition(":")[0].strip("[]"), found.port

    def online(self) -> list[Replica]:
        """Those that follow the stream."""
        return [
            session.replica
            for session in self.replicas
            if session.replica is not None and session.replica.state == states.ONLINE
        ]

    def good(self) -> int:
        """How many replicas follow closely enough for min-replicas-max-lag."""
        most_s, now_ms = self._settings.number("min-replicas-max-lag"), self.now_ms()
        return sum([one.sends_acks and one.lag_s(now_ms) <= most_s for one in self.online()])

    def needed(self) -> int:
        """How many replicas must follow closely for writers to be served; 0: that is not asked."""
        return self._settings.number("min-replicas-to-write") if self._settings.number("min-replicas-max-lag") else 0

    def admit_write(self) -> None:
        """NOREPLICAS where too few replicas follow a master; a replica has its own reasons (Redis 8.6.3)."""
        if self.master is None and self.needed() and self.good() < self.needed():
            raise ReplyError(b"NOREPLICAS Not enough good replicas to write.")
