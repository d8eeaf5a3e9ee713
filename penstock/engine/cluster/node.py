"""The one node of a cluster of one (`cluster-enabled yes`): its name, its slots, and what it announces."""

import random
from collections.abc import Callable
from typing import Final

from penstock.config.settings import Settings
from penstock.engine.cluster.hash_slots import SLOTS, ranges, slot_of
from penstock.engine.telemetry.identity import new_id

BUS_PORT_OFFSET: Final = 10_000
NOT_OWNED: Final = 0
GIVEN: Final = 1  # at the first start: CLUSTER ADDSLOTS may still name it
ASSIGNED: Final = 2  # by CLUSTER ADDSLOTS


class Node:
    """The node's state, which the server keeps in nodes.conf.

    A new node owns every slot, as a managed cluster does; a Redis owns none until it is told.
    save: writes the state; set by the server.
    """

    __slots__ = ("_chance", "_settings", "current_epoch", "epoch", "id", "owned", "save", "shard_id")

    def __init__(self, settings: Settings, chance: random.Random) -> None:
        self._settings = settings
        self._chance = chance
        self.id = new_id(chance)
        self.shard_id = new_id(chance)
        self.epoch = 0
        self.current_epoch = 0
        self.owned = bytearray([GIVEN]) * SLOTS
        self.save: Callable[[], None] | None = None

    def owns(self, slot: int) -> bool:
        return self.owned[slot] != NOT_OWNED

    @property
    def count(self) -> int:
        """How many slots are owned."""
        return SLOTS - self.owned.count(NOT_OWNED)

    def shown(self, keys: list[bytes]) -> list[bytes]:
        """The keys in slots that are owned: KEYS, SCAN and RANDOMKEY show no others (Redis 8.6.3).  O(keys)."""
        if NOT_OWNED not in self.owned:
            return keys
        return [key for key in keys if self.owned[slot_of(key)] != NOT_OWNED]

    def ranges(self) -> list[tuple[int, int]]:
        """The first and last slot of each run of owned slots. O(slots)."""
        return ranges(self.owned)

    def is_up(self) -> bool:
        """Whether keys are served: every slot is owned, or some are, and cluster-require-full-coverage is no."""
        needs_all = self._settings.yes("cluster-require-full-coverage")
        return NOT_OWNED not in self.owned if needs_all else self.count > 0

    def renew(self, is_hard: bool) -> None:
        """CLUSTER RESET: no slots; with HARD another id and no epoch."""
        self.owned = bytearray(SLOTS)
        if is_hard:
            self.id = new_id(self._chance)
            self.shard_id = new_id(self._chance)
            self.epoch = self.current_epoch = 0

    def keep(self) -> None:
        """Write the state, which has changed, to where it is kept."""
        if self.save is not None:
            self.save()

    # -- what it announces ------------------------------------------------------------------------------------------

    @property
    def ip(self) -> str:
        """Empty: a node that has met no other does not know it; clients take the address that they asked."""
        return self._settings.text("cluster-announce-ip")

    @property
    def hostname(self) -> str:
        return self._settings.text("cluster-announce-hostname")

    @property
    def port(self) -> int:
        return self._settings.number("cluster-announce-port") or self._settings.number("port")

    @property
    def tls_port(self) -> int:
        return self._settings.number("cluster-announce-tls-port") or self._settings.number("tls-port")

    @property
    def bus_port(self) -> int:
        """Nothing listens there."""
        settings = self._settings
        own = settings.number("cluster-port") or settings.number("port") + BUS_PORT_OFFSET
        return settings.number("cluster-announce-bus-port") or own

    def line(self) -> str:
        """As CLUSTER NODES shows the node, without an end of line."""
        hostname = f",{self.hostname}" if self.hostname else ""
        return f"{self.id} {self.ip}:{self.port}@{self.bus_port}{hostname} {self._state()}"

    def _state(self) -> str:
        slots = "".join([f" {first}" if first == last else f" {first}-{last}" for first, last in self.ranges()])
        return f"myself,master - 0 0 {self.epoch} connected{slots}"

    # -- nodes.conf -------------------------------------------------------------------------------------------------

    def written(self) -> str:
        """The file's text, as Redis writes it."""
        name = self._settings.text("cluster-announce-human-nodename")
        nodename = f",nodename={name}" if name else ""
        about = f"{self.hostname},tls-port={self.tls_port}{nodename},shard-id={self.shard_id}"
        return (
            f"{self.id} {self.ip}:{self.port}@{self.bus_port},{about} {self._state()}\n"
            f"vars currentEpoch {self.current_epoch} lastVoteEpoch 0\n"
        )

    def read(self, text: str) -> None:
        """Take over what `written` wrote, or a Redis that is alone; ValueError where it is something else."""
        lines = [line.split() for line in text.splitlines() if line.strip()]
        nodes = [words for words in lines if words[0] != "vars"]
        if len(nodes) != 1 or len(nodes[0]) < 8 or "myself" not in nodes[0][2].split(","):
            raise ValueError("it does not describe one node")
        words = nodes[0]
        owned = bytearray(SLOTS)
        for slots in words[8:]:
            if slots.startswith("["):
                continue  # on its way from or to another node
            first, _, last = slots.partition("-")
            for slot in range(int(first), int(last or first) + 1):
                owned[slot] = ASSIGNED
        self.id = words[0]
        for about in words[1].split(",")[2:]:
            if about.startswith("shard-id="):
                self.shard_id = about.removeprefix("shard-id=")
        self.epoch = self.current_epoch = int(words[6])
        for words in lines:
            if words[:2] == ["vars", "currentEpoch"]:
                self.current_epoch = int(words[2])
        self.owned = owned


def keys_in(slot: int, keys: list[bytes]) -> list[bytes]:
    """Those of the keys that are in a slot.  O(keys)."""
    return [key for key in keys if slot_of(key) == slot]
