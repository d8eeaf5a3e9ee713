"""The link of a node to the launcher of `penstock cluster`, which owns the map.

It is one end of a pair of sockets that the launcher makes before it starts the node's process, and whose number it
gives it (cluster-launcher). That is the plainest channel without a race: there is no address to find and no client to
let in, the first map is in the socket before the process runs, messages come in the order in which they were sent, and
the end of one process is the end of the link for the other. A node ends with its launcher.

Both ends send arrays of bulk strings (RESP):

    MAP serial text             to the node; it answers APPLIED serial
    ASK number change ...       to the launcher; it answers DONE number reply, once every node that lives knows
    MESSAGE channel text        both ways, and SHARD-MESSAGE: for subscribers at other nodes
    READY                       to the launcher: the log is loaded
    COPIED master-id            to the launcher: this replica has had all that its master had since it follows it;
                                empty: it has not, or a part of it only, because it follows another one, or a copy
                                begins anew
"""

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, cast

import hiredis

from penstock.engine.cluster import cluster_map, following_map
from penstock.engine.cluster.node import TO_ALL
from penstock.engine.cluster.slot_rules import SlotRules
from penstock.engine.engine import Engine
from penstock.engine.replication import master as links
from penstock.engine.replication.master import Master
from penstock.errors import UsageError
from penstock.protocol import reply

if TYPE_CHECKING:
    from penstock.server.turns.turn import Turn

PIECE: Final = 64 * 1024
LOOKS_EVERY_S: Final = 0.1  # whether the master's data have come
BUSY_S: Final = 0.01  # between looks whether a script that takes long is over
MAP: Final = b"MAP"
MOST_UNSENT: Final = 32 << 20  # bytes of an end that does not read, as the usual limit of a client that subscribes


class Messages:
    """Messages of PUBLISH to one end. An end that does not read, because it is stopped, say, does not get all of them.

    report: takes a line where the first is left out, and one with their number where the end reads again.
    """

    __slots__ = ("_left_out", "_report", "_to")

    def __init__(self, to: str, report: Callable[[str], None]) -> None:
        self._to = to
        self._report = report
        self._left_out = 0

    def send(self, transport: asyncio.WriteTransport, words: list[bytes]) -> None:
        if transport.get_write_buffer_size() > MOST_UNSENT:
            if not self._left_out:
                self._report(f"{self._to} does not read: messages of PUBLISH for its subscribers are lost.")
            self._left_out += 1
            return
        if self._left_out:
            self._report(f"{self._to} reads again: {self._left_out} messages of PUBLISH for its subscribers were lost.")
            self._left_out = 0
        transport.write(reply.bulks(words))


class LauncherLink(asyncio.Protocol):
    """The node's end. It is the engine's `MapOwner`."""

    __slots__ = (
        "_copied", "_engine", "_followed", "_is_paused", "_loop", "_messages", "_number", "_reader", "_rules",
        "_socket", "_stop", "_transport", "_turn",
    )  # fmt: skip

    _transport: asyncio.Transport
    _turn: "Turn"

    def __init__(
        self, engine: Engine, rules: SlotRules, stop: Callable[[], None], report: Callable[[str], None]
    ) -> None:
        """stop: ends the server. UsageError where the number is of no socket."""
        self._engine = engine
        self._rules = rules
        self._stop = stop
        self._messages = Messages("The launcher", report)
        self._number = 0
        self._copied = ""
        self._is_paused = False  # nothing is read while a script takes long
        self._followed: Master | None = None  # when it was looked at last
        self._reader = hiredis.Reader(notEnoughData=None)
        number = engine.settings.number("cluster-launcher")
        try:
            self._socket = socket.socket(fileno=number)
        except OSError as problem:
            raise UsageError(f"cluster-launcher is {number}, which is no socket: {problem.strerror}") from None
        rules.node.map_owner = self

    def read_first_map(self) -> None:
        """The launcher has sent it before it started this process."""
        while (message := self._reader.gets()) is None:
            piece = self._socket.recv(PIECE)
            if not piece:
                raise UsageError("the launcher of this node has ended")
            self._reader.feed(piece)
        assert message[0] == MAP, "the map comes first"
        self._rules.node.adopt(cluster_map.read(message[2].decode(errors="surrogateescape")))

    async def open(self, turn: "Turn") -> None:
        """Go on in the loop, with what came behind the first map."""
        self._turn = turn
        self._loop = turn.loop
        await self._loop.create_unix_connection(lambda: self, sock=self._socket)
        self._take_all()

    def say_ready(self) -> None:
        """The log is loaded: the node takes its role, and the launcher learns of it."""
        self._turn.outside(partial(following_map.take_role, self._engine.server))
        self._send([b"READY"])
        self._look_at_copy()

    def _send(self, words: list[bytes]) -> None:
        self._transport.write(reply.bulks(words))

    # -- what the engine asks for -------------------------------------------------------------------------------------

    def ask(self, words: list[bytes]) -> int:
        self._number += 1
        self._send([b"ASK", b"%d" % self._number, *words])
        return self._number

    def publish(self, kind: bytes, channel: bytes, message: bytes) -> None:
        self._messages.send(self._transport, [kind, channel, message])

    # -- what comes ---------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        self._take_all()

    def _take_all(self) -> None:
        """While a script takes long, what has come waits, and no more is read."""
        while not self._engine.conditions.busy:
            message = self._reader.gets()
            if message is None:
                return
            self._turn.outside(partial(self._take, message))
        if not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
            self._loop.call_later(BUSY_S, self._go_on)

    def _go_on(self) -> None:
        self._is_paused = False
        if not self._transport.is_closing():
            self._transport.resume_reading()
            self._take_all()

    def _take(self, words: list[bytes]) -> None:
        server = self._engine.server
        if words[0] == MAP:
            following_map.follow(server, cluster_map.read(words[2].decode(errors="surrogateescape")))
            self._send([b"APPLIED", words[1]])
        elif words[0] == b"DONE":
            node = self._rules.node
            node.unanswered -= 1
            blocked = node.waiting.pop(int(words[1]), None)
            if blocked is not None and blocked.session.blocked is blocked:
                server.waiting.note_waited(blocked)
                server.waiting.release(blocked, words[2])
        elif words[0] == TO_ALL:
            server.subscriptions.publish(words[1], words[2], server.clients.outgoing)
        else:
            server.subscriptions.publish_to_shard(words[1], words[2], server.clients.outgoing)

    def connection_lost(self, problem: Exception | None) -> None:
        self._stop()

    # -- replicas -----------------------------------------------------------------------------------------------------

    def _look_at_copy(self) -> None:
        """Tell the launcher when this replica has what its master has, so that it may take its place, and when not."""
        server = self._engine.server
        is_loading = server.conditions.loading
        master, copied = server.replication.master, self._copied
        if is_loading or master is None or master is not self._followed or master.link == links.SYNCING:
            copied = ""
        elif master.is_up:
            copied = self._rules.node.member().master_id
        self._followed = master
        if copied != self._copied:
            self._copied = copied
            self._send([b"COPIED", copied.encode()])
        self._loop.call_later(LOOKS_EVERY_S, self._look_at_copy)
