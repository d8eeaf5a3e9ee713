"""Dialogues written down: replies as they stand on the wire, and what each request adds to the log."""

import shlex
from pathlib import Path

import pytest

from penstock.engine.engine import Engine
from penstock.protocol.limits import Limits
from penstock.protocol.request_reader import RequestReader
from tests.support.engines import make_engine
from tests.support.log import UnitLog

FOLDER = Path(__file__).parent / "transcripts"


def engine_with(log: UnitLog | None) -> Engine:
    return make_engine(log=log)


def shown(reply: bytes) -> str:
    """A reply in the transcripts' notation."""
    text, used = _shown(reply, 0)
    assert used == len(reply), "one request, one reply"
    return text


def _shown(reply: bytes, at: int) -> tuple[str, int]:
    end = reply.index(b"\r\n", at)
    kind, head, at = chr(reply[at]), reply[at + 1 : end].decode(), end + 2
    if kind in "+-":
        return kind + head, at
    if kind == ":":
        return head, at
    if kind == "_":
        return "_", at
    if head == "-1":
        return {"$": "null", "*": "null-array"}[kind], at
    if kind == "$":
        return f'"{reply[at : at + int(head)].decode()}"', at + int(head) + 2
    elements = []
    for _ in range(int(head) * (2 if kind == "%" else 1)):
        element, at = _shown(reply, at)
        elements.append(element)
    if kind == "*":
        return f"[{', '.join(elements)}]", at
    assert kind == "%", kind
    return "{" + ", ".join(
        f"{key}: {value}" for key, value in zip(elements[::2], elements[1::2], strict=True)
    ) + "}", at


def lines_of(name: str) -> list[str]:
    text = (FOLDER / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("name", ["streams.txt", "xnack.txt", "maxcount.txt"])
def test_replies_are_as_written_down(name: str) -> None:
    engine = engine_with(None)
    session = engine.connect()
    asked = ""
    for line in lines_of(name):
        if line == "resp 3":
            session.resp = 3
        elif line.startswith("> "):
            asked = line
        else:
            words = [word.encode() for word in shlex.split(asked[2:])]
            assert (asked, shown(engine.handle(session, words))) == (asked, line)


def test_the_log_is_as_written_down() -> None:
    log = UnitLog()
    engine = engine_with(log)
    session = engine.connect()
    asked = ""
    for line in lines_of("propagation.txt"):
        if line.startswith("> "):
            asked = line
            log.units.clear()
            engine.handle(session, [word.encode() for word in shlex.split(asked[2:])])
        else:
            assert (asked, " ; ".join(_requests(b"".join(log.units))) or "(nothing)") == (asked, line)


def _requests(unit: bytes) -> list[str]:
    reader = RequestReader(Limits())
    reader.feed(unit)
    requests = []
    while batches := reader.take(1):
        (request,) = [batch.request(at) for batch in batches for at in range(batch.count)]
        if request[0] not in (b"MULTI", b"EXEC", b"SELECT"):
            requests.append(b" ".join(request).decode())
    return requests
