"""`penstock pipeline JOB`: a job over servers or a log, in a Spark of its own or on a cluster; `run` for a pipeline."""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from penstock.pipeline import session
from penstock.pipeline.errors import OptionError, PipelineError
from penstock.pipeline.interrupt import INTERRUPTED, Interrupt
from penstock.pipeline.jobs import job_table
from penstock.pipeline.jobs.job_table import JOBS, Job
from penstock.pipeline.runner import pipeline_file
from penstock.pipeline.runner.pipeline_file import Pipeline

SHOWN: Final = 20  # rows on the terminal
WIDEST: Final = 60  # letters of a value there
WAIT_S: Final = 1.0
FORMATS: Final = {".csv": "csv", ".json": "json", ".parquet": "parquet"}
UNEVEN, FAILED = 2, 1  # exit codes, with INTERRUPTED
RUN: Final = "run"
MARKERS: Final = "markers"


def main(words: Sequence[str]) -> int:
    """The exit code: 2 where a pipeline's counts do not balance, 1 for what cannot be done, 130 after Ctrl-C."""
    chosen = parser().parse_args(words)
    interrupt = Interrupt()
    with interrupt.handled():
        try:
            return _run(chosen, interrupt)
        except PipelineError as reason:
            if interrupt.is_requested:
                raise
            sys.stderr.write(f"penstock pipeline: {reason}\n")
            return FAILED
    return INTERRUPTED


def _run(chosen: argparse.Namespace, interrupt: Interrupt) -> int:
    """Start Spark and do what was asked for; mistakes are reported before Spark starts."""
    if chosen.job == MARKERS:
        return _run_markers(chosen)
    pipeline = pipeline_file.read(chosen.file) if chosen.job == RUN else None
    if pipeline is None:
        job_table.check(chosen)
    settings = _settings(chosen)
    session.require()
    spark = _session(chosen, settings)
    from pyspark.errors import PySparkException

    try:
        if not interrupt.watch(spark):
            return INTERRUPTED
        found = run_job(spark, chosen) if pipeline is None else run_pipeline(spark, pipeline, chosen.quiet, interrupt)
        return INTERRUPTED if interrupt.is_requested else found
    except PySparkException as reason:
        raise PipelineError(_first_cause(str(reason))) from None
    finally:
        spark.stop()


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser("penstock pipeline", description="Jobs over streams, groups and logs, on Spark.")
    subcommands = found.add_subparsers(title="jobs", metavar="job", dest="job", required=True)
    for job in JOBS:
        _add_job(subcommands.add_parser(job.name, help=job.text, description=job.text + "."), job)
    run = subcommands.add_parser(RUN, help="run the pipeline that a file describes", description="Run a pipeline.")
    run.add_argument("file", type=Path, metavar="pipeline.toml")
    _add_spark(run)
    text = "show or remove the markers of queries that write exactly once"
    markers = subcommands.add_parser(MARKERS, help=text, description=text.capitalize() + ".")
    _add_endpoint(markers)
    _add_option(markers)
    markers.add_argument("--query", metavar="NAME", help="of one query only")
    markers.add_argument("--remove", action="store_true", help="remove them: what the query has written is forgotten")
    return found


def _add_endpoint(one: argparse.ArgumentParser) -> None:
    one.add_argument("--endpoint", default="127.0.0.1:6379", metavar="HOST:PORT", help="servers, parted by commas")


def _add_option(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="an option of the source, e.g. password=x"
    )


def _run_markers(chosen: argparse.Namespace) -> int:
    from penstock.pipeline.connector.sink import marker_list

    sys.stdout.write(marker_list.run(job_table.connection(chosen), chosen.query, chosen.remove))
    return 0


def _add_job(one: argparse.ArgumentParser, job: Job) -> None:
    if job.needs == job_table.LOG:
        one.add_argument("--log", required=True, metavar="PATH", help="a server's log directory, or one file of it")
    else:
        _add_endpoint(one)
    one.add_argument("--stream", metavar="KEYS", help="streams, parted by commas")
    one.add_argument("--pattern", metavar="GLOB", help="or those whose names match (default: all)")
    one.add_argument("--group", metavar="NAME", help="one group only")
    _add_option(one)
    one.add_argument(
        "--least", type=int, default=5, metavar="N", help="deliveries from which on an entry is poison (5)"
    )
    one.add_argument("--idle", default="60s", metavar="TIME", help="how long a stuck consumer holds an entry (60s)")
    one.add_argument("--min-idle", default="0", metavar="TIME", help="leave alone what was delivered more recently (0)")
    one.add_argument("--dead-letter-stream", metavar="NAME", help="where dead letters go ({key}:dead)")
    one.add_argument("--between", metavar="TIME", help="lag: look twice, and tell rates")
    one.add_argument("--out", metavar="PATH", help="write the rows there: a folder of Parquet, or of .csv or .json")
    one.add_argument("--plot", metavar="FILE.png", help="draw a chart")
    _add_spark(one)


def _add_spark(one: argparse.ArgumentParser) -> None:
    one.add_argument("--master", default="local[*]", help="Spark's master (this machine)")
    one.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark's")
    one.add_argument("--quiet", action="store_true", help="no progress")


def _settings(chosen: argparse.Namespace) -> dict[str, str]:
    """Spark's settings; OptionError for a mistake in --conf."""
    settings = {
        "spark__ui__enabled": "false",
        "spark__ui__showConsoleProgress": str(sys.stderr.isatty() and not chosen.quiet).lower(),
        "spark__sql__session__timeZone": "UTC",
        "spark__driver__memory": "1g",
        "spark__sql__shuffle__partitions": "8",
    }
    if chosen.master.startswith("local"):
        settings |= {"spark__driver__host": "127.0.0.1", "spark__driver__bindAddress": "127.0.0.1"}
    for pair in chosen.conf:
        name, equals, value = pair.partition("=")
        if not equals:
            raise OptionError(f"--conf is to be name=value, not {pair!r}")
        settings[name.replace(".", "__")] = value
    return settings


def _session(chosen: argparse.Namespace, settings: dict[str, str]) -> Any:
    found = session.session(chosen.master, f"penstock {chosen.job}", **settings)
    found.sparkContext.setLogLevel("ERROR")
    return found


def run_job(spark: Any, chosen: argparse.Namespace) -> int:
    """Show a job's rows, and write and draw them where that is wanted."""
    job = job_table.check(chosen)
    found = job.work(spark, chosen).persist()
    count = found.count()
    if chosen.out and not job.writes_itself:
        form = FORMATS.get(Path(chosen.out).suffix, "parquet")
        found.write.format(form).option("header", "true").mode("overwrite").save(chosen.out)
    found.show(SHOWN, WIDEST)
    sys.stdout.write(f"{count:,} rows{f' in {chosen.out}' if chosen.out else ''}\n")
    if chosen.plot:
        from penstock.pipeline.jobs.plot import chart

        chart(found, job.chart, job.split_by, job.text, chosen.plot)
    return 0


def run_pipeline(spark: Any, pipeline: Pipeline, quiet: bool, interrupt: Interrupt) -> int:
    """Run a pipeline to its end, or until SIGTERM, and print the table of all its rows."""
    from penstock.pipeline.runner import balance
    from penstock.pipeline.runner.runner import Runner

    runner = Runner(spark, pipeline, (lambda _: None) if quiet else None, lambda: interrupt.is_requested)
    if pipeline.trigger is None:
        totals = runner.run()
    else:
        stopping: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, _: stopping.append(number))
        runner.start(pipeline.trigger)
        try:
            while not stopping and not interrupt.is_requested:
                runner.wait(WAIT_S)
        finally:
            runner.stop()
        if interrupt.is_requested:
            return INTERRUPTED
        totals = runner.totals()
    sys.stdout.write(balance.table("all batches", totals) + "\n")
    return 0 if all(stage.balances for stage in totals) else UNEVEN


def _first_cause(text: str) -> str:
    """The sentence of ours in what Spark makes of it, or Spark's first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith(("penstock.pipeline.errors.", "penstock.errors."))]
    return ours[0].partition(": ")[2] if ours else (lines[0] if lines else "Spark gives no reason")
