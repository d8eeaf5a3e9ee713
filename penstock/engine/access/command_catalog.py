"""What rules can name: commands, subcommands and categories; and which words of a request rules look at."""

from collections.abc import Iterable
from typing import Final

from penstock.engine.table import key_specs
from penstock.engine.table.acl_categories import categories
from penstock.engine.table.key_specs import KeySpec
from penstock.engine.table.row import Row
from penstock.protocol.request_batch import RequestBatch

WRITING_FLAGS: Final = ("insert", "delete", "update")
PLAIN_SET_WORDS: Final = 3  # of SET without options, which decide what it does with its key


class KeyUse:
    """One key of a request: its position, and whether the command reads the value and changes it.

    Neither of the two where it only looks whether there is a value, or how large it is: EXISTS, XLEN (Redis 8.6.3).
    """

    __slots__ = ("position", "reads", "writes")

    def __init__(self, position: int, flags: list[str]) -> None:
        self.position = position
        self.reads = "access" in flags
        self.writes = any(flag in flags for flag in WRITING_FLAGS)


NOT_LOOKED_FOR: Final = KeyUse(0, [])  # of a command whose declaration was not read yet


class CommandCatalog:
    """The commands of one server by the names that rules use: lower case, a subcommand as `config|get`.

    A command that rename-command has renamed keeps its name here (Redis 8.6.3). `names` are the names of all rows
    (upper case), `every` has the rows themselves. What is known of a row's keys is computed when it is first asked for.
    """

    __slots__ = ("_only_keys", "_plain_set", "_rows", "_specs", "every", "names")

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = {top.title: top for top in rows}
        self.every = [row for top in self._rows.values() for row in (top, *top.subcommands.values())]
        self.names = frozenset([row.name for row in self.every])
        self._specs: dict[str, list[KeySpec]] = {}
        self._only_keys: dict[str, KeyUse | None] = {}
        self._plain_set: list[KeyUse] = []  # of SET without options

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

    def key_uses(self, row: Row, request: list[bytes]) -> list[KeyUse]:
        """The keys of a request; none where its words are such that their places cannot be told (Redis 8.6.3)."""
        if row.name == "SET" and len(request) == PLAIN_SET_WORDS:
            self._plain_set = self._plain_set or self._look_for_keys(row, request)
            return self._plain_set
        return self._look_for_keys(row, request)

    def _look_for_keys(self, row: Row, request: list[bytes]) -> list[KeyUse]:
        specs = self._specs.get(row.name)
        if specs is None:
            specs = self._specs[row.name] = key_specs.parse(row.keys)
        return [KeyUse(at, flags) for at, flags in key_specs.places_of(row, specs, request)]

    def only_key(self, row: Row) -> KeyUse | None:
        """The key of a command that has one, always at the same place and used in the same way; None for others."""
        use = self._only_keys.get(row.name, NOT_LOOKED_FOR)
        if use is NOT_LOOKED_FOR:
            specs = key_specs.parse(row.keys)
            is_one = len(specs) == 1 and specs[0].fixed and not specs[0].last and not key_specs.has_varying_flags(row)
            is_key = is_one and "not_key" not in specs[0].flags
            use = self._only_keys[row.name] = KeyUse(specs[0].index, specs[0].flags) if is_key else None
        return use

    def judges_alike(self, row: Row, batch: RequestBatch) -> bool:
        """Whether the key of a command that has one is the same in all requests of a batch."""
        use = self.only_key(row)
        return use is not None and use.position < len(batch.prefix)
