"""Run every framework's course and write docs/clients.md: `python -m tests.clients.report [NAME ...]`.

The table is of this run. With names, only those are run, and the page is left alone. With another server in
CLIENTS_SERVER (`servers.py`) the page is left alone too, and what was seen is kept in `elsewhere.json`, from which the
page's column beside Penstock's is taken.
"""

import json
import os
import platform
import sys
from pathlib import Path

from tests.clients.course import Outcome, course
from tests.clients.frameworks import CLUSTER, FRAMEWORKS, Framework
from tests.clients.servers import NAMED

ELSEWHERE = Path(__file__).parent / "elsewhere.json"
PAGE = Path(__file__).parent.parent.parent / "docs/clients.md"
SUITES = """\
* Cluster clients run against a server with `cluster-enabled yes` and `cluster-announce-ip`: ioredis does not connect \
to a node that does not name its address, on Redis 8.6.3 as here.
* Libraries' own tests on both servers: pottery 3.0.1 without its doctests, 302 of 305 here and 301 on Redis 8.6.3 \
(three compare what redis-py 7.4 prints, one depends on the machine's speed); the client-side cache of cashews 7.6.0, \
11 of 11 on both. Their source distributions lack the fixtures that name the server; that of coredis 6.9.0 has no tests.
"""
HEAD = """# Frameworks and clients that were run

Written by `make clients`. Each framework and client below is unmodified, and runs its own worker processes against
one Penstock: half of the jobs are sent, one of two workers is killed (SIGKILL, with its children) and replaced, the
server is stopped and started on the same data, and the other half is sent. Each job writes its result to a file that
the server does not use. *Done* counts the jobs in that file, *again* the jobs that ran more than once (at-least-once
delivery), *read back* the right results that the framework itself returned afterwards, and *restarts* the workers
that ended by themselves while the server was down and were started again, as a container host does. *Behind
Sentinels* the master of three servers is killed instead, a replica is promoted, and the old master comes back. With
*three nodes* (`penstock cluster`) the slots of the jobs move to other nodes, which are then killed. The last column
has done, again, read back and restarts of the same run on {server}.

| framework | version | what was exercised | jobs | done | again | read back | restarts | result | {server} |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | --- | --- |
"""


def ran(framework: Framework) -> tuple[Outcome | None, str, str]:
    """The outcome, a verdict in words, and the server's name and version."""
    if not framework.version:
        return None, "not installed", ""
    server = ""
    try:
        with course(framework) as way:
            server = way.server_version
            outcome = way.run()
    except (TimeoutError, AssertionError) as failure:
        sys.stderr.write(f"{framework.name}: {failure}\n")
        return None, f"**fails**: {str(failure).splitlines()[0][:120]}", server
    if outcome.lost > framework.may_lose or outcome.wrong:
        return outcome, f"**fails**: {outcome.lost} lost, {outcome.wrong} wrong", server
    if outcome.results < framework.kept:
        return outcome, "**fails**: results are missing", server
    return outcome, "passes" if not outcome.lost else f"passes; {outcome.lost} lost by its design", server


def numbers(outcome: Outcome | None) -> list[str]:
    """Done, again, read back, restarts."""
    if outcome is None:
        return ["", "", "", ""]
    return [str(outcome.done), str(outcome.repeated), str(outcome.results), str(outcome.restarts)]


def line(framework: Framework, outcome: Outcome | None, verdict: str, elsewhere: str) -> str:
    """One row of the table."""
    words = [framework.name, framework.version, framework.exercised, str(framework.jobs), *numbers(outcome)]
    return "| " + " | ".join([*words, verdict, elsewhere]) + " |\n"


def keep(seen: dict[str, str]) -> None:
    """What was seen on another server: its name and version, and a line a framework."""
    kept = json.loads(ELSEWHERE.read_text()) if ELSEWHERE.exists() else {}
    ELSEWHERE.write_text(json.dumps(kept | seen, indent=1) + "\n")


def remarks() -> str:
    """What does not work, or not as one might think."""
    text = "\n## What to know\n\n"
    for framework in FRAMEWORKS:
        if framework.remark:
            text += f"* {framework.name} {framework.remark}.\n"
    return text + SUITES + "* Not run: go-redis, Jedis, Lettuce (Debian has no package of their current versions).\n"


def main(names: list[str]) -> int:
    """Run, print, write; the exit code tells whether something failed."""
    failed = 0
    elsewhere: dict[str, str] = json.loads(ELSEWHERE.read_text())
    seen: dict[str, str] = {}
    page = HEAD.format(server=elsewhere["server"])
    for framework in FRAMEWORKS:
        if names and framework.name not in names:
            continue
        if os.environ.get(NAMED) and framework.beside_servers == CLUSTER:
            continue  # its nodes are Penstock's
        outcome, verdict, server = ran(framework)
        row = line(framework, outcome, verdict, elsewhere.get(framework.name, ""))
        sys.stdout.write(row)
        sys.stdout.flush()
        failed += verdict.startswith("**")
        page += row
        if outcome is not None:
            seen |= {"server": server, framework.name: ", ".join(numbers(outcome))}
    if os.environ.get(NAMED):
        keep(seen)
    elif not names:
        about = f"\nPython {platform.python_version()}, {platform.system()}.\n"
        PAGE.write_text(page + about + remarks())
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
