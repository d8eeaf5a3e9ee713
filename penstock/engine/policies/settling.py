"""What a command's change of a stream means for its policies, at the command's end and in its unit.

Handlers call these functions for streams that have policies. While the log is replayed, and with a named
`compat-version`, policies sleep: nothing is done.
"""

from penstock.engine.context import Context
from penstock.engine.policies import policy_lines, retention
from penstock.storage.policies.stream_policies import StreamPolicies
from penstock.storage.streams import ids
from penstock.storage.streams.group import Group
from penstock.storage.streams.ids import IdColumns, StreamId
from penstock.storage.streams.stream import SegmentRun, Stream


def policies_of(ctx: Context, key: bytes, stream: Stream) -> StreamPolicies:
    """The policies of a stream, made if it has none."""
    if stream.policies is None:
        stream.policies = StreamPolicies()
        ctx.engine.policies.used = True
        ctx.db.note_policies(key, stream)
    return stream.policies


def drop_unused(ctx: Context, key: bytes, stream: Stream) -> None:
    """Forget the policies of a stream for which nothing is set any more."""
    if stream.policies is not None and not stream.policies.settings.is_set:
        stream.policies = None
        ctx.db.note_policies(key, stream)


def are_kept(ctx: Context) -> bool:
    """Whether policies are applied now."""
    return ctx.engine.policies.kept and not ctx.session.privileged


def settle(ctx: Context, key: bytes, stream: Stream) -> None:
    """Apply the policies of a stream that changed, or whose moment has come."""
    policies = stream.policies
    if policies is None or not are_kept(ctx):
        return
    retention.run(ctx, key, stream, policies)
    policies.due_ms = retention.next_ms(stream, policies)
    ctx.db.note_policies(key, stream)


# -- entries that a group needs no more -------------------------------------------------------------------------------


def acknowledged(ctx: Context, key: bytes, stream: Stream, entry_ids: list[StreamId]) -> None:
    """A group has these entries pending no more."""
    policies = stream.policies
    if policies is not None and are_kept(ctx):
        retention.note_done(stream, policies, entry_ids)
        settle(ctx, key, stream)


def columns_acknowledged(ctx: Context, key: bytes, stream: Stream, columns: IdColumns) -> None:
    """As `acknowledged`."""
    acknowledged(ctx, key, stream, [columns.id_at(at) for at in range(len(columns))])


def read_without_ack(ctx: Context, key: bytes, stream: Stream, runs: list[SegmentRun]) -> None:
    """A group read entries with NOACK."""
    entry_ids = [segment.id_at(slot) for segment, start, stop in runs for slot in range(start, stop)]
    acknowledged(ctx, key, stream, entry_ids)


def swept(ctx: Context, key: bytes, stream: Stream) -> None:
    """Any entry may be unneeded now: a group or a consumer is gone, or entries above a floor are free again."""
    policies = stream.policies
    if policies is not None and are_kept(ctx):
        if retention.is_acked(policies):
            policies.start_sweep()
        settle(ctx, key, stream)


# -- the floor --------------------------------------------------------------------------------------------------------


def group_created(ctx: Context, key: bytes, stream: Stream, group: Group) -> None:
    """The first group passes over what it does not read: that stays."""
    if len(stream.groups) == 1:
        group_moved(ctx, key, stream, group, ids.ZERO)


def group_moved(ctx: Context, key: bytes, stream: Stream, group: Group, former_id: StreamId) -> None:
    """A group's position was set: what it skipped and nobody else needs stays."""
    policies = stream.policies
    if policies is None or ctx.session.privileged:  # replay: the log has the floors
        return
    position = group.last_id
    may_skip = retention.is_acked(policies) and position > max(former_id, policies.floor)
    if may_skip and retention.passes_over(stream, former_id, position):
        policies.floor = position
        policy_lines.log_floor(ctx, key, position)
    settle(ctx, key, stream)


def trimmed_by_hand(ctx: Context, key: bytes, stream: Stream) -> None:
    """XTRIM: whoever trims wants the entries below the floor gone, too."""
    policies = stream.policies
    if policies is None or ctx.session.privileged or policies.floor == ids.ZERO:
        return
    policies.floor = ids.ZERO
    policy_lines.log_floor(ctx, key, ids.ZERO)
    swept(ctx, key, stream)
