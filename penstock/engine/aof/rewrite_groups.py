"""A consumer group's lines in a new base: pending entries of all consumers in the order of time, then released ones."""

from collections.abc import Iterator
from typing import Final

from penstock.engine.aof import group_effects
from penstock.engine.aof.aof_compat import AofCompat
from penstock.engine.aof.rewrite_progress import Progress
from penstock.engine.effects import pack
from penstock.storage.streams import ids
from penstock.storage.streams.pending.delivery_walk import runs_in_time_order
from penstock.storage.streams.pending.group import Group

MOST_IDS: Final = 1000  # in one XCLAIM or XNACK


class GroupLines:
    """The lines of a group that exists already, of a stream that has the pending entries' ids."""

    __slots__ = ("_compat", "_group", "_key", "_last", "_progress")

    def __init__(self, key: bytes, group: Group, written_in: AofCompat, progress: Progress) -> None:
        self._key = key
        self._group = group
        self._last = ids.text(group.last_id)
        self._compat = written_in
        self._progress = progress

    def all(self) -> Iterator[bytes]:
        """Where nothing can be released, the zone comes first, claimed at time 0."""
        if not self._compat.releases:
            yield from self._release_lines()
        yield from self._claim_lines()
        yield from self._idle_consumers()
        if self._compat.releases:
            yield from self._release_lines()

    def _claim_lines(self) -> Iterator[bytes]:
        """One XCLAIM for each run of equal consumer, time and count: their order is CLAIM's order."""
        texts: list[bytes] = []
        common = (0, 0, 0)
        for block, start, stop in runs_in_time_order(self._group.pel.order):
            this = (block.owners[start], block.times[start], block.counts[start])
            if texts and this != common:
                yield self._claim(texts, common)
                texts = []
            common = this
            texts += block.segment.id_texts(start, stop)
            while len(texts) >= MOST_IDS:
                yield self._claim(texts[:MOST_IDS], common)
                del texts[:MOST_IDS]
        if texts:
            yield self._claim(texts, common)

    def _claim(self, texts: list[bytes], common: tuple[int, int, int]) -> bytes:
        self._progress.steps += len(texts)
        owner, time_ms, count = common
        consumer = self._group.pel.owners[owner]
        assert consumer is not None, "time order holds what has an owner"
        options = (b"TIME", b"%d" % time_ms, b"RETRYCOUNT", b"%d" % count, b"FORCE", b"JUSTID", b"LASTID", self._last)
        return pack((b"XCLAIM", self._key, self._group.name, consumer.name, b"0", *texts, *options))

    def _idle_consumers(self) -> Iterator[bytes]:
        for consumer in self._group.consumers_by_name():
            if not consumer.pending:
                yield pack((b"XGROUP", b"CREATECONSUMER", self._key, self._group.name, consumer.name))

    def _release_lines(self) -> Iterator[bytes]:
        """One line for each run of equal count, in order of release."""
        texts: list[bytes] = []
        common = 0
        for block, slot in self._group.pel.order.in_nack_zone():
            if texts and (block.counts[slot] != common or len(texts) == MOST_IDS):
                yield self._release(texts, common)
                texts = []
            common = block.counts[slot]
            texts.append(block.id_text(slot))
        if texts:
            yield self._release(texts, common)

    def _release(self, texts: list[bytes], count: int) -> bytes:
        self._progress.steps += len(texts)
        return pack(group_effects.release_words(self._compat, self._key, self._group, texts, count))
