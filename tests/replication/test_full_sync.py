"""A snapshot on its way to several replicas, of which one does not take it."""

import asyncio
from typing import Any

from penstock.clock import ManualClock
from penstock.engine.replication.replica import Replica
from penstock.server.replication.full_sync import LOOK_EVERY_S, MOST_UNSENT, FullSync
from penstock.server.replication.snapshot_child import SnapshotChild
from penstock.storage.aof.log_directory import write_all
from tests.support.clock import NOW_MS
from tests.support.engines import make_engine
from tests.support.memory_disk import MemoryDisk

FILE_BYTES = 2 * MOST_UNSENT
PID = 4711


class Written(SnapshotChild):
    """A child that has written its file."""

    def start(self, directory: str, now_ms: int) -> None:
        self.pid = PID
        file = self.disk.create(self.path_of(directory, PID))
        write_all(file, bytes(FILE_BYTES))
        file.close()

    def poll(self) -> str | None:
        self.pid = 0
        return ""

    def kill(self) -> None:
        self.pid = 0


class Peer:
    """A replica's connection. A stuck one takes nothing."""

    def __init__(self, is_stuck: bool = False) -> None:
        self.closed = False
        self.sent = 0
        self._is_stuck = is_stuck

    def send_now(self, sent: bytes) -> None:
        self.sent += len(sent)

    def unsent(self) -> int:
        return self.sent if self._is_stuck else 0

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True


def test_a_replica_that_takes_nothing_of_its_snapshot_does_not_keep_the_others_waiting() -> None:
    clock, said = ManualClock(NOW_MS), list[str]()
    stuck, quick = Peer(is_stuck=True), Peer()

    async def transfer() -> bool:
        engine = make_engine(clock)
        transfers = FullSync(engine, MemoryDisk(), said.append, lambda: None, lambda _, *rest: Written(*rest))
        transfers.begin([(stuck, Replica(0)), (quick, Replica(0))], without_file=False, field_times=True)
        for _ in range(20):
            clock.advance(10_000)
            await asyncio.sleep(LOOK_EVERY_S)
        runs = transfers.runs
        transfers.stop()
        return runs

    assert not asyncio.run(transfer())
    assert (stuck.closed, quick.closed) == (True, False)
    assert quick.sent > FILE_BYTES
    assert said == [
        "A replica takes nothing of its snapshot: its link is closed.",
        "A snapshot was sent to 1 replicas.",
    ]


class Hung(Written):
    """A child that does not get on: it is stopped, or its disk does not answer."""

    def poll(self) -> str | None:
        return None


def test_a_snapshot_whose_replica_leaves_at_once_does_not_keep_later_ones_from_theirs() -> None:
    ended, link = list[None](), Peer()

    async def transfer() -> bool:
        transfers = FullSync(
            make_engine(), MemoryDisk(), lambda _: None, lambda: ended.append(None), lambda _, *rest: Hung(*rest)
        )
        transfers.begin([(link, Replica(0))], without_file=False, field_times=True)
        link.abort()
        for _ in range(3):
            transfers.cron()
            await asyncio.sleep(0)
        return transfers.runs

    assert not asyncio.run(transfer())
    assert ended == [None]


def test_a_child_that_hangs_is_ended_when_no_replica_waits_for_it_any_more() -> None:
    said = list[str]()
    child, first, second = list[Hung](), Peer(), Peer()

    def new_child(_: bool, *rest: Any) -> Hung:
        child.append(Hung(*rest))
        return child[-1]

    async def transfer() -> list[bool]:
        transfers = FullSync(make_engine(), MemoryDisk(), said.append, lambda: None, new_child)
        transfers.begin([(first, Replica(0)), (second, Replica(0))], without_file=False, field_times=True)
        runs = []
        for link in (None, first, second):
            if link is not None:
                link.abort()
            await asyncio.sleep(0)
            transfers.cron()
            await asyncio.sleep(0)
            runs.append(transfers.runs)
        transfers.stop()
        return runs

    assert asyncio.run(transfer()) == [True, True, False]
    assert child[0].pid == 0
    assert said == ["The snapshot for replicas failed: no replica is left."]
