"""The names of a database's keys, found by SCAN in small steps."""

from typing import Final

from penstock.observe.console import names
from penstock.observe.console.engine_client import EngineClient
from penstock.observe.console.replies import checked

SCANNED: Final = b"500"  # keys a step
MOST_NAMES: Final = 10_000


class Catalogue:
    """The keys that SCAN has found so far. After a first walk through all keys, later walks find changes.

    A step costs the server O(SCANNED), however many keys there are.
    """

    def __init__(self, db: int, pattern: bytes, kind: bytes) -> None:
        """kind: the type of the keys; empty for all."""
        self._db = db
        self._pattern = pattern
        self._of_kind = [b"TYPE", kind] if kind else []
        self._cursor = b"0"
        self._walk: set[bytes] = set()  # found in this walk
        self._found: list[bytes] = []  # in order, by the last walk and this one
        self.is_complete = False  # a walk has ended

    @property
    def found(self) -> list[bytes]:
        """The names, in order."""
        return self._found

    async def step(self, client: EngineClient) -> None:
        """One call of SCAN. RefusedByServer if the user may not."""
        words = [b"SCAN", self._cursor, b"MATCH", self._pattern, b"COUNT", SCANNED, *self._of_kind]
        reply = checked(await client.ask(*words, db=self._db))
        self._cursor = reply[0]
        before = len(self._walk)
        if before < MOST_NAMES:
            self._walk.update(reply[1][: MOST_NAMES - before])
        if self._cursor == b"0":
            self._found = sorted(self._walk)
            self._walk = set()
            self.is_complete = True
        elif not self.is_complete and len(self._walk) != before:
            self._found = sorted(self._walk)

    def shown(self) -> dict[str, object]:
        """How far the walk is."""
        return {"total": len(self._found), "complete": self.is_complete, "pattern": names.token(self._pattern)}
