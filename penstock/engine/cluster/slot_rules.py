"""Whether a request's keys may be served by a node of a cluster: all in one slot, which it owns (Redis 8.6.3)."""

from typing import Final

from penstock.config.settings import Settings
from penstock.engine.cluster.hash_slots import slot_of
from penstock.engine.cluster.node import Node
from penstock.engine.session import QueuedRequests, Session
from penstock.engine.table.row import Row
from penstock.errors import ReplyError

NO_SLOT: Final = -1  # there is no key
CROSS_SLOT: Final = b"CROSSSLOT Keys in request don't hash to the same slot"
NOT_SERVED: Final = b"CLUSTERDOWN Hash slot not served"
DOWN: Final = b"CLUSTERDOWN The cluster is down"
READ_ONLY: Final = b"CLUSTERDOWN The cluster is down and only accepts read commands"


class SlotRules:
    """The rules of one server."""

    __slots__ = ("_settings", "node")

    def __init__(self, settings: Settings, node: Node) -> None:
        self._settings = settings
        self.node = node

    def slots(self, row: Row, request: list[bytes]) -> list[int]:
        """The slots of a request's keys, or of its shard channels, in their order."""
        if _are_channels(row):
            return [slot_of(request[at]) for at in row.key_specs[0].positions(request)]
        return [slot_of(key) for key in row.keys_of(request)]

    def admit(self, session: Session, row: Row, request: list[bytes]) -> None:
        """Refuse a request, or the EXEC of requests, that this node may not serve."""
        if row.name != "EXEC":
            slots = self.slots(row, request)
            if slots:
                self._admit_slots(slots, row.write, _are_channels(row))
        elif session.queue is not None:
            self._admit_queue(session.queue)

    def _admit_queue(self, queue: QueuedRequests) -> None:
        slots: list[int] = []
        writes = False
        for row, batch in queue:
            for at in range(batch.count):
                found = self.slots(row, batch.request(at))
                slots += found
                writes = writes or (row.write and len(found) > 0)
        if slots:
            self._admit_slots(slots, writes, False)

    def _admit_slots(self, slots: list[int], writes: bool, are_channels: bool) -> None:
        if any(slot != slots[0] for slot in slots):
            raise ReplyError(CROSS_SLOT)
        if not self.node.owns(slots[0]):
            raise ReplyError(NOT_SERVED)
        if self.node.is_up():
            return
        settings = self._settings
        if are_channels and settings.yes("cluster-allow-pubsubshard-when-down"):
            return
        if not settings.yes("cluster-allow-reads-when-down"):
            raise ReplyError(DOWN)
        if writes:
            raise ReplyError(READ_ONLY)

    def refusal_in_script(self, row: Row, request: list[bytes], bound_to: int) -> bytes:
        """Why a script's request is refused; empty if it is not.

        bound_to: the slot of the script's keys so far, NO_SLOT where it has none or may use several.
        """
        slots = self.slots(row, request)
        if not slots:
            return b""
        if not self.node.owns(slots[0]):
            return b"ERR Script attempted to access a slot not served"
        if any(slot != slots[0] for slot in slots):
            return b"ERR Command '%b' in script attempted to access keys that don't hash to the same slot" % row.label
        if not self.node.is_up():
            if not self._settings.yes("cluster-allow-reads-when-down"):
                return b"ERR Script attempted to execute a command while the cluster is down"
            if row.write:
                return b"ERR Script attempted to execute a write command while the cluster is down and readonly"
        if bound_to not in (NO_SLOT, slots[0]):
            return b"ERR Script attempted to access keys that do not hash to the same slot"
        return b""


def _are_channels(row: Row) -> bool:
    """Whether what has a slot are channels: SSUBSCRIBE, SPUBLISH. SUNSUBSCRIBE takes those of several slots."""
    return row.channels is not None and bool(row.key_specs)
