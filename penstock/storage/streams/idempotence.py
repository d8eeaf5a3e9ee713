"""Idempotent producers of a stream: which idempotent ids (iids) each producer (pid) has used, and for which entries."""

from penstock.storage.streams.ids import StreamId


class Producers:
    """Per pid an insertion-ordered map of iid to entry id, and the settings and lifetime counters of the stream.

    Invariant: no pid holds more than `max_size` iids. A pid may be empty: it is made before the append is tried.
    """

    __slots__ = ("_swept_s", "added", "duplicates", "duration_s", "max_size", "pids")

    def __init__(self, duration_s: int, max_size: int) -> None:
        self.duration_s = duration_s
        self.max_size = max_size
        self.pids: dict[bytes, dict[bytes, StreamId]] = {}
        self.added = 0  # iids, over the stream's life
        self.duplicates = 0
        self._swept_s = 0

    def find(self, pid: bytes, iid: bytes) -> StreamId | None:
        """The entry that was appended under an iid; it need not exist any more. The pid is known from here on."""
        iids = self.pids.get(pid)
        if iids is None:
            self.pids[pid] = {}
            return None
        return iids.get(iid)

    def record(self, pid: bytes, iid: bytes, entry_id: StreamId) -> None:
        """Note an append; the pid's oldest iid goes where it now has too many."""
        iids = self.pids.setdefault(pid, {})
        iids.pop(iid, None)
        iids[iid] = entry_id
        self.added += 1
        if len(iids) > self.max_size:
            del iids[next(iter(iids))]

    @property
    def tracked(self) -> int:
        """iids of all pids."""
        return sum(map(len, self.pids.values()))

    def configure(self, duration_s: int, max_size: int) -> bool:
        """XCFGSET: other settings than now forget all pids; whether they were other."""
        if (duration_s, max_size) == (self.duration_s, self.max_size):
            return False
        self.duration_s, self.max_size = duration_s, max_size
        self.pids.clear()
        return True

    def sweep(self, now_ms: int) -> None:
        """Once a second at the most: forget iids whose entry's id is too old, up to each pid's first that is not.

        Redis has a job for this; here whoever is about to look calls it, which comes to the same. The age is that of
        the entry's id, not of the record (Redis 8.6.3).
        """
        if now_ms // 1000 == self._swept_s:
            return
        self._swept_s = now_ms // 1000
        limit = now_ms - self.duration_s * 1000
        if limit < 0:
            return
        for pid in list(self.pids):
            iids = self.pids[pid]
            while iids:
                iid = next(iter(iids))
                if iids[iid] >> 64 > limit:
                    break
                del iids[iid]
            if not iids:
                del self.pids[pid]

    def copy(self) -> "Producers":
        twin = Producers(self.duration_s, self.max_size)
        twin.pids = {pid: dict(iids) for pid, iids in self.pids.items()}
        twin.added, twin.duplicates = self.added, self.duplicates
        return twin

    def memory_usage(self) -> int:
        """Bytes, roughly."""
        return sum(300 + len(pid) + 160 * len(iids) for pid, iids in self.pids.items())
