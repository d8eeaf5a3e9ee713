"""A node of `penstock cluster` as its launcher sees it: its process, the link to it, and what is known of it."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import hiredis

from penstock.engine.cluster.cluster_map import ClusterMap, Member
from penstock.protocol import reply
from penstock.server.launcher_link import Messages

PIECE: Final = 64 * 1024
ANSWER_S: Final = 5.0  # how long a change of the map waits for a node that does not answer
END_S: Final = 60.0  # how long a node may take to end
LOG_NAME: Final = "server.log"
LINES_SHOWN: Final = 5


class NodeProcess:
    """One node. Its process may be a new one now and then; `member` is its line in the map.

    number: from 1 on. words: its command line behind `serve`. copied: the ID of the master whose data it has had as a
    whole since it follows it. was_ready: whether it ever was; failures: ends before it was ready, in a row. ends: all
    ends that the map shows. is_kept_down: it is not started again; is_stale: it gets no map (faults, for tests).
    """

    def __init__(self, number: int, member: Member, folder: Path, words: list[str], say: Callable[[str], None]) -> None:
        self.number = number
        self.member = member
        self.folder = folder
        self.is_ready = False
        self.was_ready = False
        self.is_kept_down = False
        self.is_stale = False
        self.ends = 0
        self.failures = 0
        self.copied = ""
        self._words = words
        self._messages = Messages(f"node {number}", say)
        self._process: asyncio.subprocess.Process | None = None
        self._link: asyncio.StreamWriter | None = None
        self._serial = 0
        self._applied = 0
        self._news = asyncio.Condition()
        self._is_over = False
        self._log_start = 0  # where the last process began in the log, which has those of former runs, too

    @property
    def place(self) -> str:
        return f"{self.member.ip}:{self.member.port}"

    @property
    def is_linked(self) -> bool:
        return self._link is not None

    @property
    def takes_maps(self) -> bool:
        return self.is_linked and not self.is_stale

    async def start(self, view: ClusterMap, take: Callable[["NodeProcess", list[bytes]], None]) -> None:
        """Start the process, with the map in its link, and take what it sends until it ends; not after `finish`."""
        own, its = socket.socketpair()
        own.setblocking(False)
        self.is_ready, self.copied, self._serial, self._applied = False, "", 0, 0
        reader, self._link = await asyncio.open_unix_connection(sock=own)
        if self._is_over:
            self._link.close()
            its.close()
            return
        self.send_map(view)
        try:
            with its:
                await self._run(its.fileno())
        except OSError:
            self._link.close()
            self._link = None
            raise
        await self._listen(reader, take)

    async def _run(self, link: int) -> None:
        """Start the process. OSError if that fails."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / LOG_NAME).open("ab") as said:
            self._log_start = os.fstat(said.fileno()).st_size
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "penstock", "serve", *self._words, "--cluster-launcher", str(link)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                pass_fds=[link],
                start_new_session=True,  # Ctrl-C is the launcher's: it ends the nodes
            )

    async def _listen(self, reader: asyncio.StreamReader, take: Callable[["NodeProcess", list[bytes]], None]) -> None:
        messages = hiredis.Reader(notEnoughData=None)
        try:
            while piece := await reader.read(PIECE):
                messages.feed(piece)
                while (message := messages.gets()) is not None:
                    if message[0] == b"APPLIED":
                        self._applied = int(message[1])
                        await self._notify()
                    else:
                        take(self, message)
        except OSError:
            pass  # the process has died with something of ours unread
        if self._link is not None:
            self._link.close()
            self._link = None
        self.is_ready = False
        await self._notify()
        await self.wait()

    async def _notify(self) -> None:
        async with self._news:
            self._news.notify_all()

    # -- messages -----------------------------------------------------------------------------------------------------

    def send(self, words: list[bytes]) -> None:
        if self._link is not None:
            self._link.write(reply.bulks(words))

    def publish(self, words: list[bytes]) -> None:
        """Send a message for subscribers."""
        if self._link is not None:
            self._messages.send(self._link.transport, words)

    def send_map(self, view: ClusterMap) -> None:
        self._serial += 1
        text = view.written(self.member.id).encode(errors="surrogateescape")
        self.send([b"MAP", b"%d" % self._serial, text])

    async def wait_until_applied(self) -> bool:
        """Wait until the node has the map that was sent last, or has ended; False if it does not answer."""
        serial = self._serial
        try:
            async with asyncio.timeout(ANSWER_S), self._news:
                await self._news.wait_for(lambda: not self.is_linked or self._applied >= serial)
        except TimeoutError:
            return False
        return True

    # -- the process --------------------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """0 before the first start."""
        return 0 if self._process is None else self._process.pid

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process if it runs."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    def finish(self) -> None:
        """End the process, as SIGTERM does. One that is only starting finds the link's end, or is not started."""
        self._is_over = True
        self.signal(signal.SIGTERM)
        if self._link is not None:
            self._link.close()

    async def wait(self) -> int:
        """The exit code, once the process has ended; one that does not end in time is killed."""
        process = self._process
        if process is None:
            return 0
        try:
            async with asyncio.timeout(END_S):
                return await process.wait()
        except TimeoutError:
            process.kill()
            return await process.wait()

    @property
    def end(self) -> str:
        """How the last process ended."""
        code = None if self._process is None else self._process.returncode
        if code is None:
            return "it runs"
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def last_lines(self) -> str:
        """The end of what its last process wrote."""
        path = self.folder / LOG_NAME
        written = path.read_bytes()[self._log_start :] if path.exists() else b""
        return "\n".join(written.decode(errors="replace").splitlines()[-LINES_SHOWN:])
