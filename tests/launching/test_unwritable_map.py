"""A map that cannot be written, on a full disk: the cluster goes on, and what is confirmed is in the file."""

import asyncio
import errno
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from penstock.config.settings import Settings
from penstock.engine.cluster import cluster_map
from penstock.engine.cluster.cluster_map import ClusterMap, Member
from penstock.launching.launcher import MAP_NAME, Launcher, Plan
from penstock.launching.node_process import NodeProcess

PORTS = [7000, 7001, 7002, 7003]
REFUSED = b"-ERR The map of the cluster cannot be written: No space left on device\r\n"


class FullDisk(Launcher):
    """Two masters and a replica of each, without processes. is_full: of the disk. sent: the maps that nodes get."""

    def __init__(self, folder: Path) -> None:
        self.lines: list[str] = []
        self.is_full = False
        self.sent: list[str] = []
        super().__init__(Plan(2, 1, PORTS, folder, []), Settings(), self.lines.append)
        self.lines.clear()
        for node in self.nodes:
            node.is_ready, node.copied, node.member.is_failed = True, node.member.master_id, False
        self._write()

    def _write(self) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super()._write()

    async def _spread(self, first: Sequence[Member], others: Sequence[Member]) -> None:
        self.sent.append(self.map.written())

    def file(self) -> ClusterMap:
        return cluster_map.read((self._plan.folder / MAP_NAME).read_text())

    def asks(self, node: NodeProcess, *words: bytes) -> bytes:
        """The reply to a request that a node passes on."""
        answers: list[list[bytes]] = []
        node.send = answers.append  # type: ignore[method-assign,assignment]  # what its process would get
        asyncio.run(self._answer(node, [b"ASK", b"1", *words]))
        return answers[0][2]


@pytest.fixture
def launcher(tmp_path: Path) -> FullDisk:
    return FullDisk(tmp_path)


CHANGES = {
    "a slot is given away": (0, [b"SETSLOT", b"7", b"NODE", b"{other}"]),
    "a slot begins to move": (0, [b"SETSLOT", b"7", b"MIGRATING", b"{other}"]),
    "a slot has no owner": (0, [b"DELSLOTS", b"7", b"8"]),
    "a slot gets an owner": (1, [b"ADDSLOTS", b"5"]),
    "an epoch": (0, [b"BUMPEPOCH"]),
    "a replica leads": (2, [b"FAILOVER"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_cannot_be_written_is_refused_and_no_node_gets_it(launcher: FullDisk, change: str) -> None:
    number, request = CHANGES[change]
    words = [word.replace(b"{other}", launcher.nodes[1].member.id.encode()) for word in request]
    launcher.asks(launcher.nodes[0], b"DELSLOTS", b"5")
    before = launcher.map.written()
    launcher.sent.clear()
    launcher.is_full = True

    assert launcher.asks(launcher.nodes[number], *words) == REFUSED
    assert launcher.asks(launcher.nodes[number], *words) == REFUSED
    assert launcher.map.written() == launcher.file().written() == before
    assert launcher.sent == []
    assert [line.partition(".")[0] for line in launcher.lines] == ["the map cannot be written: No space left on device"]

    launcher.is_full = False
    assert launcher.asks(launcher.nodes[number], *words)[:1] == b"+"
    assert launcher.sent == [launcher.file().written()] != [before]
    assert [node.member for node in launcher.nodes] == launcher.map.members
    assert "the map can be written again" in launcher.lines


def test_a_node_that_ends_meanwhile_is_known_to_have_failed_and_its_replica_does_not_lead(launcher: FullDisk) -> None:
    launcher.is_full = True
    asyncio.run(launcher._note_end(launcher.nodes[0]))

    master, replica = launcher.nodes[0].member, launcher.nodes[2].member
    assert (master.is_master, master.is_failed, replica.is_master) == (True, True, False)
    assert launcher.sent == [launcher.map.written()]

    launcher.is_full = False
    asyncio.run(launcher._note_end(launcher.nodes[0]))
    assert launcher.nodes[2].member.is_master
    assert launcher.file().written() == launcher.sent[-1]


def test_a_node_whose_process_cannot_be_started_again_is_tried_later(launcher: FullDisk, tmp_path: Path) -> None:
    node = launcher.nodes[0]
    node.folder.write_text("a file in the place of its folder")
    node.was_ready = True
    again: list[NodeProcess] = []
    launcher._begin = again.append  # type: ignore[method-assign,assignment]  # what is started again

    asyncio.run(launcher._live(node))

    assert again == [node]
    assert not node.is_linked
    assert launcher.lines[-1].endswith(" has ended (cannot be started: File exists) and is started again")
    assert not launcher.stopping.is_set()


def test_the_cluster_is_not_ready_amid_the_change_that_makes_it_so(launcher: FullDisk) -> None:
    ready_at: list[str] = []

    async def make_ready() -> None:
        work, waiting = asyncio.create_task(launcher._work()), asyncio.create_task(launcher.until(launcher.is_ready))
        waiting.add_done_callback(lambda done: ready_at.append("ready"))
        await asyncio.sleep(0)
        launcher._later(partial(asyncio.sleep, 0))  # another change, after which `until` looks
        launcher._later(change)
        await waiting
        work.cancel()

    async def change() -> None:
        launcher.nodes[0].is_ready = True
        for _ in range(10):
            await asyncio.sleep(0)
        ready_at.append("changed")

    launcher.nodes[0].is_ready = False
    asyncio.run(make_ready())
    assert ready_at == ["changed", "ready"]
