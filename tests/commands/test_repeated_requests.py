"""A producer or a worker that sends its request again and again is answered like clients that send it once each."""

import random

import pytest

from penstock.clock import ManualClock
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine
from tests.support.log import UnitLog

REPEATED = (
    "XADD s * f v",
    "XADD s * f v g w",
    "XADD s * f",
    "XADD s MAXLEN ~ 3 * f v",
    "XADD s MAXLEN ~ 3 * f v g w",
    "XADD s MAXLEN ~ 3 * f",
    "XADD s MAXLEN ~ 3 *",
    "XADD s MAXLEN ~ 4 * f v",
    "XADD s MAXLEN = 2 * f v",
    "XADD s maxlen 5 * f v",
    "XADD s MAXLEN ~ x * f v",
    "XADD s NOMKSTREAM MAXLEN ~ 3 LIMIT 10 * f v",
    "XADD s MINID ~ 5-0 * f v",
    "XADD s DELREF MAXLEN 2 * f v",
    "XADD s ACKED MAXLEN 2 * f v",
    "XADD s IDMP p i * f v",
    "XADD other MAXLEN ~ 3 * f v",
    "XREADGROUP GROUP g ann COUNT 2 STREAMS s >",
    "XREADGROUP GROUP g ann COUNT 2 NOACK STREAMS s >",
    "XREADGROUP GROUP g ben COUNT 2 STREAMS s >",
    "XREADGROUP GROUP g ann COUNT 2 STREAMS s 0",
    "XREADGROUP GROUP g ann COUNT 2 CLAIM 0 STREAMS s >",
)
BETWEEN = (
    "XGROUP CREATE s g 0 MKSTREAM",
    "XGROUP SETID s g 0",
    "XGROUP DELCONSUMER s g ann",
    "DEL s",
    "SET other text",
    "CONFIG SET compat-version 8.0",
    "CONFIG SET compat-version 8.10",
    "CONFIG SET stream-node-max-entries 2",
)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_known_of_a_repeated_request_changes_no_answer(seed: int) -> None:
    chance = random.Random(seed)
    clock = ManualClock(NOW_MS)
    logs = UnitLog(), UnitLog()
    constant, fresh = (Dialogue(make_engine(clock, log)) for log in logs)
    favourites = chance.sample(REPEATED, 4)
    both = ["XGROUP CREATE s g 0 MKSTREAM"]
    for _ in range(150):
        both.append(chance.choice(BETWEEN) if chance.random() < 0.1 else chance.choice(favourites))
    for line in both:
        clock.advance(chance.choice((0, 0, 1)))
        assert constant.raw(line) == fresh.another().raw(line), line

    assert logs[0].text == logs[1].text
