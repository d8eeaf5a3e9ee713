"""What a request may do, as the gate judges it: a transaction and a script by what is in them (Redis 8.6.3).

A script with a shebang, and a function, count by their flags: without `no-writes` they write, whatever they do then.
"""

from collections.abc import Callable
from typing import TypeAlias

from penstock.engine.engine_state import EngineState
from penstock.engine.session import Session
from penstock.engine.table.row import Row

Question: TypeAlias = Callable[[EngineState, Row, list[bytes]], bool]


def may_write(engine: EngineState, session: Session, row: Row, request: list[bytes]) -> bool:
    """Whether a request may change data."""
    return _any(engine, session, row, request, _writes)


def may_spread(engine: EngineState, session: Session, row: Row, request: list[bytes]) -> bool:
    """Whether a request may change data, or have another effect that is sent to replicas."""
    return _any(engine, session, row, request, _spreads)


def needs_memory(engine: EngineState, session: Session, row: Row, request: list[bytes]) -> bool:
    """Whether a request is refused above maxmemory."""
    return _any(engine, session, row, request, _needs_memory)


def needs_master(engine: EngineState, session: Session, row: Row, request: list[bytes]) -> bool:
    """Whether a replica that has lost its master refuses a request, with `replica-serve-stale-data no`."""
    return _any(engine, session, row, request, _needs_master)


def _any(engine: EngineState, session: Session, row: Row, request: list[bytes], question: Question) -> bool:
    """The answer for a request; for EXEC, whether one of those that are queued has it."""
    if row.name != "EXEC":
        return question(engine, row, request)
    for queued, batch in session.queue or ():
        for at in range(batch.count if queued.runs_script else 1):  # of others, the words do not matter
            if question(engine, queued, batch.request(at)):
                return True
    return False


def _writes(engine: EngineState, row: Row, request: list[bytes]) -> bool:
    flags = _script_flags(engine, row, request)
    return row.write if flags is None else b"no-writes" not in flags


def _spreads(engine: EngineState, row: Row, request: list[bytes]) -> bool:
    flags = _script_flags(engine, row, request)
    return row.write or row.spreads if flags is None else b"no-writes" not in flags


def _needs_memory(engine: EngineState, row: Row, request: list[bytes]) -> bool:
    flags = _script_flags(engine, row, request)
    return row.denyoom if flags is None else b"no-writes" not in flags and b"allow-oom" not in flags


def _needs_master(engine: EngineState, row: Row, request: list[bytes]) -> bool:
    flags = _script_flags(engine, row, request)
    return "stale" not in row.flags if flags is None else b"allow-stale" not in flags


def _script_flags(engine: EngineState, row: Row, request: list[bytes]) -> frozenset[bytes] | None:
    """The flags of what a request runs; None where it runs no script, or one without flags."""
    return engine.scripts.flags_of(row, request[1]) if row.runs_script else None
