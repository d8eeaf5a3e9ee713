"""Exactly-once writing: the transaction that writes rows also records how many rows its task has written.

Each task of a query has a *marker* on the server of its data: a stream with one entry, key
`__spark:<query>:<partition>`. The entry's id is `<batch + 1>-<rows written>`, its fields are checksums of those rows
and how keys were placed among endpoints. It expires `markerAge` after its last batch.
A chunk of XADDs and the next marker are one MULTI/EXEC, guarded by WATCH. A task that is run again, in this run or
after a restart of anything, reads the marker, compares the checksums, skips the rows that were written, and goes on.
Rows are counted, not chunks, so the option `pipeline` may change between two tries.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from penstock.errors import ReplyError
from penstock.pipeline.connector import schemas
from penstock.pipeline.connector.connection.client import Client, Reply, Request, mapping, packed, text_of
from penstock.pipeline.connector.sink.resp_columns import Texts, shown
from penstock.pipeline.connector.sink.row_encoder import Encoded
from penstock.pipeline.errors import PipelineError, ServerGone
from penstock.storage.streams import ids

REFUSED_SEQ: Final = ids.HALF  # in the id of a marker that says that the server refused a row within a transaction
TRIES: Final = 5  # of one transaction, each on a new connection

ADVICE: Final = (
    "Other tasks of the batch may have written rows once more: the stream holds some twice then. "
    "A partition's rows must come in the same order each time: sort them (sortWithinPartitions), take away what is "
    "random, or choose delivery=idmp, which does not mind the order, or delivery=at-least-once"
)


COMMITS: Final = "commits"  # in the place of a partition: the query's committed batches, see commits.py


def marker_key(query: str, partition: int | str, tag: str = "") -> str:
    """The key of a task's marker. `tag` is a client's, of a slot of a cluster."""
    return f"{schemas.MARKERS}:{tag}{query}:{partition}"


def newest_request(key: str) -> Request:
    return ["XREVRANGE", key, "+", "-", "COUNT", 1]


@dataclass(frozen=True, slots=True)
class Task:
    """Query, batch and partition: the same in every try of a task.

    `follows`: all batches before were committed, as those of a streaming query are.
    """

    query: str
    batch: int
    partition: int
    follows: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """The rows of a batch that a task has written: their number, and the checksums of a Mark as text."""

    rows: int
    crc: str

    @classmethod
    def of(cls, parts: "Mapping[str, Written]") -> "Written":
        """The sum of the rows that were written under each marker's tag (in a cluster there are several)."""
        if not parts:
            return Mark(0).written
        if len(parts) == 1 and "" in parts:
            return parts[""]
        text = "\n".join(f"{tag} {one.rows} {one.crc}" for tag, one in sorted(parts.items()))
        return cls(sum(one.rows for one in parts.values()), f"{zlib.crc32(text.encode()):016x}")


@dataclass(frozen=True, slots=True)
class Mark:
    """How many rows of a batch are written, and the checksums of their keys and of their fields."""

    batch: int
    rows: int = 0
    keys_crc: int = 0
    fields_crc: int = 0

    def after(self, rows: Encoded, first: int, behind: int) -> "Mark":
        """With more rows written."""
        keys_crc = self.keys_crc
        if rows.keys is not None:
            keys_crc = zlib.crc32(rows.keys.between(first, behind), keys_crc)
        fields_crc = zlib.crc32(rows.fields.between(first, behind), self.fields_crc)
        return Mark(self.batch, self.rows + behind - first, keys_crc, fields_crc)

    @property
    def written(self) -> Written:
        return Written(self.rows, f"{self.keys_crc:08x}{self.fields_crc:08x}")

    def request(self, key: str, placement: str) -> Request:
        entry_id = f"{self.batch + 1}-{self.rows}"
        return ["XADD", key, "MAXLEN", 1, entry_id, "crc", self.written.crc, "placed", placement]


class Ledger:
    """Writes the rows of one task and batch to one server, exactly once.

    `recorded` is the marker's count, `done` the count of this try; rows are skipped until it reaches `recorded`.
    Of a batch that `is_committed` nothing is written: `done` is to be compared with what was committed.
    """

    def __init__(self, client: Client, task: Task, placement: str, age_ms: int, is_committed: bool = False) -> None:
        self._client = client
        self.tag = client.tag
        self.key = marker_key(task.query, task.partition, client.tag)
        self._query = task.query
        self._batch = batch = task.batch
        self._placement = placement
        self._age_ms = age_ms
        self._is_committed = is_committed
        self.skipped = self.dropped = 0
        self.done = self.recorded = Mark(batch)
        if is_committed:
            return
        # Checked before writing: if MULTI were refused later, the rows after it would be written without a transaction.
        for reply in client.pipeline([["MULTI"], ["DISCARD"]]):
            if isinstance(reply, ReplyError):
                raise PipelineError(f"the server has no transactions ({text_of(reply)}): use delivery=idmp")
        self.recorded = self._look()

    def write(self, rows: Encoded, requests: Texts, chunk: int) -> None:
        """Write the rows that were not written before, in transactions of `chunk` rows, or fewer if they are long."""
        if self._is_committed:
            self.done = self.done.after(rows, 0, rows.count)
            self.skipped += rows.count
            return
        first = self._skip(rows)
        while first < rows.count:
            behind = requests.step(first, chunk)
            mark = self.done.after(rows, first, behind)
            self._transact(mark, requests.between(first, behind), behind - first)
            self.done = self.recorded = mark
            first = behind

    def end(self) -> None:
        """All rows were handed over. PipelineError if more than these were written before."""
        if self.done.rows < self.recorded.rows:
            raise PipelineError(
                f"an earlier try of this task wrote {self.recorded.rows} rows, and now there are only "
                f"{self.done.rows} (marker {self.key!r}). {ADVICE}"
            )

    def refuse_other_types(self, keys: Sequence[bytes]) -> None:
        """PipelineError if a key holds another type: within a transaction its XADD would fail and others succeed.

        The marker is read again too: the connection may be a new one, which does not WATCH it yet.
        """
        if self._is_committed:
            return
        requests: list[Request] = [["TYPE", key] for key in keys]
        *kinds, watched, found = self._client.pipeline([*requests, *self._look_requests()])
        for key, kind in zip(keys, kinds, strict=True):
            if isinstance(kind, ReplyError):
                raise PipelineError(f"the key {key!r}: {text_of(kind)}")
            if kind not in (b"stream", b"none"):
                raise PipelineError(f"the key {key!r} holds a {kind.decode()}, not a stream: nothing was written to it")
        if self._mark_of(watched, found) != self.recorded:
            raise self._overtaken()

    def _skip(self, rows: Encoded) -> int:
        """The number of leading rows that were written before; PipelineError if their checksums differ."""
        count = min(rows.count, self.recorded.rows - self.done.rows)
        if not count:
            return 0
        self.done = self.done.after(rows, 0, count)
        self.skipped += count
        if self.done.rows == self.recorded.rows and self.done != self.recorded:
            raise PipelineError(
                f"the first {self.done.rows} rows of this task are not those that an earlier try wrote (marker "
                f"{self.key!r}). {ADVICE}"
            )
        return count

    # -- the marker ---------------------------------------------------------------------------------------------------

    def _look(self) -> Mark:
        """Read and WATCH the marker: if another task changes it, our next EXEC fails."""
        watched, found = self._client.pipeline(self._look_requests())
        return self._mark_of(watched, found)

    def _look_requests(self) -> list[Request]:
        return [["WATCH", self.key], newest_request(self.key)]

    def _mark_of(self, watched: Reply, found: Reply) -> Mark:
        for reply in (watched, found):
            if isinstance(reply, ReplyError):
                raise PipelineError(f"the ledger's marker {self.key!r} cannot be read: {text_of(reply)}")
        if not found:
            return Mark(self._batch)
        (entry_id, fields), *_ = found
        place, said = ids.parse(entry_id), mapping(fields)
        batch, rows = (place >> 64) - 1, place & ids.HALF
        if batch > self._batch:
            raise PipelineError(
                f"batch {batch} has been written already, so batch {self._batch} is an old one, tried by a task that "
                f"was given up (marker {self.key!r}). {restored_advice(self._query)}"
            )
        if batch < self._batch:
            return Mark(self._batch)
        if rows == REFUSED_SEQ:
            raise PipelineError(said.get(b"refused", b"").decode(errors="replace"))
        if b"crc" not in said:
            raise other_delivery(self._batch, self.key)
        crc = said[b"crc"]
        return Mark(batch, rows, int(crc[:8], 16), int(crc[8:], 16))

    def _transact(self, mark: Mark, requests: memoryview, count: int) -> None:
        """Write rows and marker in one transaction, the marker last, and read the marker again for the next one.

        If the connection breaks, the marker tells whether the transaction was executed.
        """
        behind: list[Request] = [mark.request(self.key, self._placement), ["EXEC"], *self._look_requests()]
        if not self.recorded.rows:  # once a batch; what is added to a stream later leaves its age alone
            behind.insert(1, ["PEXPIRE", self.key, self._age_ms])
        payload = b"".join([packed("MULTI"), requests, *[packed(*words) for words in behind]])
        for _ in range(TRIES):
            try:
                replies = self._client.exchange(payload, count + 1 + len(behind), retry=False)
            except ServerGone as gone:
                trouble = gone
                found = self._look()
                if found == mark:
                    self.skipped += count
                    return
                if found != self.recorded:
                    raise self._overtaken() from gone
                continue
            self._check(replies, mark, requests)
            if self._mark_of(*replies[-2:]) != mark:
                raise self._overtaken()
            return
        raise trouble

    def _check(self, replies: list[Reply], mark: Mark, requests: memoryview) -> None:
        """PipelineError unless every row was written, or dropped because of NOMKSTREAM."""
        answer, count = replies[-3], mark.rows - self.done.rows
        if answer is None:
            raise self._overtaken()
        if isinstance(answer, ReplyError):
            at = next(number for number, reply in enumerate(replies) if isinstance(reply, ReplyError))
            what = shown(requests, at - 1) if 0 < at <= count else f"marker {self.key!r}"
            raise PipelineError(f"the server refuses to write (nothing was written): {text_of(replies[at])} ({what})")
        if ReplyError in set(map(type, answer)):
            refused = [number for number, reply in enumerate(answer) if isinstance(reply, ReplyError)]
            what = shown(requests, refused[0]) if refused[0] < count else f"marker {self.key!r}"
            sentence = (
                f"of the rows {mark.rows - count} to {mark.rows} of this task the server refused {len(refused)}, "
                f"while it wrote the others: {text_of(answer[refused[0]])} ({what}). Every further "
                "try would skip or double some, so it stops here; to write the whole task again, delete the stream "
                f"{self.key!r}"
            )
            marker = f"{self._batch + 1}-{REFUSED_SEQ}"
            self._client.pipeline([["XADD", self.key, "MAXLEN", 1, marker, "refused", sentence]])
            raise PipelineError(sentence)
        self.dropped += answer[:count].count(None)

    def _overtaken(self) -> PipelineError:
        return PipelineError(
            f"another try of this task is writing too, so this one gives way (marker {self.key!r}); Spark tries again, "
            "and then finds what has been written"
        )


def other_delivery(batch: int, key: str) -> PipelineError:
    return PipelineError(
        f"batch {batch} was begun with another 'delivery' (marker {key!r}), and its rows would be written twice: keep "
        "the delivery while a batch is open"
    )


def restored_advice(query: str) -> str:
    return (
        "If the checkpoint was restored from a backup, restore a newer one; or begin a new checkpoint after what is "
        f"written (startingId); or, to write the rows again, remove the markers with `penstock pipeline markers "
        f"--query {query} --remove`, and set failOnDataLoss=false for one batch"
    )


# -- on the driver ----------------------------------------------------------------------------------------------------


def refuse_other_partitioning(client: Client, query: str, batch: int, partitions: int) -> None:
    """PipelineError if an earlier try of this batch had more partitions and wrote rows: some may be written twice.

    A restarted query must split an open batch as before. Checked on the driver: a task is not told the number of
    partitions.
    """
    beyond = range(partitions, 2 * partitions + 16)
    requests = [newest_request(marker_key(query, at)) for at in beyond]
    for at, found in zip(beyond, client.pipeline(requests), strict=True):
        if isinstance(found, list) and found and (ids.parse(found[0][0]) >> 64) - 1 == batch:
            raise PipelineError(
                f"batch {batch} was begun with more partitions than the {partitions} that it has now, and partition "
                f"{at} had written rows, which were written again: the stream holds some twice. Keep what decides the "
                "number of partitions (minPartitions, entriesPerPartition, shuffle partitions) while a batch is open"
            )


def delete_markers(client: Client, query: str, partitions: int) -> None:
    """Delete the markers of a finished job."""
    client.call("DEL", *(marker_key(query, at) for at in [*range(partitions), COMMITS]))
