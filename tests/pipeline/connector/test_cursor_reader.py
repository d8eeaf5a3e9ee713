"""The streaming source's ranges, driven as Spark drives them, against a server."""

import json
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import redis

from penstock.pipeline.connector.connection.client import Client
from penstock.pipeline.connector.source import cursor_reader, readers
from penstock.pipeline.connector.source.offsets import cursor_of
from penstock.pipeline.errors import DataLoss, OptionError, PipelineError
from tests.pipeline.driving import Query, read, schema
from tests.support.reference_server import LOCALHOST
from tests.support.server_process import running_server


def fill(server: redis.Redis, key: str, *seqs: int, ms: int = 1) -> list[str]:
    """Entries `<ms>-<seq>`, and their ids."""
    with server.pipeline(transaction=False) as pipe:
        for seq in seqs:
            pipe.xadd(key, {"n": seq}, id=f"{ms}-{seq}")
        pipe.execute()
    return [f"{ms}-{seq}" for seq in seqs]


@pytest.fixture
def query(endpoint: str) -> Any:
    made: list[Query] = []

    def begin(ddl: str = "_stream string, _id string", **options: Any) -> Query:
        given = {name: str(value) for name, value in options.items()}
        made.append(Query(ddl, **{"endpoints": endpoint, **given}))
        return made[-1]

    yield begin
    for one in made:
        one.stop()


# -- where it begins --------------------------------------------------------------------------------------------------


def test_a_new_query_begins_with_what_is_added_next(server: redis.Redis, query: Any) -> None:
    fill(server, "s", 1, 2)
    stream = query(stream="s")

    assert stream.ids() is None
    fill(server, "s", 3)
    assert stream.ids() == ["1-3"]
    assert stream.ids() is None


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ({"startingId": "earliest"}, ["1-1", "1-2", "2-0", "2-5"]),
        ({"startingId": "1-2"}, ["1-2", "2-0", "2-5"]),
        ({"startingId": "2"}, ["2-0", "2-5"]),
        ({"startingTimestamp": "2"}, ["2-0", "2-5"]),
        ({"startingTimestamp": "1970-01-01T00:00:00.002Z"}, ["2-0", "2-5"]),
        ({"startingTimestamp": json.dumps({"s": "1970-01-01T00:00:00.002Z"})}, ["2-0", "2-5"]),
        ({"startingTimestamp": json.dumps({"*": 2})}, ["2-0", "2-5"]),
        ({"startingId": json.dumps({"s": "2-1"})}, ["2-5"]),
    ],
)
def test_a_query_begins_where_it_is_told_to(
    server: redis.Redis, query: Any, start: dict[str, str], expected: list[str]
) -> None:
    fill(server, "s", 1, 2)
    fill(server, "s", 0, 5, ms=2)

    assert query(stream="s", **start).ids() == expected


def test_a_query_begins_where_a_group_has_come_to(server: redis.Redis, query: Any) -> None:
    fill(server, "s", 1, 2, 3)
    server.xgroup_create("s", "g", "1-2")

    assert query(stream="s", startingId="group", group="g").ids() == ["1-3"]


def test_a_stream_that_comes_later_is_read_from_its_first_entry(server: redis.Redis, query: Any) -> None:
    stream = query(stream="s")
    assert stream.ids() is None

    fill(server, "s", 1, 2)
    assert stream.ids() == ["1-1", "1-2"]


def test_a_pattern_finds_streams_while_the_query_runs(server: redis.Redis, query: Any) -> None:
    fill(server, "orders:1", 1)
    server.set("orders:text", "no stream")
    stream = query(streamPattern="orders:*", startingId="earliest", discoveryInterval="0")
    assert stream.ids() == ["1-1"]

    fill(server, "orders:2", 5)
    fill(server, "other", 9)
    assert [(row["_stream"], row["_id"]) for row in stream.batch()] == [("orders:2", "1-5")]


def test_a_pattern_leaves_out_what_the_sink_notes_of_itself_unless_it_asks_for_that(
    server: redis.Redis, query: Any
) -> None:
    fill(server, "s", 1)
    fill(server, "__spark:5e55:0", 7)
    fill(server, "__sparkling", 8)

    everything = query(streamPattern="*", startingId="earliest").run_to_end()
    markers = query(streamPattern="__spark:*", startingId="earliest").run_to_end()

    assert sorted(row["_stream"] for row in everything) == ["__sparkling", "s"]
    assert [row["_stream"] for row in markers] == ["__spark:5e55:0"]


def test_a_pattern_that_finds_nothing_yet_waits(server: redis.Redis, query: Any) -> None:
    stream = query(streamPattern="x:*", discoveryInterval="0")
    assert stream.ids() is None

    fill(server, "x:1", 1)
    assert stream.ids() == ["1-1"]


def test_a_key_that_is_no_stream_is_named(server: redis.Redis, query: Any) -> None:
    server.set("s", "text")

    with pytest.raises(PipelineError, match="key 's': WRONGTYPE"):
        query(stream="s")


# -- batches ----------------------------------------------------------------------------------------------------------


def test_a_batch_is_the_same_for_every_attempt_and_every_driver(server: redis.Redis, query: Any) -> None:
    for key in ("a", "b", "c"):
        fill(server, key, *range(1, 200))
    stream = query(streamPattern="*", startingId="earliest", minPartitions=4, maxEntriesPerTrigger=400)
    stream.plan()
    tasks, rows = stream.tasks(), stream.run()
    fill(server, "a", *range(200, 300))

    stream.start_driver()
    assert [task.ranges for task in stream.tasks()] == [task.ranges for task in tasks]
    assert stream.run() == rows
    assert len(tasks) == 4


def test_a_new_driver_goes_on_where_the_last_batch_ended(server: redis.Redis, query: Any) -> None:
    fill(server, "s", 1, 2)
    stream = query(stream="s", startingId="earliest")
    stream.batch()
    fill(server, "s", 3, 4)

    stream.start_driver()
    assert stream.ids() == ["1-3", "1-4"]


def test_limits_are_shared_in_proportion_and_no_stream_waits_for_ever(server: redis.Redis, query: Any) -> None:
    fill(server, "large", *range(1, 901))
    fill(server, "small", *range(1, 101))
    fill(server, "tiny", 1)
    stream = query(streamPattern="*", startingId="earliest", maxEntriesPerTrigger=100)

    first = [row["_stream"] for row in stream.batch()]
    assert (first.count("large"), first.count("small"), first.count("tiny")) == (90, 9, 1)
    rest = stream.run_to_end()
    assert (len(first) + len(rest), len(stream.log)) == (1001, 12)


def test_limited_batches_are_complete_and_disjoint(server: redis.Redis, query: Any) -> None:
    expected = fill(server, "s", *range(1, 1001))
    server.xdel("s", *expected[100:200])
    stream = query(stream="s", startingId="earliest", maxEntriesPerTrigger=130, fetchSize=50, minPartitions=3)

    assert [row["_id"] for row in stream.run_to_end()] == expected[:100] + expected[200:]


def test_a_query_waits_for_enough_entries_but_not_for_ever(
    server: redis.Redis, query: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursor_reader, "now_s", lambda: 100.0)
    stream = query(stream="s", minEntriesPerTrigger=3, maxTriggerDelay="80ms")
    fill(server, "s", 1, 2)
    assert stream.ids() is None
    fill(server, "s", 3)
    assert stream.ids() == ["1-1", "1-2", "1-3"]

    fill(server, "s", 4)
    assert stream.ids() is None
    monkeypatch.setattr(cursor_reader, "now_s", lambda: 103.0)
    assert stream.ids() == ["1-4"]


def test_available_now_ends_where_it_began_however_much_is_added(server: redis.Redis, query: Any) -> None:
    fill(server, "s", *range(1, 101))
    stream = query(stream="s", startingId="earliest", maxEntriesPerTrigger=30)
    stream.start_driver(available_now=True)

    batches = []
    for number in range(4):
        batches.append(len(stream.batch()))
        fill(server, "s", *range(200 + 10 * number, 210 + 10 * number))
    assert batches == [30, 30, 30, 10]
    assert stream.batch() is None
    stream.start_driver(available_now=True)
    assert len(stream.run_to_end()) == 40


def test_available_now_does_not_see_what_came_after_it_was_prepared(server: redis.Redis, query: Any) -> None:
    fill(server, "s", 1, 2)
    stream = query(stream="s", startingId="earliest")
    stream.log.clear()
    reader = stream.reader = readers.stream_reader(stream.options, schema("_id string"))
    reader.prepareForTriggerAvailableNow()
    fill(server, "s", 3)
    stream.log.append(reader.initialOffset())

    assert stream.ids() == ["1-1", "1-2"]
    assert stream.ids() is None


def test_a_long_stream_is_cut_into_even_tasks(server: redis.Redis, query: Any) -> None:
    fill(server, "s", *range(1, 4001), ms=7)
    stream = query(stream="s", startingId="earliest", minPartitions=4, entriesPerPartition=1000)
    stream.plan()
    sizes = [sum(1 for page in stream.reader.read(task) for _ in range(page.num_rows)) for task in stream.tasks()]

    assert sum(sizes) == 4000
    assert len(sizes) == 4 and max(sizes) < 1500


def test_offsets_are_the_same_text_whatever_the_order_of_keys(endpoint: str, server: redis.Redis) -> None:
    fill(server, "a", 1)
    fill(server, "b", 1)
    one = Query(endpoints=endpoint, stream="a,b", startingId="earliest")
    other = Query(endpoints=endpoint, stream="b,a", startingId="earliest")
    one.plan(), other.plan()

    assert json.dumps(one.log) == json.dumps(other.log)
    one.stop(), other.stop()


def test_several_endpoints_are_one_table(server: redis.Redis, endpoint: str) -> None:
    with running_server("--appendonly", "no") as second, redis.Redis(LOCALHOST, second.port) as there:
        fill(server, "s", 1)
        fill(there, "s", 1, 2)
        both = f"here={endpoint},there={LOCALHOST}:{second.port}"
        # The server that has nothing must not be waited for: if it is, this takes an hour.
        options = {"endpoints": both, "stream": "s", "startingId": "earliest", "pollTimeout": "1h"}
        stream = Query("_endpoint string, _id string", **options)

        assert sorted(tuple(row.values()) for row in stream.batch() or ()) == [
            ("here", "1-1"),
            ("there", "1-1"),
            ("there", "1-2"),
        ]
        stream.reader._idle = True
        with redis.Redis(LOCALHOST, second.port) as late:
            stream.reader.connections.each(lambda client: late.xadd("s", {"n": 1}, id="*"))
        assert len(stream.batch() or ()) == 2
        stream.stop()


def test_the_order_within_a_stream_is_kept_and_lists_may_be_json(server: redis.Redis, query: Any) -> None:
    expected = fill(server, "a,b", *range(1, 50))
    stream = query(stream=json.dumps(["a,b"]), startingId="earliest", fetchSize=7)

    assert [row["_id"] for row in stream.batch()] == expected


# -- limits -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def round_trips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The requests of each round trip."""
    found: list[int] = []
    exchange, framed = Client._exchange_once, Client._framed_once

    def noted(self: Client, payload: bytes, count: int, wait_s: float) -> Any:
        found.append(count)
        return exchange(self, payload, count, wait_s)

    def noted_framed(self: Client, payload: bytes, most: int | None) -> Any:
        found.append(payload.count(b"XRANGE"))
        return framed(self, payload, most)

    monkeypatch.setattr(Client, "_exchange_once", noted)
    monkeypatch.setattr(Client, "_framed_once", noted_framed)
    return found


def test_a_limit_below_the_number_of_streams_holds_and_costs_few_round_trips(
    server: redis.Redis, query: Any, round_trips: list[int]
) -> None:
    with server.pipeline(transaction=False) as pipe:
        for number in range(1000):
            pipe.xadd(f"s:{number:04d}", {"n": number}, "1-1")
            pipe.xadd(f"s:{number:04d}", {"n": number}, "1-2")
        pipe.execute()
    stream = query(streamPattern="s:*", startingId="earliest", maxEntriesPerTrigger=300)
    stream.plan()
    trips = len(round_trips)
    batches = [stream.run()]
    while (found := stream.batch()) is not None:
        batches.append(found)

    assert trips <= 9  # the keys, their states, whether the server counts, and pages of some hundred streams each
    assert [len(batch) for batch in batches] == [300, 300, 300, 300, 300, 300, 200]
    assert len({(row["_stream"], row["_id"]) for batch in batches for row in batch}) == 2000
    assert len({row["_stream"] for batch in batches[:4] for row in batch}) == 1000  # each has its turn


@pytest.mark.parametrize(
    ("sizes", "least", "most"),
    [([1000] * 400, 40, 110), ([1000] * 200 + [20_000] * 50, 4, 110), ([100_000] * 5, 1, 1)],
    ids=["all alike", "long ones at the end", "each is longer than the limit"],
)
def test_a_batch_has_about_as_many_bytes_as_the_option_allows(
    server: redis.Redis, query: Any, sizes: list[int], least: int, most: int
) -> None:
    for number, size in enumerate(sizes, 1):
        server.xadd("s", {"v": "x" * size}, f"{number}-0")
    stream = query("_id string, v string", stream="s", startingId="earliest", maxBytesPerTrigger=100_000)
    batches = []
    while (found := stream.batch()) is not None:
        batches.append(found)

    assert [int(row["_id"].split("-")[0]) for batch in batches for row in batch] == list(range(1, len(sizes) + 1))
    assert least <= len(batches[0]) <= most
    assert max(sum(len(row["v"]) for row in batch) for batch in batches[:-1]) <= 200_000


def test_an_even_limit_in_bytes_is_divided_among_streams(server: redis.Redis, query: Any) -> None:
    for key in ("a", "b", "c"):
        for number in range(1, 101):
            server.xadd(key, {"v": "x" * 1000}, f"{number}-0")
    stream = query("_stream string", stream="a,b,c", startingId="earliest", maxBytesPerTrigger=33_000)

    first = [row["_stream"] for row in stream.batch()]
    assert 24 <= len(first) <= 33 and {first.count(key) for key in "abc"} <= set(range(8, 12))


# -- what is lost -----------------------------------------------------------------------------------------------------


def test_trimmed_entries_are_counted_exactly(server: redis.Redis, query: Any) -> None:
    fill(server, "s", *range(1, 11))
    stream = query(stream="s")
    fill(server, "s", *range(11, 31))
    server.xtrim("s", maxlen=5, approximate=False)

    with pytest.raises(DataLoss, match=r"'s': 15 entries were trimmed .* after 1-10.* 1-26"):
        stream.batch()


def test_a_query_that_does_not_mind_goes_on_with_what_is_there(server: redis.Redis, query: Any) -> None:
    fill(server, "s", *range(1, 11))
    stream = query(stream="s", failOnDataLoss="false")
    fill(server, "s", *range(11, 31))
    server.xtrim("s", maxlen=2, approximate=False)

    with pytest.warns(UserWarning, match="18 entries were trimmed"):
        assert stream.ids() == ["1-29", "1-30"]
    fill(server, "s", 31)
    assert stream.ids() == ["1-31"]


def test_what_was_read_may_be_trimmed(server: redis.Redis, query: Any) -> None:
    fill(server, "s", *range(1, 11))
    stream = query(stream="s", startingId="earliest")
    stream.batch()
    fill(server, "s", 11)
    server.xtrim("s", maxlen=1, approximate=False)

    assert stream.ids() == ["1-11"]


def test_entries_deleted_one_by_one_are_a_loss_unless_the_option_allows_it(server: redis.Redis, query: Any) -> None:
    fill(server, "s", 1)
    strict, lenient = query(stream="s"), query(stream="s", failOnDataLoss="certain")
    fill(server, "s", *range(2, 11))
    server.xdel("s", "1-2", "1-5")

    with pytest.raises(DataLoss, match="2 of 9 entries were deleted one by one"):
        strict.batch()
    assert len(lenient.ids()) == 7


def test_a_stream_that_was_made_anew_is_a_loss_or_read_from_its_beginning(server: redis.Redis, query: Any) -> None:
    fill(server, "s", *range(1, 11), ms=9)
    strict, lenient = query(stream="s"), query(stream="s", failOnDataLoss="false")
    server.delete("s")
    fill(server, "s", 1, 2, ms=5)

    with pytest.raises(DataLoss, match="went backwards"):
        strict.batch()
    with pytest.warns(UserWarning, match="went backwards"):
        assert lenient.ids() == ["5-1", "5-2"]
    fill(server, "s", 3, ms=5)
    assert lenient.ids() == ["5-3"]


def test_entries_trimmed_between_planning_and_reading_are_counted(server: redis.Redis, query: Any) -> None:
    fill(server, "s", *range(1, 101))
    strict, lenient = (query(stream="s", startingId="earliest", failOnDataLoss=fails) for fails in ("true", "false"))
    strict.plan(), lenient.plan()
    server.xtrim("s", maxlen=40, approximate=False)

    with pytest.raises(DataLoss, match="60 of 100 entries were trimmed"):
        strict.run()
    with pytest.warns(UserWarning, match="60 of 100"):
        assert len(lenient.run()) == 40


def test_a_part_that_was_not_counted_is_missed_by_its_first_entry(server: redis.Redis, query: Any) -> None:
    fill(server, "s", *range(1, 4001))
    stream = query(stream="s", startingId="earliest", minPartitions=4, fetchSize=100)
    stream.plan()
    tasks = stream.tasks()
    server.xtrim("s", maxlen=10, approximate=False)

    with pytest.raises(DataLoss, match="were trimmed"):
        list(stream.reader.read(tasks[0]))


def test_a_part_that_is_trimmed_while_it_is_read_is_missed(server: redis.Redis, query: Any) -> None:
    fill(server, "s", *range(1, 4001))
    stream = query(stream="s", startingId="earliest", minPartitions=2, fetchSize=100)
    stream.plan()
    pages = stream.reader.read(stream.tasks()[0])
    next(pages)
    server.xtrim("s", maxlen=10, approximate=False)

    with pytest.raises(DataLoss, match="trimmed while they were read"):
        list(pages)


# -- the group as a bookmark ------------------------------------------------------------------------------------------


def test_a_group_shows_how_far_the_query_is(server: redis.Redis, query: Any) -> None:
    fill(server, "s", *range(1, 11))
    stream = query(stream="s", startingId="earliest", group="g", maxEntriesPerTrigger=4)
    stream.batch()
    stream.plan()

    assert [(one["last-delivered-id"], one["lag"]) for one in server.xinfo_groups("s")] == [(b"1-4", 6)]
    assert len(stream.run()) + len(stream.run_to_end()) == 6
    assert [(one["last-delivered-id"], one["lag"]) for one in server.xinfo_groups("s")] == [(b"1-10", 0)]


def test_a_group_with_consumers_at_work_is_not_moved(server: redis.Redis, query: Any) -> None:
    fill(server, "s", 1)
    server.xgroup_create("s", "g", "0")
    server.xreadgroup("g", "alice", {"s": ">"})

    with pytest.raises(PipelineError, match="1 consumers and 1 pending entries"):
        query(stream="s", group="g").batch()
    assert query(stream="s", group="g", groupForce="true").batch() is None


def test_a_group_destroyed_on_the_way_is_made_again(server: redis.Redis, query: Any) -> None:
    fill(server, "s", 1)
    stream = query(stream="s", startingId="earliest", group="g")
    stream.batch()
    stream.plan()
    server.xgroup_destroy("s", "g")
    fill(server, "s", 2)
    stream.batch()
    stream.plan()

    assert server.xinfo_groups("s")[0]["last-delivered-id"] == b"1-2"


# -- being idle, and the server being away ----------------------------------------------------------------------------


def commands(server: redis.Redis) -> int:
    return int(server.info("stats")["total_commands_processed"])


def test_an_idle_query_asks_once_each_time_it_waits(
    server: redis.Redis, query: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursor_reader, "now_s", lambda: 100.0)
    fill(server, "a", 1)
    fill(server, "b", 1)
    stream = query(stream="a,b")
    assert stream.batch() is None
    before = commands(server)
    assert [stream.batch() for _ in range(3)] == [None] * 3

    assert commands(server) - before - 1 == 3


def test_an_idle_query_of_many_keys_makes_few_round_trips(
    server: redis.Redis, query: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursor_reader, "now_s", lambda: 100.0)
    keys = [f"k{number}" for number in range(200)]
    for key in keys:
        fill(server, key, 1)
    stream = query(stream=",".join(keys))
    assert stream.batch() is None
    trips = []
    once = Client._exchange_once
    monkeypatch.setattr(Client, "_exchange_once", lambda *words: trips.append(1) or once(*words))
    assert [stream.batch() for _ in range(3)] == [None] * 3

    assert len(trips) == 3


def test_an_idle_query_reads_its_offset_once(server: redis.Redis, query: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(server, "s", 1)
    stream = query(stream="s", startingId="earliest")
    stream.batch()
    stream.start_driver()
    read: list[int] = []
    monkeypatch.setattr(cursor_reader, "cursor_of", lambda *offset: read.append(1) or cursor_of(*offset))

    assert [stream.ids() for _ in range(5)] == [None] * 5
    assert len(read) == 1


def test_a_waiting_query_is_woken_at_once(server: redis.Redis, endpoint: str) -> None:
    stream = Query(endpoints=endpoint, stream="s", pollTimeout="1h")  # which is how long this takes if it is not
    stream.reader._idle = True
    server.xadd("s", {"n": 1})

    assert len(stream.batch() or ()) == 1
    stream.stop()


def test_a_server_that_restarts_is_waited_for(tmp_path: Any) -> None:
    with running_server("--appendonly", "yes", dir=tmp_path) as first, redis.Redis(LOCALHOST, first.port) as client:
        port = first.port
        fill(client, "s", *range(1, 11))
        stream = Query(endpoints=f"{LOCALHOST}:{port}", stream="s", startingId="earliest", retryTimeout="30s")
        assert len(stream.batch() or ()) == 10
        fill(client, "s", *range(11, 21))
        first.stop()
    with running_server("--appendonly", "yes", "--port", str(port), dir=tmp_path):
        assert stream.ids() == [f"1-{seq}" for seq in range(11, 21)]
    stream.stop()


def test_a_server_that_stays_away_is_named() -> None:
    with pytest.raises(PipelineError, match=r"127\.0\.0\.1:1: the server does not answer.*retryTimeout 0 s"):
        Query(endpoints="127.0.0.1:1", stream="s", retryTimeout="0")


def test_a_checkpoint_of_the_other_mode_or_of_another_version_is_refused() -> None:
    with pytest.raises(PipelineError, match="other 'groupMode'"):
        cursor_of({"v": 1, "runs": {}})
    with pytest.raises(PipelineError, match="version 4"):
        cursor_of({"v": 4, "at": {}})


# -- batches without a stream -----------------------------------------------------------------------------------------


def test_a_batch_read_is_what_is_there_between_two_places(server: redis.Redis, endpoint: str) -> None:
    fill(server, "s", *range(1, 11), ms=1)
    fill(server, "s", *range(1, 11), ms=2)

    def ids(**options: str) -> list[str]:
        return [row["_id"] for row in read(endpoints=endpoint, stream="s", **options)]

    assert len(ids()) == 20
    assert ids(startingId="2-9") == ["2-9", "2-10"]
    assert ids(endingId="1-2") == ["1-1", "1-2"]
    assert ids(startingTimestamp="2", endingTimestamp="3") == [f"2-{seq}" for seq in range(1, 11)]
    assert ids(endingTimestamp="1") == []
    assert sorted(ids(minPartitions="7")) == sorted(ids())
    assert read(endpoints=endpoint, stream="nobody") == []


def test_an_unknown_option_is_refused_with_the_nearest() -> None:
    with pytest.raises(OptionError, match="'startingids': did you mean 'startingId'"):
        read(stream="s", startingIds="earliest")
