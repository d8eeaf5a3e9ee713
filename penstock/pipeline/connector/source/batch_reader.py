"""The batch source: a snapshot of the entries between two ids of each stream."""

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql.datasource import DataSourceReader

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, mapping
from penstock.pipeline.connector.connection.cluster import connect
from penstock.pipeline.connector.connection.missing_streams import MissingStreams
from penstock.pipeline.connector.connection.stream_info import StreamState, find_keys, refused, stream_states
from penstock.pipeline.connector.source.data_loss import range_loss
from penstock.pipeline.connector.source.id_ranges import IdRange, cut, how_many, pack
from penstock.pipeline.connector.source.partition_reader import Task, TaskReader
from penstock.pipeline.connector.source.range_splitter import exclusive, find_cuts
from penstock.pipeline.connector.source.source_options import EARLIEST, GROUP, LATEST
from penstock.pipeline.errors import PipelineError
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId


class BatchReader(TaskReader, DataSourceReader):
    """`spark.read`: planned once for each load, so that every action on the DataFrame sees the same entries."""

    after: StreamId = ids.ZERO  # bounds on all streams, besides the options' own
    upto: StreamId = ids.MAX

    def partitions(self) -> Sequence[Task]:
        sizing = self.options.sizing
        self._present: set[bytes] = set()
        ranges = []
        for endpoint in self.options.servers.endpoints:
            with connect(endpoint, self.options.servers.access) as client:
                ranges += self._ranges(client)
        MissingStreams(self.options.keys, self.options.fail_on_missing).look(self._present)
        weight = sum(id_range.weight for id_range in ranges)
        tasks = how_many(weight, sizing.entries_per_partition, sizing.min_partitions, sizing.max_partitions)
        finer = []
        for endpoint in self.options.servers.endpoints:
            with connect(endpoint, self.options.servers.access) as client:
                for id_range in ranges:
                    if id_range.endpoint == endpoint.name:
                        finer += divide(client, id_range, -(-weight // tasks))
        return [Task(some) for some in pack(finer, tasks)]

    def wanted_keys(self, client: Client) -> list[bytes]:
        return find_keys(client, self.options.keys)

    def _ranges(self, client: Client) -> list[IdRange]:
        """A range for every stream of a server that has entries between the bounds."""
        states = stream_states(client, self.wanted_keys(client))
        self._present.update(states)
        ranges = []
        for key, state in states.items():
            name = key.decode(errors="surrogateescape")
            place = self.options.start.of(name)
            after = max(place_after(client, key, state, place, self.options.group), self.after)
            upto = min(state.last, self.options.end.of(name), self.upto)
            if after >= upto or not state.length:
                continue
            everything = after < state.first and upto == state.last
            weight = state.length if everything else interpolated(state, after, upto)
            count = weight if everything else None
            ranges.append(IdRange(client.endpoint.name, key, after, upto, weight, count, planned=state))
        return with_firsts(client, ranges)


def place_after(client: Client, key: bytes, state: StreamState, place: str, group: str | None) -> StreamId:
    """The id after which to read, from an option: earliest, latest, group, or the first id to be read."""
    if place == EARLIEST:
        return ids.ZERO
    if place == LATEST:
        return state.last
    if place == GROUP:
        assert group is not None, "the options were checked"
        return group_place(client, key, group)
    return max(ids.parse(place.encode()) - 1, ids.ZERO)


def group_place(client: Client, key: bytes, group: str) -> StreamId:
    """The last id delivered in a group; PipelineError where there is no such group."""
    for pairs in client.call("XINFO", "GROUPS", key):
        one = mapping(pairs)
        if one[b"name"] == group.encode():
            return ids.parse(one[b"last-delivered-id"])
    raise PipelineError(
        f"{client.endpoint.address}: stream {key.decode(errors='replace')!r} has no group {group!r}, "
        "so startingId=group has no place"
    )


def interpolated(state: StreamState, after: StreamId, upto: StreamId) -> int:
    """An estimate of the entries in a range, as if they were spread evenly over the ids; at least 1."""
    span = max(state.last - state.first, 1)
    inside = max(min(upto, state.last) - max(after, state.first), 0)
    return max(state.length * inside // span, 1)


def divide(client: Client, id_range: IdRange, per_task: int) -> list[IdRange]:
    """A range in parts of about `per_task` entries."""
    wanted = -(-id_range.weight // max(per_task, 1))
    if wanted < 2:
        return [id_range]
    cuts = find_cuts(client, id_range.key, id_range.after, id_range.upto, id_range.weight, wanted)
    spans = cut(id_range.after, id_range.upto, cuts)
    if len(spans) < 2:
        return [id_range]
    weight = divide_evenly(id_range.weight, len(spans))
    parts = [replace(id_range, after=begin, upto=end, weight=weight, count=None, first=None) for begin, end in spans]
    return with_firsts(client, parts)


def divide_evenly(entries: int, parts: int) -> int:
    return -(-entries // parts)


def with_firsts(client: Client, ranges: list[IdRange]) -> list[IdRange]:
    """The ranges; those that were not counted get the id of their first entry, or are left out if they are empty.

    A range stays as it is if its entries may have been removed since it was planned: its task reports them.
    """
    uncounted = [id_range for id_range in ranges if id_range.count is None]
    firsts = first_ids(client, uncounted)
    now = stream_states(client, {id_range.key for id_range in uncounted})
    found = []
    for id_range in ranges:
        if id_range.count is not None or range_loss(id_range, 0, now.get(id_range.key)) is not None:
            found.append(id_range)
        elif (id_range.key, id_range.after) in firsts:
            found.append(replace(id_range, first=firsts[id_range.key, id_range.after]))
    return found


def first_ids(client: Client, ranges: list[IdRange]) -> dict[tuple[bytes, StreamId], StreamId]:
    """The id of the first entry in each range, by (key, after). An empty range is not among them. One round trip."""
    looks = client.pipeline(
        [
            ["XRANGE", id_range.key, exclusive(id_range.after), ids.text(id_range.upto), "COUNT", 1]
            for id_range in ranges
        ]
    )
    found = {}
    for id_range, entries in zip(ranges, looks, strict=True):
        if isinstance(entries, ReplyError):
            raise refused(client, id_range.key, entries)
        if entries:
            found[id_range.key, id_range.after] = ids.parse(entries[0][0])
    return found
