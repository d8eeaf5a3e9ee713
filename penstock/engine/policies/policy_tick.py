"""The tick of policies: leases, holds, moves, trims and pauses that become due by time."""

from collections.abc import Iterator
from typing import Final

from penstock.engine.policies import forwarding, giving_back, settling
from penstock.engine.policies.tick_budget import TickBudget
from penstock.engine.server_state import ServerState
from penstock.engine.session import NO_CLIENT
from penstock.storage.deadlines import NEVER
from penstock.storage.keyspace import Database
from penstock.storage.policies.stream_policies import AT_ONCE, StreamPolicies
from penstock.storage.streams.stream import Stream

STREAMS_A_TICK: Final = 1000
RETRY_MS: Final = 1000  # while the log cannot be written


def run(server: ServerState, now_us: int) -> None:
    """Look at the streams whose moment has come, each a unit of its own, as far as the tick's budget reaches."""
    now_ms = now_us // 1000
    if not _may_run(server, now_ms):
        if not server.policies.are_applied():
            server.policies.slept = True
            server.policies.ended.clear()  # the master decides, by leases
        return
    if server.policies.slept:
        _wake_up(server, now_ms)
    if server.conditions.trouble is not None:
        server.policies.retry_ms = now_ms + RETRY_MS
        return
    ctx = server.context
    ctx.begin(NO_CLIENT, now_us)
    budget = TickBudget(server.clock)
    giving_back.run(ctx, budget)
    databases, first_db = server.keyspace.databases, server.policies.first_db
    server.policies.first_db = 0
    for db_index in [*range(first_db, len(databases)), *range(first_db)]:
        order = databases[db_index].policies_due.order
        due = [key for when_ms, key in order.part(0, STREAMS_A_TICK) if when_ms <= now_ms]
        ctx.select(db_index)
        for place, key in enumerate(due):
            if budget.is_over():
                server.policies.first_db = server.policies.first_db or (db_index + (place > 0)) % len(databases)
                break
            stream = ctx.value(key)
            if isinstance(stream, Stream):
                settling.look_at(ctx, key, stream, budget)
            server.effects.end_unit()
    if server.policies.log.due_ms <= now_ms:
        server.policies.log.report_due(now_ms)


def next_ms(server: ServerState, now_ms: int) -> int:
    """Next unix ms at which `run` has something to do; NEVER if there is none. O(databases)."""
    if not _may_run(server, now_ms):
        return NEVER
    due_ms = min([db.policies_due.first_ms() for db in server.keyspace.databases])
    due_ms = min(due_ms, server.policies.log.due_ms)
    if server.policies.ended:
        due_ms = now_ms
    if due_ms == NEVER:
        return NEVER
    return max(due_ms, server.policies.retry_ms if server.conditions.trouble is not None else 1)


def follow_jump(server: ServerState, by_ms: int) -> None:
    """Unix time has jumped. Spans that RATE and IDLEGROUP count are moved; leases and holds follow unix time.

    After a jump backwards those that had ended may end once more, and their readers hear of it. O(groups).
    """
    server.policies.log.move(by_ms)
    for db, key, stream, policies in _with_policies(server):
        policies.move(by_ms)
        for group in stream.groups.values():
            if group.policy is not None:
                group.policy.window.move(by_ms)
                group.policy.examine_anew()
        policies.due_ms = policies.groups_due_ms = AT_ONCE
        db.note_policies(key, stream)


def _wake_up(server: ServerState, now_ms: int) -> None:
    """Changes while policies slept were not noted: process all streams."""
    server.policies.slept = False
    for db, key, stream, policies in _with_policies(server):
        policies.start_sweep()
        policies.forget_uses()
        for group in stream.groups.values():
            if group.policy is not None:
                group.policy.forget_order()
                group.policy.examine_anew()
        policies.due_ms = policies.groups_due_ms = AT_ONCE
        target = db.values.get(policies.settings.forward or b"")
        if policies.settings.every_field is not None and isinstance(target, Stream):
            forwarding.take_over(key, policies, target, now_ms)
        db.note_policies(key, stream)


def _with_policies(server: ServerState) -> Iterator[tuple[Database, bytes, Stream, StreamPolicies]]:
    """The streams with policies of their own or of their groups, with their keys."""
    for db in server.keyspace.databases:
        for key in list(db.policies_due.times):
            stream = db.values[key]
            if isinstance(stream, Stream) and stream.policies is not None:
                yield db, key, stream, stream.policies


def _may_run(server: ServerState, now_ms: int) -> bool:
    policies = server.policies
    return (
        policies.used
        and server.policies.are_applied()
        and not server.conditions.loading
        and not server.conditions.writes_paused(now_ms)
    )
