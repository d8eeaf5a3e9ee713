"""What each partition of a batch has written with delivery=idmp and keys made of the rows: see ContentKeys.

Such a key is one of the row's partition, because equal rows in two partitions are two rows. So where an open batch has
other partitions when it is tried again, its rows are written twice. A partition's marker (the key of the ledger's)
has the batch from its first try on, and its rows and their sum, in any order, when a try comes to its end.
"""

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, mapping, text_of
from penstock.pipeline.connector.sink.ledger import Task, marker_key, newest_request, other_delivery
from penstock.pipeline.errors import PipelineError
from penstock.storage.streams import ids


class PartitionMark:
    """One task's marker at one server."""

    def __init__(self, client: Client, task: Task, age_ms: int) -> None:
        self._client = client
        self._task = task
        self._age_ms = age_ms
        self._key = marker_key(task.query, task.partition)
        found = client.call(*newest_request(self._key))
        place = ids.parse(found[0][0]) if found else ids.ZERO
        self._written = 0  # rows of an earlier try, 0 if none came to its end
        self._sum = b""
        if place >> 64 == task.batch + 1:
            said = mapping(found[0][1])
            if b"sum" not in said:
                raise other_delivery(task.batch, self._key)
            self._written, self._sum = place & ids.HALF, said[b"sum"]
        else:
            self._note(0, 0)

    def end(self, rows: int, total: int) -> None:
        """Note what was written. PipelineError if an earlier try wrote other rows."""
        if not self._written:
            if rows:
                self._note(rows, total)
        elif (self._written, self._sum) != (rows, b"%d" % total):
            raise PipelineError(
                f"partition {self._task.partition} of batch {self._task.batch} has {rows} rows, and an earlier try had "
                f"{self._written} or other ones (marker {self._key!r}): rows are in the stream twice. While a batch "
                "is open, keep what decides the partitions (minPartitions, entriesPerPartition, shuffle partitions), "
                "or give an idempotencyColumn. To go on, remove the markers: `penstock pipeline markers --query "
                f"{self._task.query} --remove`"
            )

    def _note(self, rows: int, total: int) -> None:
        entry_id = f"{self._task.batch + 1}-{rows}"
        add, _ = self._client.pipeline(
            [["XADD", self._key, "MAXLEN", 1, entry_id, "sum", total], ["PEXPIRE", self._key, self._age_ms]]
        )
        if isinstance(add, ReplyError) and b"equal or smaller" not in add.text:  # another try of the task was first
            raise PipelineError(f"the marker {self._key!r} cannot be written: {text_of(add)}")
