"""`python -m examples.audit`: compares journals of producers and workers with a server's log, check by check."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from examples.audit import audit_local
from examples.audit.checks import Finding
from penstock.pipeline.errors import PipelineError

CLEAN, FAILED, NOT_CLEAN = 0, 1, 2  # exit codes


def main(words: Sequence[str] | None = None) -> int:
    """The exit code: 2 where a check that must be zero is not, 1 where the log or the journals cannot be read."""
    chosen = parser().parse_args(words)
    try:
        if chosen.master is not None:
            return _with_spark(chosen)
        findings = audit_local.check(
            audit_local.requests(chosen.log),
            audit_local.journals_in(chosen.journals),
            chosen.stream.encode(),
            chosen.group.encode(),
            chosen.serial.encode(),
        )
    except (OSError, PipelineError) as reason:
        print(f"audit: {reason}", file=sys.stderr)
        return FAILED
    print("\n".join(map(_line, findings)))
    return NOT_CLEAN if any(one.is_a_fault for one in findings) else CLEAN


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser("python -m examples.audit", description=(__doc__ or "").splitlines()[0])
    found.add_argument("--log", required=True, metavar="PATH", help="a server's log directory, or one file of it")
    found.add_argument("--journals", required=True, type=Path, metavar="FOLDER", help="where *.journal are")
    found.add_argument("--stream", required=True, metavar="KEY")
    found.add_argument("--group", required=True, metavar="NAME")
    found.add_argument("--serial", default="serial", metavar="FIELD", help="the field that numbers entries (serial)")
    found.add_argument(
        "--master", help="run on Spark, at this master (local[*]), for a log beyond one process's memory"
    )
    return found


def _line(one: Finding) -> str:
    rule = "must be 0" if one.check.must_be_zero else ""
    example = f", for example {one.example}" if one.is_a_fault else ""
    return f"{one.check.name:<56}{one.entries:>12,}  {rule}{example}".rstrip()


def _with_spark(chosen: argparse.Namespace) -> int:
    from examples.audit.audit_spark import audit, is_clean
    from examples.audit.journals import journals
    from penstock.pipeline.jobs import jobs
    from penstock.pipeline.session import session

    spark = session(chosen.master, "audit", spark__ui__enabled="false", spark__sql__session__timeZone="UTC")
    try:
        log = jobs.log(spark, chosen.log)
        found = audit(log, journals(spark, str(chosen.journals)), chosen.stream, chosen.group, chosen.serial)
        found.show(50, truncate=False)
        return CLEAN if is_clean(found) else NOT_CLEAN
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
