"""ONDISCONNECT: what a consumer holds is given back when the connection ends on which it was read as last."""

from collections import OrderedDict
from itertools import islice

from penstock.engine.context import Context
from penstock.engine.policies import leases, policy_notes, settling
from penstock.engine.policies.policy_state import ReaderPlace
from penstock.engine.policies.tick_budget import TickBudget
from penstock.engine.session import NO_READERS
from penstock.storage.policies.group_policy import GroupPolicy
from penstock.storage.streams.stream import Stream


def note_reader(ctx: Context, key: bytes, group: bytes, policy: GroupPolicy, consumer: bytes) -> None:
    """A session has read as a consumer: what that holds is given back when this one ends, and no other. O(1).

    For each place that is noted two others are looked at, so that a session has at most twice as many as give back.
    """
    session = ctx.session.asks_for or ctx.session
    policy.readers[consumer] = session.id
    place = (ctx.db_index, key, group, consumer)
    if place in session.reads_as:
        return
    if session.reads_as is NO_READERS:
        session.reads_as = OrderedDict()
    places = session.reads_as
    for other in list(islice(places, 2)):
        if _gives_back(ctx, session.id, other):
            places.move_to_end(other)
        else:
            del places[other]
    places[place] = None


def _gives_back(ctx: Context, session_id: int, place: ReaderPlace) -> bool:
    """Whether the end of a session gives back what a consumer holds: it is there, and no other read as it later."""
    db_index, key, group_name, name = place
    stream = ctx.keyspace.databases[db_index].values.get(key)
    group = stream.groups.get(group_name) if isinstance(stream, Stream) else None
    return group is not None and group.policy is not None and group.policy.readers.get(name) == session_id


def run(ctx: Context, budget: TickBudget) -> None:
    """A tick: sessions have ended; each consumer is a unit of its own."""
    ended = ctx.policies.ended
    while ended and not budget.is_over():
        session_id, place = ended.popleft()
        ctx.select(place[0])
        _give_back(ctx, session_id, place, budget)
        ctx.effects.end_unit()


def _give_back(ctx: Context, session_id: int, place: ReaderPlace, budget: TickBudget) -> None:
    _, key, group_name, name = place
    stream = ctx.value(key)
    group = stream.groups.get(group_name) if isinstance(stream, Stream) else None
    policy = None if group is None else leases.kept_policy(ctx, group)
    if not isinstance(stream, Stream) or group is None or policy is None or policy.readers.get(name) != session_id:
        return
    del policy.readers[name]
    consumer = group.consumers.get(name)
    if consumer is None or not consumer.pending:
        return
    budget.moves -= consumer.pending
    count = settling.give_back(ctx, key, stream, group, consumer)
    ctx.count_group_changes(key, count)
    policy.released += count
    ctx.policies.released += count
    if count:
        policy_notes.released(ctx, key, group_name, name, count)
    settling.apply_policies(ctx, key, stream)
