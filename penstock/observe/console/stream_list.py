"""The streams of the overview: which groups are stuck, and the order and choice of the rows.

The groups of all streams are asked for in turns, those that are stuck at each reading (stream_survey.Watch). An order
by lag or the like is that of what was known when a stream was asked for last.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeAlias

from penstock.observe import urgency
from penstock.observe.console import names
from penstock.observe.console.engine_client import Words
from penstock.observe.stream_survey import AT_ONCE, GroupState, Watch

STUCK: Final = 10  # groups that are shown above the streams
WATCHED: Final = 20  # groups that each reading asks for
FIRST_PIECES: Final = 40  # of AT_ONCE streams, a reading, until all are known
PAUSE_S: Final = 0.005  # between two pieces: the server answers others
ORDERS: Final[dict[str, Callable[[int, list[GroupState]], Any]]] = {
    "length": lambda length, groups: length,
    "groups": lambda length, groups: len(groups),
    "consumers": lambda length, groups: sum(one.consumers for one in groups),
    "pending": lambda length, groups: sum(one.pending for one in groups),
    "lag": lambda length, groups: max((one.lag or 0 for one in groups), default=0),
}
NAME: Final = "name"
TROUBLE: Final = "trouble"

Ask: TypeAlias = Callable[[list[Words]], Awaitable[list[Any]]]


class StreamList:
    """The streams of one open overview."""

    def __init__(self, order: str, only_pending: bool) -> None:
        """order: NAME, TROUBLE or one of ORDERS, from the largest; with `-` before it the other way round."""
        self._order = order.removeprefix("-")
        self._is_reversed = order.startswith("-")
        self._only_pending = only_pending
        self._watch = Watch()
        self._lengths: dict[bytes, int] = {}

    @staticmethod
    def is_order(order: str) -> bool:
        return order.removeprefix("-") in (NAME, TROUBLE, *ORDERS)

    async def look(self, ask: Ask, keys: Iterable[bytes]) -> None:
        """Ask for some of the streams; in pieces, between which the server answers others."""
        self._watch.follow(keys)
        self._lengths = {key: length for key, length in self._lengths.items() if key in self._watch.keys}
        for _ in range(FIRST_PIECES):
            due = self._watch.due(AT_ONCE, WATCHED)
            asking = self._watch.look(due)
            try:
                requests = next(asking)
                while True:
                    requests = asking.send(await ask(requests))
            except StopIteration:
                pass
            lengths = await ask([[b"XLEN", key] for key in due])
            known = zip(due, lengths, strict=True)
            self._lengths.update({key: length for key, length in known if isinstance(length, int)})
            if self._watch.asked >= len(self._watch.keys):
                break
            await asyncio.sleep(PAUSE_S)

    def ordered(self, keys: list[bytes]) -> list[bytes]:
        """The streams that are chosen, in order; `keys` are in the order of names."""
        if self._only_pending:
            keys = [key for key in keys if any(one.pending for one in self._watch.groups_of(key))]
        if self._order == TROUBLE:
            keys = sorted(keys, key=self._rank)
        elif self._order != NAME:
            value_of = ORDERS[self._order]
            keys = sorted(keys, key=lambda key: -value_of(self._lengths.get(key, 0), self._watch.groups_of(key)))
        return keys[::-1] if self._is_reversed else keys

    def _rank(self, key: bytes) -> urgency.Rank:
        return min((one.rank for one in self._watch.groups_of(key)), default=urgency.WITHOUT_GROUPS)

    def shown(self) -> dict[str, object]:
        """The groups that are stuck, how many there are, and of how many streams the groups are known."""
        stuck = [one for one in self._watch.groups if urgency.is_stuck(one.rank)]
        rows = [
            {
                "key": names.token(one.key),
                "name": names.token(one.name),
                "consumers": one.consumers,
                "gone": one.gone,
                "pending": one.pending,
                "lag": one.lag,
                "growth": one.growth,
                "oldest_idle_ms": one.oldest_idle_ms,
                "dead_letters": one.dead_letters,
            }
            for one in stuck[:STUCK]
        ]
        return {"stuck": rows, "stuck_total": len(stuck), "looked": self._watch.asked}
