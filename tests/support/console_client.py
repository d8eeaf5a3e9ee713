"""A server process with a console, and a browser's part in talking to it, without a browser."""

import http.client
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from urllib.parse import urlencode

from tests.support.scraping import free_port
from tests.support.server_process import ServerProcess, running_server

PATIENCE_S = 60.0


@contextmanager
def serving_console(*flags: str) -> Iterator[tuple[ServerProcess, int]]:
    """A server process, and the port of its console. Another process may take a port that was free a moment ago."""
    with ExitStack() as stack:
        for _ in range(9):
            port = free_port()
            with suppress(AssertionError):
                server = stack.enter_context(running_server("--console-port", str(port), *flags))
                break
        else:
            raise AssertionError("no port stays free")
        yield server, port


class Answer:
    """What the console answered."""

    def __init__(self, answer: http.client.HTTPResponse, body: bytes) -> None:
        self.status = answer.status
        self.headers = answer.headers
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class ConsoleClient:
    """Asks a console, with the cookie and the token that it gave."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cookie = ""
        self.csrf = ""

    def get(self, path: str, **headers: str) -> Answer:
        return self._ask("GET", path, None, headers)

    def post(self, path: str, body: object, **headers: str) -> Answer:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self._ask("POST", path, sent, {"Content-Type": "application/json", "X-CSRF-Token": self.csrf} | headers)

    def enter(self, user: str = "", password: str = "") -> Answer:
        """Get a session: by a password if there is one."""
        answer = self.post("/api/login", {"user": user, "password": password}) if password else self.get("/api/session")
        if answer.headers["Set-Cookie"]:
            self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
            self.csrf = answer.json["csrf"]
        return answer

    def view(self, kind: str, **asked: str) -> Any:
        answer = self.get("/api/view?" + urlencode({"view": kind} | asked))
        assert answer.status == 200, answer.body
        return answer.json

    def act(self, action: str, **asked: object) -> Any:
        """The action's lines and replies; without `run`, its lines."""
        answer = self.post("/api/action", {"action": action} | asked)
        assert answer.status == 200, answer.body
        return answer.json

    @contextmanager
    def events(self, kind: str, **asked: str) -> Iterator[Iterator[Any]]:
        """The view as often as it changes, for as long as the block lasts."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        link.request("GET", "/api/events?" + urlencode({"view": kind} | asked), headers={"Cookie": self.cookie})
        answer = link.getresponse()
        try:
            yield (json.loads(line[6:]) for line in iter(answer.readline, b"") if line.startswith(b"data: "))
        finally:
            answer.close()
            link.close()

    def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookie:
            named["Cookie"] = self.cookie
        try:
            link.request(method, path, body, named)
            answer = link.getresponse()
            return Answer(answer, answer.read())
        finally:
            link.close()
