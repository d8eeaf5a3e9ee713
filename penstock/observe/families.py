"""A snapshot as Prometheus's metric families: redis_exporter's names, then Penstock's own for what it does not have."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from penstock.observe import exporter_names
from penstock.observe.snapshot import CommandCounts, ConsumerCounts, GroupCounts, Snapshot, StreamCounts

Counts = TypeVar("Counts")

STREAM: Final = ("db", "stream")
GROUP: Final = (*STREAM, "group")
CONSUMER: Final = (*GROUP, "consumer")

STREAM_METRICS: Final[tuple[tuple[str, str, Callable[[StreamCounts], float]], ...]] = (
    ("redis_stream_length", "Entries in the stream.", lambda one: one.length),
    ("redis_stream_radix_tree_keys", "Nodes of the stream.", lambda one: one.nodes),
    ("redis_stream_radix_tree_nodes", "Nodes of the stream's radix tree.", lambda one: one.nodes + 1),
    ("redis_stream_groups", "Consumer groups of the stream.", lambda one: one.groups),
    ("redis_stream_last_generated_id", "Milliseconds of the last id.", lambda one: one.last_ms),
    ("redis_stream_max_deleted_entry_id", "Milliseconds of the largest deleted id.", lambda one: one.max_deleted_ms),
    ("redis_stream_first_entry_id", "Milliseconds of the first entry's id.", lambda one: one.first_ms),
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
        lambda one: one.last_delivered_ms,
    ),
    ("redis_stream_group_entries_read", "The group's logical read counter.", lambda one: one.entries_read),
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
)
CONSUMER_METRICS: Final[tuple[tuple[str, str, Callable[[ConsumerCounts], float]], ...]] = (
    ("redis_stream_group_consumer_messages_pending", "Pending entries of the consumer.", lambda one: one.pending),
    (
        "redis_stream_group_consumer_idle_seconds",
        "Seconds since the consumer's last request.",
        lambda one: one.idle_ms / 1000,
    ),
)
COMMAND_METRICS: Final[tuple[tuple[str, str, Callable[[CommandCounts], float]], ...]] = (
    ("redis_commands_total", "Calls of the command.", lambda one: one.calls),
    ("redis_commands_duration_seconds_total", "Time spent in the command.", lambda one: one.usec / 1e6),
    ("redis_commands_rejected_calls_total", "Calls refused before they were run.", lambda one: one.rejected),
    ("redis_commands_failed_calls_total", "Calls that were answered with an error.", lambda one: one.failed),
)


def text_of(name: bytes) -> str:
    """A key's or a group's name as a label; bytes that are not UTF-8 are shown as \\xff."""
    return name.decode(errors="backslashreplace")


def family(name: str, about: str, labels: Sequence[str] = ()) -> GaugeMetricFamily | CounterMetricFamily:
    """An empty family: a counter if its name ends with _total, else a gauge."""
    if name.endswith("_total"):
        return CounterMetricFamily(name, about, labels=labels)
    return GaugeMetricFamily(name, about, labels=labels)


def single(name: str, about: str, value: float) -> Metric:
    """A family with one value."""
    made = family(name, about)
    made.add_metric([], value)
    return made


def of_snapshot(snapshot: Snapshot) -> Iterator[Metric]:
    """All families of a snapshot that was taken in full."""
    yield single("redis_up", "Whether the server's values could be read.", 1)
    yield from _fields(snapshot.fields)
    yield from _server(snapshot)
    yield from _databases(snapshot)
    yield from _commands(snapshot.commands)
    errors = CounterMetricFamily("redis_errors_total", "Error replies, by the error's first word.", labels=["err"])
    for code, count in snapshot.errors.items():
        errors.add_metric([code], count)
    yield errors
    yield from _each(STREAM_METRICS, STREAM, snapshot.streams, _stream_labels)
    yield from _each(GROUP_METRICS, GROUP, snapshot.groups, _group_labels)
    yield from _each(CONSUMER_METRICS, CONSUMER, snapshot.consumers, _consumer_labels)
    left_out = GaugeMetricFamily(
        "penstock_metrics_left_out", "What metrics-max-streams leaves out of the metrics.", labels=["kind"]
    )
    left_out.add_metric(["streams"], snapshot.streams_left_out)
    left_out.add_metric(["groups"], snapshot.groups_left_out)
    left_out.add_metric(["consumers"], snapshot.consumers_left_out)
    yield left_out


def _fields(fields: dict[str, str]) -> Iterator[Metric]:
    for field, name in exporter_names.METRICS.items():
        value = exporter_names.number(field, fields.get(field, ""))
        if value is not None:
            yield single(f"redis_{name}", f"INFO field {field}.", value)


def _server(snapshot: Snapshot) -> Iterator[Metric]:
    fields = snapshot.fields
    instance = GaugeMetricFamily("redis_instance_info", "What the server is.", labels=exporter_names.INSTANCE)
    instance.add_metric([fields.get(name, "") for name in exporter_names.INSTANCE], 1)
    yield instance
    build = GaugeMetricFamily(
        "penstock_build_info", "The Penstock that serves.", labels=["version", "build", "python_version"]
    )
    build.add_metric([fields["penstock_version"], fields["penstock_build"], fields["python_version"]], 1)
    yield build
    started_s = int(fields["server_time_usec"]) // 1_000_000 - int(fields["uptime_in_seconds"])
    yield single("redis_start_time_seconds", "Unix time at which the server started.", started_s)
    yield single("redis_config_maxmemory", "The directive maxmemory.", float(fields["maxmemory"]))
    yield single("redis_config_maxclients", "The directive maxclients.", float(fields["maxclients"]))
    yield single("redis_slowlog_length", "Requests in the slow log.", snapshot.slow_requests)
    yield single("redis_slowlog_last_id", "Requests that the slow log has taken.", snapshot.slow_requests_total)
    last_slow_s = snapshot.last_slow_usec / 1e6
    yield single("redis_last_slow_execution_duration_seconds", "How long the last slow request took.", last_slow_s)


def _databases(snapshot: Snapshot) -> Iterator[Metric]:
    keys = GaugeMetricFamily("redis_db_keys", "Keys of the database.", labels=["db"])
    expiring = GaugeMetricFamily("redis_db_keys_expiring", "Keys with a time of expiry.", labels=["db"])
    mean_ttl = GaugeMetricFamily("redis_db_avg_ttl_seconds", "Mean time to live, of a sample.", labels=["db"])
    for one in snapshot.databases:
        labels = [f"db{one.db_index}"]
        keys.add_metric(labels, one.keys)
        expiring.add_metric(labels, one.expiring)
        if one.keys:
            mean_ttl.add_metric(labels, one.mean_ttl_ms / 1000)
    yield from (keys, expiring, mean_ttl)


def _commands(commands: list[CommandCounts]) -> Iterator[Metric]:
    yield from _each(COMMAND_METRICS, ("cmd",), commands, lambda one: [one.name])
    latency = Metric("redis_latency_percentiles_usec", "Times of the command's calls, in microseconds.", "summary")
    for one in commands:
        if one.percentiles:
            for percent, usec in one.percentiles:
                latency.add_sample(latency.name, {"cmd": one.name, "quantile": percent}, usec)
            latency.add_sample(f"{latency.name}_sum", {"cmd": one.name}, one.usec)
            latency.add_sample(f"{latency.name}_count", {"cmd": one.name}, one.calls)
    yield latency


def _each(
    metrics: Iterable[tuple[str, str, Callable[[Counts], float | None]]],
    names: Sequence[str],
    counted: Sequence[Counts],
    labels_of: Callable[[Counts], list[str]],
) -> Iterator[Metric]:
    """One family for each metric, with a sample for each of what was counted; no sample where the value is None."""
    labels = [labels_of(one) for one in counted]
    for name, about, value_of in metrics:
        made = family(name, about, names)
        for one, label_values in zip(counted, labels, strict=True):
            value = value_of(one)
            if value is not None:
                made.add_metric(label_values, value)
        yield made


def _stream_labels(one: StreamCounts) -> list[str]:
    return [f"db{one.db_index}", text_of(one.key)]


def _group_labels(one: GroupCounts) -> list[str]:
    return [f"db{one.db_index}", text_of(one.key), text_of(one.name)]


def _consumer_labels(one: ConsumerCounts) -> list[str]:
    return [f"db{one.db_index}", text_of(one.key), text_of(one.group), text_of(one.name)]
