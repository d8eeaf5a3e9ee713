"""PRIORITY and FAIR: which entry a group hands out next as a first delivery.

Candidates are entries that wait (pending, no owner, a delivery count of 0, not held), and new ones within LOOKAHEAD: so
many entries at most, waiting ones and new ones in front, may be passed over. With KEY, of each value the first one.
"""

from typing import Final

from penstock.engine.policies import entry_fields, expiry, keys
from penstock.storage.policies.choice import Choice
from penstock.storage.policies.group_policy import LAST_SERIAL, GroupPolicy, GroupSettings
from penstock.storage.policies.key_order import KeyOrder
from penstock.storage.policies.stream_policies import NONE
from penstock.storage.streams import ids
from penstock.storage.streams.entry_deletion import deleted_below
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.pending.pending_block import PendingBlock
from penstock.storage.streams.stream import Stream

AT_A_TIME: Final = 1000  # new entries that are read together
USUAL_LEVEL: Final = 4


def rank_of(settings: GroupSettings, entry_id: StreamId, entry: bytes) -> int:
    """Where an entry stands by PRIORITY and AGING; the lowest is first. 0 without PRIORITY."""
    if settings.priority_field is None:
        return 0
    word = entry_fields.value_of(settings.priority_field, entry)
    level = int(word) if word is not None and len(word) == 1 and word.isdigit() else USUAL_LEVEL
    return -level if settings.aging_ms == NONE else (entry_id >> 64) - level * settings.aging_ms


def add_waiting(policy: GroupPolicy, choice: Choice, block: PendingBlock, slot: int) -> None:
    """A live pending entry without an owner may be chosen. O(log n)."""
    settings, entry_id, entry = policy.settings, block.id_at(slot), block.segment.entry(slot)
    rank, value = rank_of(settings, entry_id, entry), entry_fields.key_value(settings, entry)
    choice.add_waiting(entry_id, rank, value, entry_fields.expires_ms(settings, entry_id, entry))


def current(stream: Stream, group: Group, policy: GroupPolicy, now_ms: int) -> Choice:
    """The candidates, up to date; what was released is known. O(pending + LOOKAHEAD) when they are first asked for."""
    order = keys.order_of(stream, group, policy)
    choice = policy.choice
    if choice is None:
        choice = policy.choice = Choice(policy.settings.fair)
        choice.position = choice.seen_to = group.last_id
        for entry_id in [] if order is None else sorted(order.waiting):
            policy.release(entry_id, 0)
    _drain(group, policy, choice, now_ms)
    _follow(group, choice)
    _forget_gone(stream, group, policy, choice, now_ms)
    reach(stream, policy, choice, group.last_id, now_ms)
    choice.note_changes(order)
    return choice


def _drain(group: Group, policy: GroupPolicy, choice: Choice, now_ms: int) -> None:
    """Let entries that were never delivered and are held no more be chosen. O(log n) for each that became ready."""
    for _, _, entry_id in list(policy.order.irange((choice.drained_ms, LAST_SERIAL, 0), (now_ms, LAST_SERIAL, 0))):
        found = group.pel.by_id.find(entry_id)
        assert found is not None, "a released entry is pending"
        block, slot = found
        if not block.counts[slot] and block.segment.is_live(slot):
            policy.drop_moment(entry_id)
            add_waiting(policy, choice, block, slot)
    choice.drained_ms = max(choice.drained_ms, now_ms)


def _follow(group: Group, choice: Choice) -> None:
    """The group's position is another: what is below it is not new any more. O(log n) each; all, if it was set back."""
    last_id = group.last_id
    if last_id == choice.position:
        return
    is_back = last_id < choice.position
    for entry_id in list(choice.seen) if is_back else list(choice.seen.irange(None, last_id)):
        choice.drop(entry_id)
    if is_back:
        choice.look_again_behind(last_id)
    choice.advance_to(last_id)


def _forget_gone(stream: Stream, group: Group, policy: GroupPolicy, choice: Choice, now_ms: int) -> None:
    """Trimmed entries, and those that have expired, may not be chosen."""
    below = deleted_below(stream)
    for entry_id in [*choice.seen.irange(None, below - 1), *choice.expired.irange(None, below - 1)]:
        choice.drop(entry_id)
    for block, slot in group.pel.by_id.between(choice.deleted_below, below):
        policy.forget_deleted(block.id_at(slot))
    choice.deleted_below = max(choice.deleted_below, below)
    policy.expire_candidates(now_ms)


def reach(stream: Stream, policy: GroupPolicy, choice: Choice, position: StreamId, now_ms: int) -> None:
    """Look at new entries as far as LOOKAHEAD allows, behind expiry.MOST at most that have expired. O(log n) each.

    position: what is up to there is passed.
    """
    settings = policy.settings
    most = keys.most_waiting(settings)
    seen = choice.seen
    while len(choice.ranks) > most + 1 and len(seen) > seen.bisect_right(position) + 1:
        choice.drop(seen[-1])
        choice.look_again_behind(seen[-1])
    while choice.seen_to < stream.last_id and not is_behind_expired(choice):
        if len(choice.ranks) > most and seen and seen[-1] > position:
            return
        wanted = min(max(most + 1 - len(choice.ranks), 1), AT_A_TIME)
        runs = stream.runs(choice.seen_to + 1, ids.MAX, wanted)
        if not runs:
            choice.seen_to = stream.last_id
        for segment, start, stop in runs:
            for slot in range(start, stop):
                entry_id, entry = segment.id_at(slot), segment.entry(slot)
                choice.seen_to = entry_id
                expires_ms = entry_fields.expires_ms(settings, entry_id, entry)
                if entry_id in choice.waiting or choice.has_picked(entry_id):
                    continue
                if expires_ms > now_ms:
                    value = entry_fields.key_value(settings, entry)
                    choice.add_seen(entry_id, rank_of(settings, entry_id, entry), value, expires_ms)
                    continue
                choice.expire(entry_id)
                if is_behind_expired(choice):
                    return


def is_behind_expired(choice: Choice) -> bool:
    """Whether so many new entries have expired that they must move before something behind them is chosen."""
    return len(choice.expired) >= expiry.MOST


def next_candidate(stream: Stream, choice: Choice, order: KeyOrder | None) -> StreamId | None:
    """The best candidate that is still in the stream; it is to be handed out then."""
    while (entry_id := choice.best(order)) is not None:
        if stream.find(entry_id) is not None:
            break
        choice.drop(entry_id)
    return entry_id
