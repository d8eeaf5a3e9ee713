"""The field `penstock-policy` of XINFO, which is there only while a policy is set."""

from typing import Final

from penstock.engine.context import Context
from penstock.engine.policies import forwarding, keys, leases, limits, retention
from penstock.protocol import reply
from penstock.storage.deadlines import NEVER
from penstock.storage.policies.group_policy import FOREVER, GroupPolicy
from penstock.storage.policies.stream_policies import NONE
from penstock.storage.streams import ids
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.stream import Stream

NAME: Final = b"penstock-policy"


def of_stream(ctx: Context, stream: Stream) -> list[tuple[bytes, bytes]]:
    """The field of a stream's own policy; none if there is no such policy, or a named compat-version."""
    policies = stream.policies
    if policies is None or not policies.settings.is_set or not ctx.policies.kept:
        return []
    settings = policies.settings
    retention.count_bytes(stream, policies)
    next_ms = min(retention.next_ms(stream, policies), forwarding.next_ms(stream, policies))
    shown = [
        (b"maxlen", _number(ctx, settings.max_length)),
        (b"maxage", _number(ctx, settings.max_age_ms)),
        (b"refs", reply.bulk(retention.REFERENCE_NAMES[settings.references])),
        (b"floor", _text(ctx, None if policies.floor == ids.ZERO else ids.text(policies.floor))),
        (b"forward", _text(ctx, settings.forward)),
        (b"at", _text(ctx, settings.at_field)),
        (b"after", _number(ctx, settings.after_ms)),
        (b"next", _number(ctx, NONE if next_ms == NEVER else next_ms)),
        (b"trimmed", reply.integer(policies.trimmed)),
        (b"forwarded", reply.integer(policies.forwarded)),
        (b"blocked", _text(ctx, policies.blocked or None)),
    ]
    if settings.shows_more:
        recurs, count = settings.every_field is not None, policies.byte_count
        shown += [
            (b"maxbytes", _number(ctx, settings.max_bytes)),
            (b"bytes", reply.integer(0 if count is None else count.total)),
            (b"idlegroup", _number(ctx, settings.idle_group_ms)),
            (b"idle-groups", reply.integer(len(policies.idle))),
            (b"every", _text(ctx, settings.every_field)),
            (b"missed", _text(ctx, (settings.missed or forwarding.ONCE).lower() if recurs else None)),
            (b"copied", reply.integer(policies.copied)),
        ]
    return [(NAME, reply.fields(shown, ctx.resp3))]


def of_group(ctx: Context, stream: Stream, group: Group) -> list[tuple[bytes, bytes]]:
    """The field of a group's policy; none if there is no such policy, or a named compat-version."""
    policy = group.policy
    if policy is None or not policy.settings.is_set or not ctx.policies.kept:
        return []
    settings = policy.settings
    next_ms = leases.next_ms(ctx, stream, group, policy)
    shown = [
        (b"ackwait", _number(ctx, settings.ack_wait_ms)),
        (b"backoff-min", _number(ctx, settings.backoff_min_ms)),
        (b"backoff-max", _number(ctx, settings.backoff_max_ms)),
        (b"jitter", reply.integer(max(settings.jitter_percent, 0))),
        (b"maxdeliver", _number(ctx, settings.max_deliver)),
        (b"deadletter", _text(ctx, settings.dead_letter)),
        (b"reap", _number(ctx, settings.reap_ms)),
        (b"key", _text(ctx, settings.key_field)),
        (b"held", reply.integer(policy.held_count(ctx.now_ms))),
        (b"waiting", reply.integer(_waiting(ctx, stream, group, policy))),
        (b"next", _number(ctx, NONE if next_ms == NEVER else next_ms)),
        (b"redelivered", reply.integer(policy.redelivered)),
        (b"dead-lettered", reply.integer(policy.dead_lettered)),
        (b"reaped", reply.integer(policy.reaped)),
        (b"blocked", _text(ctx, policy.blocked or None)),
    ]
    if settings.shows_more:
        shown += _of_second_part(ctx, group, policy)
    return [(NAME, reply.fields(shown, ctx.resp3))]


def _of_second_part(ctx: Context, group: Group, policy: GroupPolicy) -> list[tuple[bytes, bytes]]:
    """Further fields of a group, shown if one of their options is set."""
    settings = policy.settings
    limits.most_now(policy, ctx.now_ms)  # drops deliveries that are older than the window
    pause_end_ms = settings.pause_end_ms(ctx.now_ms)
    pause = reply.integer(-1) if pause_end_ms == FOREVER else _number(ctx, pause_end_ms)
    return [
        (b"pause", pause),
        (b"rate", _number(ctx, settings.rate)),
        (b"rate-ms", _number(ctx, settings.rate_ms)),
        (b"rated", reply.integer(policy.window.count)),
        (b"inflight", _number(ctx, settings.in_flight)),
        (b"owned", reply.integer(limits.owned_count(group))),
        (b"parallel", _number(ctx, settings.parallel)),
        (b"fair", reply.integer(settings.fair)),
        (b"priority", _text(ctx, settings.priority_field)),
        (b"aging", _number(ctx, settings.aging_ms)),
        (b"lookahead", _number(ctx, settings.look_ahead)),
        (b"expire", _number(ctx, settings.expire_ms)),
        (b"expireat", _text(ctx, settings.expire_field)),
        (b"expired", reply.integer(policy.expired)),
        (b"ondisconnect", _text(ctx, b"release" if settings.gives_back else None)),
        (b"released", reply.integer(policy.released)),
    ]


def _waiting(ctx: Context, stream: Stream, group: Group, policy: GroupPolicy) -> int:
    """How many entries wait for their value, or to be chosen."""
    leases.current_choice(stream, group, policy, ctx.now_ms)
    return keys.waiting_count(policy, policy.keys)


def counters(ctx: Context) -> dict[str, int]:
    """INFO stats: what policies did since the start, and how many entries are held now. O(groups with policies)."""
    counted, now_ms = ctx.policies, ctx.now_ms
    held = 0
    for db in ctx.keyspace.databases:
        for key in db.policies_due.times:
            stream = db.values[key]
            if isinstance(stream, Stream):
                policies = [group.policy for group in stream.groups.values()]
                held += sum(policy.held_count(now_ms) for policy in policies if policy is not None)
    return {
        "penstock_redelivered": counted.redelivered,
        "penstock_dead_lettered": counted.dead_lettered,
        "penstock_forwarded": counted.forwarded,
        "penstock_trimmed": counted.trimmed,
        "penstock_reaped": counted.reaped,
        "penstock_held": held,
        "penstock_redriven": counted.redriven,
        "penstock_released": counted.released,
        "penstock_expired": counted.expired,
        "penstock_copied": counted.copied,
    }


def _number(ctx: Context, number: int) -> bytes:
    return reply.null(ctx.resp3) if number == NONE else reply.integer(number)


def _text(ctx: Context, text: bytes | None) -> bytes:
    return reply.null(ctx.resp3) if text is None else reply.bulk(text)
