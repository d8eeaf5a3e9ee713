"""Write, then answer: under every policy of syncing."""

import random

import pytest

from penstock.errors import UsageError
from tests.server.durability.servers import DIRECTORY, Server
from tests.support.dialogue import Dialogue


def test_always_syncs_once_for_all_requests_of_a_turn(server: Server) -> None:
    server.turn("SET a 1", "SET b 2", "XADD s 1-0 f v")
    assert server.turns == ["sent"]
    assert (server.disk.points.count("write"), server.disk.points.count("sync")) == (1, 1)


def test_always_syncs_before_the_replies(server: Server) -> None:
    server.client("SET a 1")
    server.durability.end_of_turn(lambda is_kept: server.turns.append(server.disk.points[-1]))
    assert server.turns == ["synced"]


def test_always_loses_nothing_that_was_answered(server: Server) -> None:
    server.turn("SET a 1")
    assert server.again(power=True).client("GET a") == b"1"


def test_a_turn_that_changed_nothing_touches_no_disk(server: Server) -> None:
    before = list(server.disk.points)
    server.turn("GET a")
    assert server.turns == ["sent"]
    assert server.disk.points == before


def test_everysec_answers_after_the_write_and_syncs_later(everysec: Server) -> None:
    everysec.turn("SET a 1")
    assert everysec.turns == ["sent"]
    assert "sync" not in everysec.disk.points
    assert everysec.again().client("GET a") == b"1"

    everysec.later(1000)
    everysec.threads.run()
    everysec.later(100)
    assert everysec.again(power=True).client("GET a") == b"1"


def test_everysec_answers_after_the_write_while_it_syncs(everysec: Server) -> None:
    everysec.turn("SET a 1")
    everysec.later(1000)
    everysec.turn("SET a 2")
    assert everysec.turns == ["sent", "sent"]
    assert everysec.again().client("GET a") == b"2"
    assert everysec.threads.given, "the sync runs"


def test_everysec_holds_turns_back_when_a_sync_takes_a_second(everysec: Server) -> None:
    everysec.turn("SET a 1")
    everysec.later(1000)
    everysec.later(1000)
    everysec.turn("SET a 2")
    everysec.turn("GET a")
    assert everysec.turns == ["sent"]

    everysec.threads.run()
    everysec.later(100)
    assert everysec.turns == ["sent", "sent", "sent"]


def test_everysec_writes_anyway_after_two_seconds(everysec: Server) -> None:
    everysec.turn("SET a 1")
    everysec.later(1000)
    everysec.later(1000)
    everysec.turn("SET a 2")
    everysec.later(1999)
    assert everysec.turns == ["sent"]
    everysec.later(1)
    assert everysec.turns == ["sent", "sent"]
    assert "aof_delayed_fsync:1\r\n" in everysec.engine.persistence.info()


def test_no_leaves_the_syncing_to_the_system() -> None:
    server = Server(appendfsync="no")
    server.turn("SET a 1")
    server.later(5000)
    assert server.turns == ["sent"]
    assert server.threads.given == []


def test_the_policy_changes_at_run_time(everysec: Server) -> None:
    everysec.turn("CONFIG SET appendfsync always")
    everysec.turn("SET a 1")
    assert everysec.disk.points[-1] == "synced"


def test_what_was_written_under_another_policy_is_synced_under_always_too(everysec: Server) -> None:
    everysec.turn("SET a 1")
    everysec.turn("CONFIG SET appendfsync always")
    everysec.later(1000)
    everysec.threads.run()
    everysec.later(100)
    assert everysec.again(power=True).client("GET a") == b"1"


def test_a_request_that_waits_for_a_sync_is_answered_when_there_is_no_log_any_more(everysec: Server) -> None:
    log = everysec.durability.log
    assert log is not None
    everysec.turn("SET a 1")
    log.hold()  # as after a sync that failed
    everysec.turn("WAITAOF 1 0 0")
    other = Dialogue(everysec.engine)
    other("CONFIG SET appendonly no")

    assert [str(answer) for answer in everysec.client.arrived()] == [
        "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."
    ]


def test_waitaof_with_appendfsync_no_counts_what_is_written_as_redis_does() -> None:
    server = Server(appendfsync="no")
    server.turn("SET a 1", "WAITAOF 1 0 0")

    assert server.client.arrived() == [[1, 0]]
    assert server.turn("WAITAOF 1 0 0") == [1, 0]
    assert server.turn("WAITAOF 0 0 0") == [1, 0]


def test_a_waitaof_that_waits_for_a_sync_ends_when_syncs_are_given_up(everysec: Server) -> None:
    everysec.turn("SET a 1")
    everysec.turn("WAITAOF 1 0 0")
    Dialogue(everysec.engine)("CONFIG SET appendfsync no")

    assert everysec.client.arrived() == [[1, 0]]


@pytest.mark.parametrize("seed", range(40))
def test_what_is_left_after_a_loss_of_power_is_a_prefix(seed: int) -> None:
    server = Server(appendfsync="always" if seed % 2 else "everysec")
    for number in range(10):
        server.turn(f"SET last {number}", f"XADD s {number + 1}-0 f v")
    after = server.disk.lose_power(random.Random(seed))
    try:
        again = Server(after)
    except UsageError as refusal:
        assert seed % 2 == 0, refusal  # written out of order: the file has a hole, and the start says where
        assert "byte" in str(refusal)
        return
    length = again.client("XLEN s")
    last = again.client("GET last")
    assert last in (None if length == 0 else str(length - 1).encode(), str(length).encode() if length < 10 else None)
    assert length == 10 or seed % 2 == 0


def test_the_time_is_written_once_a_second_where_that_is_wanted() -> None:
    server = Server(aof_timestamp_enabled="yes")
    server.turn("SET a 1")
    server.turn("SET a 2")
    server.later(1000)
    server.turn("SET a 3")

    written = bytes(server.disk.files[DIRECTORY + "/appendonly.aof.1.incr.aof"].seen)
    assert written.startswith(b"#TS:1795300000\r\n*2\r\n$6\r\nSELECT")
    assert written.count(b"#TS:") == 2
    assert server.again().client("GET a") == b"3"
