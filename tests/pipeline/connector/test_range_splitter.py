"""Cuts through streams with entries that are anything but evenly spread."""

from collections.abc import Sequence

import pytest

pytest.importorskip("hiredis")

import redis

from penstock.pipeline.connector.connection.client import Access, Client, Endpoint, Reply, Request
from penstock.pipeline.connector.source.id_ranges import cut
from penstock.pipeline.connector.source.range_splitter import find_cuts
from penstock.storage.streams import ids
from tests.support.reference_server import LOCALHOST

PARTS = 8
EVEN = [(1_000 + number, 0) for number in range(4_000)]
BURSTS = [(1_000 + 97 * number, 0) for number in range(400)] + [
    (begin + number % 5, number) for begin in (9_000, 31_000) for number in range(1_800)
]
ONE_MILLISECOND = [(1_000 + number, 0) for number in range(2_000)] + [(2_500, number) for number in range(1, 2_000)]
PIPELINED = [(1_000 + 3 * number // 100, number % 100) for number in range(4_000)]
SPARSE = [(1_000 + 50 * number, 0) for number in range(1, 2_000)]
BURST_FIRST = [*((1_000, number) for number in range(1, 2_000)), *SPARSE]
BURST_LAST = [*SPARSE, *((200_000, number) for number in range(2_000))]
BURST_AFTER_A_PAUSE = [
    *SPARSE,
    *((500_000, number) for number in range(4_000)),
    *((ms + 500_000, 0) for ms, _ in SPARSE),
]
FAR_APART = [*SPARSE, *((200_000, number * number) for number in range(2_000))]
LATE = [(1, 1)] + [(10**13 + number, 0) for number in range(3_999)]


@pytest.fixture
def client(server: redis.Redis, server_port: int) -> Client:
    return Client(Endpoint("main", LOCALHOST, server_port), Access())


@pytest.mark.parametrize(
    "places",
    [EVEN, BURSTS, ONE_MILLISECOND, PIPELINED, BURST_FIRST, BURST_LAST, BURST_AFTER_A_PAUSE, FAR_APART, LATE],
    ids=["even", "bursts", "one ms", "pipelined", "burst first", "burst last", "after a pause", "far apart", "late"],
)
def test_no_part_is_much_larger_than_the_mean(
    server: redis.Redis, client: Client, places: list[tuple[int, int]]
) -> None:
    with server.pipeline(transaction=False) as pipe:
        for ms, seq in sorted(set(places)):
            pipe.xadd("s", {"n": 1}, id=f"{ms}-{seq}")
        pipe.execute()
    total = server.xlen("s")
    cuts = find_cuts(client, b"s", ids.ZERO, ids.MAX, total, PARTS)
    sizes = [
        len(server.xrange("s", f"({ids.text(after).decode()}", ids.text(upto).decode()))
        for after, upto in cut(ids.ZERO, ids.MAX, cuts)
    ]

    assert sum(sizes) == total
    assert max(sizes) <= 2 * total / PARTS
    assert find_cuts(client, b"s", ids.ZERO, ids.MAX, total, PARTS) == cuts
    client.close()


@pytest.mark.parametrize(
    ("places", "most"),
    [(EVEN, 20), (PIPELINED, 100), (BURST_FIRST, 30), (BURST_LAST, 30), (BURST_AFTER_A_PAUSE, 150)],
    ids=["even", "pipelined", "burst first", "burst last", "after a pause"],
)
def test_few_requests_are_enough(
    places: list[tuple[int, int]], most: int, server: redis.Redis, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the entries in one millisecond are split by their sequence numbers, however many parts there are."""
    with server.pipeline(transaction=False) as pipe:
        for ms, seq in places:
            pipe.xadd("s", {"n": 1}, id=f"{ms}-{seq}")
        pipe.execute()
    asked: list[int] = []
    pipeline = client.pipeline

    def counting(requests: Sequence[Request]) -> list[Reply]:
        asked.append(len(requests))
        return pipeline(requests)

    monkeypatch.setattr(client, "pipeline", counting)
    cuts = find_cuts(client, b"s", ids.ZERO, ids.MAX, len(places), 64)

    assert len(cuts) == 63
    assert sum(asked) <= most
    client.close()


def test_an_empty_range_has_no_cuts(server: redis.Redis, client: Client) -> None:
    assert find_cuts(client, b"nothing", ids.ZERO, ids.MAX, 1_000, PARTS) == []
    client.close()
