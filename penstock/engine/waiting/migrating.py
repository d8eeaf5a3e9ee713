"""How the engine sends requests to another server (MIGRATE), while all clients wait, as in Redis."""

from typing import Protocol


class TargetError(Exception):
    """The target cannot be reached, or does not answer in time.

    doing: what failed ("connecting", "writing", "reading"). answers: first lines of replies that had come.
    is_late: it took too long, so that another try would, too.
    """

    def __init__(self, doing: str, answers: list[bytes], is_late: bool) -> None:
        super().__init__(doing)
        self.doing = doing
        self.answers = answers
        self.is_late = is_late


class Migrator(Protocol):
    """The connections to targets: the server's (server/replication/targets.py)."""

    def ask(
        self, host: str, port: str, timeout_ms: int, db_index: int, login: list[bytes], requests: list[list[bytes]]
    ) -> list[bytes]:
        """Send requests in one go; the first lines of the replies, in order.

        login: AUTH and what follows it, sent before; empty: nothing. The reply of a login or of SELECT that was refused
        stands in place of all. TargetError where the target cannot be reached, or does not answer in time.
        """
