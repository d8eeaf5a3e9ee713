"""What a master sends is run here, without gates; what it changes goes to this server's own log.

A request that is refused is told, counted and passed over (Redis 8.6.3): the next one may be right.
"""

from collections.abc import Callable
from typing import Final

from penstock.engine.engine import Engine
from penstock.engine.session import Session
from penstock.errors import ReplyError

SHOWN_ERRORS: Final = 10  # requests that were refused; more are only counted
PASSED_OVER: Final = frozenset([b"PING", b"REPLCONF"])


class StreamApplier:
    """Runs requests of one stream in order, those between MULTI and EXEC together. `tell` takes lines for a person.

    wants_ack: the master has asked how far we are. refused: requests that were passed over.
    """

    def __init__(self, engine: Engine, db_index: int, tell: Callable[[str], None]) -> None:
        """db_index: the database that the stream is in."""
        self._engine = engine
        self._tell = tell
        self._session = Session(0)
        self._session.privileged = True
        self._session.db_index = db_index
        self._unit: list[list[bytes]] | None = None  # since MULTI
        self.wants_ack = False
        self.refused = 0

    @property
    def db_index(self) -> int:
        return self._session.db_index

    @property
    def is_amid(self) -> bool:
        """Whether a MULTI has come without its EXEC."""
        return self._unit is not None

    def apply(self, requests: list[list[bytes]]) -> None:
        """Run the next requests of the stream."""
        for request in requests:
            name = request[0].upper()
            if self._unit is not None:
                if name == b"EXEC":
                    unit, self._unit = self._unit, None
                    self._run(unit)
                else:
                    self._unit.append(request)
            elif name == b"MULTI":
                self._unit = []
            elif name not in PASSED_OVER:
                self._run([request])
            elif name == b"REPLCONF" and len(request) > 1 and request[1].upper() == b"GETACK":
                self.wants_ack = True

    def _run(self, unit: list[list[bytes]]) -> None:
        engine, session = self._engine, self._session
        ctx = engine.context
        now_us = engine.clock.now_us()
        engine.effects.is_one_unit = True
        waited, ctx.waits = ctx.waits, False
        for request in unit:
            ctx.begin(session, now_us)
            try:
                row = engine.logged_row(request)
                answer = engine.run(ctx, row, request, now_us)
            except ReplyError as refusal:
                answer = b"-" + refusal.text
            if answer.startswith(b"-"):
                self._note(request, answer)
        ctx.waits = waited
        engine.effects.end_unit()
        engine.serve_ready(now_us)

    def _note(self, request: list[bytes], answer: bytes) -> None:
        self.refused += 1
        if self.refused <= SHOWN_ERRORS:
            name = request[0].decode("utf-8", "backslashreplace")
            why = answer[1:].strip().decode("utf-8", "backslashreplace")
            self._tell(f"Warning: the master sent {name}, which was refused and is passed over: {why}")
