"""The launcher of `penstock cluster`: it starts the nodes, owns their map, and starts those again that die.

Nodes do not vote. The map is a file that this process alone writes. Changes happen one after the other, in one task:
the file is written, then the nodes that gain slots are told, then the others, and only then is the next change made.
So no request ever finds two nodes that take themselves for the owner of a slot, nor, but for a moment in which it is
sent on, none.
"""

import asyncio
import contextlib
import fcntl
import os
import random
import signal
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TextIO

from penstock.config import whole_file
from penstock.config.settings import Settings
from penstock.engine.cluster import cluster_map
from penstock.engine.cluster.cluster_map import OWNED, ClusterMap, Member
from penstock.engine.cluster.hash_slots import SLOTS, slot_of
from penstock.engine.cluster.node import BUS_PORT_OFFSET, TO_ALL, TO_SHARD
from penstock.engine.telemetry.identity import new_id
from penstock.errors import UsageError
from penstock.launching.node_process import NodeProcess
from penstock.protocol import reply

MAP_NAME: Final = "cluster.map"
LOCK_NAME: Final = "cluster.lock"
LOCALHOST: Final = "127.0.0.1"
HIGHEST_PORT: Final = 65535 - BUS_PORT_OFFSET  # as Redis: the bus port must be one
LONGEST_DELAY_S: Final = 5.0  # before a node that ends at once is started again
FIRST_DELAY_S: Final = 0.1
DEFAULTS: Final = ("--repl-diskless-sync-delay", "0")  # no other replica comes for the same copy
NOT_WRITTEN: Final = b"ERR The map of the cluster cannot be written: "
CLEAN: Final = 0
FAILED: Final = 1


class Plan:
    """The nodes to start. ports: of the masters, then of their replicas, in turn. words: each node's directives."""

    def __init__(self, masters: int, replicas: int, ports: Sequence[int], folder: Path, words: list[str]) -> None:
        self.masters = masters
        self.replicas = replicas
        self.ports = ports
        self.folder = folder
        self.words = words


class Launcher:
    """One cluster. say: takes the lines for the terminal. stopping: set to end all."""

    def __init__(self, plan: Plan, settings: Settings, say: Callable[[str], None]) -> None:
        """settings: what the plan's words say; UsageError where the folder has another cluster, or is in use."""
        self._plan = plan
        self._say = say
        plan.folder.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(plan.folder)
        try:
            self.map = _map_of(plan, settings)
        except UsageError:
            self._lock.close()
            raise
        words = [*DEFAULTS, *plan.words, "--cluster-enabled", "yes"]
        self.nodes = [
            NodeProcess(number, member, folder := plan.folder / f"node-{number}", [
                *words, "--port", str(member.port), "--dir", str(folder),
            ], say)
            for number, member in enumerate(self.map.members, 1)
        ]  # fmt: skip
        self._changed = asyncio.Condition()
        self.stopping = asyncio.Event()
        self._lives: set[asyncio.Task[None]] = set()
        self._changes: asyncio.Queue[Callable[[], Awaitable[None]]] = asyncio.Queue()
        self._is_written = True  # the map, as it is
        self._code = CLEAN

    async def run(self) -> int:
        """Start the nodes, and serve until `stopping` is set; the exit code."""
        self._write()
        for node in self.nodes:
            self._describe(node)
            self._begin(node)
        work = asyncio.create_task(self._work())
        await self.stopping.wait()
        work.cancel()
        for node in self.nodes:
            node.finish()
        await asyncio.gather(*self._lives, return_exceptions=True)
        if any([await node.wait() != CLEAN for node in self.nodes if not node.is_kept_down]):
            self._code = FAILED
        self._lock.close()
        return self._code

    def stop(self) -> None:
        """The first call ends the nodes as SIGTERM does, the second kills them."""
        if self.stopping.is_set():
            for node in self.nodes:
                node.signal(signal.SIGKILL)
        self.stopping.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return when something holds, which is looked at after each change."""
        async with self._changed:
            await self._changed.wait_for(holds)

    def is_ready(self) -> bool:
        """Whether every node is, and every replica has the data of its master."""
        return all(node.is_ready and (node.member.is_master or _has_copy(node)) for node in self.nodes)

    def _describe(self, node: NodeProcess) -> None:
        member = node.member
        does = f"replica of node {self._number(member.master_id)}"
        if member.is_master:
            does = " ".join(["slots", *(member.slot_words() or ["none"])])
        self._say(f"node {node.number}  {node.place}  {does}  {node.folder}")

    def _number(self, id: str) -> int:
        return next((node.number for node in self.nodes if node.member.id == id), 0)

    # -- the life of a node -------------------------------------------------------------------------------------------

    def _begin(self, node: NodeProcess) -> None:
        life = asyncio.create_task(self._live(node))
        self._lives.add(life)
        life.add_done_callback(self._lives.discard)

    async def _live(self, node: NodeProcess) -> None:
        """From the start of one process to the next."""
        end = ""
        try:
            await node.start(self.map, self._take)
        except OSError as problem:
            end = f"cannot be started: {problem.strerror}"
        if self.stopping.is_set():
            return
        end = end or node.end
        if not node.was_ready:
            self._fail(f"node {node.number} ({node.place}) does not start, {end}:\n{node.last_lines()}")
            return
        node.failures = node.failures + 1 if node.failures else 1
        self._later(partial(self._note_end, node))
        if node.is_kept_down:
            self._say(f"node {node.number} ({node.place}) has ended ({end})")
            return
        self._say(f"node {node.number} ({node.place}) has ended ({end}) and is started again")
        with contextlib.suppress(TimeoutError):
            delay_s = min(FIRST_DELAY_S * 2 ** (node.failures - 1), LONGEST_DELAY_S)
            await asyncio.wait_for(self.stopping.wait(), delay_s)
        if not self.stopping.is_set():
            self._begin(node)

    def _fail(self, sentence: str) -> None:
        self._say(sentence)
        self._code = FAILED
        self.stopping.set()

    # -- faults, for tests --------------------------------------------------------------------------------------------

    async def kill(self, node: NodeProcess, restarts: bool) -> None:
        """SIGKILL; return when the others know of it, and the node's replica has its place."""
        node.is_kept_down = not restarts
        ends = node.ends
        node.signal(signal.SIGKILL)
        await self.until(lambda: node.ends > ends)

    async def start_again(self, node: NodeProcess) -> None:
        """Start a node that was kept down; return when it is ready."""
        node.is_kept_down = False
        self._begin(node)
        await self.until(lambda: node.is_ready)

    async def hold_map(self, node: NodeProcess, is_held: bool) -> None:
        """Leave a node with the map that it has, or give it the present one again."""
        node.is_stale = is_held
        if not is_held:
            node.send_map(self.map)
            await node.wait_until_applied()

    # -- messages -----------------------------------------------------------------------------------------------------

    def _take(self, node: NodeProcess, words: list[bytes]) -> None:
        """A node's messages: those for subscribers go on at once, all others when their turn comes."""
        kind = words[0]
        if kind == TO_ALL:
            for other in self.nodes:
                if other is not node:
                    other.publish(words)
        elif kind == TO_SHARD:
            owner = self.map.owners[slot_of(words[1])]
            for other in self.nodes:
                if other is not node and owner is not None and self.map.master_of(other.member) is owner:
                    other.publish(words)
        elif kind == b"READY":
            self._later(partial(self._note_ready, node))
        elif kind == b"COPIED":
            self._later(partial(self._note_copy, node, words[1].decode()))
        else:
            self._later(partial(self._answer, node, words))

    def _later(self, change: Callable[[], Awaitable[None]]) -> None:
        self._changes.put_nowait(change)

    async def _work(self) -> None:
        """Make one change after the other."""
        while True:
            change = await self._changes.get()
            async with self._changed:  # amid a change, `until` looks at nothing
                await change()
                self._changed.notify_all()

    # -- changes ------------------------------------------------------------------------------------------------------

    def _write(self) -> None:
        whole_file.replace(self._plan.folder / MAP_NAME, self.map.written().encode(errors="surrogateescape"), 0o644)

    def _keep(self) -> None:
        """Write the map, and say once if that fails, and once when it works again. OSError if it fails."""
        try:
            self._write()
        except OSError as problem:
            if self._is_written:
                self._say(
                    f"the map cannot be written: {problem.strerror}. Until it can, no slot is moved, and no replica"
                    " takes the place of its master"
                )
            self._is_written = False
            raise
        if not self._is_written:
            self._say("the map can be written again")
        self._is_written = True

    def _take_back(self, before: str) -> None:
        """The map that was not written is what it was before."""
        self.map = cluster_map.read(before)
        for node, member in zip(self.nodes, self.map.members, strict=True):
            node.member = member

    async def _note_lives(self, first: Sequence[Member]) -> None:
        """Have nodes know which live. The next start does not ask for that, so the file may lack it."""
        with contextlib.suppress(OSError):
            self._keep()
        await self._spread(first, self.map.members)

    async def _change(self, first: Sequence[Member], others: Sequence[Member]) -> None:
        """Write a change of slots or places, and have nodes know it. OSError if it is not written: no node knows it."""
        self._keep()
        await self._spread(first, others)

    async def _spread(self, first: Sequence[Member], others: Sequence[Member]) -> None:
        """Have nodes know the map: some, and then others."""
        for members in (first, [one for one in others if one not in first]):
            nodes = [node for node in self.nodes if node.member in members and node.takes_maps]
            for node in nodes:
                node.send_map(self.map)
            for node in nodes:
                if not await node.wait_until_applied():
                    self._say(f"node {node.number} ({node.place}) does not answer")

    async def _note_ready(self, node: NodeProcess) -> None:
        if not node.is_linked:
            return
        node.is_ready = True
        node.member.is_failed = False
        await self._note_lives([node.member])
        if node.was_ready:
            self._say(f"node {node.number} ({node.place}) is ready again")
        node.was_ready, node.failures = True, 0

    async def _note_copy(self, node: NodeProcess, master_id: str) -> None:
        node.copied = master_id if node.is_linked else ""

    async def _note_end(self, node: NodeProcess) -> None:
        """Its slots are not served, or its replica takes them over."""
        node.member.is_failed = True
        heirs = [one for one in self.nodes if one.is_ready and one.copied == node.member.id and _has_copy(one)]
        before = self.map.written()
        try:
            if heirs:
                await self._promote(heirs[0])
        except OSError:  # a next start would begin with the old master, and its data
            self._take_back(before)
            heirs = []
        if not heirs:
            await self._note_lives([])
        node.ends += 1

    async def _promote(self, heir: NodeProcess) -> None:
        """Have a replica take its master's place. OSError if the map cannot be written: no node knows of it."""
        old = self.map.master_of(heir.member)
        self.map.promote(heir.member)
        self._keep()
        for node in self.nodes:
            if self.map.master_of(node.member) is heir.member:
                node.copied = ""  # what they had is another master's
        await self._spread([heir.member], self.map.members)
        self._say(f"node {heir.number} ({heir.place}) takes the place of node {self._number(old.id)}")

    async def _answer(self, node: NodeProcess, words: list[bytes]) -> None:
        """Make a change that a node was asked for."""
        before = self.map.written()
        try:
            answer = await self._made(node, words[2].decode(), words[3:])
        except OSError as problem:
            self._take_back(before)
            answer = reply.error(NOT_WRITTEN + (problem.strerror or "").encode())
        node.send([b"DONE", words[1], answer])

    async def _made(self, node: NodeProcess, kind: str, words: list[bytes]) -> bytes:
        """Change the map; the reply. OSError if it cannot be written."""
        by = node.member
        if kind == "SETSLOT":
            slot, action, id = int(words[0]), words[1].decode(), words[2].decode()
            owner = self.map.member(id)
            if self.map.set_slot(by, slot, action, id):
                moves = action == "NODE" and owner is not None
                await self._change([owner] if moves and owner else [by], self.map.members if moves else [])
        elif kind == "BUMPEPOCH":
            is_new = self.map.bump(by)
            if is_new:
                await self._change([], self.map.members)
            return reply.simple(b"%b %d" % (b"BUMPED" if is_new else b"STILL", by.epoch))
        elif kind == "FAILOVER":
            if by.is_master or not _has_copy(node):
                return reply.error(b"ERR This replica has not the whole data of its master")
            await self._promote(node)
        else:
            change = self.map.add_slots if kind == "ADDSLOTS" else self.map.delete_slots
            if change(by, [int(word) for word in words]):
                await self._change([by], self.map.members)
        return reply.OK


def _has_copy(replica: NodeProcess) -> bool:
    """Whether a replica has had all the data of its master: it may take that one's place."""
    return replica.copied == replica.member.master_id


def _locked(folder: Path) -> TextIO:
    """A file that is locked while this launcher runs."""
    lock = (folder / LOCK_NAME).open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise UsageError(f"another `penstock cluster` uses {folder}") from None
    return lock


def _map_of(plan: Plan, settings: Settings) -> ClusterMap:
    """The map in the folder, or a new one; at the ports and addresses of this start. No node is up yet."""
    path = plan.folder / MAP_NAME
    try:
        found = cluster_map.read(path.read_text(errors="surrogateescape"))
    except FileNotFoundError:
        found = new_map(plan.masters, plan.replicas)
    except (ValueError, IndexError) as problem:
        raise UsageError(f"cannot use {path}: {problem}") from None
    masters = len([one for one in found.members if one.is_master])
    if (len(found.members), masters) != (len(plan.ports), plan.masters):
        raise UsageError(
            f"{path} has {masters} masters and {len(found.members) - masters} replicas: start as many, or choose"
            " another folder (--dir)"
        )
    for member, port in zip(found.members, plan.ports, strict=True):
        member.ip = settings.text("cluster-announce-ip") or LOCALHOST
        member.hostname = settings.text("cluster-announce-hostname")
        member.port, member.bus_port = port, port + BUS_PORT_OFFSET
        member.is_failed = True
    return found


def new_map(masters: int, replicas: int) -> ClusterMap:
    """Slots divided as redis-cli divides them; each master has so many replicas. Addresses are still missing."""
    chance = random.Random(os.urandom(32))
    members: list[Member] = []
    first = 0
    for at in range(masters):
        member = Member(new_id(chance), "", 0, 0, bytearray(SLOTS))
        member.shard_id, member.epoch = new_id(chance), at + 1
        end = SLOTS if at == masters - 1 else round(SLOTS / masters * (at + 1))
        member.slots[first:end] = bytes([OWNED]) * (end - first)
        first = end
        members.append(member)
    for at in range(masters * replicas):
        master = members[at % masters]
        replica = Member(new_id(chance), "", 0, 0, bytearray(SLOTS))
        replica.shard_id, replica.epoch, replica.master_id = master.shard_id, master.epoch, master.id
        members.append(replica)
    return ClusterMap(members, masters)
