"""Serves HTTP beside the server and in its process, for the console and for the metrics.

A thread with an event loop of its own does all of it, by aiohttp, so the server's loop never waits for a page. What
strangers can take is bounded: connections in number and in time. A connection carries one request. The
last descriptors are the server's own (connections/limits.py).
"""

import asyncio
import ipaddress
import logging
import resource
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Final, TypeAlias

from aiohttp import web
from aiohttp.http import HttpProcessingError

from penstock.config.settings import Settings
from penstock.server.connections.limits import is_reserved
from penstock.server.listening import cannot_listen, tcp_socket
from penstock.server.turns.turn import Turn

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

MESSAGES: Final = logging.getLogger("penstock.http")  # see server/server_log.py
REQUEST_S: Final = 30.0  # from the first sweep that finds the connection to the last byte of the answer
SWEEP_S: Final = 1.0
PAUSE_S: Final = 0.2  # when the system has no descriptor left for a connection
END_S: Final = 0.5  # what open requests may take at the end
MOST_LINE: Final = 8190  # bytes of a request's line, of a header
SHARE_OF_FILES: Final = 8  # a port takes at most this part of the descriptors that the process may have


class HttpServer:
    """One port, from `start` to `stop`. Port 0 takes a free one: see `port`.

    While there are `most_connections`, a new one ends the oldest that is not known (`know`); if all are, it is closed.
    """

    def __init__(self, name: str, settings: Settings, most_connections: int, request_s: float = REQUEST_S) -> None:
        """name: `console` or `metrics`, as the directives NAME-port and NAME-bind have it."""
        self._settings = settings
        self._name = name
        self._host = settings.text(f"{name}-bind")
        self.port = settings.number(f"{name}-port")
        self._most = most_connections
        self._request_s = request_s
        self._known: set[asyncio.Protocol] = set()
        self._lasting: set[asyncio.Protocol] = set()
        self._deadlines_s: dict[asyncio.Protocol, float] = {}  # in the loop's time
        self._is_sweeping = False

    @property
    def url(self) -> str:
        shown = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{shown}:{self.port}/"

    def start(self, turn: Turn, make_app: Callable[[asyncio.AbstractEventLoop], web.Application]) -> None:
        """Listen; UsageError if that is impossible. `make_app` is called in the thread."""
        try:
            listener = tcp_socket(self._host, self.port)
            listener.listen()
        except OSError as problem:
            raise cannot_listen(self._settings, f"{self._name}-port", self._host, self.port, problem) from None
        self.port = listener.getsockname()[1]
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY:
            self._most = max(1, min(self._most, soft // SHARE_OF_FILES))
        self._loop = asyncio.new_event_loop()
        self._ending = asyncio.Event()
        Thread(target=self._run, args=(make_app, listener), name=f"penstock-{self._name}", daemon=True).start()

    def stop(self) -> None:
        """Stop listening, and end every connection; waits for nothing."""
        with suppress(RuntimeError):  # its loop has ended
            self._loop.call_soon_threadsafe(self._ending.set)

    def know(self, request: web.Request) -> None:
        """A request's sender may ask: no newer connection ends this one."""
        self._known.add(request.protocol)

    @contextmanager
    def without_deadline(self, request: web.Request) -> Iterator[None]:
        """The answer to a request is long, while the block lasts. Its writer bounds each piece in time."""
        self._lasting.add(request.protocol)
        try:
            yield
        finally:
            self._lasting.discard(request.protocol)

    # -- the thread ---------------------------------------------------------------------------------------------------

    def _run(self, make_app: Callable[[asyncio.AbstractEventLoop], web.Application], listener: socket.socket) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve(make_app, listener))

    async def _serve(
        self, make_app: Callable[[asyncio.AbstractEventLoop], web.Application], listener: socket.socket
    ) -> None:
        app = make_app(self._loop)
        app.on_response_prepare.append(close_after)
        MESSAGES.addFilter(is_our_fault)
        runner = web.AppRunner(
            app,
            access_log=None,
            logger=MESSAGES,
            handle_signals=False,
            handler_cancellation=True,  # a handler ends with its connection, else those that are gone take places
            max_line_size=MOST_LINE,
            max_field_size=MOST_LINE,
            shutdown_timeout=END_S,
        )
        await runner.setup()
        http = runner.server
        assert http is not None, "setup makes it"
        accepting = asyncio.create_task(self._accept(listener, http))
        await self._ending.wait()
        accepting.cancel()
        listener.close()
        await runner.cleanup()

    async def _accept(self, listener: socket.socket, http: web.Server) -> None:
        """Let connections in, one after another, so that there is never one more than there may be."""
        while True:
            try:
                link, _ = await self._loop.sock_accept(listener)
            except ConnectionAbortedError:
                continue
            except OSError:  # no descriptor is left: the clients wait
                await asyncio.sleep(PAUSE_S)
                continue
            if is_reserved(link.fileno()):
                link.close()
                continue
            self._forget(http)
            if len(http.connections) >= self._most and not await self._make_room(http):
                link.close()
                continue
            await self._loop.connect_accepted_socket(http, link)
            if not self._is_sweeping:
                self._is_sweeping = True
                self._loop.call_later(SWEEP_S, self._sweep, http)

    async def _make_room(self, http: web.Server) -> bool:
        """End the oldest connection that is not known; False where there is none."""
        for protocol in http.connections:
            if protocol not in self._known and protocol.transport is not None:
                protocol.transport.abort()
                await asyncio.sleep(0)  # it is told so in the loop's next turn
                return True
        return False

    def _sweep(self, http: web.Server) -> None:
        """End connections past their time. It begins with the first sweep that finds a connection."""
        self._forget(http)
        now_s = self._loop.time()
        for protocol in http.connections:
            is_late = self._deadlines_s.setdefault(protocol, now_s + self._request_s) <= now_s
            if is_late and protocol not in self._lasting and protocol.transport is not None:
                protocol.transport.abort()
        self._is_sweeping = bool(http.connections)
        if self._is_sweeping:
            self._loop.call_later(SWEEP_S, self._sweep, http)

    def _forget(self, http: web.Server) -> None:
        """Forget the connections that are gone."""
        there = set(http.connections)
        self._known &= there
        self._lasting &= there
        self._deadlines_s = {one: at_s for one, at_s in self._deadlines_s.items() if one in there}


async def close_after(request: web.Request, answer: web.StreamResponse) -> None:
    """A connection carries one request, so that its deadline is the request's."""
    answer.force_close()
    answer.headers["Connection"] = "close"


def is_our_fault(record: logging.LogRecord) -> bool:
    """Whether a message is worth a place in the log: strangers must not fill the disk with what is no HTTP."""
    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)


# -- the Host of a request --------------------------------------------------------------------------------------------


def names_an_address(request: web.Request) -> bool:
    """Whether a request names this server by an address, or as localhost.

    By the name of another site, a page of that site could have its own name lead here (DNS rebinding): what needs no
    login is answered under no name.
    """
    host = host_of(request.host)
    if host == "localhost":
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def host_of(name: str) -> str:
    """The host in a Host header.

    >>> host_of("localhost:8379"), host_of("[::1]:8379"), host_of("[::1]"), host_of("a.example")
    ('localhost', '::1', '::1', 'a.example')
    """
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0]
