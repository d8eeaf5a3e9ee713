"""XPENDING and XINFO STREAM FULL list the entries that a walk over the group finds, whoever owns them."""

import random
from typing import Any, NamedTuple

import pytest

from penstock.clock import ManualClock
from penstock.storage.streams import ids
from penstock.storage.streams.group import Group
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, value_of
from tests.support.log import UnitLog

WORKERS = ("ann", "bob", "cy", "dee")
ENTRIES = 400


def name_of(number: int) -> str:
    return f"{number // 7 + 1}-{number % 7}"


def busy(seed: int) -> Dialogue:
    """A group of which some entries are acknowledged, released, claimed or deleted, or ids were taken back."""
    chance = random.Random(seed)
    client = Dialogue(make_engine(ManualClock(NOW_MS), UnitLog()))
    client("XGROUP CREATE s g 0 MKSTREAM", "XGROUP CREATECONSUMER s g idle")
    client(*[f"XADD s {name_of(number)} f v" for number in range(ENTRIES)])
    for _ in range(60):
        worker, entry = chance.choice(WORKERS), name_of(chance.randrange(ENTRIES))
        client(
            chance.choice(
                (
                    f"XREADGROUP GROUP g {worker} COUNT {chance.choice((1, 1, 4, 30))} STREAMS s >",
                    f"XREADGROUP GROUP g {worker} COUNT 5 STREAMS s 0",
                    f"XACK s g {entry}",
                    f"XNACK s g FAIL IDS 1 {entry}",
                    f"XCLAIM s g {worker} 0 {entry} JUSTID",
                    f"XDEL s {entry if seed % 2 == 0 else '0-1'}",
                )
            )
        )
        client.engine.clock.sleep(chance.choice((0, 0.001, 0.007)))
    if seed % 2:
        client("XREADGROUP GROUP g ann COUNT 300 STREAMS s >", "XTRIM s MAXLEN 0", "XSETID s 30-0")
        assert value_of(client.engine, b"s").groups[b"g"].rewound
        client(*[f"XADD s 30-{number} f v" for number in range(1, 20, 3)], "XGROUP SETID s g 30-0")
        client("XREADGROUP GROUP g bob COUNT 5 STREAMS s >")
    return client


class Row(NamedTuple):
    text: bytes
    owner: bytes
    time_ms: int
    deliveries: int


def listed(group: Group) -> list[Row]:
    """A row for every pending entry."""
    return [
        Row(ids.text(block.id_at(slot)), group.owner_name((block, slot)), block.times[slot], block.counts[slot])
        for block, slot in group.walk(0)
    ]


@pytest.mark.parametrize("seed", range(12))
def test_rows_are_those_of_a_walk(seed: int) -> None:
    client, chance = busy(seed), random.Random(seed)
    rows = listed(value_of(client.engine, b"s").groups[b"g"])
    now_ms = client.engine.clock.now_us() // 1000
    for _ in range(60):
        idle_ms, count = chance.choice((0, 0, 1, 12, 10**13)), chance.choice((0, 1, 10, 1000))
        first, last = f"{chance.randrange(60)}-3", f"{chance.randrange(70)}-2"
        worker = chance.choice(("", "", *WORKERS, "idle", "nobody"))
        wanted = [
            [row.text, row.owner, now_ms - row.time_ms if row.owner else -1, row.deliveries]
            for row in rows
            if ids.parse(first.encode()) <= ids.parse(row.text) <= ids.parse(last.encode())
            and worker in ("", row.owner.decode())
            and (not row.owner or now_ms - row.time_ms >= idle_ms)
        ]
        idle = f"IDLE {idle_ms} " if idle_ms else ""
        assert client(f"XPENDING s g {idle}{first} {last} {count} {worker}") == wanted[:count]


@pytest.mark.parametrize("seed", range(4))
def test_the_full_description_lists_the_same(seed: int) -> None:
    client = busy(seed)
    rows = listed(value_of(client.engine, b"s").groups[b"g"])
    for count in (3, 1000):
        group = mapped(mapped(client(f"XINFO STREAM s FULL COUNT {count}"))[b"groups"][0])
        assert group[b"pending"] == [list(row) for row in rows[:count]]
        for consumer in map(mapped, group[b"consumers"]):
            own = [[row.text, row.time_ms, row.deliveries] for row in rows if row.owner == consumer[b"name"]]
            assert consumer[b"pending"] == own[:count]
            assert consumer[b"pel-count"] == len(own)


def mapped(reply: Any) -> dict[bytes, Any]:
    return dict(zip(reply[::2], reply[1::2], strict=True))


def test_rows_name_ids_of_every_length() -> None:
    texts = [b"9-9", b"9-10", b"9-999", b"9-1000", b"10-0", b"10-1", b"99-0", b"100-0", b"18446744073709551615-5"]
    client = Dialogue(make_engine(ManualClock(NOW_MS)))
    client("XGROUP CREATE s g 0 MKSTREAM", *[f"XADD s {text.decode()} f v" for text in texts])
    client("XREADGROUP GROUP g ann STREAMS s >")

    assert [row[0] for row in client("XPENDING s g - + 20")] == texts
    assert [row[0] for row in client("XPENDING s g 9-10 + 3 ann")] == texts[1:4]
    assert client("XPENDING s g")[1:3] == [texts[0], texts[-1]]
