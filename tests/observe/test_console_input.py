"""Whatever is sent to the console is answered, or refused as the sender's fault, and nothing is in the log of it."""

import http.client
import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
import redis

from penstock.observe.console.web import FILES
from tests.support.console_client import ConsoleClient, serving_console
from tests.support.seeds import seeds
from tests.support.server_process import ServerProcess

REQUESTS: Final = 60
GETS: Final = (*FILES, "/api/session", "/api/view", "/api/nothing", "/")
POSTS: Final = ("/api/login", "/api/action", "/api/login", "/api/action", "/api/nothing")
PARAMETERS: Final = ("view", "key", "group", "consumer", "id", "before", "after", "pattern", "db", "start", "idle_ms")
VIEWS: Final = ("overview", "stream", "group", "entry")
ACTIONS: Final = ("claim", "release", "acknowledge", "dead-letter", "redrive", "delete-consumer", "policy")
WORDS: Final = (  # of addresses
    b"s", b"g", b"0", b"1-0", b"", b"%ed%a0%80", b"\xff", b"\xed\xa0\x80", b"%", b"%zz", b"%00", b"\xc3\xa9", b"9" * 30,
    b"-1", b"%d9%a3", b"x" * 5000, b"%f0%9f%98%80", b"a&b=%ff", b"#\xfe",
)  # fmt: skip
VALUES: Final[tuple[object, ...]] = (  # of JSON
    "s", "g", "alice", "1-0", "", "\ud800", "\udfff\ud800", "a\udc80", "caf\u00e9", "\0", "%ff", 0, -1, 10**30, 1e400,
    None, True, [], ["1-0"], ["\ud800"], ["1-0", 7], {}, {"MAXLEN": "\ud800"}, {"\ud800": 1}, {"BACKOFF": "1 \udcff"},
    "FAIL", {"MAXLEN": "5", "REFERENCES": ["KEEPREF"]}, [[[]]], "\u0663", "dead",
)  # fmt: skip
BODIES: Final = (
    b"",
    b"\xff",
    b"{",
    b'{"user":',
    b"null",
    b'"\xed\xa0\x80"',
    b"[" * 5000,
    b'{"a":' + b"9" * 6000 + b"}",
)
CHARSETS: Final = ("", "; charset=utf-8", "; charset=nothing", "; charset=utf-7", "; charset=idna", "; charset=base64")
HEADERS: Final = ("Cookie", "X-CSRF-Token", "Origin", "Sec-Fetch-Site", "Host", "Accept-Encoding", "Content-Encoding")


@pytest.fixture(scope="module")
def serving() -> Iterator[tuple[ServerProcess, int]]:
    with serving_console() as (server, port), redis.Redis(port=server.port) as client:
        client.xadd("s", {"f": "v"}, id="1-0")
        client.xgroup_create("s", "g", "0")
        client.xreadgroup("g", "alice", {"s": ">"})
        yield server, port


class Attack:
    """Random requests of one seed, those of a page that has a session among them."""

    def __init__(self, seed: int, port: int) -> None:
        self._chance = random.Random(seed)
        self._port = port
        self._page = ConsoleClient(port)
        self._page.enter()

    def status(self) -> tuple[int, bytes]:
        """What one request is answered with, and its target."""
        method = self._chance.choice(("GET", "GET", "POST", "POST", "POST", "PUT", "HEAD"))
        target = self._target(POSTS if method == "POST" else GETS)
        headers = {b"Cookie": self._page.cookie.encode(), b"X-CSRF-Token": self._page.csrf.encode()}
        body = b""
        if method == "POST":
            body = self._body()
            headers[b"Content-Type"] = b"application/json" + self._chance.choice(CHARSETS).encode()
        if self._chance.random() < 0.2:
            headers[self._chance.choice(HEADERS).encode()] = self._chance.choice(WORDS)
        return self._sent(method.encode(), target, headers, body), target

    def _target(self, paths: tuple[str, ...]) -> bytes:
        path = self._chance.choice(paths).encode()
        if self._chance.random() < 0.1:
            path += b"/" + self._chance.choice(WORDS)
        asked = [b"view=" + self._chance.choice(VIEWS).encode(), b"key=s", b"group=g", b"id=1-0"]
        for _ in range(self._chance.randrange(3)):
            asked.append(self._chance.choice(PARAMETERS).encode() + b"=" + self._chance.choice(WORDS))
        self._chance.shuffle(asked)
        return path + b"?" + b"&".join(asked)

    def _body(self) -> bytes:
        if self._chance.random() < 0.1:
            return self._chance.choice(BODIES)
        asked: dict[str, object] = {"action": self._chance.choice(ACTIONS), "key": "s", "group": "g", "ids": ["1-0"]}
        asked |= {"user": "default", "password": "x", "run": True}
        for _ in range(self._chance.randrange(4)):
            name = self._chance.choice(
                (*asked, "consumer", "target", "mode", "options", "min_idle_ms", "delay_ms", "db")
            )
            asked[name] = self._chance.choice(VALUES)
        text = json.dumps(asked, ensure_ascii=self._chance.random() < 0.8)
        return text.encode(errors="surrogatepass")

    def _sent(self, method: bytes, target: bytes, headers: dict[bytes, bytes], body: bytes) -> int:
        link = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        link.connect()
        lines = [b"%s %s HTTP/1.1" % (method, target)]
        named: dict[bytes, bytes] = {b"Host": b"localhost", b"Content-Length": b"%d" % len(body)} | headers
        lines += [b"%s: %s" % one for one in named.items()]
        try:
            link.sock.sendall(b"\r\n".join([*lines, b"", body]))
            answer = http.client.HTTPResponse(link.sock, method=method.decode())
            answer.begin()
            answer.read()
            return answer.status
        finally:
            link.close()


@pytest.mark.parametrize("seed", seeds(2, 20))
def test_no_input_of_any_route_is_a_fault_of_the_console(serving: tuple[ServerProcess, int], seed: int) -> None:
    server, port = serving
    attack = Attack(seed, port)

    answered = [attack.status() for _ in range(REQUESTS)]

    assert [one for one in answered if one[0] >= 500] == []
    assert "Traceback" not in server.said


@pytest.mark.parametrize("name", ["user", "password"])
def test_a_login_with_a_lone_surrogate_is_refused(serving: tuple[ServerProcess, int], name: str) -> None:
    asked: dict[str, Any] = {"user": "default", "password": "x"} | {name: "\ud800"}

    assert ConsoleClient(serving[1]).post("/api/login", asked).status == 400
    assert "Traceback" not in serving[0].said


@pytest.mark.parametrize("path", ["/api/events?view=stream&key=s&before=\xff", "/api/view?view=entry&key=\xff"])
def test_an_address_that_is_no_text_is_refused(
    serving: tuple[ServerProcess, int], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """http.client sends only ASCII unless its check is told not to."""
    encoded: Callable[..., bytes] = lambda self, request: request.encode("latin-1")  # noqa: E731 # one expression
    monkeypatch.setattr(http.client.HTTPConnection, "_encode_request", encoded)
    console = ConsoleClient(serving[1])
    console.enter()

    assert console.get(path).status == 400
    assert "Traceback" not in serving[0].said
