"""One transfer of a snapshot to replicas that asked for it at about the same time.

With a file: `$<length>` and its bytes; the stream follows at once. Without (repl-diskless-sync): `$EOF:<mark>`, the
bytes as the child writes them, and the mark again; the stream follows once the replica has loaded them.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from penstock.engine.engine import Engine
from penstock.engine.replication import replica as states
from penstock.engine.replication.replica import Replica
from penstock.engine.telemetry.identity import new_id
from penstock.server.replication.snapshot_child import NewChild, PipeChild, SnapshotChild, new_child
from penstock.storage.aof.disk import Disk

PIECE_BYTES: Final = 64 * 1024
MOST_UNSENT: Final = 1024 * 1024  # bytes that a replica has not taken yet; above, it is waited for
STOPPED: Final = "it was stopped"
NONE_IS_LEFT: Final = "no replica is left"
LOOK_EVERY_S: Final = 0.02  # at a child, and at replicas that are waited for


class Link(Protocol):
    """A replica's connection (server/connections/connection.py)."""

    closed: bool

    def send_now(self, sent: bytes) -> None:
        """Write at once."""

    def unsent(self) -> int:
        """Bytes written that the peer has not taken."""

    def close(self) -> None:
        """Close as soon as everything that was written is sent."""

    def abort(self) -> None:
        """Close now."""


Receiver = tuple[Link, Replica]


class FullSync:
    """The transfers of one server, one at a time. `report` takes lines for a person; `ended` is called after each."""

    def __init__(
        self,
        engine: Engine,
        disk: Disk,
        report: Callable[[str], None],
        ended: Callable[[], None],
        new_child: NewChild = new_child,
    ) -> None:
        self._engine = engine
        self._disk = disk
        self._report = report
        self._ended = ended
        self._new_child = new_child
        self._child: SnapshotChild | None = None
        self._receivers: list[Receiver] = []
        self._task: asyncio.Task[None] | None = None
        self._is_amid = False  # the task has made its first step: cancelled before it, it would end nothing

    @property
    def runs(self) -> bool:
        return self._task is not None

    def begin(self, receivers: list[Receiver], without_file: bool, field_times: bool) -> None:
        """Fork the child: what it writes is the state of this moment. OSError if there can be none.

        field_times: hashes are written with the times of their fields.
        """
        engine = self._engine
        replication = engine.replication
        child = self._new_child(without_file, self._disk, engine.keyspace, engine.settings)
        child.only_functions = receivers[0][1].wants_only_functions
        child.field_times = field_times
        child.may_have_arrays = all(replication.reads_arrays(found) for _, found in receivers)
        child.aux = [
            (b"repl-stream-db", b"%d" % replication.stream_db),
            (b"repl-id", replication.id.encode()),
            (b"repl-offset", b"%d" % replication.offset),
        ]
        child.start(engine.settings.text("dir"), engine.clock.now_us() // 1000)
        self._child, self._receivers = child, receivers
        engine.persistence.forks += 1
        self._task = asyncio.get_running_loop().create_task(self._run(child, receivers))

    def cron(self) -> None:
        """Called ten times a second: a snapshot that no replica waits for is given up, or a slow child holds others."""
        if self._task is not None and self._is_amid and _none_is_left(self._receivers):
            self._task.cancel()

    def stop(self) -> None:
        """At the server's end: the child is killed, and its file removed."""
        if self._task is not None:
            self._task.cancel()
        self._put_away()

    def _put_away(self) -> None:
        child, self._child = self._child, None
        if child is not None and child.pid:
            pid = child.pid
            child.kill()
            if not isinstance(child, PipeChild):
                with suppress(OSError):
                    self._disk.remove(child.path_of(self._engine.settings.text("dir"), pid))

    async def _run(self, child: SnapshotChild, receivers: list[Receiver]) -> None:
        problem = STOPPED
        self._is_amid = True
        try:
            if isinstance(child, PipeChild):
                problem = await self._from_pipe(child, receivers)
            else:
                problem = await self._from_file(child, receivers)
        except OSError as failure:
            problem = str(failure)
        finally:
            self._put_away()
            self._task, self._is_amid = None, False
            if problem == STOPPED and _none_is_left(receivers):
                problem = NONE_IS_LEFT
            for link, found in receivers:
                if link.closed:
                    continue
                if problem:
                    link.abort()
                elif found.wants_only_snapshot:
                    link.close()
                else:
                    found.is_sent = True
                    found.ack_ms = self._engine.replication.now_ms()
                    found.state = states.RECEIVES if isinstance(child, PipeChild) else states.ONLINE
            if problem:
                self._report(f"The snapshot for replicas failed: {problem}.")
            else:
                self._report(f"A snapshot was sent to {sum(not link.closed for link, _ in receivers)} replicas.")
            self._ended()

    # -- from a file ------------------------------------------------------------------------------------------------

    async def _from_file(self, child: SnapshotChild, receivers: list[Receiver]) -> str:
        """Why it failed, or ""."""
        path = child.path_of(self._engine.settings.text("dir"), child.pid)
        try:
            problem = await _end_of(child)
            if problem:
                return problem
            size = self._disk.size(path)
            await self._send(receivers, b"$%d\r\n" % size)
            for at in range(0, size, PIECE_BYTES):
                await self._send(receivers, self._disk.read(path, at, PIECE_BYTES))
        finally:
            with suppress(OSError):
                self._disk.remove(path)
        return ""

    # -- from a pipe ------------------------------------------------------------------------------------------------

    async def _from_pipe(self, child: PipeChild, receivers: list[Receiver]) -> str:
        """Why it failed, or ""."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=PIECE_BYTES)
        pipe = os.fdopen(child.reading, "rb", buffering=0)
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        mark = new_id(self._engine.server.chance).encode()
        try:
            await self._send(receivers, b"$EOF:%b\r\n" % mark)
            while piece := await reader.read(PIECE_BYTES):
                await self._send(receivers, piece)
                if _none_is_left(receivers):
                    return NONE_IS_LEFT
        finally:
            transport.close()
        problem = await _end_of(child)
        if not problem:
            await self._send(receivers, mark)
        return problem

    # -- to replicas ------------------------------------------------------------------------------------------------

    async def _send(self, receivers: list[Receiver], piece: bytes) -> None:
        """Send a piece to the replicas that are still there, once they have taken most of what came before."""
        for link, found in receivers:
            await self._until_taken(link)
            if not link.closed:
                found.state = states.RECEIVES
                link.send_now(piece)

    async def _until_taken(self, link: Link) -> None:
        """Wait for a replica, which is closed where it takes nothing for repl-timeout: the others wait for it, too."""
        engine = self._engine
        unsent, since_ms = link.unsent(), engine.replication.now_ms()
        while not link.closed and link.unsent() > MOST_UNSENT:
            if link.unsent() < unsent:
                unsent, since_ms = link.unsent(), engine.replication.now_ms()
            elif engine.replication.now_ms() - since_ms > engine.replication.timeout_ms():
                self._report("A replica takes nothing of its snapshot: its link is closed.")
                link.abort()
            await asyncio.sleep(LOOK_EVERY_S)


def _none_is_left(receivers: list[Receiver]) -> bool:
    return all(link.closed for link, _ in receivers)


async def _end_of(child: SnapshotChild) -> str:
    """Wait for a child; what went wrong, or ""."""
    while (problem := child.poll()) is None:
        await asyncio.sleep(LOOK_EVERY_S)
    return problem
