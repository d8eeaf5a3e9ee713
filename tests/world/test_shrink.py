"""`--shrink` leaves of an objecting world what the objection needs."""

from typing import TYPE_CHECKING, Final

from tests.world.actors import Administrator, Counter, Pusher
from tests.world.casts import Cast
from tests.world.client import Client
from tests.world.replicas import ConfirmedWorker, ServersWorld
from tests.world.shrink import SHORTEST_S, smallest
from tests.world.world import World

if TYPE_CHECKING:
    from tests.world.casts import Cut

SEED: Final = 3


async def _objects_to_counters(world: World, client: Client) -> list[str]:
    return [f"{actor.name} is there" for actor in world.actors if isinstance(actor, Counter)]


CAST: Final = Cast("counters", (), 0, (Pusher, Counter, Administrator), judges=(_objects_to_counters,))


def test_a_world_shrinks_to_the_actor_that_a_judge_objects_to() -> None:
    found: Cut | None = smallest(lambda cut: World(SEED, CAST, cut=cut), "", lambda line: None)

    assert found is not None
    assert (found.actors, found.faults) == ((1,), ())
    assert found.lasts_s < 2 * SHORTEST_S
    assert World(SEED, CAST, cut=found).run() == ["counter 1 is there"]


class CountedServers(ServersWorld):
    """Servers with a judge that objects to each worker of the kind that asks for confirmations."""

    async def _judge(self) -> list[str]:
        return [f"{actor.name} is there" for actor in self.actors if isinstance(actor, ConfirmedWorker)]


def test_a_world_of_servers_shrinks_as_well() -> None:
    told: list[str] = []
    found: Cut | None = smallest(lambda cut: CountedServers(SEED, cut=cut), "--servers roles --seed 3", told.append)

    assert found is not None
    assert found.faults == ()
    assert found.lasts_s < 2 * SHORTEST_S
    [actor] = CountedServers(SEED, cut=found).actors
    assert isinstance(actor, ConfirmedWorker)
    assert told[-1] == f"--servers roles --seed 3 --cut {found.words()}"
