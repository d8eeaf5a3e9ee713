"""Pings, silence, slow replicas and the backlog's end, with a clock that is turned."""

import asyncio

import pytest

from penstock.engine.replication import master as links
from penstock.engine.replication import role
from penstock.protocol.reply import bulks
from penstock.server.replication.replicas import Replicas
from penstock.server.replication.snapshot_child import SnapshotChild
from tests.support.fake_server import Client, FakeServer
from tests.support.memory_disk import MemoryDisk

PING = b"*1\r\n$4\r\nPING\r\n"


class Master(FakeServer):
    """A server without a network and with a stream that has begun."""

    def __init__(self, **directives: str) -> None:
        super().__init__(**directives)
        self.replicas = Replicas(self.turn, MemoryDisk(), self.stops.append)
        self.turn.replicas = self.replicas
        self.engine.effects.replicate(self.engine.replication.open_stream())
        self.client = self.connect()

    def cron(self) -> None:
        self.replicas.cron()
        self.loop.turn()

    def pass_s(self, seconds: int) -> None:
        """Second by second, as the cron does."""
        for _ in range(seconds):
            self.loop.pass_ms(1000)
            self.cron()

    def follow(self, slow: bool = False) -> Client:
        """A replica that goes on from the stream's beginning."""
        replica = self.connect(slow=slow)
        request = bulks([b"PSYNC", self.engine.replication.id.encode(), b"1"])
        assert replica.says(request) == b"+CONTINUE\r\n"
        return replica


@pytest.fixture
def master() -> Master:
    return Master()


def test_a_change_goes_out_at_the_end_of_its_turn(master: Master) -> None:
    replica = master.follow()
    master.client.says(b"SET k v\r\n")

    assert replica.received().endswith(bulks([b"SET", b"k", b"v"]))


def test_a_replica_that_comes_again_gets_the_backlog(master: Master) -> None:
    master.client.says(b"SET k v\r\n")
    replica = master.connect()
    replica.says(b"REPLCONF capa penstock\r\n")
    answer = replica.says(bulks([b"PSYNC", master.engine.replication.id.encode(), b"1"]))

    assert answer == b"+CONTINUE\r\n" + bulks([b"SELECT", b"0"]) + bulks([b"SET", b"k", b"v"])


def test_replies_to_what_came_before_stand_before_the_answer_to_psync(master: Master) -> None:
    replica = master.connect()
    request = b"REPLCONF capa psync2\r\n" + bulks([b"PSYNC", master.engine.replication.id.encode(), b"1"])
    master.log_writer.holds = True
    assert replica.says(request) == b""
    master.log_writer.sync()
    master.log_writer.holds = False
    master.replicas.end_of_turn()

    assert replica.received() == b"+OK\r\n+CONTINUE %b\r\n" % master.engine.replication.id.encode()


def test_replicas_are_pinged_every_ten_seconds(master: Master) -> None:
    replica = master.follow()
    master.pass_s(1)
    replica.received()
    master.pass_s(20)

    assert replica.received() == 2 * PING


def test_a_silent_replica_is_closed_and_one_that_acknowledges_is_not(master: Master) -> None:
    silent, alive = master.follow(), master.follow()
    for _ in range(62):
        alive.says(b"REPLCONF ACK 0\r\n")
        master.pass_s(1)

    assert silent.transport.aborted
    assert not alive.transport.aborted


def test_a_replica_that_takes_too_little_is_closed() -> None:
    master = Master(client_output_buffer_limit="replica 100000 0 0")
    slow, quick = master.follow(slow=True), master.follow()
    for _ in range(20):
        master.client.says(b"SET k " + b"v" * 10_000 + b"\r\n")

    assert slow.transport.aborted
    assert not quick.transport.aborted


def test_a_stream_without_replicas_for_long_is_given_up() -> None:
    master = Master(repl_backlog_ttl="100")
    before = master.engine.replication.id
    master.pass_s(102)

    assert master.engine.replication.stream is None
    assert master.engine.replication.id != before
    assert master.client.says(b"SET k v\r\n") == b"+OK\r\n"


def test_a_replica_keeps_the_history_that_it_follows_though_it_has_no_replicas() -> None:
    replica = Master(repl_backlog_ttl="100")
    role.follow(replica.engine.server, "127.0.0.1", 7001)
    replica.engine.replication.adopt("a" * 40, 500, 0)
    replica.pass_s(200)

    assert replica.engine.replication.id == "a" * 40
    assert replica.engine.replication.offset == 500


def test_wait_asks_replicas_and_counts_their_answers(master: Master) -> None:
    replica = master.follow()
    master.client.says(b"SET k v\r\n")
    replica.received()

    assert master.client.says(b"WAIT 1 0\r\n") == b""
    assert replica.received() == bulks([b"REPLCONF", b"GETACK", b"*"])
    offset = master.engine.replication.offset
    assert replica.says(b"REPLCONF ACK %d\r\n" % offset) == b""
    assert master.client.received() == b":1\r\n"


def test_wait_ends_with_what_there_is_when_its_time_is_up(master: Master) -> None:
    first, _ = master.follow(), master.follow()
    master.client.says(b"SET k v\r\n")
    assert master.client.says(b"WAIT 2 500\r\n") == b""
    first.says(b"REPLCONF ACK %d\r\n" % master.engine.replication.offset)
    master.loop.pass_ms(600)
    master.turn.tick()
    master.loop.turn()

    assert master.client.received() == b":1\r\n"


def test_a_request_that_waits_for_the_disk_alone_does_not_keep_replicas_from_being_asked(master: Master) -> None:
    master.keeps_a_log()
    replica = master.follow()
    master.client.says(b"SET k v\r\n")
    replica.received()
    master.client.sends(b"WAIT 1 0\r\n")
    master.connect().says(b"WAITAOF 1 0 0\r\n")

    assert b"GETACK" in replica.received()


class Copying(SnapshotChild):
    """A child that has been forked, and writes nothing."""

    def start(self, directory: str, now_ms: int) -> None:
        self.pid = 1

    def poll(self) -> str | None:
        return None

    def kill(self) -> None:
        self.pid = 0


def test_a_change_of_the_turn_in_which_a_copy_begins_is_in_the_copy_only() -> None:
    async def begin_a_copy() -> int:
        master = Master()
        replicas = Replicas(master.turn, MemoryDisk(), master.stops.append, lambda _, *rest: Copying(*rest))
        master.turn.replicas = master.replicas = replicas
        master.connect().says(b"REPLCONF capa eof\r\nPSYNC ? -1\r\n")
        master.loop.pass_ms(6000)  # repl-diskless-sync-delay
        stream = master.engine.replication.stream
        assert stream is not None
        stream.append(bulks([b"INCR", b"count"]))  # by a client, in the turn in which the cron runs
        replicas.cron()
        replicas.close()
        found = master.engine.replication.replicas[0].replica
        assert found is not None and found.follows
        return found.pending_bytes

    assert asyncio.run(begin_a_copy()) == 0


@pytest.mark.parametrize(("capability", "count"), [(b"penstock", 0), (b"psync2", 1)])
def test_a_replica_of_a_replica_that_may_not_know_all_of_the_stream_is_named_in_the_log(
    capability: bytes, count: int
) -> None:
    middle = Master()
    role.follow(middle.engine.server, "127.0.0.1", 7001)
    middle.engine.replication.adopt("a" * 40, 0, 0)
    followed = middle.engine.replication.master
    assert followed is not None
    followed.set_link(links.CONNECTED, 0)
    middle.connect().says(b"REPLCONF capa " + capability + b"\r\nPSYNC " + b"a" * 40 + b" 1\r\n")

    assert sum("may not know all" in line for line in middle.stops) == count
