"""Jobs over a server's tables and over the log that it wrote."""

import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import redis

from penstock.pipeline import cli
from penstock.pipeline.errors import OptionError, PipelineError
from penstock.pipeline.jobs import jobs
from tests.pipeline.conftest import REAL_REDIS
from tests.pipeline.connector.test_cursor_reader import fill
from tests.support.reference_server import LOCALHOST
from tests.support.server_process import running_server


@pytest.fixture
def table(spark: Any, endpoint: str) -> Any:
    def load(name: str, **options: str) -> Any:
        reader = spark.read.format("redis_streams").options(endpoints=endpoint, table=name, **options)
        return reader.load()

    return load


@pytest.fixture
def held(server: redis.Redis) -> list[str]:
    """Five entries held by alice, of which bob has taken the first, at its ninth delivery, an hour ago."""
    ids = fill(server, "s", 1, 2, 3, 4, 5)
    server.xgroup_create("s", "g", "0")
    server.xreadgroup("g", "alice", {"s": ">"})
    server.execute_command("XCLAIM", "s", "g", "bob", 0, ids[0], "IDLE", 3_600_000, "RETRYCOUNT", 9)
    return ids


def rows(frame: Any, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.select(*columns).collect()]


def test_pending_entries_by_their_deliveries(table: Any, held: list[str]) -> None:
    assert rows(jobs.delivery_histogram(table("pending")), "stream", "group", "deliveries", "entries") == [
        ("s", "g", 1, 4),
        ("s", "g", 9, 1),
    ]


def test_which_consumer_is_stuck_and_what_is_oldest(table: Any, held: list[str]) -> None:
    ((consumer, entries, entry_id),) = rows(jobs.stuck(table("pending"), 60_000), "consumer", "entries", "id")
    assert (consumer, entries, entry_id) == ("bob", 1, held[0])
    assert rows(jobs.oldest_pending(table("pending")), "id") == [(held[0],)]


def test_lag_and_its_rate_between_two_looks(server: redis.Redis, table: Any, held: list[str], spark: Any) -> None:
    earlier = table("groups")
    earlier = spark.createDataFrame(earlier.collect(), earlier.schema)
    fill(server, "s", *range(6, 16))
    server.xreadgroup("g", "alice", {"s": ">"}, count=6)

    assert rows(jobs.lag(table("groups")), "group", "lag") == [("g", 4)]
    assert rows(jobs.lag(table("groups"), earlier, 2.0), "lag", "read_per_s", "added_per_s", "drained_s") == [
        (4, 3.0, 5.0, None)
    ]


def letters(spark: Any, endpoint: str) -> Any:
    reader = spark.read.format("redis_streams").options(endpoints=endpoint, stream="s:dead")
    return reader.schema(jobs.LETTERS).load()


def test_poison_is_buried_and_driven_again_once(
    spark: Any, server: redis.Redis, table: Any, held: list[str], endpoint: str
) -> None:
    moved = jobs.move_to_dead_letter(jobs.poison(table("pending"), 5), {"endpoints": endpoint})
    assert server.xpending("s", "g")["pending"] == 4
    ((letter_id, _),) = server.xrange("s:dead")
    reported = [("s", "g", held[0], 9, "bob", "delivered 9 times", "s:dead", letter_id.decode())]
    assert rows(moved, "stream", "group", "id", "deliveries", "consumer", "reason", "letter_stream", "letter_id") == (
        reported
    )
    (letter,) = rows(jobs.dead_letters(table("entries", stream="s:dead")), "stream", "id", "reason", "fields")
    assert letter == ("s", held[0], "delivered 9 times", {"n": "1"})

    for _ in range(2):
        sent = jobs.redrive(letters(spark, endpoint), {"endpoints": endpoint})
        assert rows(sent, *sent.columns) == reported
    assert [fields for _, fields in server.xrange("s")][5:] == [{b"n": b"1"}]


def test_an_entry_is_driven_again_with_all_its_fields(spark: Any, server: redis.Redis, endpoint: str) -> None:
    fields = (b"n", b"1", b"n", b"2", b"\xff", b"\xfe\x00", b"_id", b"its own", b"empty", b"")
    entry_id = server.execute_command("XADD", "s", "*", *fields).decode()
    about = ("_stream", "s", "_group", "g", "_id", entry_id, "_deliveries", 9, "_consumer", "bob", "_reason", "fatal")
    server.execute_command("XADD", "s:dead", "*", *fields, *about)

    sent = jobs.redrive(letters(spark, endpoint), {"endpoints": endpoint})

    assert rows(sent, "stream", "id", "deliveries") == [("s", entry_id, 9)]
    server.response_callbacks.clear()
    assert [tuple(words) for _, words in server.execute_command("XRANGE", "s", "-", "+")] == [fields, fields]


def test_letters_with_their_fields_as_a_map_are_not_driven_again(server: redis.Redis, table: Any) -> None:
    server.xadd("s:dead", {"_stream": "s", "n": "1"})

    with pytest.raises(PipelineError, match="a map of fields may lack some: read the letters with the schema"):
        jobs.redrive(table("entries", stream="s:dead"), {})


def test_what_was_moved_before_or_could_not_be_moved_is_not_reported(
    server: redis.Redis, table: Any, held: list[str], endpoint: str
) -> None:
    seen = table("pending").persist()
    seen.count()
    server.xadd("s:dead", {"_stream": "s", "_group": "g", "_id": held[1], "n": "2"})  # an older letter of that entry
    server.xack("s", "g", held[0])

    moved = jobs.move_to_dead_letter(seen, {"endpoints": endpoint, "minIdle": "0"})

    assert sorted(rows(moved, "id")) == [(entry_id,) for entry_id in held[1:]]
    assert rows(jobs.move_to_dead_letter(table("pending"), {"endpoints": endpoint}), "id") == []
    seen.unpersist()


def job(spark: Any, *words: str) -> int:
    """`penstock pipeline` in this session."""
    return cli.run_job(spark, cli.parser().parse_args(words))


def test_a_job_from_the_command_line_writes_its_rows(
    spark: Any, held: list[str], endpoint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "found.json")
    assert job(spark, "poison", "--endpoint", endpoint, "--stream", "s", "--out", out) == 0

    assert [row.id for row in spark.read.json(out).collect()] == [held[0]]
    assert capsys.readouterr().out.endswith(f"1 rows in {out}\n")
    with pytest.raises(OptionError, match="the job 'poison' has no chart"):
        job(spark, "poison", "--endpoint", endpoint, "--plot", "x.png")


@pytest.mark.parametrize("name", ["delivery-histogram", "redelivery-latency"], ids=["bars", "histogram"])
def test_jobs_are_drawn(spark: Any, held: list[str], endpoint: str, tmp_path: Path, name: str, logged: Path) -> None:
    pytest.importorskip("matplotlib")
    where = ["--log", str(logged)] if name == "redelivery-latency" else ["--endpoint", endpoint]
    assert job(spark, name, *where, "--plot", str(tmp_path / "chart.png")) == 0

    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


# -- the log ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a server wrote of five entries: read, claimed, given back, acknowledged."""
    if REAL_REDIS:
        pytest.skip("the log needs XNACK")
    directory = tmp_path_factory.mktemp("log")
    with (
        running_server("--appendonly", "yes", "--aof-timestamp-enabled", "yes", dir=directory) as server,
        redis.Redis(LOCALHOST, server.port) as client,
    ):
        play(client)
    return directory


@pytest.fixture(scope="module")
def log(spark: Any, logged: Path) -> Any:
    found = jobs.log(spark, str(logged)).persist()
    yield found
    found.unpersist()


def play(client: redis.Redis) -> None:
    for number in range(1, 6):
        client.execute_command("XADD", "s", "MAXLEN", "~", 100, f"{number}-0", "n", number, "n", "again")
    for _ in range(2):
        client.execute_command("XADD", "twin", "IDMP", "p", "9-5", "*", "n", 5)
    client.xadd("other", {"x": "1"}, "1-0", minid="1-0", approximate=True, limit=10)
    client.xgroup_create("s", "g", "0")
    client.xreadgroup("g", "alice", {"s": ">"}, count=4)
    client.execute_command("XNACK", "s", "g", "FAIL", "IDS", 2, "1-0", "2-0")
    time.sleep(0.05)
    client.xclaim("s", "g", "bob", 0, ["1-0"])
    client.xclaim("s", "g", "carol", 0, ["3-0"])
    client.xclaim("s", "g", "dave", 0, ["4-0"], justid=True)
    client.xack("s", "g", "1-0", "4-0")
    client.execute_command("XACKDEL", "s", "g", "KEEPREF", "IDS", 1, "3-0")


def test_entries_are_found_behind_every_option(log: Any) -> None:
    found = jobs.entries(log).orderBy("stream", "id")

    assert rows(found.where("stream != 'twin'"), "stream", "id", "fields") == [
        ("other", "1-0", {"x": "1"}),
        *[("s", f"{number}-0", {"n": str(number)}) for number in range(1, 6)],
    ]
    assert rows(found.where("stream = 'twin'"), "fields") == [({"n": "5"},)]
    assert rows(found, "timestamp")[0] == (datetime.fromtimestamp(0.001),)


def test_deliveries_and_what_was_given_back(log: Any) -> None:
    found = jobs.deliveries(log).orderBy("file_seq", "offset", "id")

    assert rows(found, "consumer", "id", "deliveries") == [
        *[("alice", f"{number}-0", 1) for number in range(1, 5)],
        ("bob", "1-0", 2),
        ("carol", "3-0", 2),
        ("dave", "4-0", 1),
    ]
    assert sorted(rows(jobs.releases(log), "id", "deliveries")) == [("1-0", 1), ("2-0", 1)]
    assert sorted(rows(jobs.acknowledgements(log), "id")) == [("1-0",), ("3-0",), ("4-0",)]


def test_how_long_a_redelivery_took_and_why_it_came(log: Any) -> None:
    found = jobs.redelivery_latency(log).orderBy("id")

    assert rows(found, "id", "former", "consumer", "cause", "deliveries") == [
        ("1-0", "alice", "bob", "nacked", 2),
        ("3-0", "alice", "carol", "claimed", 2),
    ]
    times: dict[str, list[datetime]] = {}
    for entry_id, delivered_at in rows(jobs.deliveries(log).orderBy("file_seq", "offset"), "id", "delivered_at"):
        times.setdefault(entry_id, []).append(delivered_at)
    for entry_id, latency_ms in rows(found, "id", "latency_ms"):
        first, second = times[entry_id]
        assert latency_ms == (second - first) / timedelta(milliseconds=1) >= 50


def test_attempts_and_time_to_an_acknowledgement(log: Any) -> None:
    assert rows(jobs.attempts_at_ack(log), "deliveries", "entries") == [(1, 1), (2, 2)]
    found = rows(jobs.time_to_ack(log), "first_delivered_at", "acked_at", "seconds")
    assert [seconds for _, _, seconds in found] == [
        pytest.approx((acked - first).total_seconds(), abs=1e-5) for first, acked, _ in found
    ]
    assert len(found) == 3 and all(seconds > -1 for _, _, seconds in found)  # acknowledgements have whole seconds


def test_the_log_becomes_folders_of_days_and_commands(log: Any, spark: Any, tmp_path: Path) -> None:
    written = jobs.history(log, str(tmp_path / "history"))

    assert {row.command: row.lines for row in written.collect()} == {
        row.command: row["count"] for row in log.groupBy("command").count().collect()
    }
    assert rows(jobs.history(log.where("command = 'NONE'"), str(tmp_path / "none")), "lines") == []
    kept = spark.read.parquet(str(tmp_path / "history"))
    assert kept.where("command = 'XADD'").count() == log.where("command = 'XADD'").count()
    assert next((tmp_path / "history").glob("day=*")).name != "day=__HIVE_DEFAULT_PARTITION__"
