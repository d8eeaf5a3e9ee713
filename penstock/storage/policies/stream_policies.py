"""The policies of a stream: what PENSTOCK.POLICY set, and what keeping them needs."""

from typing import Final

from penstock.storage.deadlines import NEVER
from penstock.storage.streams.ids import ZERO, StreamId

NONE: Final = -1  # in place of a number: not set
AT_ONCE: Final = 0  # in place of a moment
KEEP_REFERENCES: Final = 0  # as in streams/stream.py
SWEPT: Final = -1  # in place of an id: every entry was looked at


class StreamSettings:
    """What PENSTOCK.POLICY sets for a stream. Numbers are NONE if they are not set; times are in ms.

    references: KEEPREF, DELREF or ACKED, as Stream.trim knows them.
    """

    __slots__ = ("max_age_ms", "max_length", "references")

    def __init__(self) -> None:
        self.max_length = NONE
        self.max_age_ms = NONE
        self.references = KEEP_REFERENCES

    def copy(self) -> "StreamSettings":
        twin = StreamSettings()
        twin.max_length, twin.max_age_ms, twin.references = self.max_length, self.max_age_ms, self.references
        return twin

    @property
    def trims(self) -> bool:
        """Whether entries may go."""
        return self.max_length != NONE or self.max_age_ms != NONE

    @property
    def is_set(self) -> bool:
        """Whether anything is set."""
        return self.trims or self.references != KEEP_REFERENCES


class StreamPolicies:
    """A stream has these while a policy is set for it or for one of its groups.

    floor: an ACKED trim removes nothing up to this id (see engine/policies/retention.py).
    done: a heap of entries above the floor that no group needs; some may be gone or needed again by now.
    sweep_from: `done` lacks entries from this id on that became unneeded without being acknowledged; SWEPT if none.
    due_ms: when a tick must look at the stream next; AT_ONCE, or NEVER. groups_due_ms: the same for its groups alone.
    trimmed: entries that policies removed, since the start.
    """

    __slots__ = ("done", "due_ms", "floor", "groups_due_ms", "settings", "sweep_from", "trimmed")

    def __init__(self) -> None:
        self.settings = StreamSettings()
        self.floor: StreamId = ZERO
        self.done: list[StreamId] = []
        self.sweep_from: StreamId = SWEPT
        self.due_ms = NEVER
        self.groups_due_ms = NEVER
        self.trimmed = 0

    def start_sweep(self) -> None:
        """Have every entry looked at again, by this command or by ticks."""
        self.done = []
        self.sweep_from = ZERO

    def copy(self) -> "StreamPolicies":
        """A copy for a copied stream, all of which is to be looked at."""
        twin = StreamPolicies()
        twin.settings = self.settings.copy()
        twin.floor = self.floor
        twin.start_sweep()
        twin.due_ms = twin.groups_due_ms = AT_ONCE
        return twin

    def memory_usage(self) -> int:
        """An estimate in bytes. O(1)."""
        return 600 + 60 * len(self.done)
