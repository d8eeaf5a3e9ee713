"""What is taken after a position that has no count is told of, with the most that it can be, and only then."""

import re
import warnings
from collections.abc import Iterable, Iterator

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from penstock.pipeline.connector.source import readers
from penstock.pipeline.connector.source.offsets import Delivered, delivered_json, delivered_of
from penstock.pipeline.errors import DataLoss
from tests.pipeline.connector.loss_history import Server, reached
from tests.pipeline.driving import Query, read, schema

GOES_ON = {"stream": "s", "failOnDataLoss": "false"}
SHARED = GOES_ON | {"group": "g", "groupMode": "shared", "consumer": "spark", "startingId": "earliest"}


@pytest.fixture
def fake() -> Iterator[Server]:
    """A server that the connector reaches without a network."""
    server = Server()
    with reached(server):
        yield server


def add(server: Server, seqs: Iterable[int]) -> None:
    for seq in seqs:
        server.ask("XADD", "s", f"1-{seq}", "n", seq)


def delete(server: Server, seqs: Iterable[int]) -> None:
    server.ask("XDEL", "s", *(f"1-{seq}" for seq in seqs))


def others_read(server: Server, count: int) -> None:
    server.ask("XREADGROUP", "GROUP", "g", "another", "COUNT", count, "NOACK", "STREAMS", "s", ">")


def test_a_trim_behind_what_others_read_since_the_last_look_is_told_of(fake: Server) -> None:
    add(fake, range(1, 7))
    stream = Query(**SHARED, maxEntriesPerTrigger="3")
    assert stream.ids() == ["1-1", "1-2", "1-3"]
    add(fake, range(7, 11))
    delete(fake, [10])  # so the server does not count what the group reads
    others_read(fake, 4)
    add(fake, range(11, 21))
    fake.ask("XTRIM", "s", "MAXLEN", 1)

    with pytest.warns(UserWarning, match="trimmed or deleted while they were read, at most 13: those after 1-7"):
        assert stream.ids() == ["1-20"]


def test_deletions_that_no_count_had_at_a_restart_are_told_of_where_others_pass_them(fake: Server) -> None:
    add(fake, range(1, 4))
    stream = Query(**SHARED, maxEntriesPerTrigger="3")
    assert stream.ids() == ["1-1", "1-2", "1-3"]
    add(fake, range(4, 20))
    delete(fake, [15, 16])
    for _ in range(2):
        stream.start_driver()
        stream.batch()
    others_read(fake, 100)
    stream.start_driver()

    with pytest.warns(UserWarning, match="deleted one by one before they were read, others read too"):
        stream.run_to_end()


def test_deletions_that_were_told_of_are_not_told_of_again_by_the_next_driver(fake: Server) -> None:
    add(fake, range(1, 4))
    stream = Query(**SHARED)
    stream.batch()
    add(fake, range(4, 20))
    delete(fake, [15, 16])
    with pytest.warns(UserWarning, match="2 entries were deleted one by one"):
        stream.run_to_end()
    stream.start_driver()
    add(fake, range(20, 30))
    others_read(fake, 3)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream.run_to_end()


def test_pending_entries_of_others_that_are_gone_when_they_are_claimed_are_told_of(fake: Server) -> None:
    add(fake, range(1, 11))
    fake.ask("XGROUP", "CREATE", "s", "g", 0)
    fake.ask("XREADGROUP", "GROUP", "g", "another", "COUNT", 6, "STREAMS", "s", ">")
    fake.ask("XTRIM", "s", "MAXLEN", 8)
    delete(fake, [4])
    fake.clock.advance(1_000)
    stream = Query(**SHARED, claimMinIdle="500ms")

    with pytest.warns(UserWarning, match="before they could be claimed: 3 from 1-1 to 1-4, at most"):
        assert stream.ids() == [f"1-{seq}" for seq in (3, 5, 6, 7, 8, 9, 10)]
    assert stream.reader.missing()["entriesMissingByCause"] == {"uncounted": 3}
    assert fake.ask("XPENDING", "s", "g", "-", "+", 10, "another") == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert stream.run_to_end() == []


@pytest.mark.filterwarnings("ignore:of the streams")
@pytest.mark.parametrize(
    ("streams", "text"),
    [
        ({"stream": "s"}, "7 entries were trimmed before they were read: those after 0-0"),
        ({"streamPattern": "*", "discoveryInterval": "0ms"}, "the pattern found the stream when .* at most 7 unread"),
    ],
    ids=["named", "found by a pattern"],
)
def test_what_a_stream_lost_before_its_group_was_made_is_told_of_though_others_read_at_once(
    fake: Server, streams: dict[str, str], text: str
) -> None:
    shared = {name: value for name, value in SHARED.items() if name != "stream"}
    stream = Query(**shared, **streams)
    assert stream.plan() is None
    add(fake, range(1, 11))
    fake.ask("XTRIM", "s", "MAXLEN", 3)
    fake.between = lambda request: others_read(fake, 1) if request == [b"MULTI"] else None

    with pytest.warns(UserWarning, match=text):
        assert stream.ids() == ["1-9", "1-10"]


def test_a_trim_after_the_id_at_which_a_query_was_told_to_begin_is_told_of(fake: Server) -> None:
    add(fake, [1, 2])
    stream = Query(**GOES_ON, startingId="1-10")
    assert stream.batch() is None
    add(fake, range(3, 21))
    fake.ask("XTRIM", "s", "MAXLEN", 4)

    with pytest.warns(UserWarning, match=re.escape("at most 14: those after 1-9")):
        assert stream.ids() == ["1-17", "1-18", "1-19", "1-20"]


@pytest.mark.parametrize("end", [9, 12])
def test_a_trim_before_the_id_at_which_a_query_was_told_to_begin_is_no_loss(fake: Server, end: int) -> None:
    add(fake, [1, 2])
    stream = Query(**GOES_ON, startingId="1-10")
    assert stream.batch() is None
    fake.ask("XTRIM", "s", "MAXLEN", 0)
    add(fake, range(3, end + 1))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(stream.run_to_end()) == max(end - 9, 0)


def test_what_a_task_missed_is_told_of_though_its_server_goes_back_amid_the_task(fake: Server) -> None:
    add(fake, range(1, 21))
    stream = Query(**GOES_ON, startingId="1-5", minPartitions="3")
    stream.plan()
    before = fake.ask("DUMP", "s")
    delete(fake, [5, 6, 7, 8, 9])
    looks: list[bytes] = []

    def go_back(request: list[bytes]) -> None:
        looks.extend(request[:1] if request[0] == b"XINFO" else ())
        if len(looks) == 2:
            fake.ask("RESTORE", "s", 0, before, "REPLACE")

    fake.between = go_back
    with pytest.warns(UserWarning, match="at most 5: those after 1-4 were not counted"):
        assert len(stream.run()) == 11


@pytest.mark.parametrize(
    ("begin", "take", "text"),
    [
        ("1-5", ("XTRIM", "s", "MAXLEN", 0), "at most 20"),
        ("1-5", ("XTRIM", "s", "MAXLEN", 10), "at most 10"),
        ("1-5", ("XDEL", "s", "1-6"), "at most 1"),
        ("1-5", ("DEL", "s"), "the stream is gone"),
        ("earliest", ("XTRIM", "s", "MAXLEN", 0), "20 of 20 entries were trimmed"),
        ("earliest", ("XDEL", "s", "1-6"), "1 of 20 entries were trimmed or deleted"),
    ],
    ids=["all of a part", "trim", "XDEL", "DEL", "all", "XDEL of one"],
)
@pytest.mark.parametrize("tasks", ["1", "3"])
def test_what_is_taken_before_the_tasks_of_a_batch_job_are_planned_is_told_of(
    fake: Server, begin: str, take: tuple[str, ...], text: str, tasks: str
) -> None:
    add(fake, range(1, 21))
    fake.on_look = lambda: fake.ask(*take)

    with pytest.raises(DataLoss, match=text if tasks == "1" else "were|was|is gone"):
        read("_id string", stream="s", startingId=begin, minPartitions=tasks)


def test_a_batch_job_has_no_task_for_a_stream_without_entries_in_its_range(fake: Server) -> None:
    add(fake, range(1, 21))
    fake.ask("XADD", "t", "2-1", "n", 1)
    delete(fake, range(3, 18))

    reader = readers.batch_reader({"stream": "s,t", "startingId": "1-5", "endingId": "1-9"}, schema("_id string"))
    assert reader.partitions() == []


def test_an_offset_has_up_to_where_deletions_were_told_of() -> None:
    offset = Delivered(7, "spark", deleted={("main", b"s"): 5 << 64})
    assert delivered_of(delivered_json(offset)) == offset
