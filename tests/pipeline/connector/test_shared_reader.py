"""The streaming source as one worker of a group among others, driven as Spark drives it, against a server."""

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import redis

from penstock.pipeline.errors import DataLoss, OptionError, PipelineError
from tests.pipeline.connector.loss_history import Server, reached
from tests.pipeline.connector.test_cursor_reader import fill
from tests.pipeline.driving import Query

SHARED = {"stream": "s", "group": "g", "groupMode": "shared", "consumer": "spark", "startingId": "earliest"}


@pytest.fixture
def query(endpoint: str) -> Any:
    made: list[Query] = []

    def begin(ddl: str = "_stream string, _id string", **options: Any) -> Query:
        given = {name: str(value) for name, value in options.items()}
        made.append(Query(ddl, **{"endpoints": endpoint, **SHARED, **given}))
        return made[-1]

    yield begin
    for one in made:
        one.stop()


@pytest.fixture
def xnack(server: redis.Redis) -> Any:
    """Releases entries; skipped where the server does not know XNACK (before Redis 8.8)."""

    def release(mode: str, *ids: str) -> None:
        try:
            server.execute_command("XNACK", "s", "g", mode, "IDS", len(ids), *ids)
        except redis.ResponseError as refusal:
            pytest.skip(f"this server has no XNACK: {refusal}")

    return release


def pending(server: redis.Redis) -> list[tuple[str, str, int]]:
    return [
        (one["message_id"].decode(), one["consumer"].decode(), one["times_delivered"])
        for one in server.xpending_range("s", "g", "-", "+", 10_000)
    ]


def test_deliveries_are_pending_until_spark_asks_for_more(server: redis.Redis, query: Any) -> None:
    fill(server, "s", 1, 2, 3)
    stream = query()

    assert stream.ids() == ["1-1", "1-2", "1-3"]
    assert pending(server) == [(f"1-{seq}", "spark", 1) for seq in (1, 2, 3)]
    assert stream.ids() is None
    assert pending(server) == []


def test_work_is_shared_with_an_ordinary_worker(server: redis.Redis, query: Any) -> None:
    expected = fill(server, "s", *range(1, 1001))
    stream = query(maxEntriesPerTrigger=100)
    seen = []
    for _ in range(5):
        seen += stream.ids()
        theirs = [entry_id.decode() for entry_id, _ in server.xreadgroup("g", "alice", {"s": ">"}, count=100)[0][1]]
        server.xack("s", "g", *theirs)
        seen += theirs

    assert seen == expected
    assert stream.ids() is None
    assert pending(server) == []


def test_what_was_delivered_to_a_driver_that_died_before_it_was_logged_comes_again(
    server: redis.Redis, query: Any
) -> None:
    expected = fill(server, "s", *range(1, 51))
    stream = query(maxEntriesPerTrigger=20)
    stream.batch()
    stream.plan()
    stream.log.pop()  # it died with the offset in its hands

    stream.start_driver()
    assert [row["_id"] for row in stream.run_to_end()] == expected[20:]
    assert pending(server) == []


def test_a_name_that_is_made_up_is_in_an_offset_before_anything_is_delivered_to_it(
    server: redis.Redis, endpoint: str
) -> None:
    expected = fill(server, "s", 1, 2, 3)
    stream = Query(endpoints=endpoint, stream="s", group="g", groupMode="shared", startingId="earliest")
    stream.plan()
    stream.log.clear()  # the driver died before its first offset was written: the next one has another name

    stream.start_driver()
    assert [row["_id"] for row in stream.run_to_end()] == expected
    assert pending(server) == []
    stream.stop()


def test_a_batch_that_was_logged_is_run_again_with_the_same_rows(server: redis.Redis, query: Any) -> None:
    fill(server, "s", *range(1, 101))
    stream = query(minPartitions=3)
    stream.plan()
    rows, tasks = stream.run(), stream.tasks()
    fill(server, "s", *range(200, 300))

    stream.start_driver()
    assert stream.run() == rows
    assert [task.ranges for task in stream.tasks()] == [task.ranges for task in tasks]
    assert len(tasks) == 3
    assert len(stream.batch()) == 100
    assert stream.batch() is None
    assert pending(server) == []


def test_no_other_consumers_entries_are_acknowledged_after_a_crash(server: redis.Redis, query: Any) -> None:
    fill(server, "s", *range(1, 11))
    stream = query()
    stream.plan()
    server.xclaim("s", "g", "bob", 0, ["1-4"])

    stream.start_driver()
    assert len(stream.run()) == 10
    assert stream.batch() is None
    assert [row[:2] for row in pending(server)] == [("1-4", "bob")]


def test_two_queries_with_one_consumer_are_refused_and_one_that_follows_another_is_not(
    server: redis.Redis, query: Any
) -> None:
    fill(server, "s", 1, 2)
    first = query(maxEntriesPerTrigger=1)
    assert first.ids() == ["1-1"]
    second = query(retryTimeout=0)

    with pytest.raises(
        PipelineError, match=r"another query reads group 'g' as 'spark'.*twice the server's tcp-keepalive"
    ):
        second.batch()
    assert query(consumer="another").ids() == ["1-2"]
    first.stop()
    assert second.ids() == ["1-1"]


def test_a_query_that_cannot_see_whether_another_has_its_name_says_so(server: redis.Redis, query: Any) -> None:
    fill(server, "s", 1)
    server.execute_command("ACL", "SETUSER", "default", "-pubsub")
    try:
        with pytest.warns(UserWarning, match="another query reads group 'g' as 'spark'.*NOPERM"):
            assert query().ids() == ["1-1"]
    finally:
        server.execute_command("ACL", "SETUSER", "default", "+@all")


def test_what_others_left_lying_is_taken_over(server: redis.Redis, query: Any) -> None:
    fill(server, "s", 1, 2, 3)
    server.xgroup_create("s", "g", "0")
    server.xreadgroup("g", "alice", {"s": ">"}, count=2)
    server.execute_command("XCLAIM", "s", "g", "alice", 0, "1-1", "IDLE", 60_000, "RETRYCOUNT", 1)
    stream = query("_id string, _deliveries bigint", claimMinIdle="30s")

    assert [tuple(row.values()) for row in stream.batch()] == [("1-1", 2), ("1-3", 1)]
    assert stream.ids() is None
    assert [row[:2] for row in pending(server)] == [("1-2", "alice")]


def test_released_entries_come_at_once_and_fatal_ones_are_left(server: redis.Redis, query: Any, xnack: Any) -> None:
    fill(server, "s", 1, 2, 3)
    server.xgroup_create("s", "g", "0")
    server.xreadgroup("g", "alice", {"s": ">"})
    xnack("FAIL", "1-1")
    xnack("FATAL", "1-2")
    stream = query(claimMinIdle="1h")

    assert stream.ids() == ["1-1"]
    assert stream.ids() is None
    assert [(entry_id, owner) for entry_id, owner, _ in pending(server)] == [("1-2", ""), ("1-3", "alice")]


def test_without_claim_min_idle_nothing_is_taken_over(server: redis.Redis, query: Any, xnack: Any) -> None:
    fill(server, "s", 1)
    server.xgroup_create("s", "g", "0")
    server.xreadgroup("g", "alice", {"s": ">"})
    xnack("FAIL", "1-1")

    assert query().ids() is None


def test_many_pending_entries_are_looked_through_page_by_page(
    server: redis.Redis, query: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.pipeline.connector.source.claims.PENDING_PAGE", 10)
    expected = fill(server, "s", *range(1, 96))
    server.xgroup_create("s", "g", "0")
    server.xreadgroup("g", "alice", {"s": ">"})
    stream = query(claimMinIdle="0")

    assert stream.ids() == expected
    assert stream.ids() is None
    assert pending(server) == []


def test_a_destroyed_group_is_a_loss_or_made_again_where_it_was(server: redis.Redis, query: Any) -> None:
    fill(server, "s", 1, 2)
    strict, lenient = query(), query(failOnDataLoss="false", group="h")
    assert strict.ids() == lenient.ids() == ["1-1", "1-2"]
    server.xgroup_destroy("s", "g")
    server.xgroup_destroy("s", "h")
    fill(server, "s", 3)

    with pytest.raises(DataLoss, match="group 'g' was destroyed"):
        strict.run_to_end()
    with pytest.warns(UserWarning, match="group 'h' was destroyed"):
        assert lenient.plan() is None
    assert lenient.ids() == ["1-3"]


def test_available_now_ends_under_constant_writes_with_nothing_pending(server: redis.Redis, query: Any) -> None:
    fill(server, "s", *range(1, 101))
    stream = query(maxEntriesPerTrigger=40)
    stream.start_driver(available_now=True)
    batches = 0
    while stream.batch() is not None:
        batches += 1
        fill(server, "s", *range(1000 * batches, 1000 * batches + 30))

    assert batches == 3
    assert pending(server) == []


def test_entries_deleted_meanwhile_are_left_out_where_the_option_allows_it(server: redis.Redis, query: Any) -> None:
    fill(server, "s", *range(1, 11))
    stream = query(failOnDataLoss="certain")
    stream.plan()
    server.xdel("s", "1-3")

    assert len(stream.run()) == 9
    assert stream.batch() == []  # which tells what the tasks missed
    assert stream.batch() is None
    assert pending(server) == []


def test_a_group_that_is_not_there_yet_begins_where_it_is_told_to(server: redis.Redis, query: Any) -> None:
    fill(server, "s", 1, 2, 3)

    assert query(startingId="latest", group="late").ids() is None
    assert query(startingId="1-2", group="middle").ids() == ["1-2", "1-3"]


def test_streams_of_a_pattern_join_while_the_query_runs(server: redis.Redis, endpoint: str) -> None:
    options = {"streamPattern": "p:*", "group": "g", "groupMode": "shared", "discoveryInterval": "0"}
    stream = Query(endpoints=endpoint, **options)
    fill(server, "p:1", 1)
    assert stream.ids() is None or stream.ids() is None
    fill(server, "p:1", 2)
    fill(server, "p:2", 7)

    assert {row["_id"] for row in stream.run_to_end()} >= {"1-2", "1-7"}
    stream.stop()


@pytest.mark.parametrize(
    "options", [{"minEntriesPerTrigger": "3"}, {"startingId": "group"}, {"claimMinIdle": "soon"}, {"group": ""}]
)
def test_what_does_not_go_together_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(OptionError):
        Query(**{"stream": "s", "group": "g", "groupMode": "shared", **options})


def test_a_group_that_is_set_back_ends_the_query_or_is_warned_of_once(server: redis.Redis, query: Any) -> None:
    fill(server, "s", 1, 2, 3)
    ends, goes_on = query(), query(group="h", failOnDataLoss="certain")
    for stream in (ends, goes_on):
        assert stream.ids() == ["1-1", "1-2", "1-3"]
        assert stream.batch() is None
    for group in "gh":
        server.xgroup_setid("s", group, "1-1")

    with pytest.raises(DataLoss, match="the group went backwards: 1-3 was read, and its last delivered id is 1-1"):
        ends.plan()
    with pytest.warns(UserWarning, match="the group went backwards"):
        assert goes_on.ids() == ["1-2", "1-3"]
    assert goes_on.batch() is None


class Beside:
    """What happens at a server before requests of the connector, or before those that have a word in them.

    Two entries are added, and another consumer reads the first; `read` has the ids.
    """

    def __init__(self, server: Server, word: bytes | None = None) -> None:
        self._ask = server.ask
        self._word = word
        self.read: list[str] = []

    def __call__(self, request: list[bytes]) -> None:
        if self._word is None or self._word in request:
            self._ask("XADD", "s", "*", "n", 1)
            self._ask("XADD", "s", "*", "n", 2)
            reply = self._ask("XREADGROUP", "GROUP", "g", "another", "COUNT", 1, "STREAMS", "s", ">")
            self.read.append(reply[0][1][0][0].decode())


class Burst(Beside):
    """A transaction adds twenty entries, and trims the stream to the last five."""

    def __call__(self, request: list[bytes]) -> None:
        if self._word in request:
            for seq in range(2, 22):
                self._ask("XADD", "s", f"1-{seq}", "n", seq)
            self._ask("XTRIM", "s", "MAXLEN", 5)


@pytest.fixture
def fake() -> Iterator[Server]:
    """A server that the connector reaches without a network; its stream has one entry."""
    server = Server()
    server.ask("XADD", "s", "1-1", "n", 1)
    with reached(server):
        yield server


def member(**options: str) -> Query:
    """A query that has read the entry."""
    stream = Query(**SHARED, **options)
    assert stream.ids() == ["1-1"]
    return stream


@pytest.mark.parametrize("right", ["+multi", "-multi"])
@pytest.mark.parametrize("limit", ["1", "1000"])
def test_what_others_add_and_read_between_two_requests_is_no_loss(fake: Server, right: str, limit: str) -> None:
    fake.ask("ACL", "SETUSER", "default", right)
    stream = member(maxEntriesPerTrigger=limit)
    fake.between = beside = Beside(fake)
    ours = [one for _ in range(5) for one in stream.ids() or ()]
    fake.between = lambda _request: None
    ours += [row["_id"] for row in stream.run_to_end()]

    everything = [entry_id.decode() for entry_id, _ in fake.ask("XRANGE", "s", "(1-1", "+")]
    assert sorted(ours + beside.read) == sorted(everything)


@pytest.mark.parametrize("goes_on", [Query.plan, Query.start_driver], ids=["same driver", "next driver"])
def test_what_another_consumer_reads_while_a_query_waits_is_no_loss(fake: Server, goes_on: Any) -> None:
    stream = member()
    assert stream.plan() is None
    fake.between = Beside(fake, b"BLOCK")
    assert len(stream.ids() or ()) == 1
    fake.between = lambda _request: None

    goes_on(stream)
    assert stream.plan() is None


@pytest.mark.parametrize("goes_on", [Query.plan, Query.start_driver], ids=["same driver", "next driver"])
def test_what_is_trimmed_while_a_query_waits_alone_is_a_loss(fake: Server, goes_on: Any) -> None:
    stream = member()
    assert stream.plan() is None
    fake.between = Burst(fake, b"BLOCK")
    assert stream.ids() == [f"1-{seq}" for seq in range(17, 22)]
    fake.between = lambda _request: None

    with pytest.raises(DataLoss, match="15 entries were trimmed before they were read: those after 1-1,"):
        goes_on(stream) or stream.plan()


@pytest.mark.filterwarnings("ignore:of the streams")
def test_what_is_taken_of_a_stream_that_came_later_before_it_is_read_is_a_loss(fake: Server) -> None:
    stream = Query(**SHARED | {"stream": "t"})
    assert stream.plan() is None
    for seq in range(1, 11):
        fake.ask("XADD", "t", f"1-{seq}", "n", seq)
    fake.ask("XTRIM", "t", "MAXLEN", 3)

    with pytest.raises(DataLoss, match="7 entries were trimmed"):
        stream.plan()


@pytest.mark.parametrize("limit", ["1", "1000"])
def test_what_a_policy_hands_out_by_priority_is_read_once(fake: Server, limit: str) -> None:
    stream = member(maxEntriesPerTrigger=limit)
    fake.ask("PENSTOCK.POLICY", "s", "GROUP", "g", "ACKWAIT", 30_000, "PRIORITY", "level")
    for seq, level in enumerate((1, 9, 5, 9, 0), 2):
        fake.ask("XADD", "s", f"1-{seq}", "level", level)

    assert sorted(row["_id"] for row in stream.run_to_end()) == [f"1-{seq}" for seq in range(2, 7)]
    assert fake.ask("XPENDING", "s", "g")[0] == 0


def test_what_a_policy_hands_out_again_is_read_beside_what_is_new(fake: Server) -> None:
    stream = member()
    fake.ask("PENSTOCK.POLICY", "s", "GROUP", "g", "ACKWAIT", 30_000)
    for seq in (2, 3):
        fake.ask("XADD", "s", f"1-{seq}", "n", seq)
        fake.ask("XREADGROUP", "GROUP", "g", "another", "STREAMS", "s", ">")
    fake.ask("XACK", "s", "g", "1-3")
    fake.ask("XADD", "s", "1-4", "n", 4)
    fake.clock.advance(30_000)

    assert stream.ids() == ["1-2", "1-4"]
    assert stream.ids() is None
    assert fake.ask("XPENDING", "s", "g")[0] == 0


def test_what_is_held_back_is_not_claimed_before_its_time(fake: Server) -> None:
    stream = member(claimMinIdle="10s")
    fake.ask("PENSTOCK.POLICY", "s", "GROUP", "g", "RATE", 1_000, 1_000)
    for seq in (2, 3, 4):
        fake.ask("XADD", "s", f"1-{seq}", "n", seq)
    fake.ask("XREADGROUP", "GROUP", "g", "another", "STREAMS", "s", ">")
    fake.ask("PENSTOCK.XNACK", "s", "g", "FAIL", "IDS", 1, "1-2", "DELAY", 60_000)
    fake.ask("XNACK", "s", "g", "FAIL", "IDS", 1, "1-3")

    assert stream.ids() is None
    fake.clock.advance(30_000)
    assert stream.ids() == ["1-4"]  # it was idle for long enough
    fake.clock.advance(30_000)
    assert stream.ids() == ["1-2", "1-3"]


def test_nothing_is_claimed_where_a_policy_delivers_again(fake: Server) -> None:
    stream = member(claimMinIdle="1s")
    fake.ask("PENSTOCK.POLICY", "s", "GROUP", "g", "ACKWAIT", 30_000, "BACKOFF", 20_000, 20_000)
    for seq in (2, 3):
        fake.ask("XADD", "s", f"1-{seq}", "n", seq)
    fake.ask("XREADGROUP", "GROUP", "g", "another", "STREAMS", "s", ">")
    fake.ask("XNACK", "s", "g", "FAIL", "IDS", 1, "1-2")
    fake.clock.advance(10_000)

    with pytest.warns(UserWarning, match="claimMinIdle claims nothing there"):
        assert stream.ids() is None
    fake.clock.advance(10_000)
    assert stream.ids() == ["1-2"]
    fake.clock.advance(10_000)
    assert stream.ids() == ["1-3"]


def test_a_query_that_may_not_claim_ends_with_what_the_server_says(fake: Server) -> None:
    stream = member(claimMinIdle="1s")
    fake.ask("XADD", "s", "1-2", "n", 2)
    fake.ask("XREADGROUP", "GROUP", "g", "another", "STREAMS", "s", ">")
    fake.clock.advance(1_000)
    fake.ask("ACL", "SETUSER", "default", "-xclaim")

    with pytest.raises(PipelineError, match=r"NOPERM .* 'xclaim'"):
        stream.batch()


def test_what_a_policy_keeps_back_is_no_loss(fake: Server) -> None:
    stream = member()
    fake.ask("PENSTOCK.POLICY", "s", "GROUP", "g", "PAUSE", "FOREVER")
    fake.ask("XADD", "s", "1-2", "n", 2)

    assert [stream.ids(), stream.ids()] == [None, None]
    fake.ask("PENSTOCK.POLICY", "s", "GROUP", "g", "PAUSE", "NONE")
    assert stream.ids() == ["1-2"]


@pytest.mark.parametrize(
    ("right", "text"),
    [
        ("-xinfo", "the group 'g' cannot be read: NOPERM"),
        ("-xgroup", "key 's': NOPERM"),
        ("-xpending", "key 's': NOPERM"),
    ],
)
def test_a_query_whose_user_may_not_look_or_join_ends_with_what_the_server_says(
    fake: Server, right: str, text: str
) -> None:
    fake.ask("ACL", "SETUSER", "default", right)

    with pytest.raises(PipelineError, match=text):
        member()


def test_a_batch_whose_entries_cannot_be_looked_up_is_not_taken_for_acknowledged(fake: Server) -> None:
    stream = member()
    fake.ask("ACL", "SETUSER", "default", "-xpending")
    stream.start_driver()

    with pytest.raises(PipelineError, match="cannot be acknowledged: NOPERM"):
        stream.plan()


def test_a_batch_that_cannot_be_acknowledged_ends_the_query_and_is_not_delivered_again(
    server: redis.Redis, query: Any
) -> None:
    fill(server, "s", 1, 2, 3)
    stream = query()
    assert stream.ids() == ["1-1", "1-2", "1-3"]
    server.execute_command("ACL", "SETUSER", "default", "-xack")

    with pytest.raises(PipelineError, match="cannot be acknowledged: NOPERM"):
        stream.plan()
    server.execute_command("ACL", "SETUSER", "default", "+xack")
    stream.start_driver()
    assert stream.ids() is None
    assert pending(server) == []


@pytest.mark.parametrize("limit", [{"maxEntriesPerTrigger": 500}, {"maxBytesPerTrigger": 20_000}])
def test_what_was_pending_at_a_restart_comes_in_batches_of_the_limit(
    server: redis.Redis, query: Any, limit: dict[str, int]
) -> None:
    expected = fill(server, "s", *range(1, 3001))
    server.xgroup_create("s", "g", "0")
    server.xreadgroup("g", "spark", {"s": ">"}, count=2600)
    stream = query(**limit)
    batches = []
    while (found := stream.batch()) is not None:
        batches.append([row["_id"] for row in found])

    assert [one for batch in batches for one in batch] == expected
    assert 300 < len(batches[0]) <= 600
    assert max(map(len, batches)) <= 1200  # the last of the old ones, and the first new ones
    assert pending(server) == []


def test_a_restart_with_more_streams_than_entries_in_a_batch_keeps_the_limit(
    server: redis.Redis, endpoint: str
) -> None:
    keys = [f"s:{number:02d}" for number in range(30)]
    for key in keys:
        fill(server, key, *range(1, 6))
        server.xgroup_create(key, "g", "0")
        server.xreadgroup("g", "spark", {key: ">"})
    shared = {"endpoints": endpoint, "group": "g", "groupMode": "shared", "consumer": "spark"}
    stream = Query(**shared, streamPattern="s:*", maxEntriesPerTrigger="10")
    batches = []
    while (found := stream.batch()) is not None:
        batches.append([(row["_stream"], row["_id"]) for row in found])
    stream.stop()

    assert sorted(row for batch in batches for row in batch) == [
        (key, f"1-{seq}") for key in keys for seq in range(1, 6)
    ]
    assert [len(batch) for batch in batches] == [10] * 15
