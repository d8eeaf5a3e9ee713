"""What the tasks of a sink do at a server, tried again in every way; a task is called as Spark would, without Spark."""

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from penstock.pipeline.connector.connection.client import Access, Client, Endpoint
from penstock.pipeline.connector.sink import idempotent_writes, ledger, resp_columns
from penstock.pipeline.connector.sink.ledger import Ledger, Task
from penstock.pipeline.connector.sink.placement import RENDEZVOUS
from penstock.pipeline.connector.sink.sink_options import read_sink
from penstock.pipeline.connector.sink.sink_writer import BatchWriter, StreamWriter, commit_batch, write_task
from penstock.pipeline.errors import PipelineError, ServerGone
from tests.support.reference_server import LOCALHOST
from tests.support.server_process import running_server

TASK = Task("5e55-query", 7, 3)
MARKER = b"__spark:5e55-query:3"


class Crash(Exception):
    """The task's process dies."""


def rows(*numbers, **columns):
    found = {"n": list(numbers)} | {name: [value] * len(numbers) for name, value in columns.items()}
    return pa.record_batch(found)


def crashing(*batches):
    """The batches, and then the end of the task's process."""
    yield from batches
    raise Crash


@pytest.fixture
def write(endpoint):
    def write(batches, task=TASK, **options):
        found = read_sink({"endpoints": endpoint, "stream": "s", "pipeline": "2"} | options, False)
        return write_task(found, task, batches)

    return write


def numbers(server, key="s"):
    """The field `n` of every entry, in order."""
    return [int(fields[b"n"]) for _, fields in server.xrange(key)]


def crash(write, *batches, **options):
    with pytest.raises(Crash):
        write(crashing(*batches), **options)


# -- the ledger -------------------------------------------------------------------------------------------------------


def test_a_task_that_is_tried_again_writes_the_rest(server, write):
    crash(write, rows(1, 2, 3), rows(4))
    written = write([rows(1, 2), rows(3, 4, 5), rows(6)])

    assert numbers(server) == [1, 2, 3, 4, 5, 6]
    assert (written.rows, written.skipped) == (6, 4)


def test_a_try_may_take_other_steps_than_the_one_before(server, write):
    crash(write, rows(*range(5)), pipeline="3")
    write([rows(*range(20))], pipeline="7")

    assert numbers(server) == list(range(20))


def test_a_batch_that_is_written_already_is_skipped_whole(server, write):
    write([rows(1, 2, 3)])
    again = write([rows(1, 2, 3)])

    assert (numbers(server), again.skipped) == ([1, 2, 3], 3)


def test_the_next_batch_begins_anew(server, write):
    write([rows(1, 2)])
    write([rows(1, 2)], Task("5e55-query", 8, 3))

    assert numbers(server) == [1, 2, 1, 2]
    assert server.xlen(MARKER) == 1


def test_another_task_and_another_query_are_not_the_same(server, write):
    write([rows(1)])
    write([rows(1)], Task("5e55-query", 7, 4))
    write([rows(1)], Task("other-query", 7, 3))

    assert numbers(server) == [1, 1, 1]


@pytest.mark.parametrize(
    "again",
    [[rows(1, 2, 9)], [rows(2, 1, 3)], [rows(1, 2)], [], [rows(1), rows(2, 9, 3)]],
    ids=["another row", "another order", "fewer", "none", "another, in other steps"],
)
def test_rows_that_are_not_the_same_again_are_refused_and_not_written(server, write, again):
    crash(write, rows(1, 2, 3))

    with pytest.raises(PipelineError, match="delivery=idmp"):
        write(again)
    assert numbers(server) == [1, 2, 3]


def test_rows_that_would_go_to_another_stream_now_are_refused(server, write):
    crash(write, rows(1, _stream="a"), stream="")

    with pytest.raises(PipelineError, match="not those that an earlier try wrote"):
        write([rows(1, _stream="b")], stream="")
    assert server.exists("b") == 0


def test_options_of_xadd_may_change_between_two_tries(server, write):
    crash(write, rows(1, 2))
    write([rows(1, 2, 3)], maxlen="100")

    assert numbers(server) == [1, 2, 3]


def test_of_two_tries_at_once_one_gives_way(server, endpoint, write):
    def overtaken():
        yield rows(1, 2)
        write([rows(1, 2), rows(3)])  # the other try writes all of it
        yield rows(3)

    with pytest.raises(PipelineError, match="another try of this task"):
        write(overtaken())
    assert numbers(server) == [1, 2, 3]


def test_a_try_of_an_old_batch_is_refused(server, write):
    write([rows(1)], Task("5e55-query", 8, 3))

    with pytest.raises(PipelineError, match="batch 8 has been written already"):
        write([rows(1)])
    assert numbers(server) == [1]


def test_a_key_that_holds_no_stream_is_refused_before_anything_is_written(server, write):
    server.set("b", "text")

    with pytest.raises(PipelineError, match="holds a string"):
        write([pa.record_batch({"_stream": ["a", "b"], "n": [1, 2]})], stream="")
    assert sorted(server.keys()) == [b"b"]


def test_a_row_that_is_refused_amid_a_transaction_stops_every_further_try(server, write):
    def surprised():
        yield rows(1, _stream="s")
        server.delete("s")
        server.set("s", "text")
        yield rows(2, _stream="s")

    for batches in (surprised(), [rows(1, _stream="s"), rows(2, _stream="s")]):
        with pytest.raises(PipelineError, match="the server refused 1, while it wrote the others: WRONGTYPE"):
            write(batches, stream="")


def test_a_connection_that_breaks_amid_a_transaction_is_no_matter(server, endpoint, monkeypatch, write):
    exchange = Client._exchange_once
    breaks = iter([False, True, False, True, True])  # behind the first EXEC, before the second

    def breaking(self, payload, count, wait_s):
        if b"MULTI" not in payload or not next(breaks, False):
            return exchange(self, payload, count, wait_s)
        if count == 7:
            exchange(self, payload, count, wait_s)  # it was done, and the answer is lost
        raise ConnectionResetError("gone")

    monkeypatch.setattr(Client, "_exchange_once", breaking)
    written = write([rows(*range(11))])

    assert numbers(server) == list(range(11))
    assert written.skipped == 4, "rows of which the replies were lost"


def test_a_server_that_does_not_come_back_is_told(endpoint):
    nobody = Client(Endpoint("nobody", LOCALHOST, 1), Access(retry_s=0.0))

    with pytest.raises(ServerGone):
        Ledger(nobody, Task("q", 0, 0), RENDEZVOUS, 1_000)


def test_a_server_that_is_killed_amid_a_batch_has_each_row_once(tmp_path):
    with running_server("--appendonly", "yes", "--appendfsync", "always", dir=tmp_path) as first:
        port = first.port
        found = read_sink({"endpoints": f"{LOCALHOST}:{port}", "stream": "s", "pipeline": "2"}, False)
        with pytest.raises(Crash):
            write_task(found, TASK, crashing(rows(1, 2, 3)))
        first.kill()
    with running_server("--appendonly", "yes", dir=tmp_path) as second:
        found = read_sink({"endpoints": f"{LOCALHOST}:{second.port}", "stream": "s"}, False)
        written = write_task(found, TASK, [rows(1, 2, 3), rows(4)])

    assert (written.rows, written.skipped) == (4, 3)


def test_fewer_partitions_amid_a_batch_are_noticed(server, endpoint, write):
    crash(write, rows(1), task=Task("5e55-query", 7, 5))
    found = read_sink({"endpoints": endpoint, "stream": "s"}, False)
    with Client(found.servers.endpoints[0], found.servers.access) as client:
        ledger.refuse_other_partitioning(client, "5e55-query", 7, 6)
        ledger.refuse_other_partitioning(client, "5e55-query", 8, 2)

        with pytest.raises(PipelineError, match="partition 5 had written rows"):
            ledger.refuse_other_partitioning(client, "5e55-query", 7, 2)


def test_long_rows_are_sent_few_at_a_time(server, write, monkeypatch):
    monkeypatch.setattr(resp_columns, "CHUNK_BYTES", 1_000)
    write([rows(*range(40), text="x" * 100), rows(40, text="x" * 5_000)], pipeline="1000")

    assert numbers(server) == list(range(41))
    assert server.xrevrange(MARKER, count=1)[0][0] == b"8-41"


def test_a_server_without_transactions_is_told(server, write, monkeypatch):
    exchange = Client._exchange_once

    def without(self, payload, count, wait_s):
        return exchange(self, payload.replace(b"MULTI", b"MULTX"), count, wait_s)

    monkeypatch.setattr(Client, "_exchange_once", without)
    with pytest.raises(PipelineError, match=r"has no transactions .*use delivery=idmp"):
        write([rows(1)])


# -- at least once, IDMP, ids -----------------------------------------------------------------------------------------


def test_at_least_once_writes_again(server, write):
    crash(write, rows(1, 2, 3), delivery="at-least-once")
    write([rows(1, 2, 3)], delivery="at-least-once")

    assert numbers(server) == [1, 2, 3, 1, 2, 3]
    assert server.keys("__spark*") == []


def test_idmp_writes_no_row_twice_whatever_the_order(server, write):
    crash(write, rows(1, 2, 2, 3), delivery="idmp")
    write([rows(3, 4), rows(2, 1), rows(2, 2)], delivery="idmp")

    assert sorted(numbers(server)) == [1, 2, 2, 2, 3, 4]
    assert server.xlen("s") == 6


def begun(partition):
    return Task("5e55-query", 7, partition, follows=True)


def test_idmp_notices_that_an_open_batch_has_more_partitions_than_before(server, write):
    write([rows(1, 2, 2, 3)], begun(0), delivery="idmp")
    crash(write, rows(4), task=begun(1), delivery="idmp")
    write([rows(3, 2), rows(2, 1)], begun(0), delivery="idmp")  # another order is no other partition

    with pytest.raises(PipelineError, match="partition 0 of batch 7 has 2 rows, and an earlier try had 4"):
        write([rows(1, 4)], begun(0), delivery="idmp")
    with pytest.raises(PipelineError, match="has 4 rows, and an earlier try had 4 or other ones"):
        write([rows(1, 2, 3, 3)], begun(0), delivery="idmp")
    write([rows(5)], Task("5e55-query", 8, 0, follows=True), delivery="idmp")


def test_idmp_notices_that_an_open_batch_has_fewer_partitions_than_before(server, endpoint, write):
    crash(write, rows(1), task=begun(1), delivery="idmp")
    done = write([rows(2, 1)], begun(0), delivery="idmp")

    with pytest.raises(PipelineError, match="begun with more partitions than the 1 that it has now"):
        commit_batch(read_sink({"endpoints": endpoint, "stream": "s", "delivery": "idmp"}, False), [done], 7)


TRIES = [("idmp", begun(0)), ("exactly-once", Task("5e55-query", 7, 0))]


@pytest.mark.parametrize(("before", "now"), [TRIES, TRIES[::-1]], ids=["exactly-once", "idmp"])
def test_another_delivery_amid_a_batch_is_refused(server, write, before, now):
    crash(write, rows(1), delivery=before[0], task=before[1])

    with pytest.raises(PipelineError, match="batch 7 was begun with another 'delivery'"):
        write([rows(1)], now[1], delivery=now[0])
    assert numbers(server) == [1]


def test_idmp_takes_the_same_row_in_another_batch_for_another_row(server, write):
    write([rows(1)], delivery="idmp")
    write([rows(1)], Task("5e55-query", 8, 3), delivery="idmp")

    assert numbers(server) == [1, 1]


def test_idmp_makes_the_stream_remember_and_does_not_make_it_forget(server, write):
    write([rows(1)], delivery="idmp")
    said = server.xinfo_stream("s")
    write([rows(1)], delivery="idmp")

    assert (said["idmp-maxsize"], said["idmp-duration"]) == (10_000, 3_600)
    assert numbers(server) == [1]


def test_a_business_key_is_known_across_jobs_and_tasks(server, write):
    write([rows(1, 2, order="A-1")], delivery="idmp", idempotencyColumn="n")
    write([rows(2, 3, order="A-2")], Task("other-job", 0, 9), delivery="idmp", idempotencyColumn="n")

    assert numbers(server) == [1, 2, 3]


def test_a_business_key_must_be_there(server, write):
    with pytest.raises(PipelineError, match="'k', which tells rows apart, must not be null"):
        write([rows(1, k="").set_column(1, "k", pa.array([None], pa.string()))], delivery="idmp", idempotencyColumn="k")


def test_idmp_with_nomkstream_makes_no_stream(server, write):
    write([rows(1)], delivery="idmp", nomkstream="true")

    assert server.keys() == []


def test_a_task_that_outgrows_the_servers_memory_is_warned(server, write, monkeypatch):
    monkeypatch.setattr(idempotent_writes, "SAFE_ROWS", 3)

    with pytest.warns(UserWarning, match="Make more partitions"):
        write([rows(1, 2), rows(3, 4)], delivery="idmp")


def mirrored(*ids, **columns):
    return pa.record_batch({"_id": list(ids), "n": list(range(len(ids)))} | columns)


def test_a_stream_is_mirrored_with_its_ids_once(server, write):
    crash(write, mirrored("1-1", "1-2", "3-0"), ids="column")
    again = write([mirrored("1-1", "1-2", "3-0", "4-0")], ids="column")

    assert [entry_id for entry_id, _ in server.xrange("s")] == [b"1-1", b"1-2", b"3-0", b"4-0"]
    assert again.skipped == 3


def test_a_mirrored_entry_that_was_trimmed_since_is_not_missed(server, write):
    crash(write, mirrored("1-1", "1-2", "3-0"), ids="column", maxlen="1", trim="=")
    write([mirrored("1-1", "1-2", "3-0", "4-0")], ids="column", maxlen="1", trim="=")

    assert [entry_id for entry_id, _ in server.xrange("s")] == [b"4-0"]


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        (["2-0", "1-0"], "do not ascend: 2-0, then 1-0"),
        (["2-0", "2-0"], "do not ascend"),
        (["5"], "is no whole id"),
        (["5-*"], "is no whole id"),
        (["0-0"], "is no whole id"),
        (["yesterday-0"], "is no whole id"),
    ],
    ids=str,
)
def test_ids_that_do_not_ascend_or_are_none_are_refused(server, write, ids, text):
    with pytest.raises(PipelineError, match=text):
        write([mirrored(*ids)], ids="column")


def test_a_mirror_with_another_writer_is_reported(server, write):
    server.xadd("s", {"n": "0", "by": "another"}, "2-0")

    with pytest.raises(PipelineError, match="another entry 2-0"):
        write([mirrored("2-0")], ids="column")
    with pytest.raises(PipelineError, match="beyond the id 1-0 and does not hold it"):
        write([mirrored("1-0")], ids="column")


# -- keys, endpoints, options -----------------------------------------------------------------------------------------


def test_each_row_names_its_stream(server, write):
    write([pa.record_batch({"_stream": ["user:1", "user:2", "user:1"], "n": [1, 2, 3]})], stream="")

    assert (numbers(server, "user:1"), numbers(server, "user:2")) == ([1, 3], [2])


def test_a_capped_stream_stays_short(server, write):
    write([rows(*range(50))], maxlen="10", trim="=")

    assert numbers(server) == list(range(40, 50))


@pytest.mark.parametrize("options", [{"delivery": "exactly-once"}, {"delivery": "at-least-once"}, {"delivery": "idmp"}])
def test_rows_for_streams_that_are_not_there_can_be_dropped_and_are_counted(server, endpoint, write, options):
    server.xadd("here", {"n": 0})
    batch = pa.record_batch({"_stream": ["here", "there", "there"], "n": [1, 2, 3]})
    written = write([batch], Task("5e55-query", 7, 0), stream="", nomkstream="true", **options)

    assert numbers(server, "here") == [0, 1]
    assert (server.exists("there"), written.dropped) == (0, 2)
    found = read_sink({"endpoints": endpoint, "nomkstream": "true", **options}, False)
    with pytest.warns(UserWarning, match="2 of 3 rows were not written: their streams are not there"):
        StreamWriter(found).commit([written, None], 7)
    with pytest.warns(UserWarning, match="2 of 3 rows were not written: their streams are not there"):
        BatchWriter(found).commit([written, None])


def test_rows_that_an_earlier_try_of_a_task_dropped_are_told_of_and_stay_dropped(server, endpoint, write):
    first = Task("5e55-query", 7, 0)
    crash(write, rows(1, 2, 3), task=first, nomkstream="true")
    server.xadd("s", {"n": 0})
    again = write([rows(1, 2, 3), rows(4)], first, nomkstream="true")

    assert (numbers(server), again.dropped) == ([0, 4], 0)
    found = read_sink({"endpoints": endpoint, "nomkstream": "true"}, False)
    with pytest.warns(UserWarning, match="earlier tries of tasks have dealt with 3 rows of the batch: how many"):
        StreamWriter(found).commit([again], 7)


def test_mirrored_rows_of_a_stream_that_is_not_there_are_counted(server, write):
    assert write([mirrored("1-1", "1-2")], ids="column", nomkstream="true").dropped == 2


def test_rows_go_to_the_endpoint_that_they_name_each_with_its_own_marker(server, endpoint, write):
    with running_server("--appendonly", "no") as other:
        both = f"a={endpoint},b={LOCALHOST}:{other.port}"
        batch = pa.record_batch({"_endpoint": ["a", "b", "a"], "n": [1, 2, 3]})
        crash(write, batch, endpoints=both)
        write([batch], endpoints=both)
        with Client(Endpoint("b", LOCALHOST, other.port), Access()) as client:
            there = client.call("XLEN", "s"), client.call("XLEN", MARKER)

    assert (numbers(server), there) == ([1, 3], (1, 1))


def test_without_names_the_key_chooses_among_endpoints(server, endpoint, write):
    with running_server("--appendonly", "no") as other:
        both = f"{endpoint},{LOCALHOST}:{other.port}"
        keys = [f"user:{at}" for at in range(40)]
        write([pa.record_batch({"_stream": keys, "n": list(range(40))})], endpoints=both, stream="")
        with Client(Endpoint("b", LOCALHOST, other.port), Access()) as client:
            there = client.call("KEYS", "user:*")

    here = server.keys("user:*")
    assert sorted(here + there) == sorted(key.encode() for key in keys)
    assert min(len(here), len(there)) > 5


def test_an_endpoint_that_is_none_is_refused(server, write):
    with pytest.raises(PipelineError, match="'elsewhere' of a row is none of 'endpoints'"):
        write([rows(1, _endpoint="elsewhere")])
