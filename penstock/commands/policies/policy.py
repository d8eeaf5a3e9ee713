"""PENSTOCK.POLICY: sets what the server is to do with a stream's entries by itself.

Tests: transcripts policies_leases, policies_retention, policies_dead_letters, policies_key, policies_limits,
policies_expire, policies_choice, policies_every, policies_bytes; law policies/test_recurring,
policies/test_policy_laws, policies/test_nothing_is_stuck, policies/test_access_laws; model
policies/test_beside_naive_queue, policies/test_beside_naive_scheduler.
"""

from typing import Final

from penstock.commands.policies.policy_arguments import (
    COPIED,
    DEAD_LETTER,
    FORWARD,
    FORWARD_OPTIONS,
    GROUP_AT,
    GROUP_OPTIONS,
    IDLE_GROUP,
    PAUSE,
    RATE,
    RETENTION_OPTIONS,
    STREAM_AT,
    SWEPT_OPTIONS,
    TARGET,
    OptionReader,
    find_keys,
    is_of_group,
    read_group_options,
    read_stream_options,
    refuse_group_settings,
    refuse_stream_settings,
)
from penstock.commands.streams import stream_arguments
from penstock.commands.streams.changing.xsetid import existing
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.policies import policy_lines, policy_notes, retention, settling, targets
from penstock.engine.table.command_table import command
from penstock.engine.versions import PENSTOCK_VERSION
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.policies.group_policy import GroupSettings
from penstock.storage.policies.stream_policies import AT_ONCE, StreamSettings
from penstock.storage.streams import ids
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.stream import Stream

FLOOR: Final = b"FLOOR"  # the log's word: it stands last
COPIED_TO: Final = b"FORWARDED"  # the log's word: it stands alone, behind the key
RATED: Final = b"RATED"  # the log's words: each stands alone, behind the group
ATTEMPTED: Final = b"ATTEMPTED"


@command(
    "PENSTOCK.POLICY key [GROUP group] [MAXLEN maxlen:integer] [MAXAGE milliseconds] [MAXBYTES bytes:integer] "
    "condition:[KEEPREF|DELREF|ACKED] [IDLEGROUP milliseconds] "
    "[FORWARD forward-key:key] [AT field] [AFTER milliseconds] [EVERY field] [MISSED <ONCE|ALL|SKIP>] "
    "[ACKWAIT milliseconds] [BACKOFF (min:integer max:integer)] [JITTER percent:integer] "
    "[MAXDELIVER count] [DEADLETTER deadletter-key:key] [REAP milliseconds] [KEY field] "
    "[PAUSE <until|FOREVER>] [RATE (count:integer milliseconds:integer)] [INFLIGHT count] "
    "[PARALLEL count] [FAIR <YES|NO>] [PRIORITY field] [AGING milliseconds] [LOOKAHEAD count] "
    "[EXPIRE milliseconds] [EXPIREAT field] [ONDISCONNECT <RELEASE>] [RESET]",
    f"{PENSTOCK_VERSION} write | "
    f"keys 1 {COPIED} variable_flags; FORWARD@{STREAM_AT} {TARGET}; DEADLETTER@{GROUP_AT} {TARGET}",
    "Sets what the server does with a stream's entries by itself: trims, delivers again, moves them.",
    "O(1); what the policy asks for is done in slices of 10,000 entries.",
    find_keys=find_keys,
)
def penstock_policy(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    stream = existing(ctx, key)
    if len(args) == 2:
        raise ReplyError(b"ERR At least one parameter must be specified")
    logged = [b"PENSTOCK.POLICY", *args[1:]]
    begins_anew = False
    if is_of_group(args):
        _change_group(ctx, key, stream, args, logged)
    elif args[2].upper() == b"RESET":
        if len(args) > 3:
            raise refusals.syntax()
        _reset_stream(ctx, key, stream)
    elif ctx.session.privileged and args[STREAM_AT] == COPIED_TO:
        _set_copied_to(stream, args)
    else:
        begins_anew = _set_stream(ctx, key, stream, args)
    ctx.dirty += 1
    policy_lines.log(ctx, logged)
    if begins_anew and stream.policies is not None:
        policy_lines.log_copied_to(ctx, key, stream.policies)
    settling.apply_policies(ctx, key, stream, retention.SHORT_SLICE)
    return reply.OK


def _reset_stream(ctx: Context, key: bytes, stream: Stream) -> None:
    if stream.policies is not None:
        stream.policies.settings = StreamSettings()
        stream.policies.floor = ids.ZERO
        policy_notes.stream_set(ctx, key, None)
        stream.policies.start_schedule()
        stream.policies.forget_uses()
        settling.drop_unused(ctx, key, stream)


def _set_stream(ctx: Context, key: bytes, stream: Stream, args: list[bytes]) -> bool:
    """Set what is named. Naming a retention option ends the floor. Returns whether schedules begin anew."""
    options, floor = args, ids.ZERO
    if ctx.session.privileged and len(args) > 3 and args[-2] == FLOOR:
        options, floor = args[:-2], stream_arguments.stream_id(args[-1])
    settings = StreamSettings() if stream.policies is None else stream.policies.settings.copy()
    reader = OptionReader(options, STREAM_AT)
    read_stream_options(settings, reader)
    if not ctx.session.privileged:  # in a replay, the target may be something else by now
        _refuse_target(ctx, key, settings.forward, FORWARD, reader)
        if settings.forward is not None and targets.leads_back(ctx, key, settings.forward):
            raise ReplyError(b"ERR FORWARD would go round in a circle")
    refuse_stream_settings(settings)
    policies = settling.policies_of(ctx, key, stream)
    policies.settings = settings
    if reader.named & RETENTION_OPTIONS or options is not args:
        policies.floor = floor
    if IDLE_GROUP in reader.named:
        policies.forget_uses()
    if reader.named & SWEPT_OPTIONS and retention.is_acked(policies):
        policies.start_sweep()
    if reader.named & FORWARD_OPTIONS:
        policies.start_schedule()
        policies.copied_to = (ctx.now_ms, stream.last_id)
    policy_notes.stream_set(ctx, key, policies)
    policies.due_ms = AT_ONCE
    ctx.db.note_policies(key, stream)
    settling.drop_unused(ctx, key, stream)
    return settings.every_field is not None and bool(reader.named & FORWARD_OPTIONS)


def _change_group(ctx: Context, key: bytes, stream: Stream, args: list[bytes], logged: list[bytes]) -> None:
    """Set what is named, or unset all. The end of a pause is put into `logged`."""
    if len(args) == 3:
        raise refusals.syntax()
    group = stream.groups.get(args[3])
    if group is None:
        raise refusals.no_group(key, args[3])
    if len(args) == 4:
        raise ReplyError(b"ERR At least one parameter must be specified")
    is_reset = args[4].upper() == b"RESET"
    if is_reset and len(args) > 5:
        raise refusals.syntax()
    if ctx.session.privileged and args[GROUP_AT] == RATED:
        _count_rated(group, args)
        return
    if ctx.session.privileged and args[GROUP_AT] == ATTEMPTED:
        _keep_attempt(group, args)
        return
    settings = GroupSettings() if is_reset or group.policy is None else group.policy.settings.copy()
    named: set[bytes] = set()
    if not is_reset:
        reader = OptionReader(args, GROUP_AT)
        read_group_options(settings, reader, ctx.now_ms)
        if not ctx.session.privileged:
            _refuse_target(ctx, key, settings.dead_letter, DEAD_LETTER, reader)
        refuse_group_settings(settings)
        named = reader.named
        for at in GROUP_OPTIONS.places_of(PAUSE, logged, GROUP_AT):
            logged[at + 1] = policy_lines.pause_words(settings.paused_until_ms)[1]
    elif group.policy is None:
        return
    policy = settling.group_policy_of(ctx, key, stream, group)
    if RATE in named or is_reset:
        policy.window.clear()
    if policy.settings.has_limits or settings.has_limits:
        policy.is_short = policy.is_stopped = False
        ctx.signal(key)
    if not settings.orders_as(policy.settings):
        policy.forget_order()
    if not settings.gives_back:
        policy.readers.clear()
    policy.settings = settings
    policy_notes.group_set(ctx, key, group.name, settings, named)
    policy.examine_anew()
    if not settings.is_set and not policy.held_count(ctx.now_ms):
        group.set_policy(None)
    settling.wake(ctx, key, stream, AT_ONCE)
    settling.drop_unused(ctx, key, stream)
    ctx.signal(key)


def _refuse_target(ctx: Context, key: bytes, target: bytes | None, option: bytes, reader: OptionReader) -> None:
    """Check a target: another stream, or a free key, that the user may write."""
    if target is None:
        return
    if option in reader.named:
        targets.admit_link(ctx, key, [target])
    if target == key:
        raise ReplyError(b"ERR a stream cannot be its own %b" % option)
    ctx.stream(target)


def _set_copied_to(stream: Stream, args: list[bytes]) -> None:
    """The log says which copy was the last: its time, and the id of its entry."""
    policies = stream.policies
    if policies is not None:
        policies.copied_to = (arguments.integer(args[STREAM_AT + 1]), stream_arguments.stream_id(args[STREAM_AT + 2]))
        policies.start_schedule()


def _keep_attempt(group: Group, args: list[bytes]) -> None:
    """The log says how often a released entry was delivered, and to which consumer as the last one."""
    if group.policy is not None:
        entry_id, deliveries = stream_arguments.stream_id(args[GROUP_AT + 1]), arguments.integer(args[GROUP_AT + 2])
        group.policy.attempts[entry_id] = (deliveries, args[GROUP_AT + 3])


def _count_rated(group: Group, args: list[bytes]) -> None:
    """The log says when entries were handed out, for RATE: pairs of a moment and a number."""
    policy = group.policy
    if policy is not None:
        for at in range(GROUP_AT + 1, len(args) - 1, 2):
            policy.window.add(arguments.integer(args[at]), arguments.integer(args[at + 1]))
        policy.window.forget(policy.window.pairs[-1][0], policy.settings.rate_ms)
