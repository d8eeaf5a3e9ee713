"""One client's connection: bytes in, requests out; replies in, bytes out."""

import asyncio
import socket
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast

from penstock.engine.session import NO_DESCRIPTOR, NOBODY, Endpoints, Link
from penstock.errors import ProtocolError
from penstock.protocol import reply
from penstock.protocol.native_parser import LONGEST_KEPT
from penstock.protocol.request_reader import RequestReader, count_of
from penstock.server.connections import peer_end
from penstock.server.tls import tls_context

if TYPE_CHECKING:
    from penstock.server.turns.turn import Turn

REQUESTS_A_TURN: Final = 1000  # of one connection, so that a long pipeline starves nobody
TIME_A_TURN_US: Final = 10_000  # for them, likewise: the request during which it is over is the last one
REPLIES_A_TURN: Final = 2**20  # bytes of replies to one connection, likewise
MOST_UNSENT: Final = 2**20  # bytes that a peer has not taken; above, no request of it is handled


class Connection(Link):
    """Feeds what arrives to the engine, request by request, and keeps the replies until the turn lets them go.

    A protocol in asyncio's sense by its methods; not derived from asyncio's class, which would keep it from being
    compiled.

    No request is handled while the session is blocked, while the peer does not take its replies, or after the
    connection was told to close. Bytes are still read then, so that the peer's end is seen and a client that sends
    its whole pipeline before it reads a reply does not wait for us while we wait for it; `client-query-buffer-limit`
    bounds them. Only while requests wait for their turn is nothing read: we are behind then, not the peer.

    Invariant: `owed_bytes` is the size of `_owed`, the replies of this turn and of those before it whose replies the
    log holds back; `_logged` are the places in it of replies to requests that changed something.
    """

    __slots__ = (
        "_behind", "_ends", "_is_tls", "_is_withheld", "_logged", "_over_since_s", "_owed",
        "_reader", "_reads", "_transport", "_turn", "gone", "is_noted", "owed_bytes", "session",
    )  # fmt: skip

    def __init__(self, turn: "Turn", is_tls: bool = False) -> None:
        self._turn = turn
        self._reader = RequestReader(turn.request_limits.of(NOBODY), turn.engine.batch_shapes)
        self._transport = cast(asyncio.Transport, None)  # there from connection_made on
        self.session = NOBODY  # until the client is let in
        self.gone = True  # not let in yet, or closed
        self._owed: list[bytes] = []
        self._logged: list[int] = []
        self.is_noted = False  # the turn knows that something is owed
        self._is_withheld = False  # the log holds back what is owed
        self.owed_bytes = 0
        self._behind = False  # the peer has not taken everything that was written
        self._reads = True
        self._is_tls = is_tls
        self._ends = False  # the peer sends no more, or what it sent is no request
        self._over_since_s = 0.0  # when the soft output limit was exceeded, in the loop's time; 0: it is not

    # -- coming -----------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        self._transport.set_write_buffer_limits(high=0)  # pause_writing says at once that the peer is behind
        turn = self._turn
        engine = turn.engine
        refusal = turn.admission.refusal(transport)
        if refusal is not None:
            engine.statistics.rejected_connections += 1
            self._transport.write(reply.error(refusal))
            self._transport.close()
            return
        self.session = session = engine.connect(link=self)
        if self._is_tls:
            self._begin_tls()
        if not session.authenticated:
            self._reader.heed(turn.request_limits.of(session))
        self.gone = False
        turn.connections[session.id] = self
        if turn.server_log.is_verbose:
            turn.server_log.verbose(f"Accepted {session.address}")

    def _begin_tls(self) -> None:
        """The handshake is over: see whose certificate it was."""
        engine, session = self._turn.engine, self.session
        session.keep_endpoints()
        if engine.settings.text("tls-auth-clients-user") == "CN":
            name = tls_context.name_in_certificate(self._transport.get_extra_info("peercert"))
            if name:
                engine.access.log_in_by_certificate(session, name.encode(), session.connected_ms)

    def endpoints(self) -> Endpoints:
        """Between whom the connection is. uvloop knows it until a connection is lost, and by TCP afterwards."""
        peer: Sequence[object] | str | None = self._transport.get_extra_info("peername")
        local: Sequence[object] | str | None = self._transport.get_extra_info("sockname")
        link: socket.socket | None = self._transport.get_extra_info("socket")
        is_unix = not isinstance(peer, tuple)
        descriptor = NO_DESCRIPTOR if link is None else link.fileno()
        return Endpoints(address_of(local if is_unix else peer), address_of(local), is_unix, descriptor)

    def has_peer(self) -> bool:
        """Whether the peer has neither closed nor half-closed, nor the connection been lost."""
        if self.gone or self._ends or self._transport.is_closing():
            return False
        link: socket.socket | None = self._transport.get_extra_info("socket")
        return link is None or not peer_end.has_ended(link.fileno())

    def data_received(self, data: bytes) -> None:
        if self.gone:
            return
        size = len(data)
        session, turn, reader = self.session, self._turn, self._reader
        session.reads += 1
        session.input_bytes += size
        statistics = turn.engine.statistics
        statistics.reads += 1
        statistics.input_bytes += size
        try:
            reader.feed(data)
        except ProtocolError:
            self._end_for_requests()
            return
        if not turn.going or self not in turn.going:
            self.go_on(True)
        if reader.pending != session.query_buffer:
            self.note_waiting()
        if self.gone:
            return
        if session.queued_bytes and session.queued_bytes + reader.pending > reader.limits.query_buffer_limit:
            self._end_for_requests()
        elif turn.client_eviction.limit:
            self._note_memory()

    def _end_for_requests(self) -> None:
        """What waits to be handled, or for EXEC, is more than a client may send."""
        self._turn.engine.statistics.query_buffer_disconnections += 1
        self._turn.server_log.warning(f"Closing client {self.session.address}: query buffer limit exceeded")
        self.abort()

    def _note_memory(self) -> None:
        """There is a limit of what all clients take: see what this one does."""
        eviction = self._turn.client_eviction
        eviction.note(self)
        if eviction.is_over:
            self._turn.end_soon()

    def has_requests(self) -> bool:
        """Whether something that came waits to be handled."""
        return self._reader.is_amid

    def note_waiting(self) -> None:
        """Say how many bytes of requests wait, after some came or were handled."""
        waiting = self._reader.pending
        self.session.query_buffer = waiting
        statistics = self._turn.engine.statistics
        if waiting > statistics.largest_query_buffer:
            statistics.largest_query_buffer = waiting

    def eof_received(self) -> bool:
        """The peer sends no more: what it sent is answered, then we close. A request that waits is forgotten."""
        self._ends = True
        if self not in self._turn.going:
            self.close_if_done()
        return not self._is_tls  # whether we close: with TLS, the transport does

    # -- requests ---------------------------------------------------------------------------------------------------

    def go_on(self, has_come: bool = False) -> None:
        """Handle the requests that have come, up to a turn's share of them.

        has_come: bytes came just now. Then the replies may go out at once, if everything that came before is answered
        and the peer has taken those replies.
        """
        turn, session, reader = self._turn, self.session, self._reader
        engine, owed = turn.engine, self._owed
        handled, counted = 0, len(owed)
        left_us = TIME_A_TURN_US
        is_free = has_come and not (
            owed or self._behind or turn.stops or session.blocked is not None or session.closing
        )
        only_data, has_handled, is_done, is_over = True, False, False, False
        is_held = not is_free and self._is_held()
        while not is_held:
            if handled >= REQUESTS_A_TURN or self.owed_bytes > REPLIES_A_TURN or left_us <= 0:
                turn.go_on_later(self)
                is_over = True
                break
            try:
                batches = reader.take(REQUESTS_A_TURN - handled)
            except ProtocolError as refusal:
                self._refuse(refusal)
                break
            if not batches:
                is_done = True
                break
            try:
                left = engine.handle_batches(session, batches, REPLIES_A_TURN, owed, self._logged, left_us)
            except Exception:  # a bug of ours: it costs the connection that met it, not the server and its log
                self._give_up()
                return
            has_handled = True
            if left:
                reader.put_back(left)
            if engine.outgoing or not engine.only_data:
                only_data = False
                self._count_owed(counted)
                self._look_around()
                counted = len(self._owed)
            if not reader.pending:
                is_done = True
                break
            handled += count_of(batches) - count_of(left)
            self._count_owed(counted)
            counted = len(self._owed)
            left_us -= engine.ended_us - engine.began_us
            is_held = self._is_held()
        if self.gone:
            return
        if is_done and len(reader.text) > LONGEST_KEPT:
            reader.rest()
        if is_free and is_done and only_data and turn.has_nothing_to_do():
            if owed:
                self.owed_bytes = 0
                self._send(owed[0] if len(owed) == 1 else b"".join(owed))
                owed.clear()
        elif has_handled or owed or not only_data:
            self._count_owed(counted)
            self._note_owed()
            if is_free and is_done:
                turn.end_after_requests()
            else:
                turn.end_soon()
        if is_over is self._reads:  # what waits for our next turn is enough to keep: read no more of it
            self._set_reading(not is_over)
        if self._ends or session.closing:
            self.close_if_done()

    def _count_owed(self, start: int) -> None:
        """Replies from a place on are owed from now on."""
        owed = self._owed
        for at in range(start, len(owed)):
            self.owed_bytes += len(owed[at])

    def _look_around(self) -> None:
        """See to what handled requests left to be done: for other clients, or because this one may do more now."""
        turn, session = self._turn, self.session
        engine = turn.engine
        if engine.outgoing or engine.to_close or engine.wanted_shutdown:
            self._note_owed()  # before what is pushed to others, as the engine's order is
            turn.hand_out(engine.changed)
        if session.authenticated is not self._reader.limits.authenticated:
            self._reader.heed(turn.request_limits.of(session))

    def _is_held(self) -> bool:
        """Whether no request may be handled now, whatever has come."""
        return (
            self.session.blocked is not None
            or self.session.closing
            or self.gone
            or self._turn.stops
            or (self._behind and self._is_behind_too_far())
            or (self._is_withheld and self.owed_bytes > REPLIES_A_TURN)
        )

    def _is_behind_too_far(self) -> bool:
        """Whether the peer must take replies first.

        It need not where it has an output limit: exceeding that, it is closed as in Redis.
        """
        if not self._behind or self._transport.get_write_buffer_size() <= MOST_UNSENT:
            return False
        hard, soft, _ = self._turn.output_limits.of(self.session)
        return not hard and not soft

    def _note_owed(self) -> None:
        """The turn is to send what is owed; see whether it is too much."""
        if self._owed and not self.gone:
            turn = self._turn
            if not self.is_noted:
                self.is_noted = True
                turn.owing.append(self)
            if turn.output_limits.bind(self.session):
                self.check_output()

    def _set_reading(self, reads: bool) -> None:
        if reads is not self._reads and not self.gone:
            self._reads = reads
            if reads:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _refuse(self, refusal: ProtocolError) -> None:
        """The bytes are no request: say so if there is something to say, and close when it is sent."""
        if refusal.text:
            self.owe(reply.error(b"ERR Protocol error: " + refusal.text))
        self.session.closing = True
        self._turn.end_soon()

    def _give_up(self) -> None:
        """What the request did so far stays, and is logged: the log must not differ from the keyspace."""
        self._turn.server_log.warning(
            "A request raised an unexpected error; its connection is closed:\n" + traceback.format_exc().rstrip()
        )
        self._turn.engine.effects.end_unit()
        self._turn.look_around()
        self.abort()

    # -- replies ----------------------------------------------------------------------------------------------------

    def owe(self, answer: bytes, is_logged: bool = False) -> None:
        """Keep a reply until the turn's end. is_logged: it tells of a change, and is not sent if the log fails."""
        if self.gone:
            return
        if is_logged:
            self._logged.append(len(self._owed))
        self._owed.append(answer)
        self.owed_bytes += len(answer)
        self._note_owed()

    def tells_of_change(self) -> bool:
        """Whether one of the replies that are owed tells of a change."""
        return bool(self._logged)

    def withhold(self) -> None:
        """The log holds back what is owed, and what comes behind it, until `deliver` is called.

        It counts as unsent. Where there is much of it, the next requests wait.
        """
        self.is_noted = False
        self._is_withheld = True
        self.check_output()

    def deliver(self, is_kept: bool) -> None:
        """Send what is owed.

        is_kept: the changes that it tells of are logged, or kept until they can be. If that is not known, the first
        such reply and those behind it are not sent, and the connection is closed: a refusal might be untrue.
        """
        was_withheld = self._is_withheld
        self.is_noted = self._is_withheld = False
        self.owed_bytes = 0
        if self.gone:
            return
        answers, logged = self._owed, self._logged
        breaks_off = not is_kept and bool(logged)
        if breaks_off:
            del answers[logged[0] :]
        sent = answers[0] if len(answers) == 1 else b"".join(answers)
        answers.clear()
        logged.clear()
        if breaks_off:
            self._break_off(sent)
            return
        self._send(sent)
        if not self._behind:
            self.session.waiting_output = 0
        if was_withheld and self.has_requests():
            self._turn.go_on_later(self)
        if self.session.closing or self._ends:
            self.close_if_done()

    def _break_off(self, sent: bytes) -> None:
        """Send what is certain, and close: the outcome of the next request is not known."""
        if sent:
            self._send(sent)
        self._turn.server_log.verbose(f"Closing client {self.session.address}: a change of it may not be logged")
        self._leave()
        self._transport.close()

    def _send(self, sent: bytes) -> None:
        size = len(sent)
        self.session.output_bytes += size
        statistics = self._turn.engine.statistics
        statistics.writes += 1
        statistics.output_bytes += size
        self._transport.write(sent)

    def send_now(self, sent: bytes) -> None:
        """Write at once, past the turn: what a replica gets."""
        if not self.gone:
            self._send(sent)
            if self._behind:
                self.check_output()

    def unsent(self) -> int:
        """Bytes written that the peer has not taken."""
        return self._transport.get_write_buffer_size()

    def is_settled(self) -> bool:
        """Whether every reply was written."""
        return not self._owed

    def check_output(self) -> None:
        """Note how far the peer is behind; close it where that is too far or has lasted too long."""
        if self.gone:
            return
        session = self.session
        unsent = self._transport.get_write_buffer_size() + self.owed_bytes
        if session.replica is not None:
            unsent += session.replica.pending_bytes
        session.waiting_output = unsent
        if self._turn.client_eviction.limit:
            self._note_memory()
        statistics = self._turn.engine.statistics
        statistics.largest_output_buffer = max(statistics.largest_output_buffer, unsent)
        hard, soft, seconds = self._turn.output_limits.of(session)
        now_s = self._turn.loop.time()
        if not soft or unsent < soft:
            self._over_since_s = 0.0
        elif not self._over_since_s:
            self._over_since_s = now_s
        lasted = bool(self._over_since_s) and now_s - self._over_since_s > seconds
        if lasted or (hard and unsent >= hard):
            statistics.output_buffer_disconnections += 1
            self._turn.server_log.warning(f"Closing client {session.address}: {unsent} unsent bytes, over its limit")
            self.abort()

    def pause_writing(self) -> None:
        self._behind = True
        self._turn.behind[self] = None
        self.check_output()

    def resume_writing(self) -> None:
        """The peer has taken everything."""
        self._behind = False
        self._over_since_s = 0.0
        self._turn.behind.pop(self, None)
        self.session.waiting_output = 0
        if not self.gone:
            if self._turn.client_eviction.limit:
                self._note_memory()
            self._turn.go_on_later(self)

    # -- going ------------------------------------------------------------------------------------------------------

    def close_if_done(self) -> None:
        """Close, once everything that was owed has been written."""
        if self.gone or self._owed or self._turn.stops:
            return  # the end of the server closes everybody
        if self._ends and not self.session.closing and self in self._turn.going:
            return
        if self._ends and self._behind and self.session.blocked is None and self._reader.is_amid:
            return  # its requests are held until it has taken the replies before
        self._leave()
        self._transport.close()

    def close(self) -> None:
        """Close as soon as everything that was written is sent."""
        self._transport.close()

    def abort(self) -> None:
        """Close now; what was owed is lost."""
        if not self.gone:
            self._leave()
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()

    def _leave(self) -> None:
        """Nobody is there any more: no reply is kept, no request is handled."""
        if self.gone:
            return
        self.gone = True
        self._owed.clear()
        self._logged.clear()
        self.owed_bytes = 0
        server_log = self._turn.server_log
        if server_log.is_verbose:
            server_log.verbose(f"Client closed connection {self.session.address}")
        self._turn.forget(self)


def address_of(name: Sequence[object] | str | None) -> str:
    """As Redis shows a socket's name.

    >>> address_of(("127.0.0.1", 6379)), address_of(("::1", 6379, 0, 0)), address_of("/run/penstock.sock")
    ('127.0.0.1:6379', '[::1]:6379', '/run/penstock.sock:0')
    """
    if not isinstance(name, tuple):
        return f"{name or ''}:0"
    host, port = name[0], name[1]
    return f"[{host}]:{port}" if len(name) == 4 else f"{host}:{port}"
