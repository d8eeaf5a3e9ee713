"""Idempotent producers of a stream: the idempotent ids (iids) that each producer (pid) used, and their entries."""

from collections import OrderedDict
from itertools import islice
from typing import Final

from penstock.storage.streams.ids import StreamId

LONGEST_S: Final = 86_400  # how long iids may be remembered; both as in Redis 8.6.3
MOST_IIDS: Final = 10_000  # of a producer
PRODUCERS_SAMPLED: Final = 32  # producers from which the memory is estimated


class Producers:
    """For each pid an ordered map from iid to entry id, oldest first; and the stream's settings and lifetime counters.

    Invariant: no pid has more than `max_size` iids. A pid may have none: `find` creates it before the entry is
    appended. The first key of a plain dict is found behind all the places of keys that were deleted before it: with
    10,000 iids a pid, each new one passed thousands of them. An OrderedDict finds it at once.
    """

    __slots__ = ("_swept_s", "added", "duplicates", "duration_s", "max_size", "pids")

    def __init__(self, duration_s: int, max_size: int) -> None:
        self.duration_s = duration_s
        self.max_size = max_size
        self.pids: dict[bytes, OrderedDict[bytes, StreamId]] = {}
        self.added = 0  # iids recorded since the stream was created
        self.duplicates = 0
        self._swept_s = 0

    def find(self, pid: bytes, iid: bytes) -> StreamId | None:
        """The id of the entry appended with this iid, which may be deleted by now; or None. Creates the pid. O(1)."""
        iids = self.pids.get(pid)
        if iids is None:
            self.pids[pid] = OrderedDict()
            return None
        return iids.get(iid)

    def record(self, pid: bytes, iid: bytes, entry_id: StreamId) -> None:
        """Record an append; removes the pid's oldest iid if it now has too many. O(1)."""
        iids = self.pids.setdefault(pid, OrderedDict())
        iids.pop(iid, None)
        iids[iid] = entry_id
        self.added += 1
        if len(iids) > self.max_size:
            iids.popitem(last=False)

    @property
    def tracked(self) -> int:
        """The number of iids of all pids. O(pids)."""
        return sum(map(len, self.pids.values())) if self.pids else 0

    def configure(self, duration_s: int, max_size: int) -> bool:
        """XCFGSET: new settings remove all pids; returns whether the settings changed."""
        if (duration_s, max_size) == (self.duration_s, self.max_size):
            return False
        self.duration_s, self.max_size = duration_s, max_size
        self.pids.clear()
        return True

    def sweep(self, now_ms: int) -> None:
        """Remove expired iids: for each pid from the oldest on, up to the first that is not expired.

        Does nothing if it was called before in the same second. The age is that of the entry's id, not of the record
        (Redis 8.6.3). Redis does this in the background; here it is done before each use, with the same effect. O(pids
        + iids removed).
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
        """A copy that shares nothing. O(iids)."""
        copied = Producers(self.duration_s, self.max_size)
        copied.pids = {pid: iids.copy() for pid, iids in self.pids.items()}
        copied.added, copied.duplicates = self.added, self.duplicates
        return copied

    def memory_usage(self) -> int:
        """An estimate in bytes, from the first producers. O(1)."""
        sampled = [300 + len(pid) + 160 * len(iids) for pid, iids in islice(self.pids.items(), PRODUCERS_SAMPLED)]
        return sum(sampled) * len(self.pids) // max(len(sampled), 1)
