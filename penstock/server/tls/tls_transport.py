"""TLS over a plain connection, with the same contract as a plain transport."""

import asyncio
import ssl
from contextlib import suppress
from typing import Final, cast

READ_AT_ONCE: Final = 2**18
WRITTEN_AT_ONCE: Final = 2**18  # bytes that are encrypted before they are passed on: no second copy of a large reply


class TlsTransport:
    """The protocol of a plain transport, and the transport of the protocol that it is made for.

    asyncio and uvloop have one each. Theirs keep replies in two buffers of which they count one, report that a buffer
    is empty when it is not, drop what is written after the peer has ended its side, and close a second after `close`,
    whether the peer has its replies or not. This one has no buffer. What is written is encrypted and passed on at once,
    so the plain transport's size, limits, pause_writing, resume_writing and close hold for it; and a peer that has
    ended its side, by TLS's close_notify or by TCP's FIN, still gets what is written. `close` sends a close_notify and
    does not wait for the peer's.

    shaken: done when the handshake is. Until then the protocol knows nothing of the connection.
    """

    __slots__ = (
        "_arriving", "_has_ended", "_is_closed", "_is_open", "_leaving", "_plain", "_protocol", "_tls", "shaken",
    )  # fmt: skip

    def __init__(self, context: ssl.SSLContext, protocol: asyncio.Protocol, shaken: "asyncio.Future[None]") -> None:
        self._protocol = protocol
        self._arriving = ssl.MemoryBIO()
        self._leaving = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._arriving, self._leaving, server_side=True)
        self._plain = cast(asyncio.Transport, None)  # there from connection_made on
        self._is_open = False  # the handshake is over
        self._has_ended = False  # the peer has ended its side
        self._is_closed = False
        self.shaken = shaken

    # -- the plain transport calls ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._plain = cast(asyncio.Transport, transport)  # uvloop's is no subclass

    def data_received(self, data: bytes) -> None:
        if not self._is_closed:
            self._arriving.write(data)
            if self._is_open or self._shake():
                self._read()

    def eof_received(self) -> bool:
        """The peer has ended its side. Whether the connection stays, which is for the protocol to say."""
        if not self._is_open:
            return False
        if not self._has_ended and not self._is_closed:
            self._has_ended = True
            if not self._protocol.eof_received():
                self.close()
        return True

    def connection_lost(self, problem: Exception | None) -> None:
        self._is_closed = True
        if self._is_open:
            self._protocol.connection_lost(problem)
        elif not self.shaken.done():
            self.shaken.set_exception(problem or ConnectionResetError("the client ended the connection"))

    def pause_writing(self) -> None:
        if self._is_open:
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        if self._is_open:
            self._protocol.resume_writing()

    # -- bytes ------------------------------------------------------------------------------------------------------

    def _shake(self) -> bool:
        """Go on with the handshake; whether it is over and succeeded."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._pass_on()
            return False
        except ssl.SSLError as problem:
            self._pass_on()  # the alert that tells the peer why
            if not self.shaken.done():
                self.shaken.set_exception(problem)
            self._is_closed = True
            self._plain.close()
            return False
        self._pass_on()
        self._is_open = True
        if not self.shaken.done():
            self.shaken.set_result(None)
        self._protocol.connection_made(cast(asyncio.Transport, self))
        return True

    def _read(self) -> None:
        """Decrypt what has come, and give it to the protocol at once."""
        arriving, tls = self._arriving, self._tls
        pieces: list[bytes] = []
        is_over, is_broken = False, False
        try:
            while arriving.pending or tls.pending():
                piece = tls.read(READ_AT_ONCE)
                if not piece:
                    is_over = True
                    break
                pieces.append(piece)
        except ssl.SSLWantReadError:
            pass  # a part of a record
        except ssl.SSLZeroReturnError:
            is_over = True
        except ssl.SSLError:
            is_broken = True
        self._pass_on()  # an answer to a change of keys
        if pieces and not self._is_closed:
            self._protocol.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if is_over:
            self.eof_received()
        elif is_broken:
            self.abort()

    def _pass_on(self) -> None:
        """Write what is encrypted, if it is of any use yet."""
        if self._leaving.pending and not self._plain.is_closing():
            self._plain.write(self._leaving.read())

    # -- the protocol calls -----------------------------------------------------------------------------------------

    def write(self, sent: bytes) -> None:
        if self._is_closed:
            return
        rest = memoryview(sent)
        try:
            while rest and not self._is_closed:  # an output limit may end the connection meanwhile
                rest = rest[self._tls.write(rest) :]
                if self._leaving.pending >= WRITTEN_AT_ONCE:
                    self._pass_on()
        except ssl.SSLError:  # the keys are of no use any more
            self.abort()
        self._pass_on()

    def close(self) -> None:
        """Close once everything that was written is sent."""
        if self._is_closed:
            return
        self._is_closed = True
        is_sent = not self._plain.get_write_buffer_size()
        with suppress(ssl.SSLError):  # the peer's close_notify has not come, and is not waited for
            self._tls.unwrap()
        self._pass_on()
        if is_sent and self._plain.get_write_buffer_size():
            self._plain.abort()  # the close_notify alone keeps no connection open, where the peer reads nothing
        else:
            self._plain.close()

    def abort(self) -> None:
        """Close now; unsent bytes are lost. Also before the connection is made, and during the handshake."""
        self._is_closed = True
        plain: asyncio.Transport | None = self._plain
        if plain is not None:
            plain.abort()

    def is_closing(self) -> bool:
        return self._is_closed or self._plain.is_closing()

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._tls.getpeercert() if name == "peercert" else self._plain.get_extra_info(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._plain.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """Encrypted bytes that the peer has not taken."""
        return self._plain.get_write_buffer_size()

    def pause_reading(self) -> None:
        self._plain.pause_reading()

    def resume_reading(self) -> None:
        self._plain.resume_reading()
