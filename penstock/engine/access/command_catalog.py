"""What rules can name: commands, subcommands and categories; and which words of a request rules look at."""

from collections.abc import Iterable
from typing import Final

from penstock.engine.table import key_specs
from penstock.engine.table.acl_categories import categories
from penstock.engine.table.key_place import KeyPlace
from penstock.engine.table.key_specs import KeySpec
from penstock.engine.table.row import Row
from penstock.protocol.request_batch import RequestBatch

NOT_LOOKED_FOR: Final = KeyPlace(0, [])  # of a command whose declaration was not read yet


class CommandCatalog:
    """The commands of one server by the names that rules use: lower case, a subcommand as `config|get`.

    A command that rename-command has renamed keeps its name here (Redis 8.6.3). `names` are the names of all rows
    (upper case), `every` has the rows themselves. What is known of a row's keys is computed when it is first asked for.
    """

    __slots__ = ("_only_keys", "_rows", "_specs", "every", "names")

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = {top.title: top for top in rows}
        self.every = [row for top in self._rows.values() for row in (top, *top.subcommands.values())]
        self.names = frozenset([row.name for row in self.every])
        self._specs: dict[str, list[KeySpec]] = {}
        self._only_keys: dict[str, KeyPlace | None] = {}

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

    # -- keys -------------------------------------------------------------------------------------------------------

    def key_places(self, row: Row, request: list[bytes]) -> list[KeyPlace]:
        """The keys of a request; none where its words do not determine their places (Redis 8.6.3)."""
        specs = self._specs.get(row.name)
        if specs is None:
            specs = self._specs[row.name] = key_specs.parse(row.keys)
        return key_specs.places_of(row, specs, request)

    def only_key(self, row: Row) -> KeyPlace | None:
        """The key of a command that has one, always at the same place and used in the same way; None for others."""
        place = self._only_keys.get(row.name, NOT_LOOKED_FOR)
        if place is NOT_LOOKED_FOR:
            specs = key_specs.parse(row.keys)
            is_one = row.find_keys is None and len(specs) == 1 and specs[0].fixed and not specs[0].last
            is_key = is_one and "not_key" not in specs[0].flags
            place = self._only_keys[row.name] = KeyPlace(specs[0].index, specs[0].flags) if is_key else None
        return place

    def same_verdict(self, row: Row, batch: RequestBatch) -> bool:
        """Whether the key of a command that has one is the same in all requests of a batch."""
        place = self.only_key(row)
        return place is not None and place.position < len(batch.prefix)
