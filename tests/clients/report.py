"""Run every framework's course and write docs/clients.md: `python -m tests.clients.report [NAME ...]`.

The table is of this run. With names, only those are run, and the page is left alone.
"""

import platform
import sys
from pathlib import Path

from tests.clients.course import Outcome, course
from tests.clients.frameworks import FRAMEWORKS, Framework

PAGE = Path(__file__).parent.parent.parent / "docs/clients.md"
HEAD = """# Frameworks and clients that were run

Written by `make clients`. Each framework and client below is as its authors ship it, and runs its own worker processes
against one Penstock: half of the jobs are sent, one of two workers is killed (SIGKILL, with its children) and replaced,
the server is stopped and started on the same data, the other half is sent. A job writes its result to a file that the
server knows nothing of: *done* is counted there, *again* are jobs that ran more than once (at-least-once delivery),
*read back* are the right results that the framework itself returned afterwards, and *restarts* are workers that ended
by themselves when the server went away and were started again, as a container host does.

| framework | version | what was exercised | jobs | done | again | read back | restarts | result |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | --- |
"""


def ran(framework: Framework) -> tuple[Outcome | None, str]:
    """The outcome and a verdict in words."""
    if not framework.version:
        return None, "not installed"
    try:
        with course(framework) as way:
            outcome = way.run()
    except (TimeoutError, AssertionError) as failure:
        sys.stderr.write(f"{framework.name}: {failure}\n")
        return None, f"**fails**: {str(failure).splitlines()[0][:120]}"
    if outcome.lost > framework.may_lose or outcome.wrong:
        return outcome, f"**fails**: {outcome.lost} lost, {outcome.wrong} wrong"
    if outcome.results < framework.kept:
        return outcome, "**fails**: results are missing"
    return outcome, "passes" if not outcome.lost else f"passes; {outcome.lost} lost by its design"


def line(framework: Framework, outcome: Outcome | None, verdict: str) -> str:
    """One row of the table."""
    words = [framework.name, framework.version, framework.exercised, str(framework.jobs)]
    if outcome is None:
        words += ["", "", "", ""]
    else:
        words += [str(outcome.done), str(outcome.repeated), str(outcome.results), str(outcome.restarts)]
    return "| " + " | ".join([*words, verdict]) + " |\n"


def remarks() -> str:
    """What does not work, or not as one might think."""
    text = "\n## What to know\n\n"
    for framework in FRAMEWORKS:
        if framework.remark:
            text += f"* {framework.name} {framework.remark}.\n"
    text += (
        "* redis_exporter and Redis Insight ask for MODULE LIST, CLUSTER INFO and PFCOUNT too: unknown commands here.\n"
    )
    return text + "* Not run: go-redis (Debian has no package of it).\n"


def main(names: list[str]) -> int:
    """Run, print, write; the exit code counts what failed."""
    failed = 0
    page = HEAD
    for framework in FRAMEWORKS:
        if names and framework.name not in names:
            continue
        outcome, verdict = ran(framework)
        row = line(framework, outcome, verdict)
        sys.stdout.write(row)
        sys.stdout.flush()
        failed += verdict.startswith("**")
        page += row
    if not names:
        about = f"\nPython {platform.python_version()}, {platform.system()}.\n"
        PAGE.write_text(page + about + remarks())
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
