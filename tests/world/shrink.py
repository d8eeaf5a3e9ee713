"""Makes a world smaller while a judge objects in the same way: fewer actors, fewer faults, a shorter time."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from tests.world.casts import Cut
from tests.world.world import World

LUCKS: Final = 4  # a smaller world draws other numbers: so often it is tried with other luck
SHORTEST_S: Final = 0.2
VARYING: Final = re.compile(r"b?'[^']*'|[\d.:-]+")  # names, numbers and times in an objection


def kind_of(objection: str) -> str:
    """An objection without what is another thing in each world."""
    return VARYING.sub("#", objection.splitlines()[-1] if "Traceback" in objection else objection)[:60]


def smallest(made: Callable[[Cut | None], World], named: str, tell: Callable[[str], None]) -> Cut | None:
    """The smallest world of a number that still has one of its objections; None: there is none.

    made: the world, whole or cut. named: it, in words of the command line.
    """
    whole = made(None)
    cut = Cut(tuple(range(len(whole.actors))), tuple(range(len(whole.faults))), whole.lasts_s)
    kinds = {kind_of(one) for one in whole.run()}
    if not kinds:
        return None
    tell(f"{cut.words()}: {', '.join(sorted(kinds))}")
    while True:
        smaller = (one for one in _smaller(cut) if any(kind_of(objection) in kinds for objection in made(one).run()))
        found = next(smaller, None)
        if found is None:
            return cut
        cut = found
        tell(f"{named} --cut {cut.words()}")


def _smaller(cut: Cut) -> Iterator[Cut]:
    """Worlds that are smaller by one step, each with several kinds of luck."""
    for luck in (cut.luck, *range(1, LUCKS)):
        if cut.lasts_s / 2 >= SHORTEST_S:
            yield Cut(cut.actors, cut.faults, cut.lasts_s / 2, luck)
        for place in range(len(cut.actors) if len(cut.actors) > 1 else 0):  # a world has an actor at least
            yield Cut(cut.actors[:place] + cut.actors[place + 1 :], cut.faults, cut.lasts_s, luck)
        for place in range(len(cut.faults)):
            yield Cut(cut.actors, cut.faults[:place] + cut.faults[place + 1 :], cut.lasts_s, luck)
