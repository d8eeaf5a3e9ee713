"""Offsets as Spark keeps them in its checkpoint: JSON with sorted keys, because Spark compares offsets as text.

Streams stand under the name of their server. A lone server without a name of its own has the name "": an address is not
part of an offset, so that a server may move (`EndpointNames`; offsets written before have addresses as names).

An offset of `groupMode=cursor` has, for each stream, the last id read, the number of entries added up to it (null if
unknown), and the ids at which the batch that ends there is split into tasks. The splits are part of the offset because
a batch that is run again must have the same tasks: the sink counts the rows that each task has written.

    {"v": 1, "at": {"main": {"orders": ["1795214535211-9", 1834211, ["1795214530000-0"]]}}}

A fourth member says more of the batch, where there is more to say: `counts`, the entries of each part; `begin`, where
the batch begins, if not where the batch before it ended; `seen`, the state of the stream when the batch was planned;
`since`, the id from which on entries may be missing that were not told of yet.

    ["7-0", 70, ["4-0"], {"begin": ["1-0", 10], "counts": [30, 30], "seen": ["9-0", 90, 80, "0-0", "1-1"]}]

Where most of many streams (more than PLAIN) stay where they are, their positions are in `base`, packed, and repeated
from offset to offset, because Spark gives a query that is started again one offset and none before it. `at` has those
that have moved since; the batch that ends there reads no other ones.

    {"v": 3, "base": {"main": "eJyLVspPKoo..."}, "at": {"main": {"orders": ["1795214535211-9", 1834211]}}}

In both modes `missing` has the entries that are missing since the query began, by cause, if there are any.

An offset of `groupMode=shared` has the deliveries of one batch, as runs of ids or single ids, and for each stream the
last id delivered to the group, entries-added up to it, and the state of the stream before these deliveries (`since` as
above). `unsure` has the streams of which others may have read entries that `added` does not count. `deleted` is the
max-deleted-entry-id up to which losses were reported, where `seen` has a later one.

    {"v": 1, "n": 17, "consumer": "spark-6f1c", "last": {"main": {"orders": "7-1"}},
     "added": {"main": {"orders": 71}}, "seen": {"main": {"orders": ["7-1", 71, 50, "3-1", "4-0"]}},
     "runs": {"main": {"orders": [["5-0", "7-1", 41], ["ids", "3-0", "3-9"]]}}}
"""

import base64
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from penstock.pipeline.connector.connection.client import Endpoint
from penstock.pipeline.connector.connection.stream_info import StreamState
from penstock.pipeline.errors import PipelineError
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId

VERSION: Final = 1
WITH_BASE: Final = 3  # the version of an offset with a base, which readers of the first one would not find
READ: Final = (VERSION, 2, WITH_BASE)  # the base of version 2 has no column `seen`
PLAIN: Final = 500  # streams; of fewer no base is made
PART: Final = 8  # a base is made anew when one in so many of its streams has moved since
IDS: Final = "ids"
NO_NAME: Final = ""  # in offsets: the only server, which was given no name
# Members that have a member for each server.
BY_ENDPOINT: Final = ("at", "base", "last", "added", "since", "unsure", "seen", "deleted", "runs")

StreamOf: TypeAlias = tuple[str, bytes]  # an endpoint's name, a key


class EndpointNames:
    """The names of a query's servers in its offsets."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._endpoints = endpoints
        lone = len(endpoints) == 1 and not endpoints[0].has_name
        self._in_offsets = {one.name: NO_NAME if lone else one.name for one in endpoints}

    def write(self, offset: dict[str, Any]) -> dict[str, Any]:
        """An offset with names of endpoints, with the names that offsets have."""
        return _renamed(offset, lambda name: self._in_offsets.get(name, name))

    def read(self, offset: dict[str, Any]) -> dict[str, Any]:
        """An offset with the endpoints' names; PipelineError if it is not known which endpoint one of its names means.

        Where there is one name and one endpoint, that is the one, whatever its name or address was.
        """
        names = {name for member in BY_ENDPOINT for name in offset.get(member, ())}
        if len(names) == 1 and len(self._endpoints) == 1:
            return _renamed(offset, lambda _: self._endpoints[0].name)
        return _renamed(offset, self._known)

    def _known(self, name: str) -> str:
        """The name of the endpoint that offsets call so, or whose address they have."""
        for endpoint in self._endpoints:
            if name in (endpoint.name, endpoint.address):
                return endpoint.name
        known = ", ".join(endpoint.name for endpoint in self._endpoints)
        if name == NO_NAME:
            raise PipelineError(
                f"the checkpoint was written with one server that had no name, and now there are several: {known}. "
                "Give that server a name (name=host:port) while it is alone, and add the others after a batch"
            )
        raise PipelineError(
            f"the checkpoint has streams of the server {name!r}, which is none of 'endpoints': {known}. If it has "
            f"moved, keep its name: {name}=host:port"
        )


def _renamed(offset: dict[str, Any], name_of: Callable[[str], str]) -> dict[str, Any]:
    renamed = {
        member: {name_of(name): by_key for name, by_key in offset[member].items()}
        for member in BY_ENDPOINT
        if member in offset
    }
    return offset | renamed


@dataclass(frozen=True, slots=True)
class Position:
    """How far a stream was read, and how the batch that ends there was planned.

    `added`: as long as entries-added is this number and the entries after `id`, nothing is missing; None if unknown.
    `counts` are the entries of each part, () if they were not counted. `begin` (id, added) is where the batch begins,
    None if where the batch before it ended. A `seen` that ends before `id` belongs to a query that was told to begin
    with entries that were not there yet. Entries that were removed before this position may be missing from `added`
    still: those after `since`, None if there are none. In a group, entries that others have read before this position
    may be missing, too, if it is `unsure`.
    """

    id: StreamId
    added: int | None
    cuts: tuple[StreamId, ...] = ()
    counts: tuple[int, ...] = ()
    begin: tuple[StreamId, int | None] | None = None
    seen: StreamState | None = None
    since: StreamId | None = None
    unsure: bool = False

    @property
    def is_plain(self) -> bool:
        return self.begin is None and self.since is None and not self.cuts and not self.counts

    def bare(self) -> "Position":
        """Without the parts of the batch that ends here. What was seen of the stream is kept.

        A query that is started again compares with that: a stream that was made anew may have as many entries added.
        """
        return self if self.is_plain else Position(self.id, self.added, seen=self.seen, since=self.since)

    @property
    def counted_from(self) -> StreamId:
        """The id after which entries are missing, if any are."""
        return self.id if self.since is None else self.since

    def since_if(self, max_deleted: StreamId) -> StreamId | None:
        """`since` of a position that follows this one, in a stream with such a max-deleted-entry-id."""
        return self.counted_from if max_deleted > self.counted_from else None


@dataclass(frozen=True, slots=True)
class DeliveredIds:
    """Ids that a group delivered: all `count` from `first` to `last`, or only those in `ids` if it is not empty."""

    first: StreamId
    last: StreamId
    count: int
    ids: tuple[StreamId, ...] = ()


@dataclass(slots=True)
class Delivered:
    """An offset of the shared mode."""

    number: int
    consumer: str
    runs: dict[StreamOf, tuple[DeliveredIds, ...]] = field(default_factory=dict)
    last: dict[StreamOf, StreamId] = field(default_factory=dict)
    added: dict[StreamOf, int] = field(default_factory=dict)
    since: dict[StreamOf, StreamId] = field(default_factory=dict)
    unsure: set[StreamOf] = field(default_factory=set)
    seen: dict[StreamOf, StreamState] = field(default_factory=dict)
    deleted: dict[StreamOf, StreamId] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Base:
    """Plain positions, and the same as offsets have them: by endpoint, and packed."""

    places: dict[StreamOf, Position] = field(default_factory=dict)
    packed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Places:
    """How far the streams of a query were read, by one offset: those in `at`, and the others in `base`."""

    at: dict[StreamOf, Position] = field(default_factory=dict)
    base: Base = field(default_factory=Base)

    def get(self, stream: StreamOf) -> Position | None:
        return self.at.get(stream) or self.base.places.get(stream)

    def streams(self) -> set[StreamOf]:
        return self.at.keys() | self.base.places.keys()

    def after(self, batch: dict[StreamOf, Position]) -> "Places":
        """The places after a batch that ends at these: other streams are where they were."""
        at = {stream: place.bare() for stream, place in self.at.items()} | batch
        settled = {stream: place for stream, place in at.items() if place.is_plain and stream not in batch}
        if len(settled) <= max(PLAIN, len(self.base.places) // PART):
            return Places(at, self.base)
        return Places(
            {stream: place for stream, place in at.items() if stream not in settled},
            _packed(self.base.places | settled),
        )


def cursor_json(places: Places) -> dict[str, Any]:
    at = _nested({stream: [_text(place.id), place.added, *_plan_row(place)] for stream, place in places.at.items()})
    return {"v": WITH_BASE, "at": at, "base": places.base.packed} if places.base.packed else {"v": VERSION, "at": at}


def _packed(places: dict[StreamOf, Position]) -> Base:
    """As columns of JSON, compressed: a third as long, and no work for those that read or write an offset."""
    packed: dict[str, str] = {}
    for name, by_key in _nested(places).items():
        columns = [list(by_key), [_text(one.id) for one in by_key.values()], [one.added for one in by_key.values()]]
        columns.append([None if one.seen is None else _seen_row(one.seen) for one in by_key.values()])
        packed[name] = base64.b64encode(zlib.compress(json.dumps(columns).encode())).decode()
    return Base(places, packed)


def _unpacked(packed: dict[str, str]) -> Base:
    places: dict[StreamOf, Position] = {}
    for name, text in packed.items():
        for key, entry_id, added, *seen in zip(*json.loads(zlib.decompress(base64.b64decode(text))), strict=True):
            state = _seen_of(seen[0]) if seen and seen[0] else None
            places[name, key.encode(errors="surrogateescape")] = Position(_id(entry_id), added, seen=state)
    return Base(places, packed)


def _plan_row(place: Position) -> list[Any]:
    """The members of a position that most have not."""
    more: dict[str, Any] = {}
    if place.begin is not None:
        more["begin"] = [_text(place.begin[0]), place.begin[1]]
    if place.counts:
        more["counts"] = list(place.counts)
    if place.seen is not None:
        more["seen"] = _seen_row(place.seen)
    if place.since is not None:
        more["since"] = _text(place.since)
    cuts = [_text(one) for one in place.cuts]
    return [cuts, more] if more else [cuts] if cuts else []


def cursor_of(offset: dict[str, Any], known: Base | None = None) -> Places:
    """The places in an offset; PipelineError if another mode, or a later version, wrote it.

    `known`: a base that is not unpacked again if it is the one of this offset.
    """
    _check(offset, "at")
    packed = offset.get("base", {})
    base = known if known is not None and known.packed == packed else _unpacked(packed)
    return Places({stream: _position(*row) for stream, row in _flat(offset["at"])}, base)


def _position(
    entry_id: str, added: int | None, cuts: Sequence[str] = (), more: Mapping[str, Any] | None = None
) -> Position:
    more = more or {}
    begin, seen = more.get("begin"), more.get("seen")
    return Position(
        _id(entry_id),
        added,
        tuple(_id(one) for one in cuts),
        tuple(more.get("counts", ())),
        None if begin is None else (_id(begin[0]), begin[1]),
        None if seen is None else _seen_of(seen),
        _id(more["since"]) if "since" in more else None,
    )


def delivered_json(offset: Delivered) -> dict[str, Any]:
    runs = {stream: [_run_row(run) for run in some] for stream, some in offset.runs.items() if some}
    written = {
        "v": VERSION,
        "n": offset.number,
        "consumer": offset.consumer,
        "last": _nested({stream: _text(last) for stream, last in offset.last.items()}),
        "runs": _nested(runs),
    }
    if offset.added:
        written["added"] = _nested(offset.added)
    if offset.since:
        written["since"] = _nested({stream: _text(since) for stream, since in offset.since.items()})
    if offset.unsure:
        written["unsure"] = _nested(dict.fromkeys(offset.unsure, True))
    if offset.seen:
        written["seen"] = _nested({stream: _seen_row(seen) for stream, seen in offset.seen.items()})
    if offset.deleted:
        written["deleted"] = _nested({stream: _text(deleted) for stream, deleted in offset.deleted.items()})
    return written


def delivered_of(offset: dict[str, Any]) -> Delivered:
    """The deliveries in an offset; PipelineError if another mode, or a later version, wrote it."""
    _check(offset, "runs")
    runs = {stream: tuple(_run_of(row) for row in rows) for stream, rows in _flat(offset["runs"])}
    last = {stream: _id(word) for stream, word in _flat(offset["last"])}
    added = dict(_flat(offset.get("added", {})))
    since = {stream: _id(word) for stream, word in _flat(offset.get("since", {}))}
    unsure = {stream for stream, _ in _flat(offset.get("unsure", {}))}
    seen = {stream: _seen_of(row) for stream, row in _flat(offset.get("seen", {}))}
    deleted = {stream: _id(word) for stream, word in _flat(offset.get("deleted", {}))}
    return Delivered(offset["n"], offset["consumer"], runs, last, added, since, unsure, seen, deleted)


def _seen_row(seen: StreamState) -> list[Any]:
    return [_text(seen.last), seen.added, seen.length, _text(seen.max_deleted), _text(seen.first)]


def _seen_of(row: list[Any]) -> StreamState:
    return StreamState(row[2], _id(row[4]), _id(row[0]), row[1], _id(row[3]))


def _run_row(run: DeliveredIds) -> list[Any]:
    return [IDS, *map(_text, run.ids)] if run.ids else [_text(run.first), _text(run.last), run.count]


def _run_of(row: list[Any]) -> DeliveredIds:
    if row[0] != IDS:
        return DeliveredIds(_id(row[0]), _id(row[1]), row[2])
    found = tuple(_id(word) for word in row[1:])
    return DeliveredIds(found[0], found[-1], len(found), found)


def _check(offset: dict[str, Any], member: str) -> None:
    if offset.get("v") not in READ:
        raise PipelineError(
            f"the checkpoint was written by another version: its offsets are of version {offset.get('v')}"
        )
    if member not in offset:
        raise PipelineError("the checkpoint was written in the other 'groupMode': a query keeps its mode for life")


def _nested(flat: dict[StreamOf, Any]) -> dict[str, dict[str, Any]]:
    nested: dict[str, dict[str, Any]] = {}
    for endpoint, key in sorted(flat):
        nested.setdefault(endpoint, {})[key.decode(errors="surrogateescape")] = flat[endpoint, key]
    return nested


def _flat(nested: dict[str, dict[str, Any]]) -> Iterator[tuple[StreamOf, Any]]:
    for endpoint, by_key in nested.items():
        for key, value in by_key.items():
            yield (endpoint, key.encode(errors="surrogateescape")), value


def _text(entry_id: StreamId) -> str:
    return ids.text(entry_id).decode()


def _id(word: str) -> StreamId:
    return ids.parse(word.encode())
