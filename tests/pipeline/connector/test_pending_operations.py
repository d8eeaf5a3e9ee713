"""Pending entries acknowledged, given back and moved to dead letters; a task is called as Spark would."""

import threading

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from penstock.pipeline.connector.connection.client import Client
from penstock.pipeline.connector.sink import dead_letters
from penstock.pipeline.connector.sink.ledger import Task
from penstock.pipeline.connector.sink.sink_options import read_sink
from penstock.pipeline.connector.sink.sink_writer import write_task
from penstock.pipeline.errors import OptionError, PipelineError
from tests.pipeline.conftest import REAL_REDIS

TASK = Task("job-5e55", 0, 0)
FATAL = 2**63 - 1

needs_xnack = pytest.mark.skipif(bool(REAL_REDIS), reason="XNACK came with Redis 8.8")


@pytest.fixture
def operate(endpoint):
    def operate(operation, batch, **options):
        found = read_sink({"endpoints": endpoint, "operation": operation} | options, False)
        return write_task(found, TASK, [batch])

    return operate


@pytest.fixture
def pending(server):
    """Four entries, 1-0 to 4-0, which alice holds."""
    for at in range(1, 5):
        server.xadd("s", {"n": at}, f"{at}-0")
    server.xgroup_create("s", "g", "0")
    server.xreadgroup("g", "alice", {"s": ">"})
    return server


def held(*ids, **columns):
    """Rows as the table `pending` has them."""
    found = {"stream": ["s"] * len(ids), "group": ["g"] * len(ids), "id": list(ids)} | columns
    return pa.record_batch(found)


def left(server):
    """What is pending: ids with their owner and count."""
    return [
        (row["message_id"].decode(), row["consumer"].decode(), row["times_delivered"])
        for row in server.xpending_range("s", "g", "-", "+", 100)
    ]


# -- ack --------------------------------------------------------------------------------------------------------------


def test_entries_are_acknowledged_and_twice_is_as_once(pending, operate):
    first = operate("ack", held("1-0", "2-0", "3-0"), pipeline="2")
    again = operate("ack", held("1-0", "2-0", "3-0"))

    assert [entry_id for entry_id, _, _ in left(pending)] == ["4-0"]
    assert (first.skipped, again.skipped) == (0, 3)


def test_rows_of_the_entries_table_will_do_with_options_for_the_rest(pending, operate):
    operate("ack", pa.record_batch({"_stream": ["s"], "_id": ["1-0"]}), group="g")
    operate("ack", pa.record_batch({"_id": ["2-0"]}), group="g", stream="s")

    assert [entry_id for entry_id, _, _ in left(pending)] == ["3-0", "4-0"]


@pytest.mark.parametrize(("stream", "group"), [("s", "none"), ("none", "g")])
def test_a_group_that_does_not_exist_is_told(pending, operate, stream, group):
    with pytest.raises(PipelineError, match=r"XACK is refused: NOGROUP .*'none'") as refusal:
        operate("ack", held("1-0", "2-0", stream=[stream] * 2, group=[group] * 2))
    assert "\n" not in str(refusal.value)


def test_entries_of_several_streams_and_groups_are_acknowledged_each_where_it_is(pending, operate):
    pending.xadd("t", {"n": 1}, "1-0")
    pending.xgroup_create("t", "g", "0")
    pending.xgroup_create("s", "h", "0")
    for group, stream in (("g", "t"), ("h", "s")):
        pending.xreadgroup(group, "bob", {stream: ">"})
    rows = held("1-0", "4-0", "1-0", "2-0", stream=["s", "s", "t", "s"], group=["g", "h", "g", "g"])
    done = operate("ack", rows)

    assert [entry_id for entry_id, _, _ in left(pending)] == ["3-0", "4-0"]
    assert [row["message_id"] for row in pending.xpending_range("s", "h", "-", "+", 9)] == [b"1-0", b"2-0", b"3-0"]
    assert pending.xpending("t", "g")["pending"] == 0
    assert done.skipped == 0


@pytest.mark.parametrize(
    ("batch", "text"),
    [
        (pa.record_batch({"stream": ["s"], "id": ["1-0"]}), "needs a column 'group' or an option 'group'"),
        (pa.record_batch({"group": ["g"], "id": ["1-0"]}), "needs a column 'stream' or an option 'stream'"),
        (pa.record_batch({"stream": ["s"], "group": ["g"]}), "needs a column 'id'"),
    ],
    ids=["group", "stream", "id"],
)
def test_a_column_that_is_missing_is_named(operate, batch, text):
    with pytest.raises(OptionError, match=text):
        operate("ack", batch)


def test_with_several_endpoints_the_rows_must_say_which(endpoint, operate):
    with pytest.raises(PipelineError, match="need a column 'endpoint'"):
        operate("ack", held("1-0"), endpoints=f"a={endpoint},b={endpoint}")


def test_an_endpoint_column_leads_there(pending, endpoint, operate):
    operate("ack", held("1-0", endpoint=["a"]), endpoints=f"a={endpoint},b=127.0.0.1:1")

    assert len(left(pending)) == 3


# -- nack -------------------------------------------------------------------------------------------------------------


@needs_xnack
@pytest.mark.parametrize(("mode", "count"), [("FAIL", 1), ("SILENT", 0), ("FATAL", FATAL)])
def test_entries_are_given_back_to_the_group(pending, operate, mode, count):
    operate("nack", held("1-0", deliveries=[1]), nackMode=mode)
    operate("nack", held("1-0", deliveries=[1]), nackMode=mode)  # the same task again

    assert left(pending)[0] == ("1-0", "", count)


@needs_xnack
def test_a_fatal_entry_can_be_given_another_chance(pending, operate):
    operate("nack", held("1-0"), nackMode="FATAL")
    operate("nack", held("1-0", deliveries=[FATAL]), retryCount="0")

    assert left(pending)[0] == ("1-0", "", 0)


@needs_xnack
def test_a_consumer_at_work_keeps_an_entry(pending, operate):
    done = operate("nack", held("1-0", "2-0"), minIdle="1h")

    assert left(pending)[0] == ("1-0", "alice", 1)
    assert done.skipped == 2


@pytest.mark.skipif(not REAL_REDIS, reason="Penstock has XNACK")
def test_a_server_without_xnack_is_told(pending, operate):
    with pytest.raises(PipelineError, match="needs a server with XNACK"):
        operate("nack", held("1-0"))


# -- dead letters -----------------------------------------------------------------------------------------------------


def test_an_entry_is_moved_with_where_it_was(pending, operate):
    operate("deadletter", held("2-0", deliveries=[7], consumer=["alice"]))

    ((_, letter),) = pending.xrange("s:dead")
    assert letter == {
        b"n": b"2",
        b"_stream": b"s",
        b"_group": b"g",
        b"_id": b"2-0",
        b"_deliveries": b"7",
        b"_consumer": b"alice",
        b"_reason": b"delivered 7 times",
    }
    assert [entry_id for entry_id, _, _ in left(pending)] == ["1-0", "3-0", "4-0"]


def test_names_and_values_with_percent_signs_are_moved_as_they_are(server, operate):
    server.xadd("50%d", {"%b": "%s", "f": "100%"}, "1-0")
    server.xgroup_create("50%d", "%g", "0")
    server.xreadgroup("%g", "%c", {"50%d": ">"})
    operate("deadletter", held("1-0", stream=["50%d"], group=["%g"], consumer=["%c"], reason=["90%"]))

    ((_, letter),) = server.xrange("50%d:dead")
    assert letter == {
        b"%b": b"%s",
        b"f": b"100%",
        b"_stream": b"50%d",
        b"_group": b"%g",
        b"_id": b"1-0",
        b"_consumer": b"%c",
        b"_reason": b"90%",
    }


def test_moving_twice_moves_once(pending, operate):
    first = operate("deadletter", held("1-0", "2-0", "3-0"), pipeline="2")
    again = operate("deadletter", held("1-0", "2-0", "3-0"), pipeline="2")

    assert (first.skipped, again.skipped) == (0, 3)
    assert [letter[b"_id"] for _, letter in pending.xrange("s:dead")] == [b"1-0", b"2-0", b"3-0"]


def test_a_row_that_comes_twice_is_one_letter(pending, operate):
    operate("deadletter", held("1-0", "1-0"))

    assert pending.xlen("s:dead") == 1


def test_an_entry_that_is_pending_no_more_is_left_alone(pending, operate):
    pending.xack("s", "g", "1-0")
    operate("deadletter", held("1-0"))

    assert pending.xlen("s:dead") == 0


def test_a_consumer_at_work_is_left_alone(pending, operate):
    operate("deadletter", held("1-0"), minIdle="1h")

    assert left(pending)[0] == ("1-0", "alice", 1)
    assert pending.xlen("s:dead") == 0


@needs_xnack
def test_an_entry_without_an_owner_is_moved_at_once(pending, operate):
    pending.execute_command("XNACK", "s", "g", "FATAL", "IDS", 1, "1-0")
    operate("deadletter", held("1-0", deliveries=[FATAL]), minIdle="1h")

    assert [letter[b"_reason"] for _, letter in pending.xrange("s:dead")] == [b"fatal"]


def test_a_try_that_died_between_taking_and_moving_is_made_good(pending, operate):
    pending.xclaim("s", "g", "dead-letter", 0, ["1-0"], justid=True)
    operate("deadletter", held("1-0"), minIdle="1h")

    assert pending.xlen("s:dead") == 1


def test_a_letter_of_an_entry_that_was_acknowledged_amid_the_move_is_taken_back(pending, operate, monkeypatch):
    taken = dead_letters.DeadLetters._taken

    def slowly(self, place, held):
        ours = taken(self, place, held)
        pending.xack("s", "g", "1-0")  # the worker that was thought to be gone
        return ours

    monkeypatch.setattr(dead_letters.DeadLetters, "_taken", slowly)
    operate("deadletter", held("1-0", "2-0"))

    assert [letter[b"_id"] for _, letter in pending.xrange("s:dead")] == [b"2-0"]


def test_two_jobs_at_once_make_one_letter_of_each_entry(pending, operate, monkeypatch):
    both = threading.Barrier(2)
    taken = dead_letters.DeadLetters._taken

    def together(self, place, held):
        ours = taken(self, place, held)
        both.wait(10)
        return ours

    monkeypatch.setattr(dead_letters.DeadLetters, "_taken", together)
    jobs = [threading.Thread(target=operate, args=("deadletter", held("1-0", "2-0", "3-0", "4-0"))) for _ in range(2)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(30)

    assert sorted(letter[b"_id"] for _, letter in pending.xrange("s:dead")) == [b"1-0", b"2-0", b"3-0", b"4-0"]
    assert left(pending) == []


def test_two_jobs_at_once_without_idmp_make_one_letter_too(pending, operate, monkeypatch):
    monkeypatch.setattr(dead_letters.DeadLetters, "_knows_idmp", lambda self, dead: False)
    test_two_jobs_at_once_make_one_letter_of_each_entry(pending, operate, monkeypatch)


def test_a_broken_connection_behind_the_move_makes_no_second_letter(pending, operate, monkeypatch):
    exchange = Client._exchange_once

    def breaking(self, payload, count, wait_s):
        replies = exchange(self, payload, count, wait_s)
        if b"MULTI" in payload:
            raise ConnectionResetError("gone")
        return replies

    with monkeypatch.context() as broken:
        broken.setattr(Client, "_exchange_once", breaking)
        with pytest.raises(PipelineError, match="broke amid a write"):
            operate("deadletter", held("1-0"))
    operate("deadletter", held("1-0"))

    assert pending.xlen("s:dead") == 1


@pytest.mark.parametrize(
    ("wanted", "most_asked"),
    [(range(1, 301), 1), ([1, 2, 299, 300, 301, 302, 303], 8), ([250, 7, 7, 150, 1, 299], 6), ([300], 1), ([999], 1)],
    ids=["neighbours", "islands", "few", "one", "gone"],
)
def test_the_entries_of_letters_are_read_by_ranges(server, endpoint, wanted, most_asked, monkeypatch):
    for number in range(1, 304):
        server.xadd("s", {"n": number}, f"{number}-0")
    asked = []
    framed = Client.framed

    def counting(self, payload, most=None):
        asked.append(payload.count(b"XRANGE"))
        return framed(self, payload, most)

    monkeypatch.setattr(Client, "framed", counting)
    servers = read_sink({"endpoints": endpoint, "operation": "deadletter"}, False).servers
    rows = pa.record_batch({"id": pa.array([b"%d-0" % number for number in wanted], pa.large_binary())})
    with Client(servers.endpoints[0], servers.access) as client:
        found = dead_letters.fields_of(client, b"s", dead_letters.Wanted(rows))

    distinct = dict.fromkeys(wanted)
    assert found.to_pylist() == [[(b"n", b"%d" % number)] if number < 304 else None for number in distinct]
    assert sum(asked) <= most_asked


def test_a_dead_letter_stream_that_is_none_costs_no_entry(pending, operate):
    pending.set("s:dead", "text")

    with pytest.raises(PipelineError, match="dead letters"):
        operate("deadletter", held("1-0"))
    assert len(left(pending)) == 4


def test_a_letter_that_is_refused_amid_the_move_costs_no_entry(pending, operate, monkeypatch):
    knows = dead_letters.DeadLetters._knows_idmp

    def spoilt(self, dead):
        found = knows(self, dead)
        pending.delete("s:dead")
        pending.set("s:dead", "text")
        return found

    monkeypatch.setattr(dead_letters.DeadLetters, "_knows_idmp", spoilt)
    with pytest.raises(PipelineError, match="WRONGTYPE"):
        operate("deadletter", held("1-0", deliveries=[7]))

    assert left(pending)[0] == ("1-0", "dead-letter", 7)


def test_an_entry_that_was_deleted_leaves_the_pending_list(pending, operate):
    pending.xdel("s", "1-0")
    operate("deadletter", held("1-0"))

    assert [entry_id for entry_id, _, _ in left(pending)] == ["2-0", "3-0", "4-0"]


def test_the_dead_letter_stream_has_a_name_of_ones_own(pending, operate):
    operate("deadletter", held("1-0", reason=["too big"]), deadLetterStream="dead:{key}", consumer="undertaker")

    ((_, letter),) = pending.xrange("dead:s")
    assert letter[b"_reason"] == b"too big"
    assert [row["name"] for row in pending.xinfo_consumers("s", "g")] == [b"alice", b"undertaker"]


def test_what_is_no_id_is_told(pending, operate):
    with pytest.raises(PipelineError, match="b'four' is no id of an entry"):
        operate("deadletter", held("1-0", "four"))
    assert len(left(pending)) == 4


def test_dead_letters_do_not_go_where_they_come_from(pending, operate):
    with pytest.raises(PipelineError, match="to the stream itself"):
        operate("deadletter", held("1-0"), deadLetterStream="{key}")


def test_a_group_that_is_gone_is_told(pending, operate):
    pending.xgroup_destroy("s", "g")

    with pytest.raises(PipelineError, match="NOGROUP"):
        operate("deadletter", held("1-0"))
