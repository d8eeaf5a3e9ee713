"""What the engine does beside a script that takes long, and when that is over."""

from typing import TYPE_CHECKING

from penstock.commands import refusals
from penstock.commands.session import Session
from penstock.errors import ReplyError
from penstock.protocol import reply

if TYPE_CHECKING:
    from penstock.commands.engine import Engine


def handle(engine: "Engine", session: Session, request: list[bytes]) -> bytes:
    """Answer a request while the server is busy: BUSY, but for what may stop the script or leaves the keys alone."""
    scripts = engine.scripts
    ctx = engine.context
    with scripts.calls.lock:
        ctx.aim(session, engine.clock.now_us())
        try:
            row = engine.named_row(request)
            if not row.fits(len(request)) or row.handler is None:
                raise refusals.arity(row.label)
            engine.admit(session, row)
            is_hard = row.name != "SHUTDOWN" or b"NOSAVE" in [word.upper() for word in request[1:]]
            if "allow_busy" not in row.flags or not is_hard:
                raise ReplyError(scripts.busy_text())
            if session.queue is not None and not row.transactional:
                session.queue.append((row, request))
                return reply.QUEUED
        except ReplyError as refusal:
            if session.queue is not None:
                session.queue_failed = True
            engine.statistics.reject(None, refusal.text)
            return reply.error(refusal.text)
        return engine.run(ctx, row, request, ctx.now_us)


def finish(engine: "Engine") -> None:
    """The script is over: its session gets the reply, its changes are logged, and who left meanwhile is forgotten."""
    if not engine.busy:
        return
    scripts = engine.scripts
    running, answer = scripts.take_late()
    engine.busy = False
    parked = running.parked
    assert parked is not None, "a late script has parked its session"
    now_us = engine.clock.now_us()
    engine.context.dirty += scripts.calls.dirty
    engine.effects.end_unit()
    failure = answer[1:-2] if answer.startswith(b"-") else None
    engine.statistics.ran(parked.row, now_us - running.began_us, failure)
    engine.release(parked, answer, 0)
    gone, scripts.gone = scripts.gone, []
    for session in gone:
        engine.disconnect(session)
    engine.serve_ready(now_us)
