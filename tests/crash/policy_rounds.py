"""SIGKILL while leases end, dead letters move and entries are forwarded; by hand `python -m tests.crash.policy_rounds`.

Every round has a fresh job stream in the same directory: producers add to it and to a stream that forwards to it,
workers read, acknowledge, give back and forget, and every tenth job is poison. The server is killed at a random
moment, or at a random write or sync, and started again. Then what clients were told must be there (`account`), and a
worker that acknowledges everything must be able to finish the rest.
"""

import argparse
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

from tests.crash.loaders import Link, Loader, linked
from tests.crash.verdicts import Lost
from tests.support.server_process import ServerProcess

WORKERS: Final = 3
POISON: Final = 10  # every so many jobs
POLICY: Final = "ACKWAIT 40 BACKOFF 5 20 MAXDELIVER 3 DEADLETTER"
FLAGS: Final = ("--appendfsync", "always", "--auto-aof-rewrite-min-size", "64kb", "--hz", "100")
POINTS: Final = ("write", "written", "sync", "synced")
START_S: Final = 120.0  # the machine may be busy
END_S: Final = 60.0


class Jobs:
    """The streams of one round: jobs, those that wait for their time, and dead letters. kept: done jobs stay."""

    def __init__(self, number: int, kept: bool) -> None:
        self.jobs, self.later, self.dead = (f"r{number}:{name}".encode() for name in ("jobs", "later", "dead"))
        self.kept = kept

    def open(self, link: Link) -> None:
        for line in (
            f"XGROUP CREATE {self.jobs.decode()} g 0 MKSTREAM",
            f"XADD {self.later.decode()} * n poison-0 at +0",
            f"PENSTOCK.POLICY {self.later.decode()} FORWARD {self.jobs.decode()} AT at",
            f"PENSTOCK.POLICY {self.jobs.decode()} GROUP g {POLICY} {self.dead.decode()} KEY k",
            *([] if self.kept else [f"PENSTOCK.POLICY {self.jobs.decode()} MAXLEN 0 ACKED"]),
        ):
            reply = link.ask(*line.encode().split())
            assert not isinstance(reply, Exception), reply


class Producer(Loader):
    """Adds jobs, at once or for later. sent, told: numbers of jobs that were sent, and that were answered."""

    def __init__(self, port: int, name: str, jobs: Jobs, chance: random.Random) -> None:
        super().__init__(port)
        self._name, self._jobs, self._chance = name, jobs, chance
        self.sent: set[bytes] = set()
        self.told: set[bytes] = set()

    def load(self, link: Link) -> None:
        count = 0
        while not self.stops:
            batch = []
            for _ in range(self._chance.randint(1, 4)):
                count += 1
                number = f"{'poison' if count % POISON == 0 else self._name}-{self._name}-{count}".encode()
                key = b"%d" % self._chance.randrange(20)
                if self._chance.random() < 0.5:
                    batch.append([b"XADD", self._jobs.jobs, b"*", b"n", number, b"k", key])
                else:
                    delay = b"+%d" % self._chance.randrange(60)
                    batch.append([b"XADD", self._jobs.later, b"*", b"n", number, b"k", key, b"at", delay])
            numbers = [request[4] for request in batch]
            self.sent |= set(numbers)
            link.send(batch)
            for number in numbers:
                if isinstance(link.reply(), bytes):
                    self.told.add(number)


class Worker(Loader):
    """Reads jobs. of: the job of each delivered id; acknowledging: ids in an XACK that was sent; told: answered."""

    def __init__(self, port: int, name: str, jobs: Jobs, chance: random.Random) -> None:
        super().__init__(port)
        self._name, self._jobs, self._chance = name.encode(), jobs, chance
        self.of: dict[bytes, bytes] = {}
        self.acknowledging: set[bytes] = set()
        self.told: set[bytes] = set()

    def load(self, link: Link) -> None:
        jobs = self._jobs.jobs
        while not self.stops:
            for entry_id, fields in read(link, jobs, self._name):
                self.of[entry_id] = fields[1]
                lot = self._chance.random()
                if fields[1].startswith(b"poison"):
                    lot = max(lot, 0.6)
                if lot < 0.6:
                    self.acknowledging.add(entry_id)
                    if link.ask(b"XACK", jobs, b"g", entry_id) == 1:
                        self.told.add(entry_id)
                elif lot < 0.8:
                    link.ask(b"XNACK", jobs, b"g", b"FAIL", b"IDS", b"1", entry_id)
                elif lot < 0.81:
                    link.ask(b"XGROUP", b"DELCONSUMER", jobs, b"g", self._name)


def read(link: Link, jobs: bytes, name: bytes) -> list[tuple[bytes, list[bytes]]]:
    reply = link.ask(b"XREADGROUP", b"GROUP", b"g", name, b"COUNT", b"5", b"BLOCK", b"20", b"STREAMS", jobs, b">")
    return reply[0][1] if isinstance(reply, list) else []


class PolicyRounds:
    """Kill after kill of servers that share a directory."""

    def __init__(self, directory: Path, chance: random.Random) -> None:
        self._directory = directory
        self._chance = chance
        self.kills = self.done = self.dead = 0

    def round(self) -> None:
        """Load, kill, start again, account, finish."""
        self.kills += 1
        jobs = Jobs(self.kills, self._chance.random() < 0.5)
        at_a_point = self._chance.random() < 0.5
        fault = f"{self._chance.choice(POINTS)}:kill@{self._chance.randint(20, 300)}" if at_a_point else ""
        server = self._start(fault)
        try:
            with linked(server.port) as link:
                jobs.open(link)
            loaders = self._load(server, jobs, 20.0 if fault else 0.05 + 0.4 * self._chance.random())
        finally:
            server.kill()
        for loader in loaders:
            loader.stops = True
            loader.join(END_S)
            if loader.failure is not None:
                raise loader.failure
        producers = [loader for loader in loaders if isinstance(loader, Producer)]
        workers = [loader for loader in loaders if isinstance(loader, Worker)]
        server = self._start("")
        try:
            with linked(server.port) as link:
                account(link, jobs, producers, workers)
                self._finish(link, jobs, producers, workers)
                link.ask(b"DEL", jobs.jobs, jobs.later, jobs.dead)
        finally:
            server.kill()

    def _start(self, fault: str) -> ServerProcess:
        server = ServerProcess(FLAGS, self._directory, {"PENSTOCK_FAULT": fault})
        try:
            server.wait_until_ready(START_S)
        except AssertionError as problem:
            server.kill()
            raise Lost(f"the log does not load: {problem}") from None
        return server

    def _load(self, server: ServerProcess, jobs: Jobs, seconds: float) -> list[Loader]:
        """Until the server ends by itself, or for so long."""
        chance = [random.Random(self._chance.random()) for _ in range(WORKERS + 1)]
        loaders: list[Loader] = [Producer(server.port, "p", jobs, chance[0])]
        loaders += [Worker(server.port, f"w{number}", jobs, chance[number]) for number in range(1, WORKERS + 1)]
        for loader in loaders:
            loader.start()
        until_s = time.monotonic() + seconds
        pause = threading.Event()
        while time.monotonic() < until_s and server.is_alive:
            pause.wait(0.01)
        return loaders

    def _finish(self, link: Link, jobs: Jobs, producers: list[Producer], workers: list[Worker]) -> None:
        """Acknowledge all that is left, but for poison, until nothing is left; each job is done, or a dead letter."""
        finisher = Worker(0, "finisher", jobs, random.Random(0))
        until_s = time.monotonic() + END_S
        while link.ask(b"XLEN", jobs.later) or not is_finished(link, jobs):
            if time.monotonic() > until_s:
                raise Lost(f"something is left: {link.ask(b'XINFO', b'STREAM', jobs.jobs, b'FULL')}")
            for entry_id, fields in read(link, jobs.jobs, b"finisher"):
                finisher.of[entry_id] = fields[1]
                if not fields[1].startswith(b"poison"):
                    finisher.acknowledging.add(entry_id)
                    if link.ask(b"XACK", jobs.jobs, b"g", entry_id) == 1:
                        finisher.told.add(entry_id)
        found = account(link, jobs, producers, [*workers, finisher])
        self.done += len(found.done)
        self.dead += len(found.dead)


def is_finished(link: Link, jobs: Jobs) -> bool:
    """Whether nothing is pending or unread."""
    groups = link.ask(b"XINFO", b"GROUPS", jobs.jobs)
    assert isinstance(groups, list)
    group = dict(zip(groups[0][::2], groups[0][1::2], strict=True))
    return bool(group[b"pending"] == 0 and group[b"lag"] == 0)


class Found:
    """What a server has of a round: jobs in the job stream, for later, and dead, each by its id or as a list."""

    def __init__(self, link: Link, jobs: Jobs) -> None:
        link.send(
            [
                [b"MULTI"],
                [b"XRANGE", jobs.jobs, b"-", b"+"],
                [b"XRANGE", jobs.later, b"-", b"+"],
                [b"XRANGE", jobs.dead, b"-", b"+"],
                [b"XPENDING", jobs.jobs, b"g", b"-", b"+", b"1000000"],
                [b"XINFO", b"GROUPS", jobs.jobs],
                [b"EXEC"],
            ]
        )
        replies = [link.reply() for _ in range(7)]
        assert isinstance(replies[-1], list), replies
        there, later, dead, pending, groups = replies[-1]
        self.jobs: dict[bytes, bytes] = {entry_id: fields[1] for entry_id, fields in there}
        self.later: list[bytes] = [fields[1] for _, fields in later]
        self.dead: dict[bytes, bytes] = {fields[fields.index(b"_id") + 1]: fields[1] for _, fields in dead}
        self.dead_letters = len(dead)
        self.pending: set[bytes] = {row[0] for row in pending}
        self.last_id = parsed(dict(zip(groups[0][::2], groups[0][1::2], strict=True))[b"last-delivered-id"])
        self.done: set[bytes] = set()


def parsed(text: bytes) -> tuple[int, int]:
    ms, _, serial = text.partition(b"-")
    return int(ms), int(serial)


def account(link: Link, jobs: Jobs, producers: list[Producer], workers: list[Worker]) -> Found:
    """Hold what is there against what clients were told; Lost where it does not fit.

    A job that was answered is for later, in the job stream, acknowledged or dead, and in one place only. What was read
    is pending, acknowledged or dead, exactly one of them; an acknowledgement that was sent and not answered may count.
    One that was answered with 0 came too late: the entry was a dead letter by then.
    """
    found = Found(link, jobs)
    job_of = {entry_id: job for worker in workers for entry_id, job in worker.of.items()}
    acknowledging = {entry_id for worker in workers for entry_id in worker.acknowledging}
    told = {entry_id for worker in workers for entry_id in worker.told}
    found.done = {job_of[entry_id] for entry_id in acknowledging - found.pending - found.dead.keys()}
    if found.dead_letters != len(found.dead):
        raise Lost("an entry has two dead letters")
    if told & (found.pending | found.dead.keys()):
        raise Lost(f"acknowledged, and pending or dead: {told & (found.pending | found.dead.keys())}")
    if found.pending & found.dead.keys():
        raise Lost(f"dead letters without their acknowledgement: {found.pending & found.dead.keys()}")
    in_stream = list(found.jobs.values())
    places = in_stream + found.later
    if len(places) != len(set(places)):
        raise Lost(f"moved twice: {sorted(job for job in set(places) if places.count(job) > 1)}")
    everywhere = set(places) | set(found.dead.values()) | found.done
    for producer in producers:
        if producer.told - everywhere:
            raise Lost(f"answered, and gone: {producer.told - everywhere}")
        if everywhere - producer.sent - {b"poison-0"}:
            raise Lost(f"no producer sent {everywhere - producer.sent}")
    for entry_id in found.jobs:
        if parsed(entry_id) <= found.last_id and entry_id not in found.pending | found.dead.keys() | acknowledging:
            raise Lost(f"{entry_id!r} is neither pending nor dead, and no worker acknowledged it")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.policy_rounds", description=(__doc__ or "")[:87])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    args = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="penstock-policies-"))
    rounds = PolicyRounds(directory, random.Random(args.seed))
    sys.stdout.write(f"seed {args.seed}, log in {directory}\n")
    try:
        for _ in range(args.kills):
            rounds.round()
    except Lost as loss:
        sys.stdout.write(f"LOST after {rounds.kills} kills: {loss}\n")
        return 1
    sys.stdout.write(f"{rounds.kills} kills: {rounds.done} jobs done, {rounds.dead} dead letters, nothing lost\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
