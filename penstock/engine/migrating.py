"""How the engine sends requests to another server (MIGRATE), while everybody waits, as in Redis."""

from typing import Final, Protocol

from penstock.engine.table.option_table import OptionTable

OPTIONS_AT: Final = 6  # where MIGRATE's options begin
KEYS: Final = b"KEYS"  # its last option: keys follow, to the request's end
SECRETS: Final = {b"AUTH": 1, b"AUTH2": 2}  # its options whose words are not shown, and how many those are
OPTIONS: Final = OptionTable({b"COPY": 0, b"REPLACE": 0, KEYS: 0} | SECRETS)


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
