"""Changes of the master under load: it is killed, stopped, cut off alone or with a replica, and comes back.

    make failovers ARGS='--times 50'

prints the table of docs/high-availability.md, for Penstock and for Redis, watched by the same Sentinels.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import redis
from redis.sentinel import Sentinel

from tests.sentinels.load import BOTH, GROUP, JOBS, Reader, Tally, Writer
from tests.sentinels.watched_trio import PASSWORD, SERVERS, Trio
from tests.support.deployments import MASTER, until
from tests.support.no_retry import NO_RETRY
from tests.support.reference_server import LOCALHOST

LAG_S = 2
MORE = f"""\
min-replicas-to-write 1
min-replicas-max-lag {LAG_S}
save ""
"""
TIMEOUT_S = 1.0
WRITES = 100  # of each writer, before the fault and after it
OWN_S = LAG_S + 2.0  # a cut-off master takes writes of its own: until it refuses them, and a little longer
KILLED, STOPPED, ALONE, WITH_REPLICA = "killed", "stopped", "cut off alone", "cut off with a replica"
FAULTS = (KILLED, STOPPED, ALONE, WITH_REPLICA)
OPTIONS: dict[str, object] = {
    "password": PASSWORD, "socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S, "decode_responses": True,
    "retry": NO_RETRY,
}  # fmt: skip
HEAD = """\
| master | server | failovers | lost, of writes without WAIT | of writes on one replica | of writes on both | cut off with its replica | delivered twice | went back | seconds without a master |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|
"""  # noqa: E501  # one line of a table


class Load:
    """Clients of the master that the Sentinels name, and for a while of one that is cut off."""

    def __init__(self, trio: Trio, number: int) -> None:
        self._places = [(LOCALHOST, port) for port in trio.sentinels.ports]
        self._number = number
        self._trio = trio
        master = trio.clients[trio.master]
        master.delete(JOBS)
        master.xgroup_create(JOBS, GROUP, "0", mkstream=True)
        until(lambda: master.wait(BOTH, 1000) == BOTH, "the replicas do not follow")
        keys = [f"plain:{number}", f"one:{number}", JOBS]
        self.writers = [Writer(self._client(), key, replicas) for replicas, key in enumerate(keys)]
        self.readers = [Reader(self._client(), name) for name in ("alice", "bob")]
        self.own_writers: list[Writer] = []
        self._own_readers: list[Reader] = []
        for actor in (*self.writers, *self.readers):
            actor.start()

    def _client(self) -> redis.Redis:
        sentinel = Sentinel(self._places, sentinel_kwargs={"socket_timeout": TIMEOUT_S}, **OPTIONS)
        found: redis.Redis = sentinel.master_for(MASTER)
        return found

    def own(self, server: int) -> None:
        """Begin with clients on the side of a server that is about to be cut off."""
        clients = [redis.Redis(LOCALHOST, self._trio.ports[server], **OPTIONS) for _ in range(3)]  # type: ignore[arg-type]  # a dict of options
        self.own_writers = [Writer(clients[0], f"own:{self._number}", 0), Writer(clients[1], f"own1:{self._number}", 1)]
        self._own_readers = [Reader(clients[2], "carol")]
        for actor in (*self.own_writers, *self._own_readers):
            actor.start()

    def written(self) -> list[int]:
        """How many writes of each writer were confirmed."""
        return [len(writer.confirmed) for writer in self.writers]

    def stop_own(self) -> None:
        for actor in (*self.own_writers, *self._own_readers):
            actor.stop()

    def judge(self, tally: Tally, is_by_design: bool) -> None:
        """Stop the clients, and add to the tally what the present master has."""
        for actor in (*self.writers, *self.readers):
            actor.stop()
        client = self._trio.clients[self._trio.master]
        tally.changes += 1
        tally.longest_s.append(self.writers[0].longest_s)
        for writer in self.writers:
            tally.count_writes(writer, client)
        for writer in self.own_writers:
            tally.count_writes(writer, client, is_by_design)
        tally.count_reads([*self.readers, *self._own_readers], client)


@contextmanager
def absent(trio: Trio, load: Load, fault: str, replica: int) -> Iterator[None]:
    """The master is lost to the Sentinels in a way; after `with` it is back."""
    master = trio.master
    if fault == KILLED:
        trio.kill(master)
        yield
        trio.start(master)
    elif fault == STOPPED:
        trio.freeze(master)
        yield
        trio.thaw(master)
    else:
        load.own(master)
        trio.network.part(master, *([replica] if fault == WITH_REPLICA else []))
        parted_s = time.monotonic()
        yield
        until(lambda: time.monotonic() > parted_s + OWN_S, "time goes on")
        load.stop_own()
        trio.network.heal()


def change_master(trio: Trio, tally: Tally, fault: str, number: int, chance: random.Random) -> None:
    """One change of the master under load."""
    old = trio.master
    load = Load(trio, number)
    until(lambda: min(load.written()) > WRITES, "nothing is written")
    replica = chance.choice([server for server in range(SERVERS) if server != old])
    with absent(trio, load, fault, replica):
        until(lambda: trio.master != old and trio.role(trio.master) == "master", "no replica was promoted")
        if fault != WITH_REPLICA:  # where the new master is alone it refuses writes
            before = load.written()[0]
            until(lambda: load.written()[0] > before + WRITES, "the new master takes no writes")
    until(lambda: trio.role(old) == "slave" and trio.is_settled(), "the old master does not follow")
    before = min(load.written())
    until(lambda: min(load.written()) > before + WRITES, "the new master takes no writes")
    load.judge(tally, is_by_design=fault == WITH_REPLICA)


def tallies(kind: str, faults: tuple[str, ...], times: int, seed: int) -> dict[str, Tally]:
    """Changes of the master of a `kind` of server, so many, of each fault in turn."""
    chance = random.Random(seed)
    found = {fault: Tally() for fault in faults}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-sentinels-")))
        more = MORE + "replica-priority 100\n"  # so that Sentinel prefers the one with most of the data
        trio = Trio(stack, folder, kind, more=more, parts=True)
        for number in range(times):
            fault = faults[number % len(faults)]
            change_master(trio, found[fault], fault, number, chance)
            sys.stderr.write(f"{kind} {number + 1}: {fault}: {found[fault]}\n")
    return found


def row(kind: str, fault: str, tally: Tally) -> str:
    """One of the table."""
    of = [f"{tally.lost[replicas]} of {tally.confirmed[replicas]}" for replicas in (0, 1, BOTH)]
    cut = str(tally.lost_by_design) if fault == WITH_REPLICA else ""
    twice = f"{tally.delivered_twice} of {tally.delivered}"
    away = f"{statistics.median(tally.longest_s):.1f}, at most {max(tally.longest_s):.1f}" if tally.changes else ""
    words = [fault, kind, str(tally.changes), *of, cut, twice, str(len(tally.went_back)), away]
    return "| " + " | ".join(words) + " |\n"


def main() -> None:
    parser = argparse.ArgumentParser("python -m tests.sentinels.chaos", description=__doc__)
    parser.add_argument("--times", type=int, default=len(FAULTS), help="how often the master changes")
    parser.add_argument("--kinds", nargs="+", default=["penstock", "redis"], choices=["penstock", "redis", "valkey"])
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    seen = {kind: tallies(kind, FAULTS, asked.times, asked.seed) for kind in asked.kinds}
    sys.stdout.write(HEAD + "".join(row(kind, fault, seen[kind][fault]) for fault in FAULTS for kind in asked.kinds))


if __name__ == "__main__":
    main()
