"""PENSTOCK.REDRIVE: dead letters go back to the group that gave them up, or become new entries.

Tests: transcripts policies_redrive; cases policies/test_redrive.
"""

from typing import Final

from penstock.commands.streams import stream_arguments
from penstock.commands.streams.changing.xdel import notify_deleted
from penstock.commands.streams.changing.xsetid import existing
from penstock.engine import arguments, refusals
from penstock.engine.aof import group_effects
from penstock.engine.aof.group_effects import MOST_IDS, Released
from penstock.engine.context import Context
from penstock.engine.matching.globs import matches
from penstock.engine.policies import dead_letters, entry_fields, keys, leases, settling, targets
from penstock.engine.table.command_table import command
from penstock.engine.table.option_table import OptionTable
from penstock.engine.versions import PENSTOCK_VERSION
from penstock.errors import ReplyError
from penstock.protocol import entries, reply
from penstock.storage.policies.stream_policies import NONE
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.stream import Stream

OPTIONS: Final = OptionTable({b"GROUP": 1, b"REASON": 1, b"COUNT": 1, b"NEW": 0})
OPTIONS_AT: Final = 3
SLICE: Final = 1000  # dead letters that are read at a time
MOST: Final = 1000  # that are moved without COUNT


class Wanted:
    """The options of a request: which dead letters are wanted, how many at most, and whether as new entries."""

    __slots__ = ("are_new", "count", "group", "reason")

    def __init__(self, args: list[bytes]) -> None:
        self.group: bytes | None = None
        self.reason: bytes | None = None
        self.count = MOST
        self.are_new = False
        named: set[bytes] = set()
        at = OPTIONS_AT
        while at < len(args):
            option = args[at].upper()
            words = OPTIONS.words(option, args, at)
            if not words:
                raise refusals.syntax()
            if option in named:
                raise ReplyError(b"ERR %b specified multiple times" % option)
            named.add(option)
            if option == b"GROUP":
                self.group = args[at + 1]
            elif option == b"REASON":
                self.reason = args[at + 1]
            elif option == b"NEW":
                self.are_new = True
            else:
                self.count = arguments.integer(args[at + 1])
                if self.count < 1:
                    raise ReplyError(b"ERR COUNT must be at least 1")
            at += words

    def has(self, group: bytes, reason: bytes) -> bool:
        """Whether a dead letter of a group, with a reason, is wanted."""
        return self.group in (None, group) and (self.reason is None or matches(self.reason, reason))


@command(
    "PENSTOCK.REDRIVE dead-letters:key target:key#1 [GROUP group] [REASON pattern:string] [COUNT count] [NEW]",
    f"{PENSTOCK_VERSION} write | keys 1 RW access delete; 2 RW insert",
    "Gives dead letters back to their groups, or adds them again as new entries.",
    "O(N) with N the dead letters that are looked at.",
)
def penstock_redrive(ctx: Context, args: list[bytes]) -> bytes:
    """How many dead letters were moved. What cannot be given back stays where it is."""
    source, target = args[1], args[2]
    dead = existing(ctx, source)
    wanted = Wanted(args)
    if source == target:
        raise ReplyError(b"ERR a stream cannot be redriven into itself")
    stream = ctx.stream(target)
    moved: list[StreamId] = []
    released: dict[bytes, list[Released]] = {}
    after = ids.ZERO
    while len(moved) < wanted.count and (runs := dead.runs(after, ids.MAX, SLICE)):
        for segment, start, stop in runs:
            for slot in range(start, stop):
                after = segment.id_at(slot) + 1
                fields = entries.fields_of(segment.entry(slot))
                added = dead_letters.added_to(fields)
                if len(moved) == wanted.count or not added or not wanted.has(added[1], added[5]):
                    continue
                if wanted.are_new:
                    if targets.problem_with(ctx, source, target):
                        continue
                    targets.append(ctx, target, dead_letters.without_added(fields))
                elif stream is None or added[0] != target or not _give_back(ctx, stream, added, released):
                    continue
                moved.append(after - 1)
    if stream is not None and released:
        _note_released(ctx, target, stream, released)
    if moved:
        _delete(ctx, source, dead, moved)
    return reply.integer(len(moved))


def _give_back(ctx: Context, stream: Stream, added: list[bytes], released: dict[bytes, list[Released]]) -> bool:
    """Make the entry of a dead letter pending in its group again, if it may be; noted in `released` by group.

    In a group with KEY nothing of its value may be pending: an older one beside a newer one would break the order.
    """
    group = stream.groups.get(added[1])
    try:
        entry_id = stream_arguments.stream_id(added[2])
    except ReplyError:
        return False  # a forged one
    found = stream.find(entry_id)
    if group is None or found is None or entry_id > group.last_id or group.pel.by_id.find(entry_id) is not None:
        return False
    policy = leases.kept_policy(ctx, group)
    if policy is not None and dead_letters.is_expired(policy, found[0], found[1], ctx.now_ms):
        return False
    order = None if policy is None else keys.order_of(stream, group, policy)
    if policy is not None and order is not None:
        value = entry_fields.key_value(policy.settings, found[0].entry(found[1]))
        if value is not None and order.first(value) is not None:
            return False
        order.add(entry_id, value)
    block, slot, stop = group.pel.force_released(*found, 0)
    released.setdefault(group.name, []).append((block, slot, block.counts[slot:stop]))
    return True


def _note_released(ctx: Context, key: bytes, stream: Stream, released: dict[bytes, list[Released]]) -> None:
    for name, slots in released.items():
        group: Group = stream.groups[name]
        ctx.count_group_changes(key, len(slots))
        group_effects.log_released(ctx, key, group, slots)
        if stream.policies is not None:
            settling.released(ctx, key, stream, group, slots, NONE, False)
    ctx.signal(key)
    ctx.event("t", b"xnack", key)


def _delete(ctx: Context, key: bytes, stream: Stream, moved: list[StreamId]) -> None:
    for entry_id in moved:
        stream.delete(entry_id)
    for at in range(0, len(moved), MOST_IDS):
        ctx.log(b"XDEL", key, *[ids.text(entry_id) for entry_id in moved[at : at + MOST_IDS]])
    ctx.policies.redriven += len(moved)
    notify_deleted(ctx, key, len(moved))
    settling.deleted(ctx, key, stream, moved)
