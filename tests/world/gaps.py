"""What may be lost while a server has no log, or one that begins."""

from typing import TYPE_CHECKING

from tests.world.actors import Write
from tests.world.judges import Keeping

if TYPE_CHECKING:
    from tests.world.world import World


class KeepingWithGaps(Keeping):
    """Without a log, what was changed since the last save is lost; while a log begins, what was since it was off."""

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._has_log = world.has_log
        self._journal = world.journal
        self._ended_s = [at_s for at_s, _ in world.machine.ends]

    def may_lose(self, write: Write) -> bool:
        if not self._has_log:
            return self._is_not_saved(write)
        return self._is_in_gap(write) or super().may_lose(write)

    def _is_not_saved(self, write: Write) -> bool:
        """Whether a process ended before what it had was saved."""
        first_s = min((at_s for at_s in self._ended_s if at_s >= write.sent_s), default=float("inf"))
        return first_s < float("inf") and not any(
            write.done_s <= save.sent_s and save.done_s <= first_s for save in self._journal.saved
        )

    def _is_in_gap(self, write: Write) -> bool:
        """Whether a process ended while the log was off, or not yet in force, and the write was made meanwhile."""
        for gap in self._journal.gaps:
            until_s = min((at_s for at_s in self._journal.in_force if at_s >= gap.sent_s), default=float("inf"))
            ends = [at_s for at_s in self._ended_s if max(gap.sent_s, write.sent_s) <= at_s <= until_s]
            if ends and write.done_s >= gap.sent_s and write.sent_s <= min(gap.done_s, ends[0]):
                return True
        return False

    @property
    def may_forget(self) -> bool:
        if not self._has_log or self._journal.gaps:
            return bool(self._ended_s)
        return super().may_forget
