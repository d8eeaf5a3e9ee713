"""Workers of one group in virtual time: an embedded server, and a clock that goes from one moment to the next."""

import heapq
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

import penstock
from examples.tenants.load import MIDNIGHT_MS, WORKERS, Job
from penstock import policies

STREAM: Final = "jobs"
GROUP: Final = "workers"
LATE: Final = "jobs:late"
NIGHTLY: Final = "jobs:nightly"
LEASE_MS: Final = 3_000
AWAY_MS: Final = 1_000  # until a killed worker has a successor
START_S: Final = 2_000_073_600 - MIDNIGHT_MS // 1000  # unix time
ADDED, DONE, KILLED, READY, SCHEDULED = range(5)  # what happens at a moment


class Outcome(NamedTuple):
    """What became of the jobs: how many ms each waited for its first worker, by number; which were done, and which
    became worthless. again: deliveries after a lease had ended."""

    waited_ms: dict[int, int]
    done: set[int]
    late: set[int]
    again: int


class Workers:
    """The workers, each with the job that it is at; one that was killed is forgotten, and its job is the lease's."""

    def __init__(self, server: penstock.Server, jobs: Iterable[Job]) -> None:
        self._clock = server.clock
        self._client: Any = server.client(decode_responses=True)
        self._jobs = {job.number: job for job in jobs}
        self._moments: list[tuple[int, int, int, str]] = []  # ms, what happens, number of the job, worker
        self._idle: list[str] = []
        self._at: dict[str, str] = {}  # entries by worker
        self._hired = 0
        self.waited_ms: dict[int, int] = {}
        self.done: set[int] = set()

    def run(self, fair: Literal["YES", "NO"], kills_ms: Iterable[int]) -> Outcome:
        client = self._client
        client.xgroup_create(STREAM, GROUP, "0", mkstream=True)
        for job in self._jobs.values():
            if job.every:
                client.xadd(NIGHTLY, job.fields())  # the server adds a copy to the others at each of its times
        policies.set_stream(client, STREAM, maxlen=0, acked=True)
        policies.set_group(client, STREAM, GROUP, ackwait=LEASE_MS, expireat="best-before", deadletter=LATE)
        policies.set_group(client, STREAM, GROUP, key="tenant", parallel=WORKERS, fair=fair, lookahead=1_000_000)
        policies.set_group(client, STREAM, GROUP, priority="level", aging=10_000)
        policies.set_stream(client, NIGHTLY, forward=STREAM, every="every")
        for job in self._jobs.values():
            self._later(job.at_ms, SCHEDULED if job.every else ADDED, job.number)
        for at_ms in kills_ms:
            self._later(at_ms, KILLED)
        for _ in range(WORKERS):
            self._hire()
        now_ms = 0
        while self._moments:
            at_ms, what, number, worker = heapq.heappop(self._moments)
            self._clock.advance(milliseconds=at_ms - now_ms)
            now_ms = at_ms
            self._happen(now_ms, what, number, worker)
            self._take(now_ms)
        late = {int(fields["number"]) for _, fields in client.xrange(LATE)}
        again = client.xinfo_groups(STREAM)[0]["penstock-policy"]["redelivered"]
        return Outcome(self.waited_ms, self.done, late, again)

    def _later(self, at_ms: int, what: int, number: int = 0, worker: str = "") -> None:
        heapq.heappush(self._moments, (at_ms, what, number, worker))

    def _hire(self) -> None:
        self._hired += 1
        self._idle.append(f"worker-{self._hired}")

    def _happen(self, now_ms: int, what: int, number: int, worker: str) -> None:
        if what == ADDED:
            self._client.xadd(STREAM, self._jobs[number].fields())
        elif what == DONE and worker in self._at:
            self._client.xack(STREAM, GROUP, self._at.pop(worker))
            self.done.add(number)
            self._idle.append(worker)
        elif what == KILLED and self._at:
            del self._at[min(self._at)]
            self._later(now_ms + AWAY_MS, READY)
            self._later(now_ms + LEASE_MS, READY, 1)
        elif what == READY and number == 0:
            self._hire()

    def _take(self, now_ms: int) -> None:
        """Each idle worker takes a job, if there is one: the loop of a worker, without the waiting."""
        while self._idle:
            found = self._client.xreadgroup(GROUP, self._idle[-1], {STREAM: ">"}, count=1)
            if not found:
                return
            [[_, [(entry_id, fields)]]] = found
            worker, number = self._idle.pop(), int(fields["number"])
            self._at[worker] = entry_id
            job = self._jobs[number]
            self.waited_ms.setdefault(number, now_ms - job.at_ms)
            self._later(now_ms + job.takes_ms, DONE, number, worker)


def outcome(jobs: Sequence[Job], fair: Literal["YES", "NO"], kills_ms: Iterable[int] = ()) -> Outcome:
    """What becomes of the jobs under the policy with `FAIR fair`, workers being killed at some moments."""
    with penstock.Server() as server:
        server.clock.stop()
        server.clock.travel(START_S)
        return Workers(server, jobs).run(fair, kills_ms)
