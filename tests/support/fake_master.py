"""A master made by hand, for one replica: what it is asked is kept, what a test wants is sent."""

import socket
import threading
from collections.abc import Callable
from types import TracebackType

from penstock.engine.rdb import rdb_saving
from penstock.protocol.log_reader import Unfinished, next_request
from penstock.protocol.reply import bulks
from tests.support.clock import NOW_MS
from tests.support.engines import make_engine

PATIENCE_S = 60.0
ID = "f" * 40


def snapshot(*lines: str, aux: list[tuple[bytes, bytes]] | None = None) -> bytes:
    """An RDB file of what some requests make. aux: names and values that its head has besides the usual ones."""
    engine = make_engine()
    session = engine.server.connect()
    for line in lines:
        engine.handle(session, [word.encode() for word in line.split()])
    return b"".join(rdb_saving.snapshot_of(engine.keyspace, engine.settings, NOW_MS, aux).chunks())


def packed(*lines: str) -> bytes:
    return b"".join(bulks([word.encode() for word in line.split()]) for line in lines)


class Link:
    """One link of the replica. Handshakes are answered with +OK."""

    def __init__(self, own: socket.socket) -> None:
        self._own = own
        own.settimeout(PATIENCE_S)
        self._came = b""

    def request(self) -> list[str]:
        """The next request; a line end alone is passed over."""
        while True:
            self._came = self._came.lstrip(b"\n")
            try:
                words, end = next_request(self._came, 0) if self._came else ([], 0)
            except Unfinished:
                words, end = [], 0
            if words:
                self._came = self._came[end:]
                return [word.decode() for word in words]
            piece = self._own.recv(65536)
            assert piece, "the replica closed the link"
            self._came += piece

    def until_psync(self, asked: list[list[str]]) -> None:
        while not asked or asked[-1][0] != "PSYNC":
            asked.append(self.request())
            if asked[-1][0] != "PSYNC":
                self.send(b"+PONG\r\n" if asked[-1][0] == "PING" else b"+OK\r\n")

    def until_ack(self, offset: int) -> None:
        while (words := self.request()) != ["REPLCONF", "ACK", str(offset), *words[3:]]:
            pass

    def send(self, text: bytes) -> None:
        self._own.sendall(text)

    def until_closed(self) -> None:
        """By the replica."""
        while self._own.recv(65536):
            pass

    def close(self) -> None:
        self._own.close()


class FakeMaster:
    """Listens on `port`; each link is given to the next of the functions, in a thread."""

    def __init__(self, *links: Callable[[Link], None]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE_S)
        self.port: int = self._listener.getsockname()[1]
        self.failures: list[BaseException] = []
        self._thread = threading.Thread(target=self._serve, args=links, daemon=True)
        self._thread.start()

    def _serve(self, *links: Callable[[Link], None]) -> None:
        try:
            for serve in links:
                own, _ = self._listener.accept()
                serve(Link(own))
        except BaseException as failure:
            self.failures.append(failure)
        finally:
            self._listener.close()

    def __enter__(self) -> "FakeMaster":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._thread.join(PATIENCE_S)
        assert not self.failures, self.failures
        assert not self._thread.is_alive(), "the replica did not do its part"
