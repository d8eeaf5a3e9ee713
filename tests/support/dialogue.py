"""A conversation with an engine, as a client would have it: words in, values out, no network."""

from typing import Any, cast

import hiredis

from penstock.engine.engine import Engine
from penstock.engine.session import Session
from tests.support.engines import EngineProxy
from tests.support.shell_words import split

NO_REPLY = "(no answer)"  # the session waits, or its replies are turned off


class Dialogue:
    """One session of an engine. Called with lines of words (in the shell's quoting), it returns the last reply.

    Replies are Python values: bytes, int, list, dict, None, and an exception (returned, not raised) for an error. Which
    of them it is, the test that asked says.
    """

    def __init__(self, engine: Engine | EngineProxy) -> None:
        self.engine = cast(Engine, engine)
        self.session: Session = engine.server.connect("127.0.0.1:50000", "127.0.0.1:6379")

    def __call__(self, *lines: str) -> Any:
        answer: object = NO_REPLY
        for line in lines:
            answer = decoded(self.raw(line))
        return answer

    def raw(self, line: str) -> bytes:
        """The reply's bytes; empty where there is none (yet)."""
        return self.words(*[word.encode() for word in split(line)])

    def words(self, *words: bytes) -> bytes:
        """As `raw`, for a request that a line cannot hold."""
        return self.engine.handle(self.session, list(words))

    def another(self) -> "Dialogue":
        """A second client of the same engine."""
        return Dialogue(self.engine)

    def arrived(self) -> list[Any]:
        """What this session was sent meanwhile (served waits, pushes), and is taken out of the engine's outbox."""
        outgoing = self.engine.clients.outgoing
        mine = [reply for session, reply in outgoing if session is self.session]
        outgoing[:] = [pair for pair in outgoing if pair[0] is not self.session]
        return [value for reply in mine for value in decoded_all(reply)]


def decoded(reply: bytes) -> Any:
    """One reply as a Python value; NO_REPLY for none."""
    values = decoded_all(reply)
    assert len(values) < 2, f"more than one reply: {reply!r}"
    return values[0] if values else NO_REPLY


def decoded_all(replies: bytes) -> list[Any]:
    reader = hiredis.Reader(notEnoughData=NO_REPLY)
    reader.feed(replies)
    values: list[Any] = []
    while reader.has_data():
        value = reader.gets()
        assert value is not NO_REPLY, f"an unfinished reply: {replies!r}"
        values.append(value)
    return values
