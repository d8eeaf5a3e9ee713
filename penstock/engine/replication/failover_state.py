"""Where a failover is (engine/replication/failover.py)."""

from collections.abc import Callable
from typing import Final

# In the words of INFO
NO_FAILOVER: Final = "no-failover"
WAITING: Final = "waiting-for-sync"  # for a replica that has everything; writes are held back
IN_PROGRESS: Final = "failover-in-progress"  # this server follows the target and asks it to take over

NO_DEADLINE: Final = 0

Place = tuple[str, int]  # of a replica: host and port


def _discard(text: str) -> None:
    """Lines are dropped until the server takes them."""


class Failover:
    """Of one server. target: the master to be; None: the first replica that has everything. forced: at the deadline it
    becomes master though it has not everything. `report` takes lines for a person."""

    __slots__ = ("deadline_ms", "forced", "report", "state", "target")

    def __init__(self) -> None:
        self.report: Callable[[str], None] = _discard
        self.state: str = NO_FAILOVER
        self.target: Place | None = None
        self.deadline_ms: int = NO_DEADLINE
        self.forced = False

    def begin(self, target: Place | None, deadline_ms: int, forced: bool) -> None:
        self.state = WAITING
        self.target, self.deadline_ms, self.forced = target, deadline_ms, forced

    def end(self) -> None:
        self.state = NO_FAILOVER
        self.target, self.deadline_ms, self.forced = None, NO_DEADLINE, False

    @property
    def shown_target(self) -> str:
        return "any replica" if self.target is None else f"{self.target[0]}:{self.target[1]}"
