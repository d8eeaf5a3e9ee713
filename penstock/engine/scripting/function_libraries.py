"""Libraries of functions: their code, and what it registered.

Where Lua is not installed, libraries that a log brings are kept as code, so that no fresh base forgets them.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from penstock.engine.scripting import shebang
from penstock.engine.scripting.script_calls import Calls
from penstock.errors import ReplyError

if TYPE_CHECKING:
    from penstock.engine.scripting.lua_machine import Machine

LOAD_LIMIT_MS: Final = 500  # a library's code must be over by then (Redis 8.6.3)
REPLAY_LIMIT_MS: Final = 5000  # the same, from a log: a slow machine is no reason to refuse it


class Function:
    """One function. `number` is its key in Lua; names are compared without regard to case.

    steps: how many steps it may take in place, and how many bytes of arguments it may get there, as of a Script.
    """

    __slots__ = ("description", "flags", "name", "number", "steps")

    def __init__(
        self, name: bytes, number: int, description: bytes | None, flags: frozenset[bytes], steps: int
    ) -> None:
        self.name = name
        self.number = number
        self.description = description
        self.flags = flags
        self.steps = steps


class Library:
    """One library: its whole code, first line included."""

    __slots__ = ("code", "functions", "name")

    def __init__(self, name: bytes, code: bytes) -> None:
        self.name = name
        self.code = code
        self.functions: list[Function] = []


class Libraries:
    """All libraries by name, and all functions by lower-case name.

    machine: Lua, begun when it is first asked for; refused where it is not installed.
    """

    def __init__(self, machine: "Callable[[], Machine]", calls: Calls, kept: dict[bytes, bytes]) -> None:
        self._machine = machine
        self._calls = calls
        self._kept = kept  # the keyspace's: what a fresh base holds
        self.by_name: dict[bytes, Library] = {}
        self.functions: dict[bytes, Function] = {}

    def function(self, name: bytes) -> Function:
        found = self.functions.get(name.lower())
        if found is None:
            if any(not library.functions for library in self.by_name.values()):
                self._machine()  # raises the error about the missing package
            raise ReplyError(b"ERR Function not found")
        return found

    def load(self, code: bytes, replaces: bool, limit_ms: int = LOAD_LIMIT_MS) -> bytes:
        """Make a library of its code; its name. Refused as a whole: the library that it should replace stays."""
        name, body = shebang.read_library(code)
        before = self.by_name.get(name)
        if before is not None and not replaces:
            raise ReplyError(b"ERR Library '%b' already exists" % name)
        library = self._compiled(name, code, body, limit_ms)
        try:
            self._refuse_names(library, [] if before is None else [before])
        except ReplyError:
            self._forget(library)
            raise
        if before is not None:
            self.delete(name)
        self._add(library)
        for function in library.functions:
            self.functions[function.name.lower()] = function
        return name

    def restore(self, codes: list[bytes], removes: bool, replaces: bool, limit_ms: int = LOAD_LIMIT_MS) -> None:
        """Make libraries of their codes; with `removes` in place of all, with `replaces` of those with their names.

        Refused as a whole: what there is stays, and so does what its functions keep from one call to the next.
        """
        made = Libraries(self._machine, self._calls, {})
        try:
            for code in codes:
                made.load(code, False, limit_ms)
            former = list(self.by_name) if removes else [name for name in made.by_name if name in self.by_name]
            if former and not (removes or replaces):
                raise ReplyError(b"ERR Library %b already exists" % former[0])  # LOAD has quotes around the name
            for library in made.by_name.values():
                self._refuse_names(library, [self.by_name[name] for name in former])
        except ReplyError:
            made.flush()
            raise
        for name in former:
            self.delete(name)
        for library in made.by_name.values():
            self._add(library)
        self.functions.update(made.functions)

    def keep(self, code: bytes) -> None:
        """Keep a library that cannot be compiled here, for the next base."""
        name, _ = shebang.read_library(code)
        self._add(Library(name, code))

    def _add(self, library: Library) -> None:
        self.by_name[library.name] = library
        self._kept[library.name] = library.code

    def _compiled(self, name: bytes, code: bytes, body: bytes, limit_ms: int) -> Library:
        from penstock.engine.scripting import quick_functions  # imported late, as quick_code is

        library = Library(name, code)
        steps_by_line, changes = quick_functions.judged(body)

        def found(number: float, name: bytes, described: bool, description: bytes, flags: bytes, line: float) -> int:
            about = description if described else None
            steps = steps_by_line.get(int(line), 0)
            library.functions.append(Function(name, int(number), about, frozenset(flags.split()), steps))
            return int(number)

        self._calls.begin_load(limit_ms)
        trouble = self._machine().load(body, changes, found)
        if trouble is None and not library.functions:
            trouble = b"ERR No functions registered"
        if trouble is not None:
            self._forget(library)
            raise ReplyError(trouble)
        return library

    def _refuse_names(self, library: Library, former: list[Library]) -> None:
        """Refuse functions that others than the former libraries have, too."""
        own = {function.name.lower() for before in former for function in before.functions}
        for function in library.functions:
            name = function.name.lower()
            if name in self.functions and name not in own:
                raise ReplyError(b"ERR Function %b already exists" % function.name)

    def _forget(self, library: Library) -> None:
        for function in library.functions:
            self._machine().forget(function.number)

    def delete(self, name: bytes) -> None:
        library = self.by_name.pop(name, None)
        if library is None:
            raise ReplyError(b"ERR Library not found")
        self._kept.pop(name, None)
        for function in library.functions:
            self.functions.pop(function.name.lower(), None)
        if library.functions:
            self._forget(library)

    def flush(self) -> None:
        for name in list(self.by_name):
            self.delete(name)

    def codes(self) -> Iterator[bytes]:
        """Every library's code, as it was loaded."""
        for library in self.by_name.values():
            yield library.code
