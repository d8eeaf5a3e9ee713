"""TlsTransport between a plain transport and a protocol, in memory: what a peer sends, takes, and ends."""

import asyncio
import ssl
from pathlib import Path
from typing import cast

import pytest

from penstock.server.tls.tls_transport import TlsTransport
from tests.support.certificates import Authority


class Plain:
    """A plain transport. is_full: nothing more is taken of it. sent: what the peer has not looked at."""

    def __init__(self) -> None:
        self.sent = b""
        self.unsent = 0
        self.is_full = False
        self.ends: list[str] = []

    def write(self, data: bytes) -> None:
        self.sent += data
        self.unsent += len(data) if self.is_full else 0

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return bool(self.ends)

    def close(self) -> None:
        self.ends.append("closed")

    def abort(self) -> None:
        self.ends.append("aborted")


class Heard(asyncio.Protocol):
    """What a connection is told."""

    def __init__(self) -> None:
        self.data = b""
        self.told: list[str] = []

    def data_received(self, data: bytes) -> None:
        self.data += data

    def eof_received(self) -> bool:
        self.told.append("end")
        return True

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.told.append("lost")


class Peer:
    """A client, the transport that it speaks with, and what the protocol behind that hears."""

    def __init__(self, folder: Path) -> None:
        authority = Authority(folder)
        pair = authority.sign("server")
        theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        theirs.load_cert_chain(pair.certificate, pair.key)
        ours = ssl.create_default_context(cafile=str(authority.file))
        self.plain, self.heard = Plain(), Heard()
        self.shaken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.transport = TlsTransport(theirs, self.heard, self.shaken)
        self.transport.connection_made(cast(asyncio.Transport, self.plain))
        self._arriving, self._leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = ours.wrap_bio(self._arriving, self._leaving, server_hostname="localhost")
        for _ in range(3):
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                self.transport.data_received(self._leaving.read())
                self.take()
        self.transport.data_received(self._leaving.read())

    def take(self) -> None:
        sent, self.plain.sent = self.plain.sent, b""
        self._arriving.write(sent)

    def encrypted(self, data: bytes) -> bytes:
        self.tls.write(data)
        return self._leaving.read()

    def end(self) -> bytes:
        """The close_notify."""
        with pytest.raises(ssl.SSLWantReadError):
            self.tls.unwrap()
        return self._leaving.read()

    def read(self, size: int) -> bytes:
        self.take()
        read = b""
        while len(read) < size:
            read += self.tls.read(size)
        return read


@pytest.fixture
async def peer(tmp_path: Path) -> Peer:
    return Peer(tmp_path)


async def test_what_comes_in_pieces_of_any_size_is_heard_once(peer: Peer) -> None:
    for byte in peer.encrypted(b"x" * 20_000 + b"end"):
        peer.transport.data_received(bytes([byte]))

    assert peer.heard.data == b"x" * 20_000 + b"end"
    assert peer.shaken.done()


async def test_what_is_not_sent_is_what_the_plain_transport_has_not_sent(peer: Peer) -> None:
    peer.plain.is_full = True
    peer.transport.write(b"x" * 3_000_000)
    peer.transport.pause_writing()

    assert 3_000_000 < peer.transport.get_write_buffer_size() < 3_100_000
    assert peer.heard.told == ["pause"]
    assert peer.read(3_000_000) == b"x" * 3_000_000


async def test_a_peer_that_has_ended_its_side_still_gets_what_is_written(peer: Peer) -> None:
    peer.transport.data_received(peer.encrypted(b"last") + peer.end())
    peer.transport.eof_received()
    peer.transport.write(b"reply")

    assert (peer.heard.data, peer.heard.told, peer.plain.ends) == (b"last", ["end"], [])
    assert peer.read(5) == b"reply"


async def test_a_close_says_goodbye_behind_all_that_was_written_and_waits_for_nothing(peer: Peer) -> None:
    peer.transport.write(b"reply")
    peer.transport.close()
    peer.transport.write(b"too late")
    peer.transport.data_received(peer.encrypted(b"too late"))

    assert (peer.plain.ends, peer.heard.data) == (["closed"], b"")
    assert peer.read(5) == b"reply"
    assert peer.tls.read(1) == b""


async def test_a_goodbye_that_the_peer_does_not_take_keeps_no_connection_open(peer: Peer) -> None:
    peer.plain.is_full = True
    peer.transport.close()

    assert peer.plain.ends == ["aborted"]


async def test_bytes_that_are_no_tls_any_more_end_the_connection(peer: Peer) -> None:
    damaged = bytearray(peer.encrypted(b"PING\r\n"))
    damaged[-1] ^= 1
    peer.transport.data_received(bytes(damaged))

    assert (peer.plain.ends, peer.heard.data) == (["aborted"], b"")
