"""Runs the requests of a master's stream, without gates; their changes go to this server's own log.

A change that is refused, or a command that is not known here, is reported, counted and skipped (Redis 8.6.3). Redis
runs whatever its master sends. Here a request ends the link if it is no change and the stream does not need it
(Row.is_replicated): a master may not change users, settings, roles or processes.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from penstock.engine.engine import Engine
from penstock.engine.session import Session
from penstock.engine.table.row import Row
from penstock.errors import ReplyError

SHOWN_ERRORS: Final = 10  # requests that were refused; more are only counted
PASSED_OVER: Final = frozenset([b"PING", b"REPLCONF"])

Change: TypeAlias = tuple[Row, list[bytes]]  # and its request


class NotReplicated(Exception):
    """A request that no master sends; the text names it. The stream ends; the requests before it were run."""


class StreamApplier:
    """Runs requests of one stream in order, those between MULTI and EXEC together. `report` takes lines for a person.

    wants_ack: the master has asked how far we are. refused: requests that were passed over.
    """

    def __init__(self, engine: Engine, db_index: int, report: Callable[[str], None]) -> None:
        """db_index: the database that the stream is in."""
        self._engine = engine
        self._report = report
        self._session = Session(0)
        self._session.privileged = True
        self._session.db_index = db_index
        self._unit: list[Change] | None = None  # since MULTI
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
        """Run the next requests of the stream. NotReplicated where one has no place in it."""
        for request in requests:
            name = request[0].upper()
            if name in PASSED_OVER:
                if name == b"REPLCONF" and len(request) > 1 and request[1].upper() == b"GETACK":
                    self.wants_ack = True
            elif self._unit is None and name == b"MULTI":
                self._unit = []
            elif self._unit is not None and name == b"EXEC":
                unit, self._unit = self._unit, None
                self._run(unit)
            else:
                row = self._row_of(request)
                if row is None:
                    continue
                if self._unit is None:
                    self._run([(row, request)])
                else:
                    self._unit.append((row, request))

    def _row_of(self, request: list[bytes]) -> Row | None:
        """The row of a change, None where the command is not known."""
        try:
            row = self._engine.commands.logged(request)
        except ReplyError as refusal:
            self._note(request, b"-" + refusal.text)
            return None
        if not row.is_replicated:
            raise NotReplicated(f"the master sent {row.name}, which no master sends to its replicas")
        return row

    def _run(self, unit: list[Change]) -> None:
        engine, session = self._engine, self._session
        ctx = engine.server.context
        now_us = engine.clock.now_us()
        engine.effects.is_one_unit = True
        waited, ctx.waits = ctx.waits, False
        misplaced = ""
        try:
            for row, request in unit:
                ctx.begin(session, now_us)
                try:
                    answer = engine.run(ctx, row, request, now_us)
                except ReplyError as refusal:
                    answer = b"-" + refusal.text
                if answer.startswith(b"-"):
                    self._note(request, answer)
                    if row.group == "connection":  # what follows would go to the wrong database
                        misplaced = f"the master's {row.name} was refused: {shown(answer)}"
                        break
        finally:  # after an unexpected error, too: log and keyspace must not differ
            ctx.waits = waited
            engine.effects.end_unit()
        engine.serve_ready(now_us)
        if misplaced:
            raise NotReplicated(misplaced)

    def _note(self, request: list[bytes], answer: bytes) -> None:
        self.refused += 1
        if self.refused <= SHOWN_ERRORS:
            name = request[0].decode("utf-8", "backslashreplace")
            self._report(f"Warning: the master sent {name}, which was refused and is passed over: {shown(answer)}")


def shown(answer: bytes) -> str:
    """An error reply for a person."""
    return answer[1:].strip().decode("utf-8", "backslashreplace")
