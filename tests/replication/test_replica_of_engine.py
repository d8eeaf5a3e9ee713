"""A server that follows a master, as its clients see it; without a network."""

from collections.abc import Callable

import pytest

from penstock.clock import ManualClock
from penstock.engine.aof.rewrite import base_lines
from penstock.engine.context import Context
from penstock.engine.engine import Engine
from penstock.engine.replication import master as links
from penstock.engine.replication import role
from penstock.engine.replication.stream_applier import StreamApplier
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import (
    copied_engine,
    engine_with_handler,
    loaded_engine,
    make_engine,
    rdb_based_engine,
    settings_with,
)
from tests.support.keyspace_picture import keyspace
from tests.support.log import UnitLog


class Replica:
    """An engine that follows; `sent` is run as what its master sends."""

    def __init__(self, **directives: str) -> None:
        self.units = UnitLog()
        self.clock = ManualClock(NOW_MS)
        self.engine: Engine = make_engine(self.clock, self.units, settings_with(**directives))
        self.ask = Dialogue(self.engine)
        self.said: list[str] = []

    def follow(self) -> None:
        role.follow(self.engine.server, "127.0.0.1", 7001)
        master = self.engine.replication.master
        assert master is not None
        master.set_link(links.CONNECTED, NOW_MS)
        self.applier = StreamApplier(self.engine, 0, self.said.append)

    def sent(self, *lines: str) -> None:
        self.applier.apply([[word.encode() for word in line.split()] for line in lines])


@pytest.fixture
def replica() -> Replica:
    found = Replica()
    found.follow()
    return found


def test_what_the_master_sends_is_there_and_in_the_own_log(replica: Replica) -> None:
    replica.sent("SELECT 0", "SET k 1", "MULTI", "RPUSH l a", "XADD s 1-0 f v", "EXEC", "PING", "SELECT 3", "SET x 1")

    assert replica.ask("GET k") == b"1"
    assert replica.ask("LRANGE l 0 -1") == [b"a"]
    assert replica.ask("SELECT 3", "GET x") == b"1"
    assert b"MULTI\r\n" in replica.units.text and b"RPUSH" in replica.units.text


def test_clients_may_not_write(replica: Replica) -> None:
    refusal = "READONLY You can't write against a read only replica."
    assert str(replica.ask("SET k 1")) == refusal
    assert str(replica.ask("EVAL \"return redis.call('SET', 'k', '1')\" 0")).startswith(refusal)
    assert str(replica.ask("MULTI", "SET k 1")) == refusal
    assert str(replica.ask("EXEC")) == "EXECABORT Transaction discarded because of previous errors."
    assert replica.ask("CONFIG SET replica-read-only no", "SET k 1") == b"OK"


def test_without_a_link_and_stale_data_only_what_needs_no_data_is_answered(replica: Replica) -> None:
    master = replica.engine.replication.master
    assert master is not None
    master.set_link(links.CONNECT, NOW_MS)
    assert replica.ask("GET k") is None

    replica.ask("CONFIG SET replica-serve-stale-data no")
    text = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
    assert str(replica.ask("GET k")) == text
    assert replica.ask("ROLE")[0] == b"slave"


def test_an_expired_key_is_hidden_until_the_master_deletes_it(replica: Replica) -> None:
    replica.sent(f"SET k 1 PXAT {NOW_MS + 10}", f"HSETEX h PXAT {NOW_MS + 10} FIELDS 1 f v", "HSET h g w")
    replica.clock.advance(20)
    replica.engine.tick()

    assert replica.ask("GET k") is None
    assert replica.ask("EXISTS k") == 0
    assert replica.ask("HGETALL h") == [b"g", b"w"]
    assert replica.ask("DBSIZE") == 2
    assert b"DEL" not in replica.units.text
    replica.sent("DEL k", "HDEL h f")
    assert replica.ask("DBSIZE") == 1
    assert b"DEL" in replica.units.text


def test_a_request_that_is_refused_is_told_and_passed_over(replica: Replica) -> None:
    replica.sent("NOSUCH 1", "SET k 1", "INCR k x", "LPUSH k x", "SET l 2")

    assert replica.ask("MGET k l") == [b"1", b"2"]
    assert replica.applier.refused == 3
    assert replica.said[0].startswith("Warning: the master sent NOSUCH, which was refused")


def test_a_reader_of_the_replica_gets_what_comes(replica: Replica) -> None:
    assert replica.ask("XREAD BLOCK 0 STREAMS s $") == "(no answer)"
    replica.sent("XADD s 1-0 f v")

    assert replica.ask.arrived() == [[[b"s", [[b"1-0", [b"f", b"v"]]]]]]


def test_a_message_that_the_master_passes_on_reaches_subscribers(replica: Replica) -> None:
    replica.ask("SUBSCRIBE c")
    replica.sent("PUBLISH c m")

    assert replica.ask.arrived() == [[b"message", b"c", b"m"]]


def test_a_client_that_waits_for_data_is_told_that_the_role_has_changed() -> None:
    replica = Replica()
    replica.ask("BLPOP l 0")
    replica.follow()

    assert [str(answer) for answer in replica.ask.arrived()] == [
        "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
    ]
    assert replica.ask.session.closing


def test_a_replica_becomes_a_master_of_a_new_history(replica: Replica) -> None:
    replication = replica.engine.replication
    replication.adopt("a" * 40, 100, 0)
    replication.pass_on(b"12345")

    assert replica.ask("REPLICAOF NO ONE") == b"OK"
    assert (replication.second_id, replication.second_offset) == ("a" * 40, 106)
    assert replication.id != "a" * 40
    assert replica.ask("SET k 1") == b"OK"
    assert replica.ask("ROLE")[0] == b"master"


def test_where_a_copy_comes_its_database_is_known_from_the_first_moment_on(replica: Replica) -> None:
    replication = replica.engine.replication
    replication.stream_db, replication.is_amid = 5, True  # of a stream before
    replication.adopt("a" * 40, 100, 3)

    assert (replication.stream_db, replication.is_amid) == (3, False)


WAYS = {
    "requests": lambda engine, now_ms: loaded_engine(base_lines(engine.keyspace, engine.settings, now_ms), now_ms),
    "RDB file": rdb_based_engine,
    "copy": copied_engine,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_what_has_expired_here_is_kept_until_the_master_says_its_end(
    replica: Replica, way: Callable[[Engine, int], Engine]
) -> None:
    replica.sent(f"SET k 1 PXAT {NOW_MS + 10}")
    replica.clock.advance(20)
    again = way(replica.engine, NOW_MS + 20)

    assert keyspace(again) == keyspace(replica.engine)


def test_what_a_transaction_has_written_before_it_names_a_master_reaches_the_replicas() -> None:
    server = Replica()
    stream = server.engine.replication.open_stream()
    server.engine.effects.replicate(stream)
    server.ask("MULTI", "SET a 1", "REPLICAOF 127.0.0.1 7001", "EXEC")

    assert b"SET" in b"".join(stream.unsent)
    assert server.units.text.count(b"SET\r\n") == 1


def broken(ctx: Context, args: list[bytes]) -> bytes:
    ctx.log(b"INCR", args[1])
    raise MemoryError


def test_after_an_unexpected_error_the_log_has_what_was_changed_and_what_follows_is_no_part_of_it() -> None:
    log = UnitLog()
    engine = engine_with_handler("INCR", broken, log)
    role.follow(engine.server, "127.0.0.1", 7001)
    applier = StreamApplier(engine, 0, lambda line: None)
    with pytest.raises(MemoryError):
        applier.apply([[b"MULTI"], [b"SET", b"k", b"1"], [b"INCR", b"n"], [b"EXEC"]])
    StreamApplier(engine, 0, lambda line: None).apply([[b"SET", b"l", b"2"]])

    assert len(log.units) == 2
    assert b"EXEC" not in log.units[1]


def test_role_info_and_config_name_the_master(replica: Replica) -> None:
    assert replica.ask("ROLE") == [b"slave", b"127.0.0.1", 7001, b"connected", 0]
    info = replica.ask("INFO replication").decode().split("\r\n")
    assert info[1:5] == ["role:slave", "master_host:127.0.0.1", "master_port:7001", "master_link_status:up"]
    assert replica.ask("CONFIG GET replicaof") == [b"replicaof", b"127.0.0.1 7001"]
    assert replica.ask("HELLO")[10:12] == [b"role", b"replica"]
    replica.ask("REPLICAOF NO ONE")
    assert replica.ask("HELLO")[10:12] == [b"role", b"master"]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("REPLICAOF a x", "ERR Invalid master port"),
        ("SLAVEOF a 65536", "ERR Invalid master port"),
        ("WAIT 1 0", "ERR WAIT cannot be used with replica instances."),
        ("WAITAOF 0 1 0", "ERR WAITAOF cannot be used with replica instances."),
    ],
)
def test_refusals(replica: Replica, line: str, text: str) -> None:
    assert str(replica.ask(line)).startswith(text)


def test_to_follow_the_same_master_again_changes_nothing(replica: Replica) -> None:
    before = replica.engine.replication.master

    assert replica.ask.raw("REPLICAOF 127.0.0.1 7001") == b"+OK Already connected to specified master\r\n"
    assert replica.engine.replication.master is before


def test_memory_is_left_to_the_master(replica: Replica) -> None:
    replica.sent("SET k 1")
    replica.ask("CONFIG SET maxmemory 1 maxmemory-policy allkeys-random")

    assert replica.ask("GET k") == b"1"
    replica.sent("SET l 1")
    assert replica.ask("DBSIZE") == 2


def test_before_a_replica_comes_nothing_is_kept_for_one() -> None:
    replica = Replica()
    replica.ask("SET k 1")

    assert replica.engine.replication.stream is None
    assert replica.engine.effects.log is replica.units


def test_a_replica_of_an_older_version_gets_no_partial_copy_of_newer_words() -> None:
    server = Replica()
    replication, effects = server.engine.replication, server.engine.effects
    new, old = server.engine.server.connect("127.0.0.1:1"), server.engine.server.connect("127.0.0.1:2")
    server.engine.handle(new, [b"REPLCONF", b"capa", b"penstock"])
    server.engine.handle(new, [b"PSYNC", b"?", b"-1"])
    effects.replicate(replication.open_stream())
    server.ask("SET k 1")
    assert effects.compat.releases
    server.engine.handle(old, [b"PSYNC", replication.id.encode(), b"1"])

    assert not effects.compat.releases
    found = old.replica
    assert found is not None and not replication.can_continue(found)
