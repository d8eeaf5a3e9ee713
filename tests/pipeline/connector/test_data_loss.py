"""Every loss is told: entries trimmed, deleted, or gone with their stream, at each point of a batch's life."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import redis
from pyspark.errors import StreamingQueryException

from penstock.pipeline.connector.connection.stream_info import StreamState
from penstock.pipeline.connector.source.offsets import Places, Position, cursor_json, cursor_of
from penstock.pipeline.errors import DataLoss
from tests.pipeline.connector.loss_history import Server, reached
from tests.pipeline.connector.test_cursor_reader import fill
from tests.pipeline.driving import Query, to_its_end

SHARED = {"group": "g", "groupMode": "shared", "consumer": "spark", "startingId": "earliest"}


@pytest.fixture
def query(endpoint: str) -> Any:
    made: list[Query] = []

    def begin(**options: Any) -> Query:
        given = {name: str(value) for name, value in options.items()}
        made.append(Query(**{"endpoints": endpoint, "stream": "s", **given}))
        return made[-1]

    yield begin
    for one in made:
        one.stop()


def missing(stream: Query) -> dict[str, int]:
    """What the query's progress says is missing, by cause."""
    found: dict[str, int] = stream.reader.reportLatestOffset()["metrics"]["entriesMissingByCause"]
    return found


def trim(server: redis.Redis) -> None:
    server.xtrim("s", maxlen=10, approximate=False)


def trim_after_one_deletion(server: redis.Redis) -> None:
    server.xdel("s", "1-150")
    trim(server)


def trim_after_an_acknowledged_deletion(server: redis.Redis) -> None:
    server.xgroup_create("s", "workers", "1-149")
    server.xreadgroup("workers", "alice", {"s": ">"}, count=1)
    server.execute_command("XACKDEL", "s", "workers", "IDS", 1, "1-150")
    trim(server)


def delete_all(server: redis.Redis) -> None:
    server.xdel("s", *(f"1-{seq}" for seq in range(101, 201)))


def delete_the_stream(server: redis.Redis) -> None:
    server.delete("s")


def make_anew_and_longer(server: redis.Redis) -> None:
    server.delete("s")
    fill(server, "s", *range(1, 251), ms=2)


def set_ids_back(server: redis.Redis) -> None:
    server.xtrim("s", maxlen=0, approximate=False)
    server.execute_command("XSETID", "s", "1-50")
    fill(server, "s", *range(51, 151))


Act = Callable[[redis.Redis], None]
ACTS = [
    pytest.param(trim, "90 .*were trimmed before", {"trimmed": 90}, id="a trim"),
    pytest.param(
        trim_after_one_deletion, "90 .*were trimmed or deleted", {"trimmedOrDeleted": 90}, id="XDEL and a trim"
    ),
    pytest.param(
        trim_after_an_acknowledged_deletion,
        "90 .*were trimmed or deleted",
        {"trimmedOrDeleted": 90},
        id="XACKDEL and a trim",
    ),
    pytest.param(delete_all, "100 .*deleted one by one", {"deleted": 100}, id="XDEL of all"),
    pytest.param(delete_the_stream, "the stream is gone", {"wentBack": 100}, id="DEL"),
    pytest.param(
        make_anew_and_longer, "went backwards|made anew|were trimmed", {"wentBack": 0}, id="made anew and longer"
    ),
    pytest.param(set_ids_back, "went backwards|150 of 200 entries are gone", {"wentBack": 0}, id="ids set back"),
]


def behind(server: redis.Redis, query: Any, **options: Any) -> Any:
    """A query that began after a hundred entries, with a hundred more to read."""
    fill(server, "s", *range(1, 101))
    stream = query(**options)
    fill(server, "s", *range(101, 201))
    return stream


def planned_before(act: Act, server: redis.Redis, query: Any, **options: Any) -> Any:
    """The same, where something is done to the stream between the batch's plan and its tasks."""
    stream = behind(server, query, **options)
    stream.plan()
    act(server)
    stream.start_driver()
    return stream


@pytest.mark.parametrize(("act", "sentence", "_counted"), ACTS)
def test_what_is_lost_before_its_batch_is_planned_ends_the_query(
    server: redis.Redis, query: Any, act: Act, sentence: str, _counted: dict[str, int]
) -> None:
    stream = behind(server, query)
    act(server)

    with pytest.raises(DataLoss, match=sentence):
        stream.batch()


@pytest.mark.parametrize(("act", "sentence", "_counted"), ACTS)
def test_what_is_lost_between_its_plan_and_its_task_ends_the_query(
    server: redis.Redis, query: Any, act: Act, sentence: str, _counted: dict[str, int]
) -> None:
    stream = planned_before(act, server, query)

    with pytest.raises(DataLoss, match=sentence):
        stream.run()


@pytest.mark.parametrize(("act", "sentence", "_counted"), ACTS)
def test_what_parts_of_a_batch_lose_ends_the_query(
    server: redis.Redis, query: Any, act: Act, sentence: str, _counted: dict[str, int]
) -> None:
    stream = planned_before(act, server, query, minPartitions=4, fetchSize=10)

    with pytest.raises(DataLoss):
        stream.run()


@pytest.mark.parametrize(("act", "_sentence", "counted"), ACTS)
def test_a_query_that_does_not_end_counts_what_is_missing_once(
    server: redis.Redis, query: Any, act: Act, _sentence: str, counted: dict[str, int], recwarn: Any
) -> None:
    fill(server, "s", *range(1, 101))
    stream = query(failOnDataLoss="false")
    assert stream.ids() is None
    fill(server, "s", *range(101, 201))
    stream.start_driver()
    stream.reader._move_to(stream.log[-1])
    stream.reader._refresh()
    stream.reader._check_changed()
    act(server)
    stream.run_to_end()
    stream.run_to_end()

    assert len([one for one in recwarn if "stream 's'" in str(one.message)]) == 1
    assert missing(stream) == counted


@pytest.mark.parametrize(
    ("act", "ends"),
    [
        pytest.param(trim, True, id="a trim"),
        pytest.param(trim_after_one_deletion, False, id="XDEL and a trim"),
        pytest.param(trim_after_an_acknowledged_deletion, False, id="XACKDEL and a trim"),
        pytest.param(delete_all, False, id="XDEL of all"),
        pytest.param(make_anew_and_longer, True, id="made anew and longer"),
        pytest.param(set_ids_back, True, id="ids set back"),
    ],
)
def test_a_queue_that_deletes_what_is_done_ends_its_query_for_what_is_certainly_lost(
    server: redis.Redis, query: Any, act: Act, ends: bool
) -> None:
    stream = behind(server, query, failOnDataLoss="certain")
    act(server)
    try:
        stream.run_to_end()
    except DataLoss:
        assert ends
    else:
        assert not ends


def test_a_stream_that_is_absent_when_a_query_starts_again_is_a_loss(server: redis.Redis, query: Any) -> None:
    fill(server, "s", 1, 2, 3)
    stream = query(startingId="earliest")
    stream.batch()
    fill(server, "s", 4, 5)
    server.delete("s")
    stream.start_driver()

    with pytest.raises(DataLoss, match="the stream is gone, and it is not known how many entries were not read"):
        stream.batch()


def test_a_server_that_lost_what_a_limited_batch_had_left_is_noticed_after_a_restart(
    server: redis.Redis, query: Any
) -> None:
    fill(server, "s", *range(1, 11))
    stream = query(startingId="earliest", maxEntriesPerTrigger=4)
    stream.batch()
    server.xdel("s", "1-8", "1-9", "1-10")
    left = server.xrange("s")
    server.delete("s")
    fill(server, "s", *range(1, 1 + len(left)))  # what a server has that lost the last three
    stream.start_driver()

    with pytest.raises(DataLoss, match=r"1-10 was seen, and its last id is 1-7 .*at least 3 entries"):
        stream.batch()


@pytest.mark.parametrize(
    "limit", [{}, {"maxEntriesPerTrigger": "4"}, {"minPartitions": "3"}], ids=["all", "limit", "parts"]
)
def test_a_stream_that_is_made_anew_while_its_query_is_stopped_is_a_loss_though_as_many_entries_were_added(
    server: redis.Redis, query: Any, limit: dict[str, str]
) -> None:
    fill(server, "s", *range(1, 11))
    server.xtrim("s", maxlen=5, approximate=False)
    stream = query(startingId="earliest", **limit)
    stream.run_to_end()
    server.delete("s")
    fill(server, "s", *range(1, 11))
    stream.start_driver()

    with pytest.raises(DataLoss, match="went backwards"):
        stream.batch()


def test_parts_that_were_counted_tell_how_many_are_missing(server: redis.Redis, query: Any) -> None:
    fill(server, "s", *range(1, 101))
    server.xdel("s", "1-60")
    stream = query(startingId="1-1", minPartitions=2, maxEntriesPerTrigger=80)
    stream.plan()
    tasks = stream.tasks()
    server.xdel("s", "1-10", "1-11")

    assert sorted(part.count for task in tasks for part in task.ranges) == [40, 40]
    with pytest.raises(DataLoss, match="2 of 40 entries were"):
        stream.run()


def test_deletions_before_a_batch_of_several_tasks_are_counted_by_its_plan(server: redis.Redis, query: Any) -> None:
    stream = behind(server, query, minPartitions=3)
    server.xdel("s", "1-150", "1-160")

    with pytest.raises(DataLoss, match="'s': 2 entries were deleted one by one"):
        stream.plan()


def test_trims_of_what_was_read_are_no_loss_while_parts_are_read(server: redis.Redis, query: Any) -> None:
    stream = behind(server, query, minPartitions=3)
    stream.plan()
    server.xtrim("s", maxlen=100, approximate=False)

    assert len(stream.run()) == 100


@pytest.mark.parametrize("place", [{"startingId": "5-0"}, {"startingTimestamp": "5"}])
def test_a_query_may_begin_behind_the_last_entry_there_is(
    server: redis.Redis, query: Any, place: dict[str, str]
) -> None:
    fill(server, "s", 1, 2)
    stream = query(**place)
    assert stream.ids() is None
    fill(server, "s", 3, ms=4)
    assert stream.batch() is None
    fill(server, "s", 1, 2, ms=6)

    assert stream.ids() == ["6-1", "6-2"]
    server.xdel("s", "6-2")
    fill(server, "s", 3, 4, ms=6)
    server.xdel("s", "6-3")
    with pytest.raises(DataLoss, match="1 of 2 entries were deleted one by one"):
        stream.batch()


def test_a_first_batch_that_is_run_again_has_the_rows_that_were_planned(server: redis.Redis, query: Any) -> None:
    fill(server, "s", 1, 2)
    stream = query()
    fill(server, "s", 3, 4)
    stream.plan()
    fill(server, "s", 5)
    stream.start_driver()
    stream.log[-2] = stream.reader.initialOffset()  # which Spark has nowhere written down

    assert [row["_id"] for row in stream.run()] == ["1-3", "1-4"]


def test_ids_set_ahead_are_no_loss(server: redis.Redis, query: Any) -> None:
    fill(server, "s", 1, 2)
    stream = query()
    server.execute_command("XSETID", "s", "9-0")

    assert stream.batch() == []
    fill(server, "s", 1, ms=10)
    assert stream.ids() == ["10-1"]


def test_checkpoints_of_before_are_read(server: redis.Redis, query: Any) -> None:
    fill(server, "s", *range(1, 11))
    stream = query()
    name = next(iter(stream.log[-1]["at"]))
    stream.log[:] = [{"v": 1, "at": {name: {"s": ["1-3", 3, ["1-1"]]}}}]
    server.xdel("s", "1-5")

    with pytest.raises(DataLoss, match="1 of 7 entries were deleted one by one"):
        stream.batch()


def test_ids_that_were_set_back_before_the_first_batch_are_a_loss(server: redis.Redis, query: Any) -> None:
    fill(server, "s", *range(5, 11))
    stream = query(startingId="1-8")
    server.xtrim("s", maxlen=0, approximate=False)
    server.execute_command("XSETID", "s", "1-5")
    fill(server, "s", *range(6, 12))  # as many as were there, and the first of them is none of before
    stream.start_driver()

    with pytest.raises(DataLoss, match="went backwards"):
        stream.batch()


def test_a_part_of_a_stream_that_is_made_anew_while_it_is_read_is_a_loss(server: redis.Redis, query: Any) -> None:
    fill(server, "s", *range(1, 7))
    stream = query(startingId="1-2", minPartitions=3, fetchSize=2)
    stream.plan()
    server.delete("s")
    fill(server, "s", *range(2, 10))

    with pytest.raises(DataLoss, match="made anew"):
        stream.run()


def test_positions_survive_the_offset_log() -> None:
    places = {
        ("main", b"s"): Position(7, 3, (5,), (1, 2), (4, None), StreamState(7, 5, 9, 8, 6)),
        ("main", b"t"): Position(7, None),
        ("main", b"u"): Position(7, 3, (5,)),
    }

    assert cursor_of(json.loads(json.dumps(cursor_json(Places(places))))) == Places(places)


# -- members of a group -----------------------------------------------------------------------------------------------


def test_entries_trimmed_before_a_group_delivered_them_are_a_loss(server: redis.Redis, query: Any) -> None:
    strict, lenient = query(**SHARED), query(**{**SHARED, "group": "h", "failOnDataLoss": "false"})
    fill(server, "s", 1)
    assert strict.ids() == lenient.ids() == ["1-1"]
    fill(server, "s", *range(2, 101))
    server.xtrim("s", maxlen=5, approximate=False)

    with pytest.raises(DataLoss, match=r"94 entries were trimmed before they were read: those after 1-1, .* 1-96"):
        strict.batch()
    with pytest.warns(UserWarning, match="94 entries were trimmed"):
        assert len(lenient.ids()) == 5
    assert lenient.batch() is None
    assert missing(lenient) == {"trimmed": 94}


def test_what_a_group_lost_is_known_after_a_restart_and_beside_another_worker(server: redis.Redis, query: Any) -> None:
    stream = query(**SHARED)
    fill(server, "s", *range(1, 11))
    stream.batch()
    fill(server, "s", *range(11, 31))
    server.xreadgroup("g", "alice", {"s": ">"}, count=5)
    server.xtrim("s", maxlen=3, approximate=False)
    stream.start_driver()

    with pytest.raises(DataLoss, match="12 entries were trimmed"):
        stream.batch()


@pytest.mark.parametrize("act", [trim, delete_the_stream, make_anew_and_longer])
def test_entries_lost_after_their_delivery_end_the_query(server: redis.Redis, query: Any, act: Act) -> None:
    fill(server, "s", *range(1, 101))
    stream = query(**SHARED)
    stream.plan()
    act(server)
    stream.start_driver()

    with pytest.raises(DataLoss):
        stream.run()


def test_a_deletion_that_no_driver_counts_is_warned_of_by_the_task(server: redis.Redis, query: Any) -> None:
    stream = behind(server, query, failOnDataLoss="certain")
    stream.plan()
    server.xdel("s", "1-150")
    server.execute_command("ACL", "SETUSER", "default", "-publish")
    try:
        with pytest.warns(UserWarning, match="1 of 100 entries were deleted one by one"):
            assert len(stream.run()) == 99
    finally:
        server.execute_command("ACL", "SETUSER", "default", "+@all")


def test_a_group_that_is_absent_when_its_query_starts_again_is_a_loss(server: redis.Redis, query: Any) -> None:
    fill(server, "s", 1, 2)
    stream = query(**SHARED)
    stream.batch()
    fill(server, "s", 3)
    server.delete("s")
    stream.start_driver()

    with pytest.raises(DataLoss, match="group 'g' was destroyed"):
        stream.batch()
    stream.start_driver()
    with pytest.raises(DataLoss, match="group 'g' was destroyed"):
        stream.batch()


# -- Spark ------------------------------------------------------------------------------------------------------------


class Runs:
    """Runs of one Spark query with one checkpoint; `last` is the newest of them."""

    def __init__(self, spark: Any, endpoint: str, checkpoint: str, on_loss: str) -> None:
        options = {"endpoints": endpoint, "stream": "s", "startingId": "earliest", "failOnDataLoss": on_loss}
        frame = spark.readStream.format("redis_streams").schema("_id string").options(**options).load()
        self._writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        self.last: Any = None

    def start(self, **trigger: Any) -> Any:
        self.last = self._writer.trigger(**trigger).start()
        return self.last


def test_a_progress_counts_what_its_tasks_missed(
    spark: Any, server: redis.Redis, endpoint: str, checkpoint: str
) -> None:
    runs = Runs(spark, endpoint, checkpoint, "certain")
    fill(server, "s", *range(1, 11))
    to_its_end(runs.start)
    fill(server, "s", *range(11, 21))
    server.xdel("s", "1-15")
    to_its_end(runs.start)

    found = json.loads(runs.last.lastProgress.sources[0].latestOffset)["metrics"]
    assert (found["entriesMissing"], found["entriesMissingByCause"]) == (1, {"deleted": 1})


def test_a_query_ends_with_the_number_that_its_task_missed(
    spark: Any, server: redis.Redis, endpoint: str, checkpoint: str
) -> None:
    runs = Runs(spark, endpoint, checkpoint, "true")
    fill(server, "s", *range(1, 11))
    to_its_end(runs.start)
    fill(server, "s", *range(11, 21))
    server.xdel("s", "1-15")

    with pytest.raises(StreamingQueryException, match="1 of 10 entries were deleted one by one"):
        to_its_end(runs.start)


@pytest.mark.parametrize(
    ("take", "cause", "count"),
    [
        (("XTRIM", "s", "MINID", "1-16"), "trimmed", 5),
        (("XTRIM", "s", "MINID", "1-36"), "trimmed", 25),  # fewer are left than the batch may have
        (("XDEL", "s", *[f"1-{seq}" for seq in range(11, 16)]), "deleted", 5),
        (("XDEL", "s", *[f"1-{seq}" for seq in range(11, 36)]), "deleted", 25),
    ],
    ids=["trim", "long trim", "XDEL", "long XDEL"],
)
def test_what_is_taken_between_a_look_and_the_counting_of_a_limited_batch_is_told_of(
    take: tuple[str, ...], cause: str, count: int
) -> None:
    server = Server()
    for seq in range(1, 41):
        server.ask("XADD", "s", f"1-{seq}", "n", seq)
    with reached(server):
        stream = Query(
            stream="s", startingId="earliest", maxEntriesPerTrigger="10", minPartitions="3", failOnDataLoss="false"
        )
        assert len(stream.batch() or ()) == 10
        server.on_look = partial(server.ask, *take)
        with pytest.warns(UserWarning, match=f"{count} entries were"):
            assert len(stream.run_to_end()) == 30 - count

        assert stream.reader.missing()["entriesMissingByCause"] == {cause: count}


@pytest.mark.parametrize("most", [10, 38], ids=["a part is counted", "all is counted"])
def test_what_is_taken_before_it_is_counted_in_a_query_that_began_in_the_middle_is_told_of(most: int) -> None:
    server = Server()
    for place in (*(f"1-{seq}" for seq in range(1, 41)), "100-0"):  # by their ids most entries seem to be behind 1-40
        server.ask("XADD", "s", place, "n", 1)
    with reached(server):
        stream = Query(stream="s", startingId="1-11", maxEntriesPerTrigger=str(most), failOnDataLoss="false")
        server.on_look = partial(server.ask, "XDEL", "s", "1-12", "1-13")
        with pytest.warns(UserWarning, match="at most 2: those after 1-10 were not counted"):
            assert len(stream.run_to_end()) == 29

        assert stream.reader.missing()["entriesMissingByCause"] == {"uncounted": 2}


@pytest.mark.parametrize(("most", "batches"), [(7, 20), (100, 7), (600, 1)])
def test_a_limited_batch_is_planned_without_reading_its_entries_where_the_server_counts(
    most: int, batches: int
) -> None:
    server = Server()
    asked: list[bytes] = []
    for key, length in (("a", 500), ("b", 300)):
        for seq in range(1, length + 1):
            server.ask("XADD", key, f"1-{seq}", "n", seq)
    server.ask("XDEL", "a", "1-40", "1-41", "1-200")
    options = {"stream": "a,b", "startingId": "earliest", "maxEntriesPerTrigger": str(most), "minPartitions": "3"}
    with reached(server):
        counted, read = (Query(failOnDataLoss="false", **options) for _ in range(2))
        for _ in range(batches):
            server.counts, server.between = True, lambda request: asked.append(request[0])
            assert counted.plan() is not None
            server.counts, server.between = False, lambda _request: None
            assert read.batch() == counted.run() != []
            assert read.log[-1] == counted.log[-1]

    assert set(asked) == {b"XINFO", b"PENSTOCK.XCOUNT"}
