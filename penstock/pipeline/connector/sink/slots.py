"""Writing to a cluster: a task's rows by slot, and which slots it has written to.

A transaction has keys of one slot, so a task has a marker (ledger.py) in each slot that it writes to: the marker's key
has a hash tag of that slot. Which slots those are is noted before rows are written, in a stream that has a marker's key
without a tag: one entry, whose id is `<batch + 1>-<number of slots>`.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

import numpy
import pyarrow as pa

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, Request, mapping, text_of
from penstock.pipeline.connector.connection.cluster import ClusterClient, slot_tag, slots_of
from penstock.pipeline.connector.sink.ledger import COMMITS, Ledger, Task, marker_key
from penstock.pipeline.connector.sink.resp_columns import as_bytes
from penstock.pipeline.connector.sink.sink_options import ADD, DEADLETTER, KEY_HERE, SinkOptions
from penstock.pipeline.errors import PipelineError
from penstock.storage.streams import ids

SLOTS: Final = "slots"  # the field of the note


class ClusterTask:
    """One task's writing to one cluster. `ledger_of` makes its markers, None if it has none."""

    def __init__(
        self, client: ClusterClient, options: SinkOptions, task: Task, ledger_of: Callable[[Client], Ledger] | None
    ) -> None:
        self.client = client
        self._options = options
        self._ledger_of = ledger_of
        self._batch = task.batch
        self._key = marker_key(task.query, task.partition)
        self._noted: set[int] = set()
        self._used: set[int] = set()

    def parts(self, batch: Any) -> list[tuple[int, Any]]:
        """The rows of a batch by slot, which are noted."""
        found = list(by_slot(self._options, batch))
        slots = {slot for slot, _ in found}
        self._used |= slots
        if self._ledger_of is not None and not slots <= self._noted:
            self._note(slots)
        return found

    def end(self) -> None:
        """PipelineError if an earlier try of the task wrote rows to a slot for which this try had none."""
        if self._ledger_of is not None:
            for slot in sorted(self._look() - self._used):
                self._ledger_of(self.client.at(slot)).end()

    def _note(self, slots: set[int]) -> None:
        batch = self._batch
        while True:
            self._noted = self._look()
            if slots <= self._noted:
                return
            more = sorted(self._noted | slots)
            try:
                self.client.call(
                    "XADD", self._key, "MAXLEN", 1, f"{batch + 1}-{len(more)}", SLOTS, ",".join(map(str, more))
                )
            except ReplyError as refusal:
                if b"equal or smaller" not in refusal.text:
                    raise PipelineError(
                        f"the ledger's note {self._key!r} cannot be written: {text_of(refusal)}"
                    ) from None
                # Another try of this task notes slots, too.

    def _look(self) -> set[int]:
        """The slots that this try and earlier ones have noted."""
        batch, slots = _read_note(self.client.call("XREVRANGE", self._key, "+", "-", "COUNT", 1))
        if batch > self._batch:
            raise PipelineError(
                f"batch {batch} has been written already, so batch {self._batch} is an old one, tried by a task that "
                f"was given up (marker {self._key!r})"
            )
        return slots if batch == self._batch else set()


def _read_note(found: Any) -> tuple[int, set[int]]:
    """The batch and the slots of a note; batch -1 if there is none."""
    if not found:
        return -1, set()
    entry_id, fields = found[0]
    return (ids.parse(entry_id) >> 64) - 1, set(map(int, mapping(fields)[SLOTS.encode()].split(b",")))


def delete_markers(client: ClusterClient, query: str, partitions: int) -> None:
    """Delete the markers and notes of a finished job."""
    commits = [marker_key(query, COMMITS, tag) for tag in ("", *(node.tag for node in client.nodes()))]
    notes = [marker_key(query, at) for at in range(partitions)]
    requests: list[Request] = []
    found = client.pipeline([["XREVRANGE", note, "+", "-", "COUNT", 1] for note in notes])
    for partition, reply in enumerate(found):
        _, slots = _read_note(None if isinstance(reply, ReplyError) else reply)
        requests += [["DEL", marker_key(query, partition, slot_tag(slot))] for slot in slots]
    client.pipeline([*requests, *(["DEL", note] for note in [*notes, *commits])])


def by_slot(options: SinkOptions, batch: Any) -> Iterator[tuple[int, Any]]:
    """The rows of a batch by the slot of their stream, in their order. O(n log n)."""
    if not batch.num_rows:
        return
    if options.stream is not None:
        keys = [options.stream.encode()]
        of_row = numpy.zeros(batch.num_rows, numpy.int64)
    else:
        names = ("_stream",) if options.operation == ADD else ("stream", "_stream")
        name = next(name for name in names if name in batch.schema.names)
        texts = as_bytes(batch.column(name)).dictionary_encode()
        if texts.null_count:
            raise PipelineError(f"{name} must not be null")
        keys = texts.dictionary.to_pylist()
        of_row = texts.indices.to_numpy().astype(numpy.int64)
    if options.operation == DEADLETTER:
        _refuse_other_slots(options, keys)
    slots = numpy.array(slots_of(keys), numpy.int64)[of_row]
    if len(keys) == 1:
        yield int(slots[0]), batch
        return
    order = numpy.argsort(slots, kind="stable")
    slots, rows = slots[order], batch.take(pa.array(order))
    bounds: list[int] = [0, *(numpy.flatnonzero(numpy.diff(slots)) + 1).tolist(), len(slots)]
    for first, behind in pairwise(bounds):
        yield int(slots[first]), rows.slice(first, behind - first)


def _refuse_other_slots(options: SinkOptions, keys: list[bytes]) -> None:
    """PipelineError if a dead-letter stream is in another slot: copy and XACK are one transaction."""
    dead = [options.dead_letter_stream.encode().replace(KEY_HERE.encode(), key) for key in keys]
    for key, letter, here, there in zip(keys, dead, slots_of(keys), slots_of(dead), strict=True):
        if here != there:
            raise PipelineError(
                f"in a cluster the dead letters of {key!r} need a stream in its slot, and {letter!r} is in another: "
                f"deadLetterStream={{{KEY_HERE}}}:dead is in that of a key without braces"
            )
