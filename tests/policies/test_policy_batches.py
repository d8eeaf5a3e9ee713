"""Batches of requests for a stream with policies come to the same as the requests one by one."""

import random

import pytest

from penstock.commands.streams.changing.xadd_batch import add_batch
from penstock.commands.streams.groups.xack_batch import acknowledge_batch
from penstock.commands.streams.reading.xreadgroup_batch import read_batch
from tests.support.batch_sides import Side, assert_batches_agree, passing
from tests.support.seeds import seeds
from tests.support.word_batches import batches_of

POLICIES = (
    "MAXLEN 40", "MAXLEN 25 DELREF", "MAXAGE 2000", "MAXLEN 0 ACKED", "MAXLEN 20 ACKED", "FORWARD t AFTER 1500",
    "GROUP g ACKWAIT 1000", "GROUP g ACKWAIT 500 BACKOFF 100 900", "GROUP g ACKWAIT 700 MAXDELIVER 2 DEADLETTER dead",
    "GROUP g ACKWAIT 1000 KEY k", "GROUP g DEADLETTER dead", "MAXLEN 20 MAXAGE 1500 ACKED",
    "MAXBYTES 60", "MAXBYTES 25 DELREF", "MAXBYTES 50 ACKED", "MAXLEN 9 MAXBYTES 30 ACKED IDLEGROUP 1500",
)  # fmt: skip


def history(seed: int, policy: str) -> list[list[bytes]]:
    """Random pipelines of equal requests; the entries that are acknowledged or released are those that are pending."""
    chance, side = random.Random(seed), Side()
    side.client(*setup(policy))
    made: list[list[bytes]] = []
    for _ in range(30):
        requests = pipeline(chance, side)
        step_ms = chance.choice((0, 0, 1, 300, 1000))
        made += [*requests, passing(step_ms)]
        side.each(requests)
        side.clock.advance(step_ms)
        side.engine.tick()
    return made


def setup(policy: str) -> tuple[str, str]:
    return "XGROUP CREATECONSUMER s g c", f"PENSTOCK.POLICY s {policy}"


def pipeline(chance: random.Random, side: Side) -> list[list[bytes]]:
    count, kind = chance.choice((1, 2, 5, 40)), chance.randrange(5)
    if kind == 4:
        ms, first = side.clock.now_us() // 1000 + chance.choice((-900, 0, 1)), chance.randrange(3)
        return [(b"XADD s %d-%d k v" % (ms, first + at)).split() for at in range(count)]
    if kind == 0:
        return [(b"XADD s * k %d" % chance.randrange(5)).split() for _ in range(count)]
    if kind == 1:
        return [b"XREADGROUP GROUP g c COUNT 2 STREAMS s >".split()] * count
    if kind == 2:
        pending = pending_ids(side, count)
        if chance.random() < 0.5:
            chance.shuffle(pending)
        return [[b"XACK", b"s", b"g", entry_id] for entry_id in [*pending, *pending[:1]]]
    return [[b"XNACK", b"s", b"g", b"FAIL", b"IDS", b"1", entry_id] for entry_id in pending_ids(side, 1)]


def pending_ids(side: Side, count: int) -> list[bytes]:
    return [row[0] for row in side.client(f"XPENDING s g - + {count}")]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", seeds(1, 6))
def test_answers_and_state_are_those_of_one_by_one(seed: int, policy: str) -> None:
    assert Side().client(*setup(policy)) == b"OK"
    assert_batches_agree(history(seed, policy), Side.together, *setup(policy), shorter_log=True)


@pytest.mark.parametrize("policy", ["MAXLEN 40", "MAXLEN 0 ACKED", "GROUP g ACKWAIT 1000"])
def test_they_go_together(policy: str) -> None:
    side = Side()
    engine, ctx = side.engine, side.engine.server.context
    side.client("XGROUP CREATECONSUMER s g c", f"PENSTOCK.POLICY s {policy}")
    adds = [b"XADD s * k v".split()] * 20
    reads = [b"XREADGROUP GROUP g c COUNT 2 STREAMS s >".split()] * 10
    run = []
    for requests, handler in ((adds, add_batch), (reads, read_batch)):
        (batch,) = batches_of(requests, engine.batch_shapes)
        run.append(handler(ctx, batch, []))
    acks = [[b"XACK", b"s", b"g", row[0]] for row in side.client("XPENDING s g - + 20")]
    (batch,) = batches_of(acks, engine.batch_shapes)
    run.append(acknowledge_batch(ctx, batch, []))

    assert run == [20, 10, 20]
    assert side.client("XPENDING s g")[0] == 0


def together(side: Side, requests: list[list[bytes]]) -> int:
    """How many of a batch its handler ran."""
    (batch,) = batches_of(requests, side.engine.batch_shapes)
    row = side.engine.commands.named(requests[0])
    assert row.batch_handler is not None
    side.engine.server.context.begin(side.client.session, side.clock.now_us())
    return row.batch_handler(side.engine.server.context, batch, [])


def test_entries_with_ids_are_added_one_by_one() -> None:
    side = Side()
    side.client("PENSTOCK.POLICY s MAXAGE 2000")

    assert together(side, [b"XADD s 5-1 k v".split(), b"XADD s 5-2 k v".split()]) == 0


def test_reads_go_together_while_something_is_delivered_again() -> None:
    side = Side()
    side.client("XGROUP CREATECONSUMER s g c", "PENSTOCK.POLICY s GROUP g ACKWAIT 1000", *["XADD s * k v"] * 25)
    side.client("XREADGROUP GROUP g c STREAMS s >")
    side.clock.advance(1000)
    reads = [b"XREADGROUP GROUP g c COUNT 2 STREAMS s >".split()] * 20

    assert together(side, reads) == 12
    assert {row[3] for row in side.client("XPENDING s g - + 24")} == {2}


def test_reads_and_acknowledgements_go_together_with_keys() -> None:
    side = Side()
    side.client("XGROUP CREATECONSUMER s g c", "PENSTOCK.POLICY s GROUP g ACKWAIT 1000 KEY k")
    side.client(*[f"XADD s * k {number % 9}" for number in range(20)])
    reads = [b"XREADGROUP GROUP g c COUNT 2 STREAMS s >".split()] * 10

    assert together(side, reads) == 5  # nine values, one entry of each
    acks = [[b"XACK", b"s", b"g", row[0]] for row in side.client("XPENDING s g - + 9 c")]
    assert together(side, acks) == 9
    assert side.client("XPENDING s g")[0] == 11


@pytest.mark.parametrize(("order", "count"), [(1, 20), (-1, 0)], ids=["ascending", "descending"])
def test_acknowledgements_under_a_limit_go_together_if_their_ids_ascend(order: int, count: int) -> None:
    side = Side()
    side.client("PENSTOCK.POLICY s MAXLEN 5 ACKED", *["XADD s * k v"] * 20, "XREADGROUP GROUP g c STREAMS s >")
    acks = [[b"XACK", b"s", b"g", row[0]] for row in side.client("XPENDING s g - + 20")][::order]

    assert together(side, acks) == count
    assert side.client("XLEN s") == (5 if count else 20)
