"""Crash a server again and again, by hand: `python -m tests.crash.soak --kills 1000`.

Ends with 1 at the first thing that is lost, and leaves the log's directory for a look.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.crash.rounds import Rounds
from tests.crash.verdicts import Lost

TELL_EVERY = 50  # kills


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.soak", description="SIGKILL at random moments.")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--policy", choices=("always", "everysec", "no"), default="always")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--longest", type=float, default=0.3, help="seconds of load before a kill, at most")
    args = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="penstock-soak-"))
    rounds = Rounds(directory, random.Random(args.seed), args.policy)
    say(f"seed {args.seed}, appendfsync {args.policy}, log in {directory}")
    began_s = time.monotonic()
    try:
        for kill in range(1, args.kills + 1):
            rounds.round(longest_s=args.longest)
            if kill % TELL_EVERY == 0:
                spent_s = time.monotonic() - began_s
                say(f"{kill} kills in {spent_s:.0f} s: {rounds.requests} answered requests")
        rounds.last_check()
    except Lost as loss:
        say(f"LOST after {rounds.rounds} kills: {loss}")
        return 1
    say(f"{args.kills} kills: 0 answered requests lost of {rounds.requests}, 0 loads failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
