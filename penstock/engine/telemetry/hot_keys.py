"""Which keys take the most time and traffic: what HOTKEYS collects while it is switched on (Redis 8.6.3)."""

import random
from typing import Final

from penstock.engine.cluster.hash_slots import slot_of
from penstock.engine.memory.process_memory import CpuTimes
from penstock.engine.table.row import Row

MOST_KEYS: Final = 10_000  # counted at a time; beyond that the smaller half is forgotten
FOR_EVER: Final = 0


class HotKeys:
    """One collection, from START on: what each key's requests took, shared evenly by the keys of a request.

    Requests without keys are not counted. With `sample` r, the keys of a request are counted with the probability 1/r.
    The counts are exact up to MOST_KEYS keys; beyond, keys with little may be missed. O(keys) for each request.
    """

    def __init__(
        self,
        chance: random.Random,
        now_ms: int,
        metrics: list[bytes],
        count: int,
        sample: int,
        duration_ms: int,
        slots: frozenset[int],
    ) -> None:
        """metrics: b"CPU", b"NET" or both. duration_ms: how long is collected, or FOR_EVER. slots: none: all."""
        self.metrics = metrics
        self.count = count
        self.sample = sample
        self.slots = slots
        self.started_ms = now_ms
        self._ends_ms = now_ms + duration_ms if duration_ms else FOR_EVER
        self._stopped_ms = 0  # 0: it is running
        self._chance = chance
        self._cpu_before = CpuTimes()
        self._cpu_after: CpuTimes | None = None
        self.all_usec = 0
        self.all_bytes = 0
        self.slots_usec = 0  # of requests in `slots`
        self.slots_bytes = 0
        self.sampled_usec = 0  # of requests with counted keys
        self.sampled_bytes = 0
        self.key_bytes = 0  # the sum of what the keys were given
        self._usec: dict[bytes, int] = {}
        self._bytes: dict[bytes, int] = {}

    def is_active(self, now_ms: int) -> bool:
        """Whether it is running; stops it if its time is over."""
        if self._ends_ms and now_ms >= self._ends_ms:
            self.stop(self._ends_ms)
        return not self._stopped_ms

    def stop(self, now_ms: int) -> None:
        if not self._stopped_ms:
            self._stopped_ms = now_ms
            self._cpu_after = CpuTimes()

    def move(self, by_ms: int) -> None:
        """Unix time has jumped: it collects as long as it would have."""
        self.started_ms += by_ms
        if self._ends_ms:
            self._ends_ms += by_ms
        if self._stopped_ms:
            self._stopped_ms += by_ms

    def took_ms(self, now_ms: int) -> int:
        """How long it has collected."""
        return (self._stopped_ms or now_ms) - self.started_ms

    def cpu_ms(self) -> tuple[int, int]:
        """The process's time meanwhile, in the program and in the system."""
        before, after = self._cpu_before, self._cpu_after or CpuTimes()
        return int((after.user - before.user) * 1000), int((after.system - before.system) * 1000)

    def note(self, row: Row, request: list[bytes], usec: int, size: int) -> None:
        """A request took so long, and so many bytes with its reply."""
        keys = row.keys_of(request)
        if not keys:
            return
        self.all_usec += usec
        self.all_bytes += size
        if self.slots and slot_of(keys[0]) not in self.slots:  # the keys of a request are in one slot
            return
        self.slots_usec += usec
        self.slots_bytes += size
        if self.sample > 1 and self._chance.randrange(self.sample):
            return
        self.sampled_usec += usec
        self.sampled_bytes += size
        for key in keys:
            if b"CPU" in self.metrics and usec // len(keys):
                _add(self._usec, key, usec // len(keys))
            if b"NET" in self.metrics:
                self.key_bytes += size // len(keys)
                _add(self._bytes, key, size // len(keys))

    def by_usec(self) -> list[tuple[bytes, int]]:
        return _largest(self._usec, self.count)

    def by_bytes(self) -> list[tuple[bytes, int]]:
        return _largest(self._bytes, self.count)


def _add(counts: dict[bytes, int], key: bytes, amount: int) -> None:
    counts[key] = counts.get(key, 0) + amount
    if len(counts) > MOST_KEYS:
        kept = _largest(counts, MOST_KEYS // 2)
        counts.clear()
        counts.update(kept)


def _largest(counts: dict[bytes, int], most: int) -> list[tuple[bytes, int]]:
    """The keys with the largest counts, in falling order. O(n log n)."""
    return sorted(counts.items(), key=lambda pair: pair[1], reverse=True)[:most]
