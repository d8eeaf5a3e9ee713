"""Reports events of policies for the server's log (policy_log.py)."""

from penstock.engine.context import Context
from penstock.engine.policies import policy_lines
from penstock.engine.policies.policy_log import (
    EXPIRED,
    IDLE,
    MISSED,
    MOVED,
    NO_SERIES,
    REAPED,
    RELEASED,
    SET,
    STUCK,
    shown,
)
from penstock.engine.server_state import ServerState
from penstock.storage.policies.group_policy import FOREVER, GroupSettings
from penstock.storage.policies.stream_policies import NONE, StreamPolicies
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.stream import Stream


def _subject(ctx: Context, key: bytes, group: bytes | None) -> str:
    """How a line names a stream, or a group of it."""
    named = shown(key) if group is None else f"{shown(key)}, group {shown(group)}"
    return f"{named} (database {ctx.db_index})" if ctx.db_index else named


def stream_set(ctx: Context, key: bytes, policies: StreamPolicies | None) -> None:
    """A stream's policy was set; None: it was unset. In a replay nothing is reported."""
    _set(ctx, key, None, [] if policies is None else policy_lines.stream_words(policies.settings, policies))


def group_set(ctx: Context, key: bytes, group: bytes, settings: GroupSettings, named: set[bytes]) -> None:
    """As `stream_set`, for a group; named: the options that the request named."""
    if named == {b"PAUSE"} and settings.paused_until_ms != NONE and not ctx.session.privileged:
        end = "" if settings.paused_until_ms == FOREVER else f" until {settings.paused_until_ms}"
        ctx.policies.log.note(_subject(ctx, key, group), SET, 1, f"paused{end}", [])
        return
    _set(ctx, key, group, policy_lines.group_words(settings, ctx.now_ms))


def _set(ctx: Context, key: bytes, group: bytes | None, words: list[bytes]) -> None:
    if not ctx.session.privileged:
        text = " ".join(shown(word) for word in words) or "none"
        ctx.policies.log.note(_subject(ctx, key, group), SET, 1, text, [])


def moved(ctx: Context, key: bytes, group: bytes, target: bytes) -> None:
    """An entry became a dead letter."""
    ctx.policies.log.note(_subject(ctx, key, group), MOVED, 1, shown(target), [])


def expired(ctx: Context, key: bytes, group: bytes) -> None:
    """An entry expired, and there are no dead letters."""
    ctx.policies.log.note(_subject(ctx, key, group), EXPIRED, 1, "", [])


def stuck(ctx: Context, key: bytes, group: bytes | None, problem: bytes) -> None:
    """A target cannot take entries."""
    ctx.policies.log.note(_subject(ctx, key, group), STUCK, 1, shown(problem), [])


def missed(ctx: Context, key: bytes, entry_id: StreamId) -> None:
    """Times of an entry passed without a copy."""
    ctx.policies.log.note(_subject(ctx, key, None), MISSED, 1, "", [shown(ids.text(entry_id))])


def no_series(ctx: Context, key: bytes, field: bytes, entry_id: StreamId) -> None:
    """Note that EVERY's field of an entry is no series of times, or one without any to come."""
    ctx.policies.log.note(_subject(ctx, key, None), NO_SERIES, 1, shown(field), [shown(ids.text(entry_id))])


def idle(ctx: Context, key: bytes, groups: list[bytes], idle_ms: int) -> None:
    """Groups became idle."""
    if groups:
        ctx.policies.log.note(_subject(ctx, key, None), IDLE, len(groups), str(idle_ms), list(map(shown, groups)))


def reaped(ctx: Context, key: bytes, group: bytes, consumer: bytes, reap_ms: int) -> None:
    """A consumer was removed."""
    ctx.policies.log.note(_subject(ctx, key, group), REAPED, 1, str(reap_ms), [shown(consumer)])


def released(ctx: Context, key: bytes, group: bytes, consumer: bytes, count: int) -> None:
    """The connection of a consumer ended, and what it held was given back."""
    ctx.policies.log.note(_subject(ctx, key, group), RELEASED, count, shown(consumer), [])


def sleeping(server: ServerState) -> str:
    """Reported after loading: how many policies a named compat-version has sleep; empty if none does. O(streams)."""
    if server.policies.kept:
        return ""
    count = 0
    for db in server.keyspace.databases:
        for key in db.policies_due.times:
            stream = db.values[key]
            if isinstance(stream, Stream) and stream.policies is not None:
                count += stream.policies.settings.is_set
                count += sum(group.policy is not None for group in stream.groups.values())
    if not count:
        return ""
    policies = "policy sleeps" if count == 1 else "policies sleep"
    return f"{count} {policies}: compat-version is {server.settings.text('compat-version')}"
