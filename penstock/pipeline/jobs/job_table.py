"""The jobs of the command line, `penstock pipeline JOB`: what each needs, does, and draws as a chart."""

import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from penstock.pipeline.connector.connection.cluster import connect
from penstock.pipeline.connector.connection.connection_options import read_servers
from penstock.pipeline.connector.connection.option_reader import OptionReader
from penstock.pipeline.connector.connection.stream_info import stream_states
from penstock.pipeline.connector.source.source_options import read_entries, read_sizing
from penstock.pipeline.errors import OptionError, PipelineError

PENDING, GROUPS, ENTRIES, LOG = "pending", "groups", "entries", "log"


@dataclass(frozen=True, slots=True)
class Job:
    """`work` returns a DataFrame; `chart` is its x and y columns, or only x for a histogram."""

    name: str
    needs: str  # a server's table, or LOG
    text: str
    work: Callable[[Any, Namespace], Any]
    chart: tuple[str, ...] = ()
    split_by: str = ""
    required: tuple[str, ...] = ()  # flags without which it cannot be done
    writes_itself: bool = False  # --out is its own: what it gives back is not written there


def check(chosen: Namespace) -> Job:
    """The job that was named; OptionError for flags that it cannot be done with, or without."""
    job = next(job for job in JOBS if job.name == chosen.job)
    if chosen.plot and not job.chart:
        raise OptionError(f"the job {job.name!r} has no chart")
    for flag in job.required:
        if not getattr(chosen, flag):
            raise OptionError(f"the job {job.name!r} needs --{flag}")
    for flag in ("idle", "min_idle", "between"):
        duration_ms(flag.replace("_", "-"), getattr(chosen, flag) or "0")
    if job.needs == ENTRIES:
        read_entries({**connection(chosen), "stream": chosen.stream}, streaming=False)
    elif job.needs != LOG:
        reader = OptionReader(connection(chosen), "job")
        read_servers(reader)
        read_sizing(reader)
        reader.flag("pushFilters", False)
        reader.end()
    return job


def table(spark: Any, chosen: Namespace, name: str, schema: str | None = None) -> Any:
    """A table of the servers that were named."""
    reader = spark.read.format("redis_streams").option("table", name).options(**connection(chosen))
    if schema is not None:
        reader = reader.schema(schema)
    if chosen.group and name in (PENDING, GROUPS):
        reader = reader.option("group", chosen.group)
    if chosen.stream:
        require_streams(connection(chosen), chosen.stream)
        return reader.option("stream", chosen.stream).load()
    return reader.option("streamPattern", chosen.pattern or "*").load()


def require_streams(options: dict[str, str], streams: str) -> None:
    """PipelineError for a stream that no server has: the job would only show no rows."""
    asked = read_entries({**options, "stream": streams}, streaming=False)
    missing = {name.encode() for name in asked.keys.names}
    for endpoint in asked.servers.endpoints:
        with connect(endpoint, asked.servers.access) as client:
            missing -= stream_states(client, missing).keys()
    if missing:
        names = ", ".join(sorted(repr(key.decode()) for key in missing))
        where = ", ".join(one.address for one in asked.servers.endpoints)
        raise PipelineError(f"there is no stream {names} at {where}")


def connection(chosen: Namespace) -> dict[str, str]:
    """The connection's options: `--endpoint`, and `--option name=value` for others."""
    options = {"endpoints": chosen.endpoint}
    for pair in chosen.option:
        name, equals, value = pair.partition("=")
        if not equals:
            raise OptionError(f"--option is to be name=value, not {pair!r}")
        options[name] = value
    return options


def duration_ms(name: str, words: str) -> int:
    return int(OptionReader({name: words}, "job").duration_ms(name, None))


def _log(spark: Any, chosen: Namespace) -> Any:
    from penstock.pipeline.jobs import jobs

    return jobs.log(spark, chosen.log)


def _lag(spark: Any, chosen: Namespace) -> Any:
    from penstock.pipeline.jobs import jobs

    if not chosen.between:
        return jobs.lag(table(spark, chosen, GROUPS))
    wait_s = duration_ms("between", chosen.between) / 1000
    first = table(spark, chosen, GROUPS)
    began_s = time.monotonic()
    earlier = spark.createDataFrame(first.collect(), first.schema)
    time.sleep(wait_s)
    later = table(spark, chosen, GROUPS).persist()
    later.count()
    return jobs.lag(later, earlier, time.monotonic() - began_s)


def _dead_letters(spark: Any, chosen: Namespace) -> Any:
    from penstock.pipeline.jobs import jobs

    found = jobs.poison(table(spark, chosen, PENDING), chosen.least)
    options = connection(chosen) | {"minIdle": chosen.min_idle}
    if chosen.dead_letter_stream:
        options["deadLetterStream"] = chosen.dead_letter_stream
    return jobs.move_to_dead_letter(found, options)


def _redrive(spark: Any, chosen: Namespace) -> Any:
    from penstock.pipeline.jobs import jobs

    return jobs.redrive(table(spark, chosen, ENTRIES, jobs.LETTERS), connection(chosen))


def _history(spark: Any, chosen: Namespace) -> Any:
    from penstock.pipeline.jobs import jobs

    return jobs.history(_log(spark, chosen), chosen.out)


def _pending(name: str, *words: str) -> Callable[[Any, Namespace], Any]:
    def work(spark: Any, chosen: Namespace) -> Any:
        from penstock.pipeline.jobs import jobs

        return getattr(jobs, name)(table(spark, chosen, PENDING), *(_word(chosen, word) for word in words))

    return work


def _of_log(name: str) -> Callable[[Any, Namespace], Any]:
    def work(spark: Any, chosen: Namespace) -> Any:
        from penstock.pipeline.jobs import jobs

        return getattr(jobs, name)(_log(spark, chosen))

    return work


def _word(chosen: Namespace, word: str) -> Any:
    return duration_ms("idle", chosen.idle) if word == "idle" else getattr(chosen, word)


JOBS: Final = (
    Job(
        "delivery-histogram",
        PENDING,
        "pending entries by how often they were delivered",
        _pending("delivery_histogram"),
        ("deliveries", "entries"),
        "group",
    ),
    Job("poison", PENDING, "entries delivered --least times or more, or marked fatal", _pending("poison", "least")),
    Job(
        "stuck",
        PENDING,
        "consumers that hold entries for longer than --idle",
        _pending("stuck", "idle"),
        ("consumer", "entries"),
    ),
    Job(
        "oldest-pending",
        PENDING,
        "the oldest pending entry of each group",
        _pending("oldest_pending"),
        ("group", "age_ms"),
    ),
    Job("lag", GROUPS, "how far groups are behind; with --between 10s also how fast they read", _lag, ("group", "lag")),
    Job("dead-letters", PENDING, "moves poison entries to their dead-letter stream", _dead_letters),
    Job("redrive", ENTRIES, "adds dead letters to the streams they came from", _redrive, required=("stream",)),
    Job(
        "history",
        LOG,
        "a log as Parquet, by day and command",
        _history,
        ("command", "lines"),
        required=("out",),
        writes_itself=True,
    ),
    Job("deliveries", LOG, "every delivery, to the millisecond", _of_log("deliveries"), ("deliveries",)),
    Job(
        "redelivery-latency",
        LOG,
        "how long it took until an entry was delivered again",
        _of_log("redelivery_latency"),
        ("latency_ms",),
        "cause",
    ),
    Job("time-to-ack", LOG, "seconds from first delivery to acknowledgement", _of_log("time_to_ack"), ("seconds",)),
    Job(
        "attempts-at-ack",
        LOG,
        "how many deliveries an entry took",
        _of_log("attempts_at_ack"),
        ("deliveries", "entries"),
        "group",
    ),
)
