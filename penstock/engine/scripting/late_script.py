"""The end of a script that took long: its reply, its changes, and what waited for it."""

from penstock.engine.scripting.scripts import Transaction, error_of
from penstock.engine.server_state import ServerState
from penstock.engine.session import Session
from penstock.engine.state import WEIGHED
from penstock.protocol import reply


def finish(server: ServerState) -> None:
    """The script is over: its session gets the reply, its changes are logged, and closed sessions are forgotten.

    Inside EXEC the rest of the transaction is run first, which may make the server busy again.
    """
    if not server.conditions.busy:
        return
    scripts = server.scripts
    running, answer = scripts.take_late()
    server.conditions.busy = False
    blocked, transaction = running.blocked, running.transaction
    assert blocked is not None, "a late script has parked its session"
    ctx = server.context
    ctx.begin(blocked.session, server.clock.now_us())
    ctx.dirty += scripts.calls.take_dirty()
    refusal = error_of(answer)
    if refusal is not None:
        answer = reply.error(refusal.text)
    server.runner.ran_late(ctx, blocked.row, blocked.args, running.began_us, refusal)
    if server.conditions.bits & WEIGHED:
        server.telemetry.large.note(ctx.session, ctx.now_us, blocked.row, blocked.args, len(answer))
    if transaction is not None:
        blocked.session.handled += 1
        transaction.answers.append(answer)
        _continue(server, blocked.session, transaction)
        if server.conditions.busy:
            return
        answer = reply.array(transaction.answers)
    server.effects.end_unit()
    server.waiting.release(blocked, answer, 0)
    server.clients.tracking.end_request(server.clients.outgoing)
    disconnected, scripts.disconnected = scripts.disconnected, []
    for session in disconnected:
        server.disconnect(session)
    server.runner.serve_ready(server.clock.now_us())


def _continue(server: ServerState, session: Session, transaction: Transaction) -> None:
    """Run the rest of a transaction, all of it by the time at which it began."""
    ctx, now_us = server.context, transaction.now_us
    ctx.begin(session, now_us)
    ctx.waits = False
    try:
        left = server.runner.run_queue(ctx, transaction.queue, transaction.answers)
    finally:
        ctx.waits = True
        ctx.resume(transaction.row, transaction.args)
    if server.conditions.busy:
        server.scripts.hold(ctx, left, transaction.answers)
        return
    server.runner.ran_late(ctx, transaction.row, transaction.args, now_us, None)
