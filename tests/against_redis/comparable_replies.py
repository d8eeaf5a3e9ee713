"""Replies made comparable: what the clock decides is rounded, field by field, and what is excluded is left out."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from tests.against_redis.exclusions import FIELDS, FIELDS_SINCE
from tests.support.random_words import Request
from tests.support.reference_knowledge import NEWEST, Version
from tests.support.wire import Array, Bulk, Error, Integer, Map, Simple, Value

Change: TypeAlias = Callable[[Value], Value]

MAX_COUNT: Final = 2**63 - 1
MINUTE_MS: Final = 60_000
DAY_MS: Final = 24 * 60 * MINUTE_MS
SLACK_MS: Final = 35_000  # ages are whole or half minutes and what has gone by since


class ComparableReplies:
    """Makes replies comparable. `now_ms` is the present of the server that sent them.

    moment: what an absolute time is compared as; by default the minute of its age, or itself if that is a day or more.
    """

    def __init__(
        self, now_ms: int, moment: Callable[[int], int] | None = None, version: Version = NEWEST, has_texts: bool = True
    ) -> None:
        self.now_ms = now_ms
        self._moment_of = moment or self._minute_of_age
        self._has_texts = has_texts
        self._excluded = FIELDS.keys() | {name for name, since in FIELDS_SINCE.items() if since > version}

    def reply(self, request: Request, value: Value) -> Value:
        if isinstance(value, Error):
            return value if self._has_texts else Error(value.text.partition(b" ")[0])
        name = request[0].upper()
        second = request[1].upper() if len(request) > 1 else ""
        if second == "HELP":
            return _types(value)
        if name == "XPENDING" and len(request) > 3:
            return _each(self._row(2, self._age))(value)
        if name == "XINFO" and second == "STREAM":
            return self._fields(value, {b"groups": _each(self._group)})
        if name == "XINFO" and second == "GROUPS":
            return _each(lambda group: self._fields(group, {}))(value)
        if name == "XINFO" and second == "CONSUMERS":
            return _each(lambda one: self._fields(one, {b"idle": self._age, b"inactive": self._age}))(value)
        if name == "XREADGROUP" and "CLAIM" in [word.upper() for word in request]:
            return _streams(value, _each(self._claimed))
        if name in ("TTL", "PTTL"):
            return self._left(value, 1000 if name == "TTL" else 1)
        if name == "KEYS":
            return _sorted(value)
        if name == "SCAN":
            return _each(_sorted)(value)
        if name == "HELLO":
            return self._fields(value, {})
        return value

    def exec(self, queued: list[Request], value: Value) -> Value:
        """EXEC's reply, each element as the reply to its request."""
        if not isinstance(value, Array) or len(value.elements) != len(queued):
            return value
        return Array(tuple(map(self.reply, queued, value.elements)))

    def _fields(self, value: Value, changes: dict[bytes, Change]) -> Value:
        """A map, or RESP2's flat array of one, with some fields changed and the excluded ones taken out."""
        if isinstance(value, Map):
            pairs = list(value.pairs)
        elif isinstance(value, Array) and len(value.elements) % 2 == 0:
            pairs = list(zip(value.elements[::2], value.elements[1::2], strict=True))
        else:
            return value
        kept = [
            (name, changes[name.text](held) if isinstance(name, Bulk) and name.text in changes else held)
            for name, held in pairs
            if not isinstance(name, Bulk) or name.text not in self._excluded
        ]
        if isinstance(value, Map):
            return Map(tuple(kept))
        return Array(tuple(word for pair in kept for word in pair))

    def _group(self, group: Value) -> Value:
        pending = _each(self._row(2, self._moment))
        return self._fields(group, {b"pending": pending, b"consumers": _each(self._consumer)})

    def _consumer(self, consumer: Value) -> Value:
        pending = _each(self._row(1, self._moment))
        changes: dict[bytes, Change] = {b"seen-time": self._moment, b"active-time": self._moment, b"pending": pending}
        return self._fields(consumer, changes)

    def _row(self, at: int, change: Change) -> Change:
        """A row of a pending list: a time, changed, and behind it the delivery count."""

        def changed(row: Value) -> Value:
            if not isinstance(row, Array) or len(row.elements) != at + 2:
                return row
            return Array((*row.elements[:at], change(row.elements[at]), _count(row.elements[at + 1])))

        return changed

    def _claimed(self, entry: Value) -> Value:
        """An entry with its idle time and delivery count."""
        return self._row(2, self._age)(entry)

    def _age(self, value: Value) -> Value:
        if not isinstance(value, Integer) or value.number < 0:
            return value
        if value.number >= DAY_MS:
            return Integer((self.now_ms - value.number + 5000) // 10_000)
        return Integer((value.number + SLACK_MS) // MINUTE_MS)

    def _moment(self, value: Value) -> Value:
        return Integer(self._moment_of(value.number)) if isinstance(value, Integer) else value

    def _minute_of_age(self, when_ms: int) -> int:
        age_ms = self.now_ms - when_ms
        return when_ms if age_ms >= DAY_MS else (age_ms + SLACK_MS) // MINUTE_MS

    def _left(self, value: Value, unit_ms: int) -> Value:
        if not isinstance(value, Integer) or value.number < 0:
            return value
        return Integer((self.now_ms + value.number * unit_ms + 5000) // 10_000)


def _count(value: Value) -> Value:
    return Integer(MAX_COUNT) if isinstance(value, Integer) and value.number < 100_000 - 2**63 else value


def _each(change: Change) -> Change:
    def changed(value: Value) -> Value:
        return Array(tuple(map(change, value.elements))) if isinstance(value, Array) else value

    return changed


def _streams(value: Value, change: Change) -> Value:
    """XREADGROUP's reply with every stream's entries changed."""
    if isinstance(value, Map):
        return Map(tuple((key, change(entries)) for key, entries in value.pairs))

    def pair(stream: Value) -> Value:
        if not isinstance(stream, Array) or len(stream.elements) != 2:
            return stream
        return Array((stream.elements[0], change(stream.elements[1])))

    return _each(pair)(value)


def _sorted(value: Value) -> Value:
    return Array(tuple(sorted(value.elements, key=repr))) if isinstance(value, Array) else value


def _types(value: Value) -> Value:
    """A HELP's reply: that it is an array, and of what."""
    if not isinstance(value, Array):
        return value
    return Array(
        tuple(dict.fromkeys(replace(line, text=b"") for line in value.elements if isinstance(line, Simple | Bulk)))
    )
