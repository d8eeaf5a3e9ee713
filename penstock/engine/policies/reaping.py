"""Reaping: consumers that hold nothing and were not seen for long are removed (REAP)."""

from typing import Final

from penstock.engine.context import Context
from penstock.engine.policies import policy_notes
from penstock.storage.deadlines import NEVER
from penstock.storage.policies.group_policy import GroupPolicy
from penstock.storage.policies.stream_policies import NONE
from penstock.storage.streams.pending.group import Group

LOOKED_AT_EVERY_MS: Final = 1000  # a consumer that would be removed but for its entries or its blocked reader


def reap(ctx: Context, key: bytes, group: Group, policy: GroupPolicy) -> int:
    """Remove the consumers that are due; returns when to look again, NEVER without REAP.

    O(1) before that, then O(consumers).
    """
    reap_ms = policy.settings.reap_ms
    if reap_ms == NONE:
        return NEVER
    if ctx.now_ms < policy.reap_due_ms:
        return policy.reap_due_ms
    blocking = ctx.blocking
    blocking.note_seen(ctx.db_index, key)
    reading = blocking.reading_consumers(ctx.db_index, key, group.name)
    due_ms = NEVER
    for consumer in group.consumers_by_name():
        if ctx.now_ms - consumer.seen_ms < reap_ms:
            due_ms = min(due_ms, consumer.seen_ms + reap_ms)
        elif consumer.pending or consumer.name in reading:
            due_ms = min(due_ms, ctx.now_ms + LOOKED_AT_EVERY_MS)
        else:
            group.remove_consumer(consumer)
            policy.reaped += 1
            policy_notes.reaped(ctx, key, group.name, consumer.name, reap_ms)
            ctx.policies.reaped += 1
            ctx.count_group_changes(key, 1)
            ctx.log(b"XGROUP", b"DELCONSUMER", key, group.name, consumer.name)
            ctx.event("t", b"xgroup-delconsumer", key)
    policy.reap_due_ms = due_ms
    return due_ms
