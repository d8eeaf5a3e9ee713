"""What a keyspace holds, as values that can be compared; looking changes nothing."""

from penstock.commands.keys import digests
from penstock.engine.engine import Engine
from penstock.engine.policies import policy_lines
from penstock.storage.streams.stream import Stream


def picture(engine: Engine) -> list[object]:
    """Everything that clients can see of the keyspace, without touching it."""
    seen: list[object] = []
    for number, db in enumerate(engine.keyspace.databases):
        for key in sorted(db.values):
            value = db.values[key]
            shown = stream_picture(value) if isinstance(value, Stream) else value
            seen.append((number, key, db.expires.get(key), shown))
    return seen


def stream_picture(stream: Stream, seen_times: bool = True, now_ms: int = 0) -> list[object]:
    stream.check()
    entries = [segment.entries(start, stop) for segment, start, stop in stream.runs(0, 2**128 - 1, 2**63)]
    groups = []
    for group in stream.groups_by_name():
        held = [(b.id_at(i), group.owner_name((b, i)), b.times[i], b.counts[i]) for b, i in group.walk(0)]
        order = [b.id_at(i) for b, i in [*group.nack_zone(), *group.in_time_order()]]
        people = [(c.name, *((c.seen_ms, c.active_ms) if seen_times else ())) for c in group.consumers_by_name()]
        groups.append((group.name, group.last_id, group.entries_read, stream.lag(group), held, order, people))
    producers = stream.producers
    idempotence = (producers.duration_s, producers.max_size, {p: list(i.items()) for p, i in producers.pids.items()})
    policies = list(policy_lines.base_requests(b"", stream, now_ms))
    counters = (stream.length, stream.last_id, stream.max_deleted_id, stream.entries_added, policies)
    return [b"".join(entries), counters, groups, idempotence]


def keyspace(engine: Engine, seen_times: bool = True) -> list[object]:
    """What the keyspace holds: streams in full, of other values their digest."""
    now_ms = engine.clock.now_us() // 1000
    found: list[object] = []
    for number, db in enumerate(engine.keyspace.databases):
        for key in sorted(db.values):
            value = db.values[key]
            shown = stream_picture(value, seen_times, now_ms) if isinstance(value, Stream) else digests.of_value(value)
            found.append((number, key, db.expires.get(key), shown))
    return found
