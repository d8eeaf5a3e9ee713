"""The replicas of this server: their PSYNCs are answered, the stream is sent, silence is noticed."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.engine.aof import aof_compat, rewrite_values
from penstock.engine.rdb import beyond_rdb
from penstock.engine.replication import failover
from penstock.engine.replication import replica as states
from penstock.engine.replication.replica import Replica
from penstock.engine.replication.replication import GETACK
from penstock.engine.session import Session
from penstock.protocol import reply
from penstock.server.replication.full_sync import FullSync
from penstock.server.replication.master_link import MasterLink
from penstock.server.replication.snapshot_child import HOLDS_NO_ARRAYS, NewChild, new_child
from penstock.server.replication.targets import Targets
from penstock.storage.aof.disk import Disk
from penstock.storage.types.hashes import Hash

if TYPE_CHECKING:
    from penstock.server.connections.connection import Connection
    from penstock.server.turns.turn import Turn

PING: Final = reply.bulks([b"PING"])
SECOND_MS: Final = 1000


class Replicas:
    """The work of a turn's end and of cron for replicas."""

    def __init__(
        self, turn: "Turn", disk: Disk, report: Callable[[str], None], new_child: NewChild = new_child
    ) -> None:
        self._turn = turn
        self._engine = turn.engine
        self._replication = turn.engine.replication
        self._settings = turn.engine.settings
        self._report = report
        self._targets = turn.engine.waiting.migrator = Targets(turn.engine.clock, turn.engine.settings)
        self._replication.failover.report = report
        self._full_sync = FullSync(turn.engine, disk, report, self.end_of_turn, new_child)
        self.link: MasterLink | None = None
        self._pinged_ms = 0
        self._looked_ms = 0
        self._left_ms = 0  # when the last replica left; 0: there are some, or nothing is kept for them

    # -- a turn -----------------------------------------------------------------------------------------------------

    def end_of_turn(self) -> None:
        """Send what the stream has, and answer PSYNCs."""
        replication = self._replication
        if failover.is_running(self._engine.server):
            self._fail_over()
        if replication.wants_acks:
            replication.wants_acks = False
            replication.say(GETACK)
        self._send_stream()
        if replication.pending_syncs:
            sessions, replication.pending_syncs = replication.pending_syncs, []
            for session in sessions:
                self._answer(session)

    def _send_stream(self) -> None:
        """Send what the stream has to the replicas that follow it."""
        replication = self._replication
        if replication.stream is None:
            return
        sent = replication.stream.take()
        if replication.has_new_arrays:
            self._close_those_without_arrays()
        for session in replication.replicas:
            found, link = session.replica, self._turn.connections.get(session.id)
            if found is not None and found.follows and link is not None:
                self._give(found, link, sent)

    def _close_those_without_arrays(self) -> None:
        for session in self._replication.replicas_without_arrays():
            link = self._turn.connections.get(session.id)
            if link is not None:
                self._report(f"The link to replica {session.address} is closed: {HOLDS_NO_ARRAYS}.")
                link.abort()

    def _fail_over(self) -> None:
        """Make the link to the new master at once where all is ready for it: writers wait."""
        followed = self._replication.master
        failover.look(self._engine.server)
        if self._replication.master is not followed and self.link is not None:
            self.link.cron()

    def _give(self, found: Replica, link: "Connection", sent: bytes) -> None:
        """Pass on a piece of the stream, now or once the replica is online."""
        if found.state != states.ONLINE:
            if sent:
                found.pending.append(sent)
                found.pending_bytes += len(sent)
                link.check_output()
            return
        if found.pending:
            sent = b"".join([*found.pending, sent])
            found.pending = []
            found.pending_bytes = 0
        if sent:
            link.send_now(sent)

    def _answer(self, session: Session) -> None:
        """A PSYNC or SYNC: go on where the replica was, or have a snapshot made for it."""
        replication, found = self._replication, session.replica
        link = self._turn.connections.get(session.id)
        if link is None or found is None:
            return
        if not link.is_settled():
            replication.pending_syncs.append(session)  # replies to its earlier requests come first
            return
        if replication.master is not None and not replication.knows_all_words(found):
            self._report(
                f"Replica {session.address} may not know all that this server's master sends, and skips what it does"
                " not know: aof-compat-version of the master says what its stream has."
            )
        if replication.can_continue(found):
            stream = replication.stream
            assert stream is not None, "a replica that goes on has a stream"
            offset = found.asked_offset - 1
            new_id = b" " + replication.id.encode() if found.takes_new_ids else b""
            found.state = states.ONLINE
            found.follows = True
            replication.partial_syncs += 1
            self._report(f"Replica {session.address} goes on at offset {offset}.")
            link.send_now(b"+CONTINUE%b\r\n%b" % (new_id, stream.backlog.since(offset)))
            return
        if found.asked_id not in ("", "?"):
            replication.partial_syncs_refused += 1
        replication.full_syncs += 1
        self._report(f"Replica {session.address} asks for a full copy.")
        self._begin_if_due()

    # -- snapshots --------------------------------------------------------------------------------------------------

    def _waiting(self) -> list[tuple["Connection", Replica]]:
        """Replicas that wait for a snapshot to be begun, in the order in which they came."""
        connections = self._turn.connections
        return [
            (connections[session.id], session.replica)
            for session in self._replication.replicas
            if session.replica is not None
            and session.replica.state == states.WAITS
            and not session.replica.follows
            and session not in self._replication.pending_syncs
            and session.id in connections
        ]

    def _begin_if_due(self) -> None:
        """Begin a snapshot for those that wait: at once with a file, else after repl-diskless-sync-delay."""
        waiting = self._waiting()
        engine, settings = self._engine, self._settings
        if not waiting or self._full_sync.runs or engine.conditions.busy or engine.conditions.loading:
            return
        if self._replication.is_amid:
            return  # what the master has begun is not in the data yet
        if engine.persistence.child or engine.persistence.saves.runs:
            return  # one child at a time
        first = waiting[0][1]
        without_file = first.takes_eof and settings.yes("repl-diskless-sync")
        group = [
            (link, found)
            for link, found in waiting
            if found.takes_eof == first.takes_eof and found.wants_only_functions == first.wants_only_functions
        ]
        delay_ms = settings.number("repl-diskless-sync-delay") * SECOND_MS
        most = settings.number("repl-diskless-sync-max-replicas")
        is_enough = 0 < most <= len(group)
        if without_file and self._replication.now_ms() - first.since_ms < delay_ms and not is_enough:
            return
        self._begin(group, without_file)

    def _begin(self, group: list[tuple["Connection", Replica]], without_file: bool) -> None:
        replication = self._replication
        if replication.stream is None:
            self._pinged_ms = replication.now_ms()
        stream = replication.open_stream()
        self._send_stream()  # what the copy has is not to follow it
        if replication.master is None:
            self._engine.effects.replicate(stream)  # which begins with a SELECT
        replicas = [found for _, found in group if not found.wants_only_snapshot]
        field_times = replication.master is not None or all(replication.reads_field_times(one) for one in replicas)
        try:
            self._full_sync.begin(list(group), without_file, field_times)
        except OSError as failure:
            self._report(f"A snapshot for replicas cannot be made: {failure}.")
            for link, _ in group:
                link.abort()
            return
        for link, found in group:
            found.follows = not found.wants_only_snapshot
            if not found.is_plain_sync:
                link.send_now(b"+FULLRESYNC %b %d\r\n" % (replication.id.encode(), replication.offset))
        if not field_times and replication.words.field_expiry:
            self._send_field_times()
        says_more = replication.master is None and replication.words.has_8_12  # the stream is a master's, byte by byte
        if says_more and not all(replication.reads_all(found) for _, found in group):
            self._say(beyond_rdb.of_keyspace(self._engine.keyspace))

    def _send_field_times(self) -> None:
        """Say in the stream what the snapshot could not: the times of all fields. O(their number)."""
        for db_index, db in enumerate(self._engine.keyspace.databases):
            for key in db.parts_due.times:
                value = db.values[key]
                if isinstance(value, Hash):
                    select = reply.bulks([b"SELECT", b"%d" % db_index])
                    self._say(b"".join([select, *rewrite_values.time_lines(key, value)]))

    def _say(self, requests: bytes) -> None:
        """Put requests about the snapshot's data into the stream."""
        if requests:
            self._replication.open_stream().append(requests)
            self._engine.effects.start_of_file()  # the next change says its database

    # -- time -------------------------------------------------------------------------------------------------------

    def cron(self) -> None:
        """Called ten times a second: begin snapshots, ping, drop silent replicas, forget an unused stream."""
        now_ms = self._replication.now_ms()
        if now_ms - self._looked_ms >= SECOND_MS:
            self._looked_ms = now_ms
            self._look_after_all(now_ms)
        if self.link is not None:
            self.link.cron()
        self._targets.cron()
        self._full_sync.cron()
        self._begin_if_due()
        if self._replication.stream is not None or self._replication.pending_syncs:
            self.end_of_turn()

    def _look_after_all(self, now_ms: int) -> None:
        replication, settings = self._replication, self._settings
        timeout_ms = replication.timeout_ms()
        for session in list(replication.replicas):
            found, link = session.replica, self._turn.connections.get(session.id)
            if found is None or link is None:
                continue
            if found.state == states.WAITS and link.is_settled():
                link.send_now(b"\n")  # still here
            elif (found.state == states.ONLINE or found.is_sent) and now_ms - found.ack_ms > timeout_ms:
                self._report(f"Replica {session.address} is silent: its link is closed.")
                link.abort()
        if replication.replicas:
            self._left_ms = 0
            if failover.is_running(self._engine.server):
                return  # replicas are to acknowledge the last change
            if now_ms - self._pinged_ms >= settings.number("repl-ping-replica-period") * SECOND_MS:
                self._pinged_ms = now_ms
                replication.say(PING)
        elif replication.stream is not None and replication.master is None:
            self._left_ms = self._left_ms or now_ms
            ttl_ms = settings.number("repl-backlog-ttl") * SECOND_MS
            if ttl_ms and now_ms - self._left_ms >= ttl_ms:
                self._left_ms = 0
                replication.close_stream()
                effects = self._engine.effects
                effects.replicate(None)
                effects.compat = aof_compat.within_words(settings, replication.words)

    def close(self) -> None:
        """At the server's end."""
        self._full_sync.stop()
        self._targets.close()
