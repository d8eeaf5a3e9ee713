"""What a replica does with its link, seen from a master made by hand."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import deployments
from tests.support.clock import NOW_MS
from tests.support.fake_master import ID, FakeMaster, Link, packed, snapshot
from tests.support.fake_replica import FakeReplica
from tests.support.server_process import ServerProcess, running_server
from tests.support.wire import Array, Bulk, Connection, Simple

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with running_server("--appendonly", "no") as own:
        yield own


@pytest.fixture
def replica(server: ServerProcess) -> Iterator[Connection]:
    with Connection("127.0.0.1", server.port, PATIENCE_S) as client:
        client.ask("CONFIG", "SET", "masterauth", "", "masteruser", "")
        client.ask("FLUSHALL")  # a key of another test would pass for one that the master sent
        yield client
        client.ask("REPLICAOF", "NO", "ONE")


def follow(replica: Connection, master: FakeMaster) -> None:
    assert replica.ask("REPLICAOF", "127.0.0.1", str(master.port)) == Simple(b"OK")


def until(replica: Connection, key: str, value: bytes) -> None:
    deployments.until(lambda: replica.ask("GET", key) == Bulk(value), f"{key} does not come from the master")


def test_a_transaction_that_a_cut_link_tears_is_run_once_and_whole(replica: Connection) -> None:
    before, after = packed("SELECT 0", "SET a 1", "MULTI", "INCR a"), packed("INCR a", "EXEC", "SET end 1")
    asked: list[list[str]] = []

    def first(link: Link) -> None:
        link.until_psync([])
        copy = snapshot("SET old 1")
        link.send(b"\n\n+FULLRESYNC %b 100\r\n\n$%d\r\n%b" % (ID.encode(), len(copy), copy))
        link.send(before + after[:7])
        link.until_ack(100 + len(before))
        link.close()

    def second(link: Link) -> None:
        link.until_psync(asked)
        link.send(b"+CONTINUE\r\n" + after)
        link.until_ack(100 + len(before + after))

    with FakeMaster(first, second) as master:
        follow(replica, master)
        until(replica, "end", b"1")
        assert replica.ask("GET", "a") == Bulk(b"3")
    assert asked[-1] == ["PSYNC", ID, str(101 + len(before))]


def test_a_server_that_leads_amid_a_transaction_lets_no_replica_go_on(
    server: ServerProcess, replica: Connection
) -> None:
    sent = packed("SELECT 0", "SET a 1", "MULTI", "INCR a")

    def serve(link: Link) -> None:
        link.until_psync([])
        copy = snapshot()
        link.send(b"+FULLRESYNC %b 100\r\n$%d\r\n%b" % (ID.encode(), len(copy), copy))
        link.send(sent)
        link.until_ack(100 + len(sent))

    with FakeMaster(serve) as master:
        follow(replica, master)
    replica.ask("REPLICAOF", "NO", "ONE")

    with FakeReplica(server.port) as other:
        assert other.psync(ID, 101 + len(sent)) == "FULLRESYNC"


def test_a_replica_of_a_replica_is_in_the_database_that_the_stream_is_in(
    server: ServerProcess, replica: Connection
) -> None:
    has_copy = threading.Event()
    change = packed("SET where here")

    def serve(link: Link) -> None:
        link.until_psync([])
        copy = snapshot("SET k v", aux=[(b"repl-stream-db", b"3")])
        link.send(b"+FULLRESYNC %b 100\r\n$%d\r\n%b" % (ID.encode(), len(copy), copy))
        assert has_copy.wait(PATIENCE_S)
        link.send(change)
        link.until_ack(100 + len(change))

    with running_server("--appendonly", "no") as last, Connection("127.0.0.1", last.port, PATIENCE_S) as end:
        with FakeMaster(serve) as master:
            follow(replica, master)
            until(replica, "k", b"v")
            replica.ask("CONFIG", "SET", "repl-diskless-sync-delay", "0")
            end.ask("REPLICAOF", "127.0.0.1", str(server.port))
            until(end, "k", b"v")
            has_copy.set()
        replica.ask("SELECT", "3")
        end.ask("SELECT", "3")
        until(replica, "where", b"here")
        until(end, "where", b"here")


def test_after_an_answer_that_makes_no_sense_the_link_is_made_again(replica: Connection) -> None:
    def nonsense(link: Link) -> None:
        link.until_psync([])
        link.send(b"+FULLRESYNC %b x\r\n" % ID.encode())
        link.until_closed()

    def sense(link: Link) -> None:
        link.until_psync([])
        copy = snapshot("SET again 1")
        link.send(b"+FULLRESYNC %b 100\r\n$%d\r\n%b" % (ID.encode(), len(copy), copy))
        link.until_ack(100)

    with FakeMaster(nonsense, sense) as master:
        follow(replica, master)
        until(replica, "again", b"1")


def test_the_mark_of_a_snapshot_may_come_in_pieces(replica: Connection) -> None:
    mark = b"m" * 40

    def serve(link: Link) -> None:
        link.until_psync([])
        sent = b"+FULLRESYNC %b 0\r\n$EOF:%b\r\n%b%b" % (ID.encode(), mark, snapshot("SET k v"), mark)
        for at in range(0, len(sent), 13):
            link.send(sent[at : at + 13])
        link.until_ack(0)
        link.send(packed("SET end 2"))
        link.until_ack(len(packed("SET end 2")))

    with FakeMaster(serve) as master:
        follow(replica, master)
        until(replica, "k", b"v")
        until(replica, "end", b"2")


def test_the_password_is_given_and_a_question_for_the_offset_is_answered(replica: Connection) -> None:
    replica.ask("CONFIG", "SET", "masterauth", "pw", "masteruser", "me")
    asked: list[list[str]] = []

    def serve(link: Link) -> None:
        link.until_psync(asked)
        copy = snapshot()
        link.send(b"+FULLRESYNC %b 0\r\n$%d\r\n%b" % (ID.encode(), len(copy), copy))
        question = packed("REPLCONF GETACK *")
        link.send(packed("SET end 3") + question)
        link.until_ack(len(packed("SET end 3") + question))

    with FakeMaster(serve) as master:
        follow(replica, master)
        until(replica, "end", b"3")
    assert asked[:2] == [["PING"], ["AUTH", "me", "pw"]]
    assert asked[3] == ["REPLCONF", "capa", "eof", "capa", "psync2", "capa", "penstock"]


def test_after_a_damaged_snapshot_everything_is_asked_for_again(replica: Connection) -> None:
    asked: list[list[str]] = []

    def first(link: Link) -> None:
        link.until_psync([])
        copy = snapshot("SET k v")[:-12]
        link.send(b"+FULLRESYNC %b 7\r\n$%d\r\n%b" % (ID.encode(), len(copy), copy))

    def second(link: Link) -> None:
        link.until_psync(asked)
        copy = snapshot("SET k w")
        link.send(b"+FULLRESYNC %b 7\r\n$%d\r\n%b" % (ID.encode(), len(copy), copy))
        link.until_ack(7)

    with FakeMaster(first, second) as master:
        follow(replica, master)
        until(replica, "k", b"w")
    assert asked[-1][1] != ID


@pytest.mark.parametrize(
    "order",
    [
        ["CONFIG SET maxmemory 1mb"],
        ["ACL SETUSER eve on nopass ~* +@all"],
        ["REPLICAOF NO ONE"],
        ["SHUTDOWN NOSAVE"],
        ["MULTI", "SET k late", "CONFIG SET maxmemory 1mb", "EXEC"],
        ["SELECT 99", "SET k late"],
    ],
    ids=lambda lines: lines[-1] if len(lines) == 1 else " ".join(lines),
)
def test_an_order_of_the_master_ends_the_link_and_changes_nothing(replica: Connection, order: list[str]) -> None:
    asked: list[list[str]] = []
    looked = threading.Event()

    def first(link: Link) -> None:
        link.until_psync([])
        copy = snapshot("SET k v")
        link.send(b"+FULLRESYNC %b 7\r\n$%d\r\n%b" % (ID.encode(), len(copy), copy))
        link.until_ack(7)
        link.send(packed("SELECT 0", "SET before 1", *order, "SET k late"))
        link.until_closed()

    def second(link: Link) -> None:
        link.until_psync(asked)
        assert looked.wait(PATIENCE_S)
        copy = snapshot("SET k w")
        link.send(b"+FULLRESYNC %b 7\r\n$%d\r\n%b" % (ID.encode(), len(copy), copy))
        link.until_ack(7)

    with FakeMaster(first, second) as master:
        follow(replica, master)
        until(replica, "before", b"1")
        problem = until_problem(replica)
        assert problem.startswith("the master")
        assert replica.ask("GET", "k") == Bulk(b"v")
        assert replica.ask("CONFIG", "GET", "maxmemory") == Array((Bulk(b"maxmemory"), Bulk(b"0")))
        assert replica.ask("ACL", "USERS") == Array((Bulk(b"default"),))
        looked.set()
        until(replica, "k", b"w")
    assert asked[-1][1] != ID, "a copy of everything is asked for"


def until_problem(replica: Connection) -> str:
    """What INFO says of the link, once it is down."""
    problem = ""

    def is_there() -> bool:
        nonlocal problem
        told = replica.ask("INFO", "replication")
        assert isinstance(told, Bulk)
        lines = told.text.decode().splitlines()
        problem = "".join(line.partition(":")[2] for line in lines if line.startswith("penstock_master_link_problem:"))
        return bool(problem)

    deployments.until(is_there, "INFO names no problem of the link")
    return problem


def test_a_snapshot_that_is_refused_is_named_in_info(replica: Connection) -> None:
    def serve(link: Link) -> None:
        link.until_psync([])
        copy = b"REDIS0013\x02\x01s\x02\x01a\x01a\xff" + bytes(8)
        link.send(b"+FULLRESYNC %b 7\r\n$%d\r\n%b" % (ID.encode(), len(copy), copy))
        link.until_closed()

    with FakeMaster(serve) as master:
        follow(replica, master)
        problem = until_problem(replica)
    assert problem == (
        "the master's snapshot: the key 's' in database 0: a set has a member twice (the record at byte 9)"
    )


def test_once_it_leads_a_server_takes_nothing_from_its_old_master(replica: Connection) -> None:
    leads = threading.Event()

    def serve(link: Link) -> None:
        link.until_psync([])
        copy = snapshot("SET k old")
        link.send(b"+FULLRESYNC %b 0\r\n$%d\r\n%b" % (ID.encode(), len(copy), copy))
        link.until_ack(0)
        assert leads.wait(PATIENCE_S)
        link.send(packed("SET k late"))
        link.until_closed()

    with FakeMaster(serve) as master:
        follow(replica, master)
        until(replica, "k", b"old")
        assert replica.ask("REPLICAOF", "NO", "ONE") == Simple(b"OK")
        leads.set()
    assert replica.ask("GET", "k") == Bulk(b"old")


def test_a_key_past_its_time_here_is_kept_until_the_master_deletes_it(replica: Connection) -> None:
    """The master's clock may be behind ours."""
    persist = packed("PERSIST k", "HPERSIST h FIELDS 1 f")

    def serve(link: Link) -> None:
        link.until_psync([])
        copy = snapshot(f"SET k v PXAT {NOW_MS + 1}", "HSET h f v", f"HPEXPIREAT h {NOW_MS + 1} FIELDS 1 f")
        link.send(b"+FULLRESYNC %b 0\r\n$%d\r\n%b" % (ID.encode(), len(copy), copy))
        link.send(persist)
        link.until_ack(len(persist))

    with FakeMaster(serve) as master:
        follow(replica, master)
        until(replica, "k", b"v")
        assert replica.ask("HGET", "h", "f") == Bulk(b"v")


# -- what is kept of a copy -------------------------------------------------------------------------------------------


def test_a_copy_is_saved_where_there_are_save_points_and_no_log(tmp_path: Path) -> None:
    flags = ("--appendonly", "no", "--save", "3600 1")

    def serve(link: Link) -> None:
        link.until_psync([])
        copy = snapshot("SET k v")
        link.send(b"+FULLRESYNC %b 100\r\n$%d\r\n%b" % (ID.encode(), len(copy), copy))
        link.until_ack(100)

    with running_server(*flags, dir=tmp_path) as server:
        with FakeMaster(serve) as master, Connection("127.0.0.1", server.port, PATIENCE_S) as client:
            follow(client, master)
        server.wait_until_said("Background saving terminated with success")
        server.kill()
    with running_server(*flags, dir=tmp_path) as again, Connection("127.0.0.1", again.port, PATIENCE_S) as client:
        assert client.ask("GET", "k") == Bulk(b"v")


def test_a_server_that_leads_with_a_part_of_a_copy_has_that_after_a_restart(tmp_path: Path) -> None:
    def serve(link: Link) -> None:
        link.until_psync([])
        copy = snapshot("SET part 1")[:-12]
        link.send(b"+FULLRESYNC %b 7\r\n$%d\r\n%b" % (ID.encode(), len(copy), copy))

    with running_server(dir=tmp_path) as server, Connection("127.0.0.1", server.port, PATIENCE_S) as client:
        client.ask("SET", "old", "1")
        with FakeMaster(serve) as master:
            follow(client, master)
        server.wait_until_said("the master's snapshot")
        client.ask("REPLICAOF", "NO", "ONE")
        client.ask("SET", "new", "1")
        server.wait_until_said("Background AOF rewrite finished successfully")
        kept = client.ask("MGET", "old", "part", "new")
        server.kill()
    with running_server(dir=tmp_path) as again, Connection("127.0.0.1", again.port, PATIENCE_S) as client:
        assert client.ask("MGET", "old", "part", "new") == kept


def test_what_a_killed_server_had_received_of_a_copy_is_removed_at_the_next_start(tmp_path: Path) -> None:
    def serve(link: Link) -> None:
        link.until_psync([])
        link.send(b"+FULLRESYNC %b 7\r\n$1000000\r\nREDIS0011" % ID.encode())
        link.until_closed()

    flags = ("--appendonly", "no")
    with (
        running_server(*flags, dir=tmp_path) as server,
        Connection("127.0.0.1", server.port, PATIENCE_S) as client,
        FakeMaster(serve) as master,
    ):
        follow(client, master)
        deployments.until(lambda: list(tmp_path.glob("temp-master-*")), "no copy comes")
        server.kill()
    with running_server(*flags, dir=tmp_path):
        assert list(tmp_path.glob("temp-*")) == []
