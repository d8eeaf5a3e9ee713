"""What replicas get from a server: a snapshot, the stream, what a cut link left out."""

from collections.abc import Iterator

import pytest

from tests.support import deployments
from tests.support.fake_replica import FakeReplica
from tests.support.server_process import ServerProcess, running_server
from tests.support.wire import Array, Bulk, Connection, Error, Integer, Simple

PATIENCE_S = 60.0
RDB_VERSION = "7.2"  # as at the start: tests of other versions share the master


@pytest.fixture(scope="module")
def master() -> Iterator[ServerProcess]:
    with running_server("--repl-diskless-sync-delay", "0", "--appendonly", "yes", "--appendfsync", "no") as server:
        yield server


@pytest.fixture
def client(master: ServerProcess) -> Iterator[Connection]:
    with Connection("127.0.0.1", master.port, PATIENCE_S) as connection:
        connection.ask("FLUSHALL")
        connection.ask("CONFIG", "SET", "rdb-compat-version", RDB_VERSION)
        yield connection


def info(client: Connection, section: str) -> dict[str, str]:
    told = client.ask("INFO", section)
    assert isinstance(told, Bulk), told
    return dict(line.split(":", 1) for line in told.text.decode().split("\r\n") if ":" in line)


def until(client: Connection, field: str, value: str) -> None:
    """Wait for a field of INFO replication."""
    deployments.until(lambda: info(client, "replication").get(field) == value, f"{field} does not become {value}")


def followed(master: ServerProcess, *capabilities: str) -> FakeReplica:
    """A replica that has the snapshot."""
    replica = FakeReplica(master.port, *capabilities)
    assert replica.psync() == "FULLRESYNC"
    replica.snapshot()
    replica.acknowledge()
    return replica


def test_a_replica_gets_a_snapshot_of_known_length_and_then_every_change(
    master: ServerProcess, client: Connection
) -> None:
    client.ask("SET", "before", "1")
    with FakeReplica(master.port) as replica:
        assert replica.psync() == "FULLRESYNC"
        snapshot = replica.snapshot()
        client.ask("SET", "after", "2", "EX", "100")
        client.ask("SELECT", "3")
        client.ask("RPUSH", "l", "a")

        assert snapshot.startswith(b"REDIS00") and b"before" in snapshot
        assert replica.request() == ["SELECT", "0"]
        assert replica.request()[:4] == ["SET", "after", "2", "PXAT"]
        assert replica.request() == ["SELECT", "3"]
        assert replica.request() == ["RPUSH", "l", "a"]


def test_a_replica_that_takes_eof_gets_changes_once_it_has_loaded(master: ServerProcess, client: Connection) -> None:
    with FakeReplica(master.port, "eof", "psync2") as replica:
        assert replica.psync() == "FULLRESYNC"
        assert replica.snapshot().startswith(b"REDIS00")
        client.ask("SET", "k", "1")
        replica.acknowledge()

        assert replica.requests_until("SET", "k", "1") == [["SET", "k", "1"]]


def test_a_transaction_arrives_as_one(master: ServerProcess, client: Connection) -> None:
    with followed(master) as replica:
        for line in ("MULTI", "SET a 1", "INCR a", "PUBLISH c m", "EXEC"):
            client.ask(*line.split())

        stream = replica.requests_until("EXEC")
        assert stream[-4:] == [["MULTI"], ["SET", "a", "1"], ["INCR", "a"], ["EXEC"]]
        assert ["PUBLISH", "c", "m"] in stream


def test_what_no_snapshot_holds_follows_it_to_a_redis_8_12(master: ServerProcess, client: Connection) -> None:
    client.ask("CONFIG", "SET", "rdb-compat-version", "8.12")
    client.ask("SADDEX", "s", "PXAT", "4102444800000", "MEMBERS", "1", "m")
    client.ask("BLESS", "SET", "s", "NO-EVICT")
    with followed(master) as replica:
        client.ask("SET", "k", "1")

        assert replica.requests_until("SET", "k", "1")[-3:-1] == [
            ["BLESS", "SET", "s", "NO-EVICT"],
            ["SPEXPIREAT", "s", "4102444800000", "MEMBERS", "1", "m"],
        ]


def test_an_older_redis_is_sent_members_without_times(master: ServerProcess, client: Connection) -> None:
    client.ask("CONFIG", "SET", "rdb-compat-version", "7.2")
    with followed(master, "rdb-channel-repl") as replica:
        client.ask("SADDEX", "s", "PX", "100", "MEMBERS", "1", "m")
        client.ask("SET", "k", "1")

        stream = replica.requests_until("SET", "k", "1")
        assert ["SADD", "s", "m"] in stream
        assert not [words for words in stream if words[0] in ("SADDEX", "SPEXPIREAT")]
        assert ["SREM", "s", "m"] in replica.requests_until("SREM", "s", "m")


@pytest.mark.parametrize("request_line", ["ARSET a 0 x", "ARINSERT b x", "RESTORE c 0"])
def test_a_replica_that_holds_no_arrays_is_closed_when_there_is_one(
    master: ServerProcess, client: Connection, request_line: str
) -> None:
    client.ask("ARSET", "array", "0", "x")
    payload = client.ask("DUMP", "array")
    client.ask("DEL", "array")
    assert isinstance(payload, Bulk)
    words: list[str | bytes] = [*request_line.split()]
    if words[0] == "RESTORE":
        words.append(payload.text)
    with followed(master, "rdb-channel-repl") as replica:
        client.ask(*words)

        with pytest.raises(AssertionError, match="the master closed the link"):
            replica.requests_until("never")
    master.wait_until_said("is closed: there are arrays, which a Redis before 8.8 cannot hold")


def test_a_replica_gets_no_snapshot_with_arrays_that_it_cannot_hold(master: ServerProcess, client: Connection) -> None:
    client.ask("ARSET", "array", "0", "x")
    with pytest.raises(AssertionError, match="the master closed the link"):
        followed(master)
    master.wait_until_said("The snapshot for replicas failed: there are arrays, which a Redis before 8.8 cannot hold")

    client.ask("CONFIG", "SET", "rdb-compat-version", "8.8")
    with followed(master) as replica:
        client.ask("ARSET", "array", "1", "y")
        assert ["ARSET", "array", "1", "y"] in replica.requests_until("ARSET", "array", "1", "y")


def test_after_a_cut_link_only_what_is_missing_is_sent(master: ServerProcess, client: Connection) -> None:
    with followed(master, "psync2") as replica:
        client.ask("SET", "a", "1")
        replica.requests_until("SET", "a", "1")
    client.ask("SET", "b", "2")
    with FakeReplica(master.port, "psync2") as again:
        assert again.psync(replica.id, replica.offset + 1) == "CONTINUE"
        assert again.requests_until("SET", "b", "2") == [["SET", "b", "2"]]


@pytest.mark.parametrize("offset", [0, 10**12, -1])
def test_a_replica_that_asks_for_what_is_not_there_gets_everything(
    master: ServerProcess, client: Connection, offset: int
) -> None:
    with followed(master) as replica:
        known = replica.id
    with FakeReplica(master.port) as again:
        assert again.psync(known, offset) == "FULLRESYNC"
    with FakeReplica(master.port) as stranger:
        assert stranger.psync("0" * 40, 1) == "FULLRESYNC"


def test_wait_answers_once_a_replica_has_the_write(master: ServerProcess, client: Connection) -> None:
    with followed(master) as replica:
        replica.acknowledge()
        client.ask("SET", "k", "1")
        client.send("WAIT", "1", "0")
        replica.requests_until("REPLCONF", "GETACK", "*")

        assert client.reply() == Integer(1)
        assert client.ask("WAIT", "1", "0") == Integer(1)
        assert client.ask("WAIT", "2", "1") == Integer(1)


def test_waitaof_counts_replicas_that_have_the_write_on_their_disks(master: ServerProcess, client: Connection) -> None:
    with followed(master) as replica:
        client.ask("SET", "k", "1")
        client.send("WAITAOF", "0", "1", "0")
        while replica.request() != ["REPLCONF", "GETACK", "*"]:
            pass
        replica.say("REPLCONF", "ACK", str(replica.offset), "FACK", str(replica.offset))

        answer = client.reply()
        assert isinstance(answer, Array) and answer.elements[1] == Integer(1)


def test_role_info_and_client_list_show_the_replica(master: ServerProcess, client: Connection) -> None:
    with FakeReplica(master.port) as replica:
        replica.ask("REPLCONF", "listening-port", "7777", "ip-address", "10.1.2.3")
        replica.psync()
        replica.snapshot()
        client.ask("SET", "k", "1")
        replica.requests_until("SET", "k", "1")
        replica.acknowledge()
        acknowledged = f"offset={replica.offset},"
        deployments.until(lambda: acknowledged in info(client, "replication")["slave0"], "its offset is not known")

        assert info(client, "replication")["slave0"].startswith("ip=10.1.2.3,port=7777,state=online,")
        role = client.ask("ROLE")
        assert isinstance(role, Array)
        assert role.elements[0] == Bulk(b"master")
        assert role.elements[2] == Array((Array((Bulk(b"10.1.2.3"), Bulk(b"7777"), Bulk(b"%d" % replica.offset))),))
        listed = client.ask("CLIENT", "LIST", "TYPE", "replica")
        assert isinstance(listed, Bulk) and b"flags=S " in listed.text


def test_a_replica_that_asks_for_a_key_is_closed(master: ServerProcess) -> None:
    with followed(master) as replica:
        replica.say("GET", "k")
        assert replica.is_closed()


def test_a_replica_that_wants_only_the_snapshot_is_closed_after_it(master: ServerProcess, client: Connection) -> None:
    client.ask("FUNCTION", "LOAD", "REPLACE", "#!lua name=lib\nredis.register_function('f', function() return 1 end)")
    client.ask("SET", "k", "not a function")
    with FakeReplica(master.port, "eof") as copier:
        assert copier.ask("REPLCONF", "rdb-only", "1") == b"+OK"
        assert copier.ask("REPLCONF", "rdb-filter-only", "functions") == b"+OK"
        copier.say("SYNC")
        snapshot = copier.snapshot()

        assert b"register_function" in snapshot and b"not a function" not in snapshot
        assert copier.is_closed()


@pytest.mark.parametrize(
    ("capability", "line"),
    [("eof", "XCLAIM s g released 0 1-0 TIME 0"), ("penstock", "XNACK s g FAIL IDS 1 1-0 RETRYCOUNT 1")],
)
def test_a_replica_is_sent_only_words_that_it_knows(
    master: ServerProcess, client: Connection, capability: str, line: str
) -> None:
    for request in ("XADD s 1-0 f v", "XGROUP CREATE s g 0", "XREADGROUP GROUP g al STREAMS s >"):
        client.ask(*request.split())
    with followed(master, capability) as replica:
        client.ask(*["XNACK", "s", "g", "FAIL", "IDS", "1", "1-0"])
        client.ask("SET", "end", "1")

        stream = replica.requests_until("SET", "end", "1")
        assert " ".join(stream[-2]).startswith(line)


def test_ten_replicas_that_come_at_once_all_get_everything(master: ServerProcess, client: Connection) -> None:
    client.ask("SET", "k", "v" * 100_000)
    replicas = [FakeReplica(master.port, "eof") for _ in range(10)]
    for replica in replicas:
        replica.say("PSYNC", "?", "-1")
    for replica in replicas:
        assert replica.line().startswith(b"+FULLRESYNC")
        assert len(replica.snapshot()) > 0
        replica.acknowledge()
    client.ask("SET", "end", "1")
    for replica in replicas:
        with replica:
            assert replica.requests_until("SET", "end", "1")[-1] == ["SET", "end", "1"]


def test_errors_of_replconf_and_psync(client: Connection) -> None:
    assert client.ask("REPLCONF", "capa") == Error(b"ERR syntax error")
    assert client.ask("REPLCONF", "foo", "bar") == Error(b"ERR Unrecognized REPLCONF option: foo")
    assert client.ask("REPLCONF") == Simple(b"OK")
    assert client.ask("PSYNC", "?", "x") == Error(b"ERR value is not an integer or out of range")
    assert client.ask("REPLCONF", "rdb-only", "2") == Error(b"ERR value is out of range, value must between 0 and 1")
    assert client.ask("MULTI") == Simple(b"OK")
    assert client.ask("PSYNC", "?", "-1") == Error(b"ERR Command not allowed inside a transaction")


def test_writers_are_refused_without_enough_replicas(master: ServerProcess, client: Connection) -> None:
    client.ask("CONFIG", "SET", "min-replicas-to-write", "1")
    try:
        refusal = Error(b"NOREPLICAS Not enough good replicas to write.")
        assert client.ask("SET", "k", "1") == refusal
        assert client.ask("GET", "k") != refusal
        with followed(master) as replica:
            replica.acknowledge()
            until(client, "min_slaves_good_slaves", "1")
            assert client.ask("SET", "k", "1") == Simple(b"OK")
    finally:
        client.ask("CONFIG", "SET", "min-replicas-to-write", "0")
