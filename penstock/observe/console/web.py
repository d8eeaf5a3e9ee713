"""The console's pages and its JSON over HTTP: what each session may ask.

Nothing is answered without a session except the page itself, which is the same for all. A change needs the
session's cookie, which browsers do not send from other sites, and the token that only the page can read.
"""

import asyncio
import json
import time
from collections.abc import Callable
from importlib import resources
from typing import Final

from aiohttp import web

from penstock.config.settings import Settings
from penstock.engine.session import Endpoints
from penstock.observe.console import names
from penstock.observe.console.actions import Action, BadAction
from penstock.observe.console.engine_client import EngineDoor, Gone
from penstock.observe.console.logins import Login, Logins, Refused
from penstock.observe.console.replies import RefusedByServer
from penstock.observe.console.views import BadQuestion, View
from penstock.observe.http_server import Handler, HttpServer, names_an_address
from penstock.server.connections.admission import is_loopback
from penstock.server.connections.connection import endpoints_of

FILES: Final = {
    "/": ("index.html", "text/html"),
    "/console.css": ("console.css", "text/css"),
    "/console.js": ("console.js", "text/javascript"),
    "/elements.js": ("elements.js", "text/javascript"),
    "/views.js": ("views.js", "text/javascript"),
    "/other_views.js": ("other_views.js", "text/javascript"),
    "/actions.js": ("actions.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
    " connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
CSRF: Final = "X-CSRF-Token"
MOST_BODY: Final = 65536
PERIOD_S: Final = 2.0  # from one turn of a view to the next, if it costs little
LONGEST_PERIOD_S: Final = 60.0
COST_TO_PERIOD: Final = 250.0  # a view with a turn of 10 ms of this thread is read every 2.5 s
STREAMS_A_LOGIN: Final = 12  # views kept up to date at a time
STREAMS_IN_ALL: Final = 64
TAKEN_S: Final = 30.0  # a page that does not take what it is sent for so long has left


class Console:
    """The handlers of one console."""

    def __init__(self, door: EngineDoor, settings: Settings, http: HttpServer, now_s: Callable[[], float]) -> None:
        self._settings = settings
        self._http = http
        self._logins = Logins(door, now_s)
        self._cookie = f"penstock_console_{http.port}"  # cookies do not tell ports apart
        page = resources.files("penstock.observe.console") / "page"
        self._files = {path: ((page / name).read_bytes(), kind) for path, (name, kind) in FILES.items()}
        self._streams = 0
        self._ending = asyncio.Event()

    def app(self) -> web.Application:
        app = web.Application(client_max_size=MOST_BODY, middlewares=[self._guard])
        for path in FILES:
            app.router.add_get(path, self._file)
        app.router.add_get("/api/session", self._session)
        app.router.add_post("/api/login", self._login)
        app.router.add_post("/api/logout", self._logout)
        app.router.add_get("/api/view", self._view)
        app.router.add_get("/api/events", self._events)
        app.router.add_post("/api/action", self._action)
        app.on_shutdown.append(self._end_pages)
        app.on_cleanup.append(self._end)
        return app

    async def _end_pages(self, app: web.Application) -> None:
        self._ending.set()

    async def _end(self, app: web.Application) -> None:
        self._logins.end_all()

    # -- rights -------------------------------------------------------------------------------------------------------

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse what other sites send, and say in every answer what browsers may do with it."""
        try:
            if not is_encodable(request.path_qs):
                answer: web.StreamResponse = refusal(400, NO_TEXT)
            elif request.path.startswith("/api/") and not is_of_this_site(request):
                answer = refusal(403, "The request comes from another site.")
            else:
                answer = await handler(request)
        except web.HTTPException as failure:
            answer = refusal(failure.status, failure.reason)
        except Gone as problem:
            answer = refusal(503, str(problem))
        except Refused as problem:
            answer = refusal(403, str(problem))
        except (BadQuestion, BadAction) as problem:
            answer = refusal(400, str(problem))
        except RefusedByServer as problem:
            answer = refusal(409, str(problem))
        if not answer.prepared:
            answer.headers.update(HEADERS)
        return answer

    def _known(self, request: web.Request) -> Login:
        """The session of a request; 401 without one."""
        login = self._logins.of_token(request.cookies.get(self._cookie, ""))
        if login is None:
            raise web.HTTPUnauthorized(reason="Log in first.")
        if not login.has_password and not self._may_be_unknown(request):
            raise web.HTTPForbidden(reason=NO_PASSWORD)
        self._http.know(request)
        return login

    def _changing(self, request: web.Request) -> Login:
        """The session of a request that changes something; 403 without the page's token."""
        login = self._known(request)
        if not login.may_change(request.headers.get(CSRF, "")):
            raise web.HTTPForbidden(reason="The page is out of date: load it again.")
        return login

    def _may_be_unknown(self, request: web.Request) -> bool:
        """Whether a request may do without a password: it names an address or localhost, and comes from this machine.

        Without protected-mode other machines may, as they may connect to the server.
        """
        if not names_an_address(request):
            return False
        peer = request.transport.get_extra_info("peername") if request.transport is not None else None
        return isinstance(peer, tuple) and (is_loopback(peer[0]) or not self._settings.yes("protected-mode"))

    # -- the page, and logging in -------------------------------------------------------------------------------------

    async def _file(self, request: web.Request) -> web.Response:
        body, kind = self._files[request.path]
        return web.Response(body=body, content_type=kind, charset="utf-8")

    async def _session(self, request: web.Request) -> web.Response:
        """The login that asks; without a session, a new one is made if the server wants no password."""
        login = self._logins.of_token(request.cookies.get(self._cookie, ""))
        if login is not None and not login.has_password and not self._may_be_unknown(request):
            login = None
        if login is None and self._may_be_unknown(request):
            login = await self._logins.without_password(browser_of(request))
        if login is None:
            return web.json_response({"user": None})
        return self._with_cookie(login)

    async def _login(self, request: web.Request) -> web.Response:
        asked = await json_of(request)
        user, password = asked.get("user"), asked.get("password")
        if not isinstance(user, str) or not isinstance(password, str):
            raise web.HTTPBadRequest(reason="A login has a user and a password.")
        login = await self._logins.with_password(user or "default", password, browser_of(request))
        return self._with_cookie(login)

    def _with_cookie(self, login: Login) -> web.Response:
        answer = web.json_response({"user": login.user, "csrf": login.csrf, "hasPassword": login.has_password})
        answer.set_cookie(self._cookie, login.token, httponly=True, samesite="Strict", path="/")
        return answer

    async def _logout(self, request: web.Request) -> web.Response:
        self._logins.end(self._changing(request))
        answer = web.json_response({})
        answer.del_cookie(self._cookie, path="/")
        return answer

    # -- views --------------------------------------------------------------------------------------------------------

    async def _view(self, request: web.Request) -> web.Response:
        login = self._known(request)
        return web.json_response(await View(login.client, request.query).read())

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """A view as server-sent events: at once, and again at each turn, until the page leaves."""
        login = self._known(request)
        view = View(login.client, request.query)
        if login.streams_open >= STREAMS_A_LOGIN or self._streams >= STREAMS_IN_ALL:
            return refusal(429, "Too many pages are open.")
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream", **HEADERS})
        login.streams_open += 1
        self._streams += 1
        try:
            with self._http.without_deadline(request):
                await answer.prepare(request)
                await self._keep_sending(login, view, answer)
        except (ConnectionError, TimeoutError, Gone):
            pass  # the page has left, or the session's connection has ended: the page asks for its session again
        finally:
            login.streams_open -= 1
            self._streams -= 1
        return answer

    async def _keep_sending(self, login: Login, view: View, answer: web.StreamResponse) -> None:
        """Send the view at each turn. A view that costs much is read seldom, so that a page takes little of a core.

        Until an overview knows all groups it is read at every turn: at most 10,000 streams, in a few turns.
        """
        while not self._ending.is_set() and self._logins.of_token(login.token) is login:
            began_s = time.thread_time()
            found = await view.read()
            shown = json.dumps(found, separators=(",", ":")).encode()
            async with asyncio.timeout(TAKEN_S):
                await answer.write(b"data: " + shown + b"\n\n")
            is_looking = found.get("looked", 0) < found.get("total", 0)
            period_s = 0.0 if is_looking else (time.thread_time() - began_s) * COST_TO_PERIOD
            try:
                await asyncio.wait_for(self._ending.wait(), min(max(period_s, PERIOD_S), LONGEST_PERIOD_S))
            except TimeoutError:
                continue

    # -- actions ------------------------------------------------------------------------------------------------------

    async def _action(self, request: web.Request) -> web.Response:
        """The requests of an action as lines; with `run`, they are sent, and the replies are there too."""
        login = self._changing(request)
        asked = await json_of(request)
        action = Action(login.client, asked)
        requests = await action.requests()
        is_run = asked.get("run") is True
        sent = await action.run(requests) if is_run else [(words, None) for words in requests]
        step = action.step
        lines = [names.request_line(words) for words in [*step.asked, *[words for words, _ in sent]]]
        if action.db:
            lines.insert(0, f"SELECT {action.db}")
        about: dict[str, object] = {"entries": step.entries, "after": step.after} if step.asked else {}
        if not is_run:
            return web.json_response({"lines": lines} | about)
        replies = [names.reply_lines(reply) for _, reply in sent]
        replies[:0] = [[f"{step.entries} entries"] for _ in step.asked]
        if action.db:
            replies.insert(0, ["OK"])
        return web.json_response({"lines": lines, "replies": replies} | about)


NO_TEXT: Final = "The request has text that cannot be encoded."
NO_PASSWORD: Final = "Without a password the console is for this machine only, under its address or as localhost."


def browser_of(request: web.Request) -> Endpoints:
    """The addresses of the connection that a request has come by. Gone if that has ended."""
    if request.transport is None:
        raise Gone("the page has left")
    return endpoints_of(request.transport)


def is_of_this_site(request: web.Request) -> bool:
    """Whether a request is from the console's own page, a POST with JSON, or from a program that is no browser.

    Also one that only asks: each that has no session would begin one, and end the session that was unused for longest.
    """
    origin = request.headers.get("Origin")
    if origin is not None and origin.partition("://")[2] != request.host:
        return False
    if request.method == "POST" and request.content_type != "application/json":
        return False
    return request.headers.get("Sec-Fetch-Site", "same-origin") in ("same-origin", "none")


def is_encodable(text: str) -> bool:
    r"""Whether a text can be sent to the server. JSON's escapes, and a target that is no UTF-8, make lone surrogates.

    >>> is_encodable("caf\u00e9"), is_encodable("\ud800")
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


async def json_of(request: web.Request) -> dict[str, object]:
    """The body, an object in UTF-8 with texts that can all be encoded; 400 for anything else.

    What the Content-Type says of a charset is not used: JSON between systems is UTF-8 (RFC 8259, 8.1).
    """
    body = await request.read()
    try:
        asked = json.loads(body.decode())
        encodable = is_encodable(json.dumps(asked, ensure_ascii=False))
    except (ValueError, RecursionError):
        raise web.HTTPBadRequest(reason="The body is no JSON.") from None
    if not encodable:
        raise web.HTTPBadRequest(reason=NO_TEXT)
    if not isinstance(asked, dict):
        raise web.HTTPBadRequest(reason="The body is no JSON object.")
    return asked


def refusal(status: int, text: str) -> web.Response:
    return web.json_response({"error": text}, status=status)
