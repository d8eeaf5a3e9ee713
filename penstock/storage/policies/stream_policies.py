"""The policies of a stream: what PENSTOCK.POLICY set, and what keeping them needs."""

from typing import Final

from sortedcontainers import SortedList

from penstock.storage.deadlines import NEVER
from penstock.storage.policies.byte_count import ByteCount
from penstock.storage.streams.ids import ZERO, StreamId

NONE: Final = -1  # in place of a number: not set
AT_ONCE: Final = 0  # in place of a moment
KEEP_REFERENCES: Final = 0  # as in streams/stream.py
SWEPT: Final = -1  # in place of an id: every entry was looked at


class StreamSettings:
    """The options of PENSTOCK.POLICY for a stream. Numbers are NONE if they are not set; times are in ms.

    max_bytes: of names and values. references: KEEPREF, DELREF or ACKED, as Stream.trim knows them. idle_group_ms: with
    ACKED, a group that was not read for so long does not keep entries. forward: the stream to which entries move;
    at_field, after_ms: when. every_field: entries that have it are copied at its times, and stay. missed: which of
    several times that are due together: ONCE, ALL or SKIP; None if it is not set, which is ONCE.
    """

    __slots__ = (
        "after_ms", "at_field", "every_field", "forward", "idle_group_ms", "max_age_ms", "max_bytes", "max_length",
        "missed", "references",
    )  # fmt: skip

    def __init__(self) -> None:
        self.max_length = NONE
        self.max_age_ms = NONE
        self.max_bytes = NONE
        self.references = KEEP_REFERENCES
        self.idle_group_ms = NONE
        self.forward: bytes | None = None
        self.at_field: bytes | None = None
        self.after_ms = NONE
        self.every_field: bytes | None = None
        self.missed: bytes | None = None

    def copy(self) -> "StreamSettings":
        copied = StreamSettings()
        copied.max_length, copied.max_age_ms, copied.references = self.max_length, self.max_age_ms, self.references
        copied.max_bytes, copied.idle_group_ms = self.max_bytes, self.idle_group_ms
        copied.forward, copied.at_field, copied.after_ms = self.forward, self.at_field, self.after_ms
        copied.every_field, copied.missed = self.every_field, self.missed
        return copied

    @property
    def trims(self) -> bool:
        """Whether entries may go."""
        return max(self.max_length, self.max_age_ms, self.max_bytes) != NONE

    @property
    def shows_more(self) -> bool:
        """Whether an option is set that has fields of its own in XINFO. Bytes are counted only then, too."""
        return self.every_field is not None or max(self.max_bytes, self.idle_group_ms) != NONE

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
    byte_count: while `shows_more`; None until it is first needed. used_ms: with IDLEGROUP, when each group was read
    last; empty until that is first looked at. idle: the names of those that are idle. idle_due_ms: when the next one
    may be.
    """

    __slots__ = (
        "blocked", "byte_count", "catching_up", "copied", "copied_to", "done", "due_ms", "floor", "forwarded",
        "groups_due_ms", "idle", "idle_due_ms", "retry_ms", "scheduled", "scheduled_to", "settings", "sweep_from",
        "trimmed", "used_ms",
    )  # fmt: skip

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
        self.byte_count: ByteCount | None = None
        self.used_ms: dict[bytes, int] = {}
        self.idle: set[bytes] = set()
        self.idle_due_ms = NEVER

    def start_schedule(self) -> None:
        """Have the moments of all entries read again; nothing was tried yet."""
        self.blocked = b""
        self.scheduled = SortedList()
        self.scheduled_to = ZERO
        self.catching_up = set()

    def go_back_to(self, last_id: StreamId) -> None:
        """XSETID has set the stream's last id back: ids above it, which were looked at, may be those of new entries."""
        self.scheduled_to = min(self.scheduled_to, last_id)
        if self.byte_count is not None:
            self.byte_count.counted_to = min(self.byte_count.counted_to, last_id)

    def note_use(self, group: bytes, now_ms: int) -> bool:
        """A group was read, for IDLEGROUP; whether it was idle. O(1)."""
        if group in self.used_ms:
            self.used_ms[group] = now_ms
        if group not in self.idle:
            return False
        self.idle.discard(group)
        self.idle_due_ms = min(self.idle_due_ms, now_ms + self.settings.idle_group_ms)
        return True

    def move(self, by_ms: int) -> None:
        """Unix time has jumped: what lasts or waits does not become longer or shorter by that. O(groups)."""
        self.used_ms = {group: used_ms + by_ms for group, used_ms in self.used_ms.items()}
        self.idle_due_ms += 0 if self.idle_due_ms == NEVER else by_ms
        self.retry_ms += by_ms if self.retry_ms else 0

    def forget_uses(self) -> None:
        """All groups count as just read."""
        self.used_ms = {}
        self.idle = set()
        self.idle_due_ms = NEVER

    def start_sweep(self) -> None:
        """Have every entry looked at again, by this command or by ticks."""
        self.done = []
        self.sweep_from = ZERO

    def copy(self) -> "StreamPolicies":
        """A copy for a copied stream; all entries of that are still to be processed."""
        copied = StreamPolicies()
        copied.settings = self.settings.copy()
        copied.floor = self.floor
        copied.copied_to = self.copied_to
        copied.byte_count = None if self.byte_count is None else self.byte_count.copy()
        copied.used_ms, copied.idle, copied.idle_due_ms = dict(self.used_ms), set(self.idle), self.idle_due_ms
        copied.start_sweep()
        copied.due_ms = copied.groups_due_ms = AT_ONCE
        return copied

    def memory_usage(self) -> int:
        """An estimate in bytes. O(1)."""
        return 600 + 60 * len(self.done) + 150 * len(self.scheduled)
