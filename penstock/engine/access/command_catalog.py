"""The names that rules may have: commands, subcommands, categories; and the words of a request that rules check."""

from collections.abc import Iterable

from penstock.engine.table.acl_categories import categories
from penstock.engine.table.row import Row
from penstock.protocol.request_batch import RequestBatch


class CommandCatalog:
    """The commands of one server by the names that rules use: lower case, a subcommand as `config|get`.

    A command that rename-command has renamed keeps its name here (Redis 8.6.3). `names` are the names of all rows
    (upper case), `every` has the rows themselves.
    """

    __slots__ = ("_in_database", "_rows", "every", "names")

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = {top.title: top for top in rows}
        self.every = [row for top in self._rows.values() for row in (top, *top.subcommands.values())]
        self.names = frozenset([row.name for row in self.every])
        self._in_database: frozenset[str] = frozenset()  # made when it is first asked for: most servers never do

    def find(self, name: str) -> Row | None:
        """The command or subcommand that a rule names, in lower case."""
        top, bar, below = name.partition("|")
        row = self._rows.get(top)
        if row is None or not bar:
            return row
        return row.subcommands.get(below.upper().encode(errors="surrogateescape"))

    def names_in(self, category: str) -> list[str]:
        """The names of the commands and subcommands in a category."""
        return [row.name for row in self.every if category in categories(row)]

    def with_trait(self, trait: str) -> list[Row]:
        """The commands with a trait (row.py)."""
        return [row for row in self.every if trait in row.declared.traits.split()]

    def uses_database(self, row: Row, request: list[bytes]) -> bool:
        """Whether a request uses the selected database: it has keys, or reads or writes (Valkey 9.1.2)."""
        if not self._in_database:
            self._in_database = frozenset([one.name for one in self.every if _reads_or_writes(one)])
        return row.name in self._in_database or (row.has_keys and len(request) > 1)

    def same_verdict(self, row: Row, batch: RequestBatch) -> bool:
        """Whether the key of a command that has one is the same in all requests of a batch, and nothing else counts."""
        return row.has_same_key(batch) and row.databases is None


def _reads_or_writes(row: Row) -> bool:
    """Whether a command uses the selected database, even where its requests have no keys (DBSIZE)."""
    if row.databases is not None and not row.has_keys:
        return False
    return row.write or "readonly" in row.flags or "keyspace" in categories(row)
