"""The server as a whole as metric families, with the names of redis_exporter. stream_text.py has the streams."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from penstock.observe import exporter_names
from penstock.observe.snapshot import CommandCounts, Snapshot

COMMAND_METRICS: Final[tuple[tuple[str, str, Callable[[CommandCounts], float]], ...]] = (
    ("redis_commands_total", "Calls of the command.", lambda one: one.calls),
    ("redis_commands_duration_seconds_total", "Time spent in the command.", lambda one: one.usec / 1e6),
    ("redis_commands_rejected_calls_total", "Calls refused before they were run.", lambda one: one.rejected),
    ("redis_commands_failed_calls_total", "Calls that were answered with an error.", lambda one: one.failed),
)


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
    """All families of a snapshot that was taken in full, but those of streams."""
    yield single("redis_up", "Whether the server's values could be read.", 1)
    yield from _fields(snapshot.fields)
    yield from _server(snapshot)
    yield from _databases(snapshot)
    yield from _commands(snapshot.commands)
    errors = CounterMetricFamily("redis_errors_total", "Error replies, by the error's first word.", labels=["err"])
    for code, count in snapshot.errors.items():
        errors.add_metric([code], count)
    yield errors
    left_out = GaugeMetricFamily(
        "penstock_metrics_left_out", "What metrics-max-streams leaves out of the metrics.", labels=["kind"]
    )
    left_out.add_metric(["streams"], snapshot.choice.left_out)
    left_out.add_metric(["streams_with_pending"], snapshot.choice.left_out_with_pending)
    left_out.add_metric(["groups"], snapshot.tuples.groups_left_out)
    left_out.add_metric(["consumers"], snapshot.tuples.consumers_left_out)
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
    yield single("penstock_replicas_needed", "The directive min-replicas-to-write.", snapshot.replicas_needed)
    yield single("penstock_replicas_good", "Replicas within min-replicas-max-lag.", snapshot.replicas_good)
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
    for name, about, value_of in COMMAND_METRICS:
        calls = family(name, about, ["cmd"])
        for one in commands:
            calls.add_metric([one.name], value_of(one))
        yield calls
    latency = Metric("redis_latency_percentiles_usec", "Times of the command's calls, in microseconds.", "summary")
    for one in commands:
        if one.percentiles:
            for percent, usec in one.percentiles:
                latency.add_sample(latency.name, {"cmd": one.name, "quantile": percent}, usec)
            latency.add_sample(f"{latency.name}_sum", {"cmd": one.name}, one.usec)
            latency.add_sample(f"{latency.name}_count", {"cmd": one.name}, one.calls)
    yield latency
