"""The master that this server follows, and how the link to it is."""

from typing import Final

from penstock.protocol.snapshot_frame import UNKNOWN

# The link, in ROLE's words
CONNECT: Final = "connect"  # to be made
CONNECTING: Final = "connecting"
HANDSHAKE: Final = "handshake"  # until the master has answered PSYNC
SYNCING: Final = "sync"  # a snapshot comes
CONNECTED: Final = "connected"

NEVER_MS: Final = -1


class Master:
    """Times are unix ms. attempts: at a full copy, since REPLICAOF.

    problem: why the link is down, for a person; "" while it is up, and before the first. is_unusable: another try would
    most likely come to the same: what the master has, answers or sends is refused here, or it refuses us.
    """

    def __init__(self, host: str, port: int, now_ms: int) -> None:
        self.host = host
        self.port = port
        self.link = CONNECT
        self.since_ms = now_ms  # the link is up, or down, since then
        self.heard_ms = NEVER_MS
        self.attempts = 0
        self.copied_bytes = 0  # of the snapshot, so far
        self.copy_bytes = UNKNOWN  # of all of it
        self.down_ms = 0  # in all, up to when the link came up last
        self.problem = ""
        self.is_unusable = False

    @property
    def is_up(self) -> bool:
        return self.link == CONNECTED

    def set_link(self, link: str, now_ms: int) -> None:
        was_up = self.is_up
        self.link = link
        if self.is_up != was_up:
            if self.is_up:
                self.down_ms += now_ms - self.since_ms
                self.problem = ""
                self.is_unusable = False
            self.since_ms = now_ms
