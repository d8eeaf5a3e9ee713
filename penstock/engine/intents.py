"""The intent of a request, for the gate: a transaction counts by its requests, a script by its flags (Redis 8.6.3).

A script with a shebang, or a function, without the flag `no-writes` counts as writing, whatever it does.
"""

from collections.abc import Callable
from typing import TypeAlias

from penstock.engine.server_state import ServerState
from penstock.engine.session import Session
from penstock.engine.table.row import Row

Question: TypeAlias = Callable[[ServerState, Row, list[bytes]], bool]


def may_write(server: ServerState, session: Session, row: Row, request: list[bytes]) -> bool:
    """Whether a request may change data."""
    return _any(server, session, row, request, _writes)


def may_spread(server: ServerState, session: Session, row: Row, request: list[bytes]) -> bool:
    """Whether a request may change data, or have another effect that is sent to replicas."""
    return _any(server, session, row, request, _spreads)


def needs_memory(server: ServerState, session: Session, row: Row, request: list[bytes]) -> bool:
    """Whether a request is refused above maxmemory."""
    return _any(server, session, row, request, _needs_memory)


def needs_master(server: ServerState, session: Session, row: Row, request: list[bytes]) -> bool:
    """Whether a replica that has lost its master refuses a request, with `replica-serve-stale-data no`."""
    return _any(server, session, row, request, _needs_master)


def _any(server: ServerState, session: Session, row: Row, request: list[bytes], question: Question) -> bool:
    """The answer for a request; for EXEC, whether one of those that are queued has it."""
    if row.name != "EXEC":
        return question(server, row, request)
    for queued, batch in session.queue or ():
        for at in range(batch.count if queued.runs_script else 1):  # of others, the words do not matter
            if question(server, queued, batch.request(at)):
                return True
    return False


def _writes(server: ServerState, row: Row, request: list[bytes]) -> bool:
    flags = _script_flags(server, row, request)
    return row.write if flags is None else b"no-writes" not in flags


def _spreads(server: ServerState, row: Row, request: list[bytes]) -> bool:
    flags = _script_flags(server, row, request)
    return row.write or row.spreads if flags is None else b"no-writes" not in flags


def _needs_memory(server: ServerState, row: Row, request: list[bytes]) -> bool:
    flags = _script_flags(server, row, request)
    return row.denyoom if flags is None else b"no-writes" not in flags and b"allow-oom" not in flags


def _needs_master(server: ServerState, row: Row, request: list[bytes]) -> bool:
    flags = _script_flags(server, row, request)
    return "stale" not in row.flags if flags is None else b"allow-stale" not in flags


def _script_flags(server: ServerState, row: Row, request: list[bytes]) -> frozenset[bytes] | None:
    """The flags of what a request runs; None where it runs no script, or one without flags."""
    return server.scripts.flags_of(row, request[1]) if row.runs_script else None
