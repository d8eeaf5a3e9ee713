"""How large the pages are that a task asks for, and what memory it takes."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import redis

from penstock.pipeline.connector.connection.client import Client
from tests.pipeline.driving import Query, read

ROOT = Path(__file__).parents[3]
LONG = 400_000  # bytes of a value
READING = """
import json, resource, sys
from penstock.pipeline.connector.source import readers
from tests.pipeline.driving import schema

reader = readers.batch_reader(json.loads(sys.argv[1]), schema(sys.argv[2]))
tasks = reader.partitions()
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
rows = sum(batch.num_rows for task in tasks for batch in reader.read(task))
print(json.dumps([rows, peak() - before]))
"""


def fill(server: redis.Redis, sizes: Sequence[int]) -> list[str]:
    """Entries with values of these sizes, and their ids."""
    ids = [f"{number}-0" for number in range(1, len(sizes) + 1)]
    with server.pipeline(transaction=False) as pipe:
        for entry_id, size in zip(ids, sizes, strict=True):
            pipe.xadd("s", {"v": os.urandom(size // 2).hex()}, entry_id)
            if size >= LONG or entry_id.endswith("000-0"):
                pipe.execute()
        pipe.execute()
    return ids


def peak_of(endpoint: str, ddl: str, **options: str) -> list[int]:
    """Rows read, and by how many bytes a process that reads the stream grows meanwhile at most."""
    asked = {"endpoints": endpoint, "stream": "s", **options}
    done = subprocess.run(
        [sys.executable, "-c", READING, json.dumps(asked), ddl], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found: list[int] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    "ddl", ["_id string, v binary", pytest.param("fields map<string,binary>", marks=pytest.mark.slow)]
)
def test_a_task_takes_four_times_fetch_bytes_however_long_the_entries_are(
    server: redis.Redis, endpoint: str, ddl: str
) -> None:
    fill(server, [LONG] * 200)

    rows, grown = peak_of(endpoint, ddl)

    assert rows == 200
    assert grown <= 4 * (8 << 20)


def test_a_task_takes_no_more_where_long_entries_follow_short_ones(server: redis.Redis, endpoint: str) -> None:
    fill(server, [100] * 5000 + [LONG] * 100 + [100] * 5000)

    rows, grown = peak_of(endpoint, "fields map<string,binary>")

    assert rows == 10_100
    assert grown <= 4 * (8 << 20)


@pytest.mark.parametrize("ids_in_offset", [False, True], ids=["ranges", "lists of ids"])
@pytest.mark.parametrize(
    "sizes",
    [[10] * 300, [900] * 300, [10] * 200 + [5000] * 20 + [10] * 80, [9000] * 5, [10, 9000] * 50],
    ids=["short", "long", "changing", "longer than a page", "one and the other"],
)
def test_every_entry_is_read_once_and_no_page_is_too_long(
    server: redis.Redis, endpoint: str, sizes: list[int], ids_in_offset: bool
) -> None:
    expected = fill(server, sizes)
    options = {"endpoints": endpoint, "stream": "s", "startingId": "earliest", "fetchBytes": "8000"}
    if ids_in_offset:  # what was delivered to a driver that died is a list of ids
        server.xgroup_create("s", "g", "0")
        server.xreadgroup("g", "me", {"s": ">"}, count=1000)
        options |= {"group": "g", "groupMode": "shared", "consumer": "me"}
    query = Query("_id string, v string", **options)
    query.plan()
    pages = [page for task in query.tasks() for page in query.reader.read(task)]
    query.stop()

    assert [one for page in pages for one in page.column("_id").to_pylist()] == expected
    assert [page.num_rows for page in pages if page.nbytes > 8000 + 100 * page.num_rows and page.num_rows > 1] == []


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many entries each page was asked to have."""
    asked: list[int] = []
    framed = Client.framed

    def noted(self: Client, payload: bytes, most: int | None = None) -> Any:
        asked.append(int(payload.split(b"\r\n")[-2]))
        return framed(self, payload, most)

    monkeypatch.setattr(Client, "framed", noted)
    return asked


def test_the_first_page_is_short_and_the_next_ones_are_as_long_as_the_option_says(
    server: redis.Redis, endpoint: str, counts: list[int]
) -> None:
    fill(server, [10] * 300)

    assert len(read(endpoints=endpoint, stream="s", fetchSize="64")) == 300
    assert counts == [4, 64, 64, 64, 64, 64]


def test_a_page_that_is_too_long_is_asked_for_again_with_fewer_entries(
    server: redis.Redis, endpoint: str, counts: list[int]
) -> None:
    fill(server, [5000] * 6)

    assert len(read(endpoints=endpoint, stream="s", fetchBytes="12000")) == 6
    assert counts[0] == 4
    assert max(counts[1:]) <= 2  # by how much of the reply came before it was left
