"""All fuzzers in turn: `python -m tests.fuzz --minutes 60`, or `make fuzz MINUTES=60`.

    wire       bytes that are no protocol, or nearly, on a live server
    commands   every command of the table with hostile arguments, on a live server
    scripts    scripts that attack the server (tests/scripts/hostile.py)
    files      altered configurations, manifests, logs, snapshots, node files and ACL files
    payloads   altered payloads of RESTORE
    access     rules of users beside a naive model
    policies   users with rules, policies and a turning clock: no key changes that the user may not write

No input may end the server, keep another client waiting, meet an error of the server's own or take much memory
(judge.py). Small inputs that found something are in corpus/; the tests run them.
"""

import argparse
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.fuzz.access import attack_access, attack_by_policies
from tests.fuzz.files import attack_files, attack_payloads
from tests.fuzz.judge import PATIENCE_S
from tests.fuzz.limit import Found, Limit, say
from tests.fuzz.live import attack_server, commands, wire

ROUND_S: Final = 60.0  # of one part at a time
SCRIPTS: Final = 100  # at a time
PARTS: Final = ("wire", "commands", "scripts", "files", "payloads", "access", "policies")
ROOT: Final = Path(__file__).parents[2]
ELSEWHERE: Final = (
    "import runpy, sys; sys.path.append(sys.argv.pop(1)); runpy.run_module('tests.fuzz', run_name='__main__')"
)


def attack_scripts(seed: str, limit: Limit) -> Iterator[Found]:
    from tests.scripts.hostile import Report, run  # needs lupa

    while limit.more():
        for line in run(SCRIPTS, f"{seed}/{limit.done}"):
            if isinstance(line, Report):
                yield Found("scripts", line.seed, str(line))


def attacks(part: str, seed: str, limit: Limit) -> Iterator[Found]:
    """What one part finds until the limit."""
    if part in ("wire", "commands"):
        return attack_server(part, wire if part == "wire" else commands, seed, limit)
    if part == "files":
        return attack_files(seed, limit, PATIENCE_S)
    if part == "payloads":
        return attack_payloads(seed, limit, PATIENCE_S)
    if part == "policies":
        return attack_by_policies(seed, limit)
    return attack_scripts(seed, limit) if part == "scripts" else attack_access(seed, limit)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="for all parts together (default: %(default)s)")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part; may be given again")
    parser.add_argument("--seed", default="", help="the first seed (default: a random one)")
    parser.add_argument("--python", default="", help="the interpreter whose penstock is attacked (default: this one)")
    chosen = parser.parse_args()
    if chosen.python:  # its own penstock, not the one beside the tests
        words = [
            word
            for at, word in enumerate(sys.argv[1:], 1)
            if "--python" not in (word.partition("=")[0], sys.argv[at - 1])
        ]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
            "PYTHONSAFEPATH": "1"
        }
        os.execve(chosen.python, [chosen.python, "-c", ELSEWHERE, str(ROOT), *words], environment)
    seed = chosen.seed or str(random.SystemRandom().randrange(1 << 32))
    parts = chosen.only or list(PARTS)
    left = Limit(seconds=chosen.minutes * 60)
    inputs = dict.fromkeys(parts, 0)
    failures = 0
    say(f"seed {seed}")
    while left.more():
        for part in parts:
            limit = Limit(seconds=min(ROUND_S, chosen.minutes * 60 / len(parts)))
            for found in attacks(part, f"{seed}/{left.done}", limit):
                failures += 1
                say(found)
            inputs[part] += limit.done * (SCRIPTS if part == "scripts" else 1)
        say(", ".join(f"{part} {count}" for part, count in inputs.items()) + f" inputs, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
