"""FAILOVER on a master with replicas that are slow, silent or gone; the clock is turned."""

from collections.abc import Callable

import pytest

from penstock.engine.replication import failover
from penstock.engine.server_state import ServerState
from penstock.protocol.reply import bulks
from tests.replication.test_replicas_in_time import Master
from tests.support.fake_server import Client

PLACE = (b"10.0.0.9", b"7002")
GETACK = bulks([b"REPLCONF", b"GETACK", b"*"])


class FailingOver(Master):
    """A master with one replica at `PLACE`, which says what a test has it say."""

    def __init__(self) -> None:
        super().__init__()
        self.said = self.stops
        self.replica = self.attached(*PLACE)
        self.client.says(b"SET before 1\r\n")
        self.cron()  # which pings at first

    def attached(self, host: bytes, port: bytes) -> Client:
        replica = self.connect()
        replica.says(bulks([b"REPLCONF", b"listening-port", port, b"ip-address", host]))
        replica.says(bulks([b"PSYNC", self.engine.replication.id.encode(), b"1"]))
        return replica

    def acknowledges(self, replica: Client, missing: int = 0) -> None:
        """The replica has all of the stream but some bytes."""
        replica.says(bulks([b"REPLCONF", b"ACK", b"%d" % (self.engine.replication.offset - missing)]))
        self.cron()

    def state(self) -> tuple[str, str]:
        """Role and state in INFO."""
        told = self.client.says(b"INFO replication\r\n").decode()
        fields = dict(line.split(":", 1) for line in told.split("\r\n") if ":" in line)
        return fields["role"], fields["master_failover_state"]


STAYS = ("master", "no-failover")
WAITS = ("master", "waiting-for-sync")
ASKS = ("slave", "failover-in-progress")
READONLY = b"-READONLY You can't write against a read only replica.\r\n"


@pytest.fixture
def master() -> FailingOver:
    return FailingOver()


def test_the_replica_is_asked_how_far_it_is_and_nothing_is_pinged_meanwhile(master: FailingOver) -> None:
    master.replica.received()
    assert master.client.says(b"FAILOVER\r\n") == b"+OK\r\n"
    master.pass_s(20)

    assert master.replica.received() == GETACK
    assert master.state() == WAITS


def test_places_change_once_the_replica_has_everything(master: FailingOver) -> None:
    master.client.says(b"FAILOVER TO 10.0.0.9 7002\r\n")
    master.acknowledges(master.replica, missing=1)
    assert master.state() == WAITS
    master.acknowledges(master.replica)

    assert master.state() == ASKS
    followed = master.engine.replication.master
    assert followed is not None and (followed.host, followed.port) == ("10.0.0.9", 7002)


def test_a_replica_that_has_everything_already_is_not_asked(master: FailingOver) -> None:
    master.acknowledges(master.replica)
    master.client.says(b"FAILOVER\r\n")
    master.cron()

    assert master.state() == ASKS


def test_any_replica_will_do_if_none_is_named(master: FailingOver) -> None:
    second = master.attached(b"10.0.0.8", b"7003")
    master.client.says(b"FAILOVER\r\n")
    master.acknowledges(second)

    followed = master.engine.replication.master
    assert followed is not None and (followed.host, followed.port) == ("10.0.0.8", 7003)


def test_only_the_named_replica_will_do(master: FailingOver) -> None:
    second = master.attached(b"10.0.0.8", b"7003")
    master.client.says(b"FAILOVER TO 10.0.0.9 7002\r\n")
    master.acknowledges(second)

    assert master.state() == WAITS


def test_writes_wait_and_reads_do_not(master: FailingOver) -> None:
    master.client.says(b"FAILOVER\r\n")
    writer = master.connect()

    assert writer.says(b"SET k 1\r\n") == b""
    assert master.client.says(b"GET k\r\n") == b"$-1\r\n"
    assert master.client.says(b"GET before\r\n") == b"$1\r\n1\r\n"


@pytest.mark.parametrize("request_", [b"CLIENT UNPAUSE\r\n", b"CLIENT PAUSE 1 ALL\r\n"], ids=["unpause", "pause"])
def test_client_pause_and_unpause_do_not_end_the_holding_of_writes(master: FailingOver, request_: bytes) -> None:
    master.client.says(b"FAILOVER\r\n")
    writer = master.connect()
    writer.says(b"SET k 1\r\n")
    assert master.client.says(request_) == b"+OK\r\n"
    master.pass_s(2)

    assert writer.received() == b""
    assert master.client.says(b"GET k\r\n") == b"$-1\r\n"


def test_a_pause_that_lasts_longer_than_the_failover_goes_on(master: FailingOver) -> None:
    master.client.says(b"CLIENT PAUSE 5000 WRITE\r\nFAILOVER\r\n")
    writer = master.connect()
    writer.says(b"SET k 1\r\n")
    master.client.says(b"FAILOVER ABORT\r\n")
    master.pass_s(2)
    assert writer.received() == b""
    master.pass_s(4)

    assert writer.received() == b"+OK\r\n"


def test_what_has_expired_stays_until_the_failover_is_over(master: FailingOver) -> None:
    master.client.says(b"SET k 1 PX 100\r\nFAILOVER\r\n")
    offset = master.engine.replication.offset
    master.loop.pass_ms(200)
    assert master.client.says(b"GET k\r\n") == b"$-1\r\n"
    assert master.engine.replication.offset == offset

    master.client.says(b"FAILOVER ABORT\r\n")
    master.pass_s(1)
    assert master.engine.replication.offset > offset


def test_abort_runs_what_was_held_back(master: FailingOver) -> None:
    master.client.says(b"FAILOVER\r\n")
    writer = master.connect()
    writer.says(b"SET k 1\r\n")
    assert master.client.says(b"FAILOVER ABORT\r\n") == b"+OK\r\n"
    master.pass_s(1)

    assert writer.received() == b"+OK\r\n"
    assert master.state() == STAYS
    assert "FAILOVER to any replica aborted: Failover manually aborted" in master.said


def test_a_timeout_gives_up(master: FailingOver) -> None:
    master.client.says(b"FAILOVER TO 10.0.0.9 7002 TIMEOUT 3000\r\n")
    master.pass_s(2)
    assert master.state() == WAITS
    master.pass_s(2)

    assert master.state() == STAYS
    assert "FAILOVER to 10.0.0.9:7002 aborted: Replica never caught up before timeout" in master.said


def test_force_does_not_wait_longer_than_the_timeout(master: FailingOver) -> None:
    master.client.says(b"FAILOVER TO 10.0.0.9 7002 TIMEOUT 3000 FORCE\r\n")
    master.pass_s(4)

    assert master.state() == ASKS
    assert "FAILOVER to 10.0.0.9:7002 time out exceeded, failing over." in master.said


def test_a_replica_that_is_gone_is_waited_for(master: FailingOver) -> None:
    master.client.says(b"FAILOVER\r\nCLIENT KILL TYPE replica\r\n")
    master.cron()

    assert master.state() == WAITS


@pytest.fixture
def asking(master: FailingOver) -> FailingOver:
    """It follows the target, which has not answered yet; a writer waits."""
    master.client.says(b"FAILOVER TO 10.0.0.9 7002\r\n")
    master.acknowledges(master.replica)
    return master


def test_while_the_target_is_asked_writers_are_refused_and_replicas_stay(asking: FailingOver) -> None:
    assert asking.client.says(b"SET k 1\r\n") == READONLY
    assert b"connected_slaves:1\r\n" in asking.client.says(b"INFO replication\r\n")


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (b"FAILOVER\r\n", b"-ERR FAILOVER already in progress.\r\n"),
        (b"REPLICAOF NO ONE\r\n", b"-ERR REPLICAOF not allowed while failing over.\r\n"),
        (b"REPLICAOF 10.0.0.1 1\r\n", b"-ERR REPLICAOF not allowed while failing over.\r\n"),
        (b"PSYNC ? -1\r\n", b"-NOMASTERLINK Can't SYNC while failing over\r\n"),
        (b"SYNC\r\n", b"-NOMASTERLINK Can't SYNC while failing over\r\n"),
    ],
    ids=["failover", "lead", "follow", "psync", "sync"],
)
@pytest.mark.parametrize("is_asking", [False, True], ids=["waiting", "asking"])
def test_what_is_refused_meanwhile(master: FailingOver, request_: bytes, answer: bytes, is_asking: bool) -> None:
    master.client.says(b"FAILOVER\r\n")
    if is_asking:
        master.acknowledges(master.replica)

    assert master.client.says(request_) == answer


def test_an_abort_while_the_target_is_asked_makes_a_master_again(asking: FailingOver) -> None:
    before = asking.engine.replication.id
    assert asking.client.says(b"FAILOVER ABORT\r\n") == b"+OK\r\n"
    asking.pass_s(1)

    assert asking.state() == STAYS
    assert asking.engine.replication.second_id == before
    assert asking.client.says(b"SET k 1\r\n") == b"+OK\r\n"


@pytest.mark.parametrize(
    ("answered", "state", "writer_gets"),
    [
        (failover.succeed, ("slave", "no-failover"), READONLY),
        (lambda server: failover.abort(server, failover.REFUSED), STAYS, b"+OK\r\n"),
    ],
    ids=["taken-over", "refused"],
)
def test_a_client_that_was_held_back_gets_an_answer(
    master: FailingOver, answered: Callable[[ServerState], None], state: tuple[str, str], writer_gets: bytes
) -> None:
    master.client.says(b"FAILOVER\r\n")
    writer = master.connect()
    writer.says(b"SET k 1\r\n")
    master.acknowledges(master.replica)
    assert writer.received() == b""
    answered(master.engine.server)
    master.turn.tick()
    master.loop.turn()

    assert writer.received() == writer_gets
    assert master.state() == state


FORCE_NEEDS_MORE = "-ERR FAILOVER with force option requires both a timeout and target HOST and IP.\r\n"
NOT_A_REPLICA = "-ERR FAILOVER target HOST and PORT is not a replica.\r\n"


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("FORCE", FORCE_NEEDS_MORE),
        ("FORCE TIMEOUT 1", FORCE_NEEDS_MORE),
        ("TO 10.0.0.9 7002 FORCE", FORCE_NEEDS_MORE),
        ("TO 10.0.0.9 7003", NOT_A_REPLICA),
        ("TO 10.0.0.8 7002", NOT_A_REPLICA),
    ],
)
def test_what_is_refused_with_a_replica(master: FailingOver, words: str, answer: str) -> None:
    assert master.client.says(f"FAILOVER {words}\r\n".encode()) == answer.encode()
    assert master.state() == STAYS


def test_a_replica_that_waits_for_its_copy_is_not_online(master: FailingOver) -> None:
    late = master.connect()
    late.says(bulks([b"REPLCONF", b"listening-port", b"7005", b"ip-address", b"10.0.0.5"]))
    master.engine.settings.set_pairs([("repl-diskless-sync-delay", "1000")])
    late.says(b"REPLCONF capa eof\r\nPSYNC ? -1\r\n")

    answer = b"-ERR FAILOVER target replica is not online.\r\n"
    assert master.client.says(b"FAILOVER TO 10.0.0.5 7005\r\n") == answer
