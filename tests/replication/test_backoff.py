"""How long a replica waits before another link, and that it does: with a loop and its turned time."""

import asyncio
import selectors
from typing import Final

import pytest

from penstock.engine.replication.backoff import LONGEST_S, Backoff
from penstock.engine.replication.master import Master
from penstock.server.replication.master_link import LinkLost, MasterLink
from penstock.testing.faults.no_disk import NoDisk
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine

REFUSED: Final = (False, True, 0.0)  # no data came
USELESS: Final = (True, True, 0.5)  # data came, and could not be used
CUT_AT_ONCE: Final = (True, False, 0.1)
CUT: Final = (True, False, 30.0)
LONG_USELESS: Final = (True, True, 3600.0)


@pytest.mark.parametrize(
    ("lost", "waits"),
    [
        ([REFUSED] * 4, [1, 1, 1, 1]),
        ([USELESS] * 8, [1, 2, 4, 8, 16, 32, LONGEST_S, LONGEST_S]),
        ([CUT_AT_ONCE] * 3, [1, 2, 4]),
        ([CUT] * 3, [0, 0, 0]),
        ([USELESS, USELESS, CUT, USELESS], [1, 2, 0, 1]),
        ([USELESS, USELESS, REFUSED, USELESS], [1, 2, 1, 4]),
        ([USELESS, USELESS, LONG_USELESS, USELESS], [1, 2, 1, 2]),
    ],
)
def test_waits_grow_while_links_come_to_nothing(lost: list[tuple[bool, bool, float]], waits: list[float]) -> None:
    backoff = Backoff()

    assert [backoff.wait_s(*link) for link in lost] == waits


class TurnedLoop(asyncio.SelectorEventLoop):
    """Its time passes only where it would wait, and then at once."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        super().__init__(TurningSelector(self))

    def time(self) -> float:
        return self.now_s


class TurningSelector(selectors.SelectSelector):
    def __init__(self, loop: TurnedLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._loop.now_s += timeout or 0.0
        return super().select(0)


class Damaging(MasterLink):
    """Each link is accepted, comes up, and brings a damaged stream."""

    made_s: list[float]

    async def _link(self, master: Master) -> None:
        self.made_s.append(asyncio.get_running_loop().time() - 1000)
        self._was_accepted, self._up_s = True, asyncio.get_running_loop().time()
        raise LinkLost("the stream is damaged")


def test_a_damaged_stream_is_asked_for_less_and_less_often() -> None:
    engine, told = make_engine(), list[str]()
    link = Damaging(engine, NoDisk(), told.append, lambda: None)
    link.made_s = []

    async def follow() -> None:
        Dialogue(engine)("REPLICAOF 127.0.0.1 1")
        link.cron()
        await asyncio.sleep(200)

    with asyncio.Runner(loop_factory=TurnedLoop) as runner:
        runner.run(follow())

    assert [round(made_s) for made_s in link.made_s] == [0, 1, 3, 7, 15, 31, 63, 123, 183]
    assert told[1] == "The link to master 127.0.0.1:1 is down: the stream is damaged; another one is made in 2 seconds."
    assert "penstock_master_link_problem:the stream is damaged\r\n" in Dialogue(engine)("INFO replication").decode()
