"""What a keyspace holds, as values that can be compared; looking changes nothing, and asserts the invariants."""

from dataclasses import dataclass
from typing import Any, Final

from penstock.commands.keys import digests
from penstock.engine.engine import Engine
from penstock.engine.policies import policy_lines
from penstock.storage.streams import ids
from penstock.storage.streams.pending.delivery_walk import in_time_order
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.stream import Stream


@dataclass(frozen=True, slots=True)
class View:
    """What of a keyspace is looked at.

    seen_times: consumers' seen and active times. delivery_times: when and how often pending entries were delivered, and
    their order in time. ties: the order of what was delivered at one moment. now_ms: what is overdue by then, keys and
    idempotent ids, is left out; 0: it is not, nor are idempotent ids of entries above the last id. idempotent_ids: what
    producers sent.
    """

    seen_times: bool = True
    delivery_times: bool = True
    ties: bool = True
    now_ms: int = 0
    idempotent_ids: bool = True


ALL: Final = View()
KEPT: Final = View(seen_times=False)  # what a log keeps
SAVED: Final = View(seen_times=False, ties=False)  # what an RDB file keeps


def keyspace(engine: Engine, view: View = ALL) -> dict[str, object]:
    """What the keyspace holds, by database and key: streams in full, of other values their digest."""
    now_ms = view.now_ms or engine.clock.now_us() // 1000
    found: dict[str, object] = {}
    for number, db in enumerate(engine.keyspace.databases):
        db.check()
        for key in sorted(db.values):
            value, expires_ms = db.values[key], db.expires.get(key)
            if expires_ms is not None and expires_ms < view.now_ms:
                continue
            shown = stream_picture(value, view, now_ms) if isinstance(value, Stream) else digests.of_value(value)
            found[f"{number} {text(key)}"] = {"expires": expires_ms, "blessed": key in db.blessed, "value": shown}
    return found


def stream_picture(stream: Stream, view: View = ALL, now_ms: int = 0) -> dict[str, Any]:
    """now_ms: holds of entries that end before it are left out."""
    stream.check()
    producers = stream.producers
    return {
        "entries": b"".join(
            segment.entries(start, stop) for segment, start, stop in stream.runs(0, ids.MAX, stream.length)
        ),
        "length": stream.length,
        "last id": stream.last_id,
        "max deleted id": stream.max_deleted_id,
        "entries added": stream.entries_added,
        "policies": list(policy_lines.base_requests(b"", stream, now_ms)),
        "groups": {text(group.name): _group_picture(stream, group, view) for group in stream.groups_by_name()},
        "idempotence": [producers.duration_s, producers.max_size, _idempotent_ids(stream, view)],
    }


def _group_picture(stream: Stream, group: Group, view: View) -> dict[str, object]:
    held = [(b.id_at(i), group.pel.owner_name((b, i)), b.times[i], b.counts[i]) for b, i in group.pel.by_id.walk(0)]
    in_order = [(b.times[i], b.id_at(i)) for b, i in in_time_order(group.pel.order)]
    if not view.delivery_times:
        held, in_order = [(entry_id, owner, 0, 0) for entry_id, owner, _, _ in held], []
    people = [(c.name, *((c.seen_ms, c.active_ms) if view.seen_times else ())) for c in group.consumers_by_name()]
    return {
        "last id": group.last_id,
        "entries read": group.entries_read,
        "lag": stream.lag(group),
        "consumers": people,
        "pending": held,
        "order": [entry_id for _, entry_id in (in_order if view.ties else sorted(in_order))],
        "released": [block.id_at(slot) for block, slot in group.pel.order.in_nack_zone()],
    }


def _idempotent_ids(stream: Stream, view: View) -> dict[str, object]:
    """What each producer sent, with the ids that the entries got, in order."""
    shown: dict[str, object] = {}
    if not view.idempotent_ids:
        return shown
    oldest_ms = view.now_ms - 1000 * stream.producers.duration_s
    for pid, made in stream.producers.pids.items():
        kept = list(made.items())
        if view.now_ms:
            kept = [(iid, entry_id) for iid, entry_id in kept if entry_id <= stream.last_id]
            kept = [(iid, entry_id) for iid, entry_id in kept if entry_id >> 64 > oldest_ms or oldest_ms < 0]
        if kept or not view.now_ms:
            shown[text(pid)] = kept
    return shown


def text(name: bytes) -> str:
    """A name of any bytes as text, by which it can be sorted."""
    return name.decode("latin-1")
