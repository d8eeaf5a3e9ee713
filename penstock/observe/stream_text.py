"""The metrics of streams, groups and consumers as Prometheus text, written in pieces.

prometheus_client takes 18 us for a sample, and a server with 10,000 streams has 190,000 of them: the p99 of other
clients rose from 0.3 to 18 ms while its thread had the interpreter for 3.7 s (2026-11, on two busy cores). This takes
1 us a sample, and the thread sleeps between two pieces: the p99 was the same with a scrape and without. What
prometheus_client writes for the same families is the oracle in the tests.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar

from penstock.engine.telemetry.stream_counts import ConsumerCounts, GroupCounts, StreamCounts
from penstock.observe.snapshot import Snapshot
from penstock.storage.streams.pending.group import UNKNOWN

Counts = TypeVar("Counts")
Listed = TypeVar("Listed")
PIECE: Final = 100  # samples

STREAM_METRICS: Final[tuple[tuple[str, str, Callable[[StreamCounts], float]], ...]] = (
    ("redis_stream_length", "Entries in the stream.", lambda one: one.length),
    ("redis_stream_radix_tree_keys", "Nodes of the stream.", lambda one: one.nodes),
    ("redis_stream_radix_tree_nodes", "Nodes of the stream's radix tree.", lambda one: one.nodes + 1),
    ("redis_stream_groups", "Consumer groups of the stream.", lambda one: one.groups),
    ("redis_stream_last_generated_id", "Milliseconds of the last id.", lambda one: one.last_id >> 64),
    (
        "redis_stream_max_deleted_entry_id",
        "Milliseconds of the largest deleted id.",
        lambda one: one.max_deleted_id >> 64,
    ),
    ("redis_stream_first_entry_id", "Milliseconds of the first entry's id.", lambda one: one.first_id >> 64),
    (
        "penstock_stream_entries_added_total",
        "Entries added to the stream since it was created.",
        lambda one: one.entries_added,
    ),
    ("penstock_stream_memory_bytes", "Memory of the stream and its groups, by estimate.", lambda one: one.memory),
)
GROUP_METRICS: Final[tuple[tuple[str, str, Callable[[GroupCounts], float | None]], ...]] = (
    ("redis_stream_group_consumers", "Consumers of the group.", lambda one: one.consumers),
    ("redis_stream_group_messages_pending", "Entries delivered and not acknowledged.", lambda one: one.pending),
    (
        "redis_stream_group_last_delivered_id",
        "Milliseconds of the last-delivered id.",
        lambda one: one.last_delivered_id >> 64,
    ),
    (
        "redis_stream_group_entries_read",
        "The group's logical read counter.",
        lambda one: None if one.entries_read == UNKNOWN else one.entries_read,
    ),
    ("redis_stream_group_lag", "Entries that the group has yet to read.", lambda one: one.lag),
    (
        "penstock_stream_group_released",
        "Pending entries that were released (XNACK) and wait for the next consumer.",
        lambda one: one.released,
    ),
    (
        "penstock_stream_group_oldest_pending_seconds",
        "How long ago the pending entry that waits longest was delivered; 0 if nothing is pending.",
        lambda one: one.oldest_idle_ms / 1000,
    ),
    (
        "penstock_stream_group_redeliveries_total",
        "Deliveries of entries that had been delivered before, since the server started.",
        lambda one: one.redeliveries,
    ),
    (
        "penstock_stream_group_dead_letters_total",
        "Entries that the group's policy has moved to the dead letters.",
        lambda one: one.dead_letters,
    ),
)
CONSUMER_METRICS: Final[tuple[tuple[str, str, Callable[[ConsumerCounts], float]], ...]] = (
    ("redis_stream_group_consumer_messages_pending", "Pending entries of the consumer.", lambda one: one.pending),
    (
        "redis_stream_group_consumer_idle_seconds",
        "Seconds since the consumer's last request.",
        lambda one: one.idle_ms / 1000,
    ),
)


def pieces(snapshot: Snapshot) -> Iterator[str]:
    """The text of all families, at most PIECE samples at a time; "" after other work that takes as long."""
    tuples = snapshot.tuples
    consumers: list[ConsumerCounts] = []
    yield from _listed(tuples.counts_of_consumers(), consumers)  # first: they go on changing
    yield from _all_families(STREAM_METRICS, map(StreamCounts._make, tuples.streams), _stream_labels)
    yield from _all_families(GROUP_METRICS, map(GroupCounts._make, tuples.groups), _group_labels)
    yield from _all_families(CONSUMER_METRICS, consumers, _consumer_labels)


def _all_families(
    metrics: Sequence[tuple[str, str, Callable[[Counts], float | None]]],
    of_each: Iterable[Counts],
    labels_of: Callable[[Counts], str],
) -> Iterator[str]:
    """The families of all streams, of all groups, or of all consumers."""
    counted: list[Counts] = []
    yield from _listed(of_each, counted)
    labels: list[str] = []
    yield from _listed(map(labels_of, counted), labels)
    yield from _families(metrics, counted, labels)


def _listed(source: Iterable[Listed], found: list[Listed]) -> Iterator[str]:
    """Take all of a source, PIECE of them at a time; yields "" between."""
    left = iter(source)
    while some := list(islice(left, PIECE)):
        found += some
        yield ""


def _families(
    metrics: Iterable[tuple[str, str, Callable[[Counts], float | None]]], counted: Sequence[Counts], labels: list[str]
) -> Iterator[str]:
    """One family for each metric; no sample where the value is None."""
    for name, about, value_of in metrics:
        yield f"# HELP {name} {about}\n# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}\n"
        for start in range(0, len(counted), PIECE):
            rows = zip(labels[start : start + PIECE], counted[start : start + PIECE], strict=True)
            samples = [(label, value_of(one)) for label, one in rows]
            yield "".join([f"{name}{label} {float(value)!r}\n" for label, value in samples if value is not None])


def _stream_labels(one: StreamCounts) -> str:
    return f'{{db="db{one.db_index}",stream="{_label(one.key)}"}}'


def _group_labels(one: GroupCounts) -> str:
    return f'{{db="db{one.db_index}",group="{_label(one.name)}",stream="{_label(one.key)}"}}'


def _consumer_labels(one: ConsumerCounts) -> str:
    group = f'group="{_label(one.group)}",stream="{_label(one.key)}"'
    return f'{{consumer="{_label(one.name)}",db="db{one.db_index}",{group}}}'


def _label(name: bytes) -> str:
    """A name as a text; bytes that are not UTF-8 are shown as \\xff."""
    return name.decode(errors="backslashreplace").replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
