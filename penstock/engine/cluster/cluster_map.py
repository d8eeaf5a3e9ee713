"""The map of a cluster as text and as objects: its nodes, the slots of each, and the slots that are on their way.

The text is that of Redis's nodes.conf (Redis 8.6.3): a line for each node, then one with the epoch. The launcher of
`penstock cluster` owns the map and changes it (`ClusterMap.set_slot` and what follows it); nodes only read it.
"""

from typing import Final

from penstock.engine.cluster.hash_slots import SLOTS, ranges

OWNED: Final = 1
MYSELF: Final = "myself"
REPLICA: Final = "slave"
FAILED: Final = "fail"
NO_MASTER: Final = "-"


class Member:
    """A node as the map has it.

    master_id: of the master that it is a replica of; "" for a master. slots: a byte for each slot, not 0 where it is
    this master's. migrating, importing: slots on their way to or from another node, and that node's ID.
    """

    __slots__ = (
        "bus_port", "epoch", "hostname", "id", "importing", "ip", "is_failed", "master_id", "migrating", "nodename",
        "port", "shard_id", "slots", "tls_port",
    )  # fmt: skip

    def __init__(self, id: str, ip: str, port: int, bus_port: int, slots: bytearray) -> None:
        self.id = id
        self.ip = ip
        self.port = port
        self.bus_port = bus_port
        self.hostname = ""
        self.nodename = ""
        self.tls_port = 0
        self.shard_id = ""
        self.master_id = ""
        self.is_failed = False
        self.epoch = 0
        self.slots = slots
        self.migrating: dict[int, str] = {}
        self.importing: dict[int, str] = {}

    @property
    def is_master(self) -> bool:
        return not self.master_id

    def endpoint(self, kind: str) -> str:
        """Where clients are sent, by the `cluster-preferred-endpoint-type`; "": to the host that they asked."""
        if kind == "hostname":
            return self.hostname or "?"
        return self.ip if kind == "ip" else ""

    def line(self, is_myself: bool, with_open_slots: bool) -> str:
        """As CLUSTER NODES shows it, without an end of line. Slots on their way are shown by their own node alone."""
        hostname = f",{self.hostname}" if self.hostname else ""
        return f"{self._place()}{hostname} {self._state(is_myself, with_open_slots)}"

    def written(self, is_myself: bool) -> str:
        """Its line in nodes.conf, and in the launcher's map."""
        nodename = f",nodename={self.nodename}" if self.nodename else ""
        about = f"{self.hostname},tls-port={self.tls_port}{nodename},shard-id={self.shard_id}"
        return f"{self._place()},{about} {self._state(is_myself, True)}"

    def _place(self) -> str:
        return f"{self.id} {self.ip}:{self.port}@{self.bus_port}"

    def _state(self, is_myself: bool, with_open_slots: bool) -> str:
        flags = [MYSELF] if is_myself else []
        flags.append("master" if self.is_master else REPLICA)
        if self.is_failed:
            flags.append(FAILED)
        link = "disconnected" if self.is_failed else "connected"
        words = [link, *self.slot_words()]
        if with_open_slots:
            words += [f"[{slot}->-{id}]" for slot, id in sorted(self.migrating.items())]
            words += [f"[{slot}-<-{id}]" for slot, id in sorted(self.importing.items())]
        return f"{','.join(flags)} {self.master_id or NO_MASTER} 0 0 {self.epoch} {' '.join(words)}"

    def slot_words(self) -> list[str]:
        """Its slots, as `7` and `9-12`."""
        return [f"{first}" if first == last else f"{first}-{last}" for first, last in ranges(self.slots)]


class ClusterMap:
    """myself: the ID of the node that the text was written for; "" in the launcher's own."""

    __slots__ = ("current_epoch", "members", "myself", "owners")

    def __init__(self, members: list[Member], current_epoch: int, myself: str = "") -> None:
        self.members = members
        self.current_epoch = current_epoch
        self.myself = myself
        self.owners: list[Member | None] = [None] * SLOTS
        for one in members:
            for first, last in ranges(one.slots):
                self.owners[first : last + 1] = [one] * (last + 1 - first)

    def member(self, id: str) -> Member | None:
        for one in self.members:
            if one.id == id:
                return one
        return None

    def own(self) -> Member:
        """The node that the text was written for."""
        one = self.member(self.myself)
        assert one is not None, "a node's map has the node"
        return one

    def replicas_of(self, id: str) -> list[Member]:
        return [one for one in self.members if one.master_id == id]

    def master_of(self, one: Member) -> Member:
        """The node itself if it is a master."""
        found = self.member(one.master_id) if one.master_id else None
        return one if found is None else found

    def has_all_slots(self) -> bool:
        """Whether each slot has an owner that has not failed.  O(slots)."""
        for owner in self.owners:  # noqa: SIM110  # a generator costs more where it is compiled
            if owner is None or owner.is_failed:
                return False
        return True

    def written(self, myself: str = "") -> str:
        """The text; for one of the nodes, with that one marked."""
        lines = [one.written(one.id == myself) for one in self.members]
        return "\n".join([*lines, f"vars currentEpoch {self.current_epoch} lastVoteEpoch 0", ""])

    # -- changes, which the launcher makes ----------------------------------------------------------------------------

    def set_slot(self, by: Member, slot: int, action: str, id: str) -> bool:
        """Apply CLUSTER SETSLOT of a node; returns whether the map changed.

        A new owner gets an epoch that no other has, as in Redis.
        """
        if action == "STABLE":
            was_open = slot in by.migrating or slot in by.importing
            by.migrating.pop(slot, None)
            by.importing.pop(slot, None)
            return was_open
        other = self.member(id)
        if other is None:
            return False
        if action == "NODE":
            return self._give(slot, other)
        if (action == "MIGRATING") != (self.owners[slot] is by):
            return False  # the slot has moved since the node got the request
        opened = by.migrating if action == "MIGRATING" else by.importing
        if opened.get(slot) == id:
            return False
        opened[slot] = id
        return True

    def _give(self, slot: int, owner: Member) -> bool:
        before = self.owners[slot]
        was_open = slot in owner.importing or (before is not None and before is not owner and slot in before.migrating)
        owner.importing.pop(slot, None)
        if before is owner:
            return was_open
        if before is not None:
            before.slots[slot] = 0
            before.migrating.pop(slot, None)
        owner.slots[slot] = OWNED
        self.owners[slot] = owner
        if before is not None:
            self.bump(owner)
        return True

    def add_slots(self, owner: Member, slots: list[int]) -> bool:
        """Give slots that have no owner to a node."""
        free = [slot for slot in slots if self.owners[slot] is None]
        for slot in free:
            self._give(slot, owner)
        return bool(free)

    def delete_slots(self, owner: Member, slots: list[int]) -> bool:
        """Take slots of a node from it: they have no owner."""
        taken = [slot for slot in slots if self.owners[slot] is owner]
        for slot in taken:
            owner.slots[slot] = 0
            owner.migrating.pop(slot, None)
            self.owners[slot] = None
        return bool(taken)

    def bump(self, one: Member) -> bool:
        """Give a node, and so its replicas, the highest epoch, if it has it not yet by itself; whether that is new."""
        masters = [other.epoch for other in self.members if other.is_master and other is not one]
        if one.epoch and one.epoch > max(masters, default=0):
            return False
        self.current_epoch += 1
        one.epoch = self.current_epoch
        self._follow_epochs()
        return True

    def promote(self, replica: Member) -> None:
        """Let a replica take its master's place; that one and its other replicas follow it."""
        old = self.master_of(replica)
        replica.master_id = ""
        replica.slots, old.slots = old.slots, bytearray(SLOTS)
        replica.migrating, old.migrating = old.migrating, {}
        replica.importing, old.importing = old.importing, {}
        for one in self.members:
            if one is old or one.master_id == old.id:
                one.master_id = replica.id
            for opened in (one.migrating, one.importing):
                for slot, id in list(opened.items()):
                    if id == old.id:
                        opened[slot] = replica.id
        self.owners = [replica if owner is old else owner for owner in self.owners]
        self.bump(replica)

    def _follow_epochs(self) -> None:
        for one in self.members:
            one.epoch = self.master_of(one).epoch


def read(text: str) -> ClusterMap:
    """Read a map that `ClusterMap.written` or Redis wrote; ValueError or IndexError if it is something else."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    members: list[Member] = []
    myself, current_epoch = "", 0
    for words in lines:
        if words[0] == "vars":
            current_epoch = int(words[words.index("currentEpoch") + 1]) if "currentEpoch" in words else 0
            continue
        one = _read_member(words)
        if MYSELF in words[2].split(","):
            myself = one.id
        members.append(one)
    return ClusterMap(members, current_epoch or max([one.epoch for one in members], default=0), myself)


def _read_member(words: list[str]) -> Member:
    if len(words) < 8:
        raise ValueError("it has a line that does not describe one node")
    place, *about = words[1].split(",")
    address, _, bus_port = place.partition("@")
    ip, _, port = address.rpartition(":")
    one = Member(words[0], ip, int(port or 0), int(bus_port or 0), bytearray(SLOTS))
    one.hostname = about[0] if about else ""
    for word in about[1:]:
        name, _, value = word.partition("=")
        if name == "shard-id":
            one.shard_id = value
        elif name == "nodename":
            one.nodename = value
        elif name == "tls-port":
            one.tls_port = int(value)
    one.is_failed = FAILED in words[2].split(",")
    one.master_id = "" if words[3] == NO_MASTER else words[3]
    one.epoch = int(words[6])
    for word in words[8:]:
        if word.startswith("["):
            slot, arrow, id = _open_slot(word)
            (one.migrating if arrow == ">" else one.importing)[slot] = id
            continue
        first, _, last = word.partition("-")
        for slot in range(int(first), int(last or first) + 1):
            one.slots[slot] = OWNED
    return one


def _open_slot(word: str) -> tuple[int, str, str]:
    """Of `[866->-ID]` or `[866-<-ID]`: the slot, `>` or `<`, the ID."""
    slot, _, rest = word.strip("[]").partition("-")
    arrow, _, id = rest.partition("-")
    if arrow not in ("<", ">"):
        raise ValueError(f"it has {word}, which is no slot")
    return int(slot), arrow, id
