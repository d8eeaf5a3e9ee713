"""A replica made by hand: it says what a test tells it to, and reads the snapshot and the stream."""

import socket
from types import TracebackType

from penstock.protocol.log_reader import Unfinished, next_request

PATIENCE_S = 60.0
MARK_BYTES = 40


class FakeReplica:
    """One link to a master. `offset`: bytes of the stream read so far, by the master's count."""

    def __init__(self, port: int, *capabilities: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self._came = b""
        self.id = ""
        self.offset = 0
        for name in capabilities:
            assert self.ask("REPLCONF", "capa", name) == b"+OK"

    def __enter__(self) -> "FakeReplica":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()

    def say(self, *words: str) -> None:
        self._socket.sendall(b"*%d\r\n" % len(words))
        for word in words:
            self._socket.sendall(b"$%d\r\n%b\r\n" % (len(word), word.encode()))

    def ask(self, *words: str) -> bytes:
        self.say(*words)
        return self.line()

    def _more(self) -> bool:
        """Whether something came before the master closed the link."""
        piece = self._socket.recv(65536)
        self._came += piece
        return piece != b""

    def take(self, count: int) -> bytes:
        while len(self._came) < count:
            assert self._more(), "the master closed the link"
        taken, self._came = self._came[:count], self._came[count:]
        return taken

    def line(self) -> bytes:
        """The next line that is not empty, without its end."""
        while True:
            while b"\n" not in self._came:
                assert self._more(), "the master closed the link"
            line, _, self._came = self._came.partition(b"\n")
            if line.strip():
                return line.rstrip(b"\r")

    def psync(self, replication_id: str = "?", offset: int = -1) -> str:
        """FULLRESYNC or CONTINUE; id and offset are noted."""
        words = self.ask("PSYNC", replication_id, str(offset)).decode().split()
        if words[0] == "+FULLRESYNC":
            self.id, self.offset = words[1], int(words[2])
        else:
            self.id, self.offset = [*words, self.id][1], offset - 1
        return words[0][1:]

    def snapshot(self) -> bytes:
        """The RDB file, in whichever frame it comes."""
        head = self.line()
        if not head.startswith(b"$EOF:"):
            return self.take(int(head[1:]))
        mark = head[5:]
        while not self._came.endswith(mark):
            assert self._more(), "the master closed the link"
        found, self._came = self._came[:-MARK_BYTES], b""
        return found

    def request(self) -> list[str]:
        """The next request of the stream that is no PING."""
        while True:
            try:
                words, end = next_request(self._came, 0)
            except Unfinished:
                assert self._more(), "the master closed the link"
                continue
            self._came = self._came[end:]
            self.offset += end
            if words != [b"PING"]:
                return [word.decode() for word in words]

    def requests_until(self, *last: str) -> list[list[str]]:
        """The stream up to a request; without GETACK and SELECT."""
        found = []
        while True:
            words = self.request()
            if words[0] == "REPLCONF":
                self.say("REPLCONF", "ACK", str(self.offset))
            elif words[0] != "SELECT":
                found.append(words)
            if words == list(last):
                return found

    def acknowledge(self) -> None:
        self.say("REPLCONF", "ACK", str(self.offset))

    def is_closed(self) -> bool:
        """Whether the master closes the link; waits for it."""
        while self._more():
            self._came = b""
        return True
