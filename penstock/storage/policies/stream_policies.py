"""The policies of a stream: what PENSTOCK.POLICY set, and what keeping them needs."""

from typing import Final

from sortedcontainers import SortedList

from penstock.storage.deadlines import NEVER
from penstock.storage.streams.ids import ZERO, StreamId

NONE: Final = -1  # in place of a number: not set
AT_ONCE: Final = 0  # in place of a moment
KEEP_REFERENCES: Final = 0  # as in streams/stream.py
SWEPT: Final = -1  # in place of an id: every entry was looked at


class StreamSettings:
    """What PENSTOCK.POLICY sets for a stream. Numbers are NONE if they are not set; times are in ms.

    references: KEEPREF, DELREF or ACKED, as Stream.trim knows them. forward: the stream to which entries move;
    at_field, after_ms: when. every_field: entries that have it are copied at its times, and stay. missed: which of
    several times that are due together: ONCE, ALL or SKIP; None if it is not set, which is ONCE.
    """

    __slots__ = ("after_ms", "at_field", "every_field", "forward", "max_age_ms", "max_length", "missed", "references")

    def __init__(self) -> None:
        self.max_length = NONE
        self.max_age_ms = NONE
        self.references = KEEP_REFERENCES
        self.forward: bytes | None = None
        self.at_field: bytes | None = None
        self.after_ms = NONE
        self.every_field: bytes | None = None
        self.missed: bytes | None = None

    def copy(self) -> "StreamSettings":
        twin = StreamSettings()
        twin.max_length, twin.max_age_ms, twin.references = self.max_length, self.max_age_ms, self.references
        twin.forward, twin.at_field, twin.after_ms = self.forward, self.at_field, self.after_ms
        twin.every_field, twin.missed = self.every_field, self.missed
        return twin

    @property
    def trims(self) -> bool:
        """Whether entries may go."""
        return self.max_length != NONE or self.max_age_ms != NONE

    @property
    def is_set(self) -> bool:
        """Whether anything is set."""
        return self.trims or self.references != KEEP_REFERENCES or self.forward is not None


class StreamPolicies:
    """A stream has these while a policy is set for it or for one of its groups.

    floor: an ACKED trim removes nothing up to this id (see engine/policies/retention.py).
    done: a heap of entries above the floor that no group needs; some may be gone or needed again by now.
    sweep_from: `done` lacks entries from this id on that became unneeded without being acknowledged; SWEPT if none.
    due_ms: when a tick must look at the stream next; AT_ONCE, or NEVER. groups_due_ms: the same for its groups alone.
    scheduled: when each entry up to `scheduled_to` is to move (FORWARD), or to be copied next (EVERY); some may be gone
    by now. blocked: why nothing can move, empty if it can; tried again at `retry_ms`.
    copied_to: time and id of the last copy; what is behind that pair, in this order, is still to come. catching_up:
    entries of which several times that were due together are being copied (MISSED ALL).
    trimmed, forwarded, copied: entries that policies removed, moved and copied, since the start.
    """

    __slots__ = (
        "blocked",
        "catching_up",
        "copied",
        "copied_to",
        "done",
        "due_ms",
        "floor",
        "forwarded",
        "groups_due_ms",
        "retry_ms",
        "scheduled",
        "scheduled_to",
        "settings",
        "sweep_from",
        "trimmed",
    )

    def __init__(self) -> None:
        self.settings = StreamSettings()
        self.floor: StreamId = ZERO
        self.done: list[StreamId] = []
        self.sweep_from: StreamId = SWEPT
        self.due_ms = NEVER
        self.groups_due_ms = NEVER
        self.scheduled: SortedList[tuple[int, StreamId]] = SortedList()
        self.scheduled_to: StreamId = ZERO
        self.copied_to: tuple[int, StreamId] = (0, ZERO)
        self.catching_up: set[StreamId] = set()
        self.blocked = b""
        self.retry_ms = 0
        self.trimmed = 0
        self.forwarded = 0
        self.copied = 0

    def start_schedule(self) -> None:
        """Have the moments of all entries read again."""
        self.scheduled = SortedList()
        self.scheduled_to = ZERO
        self.catching_up = set()

    def go_back_to(self, last_id: StreamId) -> None:
        """XSETID has set the stream's last id back: ids above it, which were looked at, may be those of new entries."""
        self.scheduled_to = min(self.scheduled_to, last_id)

    def start_sweep(self) -> None:
        """Have every entry looked at again, by this command or by ticks."""
        self.done = []
        self.sweep_from = ZERO

    def copy(self) -> "StreamPolicies":
        """A copy for a copied stream, all of which is to be looked at."""
        twin = StreamPolicies()
        twin.settings = self.settings.copy()
        twin.floor = self.floor
        twin.copied_to = self.copied_to
        twin.start_sweep()
        twin.due_ms = twin.groups_due_ms = AT_ONCE
        return twin

    def memory_usage(self) -> int:
        """An estimate in bytes. O(1)."""
        return 600 + 60 * len(self.done) + 150 * len(self.scheduled)
