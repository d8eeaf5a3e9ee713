"""What an executor does: reads the ranges of a task, page by page, and yields record batches.

A range can be read again at any time, with the same entries: by another attempt of the task, by another action on the
batch, or by the next driver. A range is read to its end before it is known whether entries were missing.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any

from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, Endpoint, Request
from penstock.pipeline.connector.connection.cluster import connect
from penstock.pipeline.connector.connection.stream_info import stream_states
from penstock.pipeline.connector.placeholder import is_placeholder
from penstock.pipeline.connector.source.data_loss import WENT_BACK, Loss, cause_of, is_earlier, range_loss, warn_or_end
from penstock.pipeline.connector.source.entry_columns import Columns, Origin
from penstock.pipeline.connector.source.entry_pages import Page
from penstock.pipeline.connector.source.id_ranges import IdRange
from penstock.pipeline.connector.source.page_requests import MOST_REQUESTS, PageRequests
from penstock.pipeline.connector.source.range_splitter import exclusive
from penstock.pipeline.connector.source.source_options import Entries
from penstock.pipeline.connector.worker import keep_modules
from penstock.pipeline.errors import PipelineError, ShortErrors
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId


class Task(InputPartition):
    """The ranges that one executor reads, one after the other, and the channel that hears what it misses, if any."""

    def __init__(self, ranges: tuple[IdRange, ...], channel: str | None = None) -> None:
        super().__init__(ranges)
        self.channel = channel

    @property
    def ranges(self) -> tuple[IdRange, ...]:
        found: tuple[IdRange, ...] = self.value
        return found


class TaskReader(ShortErrors):
    """The part of a reader that is pickled for the executors: options and schema, no connection."""

    def __init__(self, options: Entries, schema: Any) -> None:
        self.options = options
        self.schema = schema
        self._columns()  # refuses a bad schema when the query is made, not in a task

    def read(self, partition: Any) -> Iterator[Any]:
        """The record batches of a task."""
        keep_modules()
        if is_placeholder(partition):
            return
        columns = self._columns()
        endpoints = self.options.servers.by_name()
        for name, ranges in groupby(partition.ranges, attrgetter("endpoint")):
            if name not in endpoints:
                raise PipelineError(f"the batch was planned with an endpoint {name!r}, which is not among the options")
            with connect(endpoints[name], self.options.servers.access) as client:
                counts = columns.wants("_deliveries")
                reading = _Reading(client, self.options, not counts, partition.channel)
                for some in client.by_node(ranges, attrgetter("key")):
                    for keys, page in reading.pages(some):
                        deliveries = reading.deliveries(keys, page) if counts else None
                        yield columns.batch(page, Origin(name, keys, deliveries))
                        del page  # before the next one is received

    def endpoint(self, name: str) -> Endpoint:
        return self.options.servers.by_name()[name]

    def _columns(self) -> Columns:
        arrow = to_arrow_schema(self.schema, timezone="UTC")
        return Columns(arrow, self.options.fail_fast, self.options.replace_bad_text, self.options.payload)


class _RangeProgress:
    """A range and how far it has been read."""

    __slots__ = ("after", "id_range", "is_whole", "loss", "rows")

    def __init__(self, id_range: IdRange) -> None:
        self.id_range = id_range
        self.after: StreamId = id_range.after
        self.rows = 0
        self.is_whole = True  # nothing says that entries are missing that were not counted
        self.loss: Loss | None = None  # what is missing by the stream after a page

    def begins_as_planned(self, page: Page, number: int) -> bool:
        """Whether a page begins with the entry that was the range's first when it was planned."""
        first = self.id_range.first
        if first is None or self.after != self.id_range.after or not page.counts[number]:
            return False
        return ids.parse(page.first_id(number)) == first


class _Reading:
    """One task at one server."""

    def __init__(self, client: Client, options: Entries, ahead: bool, channel: str | None) -> None:
        """`ahead`: nothing else is sent between two pages, so the next one may be requested early."""
        self._client = client
        self._options = options
        self._asking = PageRequests(client, options.sizing.fetch, options.fetch_bytes)
        self._ahead = ahead
        self._channel = channel

    def pages(self, ranges: Iterable[IdRange]) -> Iterator[tuple[tuple[bytes, ...], Page]]:
        """Pages of about `fetchBytes`, and of `fetchSize` entries at most, with the key of each reply in them.

        The next page is requested before the current one is yielded, and received when that one is not needed any more.
        """
        waiting = deque(_RangeProgress(id_range) for id_range in ranges)
        while waiting:
            if waiting[0].id_range.ids:
                yield from self._listed(waiting.popleft().id_range)
                continue
            asked = self._next(waiting)
            while asked:
                count = self._asking.entries
                page = self._asking.page(self._requests(asked), asked[0].id_range.key)
                if page is None:
                    waiting.extendleft(reversed(asked))
                    asked = self._next(waiting)
                    continue
                keys = tuple(one.id_range.key for one in asked)
                self._doubt(asked, page)
                for number, one in reversed(list(enumerate(asked))):
                    one.rows += page.counts[number]
                    if page.counts[number] == count:
                        one.after = ids.parse(page.last_id(number))
                        if one.after < one.id_range.upto:
                            waiting.appendleft(one)
                            continue
                    if not one.is_whole or one.id_range.count not in (None, one.rows):
                        self._check_end(one.id_range, one.rows, one.loss)
                asked = self._next(waiting) if waiting and not waiting[0].id_range.ids else []
                if asked and self._ahead:
                    self._asking.ask_ahead(self._requests(asked))
                if len(page):
                    yield keys, page
                del page

    def _next(self, waiting: deque[_RangeProgress]) -> list[_RangeProgress]:
        """Pieces that fit into one page together, or the first alone."""
        asked = [waiting.popleft()]
        weight = asked[0].id_range.weight
        while waiting and len(asked) < MOST_REQUESTS and not waiting[0].id_range.ids:
            weight += waiting[0].id_range.weight
            if weight > self._asking.entries:
                break
            asked.append(waiting.popleft())
        return asked

    def _requests(self, asked: list[_RangeProgress]) -> list[Request]:
        count = self._asking.entries
        return [
            ["XRANGE", one.id_range.key, exclusive(one.after), ids.text(one.id_range.upto), "COUNT", count]
            for one in asked
        ]

    def _listed(self, id_range: IdRange) -> Iterator[tuple[tuple[bytes, ...], Page]]:
        """The entries of a range that is a list of ids."""
        rows, at = 0, 0
        while at < len(id_range.ids):
            some = [ids.text(one) for one in id_range.ids[at : at + min(self._asking.entries, MOST_REQUESTS)]]
            page = self._asking.page([["XRANGE", id_range.key, one, one] for one in some], id_range.key)
            if page is None:
                continue
            at += len(some)
            rows += len(page)
            if len(page):
                yield (id_range.key,) * len(some), page
            del page
        if rows < len(id_range.ids):
            self._check_end(id_range, rows)

    # -- what is missing ----------------------------------------------------------------------------------------------

    def _doubt(self, asked: list[_RangeProgress], page: Page) -> None:
        """Mark the ranges that were not counted and, by what their stream is after a page, may have lacked an entry."""
        unsure = [(one, number) for number, one in enumerate(asked) if one.id_range.count is None and one.is_whole]
        unsure = [(one, number) for one, number in unsure if not one.begins_as_planned(page, number)]
        if not unsure:
            return
        states = stream_states(self._client, {one.id_range.key for one, _ in unsure})
        for one, _ in unsure:
            state = states.get(one.id_range.key)
            one.loss = range_loss(one.id_range, one.rows, state)
            one.is_whole = (
                state is not None
                and state.last >= one.id_range.upto
                and (one.id_range.planned is None or not is_earlier(state, one.id_range.planned))
                and cause_of(one.after, state) == WENT_BACK  # nothing can have taken entries
            )

    def _check_end(self, id_range: IdRange, rows: int, known: Loss | None = None) -> None:
        """DataLoss, or a warning, if a range lacked entries that were there when it was planned.

        `known`: by an earlier look, because a server may go back to where it shows nothing of that any more.
        """
        state = stream_states(self._client, [id_range.key]).get(id_range.key)
        loss = range_loss(id_range, rows, state) or known
        if loss is not None:
            is_counted = False
            if self._channel is not None:
                place = [id_range.key.decode(errors="replace"), str(id_range.after), str(id_range.upto)]
                report = json.dumps([loss.cause, loss.missing, *place])
                (heard_by,) = self._client.pipeline([["PUBLISH", self._channel, report]])
                is_counted = not isinstance(heard_by, ReplyError) and heard_by > 0
            warn_or_end(
                loss,
                f"{self._client.endpoint.address}: stream {id_range.key.decode(errors='replace')!r}, ids after "
                f"{ids.text(id_range.after).decode()} up to {ids.text(id_range.upto).decode()}",
                self._options.on_loss,
                is_counted,
            )

    # -- deliveries ---------------------------------------------------------------------------------------------------

    def deliveries(self, keys: tuple[bytes, ...], page: Page) -> dict[bytes, int]:
        """The delivery count of each entry of a page that is pending in the group now."""
        if self._options.group is None:
            return {}
        found: dict[bytes, int] = {}
        requests: list[Request] = []
        for number, key in enumerate(keys):
            if page.counts[number]:
                first, last = page.first_id(number), page.last_id(number)
                requests.append(["XPENDING", key, self._options.group, first, last, 2 * page.counts[number] + 1000])
        for reply in self._client.pipeline(requests):
            if not isinstance(reply, ReplyError):
                found.update((entry_id, count) for entry_id, _, _, count in reply)
        return found
