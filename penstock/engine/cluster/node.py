"""The node of a cluster that this server is (`cluster-enabled yes`): its name, its slots, and what it announces."""

import random
from collections.abc import Callable
from typing import Final, Protocol

from penstock.config.settings import Settings
from penstock.engine.cluster import cluster_map
from penstock.engine.cluster.cluster_map import ClusterMap, Member
from penstock.engine.cluster.hash_slots import SLOTS, SlotTags, ranges, slot_of
from penstock.engine.telemetry.identity import new_id
from penstock.engine.waiting.blocked_request import BlockedRequest
from penstock.errors import ReplyError

BUS_PORT_OFFSET: Final = 10_000
NOT_OWNED: Final = 0
NOT_SAVED: Final = b"ERR error saving the cluster node config: "  # Redis 8.6.3, of CLUSTER SAVECONFIG
GIVEN: Final = 1  # at the first start: CLUSTER ADDSLOTS may still name it
TO_ALL: Final = b"MESSAGE"
TO_SHARD: Final = b"SHARD-MESSAGE"
ASSIGNED: Final = 2  # by CLUSTER ADDSLOTS, or the launcher's map


class MapOwner(Protocol):
    """The launcher of `penstock cluster`, by the server's link to it (server/launcher_link.py)."""

    def ask(self, words: list[bytes]) -> int:
        """Ask for a change of the map; its number, by which the answer comes once every node that lives knows of it."""

    def publish(self, kind: bytes, channel: bytes, message: bytes) -> None:
        """Have a message reach the subscribers at other nodes; kind: TO_ALL or TO_SHARD."""


class Node:
    """The node's state: of a cluster of one, which the server keeps in nodes.conf, or of the launcher's map.

    A cluster of one node owns every slot at first, as a managed cluster does; a new Redis owns none.
    map_owner, map: of a node that `penstock cluster` started, else None.
    owned: the node's slots; with a map, its own or its master's slots, and those that it imports. waiting: the requests
    that wait for a reply of the launcher, by number. unanswered: changes that it was asked for and has not answered,
    also by transactions and scripts, which do not wait.
    """

    __slots__ = (
        "_chance", "_is_whole", "_kept", "_own", "_save", "_settings", "current_epoch", "epoch", "id", "map",
        "map_owner", "owned", "shard_id", "tags", "unanswered", "waiting",
    )  # fmt: skip

    def __init__(self, settings: Settings, chance: random.Random) -> None:
        self._settings = settings
        self._chance = chance
        self.id = new_id(chance)
        self.shard_id = new_id(chance)
        self.epoch = 0
        self.current_epoch = 0
        self.owned = bytearray([GIVEN]) * SLOTS
        self._save: Callable[[], None] | None = None
        self._kept = self._state()
        self.map_owner: MapOwner | None = None
        self.map: ClusterMap | None = None
        self._own: Member | None = None  # of the map
        self.waiting: dict[int, BlockedRequest] = {}
        self.unanswered = 0
        self.tags = SlotTags()
        self._is_whole = True  # of the map: each slot has an owner that lives

    def owns(self, slot: int) -> bool:
        return self.owned[slot] != NOT_OWNED

    def keeps(self, slot: int) -> bool:
        """Whether the slot is this master's and is not on its way to or from another node."""
        own = self._own
        if self.map is None or own is None:
            return self.owned[slot] != NOT_OWNED
        return self.map.owners[slot] is own and slot not in own.migrating and slot not in own.importing

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
        """Whether keys are served: every slot is owned, or some are, and cluster-require-full-coverage is no.

        Redis asks for most of the masters besides; here the launcher knows which nodes live.
        """
        needs_all = self._settings.yes("cluster-require-full-coverage")
        if self.map is not None:
            return self._is_whole or not needs_all
        return NOT_OWNED not in self.owned if needs_all else self.count > 0

    def renew(self, is_hard: bool) -> None:
        """CLUSTER RESET: no slots; with HARD another id and no epoch."""
        self.owned = bytearray(SLOTS)
        if is_hard:
            self.id = new_id(self._chance)
            self.shard_id = new_id(self._chance)
            self.epoch = self.current_epoch = 0

    def keep_by(self, save: Callable[[], None]) -> None:
        """Write the state by this function, now and after each change. OSError if it cannot be written now."""
        save()
        self._save, self._kept = save, self._state()

    def keep(self) -> None:
        """Write the state, which has changed. ReplyError if that fails: the state is what it was before."""
        if self._save is None:
            return
        try:
            self._save()
        except OSError as problem:
            self.id, self.shard_id, self.epoch, self.current_epoch, owned = self._kept
            self.owned = bytearray(owned)
            raise ReplyError(NOT_SAVED + (problem.strerror or "").encode()) from None
        self._kept = self._state()

    def _state(self) -> tuple[str, str, int, int, bytes]:
        """The values that change and are kept."""
        return self.id, self.shard_id, self.epoch, self.current_epoch, bytes(self.owned)

    def adopt(self, found: ClusterMap) -> None:
        """Be the node that the launcher's map says."""
        self._own = own = found.own()
        self.map = found
        self.id, self.shard_id, self.epoch = own.id, own.shard_id, own.epoch
        self.current_epoch = found.current_epoch
        self.owned = bytearray(found.master_of(own).slots)
        for slot in own.importing:
            self.owned[slot] = ASSIGNED
        self._is_whole = found.has_all_slots()

    # -- announcements ----------------------------------------------------------------------------------------------

    def member(self) -> Member:
        """This node as others see it.

        Alone, its ip is empty where none is set: a node that has met no other does not know it; clients take the
        address that they asked. Nothing listens at its bus port.
        """
        if self._own is not None:
            return self._own
        settings = self._settings
        port = settings.number("port")
        bus_port = settings.number("cluster-announce-bus-port") or settings.number("cluster-port")
        own = Member(
            self.id,
            settings.text("cluster-announce-ip"),
            settings.number("cluster-announce-port") or port,
            bus_port or port + BUS_PORT_OFFSET,
            self.owned,
        )
        own.hostname = settings.text("cluster-announce-hostname")
        own.nodename = settings.text("cluster-announce-human-nodename")
        own.tls_port = settings.number("cluster-announce-tls-port") or settings.number("tls-port")
        own.shard_id = self.shard_id
        own.epoch = self.epoch
        return own

    def view(self) -> ClusterMap:
        """The cluster as this node knows it."""
        return self.map if self.map is not None else ClusterMap([self.member()], self.current_epoch, self.id)

    # -- nodes.conf -------------------------------------------------------------------------------------------------

    def written(self) -> str:
        """The file's text, as Redis writes it."""
        return self.view().written(self.id)

    def read(self, text: str) -> None:
        """Take over what `written` wrote, or a Redis that is alone; ValueError where it is something else."""
        found = cluster_map.read(text)
        if len(found.members) != 1 or not found.myself:
            raise ValueError("it does not describe one node")
        own = found.members[0]
        self.id = own.id
        self.shard_id = own.shard_id or self.shard_id
        self.epoch, self.current_epoch = own.epoch, found.current_epoch
        self.owned = bytearray([ASSIGNED if slot else NOT_OWNED for slot in bytes(own.slots)])


def keys_in(slot: int, keys: list[bytes]) -> list[bytes]:
    """Those of the keys that are in a slot.  O(keys)."""
    return [key for key in keys if slot_of(key) == slot]
