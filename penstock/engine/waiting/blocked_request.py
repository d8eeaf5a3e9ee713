"""A request that waits: for data, for time to pass, or for a script to end."""

from typing import TYPE_CHECKING

from penstock.engine.table.row import Row
from penstock.storage.streams.stream import Stream

if TYPE_CHECKING:
    from penstock.engine.session import Session


class BlockedRequest:
    """One request that waits. `deadline_ms` 0 means for ever. Heaps order them by `serial`, which no two have.

    group: the consumer group of an XREADGROUP; None for readers that are simply tried again (XREAD, BLPOP).
    claims: the reader may find something else than others of its group: pending entries by its own min-idle-time
    (XREADGROUP CLAIM), or in a group with a policy new ones only, and those beyond INFLIGHT, too (NOACK).
    kind: the type of value that it waits for; a key of another type does not wake it.
    is_plain: it waits for a group's new entries in one stream, as others do; known once it is blocked.
    is_running: it is being done elsewhere (a script in its thread, a change by the launcher): its reply comes, and a
    client that has only ended its side gets it.
    wakes_on_loss: it must hear of the key's deletion and of another type at the key (XREADGROUP).
    """

    __slots__ = (
        "args", "claimable_ms", "claims", "consumer", "db_index", "deadline_ms", "group", "is_plain", "is_running",
        "keys", "kind", "postponed", "row", "serial", "session", "since_ms", "timeout_reply", "wakes_on_loss",
    )  # fmt: skip

    def __init__(
        self,
        session: "Session",
        row: Row,
        args: list[bytes],
        db_index: int,
        keys: list[bytes],
        deadline_ms: int,
        timeout_reply: bytes,
    ) -> None:
        self.session = session
        self.row = row
        self.args = args
        self.db_index = db_index
        self.keys = keys
        self.deadline_ms = deadline_ms
        self.timeout_reply = timeout_reply
        self.group: bytes | None = None
        self.consumer = b""
        self.claims = False
        self.is_plain = False
        self.is_running = False
        self.kind: type = Stream
        self.wakes_on_loss = False
        self.postponed = False  # by CLIENT PAUSE: it is run when the pause ends
        self.serial = 0
        self.since_ms = session.last_ms  # when it was blocked
        self.claimable_ms = 0  # when a CLAIM reader is to be tried again
