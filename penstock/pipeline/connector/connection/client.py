"""A blocking RESP2 client over one socket, which reconnects when the connection breaks.

Where another server may take a server's place, it connects to the one that is a master now: of several addresses, or at
the address that a Sentinel names (https://redis.io/docs/latest/develop/reference/sentinel-clients/).

Replies are as hiredis parses them: bytes, int, None or a list. An error reply is a `ReplyError` in the list of replies,
so that one refused request does not hide the replies to the others.
"""

import contextlib
import secrets
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, TypeVar

import hiredis

from penstock.errors import ReplyError
from penstock.pipeline.errors import BrokenWrite, PipelineError, ServerGone

Word: TypeAlias = bytes | str | int
Request: TypeAlias = Sequence[Word]
Reply: TypeAlias = Any  # bytes | int | None | ReplyError | list["Reply"]; every caller knows which
Answer = TypeVar("Answer")
Item = TypeVar("Item")

FEED: Final = 1 << 16  # bytes; hiredis copies unparsed bytes on each feed, so a large reply is fed in parts
RECEIVE: Final = 1 << 20
SEND_AT_ONCE: Final = 1 << 16  # bytes that the sockets' buffers hold; more is sent while replies are read
FRAME: Final = 64  # bytes: more than the request has that marks the end of the replies
FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 2.0
NOT_READY: Final = (b"LOADING", b"BUSY ", b"MASTERDOWN")  # error replies that are temporary
DEMOTED: Final = (b"READONLY", b"UNBLOCKED")  # error replies of a server that has become a replica
SERVER, SENTINEL, CLUSTER = "server", "sentinel", "cluster"
CLUSTER_HINT: Final = "; the server is a node of a cluster: endpoints=cluster://host:port"

now_s = time.monotonic
pause_s = time.sleep


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server is. `name` outlives an address; it is the address if none was given."""

    name: str
    host: str
    port: int
    others: tuple[tuple[str, int], ...] = ()  # more addresses of the same server
    kind: str = SERVER  # SENTINEL: the addresses are those of Sentinels; CLUSTER: those of some nodes
    master: str = ""  # the name that Sentinels know the server by

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        return (self.host, self.port), *self.others

    @property
    def address(self) -> str:
        text = ";".join(f"{host}:{port}" for host, port in self.addresses)
        if self.kind == SERVER:
            return text
        return f"{self.kind}://{text}" + (f"/{self.master}" if self.master else "")

    @property
    def moves(self) -> bool:
        """Whether another server may take its place, at another address."""
        return self.kind == SENTINEL or bool(self.others)

    @property
    def has_name(self) -> bool:
        return self.name != self.address


@dataclass(frozen=True, slots=True)
class Access:
    """How to speak to any of the servers; `retry_s` 0 gives up at the first broken connection."""

    username: str | None = None
    password: str | None = None
    db: int = 0
    tls: bool = False
    tls_ca: str | None = None  # a file of certificates to trust; None: the system's
    tls_cert: str | None = None  # the client's own certificate and key
    tls_key: str | None = None
    connect_s: float = 5.0
    read_s: float = 30.0
    retry_s: float = 60.0


def packed(*words: Word) -> bytes:
    """A request as bytes.

    >>> packed("XLEN", b"s")
    b'*2\\r\\n$4\\r\\nXLEN\\r\\n$1\\r\\ns\\r\\n'
    """
    as_bytes = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n%b" % (len(words), bulk_strings(as_bytes))


def joined(requests: Iterable[Request]) -> bytes:
    return b"".join([packed(*words) for words in requests])


def bulk_strings(words: list[bytes]) -> bytes:
    """The words of a request as bytes, without the header that tells their number."""
    return b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in words])


class Client:
    """One connection to one server, made when it is first needed. Not for two threads at once."""

    tag = ""  # what a key needs in it to be where this client asks (ClusterClient)
    shares = False  # whether others use the connection, and end a WATCH

    def __init__(self, endpoint: Endpoint, access: Access) -> None:
        self.endpoint = endpoint
        self.access = access
        self.counts = True  # the server may have PENSTOCK.XCOUNT: it was not refused yet
        self.connection_id = 0  # the server's number for the connection, 0 if not known
        self._socket: socket.socket | None = None
        self._reader = _reply_reader()
        self._answered = False  # ever
        self._ahead: tuple[bytes, bytes] | None = None  # requests under way since `send_ahead`, and their frame

    # -- asking -------------------------------------------------------------------------------------------------------

    def call(self, *words: Word, retry: bool = True, wait_s: float = 0.0) -> Reply:
        """The reply to one request; ReplyError if it is refused. `wait_s` is what the server may take (BLOCK)."""
        reply = self.pipeline([words], retry=retry, wait_s=wait_s)[0]
        if isinstance(reply, ReplyError):
            if text_of(reply).endswith(CLUSTER_HINT):
                raise PipelineError(f"{self.endpoint.address}: {text_of(reply)}")
            raise reply
        return reply

    def pipeline(self, requests: Iterable[Request], *, retry: bool = True, wait_s: float = 0.0) -> list[Reply]:
        """The replies to several requests, in one round trip, error replies included.

        `retry`: all may be sent again on a new connection, because they only read or are idempotent.
        """
        requests = list(requests)
        return self.exchange(joined(requests), len(requests), retry=retry, wait_s=wait_s)

    def exchange(self, payload: bytes, count: int, *, retry: bool, wait_s: float = 0.0) -> list[Reply]:
        """`pipeline` for requests that are bytes already: `count` replies to `payload`."""
        if not count:
            return []
        if self._ahead is not None:
            self.close()

        temporary = (NOT_READY if retry else ()) + (DEMOTED if self.endpoint.moves else ())

        def once() -> list[Reply]:
            replies = self._exchange_once(payload, count, wait_s)
            for reply in replies if temporary else ():
                if isinstance(reply, ReplyError) and reply.text.startswith(temporary):
                    raise NotReady(reply.text.decode(errors="replace"))
            return replies

        return self._with_retries(once, retry)

    def framed(self, payload: bytes, most: int | None = None) -> bytearray:
        """The unparsed replies to the reading requests in `payload`; TooLong if they have more than `most` bytes.

        An ECHO of a random word is sent after them; its reply marks the end, so nothing is parsed to find it. A reply
        that is too long is not received to its end: the connection is closed.
        """
        if self._ahead is not None and self._ahead[0] != payload:
            self.close()
        return self._with_retries(lambda: self._framed_once(payload, most), True)

    def send_ahead(self, payload: bytes) -> None:
        """Send the requests of the next `framed` call now, so that the server works on them in the meantime.

        If anything else is sent in between, the connection is closed and `framed` sends them again.
        """
        if self._socket is None or self._ahead is not None or len(payload) > SEND_AT_ONCE - FRAME:
            return
        try:
            self._send_framed(payload, bytearray().extend)  # it fits: nothing is received
        except OSError:
            self.close()  # `framed` will see to it

    def unblock(self, by: "Client") -> bool:
        """End this client's blocking request in another thread; False if it has not reached the server yet."""
        return bool(by.call("CLIENT", "UNBLOCK", self.connection_id))

    def scan(self, *words: Word) -> set[bytes]:
        """All keys that SCAN finds with these options."""
        found: set[bytes] = set()
        cursor = b"0"
        while True:
            cursor, some = self.call("SCAN", cursor, *words)
            found.update(some)
            if cursor == b"0":
                return found

    def by_node(self, found: Iterable[Item], key_of: Callable[[Item], bytes]) -> list[list[Item]]:
        """The items, grouped by the node of their keys: one group for a single server."""
        return [list(found)]

    def nodes(self) -> "list[Client]":
        """A client for each server that has keys: this one for a single server."""
        return [self]

    def at_key(self, key: str) -> "Client":
        """The client whose connection requests with a key use."""
        return self

    def have_moved(self) -> bool:
        """Whether keys are at another node than was known."""
        return False

    def messages(self, channel: str) -> list[bytes]:
        """The messages in a channel since the last call; the first call subscribes. The connection is for this only.

        Messages that are published while the connection is broken are lost.
        """
        if self._socket is None:
            self.call("SUBSCRIBE", channel)
        assert self._socket is not None, "it has just been used"
        self._socket.settimeout(0.0)
        try:
            while True:
                self._reader.feed(self._receive())
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        except OSError:
            self.close()
        found = []
        while (reply := self._reader.gets()) is not NO_REPLY_YET:
            found.append(reply[2])
        return found

    def close(self) -> None:
        """Drop the connection; the next request makes a new one."""
        self._ahead = None
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
        self._socket = None
        self._reader = _reply_reader()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[type["Client"], tuple[Endpoint, Access]]:
        return Client, (self.endpoint, self.access)  # a socket does not travel to another process

    # -- the connection -----------------------------------------------------------------------------------------------

    def _with_retries(self, once: Callable[[], Answer], retry: bool) -> Answer:
        """Call `once`, with growing pauses between tries while the server is unreachable, up to `retry_s`.

        Without `retry` only connecting is tried again: requests that were sent may have been executed.
        """
        give_up_s = now_s() + self.access.retry_s
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                self._connect()
            except (OSError, NotReady) as failure:
                trouble: Exception = failure
            else:
                try:
                    return once()
                except (OSError, NotReady) as failure:
                    trouble = failure
                    if not retry and not isinstance(failure, Unserved):
                        self.close()
                        raise BrokenWrite(self._sentence("the connection broke amid a write", failure)) from failure
                except BaseException:
                    self.close()  # half a reply may be on its way
                    raise
            self.close()
            if isinstance(trouble, ssl.SSLCertVerificationError) or now_s() + pause_s > give_up_s:
                raise ServerGone(self._sentence("the server does not answer", trouble)) from trouble
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _sentence(self, sentence: str, failure: Exception) -> str:
        reason = (str(failure) or type(failure).__name__) + self._hint(failure)
        return (
            f"{self.endpoint.address}: {sentence}: {reason} (readTimeout {self.access.read_s:g} s, "
            f"retryTimeout {self.access.retry_s:g} s)"
        )

    def _hint(self, failure: Exception) -> str:
        """A hint at an option that may be wrong, if the failure looks like it; otherwise empty."""
        if isinstance(failure, ssl.SSLCertVerificationError):
            return "; the option tlsCa names the file of the authority that signed the certificate"
        if self._answered or isinstance(failure, ConnectionRefusedError | socket.gaierror):
            return ""
        if self.access.tls and isinstance(failure, ssl.SSLError | TimeoutError | ConnectionError):
            return "; this port may be one without TLS"
        is_reset = not self.access.tls and isinstance(failure, ConnectionResetError)
        return "; this port may be one with TLS (option tls=true)" if is_reset else ""

    def _connect(self) -> None:
        if self._socket is not None:
            return
        if not self.endpoint.moves:
            self._open(self.endpoint.host, self.endpoint.port)
            return
        trouble: Exception = NotReady("no Sentinel answers")
        for host, port in self._candidates():
            try:
                self._open(host, port)
                role = self._exchange_once(packed("ROLE"), 1, 0.0)[0]
                if isinstance(role, ReplyError) or role[0] == b"master":  # a user may not be allowed to ask
                    return
                trouble = NotReady(f"{host}:{port} is no master")
            except (OSError, NotReady) as failure:
                trouble = failure
            self.close()
        raise trouble

    def _candidates(self) -> Iterator[tuple[str, int]]:
        """Where the server may be: its addresses, or what the Sentinels answer; ServerGone if none knows its name."""
        if self.endpoint.kind != SENTINEL:
            yield from self.endpoint.addresses
            return
        answers: list[Reply] = []
        access = replace(self.access, username=None, password=None, db=0, retry_s=0.0)
        for host, port in self.endpoint.addresses:
            try:
                with Client(Endpoint("sentinel", host, port), access) as sentinel:
                    found = sentinel.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.endpoint.master)
            except ServerGone:
                continue
            except ReplyError as refusal:
                raise ServerGone(f"{host}:{port} is no Sentinel: {refusal.text.decode(errors='replace')}") from None
            answers.append(found)
            if found is not None:
                yield found[0].decode(), int(found[1])
        if answers and not any(answers):
            raise ServerGone(f"{self.endpoint.address}: the Sentinels know no master {self.endpoint.master!r}")

    def _open(self, host: str, port: int) -> None:
        connection = socket.create_connection((host, port), self.access.connect_s)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.access.tls:
                connection = self._tls().wrap_socket(connection, server_hostname=host)
            self._socket = connection
            self._introduce()
            self._answered = True
        except BaseException:
            connection.close()
            self.close()
            raise

    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.access.tls_ca)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python 3.13 and later ask for more than redis-cli does
        if self.access.tls_cert is not None:
            context.load_cert_chain(self.access.tls_cert, self.access.tls_key)
        return context

    def _introduce(self) -> None:
        """AUTH and SELECT. A refusal is final: another try would be refused as well."""
        requests: list[Request] = []
        if self.access.password is not None:
            named = [] if self.access.username is None else [self.access.username]
            requests.append(["AUTH", *named, self.access.password])
        if self.access.db:
            requests.append(["SELECT", self.access.db])
        requests.append(["CLIENT", "ID"])
        replies = self._exchange_once(b"".join(packed(*words) for words in requests), len(requests), 0.0)
        for words, reply in zip(requests, replies, strict=True):
            if words[0] == "CLIENT":
                self.connection_id = reply if isinstance(reply, int) else 0  # a user may not be allowed to ask
            elif isinstance(reply, ReplyError):
                if reply.text.startswith(NOT_READY):
                    raise NotReady(reply.text.decode(errors="replace"))
                raise ServerGone(f"{self.endpoint.address}: {reply.text.decode(errors='replace')}")

    # -- bytes --------------------------------------------------------------------------------------------------------

    def _exchange_once(self, payload: bytes, count: int, wait_s: float) -> list[Reply]:
        assert self._socket is not None, "_connect came first"
        # The replies are parsed as one array, in C: taken one by one, a thousand of them cost four times as much.
        self._reader.feed(b"*%d\r\n" % count)
        replies: Reply = NO_REPLY_YET

        def take(received: bytes) -> None:
            nonlocal replies
            replies = self._parse(received)

        self._send(payload, take)
        self._socket.settimeout(self.access.read_s + wait_s)
        while replies is NO_REPLY_YET:
            take(self._receive())
        found: list[Reply] = replies
        return found

    def _send(self, payload: bytes, take: Callable[[bytes], None]) -> None:
        """Send requests. While they are more than the buffers hold, `take` gets what is received meanwhile.

        Else both sides would wait for each other.
        """
        assert self._socket is not None, "_connect came first"
        if len(payload) <= SEND_AT_ONCE:
            self._socket.settimeout(self.access.read_s)
            self._socket.sendall(payload)
            return
        self._socket.settimeout(0.0)
        rest = memoryview(payload)
        while rest:
            try:
                rest = rest[self._socket.send(rest[:RECEIVE]) :]
                continue
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                readable, writable, _ = select.select([self._socket], [self._socket], [], self.access.read_s)
            if not readable and not writable:
                raise TimeoutError("it takes no more requests")
            if readable:
                with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    take(self._receive())
        self._socket.settimeout(self.access.read_s)

    def _receive(self) -> bytes:
        assert self._socket is not None, "_connect came first"
        received = self._socket.recv(RECEIVE)
        if not received:
            raise ConnectionResetError("it closed the connection")
        return received

    def _parse(self, received: bytes) -> Reply:
        """The array of all replies, or NO_REPLY_YET."""
        found: Reply = NO_REPLY_YET
        for at in range(0, len(received), FEED):
            self._reader.feed(received[at : at + FEED])
            found = self._reader.gets()
        return found

    def _send_framed(self, payload: bytes, take: Callable[[bytes], None]) -> None:
        nonce = secrets.token_hex(16).encode()
        self._send(payload + packed(b"ECHO", nonce), take)
        self._ahead = payload, b"$32\r\n%b\r\n" % nonce

    def _framed_once(self, payload: bytes, most: int | None) -> bytearray:
        received = bytearray()  # grows in place: a list of parts would be twice as large where it is joined
        if self._ahead is None:
            self._send_framed(payload, received.extend)
        assert self._ahead is not None, "it has been sent now"
        frame = self._ahead[1]
        while not received.endswith(frame):
            received += self._receive()
            if most is not None and len(received) > most + len(frame):
                raise TooLong(received)
        self._ahead = None
        del received[-len(frame) :]
        return received


class TooLong(Exception):
    """Replies have more bytes than was asked for; its argument is what was received of them."""


class NotReady(Exception):
    """The server answers that it will answer later."""


class Unserved(NotReady):
    """A request, or what is left of several, was not executed: it may be sent again, also if it writes."""


NO_REPLY_YET: Final = object()


def _refusal(line: str) -> ReplyError:
    return ReplyError(line.encode(errors="surrogateescape"))


def _reply_reader() -> hiredis.Reader:
    return hiredis.Reader(replyError=_refusal, notEnoughData=NO_REPLY_YET)


def text_of(refusal: ReplyError) -> str:
    """An error reply for the user."""
    text = refusal.text.decode(errors="replace")
    return text + CLUSTER_HINT if refusal.text.startswith((b"CROSSSLOT", b"MOVED")) else text


def parsed(replies: bytes | bytearray) -> list[Reply]:
    """Every reply in `replies`, which holds whole ones.

    >>> parsed(b":1\\r\\n*1\\r\\n$1\\r\\na\\r\\n")
    [1, [b'a']]
    """
    reader = _reply_reader()
    found: list[Reply] = []
    for at in range(0, len(replies), FEED):
        reader.feed(bytes(replies[at : at + FEED]))
        while (reply := reader.gets()) is not NO_REPLY_YET:
            found.append(reply)
    return found


def parsed_alone(reply: bytes) -> Reply:
    """The reply that these bytes are; NO_REPLY_YET if they are none, or more than one.

    >>> parsed_alone(b":1\\r\\n")
    1
    """
    reader = _reply_reader()
    reader.feed(reply)
    found = reader.gets()
    return NO_REPLY_YET if reader.has_data() else found


def mapping(reply: Reply) -> dict[bytes, Reply]:
    """A RESP2 map (XINFO, CONFIG GET): names and values in turn.

    >>> mapping([b"length", 3])
    {b'length': 3}
    """
    return dict(zip(reply[::2], reply[1::2], strict=True))
