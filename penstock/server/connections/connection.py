"""One client's connection: bytes in, requests out; replies in, bytes out."""

import asyncio
import socket
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast

from penstock.engine.session import NO_CLIENT, NO_DESCRIPTOR, Endpoints, Link
from penstock.engine.state import NOT_AUTHENTICATED
from penstock.errors import ProtocolError
from penstock.protocol import reply
from penstock.protocol.native_parser import LONGEST_KEPT
from penstock.protocol.request_reader import RequestReader, count_of
from penstock.server.connections import peer_end
from penstock.server.tls import tls_context

if TYPE_CHECKING:
    from penstock.server.turns.turn import Turn

REQUESTS_A_TURN: Final = 1000  # of one connection, so that a long pipeline does not starve other clients
TIME_A_TURN_US: Final = 10_000  # of one connection in a turn: the request that exceeds it is the last one
REPLIES_A_TURN: Final = 2**20  # bytes of replies to one connection in a turn
# What happened while requests were handled:
HANDLED: Final = 1  # at least one was handled
LEFT_WORK: Final = 2  # one did more than touch data: messages for other clients and the like were taken
ALL_DONE: Final = 4  # no whole request is left
SHARE_USED: Final = 8  # the turn's share is used: further requests wait for the next turn
MOST_UNSENT: Final = 2**20  # bytes that a peer has not taken; above, no request of it is handled
LONGEST_REST_S: Final = 60.0  # how long a peer of a connection that has ended may take none of its replies


class Connection(Link):
    """Feeds what arrives to the engine, request by request, and keeps the replies until the turn ends.

    A protocol in asyncio's sense by its methods; not derived from asyncio's class, which would keep it from being
    compiled.

    No request is handled while the session is blocked, while the peer does not take its replies, or after the
    connection was told to close. Bytes are still read then, so that the peer's end is seen, and because a client may
    send its whole pipeline before it reads a reply; `client-query-buffer-limit` bounds them. Nothing is read while
    requests wait for their turn: the server is slower than the peer then.

    `_replies` are not sent yet: those of this turn, and of turns before it whose replies the log holds back. Invariant:
    `reply_bytes` is the size of the first `_counted` of them, which are all but those of the request in hand. `_logged`
    are the places in it of replies to requests that changed something.

    A connection ends when its peer does (FIN), by QUIT, by bytes that are no request and the like. It is a client, with
    its limits, until the peer has taken its replies, however long that takes; only a peer that takes none of them for a
    minute is closed.
    """

    __slots__ = (
        "_client",
        "_counted",
        "_ended_s",
        "_input_ended",
        "_is_tls",
        "_is_withheld",
        "_logged",
        "_output_blocked",
        "_over_since_s",
        "_reader",
        "_reads",
        "_replies",
        "_transport",
        "_turn",
        "closed",
        "is_noted",
        "reply_bytes",
        "session",
    )  # fmt: skip

    def __init__(self, turn: "Turn", is_tls: bool = False, client: Endpoints | None = None) -> None:
        """client: the addresses of the one behind it, where the peer is this process itself (the console)."""
        self._turn = turn
        self._client = client
        self._reader = RequestReader(turn.request_limits.of(NO_CLIENT), turn.engine.batch_shapes)
        self._transport = cast(asyncio.Transport, None)  # there from connection_made on
        self.session = NO_CLIENT  # until the client is admitted
        self.closed = True  # not admitted yet, or closed
        self._replies: list[bytes] = []
        self._logged: list[int] = []
        self._counted = 0
        self.is_noted = False  # the turn knows that there are replies to send
        self._is_withheld = False  # the log holds back the replies
        self.reply_bytes = 0
        self._output_blocked = False  # the peer has not taken everything that was written
        self._reads = True
        self._is_tls = is_tls
        self._input_ended = False  # the peer has closed its side, or sent an invalid request
        self._ended_s = 0.0  # when a peer that ended last took some of its replies, in the loop's time; 0: none wait
        self._over_since_s = 0.0  # when the soft output limit was exceeded, in the loop's time; 0: it is not

    # -- coming -----------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        self._transport.set_write_buffer_limits(high=0)  # pause_writing is called as soon as the peer does not read
        turn = self._turn
        engine = turn.engine
        refusal = turn.admission.refusal(transport)
        if refusal is not None:
            engine.statistics.rejected_connections += 1
            self._transport.write(reply.error(refusal))
            self._transport.close()
            return
        self.session = session = engine.server.connect(link=self)
        if self._is_tls:
            self._begin_tls()
        if not session.authenticated:
            self._reader.use_limits(turn.request_limits.of(session))
        self.closed = False
        turn.connections[session.id] = self
        if turn.server_log.is_verbose:
            turn.server_log.verbose(f"Accepted {session.address}")

    def _begin_tls(self) -> None:
        """The handshake is over: log in the user that the certificate names, if it names one."""
        engine, session = self._turn.engine, self.session
        session.keep_endpoints()
        if engine.settings.text("tls-auth-clients-user") == "CN":
            name = tls_context.name_in_certificate(self._transport.get_extra_info("peercert"))
            if name:
                engine.access.log_in_by_certificate(session, name.encode(), session.connected_ms)

    def endpoints(self) -> Endpoints:
        """The addresses of both ends. uvloop knows them until the connection is lost, those of TCP afterwards, too."""
        own, client = endpoints_of(self._transport), self._client
        if client is None:
            return own
        return Endpoints(client.address, client.local_address, client.is_unix_socket, own.descriptor)

    def has_peer(self) -> bool:
        """Whether the peer has neither closed nor half-closed, nor the connection been lost."""
        if self.closed or self._input_ended or self._transport.is_closing():
            return False
        link: socket.socket | None = self._transport.get_extra_info("socket")
        return link is None or not peer_end.has_ended(link.fileno())

    def data_received(self, data: bytes) -> None:
        if self.closed:
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
        if not turn.unfinished or self not in turn.unfinished:
            self.handle_requests(True)
        if reader.pending != session.query_buffer:
            self.note_waiting()
        if self.closed:
            return
        if session.queued_bytes and session.queued_bytes + reader.pending > reader.limits.query_buffer_limit:
            self._end_for_requests()
        elif turn.client_eviction.limit:
            self._note_memory()

    def _end_for_requests(self) -> None:
        """Close: the requests that wait to be handled, or for EXEC, are larger than the limit."""
        self._turn.engine.statistics.query_buffer_disconnections += 1
        self._turn.server_log.warning(f"Closing client {self.session.address}: query buffer limit exceeded")
        self.abort()

    def _note_memory(self) -> None:
        """Measure this client: there is a limit to the memory of all clients together."""
        eviction = self._turn.client_eviction
        eviction.note(self)
        if eviction.is_over:
            self._turn.end_soon()

    def must_continue(self) -> bool:
        """Whether there is more to do after a reply: requests that came, or the end of the connection."""
        return self._reader.is_amid or self._input_ended

    def note_waiting(self) -> None:
        """Say how many bytes of requests wait, after some came or were handled."""
        waiting = self._reader.pending
        self.session.query_buffer = waiting
        statistics = self._turn.engine.statistics
        if waiting > statistics.largest_query_buffer:
            statistics.largest_query_buffer = waiting

    def eof_received(self) -> bool:
        """The peer closed its side: reply to its requests, then close.

        A request that waits for data is forgotten; one that is being done is replied to (Redis 8.6.3, with a script).
        """
        self._input_ended = True
        if self not in self._turn.unfinished:
            self.close_if_done()
        return True  # the transport is not to close

    # -- requests ---------------------------------------------------------------------------------------------------

    def handle_requests(self, has_come: bool = False) -> None:
        """Handle the requests that have come, up to a turn's share of them.

        has_come: bytes came just now. Then the replies may go out at once, if everything that came before is answered
        and the peer has taken those replies.
        """
        turn, session, reader = self._turn, self.session, self._reader
        replies = self._replies
        is_free = has_come and not (
            replies or self._output_blocked or turn.shutting_down or session.blocked is not None or session.closing
        )
        happened = self._run_requests() if is_free or not self._must_wait() else 0
        if self.closed:
            return
        is_done = happened & ALL_DONE != 0
        if is_done and len(reader.text) > LONGEST_KEPT:
            reader.rest()
        if is_free and is_done and not happened & LEFT_WORK and turn.has_nothing_to_do():
            if replies:
                self.reply_bytes = self._counted = 0
                self._send(replies[0] if len(replies) == 1 else b"".join(replies))
                replies.clear()
        elif happened & HANDLED or replies:
            self._note_replies()
            if is_free and is_done:
                turn.end_after_requests()
            else:
                turn.end_soon()
        is_over = happened & SHARE_USED != 0
        if is_over is self._reads:  # what waits for our next turn is enough to keep: read no more of it
            self._set_reading(not is_over)
        if self._input_ended or session.closing:
            self.close_if_done()

    def _run_requests(self) -> int:
        """Take requests and run them, until there are no more, the turn's share is used, or the next one must wait.

        What happened, as bits. The replies to the last requests are not counted yet.
        """
        turn, session, reader = self._turn, self.session, self._reader
        engine = turn.engine
        handled, left_us, happened = 0, TIME_A_TURN_US, 0
        while handled < REQUESTS_A_TURN and self.reply_bytes <= REPLIES_A_TURN and left_us > 0:
            try:
                batches = reader.take(REQUESTS_A_TURN - handled)
            except ProtocolError as refusal:
                self._refuse(refusal)
                return happened
            if not batches:
                return happened | ALL_DONE
            try:
                left = engine.handle_batches(session, batches, REPLIES_A_TURN, self._replies, self._logged, left_us)
            except Exception:  # a bug of ours: it costs the connection that met it, not the server and its log
                self._give_up()
                return happened
            happened |= HANDLED
            if left:
                reader.put_back(left)
            if engine.clients.outgoing or not engine.only_data:
                happened |= LEFT_WORK
                self._look_around()
            if not reader.pending:
                return happened | ALL_DONE
            handled += count_of(batches) - count_of(left)
            self._count_replies()
            left_us -= engine.ended_us - engine.began_us
            if self._must_wait():
                return happened
        turn.continue_later(self)
        return happened | SHARE_USED

    def _count_replies(self) -> None:
        """Add the sizes of the replies that are not counted yet."""
        replies = self._replies
        for at in range(self._counted, len(replies)):
            self.reply_bytes += len(replies[at])
        self._counted = len(replies)

    def _look_around(self) -> None:
        """After requests: hand out replies to other clients, and use other limits if this one has logged in or out."""
        turn, session = self._turn, self.session
        engine = turn.engine
        if engine.clients.outgoing or engine.clients.to_close or engine.persistence.wanted_shutdown:
            self._note_replies()  # before messages to others, in the order in which the engine made them
            turn.hand_out(engine.changed)
        if (session.state & NOT_AUTHENTICATED == 0) is not self._reader.limits.authenticated:
            self._reader.use_limits(turn.request_limits.of(session))

    def _must_wait(self) -> bool:
        """Whether no request may be handled now, whatever has come."""
        return (
            self.session.blocked is not None
            or self.session.closing
            or self.closed
            or self._turn.shutting_down
            or (self._output_blocked and self._is_output_full())
            or (self._is_withheld and self.reply_bytes > REPLIES_A_TURN)
        )

    def _is_output_full(self) -> bool:
        """Whether the peer must take replies before more requests are handled.

        It need not where it has an output limit: a peer that exceeds it is closed, as in Redis.
        """
        if not self._output_blocked or self._transport.get_write_buffer_size() <= MOST_UNSENT:
            return False
        hard, soft, _ = self._turn.output_limits.of(self.session)
        return not hard and not soft

    def _note_replies(self) -> None:
        """Count the replies and have the turn send them; check the output limit."""
        replies = self._replies
        if replies and not self.closed:
            for at in range(self._counted, len(replies)):
                self.reply_bytes += len(replies[at])
            self._counted = len(replies)
            turn = self._turn
            if not self.is_noted:
                self.is_noted = True
                turn.to_send.append(self)
            limits = turn.output_limits
            # A session without a bit is neither a replica nor subscribed: the limit of all others is its own.
            if (limits.bound_everybody or self.session.state) and limits.bind(self.session):
                self.check_output()

    def _set_reading(self, reads: bool) -> None:
        if reads is not self._reads and not self.closed:
            self._reads = reads
            if reads:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _refuse(self, refusal: ProtocolError) -> None:
        """The bytes are no request: reply with the error, if there is one, and close once it is sent."""
        if refusal.text:
            self.add_reply(reply.error(b"ERR Protocol error: " + refusal.text))
        self.session.closing = True
        self._turn.end_soon()

    def _give_up(self) -> None:
        """Close after an unexpected error. What the request changed is logged: log and keyspace must not differ."""
        self._turn.server_log.warning(
            "A request raised an unexpected error; its connection is closed:\n" + traceback.format_exc().rstrip()
        )
        self._turn.engine.effects.end_unit()
        self._turn.look_around()
        self.abort()

    # -- replies ----------------------------------------------------------------------------------------------------

    def add_reply(self, answer: bytes, is_logged: bool = False) -> None:
        """Keep a reply until the turn's end. is_logged: it reports a change, and is not sent if the log fails."""
        if self.closed or (self.session.closing and self._output_blocked):
            return  # the end has been told: what is said to subscribers and the like is not for it
        if is_logged:
            self._logged.append(len(self._replies))
        self._replies.append(answer)
        self._note_replies()

    def reports_change(self) -> bool:
        """Whether one of the unsent replies reports a change."""
        return bool(self._logged)

    def withhold(self) -> None:
        """The log holds back the replies, and those that follow, until `deliver` is called.

        They count as unsent. Where they are large, the next requests wait.
        """
        self.is_noted = False
        self._is_withheld = True
        self.check_output()

    def deliver(self, is_kept: bool) -> None:
        """Send the replies.

        is_kept: the changes that they report are logged, or kept until they can be. If that is not known, the first
        such reply and those after it are not sent, and the connection is closed: a refusal might be untrue.
        """
        was_withheld = self._is_withheld
        self.is_noted = self._is_withheld = False
        self.reply_bytes = self._counted = 0
        if self.closed:
            return
        answers, logged = self._replies, self._logged
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
        if not self._output_blocked:
            self.session.waiting_output = 0
        if was_withheld and self._reader.is_amid:
            self._turn.continue_later(self)
        if self.session.closing or self._input_ended:
            self.close_if_done()

    def _break_off(self, sent: bytes) -> None:
        """Send the replies that are certain, and close: the outcome of the next request is not known."""
        if sent:
            self._send(sent)
        self._turn.server_log.verbose(f"Closing client {self.session.address}: a change of it may not be logged")
        self.session.closing = True
        self.close_if_done()

    def _send(self, sent: bytes) -> None:
        size = len(sent)
        self.session.output_bytes += size
        statistics = self._turn.engine.statistics
        statistics.writes += 1
        statistics.output_bytes += size
        self._transport.write(sent)

    def send_now(self, sent: bytes) -> None:
        """Write at once, past the turn: what a replica gets."""
        if not self.closed:
            self._send(sent)
            if self._output_blocked:
                self.check_output()

    def unsent(self) -> int:
        """Bytes written that the peer has not taken."""
        return self._transport.get_write_buffer_size()

    def is_settled(self) -> bool:
        """Whether every reply was written."""
        return not self._replies

    def check_output(self) -> None:
        """Note how many bytes are unsent; close the connection where they are too many, or many for too long."""
        if self.closed:
            return
        session = self.session
        unsent = self._transport.get_write_buffer_size() + self.reply_bytes
        if session.replica is not None:
            unsent += session.replica.pending_bytes
        now_s = self._turn.loop.time()
        if self._ended_s and unsent < session.waiting_output:
            self._ended_s = now_s
        session.waiting_output = unsent
        if self._turn.client_eviction.limit:
            self._note_memory()
        statistics = self._turn.engine.statistics
        statistics.largest_output_buffer = max(statistics.largest_output_buffer, unsent)
        hard, soft, seconds = self._turn.output_limits.of(session)
        if not soft or unsent < soft:
            self._over_since_s = 0.0
        elif not self._over_since_s:
            self._over_since_s = now_s
        lasted = bool(self._over_since_s) and now_s - self._over_since_s > seconds
        if lasted or (hard and unsent >= hard):
            statistics.output_buffer_disconnections += 1
            self._turn.server_log.warning(f"Closing client {session.address}: {unsent} unsent bytes, over its limit")
            self.abort()
        elif self._ended_s and now_s - self._ended_s > LONGEST_REST_S:
            self._turn.server_log.verbose(f"Closing client {session.address}: it has ended and does not read")
            self.abort()

    def pause_writing(self) -> None:
        self._output_blocked = True
        self._turn.output_blocked[self] = None
        self.check_output()

    def resume_writing(self) -> None:
        """The peer has taken everything."""
        self._output_blocked = False
        self._over_since_s = self._ended_s = 0.0
        self._turn.output_blocked.pop(self, None)
        self.session.waiting_output = 0
        if not self.closed:
            if self._turn.client_eviction.limit:
                self._note_memory()
            self._turn.continue_later(self)

    # -- the end ----------------------------------------------------------------------------------------------------

    def close_if_done(self) -> None:
        """Close, once the peer has taken every reply."""
        turn, session = self._turn, self.session
        if self.closed or self._replies or turn.shutting_down:
            return  # the end of the server closes every connection
        if self._input_ended and not session.closing and self in turn.unfinished:
            return
        if session.blocked is not None and session.blocked.is_running:
            return
        if session.is_replica:
            self.abort()  # what it is sent has no end
        elif self._output_blocked and (session.blocked is None or not turn.engine.conditions.busy):
            self._ended_s = self._ended_s or turn.loop.time()
            if session.blocked is not None or not self._reader.is_amid:  # else its requests wait for that, too
                turn.engine.server.forget_blocked(session)
                session.closing = True
        else:
            self._leave()
            self._transport.close()

    def close(self) -> None:
        """Close once everything that was written is sent."""
        self._transport.close()

    def abort(self) -> None:
        """Close now; unsent replies are lost."""
        if not self.closed:
            self._leave()
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()

    def _leave(self) -> None:
        """The client has left: no reply is kept, no request is handled."""
        if self.closed:
            return
        self.closed = True
        self._replies.clear()
        self._logged.clear()
        self.reply_bytes = self._counted = 0
        server_log = self._turn.server_log
        if server_log.is_verbose:
            server_log.verbose(f"Client closed connection {self.session.address}")
        self._turn.forget(self)


def endpoints_of(transport: asyncio.BaseTransport) -> Endpoints:
    """What a transport knows of both ends, the peer first."""
    peer: Sequence[object] | str | None = transport.get_extra_info("peername")
    local: Sequence[object] | str | None = transport.get_extra_info("sockname")
    link: socket.socket | None = transport.get_extra_info("socket")
    is_unix = not isinstance(peer, tuple)
    descriptor = NO_DESCRIPTOR if link is None else link.fileno()
    return Endpoints(address_of(local if is_unix else peer), address_of(local), is_unix, descriptor)


def address_of(name: Sequence[object] | str | None) -> str:
    """As Redis shows a socket's name.

    >>> address_of(("127.0.0.1", 6379)), address_of(("::1", 6379, 0, 0)), address_of("/run/penstock.sock")
    ('127.0.0.1:6379', '[::1]:6379', '/run/penstock.sock:0')
    """
    if not isinstance(name, tuple):
        return f"{name or ''}:0"
    host, port = name[0], name[1]
    return f"[{host}]:{port}" if len(name) == 4 else f"{host}:{port}"
