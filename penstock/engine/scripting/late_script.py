"""The end of a script that took long: its reply, its changes, and what waited for it."""

from penstock.engine.engine_state import EngineState
from penstock.engine.scripting.scripts import Transaction, error_of
from penstock.engine.session import Session
from penstock.protocol import reply


def finish(engine: EngineState) -> None:
    """The script is over: its session gets the reply, its changes are logged, and closed sessions are forgotten.

    Inside EXEC the rest of the transaction is run first, which may make the server busy again.
    """
    if not engine.busy:
        return
    scripts = engine.scripts
    running, answer = scripts.take_late()
    engine.busy = False
    blocked, transaction = running.blocked, running.transaction
    assert blocked is not None, "a late script has parked its session"
    ctx = engine.context
    ctx.begin(blocked.session, engine.clock.now_us())
    ctx.dirty += scripts.calls.take_dirty()
    refusal = error_of(answer)
    if refusal is not None:
        answer = reply.error(refusal.text)
    engine.ran_late(ctx, blocked.row, blocked.args, running.began_us, refusal)
    if transaction is not None:
        blocked.session.handled += 1
        transaction.answers.append(answer)
        _continue(engine, blocked.session, transaction)
        if engine.busy:
            return
        answer = reply.array(transaction.answers)
    engine.effects.end_unit()
    engine.release(blocked, answer, 0)
    engine.tracking.end_request(engine.outgoing)
    disconnected, scripts.disconnected = scripts.disconnected, []
    for session in disconnected:
        engine.disconnect(session)
    engine.serve_ready(engine.clock.now_us())


def _continue(engine: EngineState, session: Session, transaction: Transaction) -> None:
    """Run the rest of a transaction, all of it by the time at which it began."""
    ctx, now_us = engine.context, transaction.now_us
    ctx.begin(session, now_us)
    ctx.waits = False
    try:
        left = engine.run_queue(ctx, transaction.queue, transaction.answers)
    finally:
        ctx.waits = True
        ctx.take_up(transaction.row, transaction.args)
    if engine.busy:
        engine.scripts.hold(ctx, left, transaction.answers)
        return
    engine.ran_late(ctx, transaction.row, transaction.args, now_us, None)
