"""What may take part in a world: actors, faults, directives and judges that belong together.

A world is a cast and a number. A cast draws in an order that does not change, so that a number stays the same world.
"""

import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, TypeAlias

from tests.world import (
    blocking,
    groups,
    memory,
    quotas,
    readers,
    registers,
    reloading,
    rewinding,
    rights,
    subscribers,
    syncs,
    trails,
)
from tests.world import faults as failing
from tests.world.actors import Actor, Administrator, Counter, Popper, Producer, Pusher, Wanderer, Worker
from tests.world.client import Client

if TYPE_CHECKING:
    from tests.world.world import World

Kinds: TypeAlias = tuple[type[Actor], ...]
Judge: TypeAlias = Callable[["World", Client], Awaitable[list[str]]]


def no_directives(chance: random.Random) -> dict[str, str]:
    return {}


def nothing_around(world: "World") -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Cast:
    """always: kinds of actors that each world has. others: at least `least` of these, drawn for each world.

    directives: the machine's, beside the usual ones. judges ask at the end, when nothing fails any more. A world runs
    `within` a context.
    """

    name: str
    others: Kinds
    least: int
    always: Kinds = ()
    faults: tuple[failing.Fault, ...] = failing.ALL
    directives: Callable[[random.Random], dict[str, str]] = no_directives
    judges: tuple[Judge, ...] = ()
    within: Callable[["World"], AbstractContextManager[None]] = nothing_around

    def kinds(self, chance: random.Random) -> list[type[Actor]]:
        return [*self.always, *chance.sample(self.others, chance.randrange(self.least, len(self.others) + 1))]


@dataclass(frozen=True, slots=True)
class Cut:
    """A smaller world of the same number: actors and faults by their places, for a shorter time, with other luck."""

    actors: tuple[int, ...]
    faults: tuple[int, ...]
    lasts_s: float
    luck: int = 0  # 0: the number's own

    def apply(self, world: "World") -> None:
        world.actors = [actor for place, actor in enumerate(world.actors) if place in self.actors]
        world.faults = [fault for place, fault in enumerate(world.faults) if place in self.faults]
        world.lasts_s = self.lasts_s
        if self.luck:
            world.chance.seed(f"{world.seed} {self.luck}")

    @property
    def size(self) -> tuple[int, float]:
        return len(self.actors) + len(self.faults), self.lasts_s

    def words(self) -> str:
        """As `read` takes them."""
        return "/".join((_joined(self.actors), _joined(self.faults), f"{self.lasts_s:g}", str(self.luck)))

    @classmethod
    def read(cls, words: str) -> "Cut":
        actors, failing, lasts_s, luck = words.split("/")
        return cls(_numbers(actors), _numbers(failing), float(lasts_s), int(luck))


def _joined(places: tuple[int, ...]) -> str:
    return ",".join(map(str, places))


def _numbers(words: str) -> tuple[int, ...]:
    return tuple(map(int, words.split(","))) if words else ()


QUEUES: Final = Cast(
    "queues", (Producer, Producer, Worker, Worker, Pusher, Popper, Popper, Counter, Administrator, Wanderer), 3
)
GROUPS: Final = Cast(
    "groups",
    (groups.Feeder, groups.LeaseWorker, groups.LeaseWorker, groups.LeaseWorker, Administrator, Wanderer),
    1, (groups.PolicyKeeper, groups.Feeder, groups.LeaseWorker),
    faults=failing.WITH_HALF_CLOSES, judges=(groups.judge,),
)  # fmt: skip
QUOTAS: Final = Cast(
    "quotas", (groups.Feeder, quotas.QuotaWorker, quotas.QuotaWorker, quotas.Watcher), 1,
    (quotas.QuotaKeeper, groups.Feeder, quotas.QuotaWorker, quotas.QuotaWorker, quotas.Watcher),
    faults=tuple(fault for fault in failing.WITH_HALF_CLOSES if fault is not failing.clock_jumps),
    judges=(quotas.judge,),
)  # fmt: skip
WAITING: Final = Cast(
    "waiting",
    (blocking.Giver, blocking.Waiter, blocking.Waiter, blocking.Waiter, blocking.Follower, Administrator),
    1, (blocking.Giver, blocking.Waiter, blocking.Waiter, blocking.Follower),
    faults=failing.WITH_HALF_CLOSES, judges=(blocking.judge,),
)  # fmt: skip
RIGHTS: Final = Cast(
    "rights", (rights.Intruder, rights.Intruder, Administrator, Producer), 0, (rights.Owner, rights.Intruder),
    faults=failing.WITH_HALF_CLOSES, judges=(rights.judge,),
)  # fmt: skip
SWITCHES: Final = Cast(
    "switches", (registers.Setter, registers.Setter, registers.Flusher, Administrator, Producer, Pusher, Popper), 2,
    (registers.Setter, registers.Switcher), judges=(registers.judge,),
)  # fmt: skip
SAVES: Final = Cast(
    "saves", (registers.Setter, registers.Setter, registers.Flusher, Producer, Worker, Pusher, Popper, Wanderer), 2,
    (registers.Setter, registers.Saver), directives=registers.save_points, judges=(registers.judge,),
)  # fmt: skip
SYNCS: Final = Cast(
    "syncs", (syncs.Packer, Counter, Pusher, Administrator), 1, (syncs.Packer,),
    (syncs.failing_syncs, syncs.failing_syncs, failing.power_losses, failing.kills, failing.dying_children),
)  # fmt: skip
DUMPS: Final = Cast(
    "dumps", (trails.Trail, trails.Trail, trails.Emptier, Administrator), 1, (trails.Trail, trails.EagerSaver),
    (failing.kills, failing.kills, failing.power_losses, failing.deaths_at_calls, failing.disk_errors,
     failing.dying_children, failing.clock_jumps),
    registers.save_points, (trails.judge,),
)  # fmt: skip
READERS: Final = Cast(
    "readers", (readers.TaskGiver, readers.GroupReader, readers.GroupReader, readers.GroupReader, Administrator), 1,
    (readers.TaskGiver, readers.GroupReader, readers.GroupReader),
    faults=failing.WITH_HALF_CLOSES, judges=(readers.judge,),
)  # fmt: skip
REWINDS: Final = Cast(
    "rewinds", (rewinding.Rewinder, Administrator, Producer), 0, (rewinding.Rewinder,), judges=(rewinding.judge,)
)
LIMITS: Final = Cast(
    "limits", (registers.Setter, Producer, Worker, Pusher, Popper, Counter, Administrator), 0, (memory.Limiter,),
    judges=(memory.judge, registers.judge),
)  # fmt: skip
RELOADS: Final = Cast(
    "reloads",
    (reloading.Glutton, registers.Setter, Worker, Popper, Pusher, Counter, Administrator, Wanderer, reloading.Reloader),
    2, (reloading.Reloader, reloading.Glutton, Producer),
    faults=failing.WITH_HALF_CLOSES, directives=reloading.closing, judges=(registers.judge,),
)  # fmt: skip
REVERTS: Final = Cast(
    "reverts", (Wanderer, Wanderer, Administrator, reloading.Reverter), 1, (Wanderer, reloading.Reverter),
    directives=reloading.closing,
)  # fmt: skip
SUBSCRIBERS: Final = Cast(
    "subscribers", (subscribers.Publisher, subscribers.Subscriber, subscribers.Subscriber, Administrator), 1,
    (subscribers.Publisher, subscribers.Subscriber),
    faults=failing.WITH_HALF_CLOSES, directives=subscribers.notifying, judges=(subscribers.judge,),
)  # fmt: skip
ALL: Final = {
    cast.name: cast
    for cast in (
        QUEUES,
        GROUPS,
        QUOTAS,
        WAITING,
        RIGHTS,
        SWITCHES,
        SAVES,
        SYNCS,
        DUMPS,
        READERS,
        REWINDS,
        LIMITS,
        RELOADS,
        REVERTS,
        SUBSCRIBERS,
    )
}
if find_spec("pyarrow") is not None and find_spec("pyspark") is not None:
    from tests.world import batches, importers  # in fibers, which know the connector

    BATCHES: Final = Cast(
        "batches", (batches.RowFeeder, batches.BatchQuery, Administrator), 0, (batches.RowFeeder, batches.BatchQuery),
        judges=(batches.judge,), within=batches.within,
    )  # fmt: skip
    IMPORTERS: Final = Cast(
        "importers", (Producer, Pusher, Counter, Wanderer, Administrator), 1,
        (Producer, Pusher, Counter, importers.Import), judges=(importers.judge,), within=importers.within,
    )  # fmt: skip
    RERUNS: Final = Cast(
        "reruns", (batches.RowFeeder, batches.FragileQuery, Administrator), 0,
        (batches.RowFeeder, batches.FragileQuery), judges=(batches.judge,), within=batches.within,
    )  # fmt: skip
    ALL.update({cast.name: cast for cast in (BATCHES, IMPORTERS, RERUNS)})
