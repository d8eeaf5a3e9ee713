"""Write transcripts anew from a real Redis: `python -m tests.support.record_transcripts NAME ...` (`make record`).

A new file needs its requests only, `(waits)` under those that wait, and `bob<` where a client is sent something. Lines
that still hold stay as they are: so do their <now>, <idle> and <any>. `--ours` asks an engine of this project, for
commands that no reference knows: compare what it answers with the documentation.
"""

import argparse
import re
import sys
import time
from contextlib import closing

from penstock.clock import ManualClock, MovableClock
from tests.support.clock import NOW_MS
from tests.support.engines import make_engine
from tests.support.reference_server import reference_cluster, reference_server
from tests.support.transcript_clients import EngineClients, ServerClients, settings_for
from tests.support.transcripts import FOLDER, Reply, Step, Transcript, is_as_written, names, read, shown, written

_TIME = re.compile(r"\b\d{13}\b")
NEAR_MS = 600_000


def recorded(transcript: Transcript, clients: EngineClients | ServerClients) -> list[list[str]]:
    """Each step's replies."""
    found: list[list[str]] = []
    blocked: set[str] = set()
    for step in transcript.steps:
        if not step.request:
            blocked.discard(step.client)
            found.append([timeless(shown(clients.receive(step.client)))])
            continue
        clients.send(step)
        if step.waits:
            blocked.add(step.client)
            clients.wait_until_blocked(len(blocked))
            found.append([])
            continue
        values = [clients.receive(step.client) for _ in range(max(1, len(step.replies)))]
        if not step.replies and isinstance(clients, ServerClients) and "SUBSCRIBE" in step.request.upper():
            values += clients.rest(step.client)
        found.append([timeless(shown(value)) for value in values])
    return found


def timeless(reply: str) -> str:
    now_ms = time.time_ns() // 1_000_000

    def mark(found: re.Match[str]) -> str:
        return "<now>" if min(abs(int(found[0]) - ms) for ms in (now_ms, NOW_MS)) < NEAR_MS else found[0]

    return _TIME.sub(mark, reply)


def merge(step: Step, resp2: list[str], resp3: list[str]) -> None:
    """Take new replies; what is written down stays where it still holds."""
    before = step.replies
    step.replies = []
    for at, (two, three) in enumerate(zip(resp2, resp3, strict=True)):
        reply = Reply(two, three if three != two else "")
        if at < len(before) and is_as_written(before[at].resp2, two):
            reply.resp2 = before[at].resp2
            if is_as_written(before[at].of(3), three):
                reply.resp3 = before[at].resp3
        step.replies.append(reply)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.support.record_transcripts", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all that a Redis knows")
    parser.add_argument("--ours", action="store_true", help="ask an engine of this project")
    options = parser.parse_args()
    with reference_server() as alone, reference_cluster() as in_cluster:
        for name in options.names or [name for name in names() if read(name).since < (8, 7, 0)]:
            transcript = read(name)
            port = in_cluster if transcript.in_cluster else alone
            told: list[list[list[str]]] = []
            for resp in (2, 3):
                clients: EngineClients | ServerClients
                if options.ours:
                    clients = EngineClients(
                        make_engine(MovableClock(ManualClock(NOW_MS)), settings=settings_for(transcript)), resp
                    )
                else:
                    clients = ServerClients(port, resp, transcript.clients)
                with closing(clients):
                    told.append(recorded(transcript, clients))
            for step, resp2, resp3 in zip(transcript.steps, *told, strict=True):
                merge(step, resp2, resp3)
            (FOLDER / f"{name}.txt").write_text(written(transcript), encoding="utf-8")
            sys.stdout.write(f"{name}: {len(transcript.steps)} steps\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
