"""XPENDING and XINFO STREAM FULL list the entries that a walk over the group finds, of every owner."""

import random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.clock import ManualClock
from penstock.commands.streams.groups.pending_rows import ANY_TIME, ANYBODY, NO_NOW, PendingRows
from penstock.storage.streams import ids
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.pending.pending_block import NO_SLOT, NOT_PENDING, RELEASED, PendingBlock
from penstock.storage.streams.segment import Segment, deleted_entry
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
        assert value_of(client.engine, b"s").groups[b"g"].pel.by_id.rewound
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
        Row(ids.text(block.id_at(slot)), group.pel.owner_name((block, slot)), block.times[slot], block.counts[slot])
        for block, slot in group.pel.by_id.walk(0)
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
    for count in (3, 1000, 0):
        group = mapped(mapped(client(f"XINFO STREAM s FULL COUNT {count}"))[b"groups"][0])
        most = count or len(rows)  # 0: there is no limit
        assert group[b"pending"] == [list(row) for row in rows[:most]]
        for consumer in map(mapped, group[b"consumers"]):
            own = [[row.text, row.time_ms, row.deliveries] for row in rows if row.owner == consumer[b"name"]]
            assert consumer[b"pending"] == own[:most]
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


def test_a_consumer_with_one_entry_in_each_block_is_listed_from_any_id() -> None:
    client = Dialogue(make_engine(ManualClock(NOW_MS)))
    client("XGROUP CREATE s g 0 MKSTREAM", *[f"XADD s {number}-0 f v" for number in range(1, 401)])
    client("XREADGROUP GROUP g ann STREAMS s >")
    client("XCLAIM s g few 0 1-0", "XCLAIM s g few 0 256-0", "XCLAIM s g few 0 400-0")
    group = value_of(client.engine, b"s").groups[b"g"]
    assert group.consumers[b"few"].owns_one_each()

    assert [row[0] for row in client("XPENDING s g - + 10 few")] == [b"1-0", b"256-0", b"400-0"]
    assert [row[0] for row in client("XPENDING s g (1-0 256-0 10 few")] == [b"256-0"]
    assert client("XPENDING s g 2-0 (256-0 10 few") == client("XPENDING s g IDLE 5 - + 10 few") == []
    assert [row[0] for row in client("XPENDING s g - + 2 few")] == [b"1-0", b"256-0"]
    assert [row[0] for row in client("XREADGROUP GROUP g few COUNT 2 STREAMS s 1-0")[0][1]] == [b"256-0", b"400-0"]
    assert [row[3] for row in client("XPENDING s g - + 10 few")] == [2, 3, 3]
    group.check()


NAMES = {NOT_PENDING: b"", RELEASED: b"", 2: b"ann", 3: b"b" * 1025, 258: b"cy"}
NUMBERS = some.sampled_from([0, 1, 999, 1000, 10**6, 2**62, 2**63 - 1, 2**63, 2**64 - 1])
SLOTS = some.tuples(some.sampled_from(list(NAMES)), NUMBERS | some.just(5), NUMBERS | some.just(1), some.booleans())


def block_of(slots: list[tuple[int, int, int, bool]], ms: int, seq: int) -> PendingBlock:
    """A block with these owners, times and counts in its slots; a true value begins another millisecond."""
    segment = Segment()
    for _, _, _, is_next in slots:
        ms, seq = (ms + 1, 0) if is_next else (ms, seq + 1)
        segment.append(ms, seq, b"")
    block = PendingBlock(segment)
    for slot, (owner, time_ms, count, _) in enumerate(slots):
        if owner != NOT_PENDING:
            block.fill(slot, slot + 1, owner, time_ms, count)
    block.extend_to(len(slots))
    return block


@settings(deadline=None)
@given(
    some.lists(SLOTS, min_size=1, max_size=20),
    some.sampled_from([0, 10**12, 2**63 - 9, 2**63 + 5]),
    some.sampled_from([0, 997, 2**63 - 9, 2**64 - 40]),
    some.sampled_from([ANYBODY, 2, 3, 258]),
    some.tuples(some.integers(0, 20), some.integers(0, 20)),
    some.integers(0, 9),
    some.sampled_from([ANY_TIME, ANY_TIME, 5, 1000]),
    some.sampled_from([NO_NOW, 0, 10**6]),
    some.booleans(),
)
def test_rows_from_copied_columns_are_those_made_slot_by_slot(
    slots: list[tuple[int, int, int, bool]],
    ms: int,
    seq: int,
    owner: int,
    bounds: tuple[int, int],
    count: int,
    latest_ms: int,
    now_ms: int,
    shows_owners: bool,
) -> None:
    group = Group(b"g", 0, 0)
    group.pel.owners = [None] * 300
    for number, name in NAMES.items():
        if number > RELEASED:
            group.pel.owners[number] = group.add_consumer(name, 0)
    block = block_of(slots, ms, seq)
    start, stop = min(bounds), min(max(bounds), len(slots))
    copied = PendingRows(group, count, now_ms, shows_owners)
    single = PendingRows(group, count, now_ms, shows_owners)
    copied.latest_ms = single.latest_ms = latest_ms
    copied._add_columns(block, owner, start, stop)
    if owner == ANYBODY:
        single._add_pending(block, start, stop)
    else:
        single._add_owned(block, owner, start, stop)
    assert copied.as_array() == single.as_array()
    assert copied.left == single.left == count - copied.rows


@given(some.lists(some.sampled_from(list(NAMES)), max_size=20), some.sampled_from([2, 3, 258]), some.integers(0, 20))
def test_an_owners_first_slot_is_found(owners: list[int], owner: int, start: int) -> None:
    block = PendingBlock(deleted_entry(1))
    block.owners.extend(owners)
    slots = [slot for slot in range(start, len(owners)) if owners[slot] == owner]
    block.owner_counts[owner] = owners.count(owner)
    assert block.first_of(owner, start) == (slots[0] if slots else NO_SLOT)
    for most in (1, 3, 30):
        runs = block.runs_of(owner, start, most)
        assert [slot for begin, end in runs for slot in range(begin, end)] == slots[:most]
