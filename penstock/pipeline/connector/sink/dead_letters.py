"""The sink operation `deadletter`: moves pending entries to a dead-letter stream, copy and XACK in one transaction.

It is safe to run twice, in a task that is run again or in two jobs at the same time. An entry is claimed first, which
works only while it is pending and has been idle for `minIdle`. The copy has the entry's id as its idempotency key
(IDMP), if the server knows that. A copy of an entry that turns out to have been acknowledged meanwhile is deleted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, Reply, Request, bulk_strings, packed
from penstock.pipeline.connector.sink.idempotent_writes import IdmpSettings
from penstock.pipeline.connector.sink.ledger import text_of
from penstock.pipeline.connector.sink.pending_operations import FATAL, Columns, PendingRow, checked, chunks
from penstock.pipeline.connector.sink.sink_options import KEY_HERE, SinkOptions
from penstock.pipeline.errors import PipelineError
from penstock.storage.streams import ids

PAGE_SPARE: Final = 2  # a page of entries may have so many times those that are wanted
NO_FIELDS: Final[list[bytes]] = []


@dataclass(frozen=True, slots=True)
class Route:
    """Source stream and group, and the dead-letter stream."""

    stream: bytes
    group: bytes
    dead: bytes


class DeadLetters:
    """Moves the entries that rows name. `skipped` counts those no longer pending, or not idle for long enough."""

    def __init__(self, client: Client, options: SinkOptions, names: Sequence[str]) -> None:
        self._client = client
        self._options = options
        self._columns = Columns(options, names)
        self._remembers: dict[bytes, bool] = {}  # by dead-letter stream: does it know IDMP?
        self.skipped = 0

    def put(self, batch: Any) -> None:
        for (stream, group), all_held in self._columns.held(batch).items():
            dead = self._options.dead_letter_stream.replace(KEY_HERE, stream.decode("utf-8", "surrogateescape"))
            route = Route(stream, group, dead.encode("utf-8", "surrogateescape"))
            if route.dead == stream:
                raise PipelineError(f"the dead letters of {stream!r} would go to the stream itself")
            for held in chunks(all_held, self._options.pipeline):
                self.skipped += len(held) - self._move(route, held)

    def end(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        self._client.close()

    def _move(self, route: Route, held: list[PendingRow]) -> int:
        """How many of the entries were moved."""
        ours = self._taken(route, held)
        if not ours:
            return 0
        with_key = self._knows_idmp(route.dead)
        entries = entries_of(self._client, route.stream, [one.id for one in ours])
        letter = _Letter(route, with_key)
        acknowledge = b"*4\r\n" + bulk_strings([b"XACK", route.stream, route.group])
        # Copies first, then acknowledgements: the server runs neighbours of one shape together.
        requests = [
            packed("MULTI"),
            packed("XREVRANGE", route.dead, "+", "-", "COUNT", 1),
            *[letter.packed(one, entries.get(one.id, NO_FIELDS)) for one in ours],
            *[acknowledge + b"$%d\r\n%b\r\n" % (len(one.id), one.id) for one in ours],
            packed("EXEC"),
        ]
        # No retry: if the connection breaks the task fails, and its next try sees which entries are still pending.
        *_, answer = replies = self._client.exchange(b"".join(requests), len(requests), retry=False)
        if not isinstance(answer, list):
            refused = next((text_of(reply) for reply in replies if isinstance(reply, ReplyError)), "EXEC did nothing")
            raise PipelineError(f"dead letters cannot be written to {route.dead!r}: {refused}")
        return self._settle(route, ours, answer)

    def _taken(self, route: Route, held: list[PendingRow]) -> list[PendingRow]:
        """The entries claimed now, and those that an earlier try had claimed and did not move."""
        entry_ids = [one.id for one in held]
        places = in_order(entry_ids)
        lowest, highest = places[0][-1], places[-1][-1]
        consumer = self._options.consumer
        requests: list[Request] = [
            ["TYPE", route.dead],
            ["XPENDING", route.stream, route.group, lowest, highest, len(held), consumer],
            ["XCLAIM", route.stream, route.group, consumer, self._options.min_idle_ms, *entry_ids, "JUSTID"],
        ]
        kind, mine, taken = self._client.pipeline(requests)
        if checked(kind, "TYPE") not in (b"stream", b"none"):
            raise PipelineError(f"the key {route.dead!r} holds a {kind.decode()}: dead letters need a stream")
        ours = set(checked(taken, "XCLAIM"))
        ours.update(row[0] for row in checked(mine, "XPENDING"))
        found = {one.id: one for one in held if one.id in ours}  # each once, however often the rows name it
        return list(found.values())

    def _knows_idmp(self, dead: bytes) -> bool:
        """Whether the server knows IDMP; the first time, the dead-letter stream is created with its settings."""
        if dead not in self._remembers:
            known = checked(self._client.call("COMMAND", "INFO", "XCFGSET"), "COMMAND")
            self._remembers[dead] = bool(known and known[0])
            if self._remembers[dead]:
                IdmpSettings(self._client, creates=True).prepare([dead])
        return self._remembers[dead]

    def _settle(self, route: Route, ours: list[PendingRow], answer: list[Reply]) -> int:
        """Delete copies whose entries were acknowledged meanwhile, and count the others."""
        newest, *replies = answer
        if replies[len(ours) :].count(1) == len(ours) and ReplyError not in set(map(type, replies)):
            return len(ours)
        before = ids.parse(newest[0][0]) if newest and not isinstance(newest, ReplyError) else ids.ZERO
        moved = 0
        in_vain: list[bytes] = []
        lost: list[PendingRow] = []
        refused = ""
        for held, copy, acknowledged in zip(ours, replies[: len(ours)], replies[len(ours) :], strict=True):
            for reply in (copy, acknowledged):
                if isinstance(reply, ReplyError):
                    refused = text_of(reply)
            if isinstance(copy, ReplyError):
                lost.append(held)
            elif acknowledged == 1:
                moved += 1
            elif ids.parse(copy) > before:  # else IDMP returned the id of another job's copy
                in_vain.append(copy)
        if in_vain:
            checked(self._client.call("XDEL", route.dead, *in_vain), "XDEL")
        if lost:
            self._make_pending_again(route, lost)
        if refused:
            raise PipelineError(f"dead letters cannot be written to {route.dead!r}: {refused}")
        return moved

    def _make_pending_again(self, route: Route, lost: list[PendingRow]) -> None:
        """Make entries pending again that were acknowledged although their copy was refused in the transaction."""
        again: list[Request] = []
        for held in lost:
            count = 1 if held.deliveries is None else held.deliveries
            claim: Request = ["XCLAIM", route.stream, route.group, self._options.consumer, 0, held.id]
            again.append([*claim, "RETRYCOUNT", count, "FORCE", "JUSTID"])
        self._client.pipeline(again)


class _Letter:
    """Makes the XADDs of dead letters: the entry's fields, and where it comes from."""

    def __init__(self, route: Route, with_key: bool) -> None:
        key = [b"IDMP", b"dead:" + route.group] if with_key else []
        self._begin = bulk_strings([b"XADD", route.dead, *key])
        self._iid_prefix = route.stream + b":" if with_key else b""
        self._about = bulk_strings([b"_stream", route.stream, b"_group", route.group, b"_id"])
        self._fixed = 3 + (3 if with_key else 0) + 6  # words behind which the entry's fields and its end are counted
        self._forms: dict[tuple[int, int | None, bytes | None, bytes], bytes] = {}

    def packed(self, held: PendingRow, fields: list[bytes]) -> bytes:
        reason = _reason(held, bool(fields))
        form = self._forms.get((len(fields), held.deliveries, held.consumer, reason))
        if form is None:
            form = self._form(len(fields), held, reason)
        entry_id = held.id
        size = len(entry_id)
        words = [word for field in fields for word in (len(field), field)]
        if self._iid_prefix:
            return form % (len(self._iid_prefix) + size, entry_id, *words, size, entry_id)
        return form % (*words, size, entry_id)

    def _form(self, count: int, held: PendingRow, reason: bytes) -> bytes:
        """The request with `%` where letters differ that have as many fields, and deliveries, consumer and reason."""
        more: list[bytes] = []
        if held.deliveries is not None:
            more += [b"_deliveries", b"%d" % held.deliveries]
        if held.consumer:
            more += [b"_consumer", held.consumer]
        more += [b"_reason", reason]
        iid = b"$%d\r\n" + _literal(self._iid_prefix) + b"%b\r\n" if self._iid_prefix else b""
        form = (
            b"*%d\r\n%b" % (self._fixed + count + len(more), _literal(self._begin)) + iid + b"$1\r\n*\r\n"
            + count * b"$%d\r\n%b\r\n" + _literal(self._about) + b"$%d\r\n%b\r\n" + _literal(bulk_strings(more))
        )  # fmt: skip
        self._forms[count, held.deliveries, held.consumer, reason] = form
        return form


def _literal(text: bytes) -> bytes:
    return text.replace(b"%", b"%%")


def in_order(entry_ids: list[bytes]) -> list[tuple[int, int, bytes]]:
    """Ids in order, each as its milliseconds, its sequence number and its text. O(n log n)."""
    found = ids.parse_all(entry_ids)
    return sorted(zip(found.ms, found.seq, entry_ids, strict=True))


def entries_of(client: Client, stream: bytes, entry_ids: list[bytes]) -> dict[bytes, list[bytes]]:
    """The fields of entries by id, without those that are gone.

    Neighbours are read by the range that they are in; where most of a range is not wanted, ids are asked one by one.
    """
    left = in_order(entry_ids)
    found: dict[bytes, list[bytes]] = {}
    is_dense = True
    while left and is_dense:
        most = PAGE_SPARE * len(left)
        (page,) = client.pipeline([["XRANGE", stream, left[0][-1], left[-1][-1], "COUNT", most]])
        found.update(checked(page, "XRANGE"))
        if len(page) < most:
            return found
        upto = ids.parse(page[-1][0])
        beyond = [place for place in left if place[:2] > (upto >> 64, upto & ids.HALF)]
        is_dense = PAGE_SPARE * 2 * (len(left) - len(beyond)) >= len(page)
        left = beyond
    for reply in client.pipeline([["XRANGE", stream, entry_id, entry_id] for *_, entry_id in left]):
        found.update(checked(reply, "XRANGE"))
    return found


def _reason(held: PendingRow, has_fields: bool) -> bytes:
    if held.reason is not None:
        return held.reason
    if not has_fields:
        return b"its entry is gone"
    if held.deliveries is None:
        return b"moved by a job"
    return b"fatal" if held.deliveries == FATAL else b"delivered %d times" % held.deliveries
