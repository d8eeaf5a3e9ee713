"""Offsets as Spark keeps them in its checkpoint: JSON with sorted keys, because Spark compares offsets as text.

An offset of `groupMode=cursor` has, for each stream, the last id read, the number of entries added up to it (null if
unknown), and the ids at which the batch that ends there is split into tasks. The splits are part of the offset because
a batch that is run again must have the same tasks: the sink counts the rows that each task has written.

    {"v": 1, "at": {"main": {"orders": ["1795214535211-9", 1834211, ["1795214530000-0"]]}}}

An offset of `groupMode=shared` has the deliveries of one batch, as runs of ids or single ids, and the last id
delivered to the group in each stream.

    {"v": 1, "n": 17, "consumer": "spark-6f1c", "last": {"main": {"orders": "7-1"}},
     "runs": {"main": {"orders": [["5-0", "7-1", 41], ["ids", "3-0", "3-9"]]}}}
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from penstock.pipeline.errors import PipelineError
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId

VERSION: Final = 1
IDS: Final = "ids"

StreamOf: TypeAlias = tuple[str, bytes]  # an endpoint's name, a key


@dataclass(frozen=True, slots=True)
class Position:
    """How far a stream was read. `added` is its entries-added counter there, None if unknown."""

    id: StreamId
    added: int | None
    cuts: tuple[StreamId, ...] = ()


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


def cursor_json(places: dict[StreamOf, Position]) -> dict[str, Any]:
    at = {stream: [_text(place.id), place.added, *_cuts(place)] for stream, place in places.items()}
    return {"v": VERSION, "at": _nested(at)}


def _cuts(place: Position) -> list[list[str]]:
    return [[_text(one) for one in place.cuts]] if place.cuts else []


def cursor_of(offset: dict[str, Any]) -> dict[StreamOf, Position]:
    """The places in an offset; PipelineError if another mode, or a later version, wrote it."""
    _check(offset, "at")
    return {
        stream: Position(_id(row[0]), row[1], tuple(_id(one) for one in (row[2] if len(row) > 2 else ())))
        for stream, row in _flat(offset["at"])
    }


def delivered_json(offset: Delivered) -> dict[str, Any]:
    runs = {stream: [_run_row(run) for run in some] for stream, some in offset.runs.items() if some}
    return {
        "v": VERSION,
        "n": offset.number,
        "consumer": offset.consumer,
        "last": _nested({stream: _text(last) for stream, last in offset.last.items()}),
        "runs": _nested(runs),
    }


def delivered_of(offset: dict[str, Any]) -> Delivered:
    """The deliveries in an offset; PipelineError if another mode, or a later version, wrote it."""
    _check(offset, "runs")
    runs = {stream: tuple(_run_of(row) for row in rows) for stream, rows in _flat(offset["runs"])}
    last = {stream: _id(word) for stream, word in _flat(offset["last"])}
    return Delivered(offset["n"], offset["consumer"], runs, last)


def _run_row(run: DeliveredIds) -> list[Any]:
    return [IDS, *map(_text, run.ids)] if run.ids else [_text(run.first), _text(run.last), run.count]


def _run_of(row: list[Any]) -> DeliveredIds:
    if row[0] != IDS:
        return DeliveredIds(_id(row[0]), _id(row[1]), row[2])
    found = tuple(_id(word) for word in row[1:])
    return DeliveredIds(found[0], found[-1], len(found), found)


def _check(offset: dict[str, Any], member: str) -> None:
    if offset.get("v") != VERSION:
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
