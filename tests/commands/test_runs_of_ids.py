"""Requests that name many ids do what as many requests with one id do, with entries of any owner."""

import random
from array import array

import pytest

from penstock.clock import ManualClock
from penstock.native.columns import WIDE, common_length
from penstock.storage.streams.pending.delivery_walk import in_time_order
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue, decoded
from tests.support.engines import make_engine, value_of
from tests.support.log import UnitLog

CALLS = (
    ((b"XNACK", b"s", b"g", b"SILENT", b"IDS"), ()),
    ((b"XNACK", b"s", b"g", b"FAIL", b"IDS"), (b"FORCE",)),
    ((b"XNACK", b"s", b"g", b"FATAL", b"IDS"), ()),
    ((b"XNACK", b"s", b"g", b"FAIL", b"IDS"), (b"RETRYCOUNT", b"7", b"FORCE")),
    ((b"XACK", b"s", b"g"), ()),
    ((b"XCLAIM", b"s", b"g", b"cy", b"2"), (b"JUSTID",)),
    ((b"XCLAIM", b"s", b"g", b"ann", b"0"), (b"FORCE", b"JUSTID", b"IDLE", b"3")),
    ((b"XDEL", b"s"), ()),
    ((b"XACKDEL", b"s", b"g", b"KEEPREF", b"IDS"), ()),
    ((b"XACKDEL", b"s", b"g", b"DELREF", b"IDS"), ()),
    ((b"XACKDEL", b"s", b"g", b"ACKED", b"IDS"), ()),
)


def side(log: UnitLog | None = None) -> Dialogue:
    """Two hundred entries, most of them read by three consumers in random portions, some twice."""
    chance = random.Random(4)
    clock = ManualClock(NOW_MS)
    client = Dialogue(make_engine(clock, log or UnitLog()))
    client("XGROUP CREATE s g 0 MKSTREAM", *[f"XADD s {number}-0 f v" for number in range(1, 201)])
    for _ in range(30):
        count, who = chance.choice((1, 1, 2, 9)), chance.choice(("ann", "bob", "cy"))
        client(f"XREADGROUP GROUP g {who} COUNT {count} STREAMS s >")
        client(f"XREADGROUP GROUP g {who} COUNT {count} STREAMS s {chance.randrange(100)}")
        clock.advance(chance.choice((0, 0, 1, 1, 5, -2)))
    client("XDEL s 5-0 6-0 7-0 40-0")
    return client


def named(chance: random.Random) -> list[bytes]:
    """Neighbours, now and then with a leap, a step back or one that is there twice."""
    found, at = [], chance.randrange(1, 180)
    for _ in range(chance.choice((1, 2, 12, 90))):
        found.append(b"%d-%d" % (at, chance.random() < 0.02))
        at = max(1, at + chance.choice((1,) * 30 + (0, -1, 2, 9, -20)))
    return found


def picture(client: Dialogue) -> list[object]:
    group = value_of(client.engine, b"s").groups[b"g"]
    order = [block.id_at(slot) for block, slot in [*group.pel.order.in_nack_zone(), *in_time_order(group.pel.order)]]
    return [client(line) for line in ("XINFO STREAM s FULL COUNT 0", "XPENDING s g", "XINFO CONSUMERS s g")] + [order]


def request(call: tuple[tuple[bytes, ...], tuple[bytes, ...]], texts: list[bytes]) -> list[bytes]:
    head, tail = call
    return [*head, *([b"%d" % len(texts)] if head[-1] == b"IDS" else []), *texts, *tail]


@pytest.mark.parametrize("seed", range(12))
def test_many_ids_in_one_request_are_as_many_requests(seed: int) -> None:
    chance = random.Random(seed)
    together, apart = side(), side()
    for _ in range(12):
        call, texts = chance.choice(CALLS), named(chance)
        answer = decoded(together.words(*request(call, texts)))
        answers = [decoded(apart.words(*request(call, [text]))) for text in texts]
        if isinstance(answer, int):
            assert answer == sum(answers)
        else:
            assert answer == [text for one in answers for text in one]
        value_of(together.engine, b"s").check()
        assert picture(together) == picture(apart)
        for client in (together, apart):
            client.engine.clock.sleep(0.001)


def test_the_released_are_logged_in_runs_of_equal_counts() -> None:
    log = UnitLog()
    client = side(log)
    client(
        "XGROUP CREATE s h 0", "XREADGROUP GROUP h ann COUNT 5 STREAMS s >", "XCLAIM s h ann 0 3-0 JUSTID RETRYCOUNT 4"
    )
    log.clear()
    assert client("XNACK s h FAIL IDS 6 1-0 2-0 3-0 4-0 8-0 1-0") == 6
    lines = log.text.split(b"XNACK")[1:]
    assert [line[: line.index(b"FORCE") + 5].split()[9::2] for line in lines] == [
        [b"2", b"1-0", b"2-0", b"RETRYCOUNT", b"1", b"FORCE"],
        [b"1", b"3-0", b"RETRYCOUNT", b"4", b"FORCE"],
        [b"3", b"4-0", b"8-0", b"1-0", b"RETRYCOUNT", b"1", b"FORCE"],
    ]


@pytest.mark.parametrize("same", range(1, 40))
def test_columns_go_alike_until_an_id_differs(same: int) -> None:
    ms, seq = array(WIDE, range(100, 140)), array(WIDE, [7] * 40)
    for column in (0, 1):
        others = [ms[3:], seq[3:]]
        if same < len(others[0]):
            others[column][same] += 1
        for most in range(1, 38):
            assert common_length(ms, seq, 3, others[0], others[1], 0, most) == min(same, most)
