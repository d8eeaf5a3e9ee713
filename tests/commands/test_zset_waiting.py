"""Requests that wait for a sorted set: which are served, in which order, with what."""

import pytest

from penstock.clock import ManualClock
from tests.support.clients_beside_redis import received
from tests.support.dialogue import NO_REPLY, Dialogue

SCRIPTS = {
    "the first that waits is served first": [
        "a2 BZPOPMIN z 0", "b3 BZPOPMAX z 0", "c2 BZPOPMIN z 0", "d2 ZADD z 1 a 2 b 3 c 4 d", "d2 ZRANGE z 0 -1",
    ],
    "several members at once": ["a3 BZMPOP 0 2 y z MAX COUNT 2", "b2 ZADD z 1 a 2 b 3 c", "b2 ZRANGE z 0 -1"],
    "a set made of others": [
        "d2 ZADD s 5 a 6 b", "a2 BZPOPMIN z 0", "d2 ZUNIONSTORE z 1 s", "b2 BZPOPMIN y 0", "d2 ZRANGESTORE y s 0 -1",
        "c2 BZPOPMAX x 0", "d2 COPY s x", "e2 BZPOPMAX w 0", "d2 RENAME s w", "f2 BZPOPMIN v 0", "d2 ZINCRBY v 3 m",
    ],
    "the key that was named first wins": [
        "a2 BZPOPMIN y z 0", "d2 MULTI", "d2 ZADD z 1 a", "d2 ZADD y 2 b", "d2 EXEC", "d2 ZCARD z",
    ],
    "a transaction that takes all away": ["a2 BZPOPMIN z 0", "d2 MULTI", "d2 ZADD z 1 a", "d2 ZREM z a", "d2 EXEC"],
    "another type wakes no client": ["a2 BZPOPMIN z 0", "d2 RPUSH z a", "d2 DEL z", "d2 ZADD z 1 a"],
    "another type at an earlier key": ["a2 BZPOPMIN y z 0", "d2 SET y x", "d2 ZADD z 1 a"],
    "events": [
        "d2 CONFIG SET notify-keyspace-events KEAn", "e3 PSUBSCRIBE __key*", "a2 BZPOPMIN z 0",
        "b2 BZMPOP 0 1 z MAX COUNT 3", "d2 ZADD z 1 a 2 b", "d2 CONFIG SET notify-keyspace-events ''",
    ],
}  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_a_client_that_waits_for_a_sorted_set_gets_what_redis_gives_it(reference_port: int, script: list[str]) -> None:
    theirs, here = received(reference_port, ["x2 FLUSHALL", *script])

    assert here == theirs


@pytest.mark.parametrize(
    ("line", "wait_ms"), [("BZPOPMIN z 1.5", 1500), ("BZPOPMAX z 0.0001", 1), ("BZMPOP 2 1 z MIN", 2000)]
)
def test_a_wait_ends_with_null_when_its_time_is_over(
    dialogue: Dialogue, clock: ManualClock, line: str, wait_ms: int
) -> None:
    assert dialogue(line) == NO_REPLY

    clock.advance(wait_ms - 1)
    dialogue.engine.tick()
    assert dialogue.arrived() == []

    clock.advance(1)
    dialogue.engine.tick()
    assert dialogue.arrived() == [None]
