"""What must be true at the end of a world, when its faults have stopped: each judge gives its objections."""

from collections import Counter as Counts
from typing import TYPE_CHECKING, Any, Final, Protocol

from penstock.engine.engine import Engine
from tests.support.keyspace_picture import View, keyspace
from tests.world.actors import OK, REFUSED, Write
from tests.world.faults import clock_jumps

if TYPE_CHECKING:
    from tests.world.process import Machine
    from tests.world.world import World

EVERYSEC_S: Final = 3.0  # a sync a second, of which turns wait for at most two
SHOWN: Final = 5  # objections of a kind


class Judged(Protocol):
    """How a server writes its log, and what became of its machine."""

    @property
    def policy(self) -> str: ...

    @property
    def machine(self) -> "Machine": ...


class Keeping:
    """Which confirmed changes may be lost: none with `always`. Else what is not synced when the machine loses power.

    What could not be written is confirmed, too, and kept in memory until it can be (docs/log.md): it is lost with the
    process. A sync that failed has kept nothing of what it should have, and the next base does. So what was confirmed
    shortly before a server began to refuse writers is at risk as long as it refuses them.
    """

    def __init__(self, world: Judged) -> None:
        self._policy = world.policy
        self._ends_s = [at_s for at_s, _ in world.machine.ends]
        self._losses_s = [at_s for at_s, loses_power in world.machine.ends if loses_power]
        self._troubles = world.machine.troubles

    def may_lose(self, write: Write) -> bool:
        if self._policy == "always":
            return False
        longest_s = EVERYSEC_S if self._policy == "everysec" else float("inf")
        if any(write.sent_s <= at_s <= write.done_s + longest_s for at_s in self._losses_s):
            return True
        for trouble in self._troubles:
            if trouble.since_s <= write.done_s + longest_s and write.sent_s <= trouble.until_s:
                ends_s = self._ends_s if trouble.since_s <= write.done_s else self._losses_s
                if any(max(write.sent_s, trouble.since_s) <= at_s <= trouble.until_s for at_s in ends_s):
                    return True
        return False

    @property
    def may_forget(self) -> bool:
        """Whether anything may be lost at all: then what is delivered may be delivered again."""
        return self._policy != "always" and bool(self._losses_s or self.may_have_shown)

    @property
    def may_have_shown(self) -> bool:
        """Whether a reader may have got, under each policy, what was not confirmed and is lost.

        What could not be written is shown to readers (docs/log.md), and ends with the process.
        """
        return any(one.since_s <= at_s <= one.until_s for one in self._troubles for at_s in self._ends_s)


def entries(world: "World", found: list[tuple[bytes, bytes]]) -> list[str]:
    """Confirmed entries are there, once and under their ids; refused ones are not; unknown ones once or not at all.

    found: id and name of each entry.
    """
    keeping, there = world.keeping(), Counts(name for _, name in found)
    ids = {name: entry_id for entry_id, name in found}
    objections = []
    for write in world.journal.added:
        count = there.pop(write.name, 0)
        shown = f"entry {write.name.decode()} ({write.outcome} at {write.done_s:.6f}, sent at {write.sent_s:.6f})"
        if count > 1:
            objections.append(f"{shown} is there {count} times")
        elif write.outcome == REFUSED and count:
            objections.append(f"{shown} was refused with {write.reply!s}, and is there")
        elif write.outcome == OK and not count and not keeping.may_lose(write):
            objections.append(f"{shown} is lost")
        elif write.outcome == OK and count and ids[write.name] != write.reply:
            objections.append(f"{shown} has the id {ids[write.name]!r}, not {write.reply!r}")
    return objections + [f"entry {name!r} was never sent" for name in there]


def deliveries(world: "World", pending: list[tuple[bytes, bytes]]) -> list[str]:
    """A new entry is delivered once; what was acknowledged is not pending; what was not is, unless it was claimed.

    pending: id and consumer of each pending entry.
    """
    keeping, held = world.keeping(), dict(pending)
    journal, objections = world.journal, []
    acked = {write.name: write for write in journal.acked if write.outcome == OK}
    tried = {write.name for write in journal.acked}
    firsts = Counts(entry_id for entry_id, _, _, is_claim in journal.delivered if not is_claim)
    if not keeping.may_forget:
        objections += [
            f"{entry_id!r} was delivered as new {count} times" for entry_id, count in firsts.items() if count > 1
        ]
    for entry_id, write in acked.items():
        if entry_id in held and not keeping.may_lose(write):
            objections.append(f"{entry_id!r} was acknowledged at {write.done_s:.6f}, and is pending")
    if not keeping.may_forget:
        for entry_id, consumer, at_s, _ in journal.delivered:
            if entry_id not in held and entry_id not in tried:
                objections.append(f"{entry_id!r}, delivered to {consumer!r} at {at_s:.6f}, is not pending")
    return objections


def elements(world: "World", left: list[bytes]) -> list[str]:
    """A pushed element is in the list, or one client got it. What is missing was given to a client that was there."""
    keeping, journal = world.keeping(), world.journal
    places = Counts(left)
    places.update(write.name for write in journal.popped if write.name)
    objections = []
    gone = [write for write in journal.popped if write.outcome not in (OK, REFUSED)]
    missing = []
    for write in journal.pushed:
        count = places.pop(write.name, 0)
        shown = f"element {write.name.decode()} ({write.outcome} at {write.done_s:.6f})"
        if count > 1 and not keeping.may_forget:
            objections.append(f"{shown} is there {count} times")
        elif count and write.outcome == REFUSED:
            objections.append(f"{shown} was refused, and is there")
        elif not count and write.outcome == OK and not keeping.may_lose(write):
            missing.append(write)
    for write in missing:
        taker = next((one for one in gone if _may_have_taken(one, write)), None)
        if taker is None:
            objections.append(f"element {write.name.decode()} (ok at {write.done_s:.6f}) is lost: no client got it")
        else:
            gone.remove(taker)
    return objections + [f"element {name!r} was never pushed" for name in places]


def _may_have_taken(pop: Write, push: Write) -> bool:
    """Whether a reader whose reply never came was there when the element was pushed, as far as the server knew."""
    return pop.connected is not None and pop.connected.lost_at_s >= push.sent_s


def counts(world: "World", value: int) -> list[str]:
    """A number is what was counted, give or take what is not known."""
    keeping, writes = world.keeping(), world.journal.counted
    sure = sum(write.outcome == OK and not keeping.may_lose(write) for write in writes)
    most = sum(write.outcome != REFUSED for write in writes)
    return [] if sure <= value <= most else [f"the count is {value}: at least {sure}, at most {most} were expected"]


def picture(world: "World", engine: Engine, loaded: Engine) -> list[str]:
    """A server that loads the files has what is in memory."""
    now_ms = engine.clock.now_us() // 1000
    is_rdb = engine.settings.yes("aof-use-rdb-preamble") or not engine.settings.yes("appendonly")
    has_ties = not is_rdb  # an RDB file does not keep them
    # Which ids have expired is not in the log; a clock that was set forth and back forgets some that a start knows.
    is_steady = clock_jumps not in world.faults
    view = View(seen_times=False, ties=has_ties, now_ms=now_ms, idempotent_ids=is_steady)
    was, found = keyspace(engine, view), keyspace(loaded, view)
    objections = []
    for key in sorted(was.keys() | found.keys()):
        if was.get(key) != found.get(key):
            objections.append(f"key {key} differs in what is loaded: {difference(was.get(key), found.get(key))}")
    return objections


def without_policies(picture: dict[str, Any]) -> dict[str, Any]:
    """A picture for servers that need not have the same policies."""
    for shown in picture.values():
        if isinstance(shown["value"], dict):
            shown["value"].pop("policies", None)
    return picture


def difference(was: Any, found: Any, where: str = "") -> str:
    """Where two pictures first differ."""
    if isinstance(was, dict) and isinstance(found, dict):
        for name in sorted(was.keys() | found.keys()):
            if was.get(name) != found.get(name):
                return difference(was.get(name), found.get(name), f"{where}/{name}")
    return f"{where}: {was!r} in memory, {found!r} in the other"[:600]
