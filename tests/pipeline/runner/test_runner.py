"""A pipeline from rows to windows and a second stream: bad rows, late rows, a death in the middle, a second run."""

import operator
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import redis
from pyspark.errors import StreamingQueryException

from penstock.pipeline.errors import OptionError, PipelineError
from penstock.pipeline.runner import balance, pipeline_file
from penstock.pipeline.runner.batch_folders import BatchFolders
from penstock.pipeline.runner.runner import LATE_WORKER, Runner, run_to_end
from tests.pipeline.driving import in_a_new_thread
from tests.support.reference_server import LOCALHOST
from tests.support.server_process import running_server

GOOD = {"carrier": "UA", "delay": "2", "at": "2013-01-01T10:00:00Z"}


@pytest.fixture
def tables(endpoint: str, tmp_path: Path) -> dict[str, Any]:
    """A pipeline's file: delays of carriers by the hour."""
    (tmp_path / "airlines.csv").write_text("carrier,name\nUA,United\nAA,American\n")
    return {
        "pipeline": {"name": "delays", "folder": str(tmp_path / "work")},
        "ingest": {
            "from": "streams",
            "options": {"endpoints": endpoint, "stream": "flights", "startingId": "earliest"},
        },
        "validate": {
            "columns": {"carrier": "string not null", "delay": "double", "at": "timestamp not null"},
            "rules": {"no flight is a day early": "delay IS NULL OR delay > -1440"},
        },
        "enrich": {
            "lookups": {
                "airlines": {
                    "path": str(tmp_path / "airlines.csv"),
                    "format": "csv",
                    "on": "carrier",
                    "columns": ["name"],
                }
            },
            "columns": {"airline": "coalesce(name, carrier)", "is_late": "delay > 15"},
        },
        "aggregate": {
            "time": "at",
            "watermark": "1 hour",
            "window": "1 hour",
            "by": ["airline"],
            "measures": {"flights": "count(*)", "mean_delay": "avg(delay)", "late": "count_if(is_late)"},
        },
        "publish": {"stream": {"endpoints": endpoint, "stream": "delays"}},
    }


def add(server: redis.Redis, *flights: dict[str, str]) -> None:
    for flight in flights:
        server.xadd("flights", {**GOOD, **flight})


def at(hour: int, minute: int = 0) -> dict[str, str]:
    return {"at": f"2013-01-01T{hour:02}:{minute:02}:00Z"}


def run(spark: Any, tables: dict[str, Any], said: list[str] | None = None) -> dict[str, tuple[int, int, int]]:
    """Of each stage: rows in, rows out, rows held back. It balances."""
    totals = Runner(spark, pipeline_file.parse(tables), (said if said is not None else []).append).run()
    assert all(stage.balances for stage in totals), balance.table("all", totals)
    return {stage.name: (stage.taken, stage.passed, stage.held) for stage in totals}


def quarantined(spark: Any, tables: dict[str, Any]) -> list[str]:
    folder = tables["pipeline"]["folder"] + "/quarantine"
    return sorted(row.reason for row in spark.read.parquet(folder).collect())


def published(server: redis.Redis) -> dict[str, str]:
    return {fields[b"row"].decode(): fields[b"flights"].decode() for _, fields in server.xrange("delays")}


def test_rows_go_through_every_stage_or_say_why_not(server: redis.Redis, spark: Any, tables: dict[str, Any]) -> None:
    add(server, at(10), {**at(10, 30), "delay": "20"}, {**at(11), "carrier": "XX"}, at(14))
    add(server, {"delay": "soon"}, {"at": "yesterday", "delay": "1e3"}, {"delay": "-2000"})
    server.xadd("flights", {"delay": "1", "at": GOOD["at"]})
    said: list[str] = []

    assert run(spark, tables, said) == {
        "validate": (8, 4, 4),
        "enrich": (4, 4, 0),
        "in time": (4, 4, 0),
        "quarantine": (4, 4, 0),
        "windows": (4, 3, 1),
        "published once": (2, 2, 0),
        "stream": (2, 2, 0),
    }
    assert quarantined(spark, tables) == [
        "at: 'yesterday' is no timestamp",
        "carrier is missing",
        "delay: 'soon' is no double",
        "no flight is a day early",
    ]
    assert [line.split() for line in said[0].splitlines()][1] == ["validate", "8", "4", "4", "quarantined", "even"]
    assert sorted(published(server).values()) == ["1", "2"]
    windows = spark.read.parquet(tables["pipeline"]["folder"] + "/published").where("airline = 'United'").collect()
    assert [(row.flights, row.mean_delay, row.late, row.rows) for row in windows] == [(2, 11.0, 1, 2)]


def test_a_second_run_goes_on_and_late_rows_are_told(server: redis.Redis, spark: Any, tables: dict[str, Any]) -> None:
    add(server, at(10), at(14))
    run(spark, tables)
    assert run(spark, tables)["stream"] == (1, 1, 0)
    add(server, at(10, 5), at(13, 5), at(20))

    assert run(spark, tables) == {
        "validate": (5, 5, 0),
        "enrich": (5, 5, 0),
        "in time": (5, 4, 1),
        "quarantine": (1, 1, 0),
        "windows": (4, 3, 1),
        "published once": (3, 3, 0),
        "stream": (3, 3, 0),
    }
    assert quarantined(spark, tables) == ["late: at is in a window that was closed at 2013-01-01 13:00:00"]


def dies_at_move(spark: Any, tables: dict[str, Any], patched: pytest.MonkeyPatch, number: int) -> None:
    """A run with a driver that dies before it renames its folder of that number."""
    moves = []
    move = BatchFolders.move

    def dying(self: BatchFolders, source: str, target: str) -> None:
        moves.append(target)
        if len(moves) == number:
            raise RuntimeError("the driver dies")
        move(self, source, target)

    with patched.context() as patch:
        patch.setattr(BatchFolders, "move", dying)
        with pytest.raises(Exception, match="the driver dies"):
            run(spark, tables)


def test_deaths_in_the_middle_lose_and_double_nothing(
    server: redis.Redis, spark: Any, tables: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    add(server, at(10), at(11), {"delay": "soon"}, at(14))
    dies_at_move(spark, tables, monkeypatch, 1)  # before the quarantine
    dies_at_move(spark, tables, monkeypatch, 2)  # between quarantine and clean rows
    add(server, at(13, 30), {"delay": "later"})
    dies_at_move(spark, tables, monkeypatch, 5)  # two batches are done, no window is

    found = run(spark, tables)
    assert (found["validate"], found["quarantine"]) == ((6, 4, 2), (2, 2, 0))
    assert (found["windows"], found["stream"]) == ((4, 2, 2), (2, 2, 0))
    assert len(published(server)) == server.xlen("delays") == 2


def test_files_to_a_stream_without_windows(
    server: redis.Redis, spark: Any, tables: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text(f"carrier,delay,at\nUA,5,{GOOD['at']}\n,7,{GOOD['at']}\n")
    tables["ingest"] = {"from": "files", "format": "csv", "options": {"path": str(tmp_path / "in")}}
    del tables["aggregate"]

    assert run(spark, tables)["stream"] == (1, 1, 0)
    (tmp_path / "in" / "2.csv").write_text(f"carrier,delay,at\nAA,9,{GOOD['at']}\n")
    found = run(spark, tables)
    assert (found["validate"], found["stream"]) == ((3, 2, 1), (2, 2, 0))
    assert sorted(fields[b"airline"] for _, fields in server.xrange("delays")) == [b"American", b"United"]

    (tmp_path / "in" / "3.csv").write_text(f"carrier,delay,at\nAA,11,{GOOD['at']}\n")
    in_a_new_thread(Runner(spark, pipeline_file.parse(tables), [].append).run)
    assert server.xlen("delays") == 3


def test_a_log_is_taken_from_where_the_last_run_ended(spark: Any, tables: dict[str, Any], tmp_path: Path) -> None:
    del tables["aggregate"], tables["publish"]["stream"], tables["enrich"]
    with (
        running_server("--appendonly", "yes", dir=tmp_path) as server,
        redis.Redis(LOCALHOST, server.port) as client,
    ):
        tables["ingest"] = {"from": "log", "options": {"path": str(tmp_path), "stream": "flights"}}
        add(client, at(10), {"delay": "soon"})
        client.xadd("other", GOOD)
        assert run(spark, tables)["validate"] == (2, 1, 1)

        assert run(spark, tables)["validate"] == (2, 1, 1)
        add(client, at(11))
        assert run(spark, tables)["validate"] == (3, 2, 1)
    rows = spark.read.option("recursiveFileLookup", "true").parquet(tables["pipeline"]["folder"] + "/clean").collect()
    assert sorted(row["at"].hour for row in rows) == [10, 11]


def test_a_query_with_a_late_python_begins_again() -> None:
    late = StreamingQueryException(f"[STREAM_FAILED] {LATE_WORKER}. SQLSTATE: XXKST")
    queries = [Query(late), Query(late), Query(None)]
    run_to_end(lambda **_: queries.pop(0))
    assert queries == []

    with pytest.raises(StreamingQueryException, match="no disk"):
        run_to_end(lambda **_: Query(StreamingQueryException("no disk")))


class Query:
    """A query that has ended, or was ended by something."""

    def __init__(self, reason: Exception | None) -> None:
        self.reason = reason

    def awaitTermination(self) -> None:  # noqa: N802 - Spark's name
        if self.reason is not None:
            raise self.reason


def test_a_lookup_with_a_key_twice_is_refused(spark: Any, tables: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "airlines.csv").write_text("carrier,name\nUA,United\nUA,Union\n")

    with pytest.raises(PipelineError, match="the lookup 'airlines' has the key UA 2 times"):
        Runner(spark, pipeline_file.parse(tables))


@pytest.mark.parametrize(
    ("place", "words", "told"),
    [
        (("validate", "columns"), {"carrier": "strnig"}, r"\[validate.columns\] 'carrier': .*STRNIG"),
        (("validate", "rules"), {"r": "delay >"}, r"\[validate.rules\] 'r': .*[Ss]yntax"),
        (("validate", "rules"), {"r": "dealy > 1"}, r"\[validate.rules\] 'r': .*`dealy`.*`delay`"),
        (("enrich", "columns"), {"airline": "coalesce(("}, r"\[enrich.columns\] 'airline': .*[Ss]yntax"),
        (("enrich", "columns"), {"airline": "nosuch(carrier)"}, r"\[enrich.columns\] 'airline': .*nosuch"),
        (("aggregate",), {"watermark": "1 huor"}, r"\[aggregate\] 'watermark': .*huor"),
        (("aggregate", "measures"), {"m": "avg(dealy)"}, r"\[aggregate.measures\] 'm': .*`dealy`"),
        (("pipeline",), {"trigger": "5 socends"}, r"\[pipeline\] 'trigger': .*socends"),
    ],
    ids=["type", "syntax", "column", "brackets", "function", "interval", "measure", "trigger"],
)
def test_what_spark_does_not_understand_is_told_with_its_place_before_a_query_starts(
    spark: Any, tables: dict[str, Any], place: tuple[str, ...], words: dict[str, Any], told: str
) -> None:
    reduce(operator.getitem, place, tables).update(words)
    with pytest.raises(OptionError, match=told):
        Runner(spark, pipeline_file.parse(tables))

    assert spark.streams.active == []
