"""The databases that a selector allows: all, or some by number (Valkey 9.1.2)."""

import re
from typing import Final

from penstock.engine.access.command_catalog import CommandCatalog
from penstock.engine.access.rule_error import RuleError
from penstock.engine.arguments import MAX_INT32, is_integer
from penstock.engine.table.row import Row

PREFIX: Final = b"db="  # of a rule that names databases; upper case is taken, too
OUT_OF_RANGE: Final = b"The provided database ID is out of range"
NOT_REFUSED: Final = -1
_NUMBER: Final = re.compile(rb"[ \t\n\v\f\r]*[+-]?[0-9]+")


class AllowedDatabases:
    """Databases by number; `numbers` is None where all are allowed. It is not changed, but replaced.

    count: how many databases the server has.
    """

    __slots__ = ("_count", "numbers")

    def __init__(self, count: int, numbers: frozenset[int] | None = None) -> None:
        self._count = count
        self.numbers = numbers

    def named_by(self, rule: bytes) -> "AllowedDatabases":
        """Those that `db=1,2` names, whatever was allowed before; RuleError if it is wrong."""
        words = rule[len(PREFIX) :].split(b",")
        if not all(map(_NUMBER.fullmatch, words)):
            raise RuleError(b"Syntax error")
        numbers = frozenset(map(int, words))
        if not all(0 <= number <= MAX_INT32 for number in numbers):
            raise RuleError(OUT_OF_RANGE)
        return AllowedDatabases(self._count, numbers)

    def none(self) -> "AllowedDatabases":
        return AllowedDatabases(self._count, frozenset())

    def all(self) -> "AllowedDatabases":
        return AllowedDatabases(self._count)

    def refused_word(self, catalog: CommandCatalog, row: Row, request: list[bytes], db_index: int) -> int:
        """The position of the word that names a database which is not allowed; NOT_REFUSED if there is none.

        0 stands for the selected database, and for all of the server's. A request that names a database which the
        server does not have is left to its handler, which refuses it before it changes anything.
        """
        numbers = self.numbers
        if numbers is None:
            return NOT_REFUSED
        if row.databases is not None:
            places = row.databases(request)
            if all(self._has(request[place]) for place in places):
                for place in places:
                    if int(request[place]) not in numbers:
                        return place
        if row.in_every_database:
            return NOT_REFUSED if numbers.issuperset(range(self._count)) else 0
        if db_index not in numbers and catalog.uses_database(row, request):
            return 0
        return NOT_REFUSED

    def _has(self, word: bytes) -> bool:
        return is_integer(word) and 0 <= int(word) < self._count

    def text(self) -> bytes:
        """As ACL LIST shows it, if not all are allowed; in the field `databases` of ACL GETUSER none are nothing."""
        if self.numbers is None:
            return b"alldbs"
        return PREFIX + b",".join([b"%d" % number for number in sorted(self.numbers)]) if self.numbers else b"resetdbs"
