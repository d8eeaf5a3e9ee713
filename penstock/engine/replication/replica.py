"""A replica, as its master knows it."""

from typing import Final

from penstock.engine.replication.stream_versions import OLDEST, ReplicaKind

# Where a replica is, in the words of INFO
NOT_ATTACHED: Final = ""  # it has sent REPLCONF, and no PSYNC or SYNC yet
WAITS: Final = "wait_bgsave"  # for a snapshot
RECEIVES: Final = "send_bulk"  # the snapshot, or loads it
ONLINE: Final = "online"

NO_ACK: Final = -1


class Replica:
    """The state of a replica. Times are unix ms; offsets count bytes of the stream.

    acked: applied. synced: applied and safe on its disk. sends_acks: it has sent an ACK since it is online.
    pending: what the stream had since its snapshot, in order, until it is online.
    """

    def __init__(self, now_ms: int) -> None:
        self.state = NOT_ATTACHED
        self.port = 0
        self.host = ""
        self.takes_eof = False  # a snapshot of unknown length
        self.takes_new_ids = False  # `+CONTINUE <id>`
        self.kind = ReplicaKind(OLDEST)
        self.wants_only_snapshot = False
        self.wants_only_functions = False
        self.is_plain_sync = False  # SYNC: it knows no offsets
        self.asked_id = ""
        self.asked_offset = NO_ACK
        self.since_ms = now_ms
        self.acked = NO_ACK
        self.synced = NO_ACK
        self.ack_ms = now_ms
        self.sends_acks = False
        self.follows = False  # it gets the stream, now or once it is online
        self.is_sent = False  # the snapshot was, to the last byte; online once it is loaded
        self.pending: list[bytes] = []
        self.pending_bytes = 0

    @property
    def is_attached(self) -> bool:
        return self.state != NOT_ATTACHED

    def lag_s(self, now_ms: int) -> int:
        """Seconds since its last ACK."""
        return max(0, now_ms - self.ack_ms) // 1000
