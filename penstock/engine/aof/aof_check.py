"""Checks a log's file without running it: its content, how far it is intact, and the damage after that.

It finds everything that a start would refuse: damage, a MULTI without its EXEC, unknown commands.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Final

from penstock.protocol.log_reader import LogBlock, LogReader, only_zeros
from penstock.storage.aof.disk import Disk

WHOLE: Final = "whole"
TORN: Final = "torn"  # cut off within a request or a MULTI, as a crash leaves it
DAMAGED: Final = "damaged"
NOWHERE: Final = -1

_TIMESTAMP: Final = re.compile(rb"#TS:(\d{1,18})\r?\n")


class Findings:
    """The contents of a log file.

    requests: whole requests, MULTI and EXEC not counted; units: what is replayed as one.
    whole: bytes up to which all is well. problem: what is wrong behind them, in words; it was found at `problem_at`.
    unknown: the first names that no command has, each with its request's offset.
    later_at: where the first annotation later than the time that was asked for stands; a cut there is between units.
    """

    __slots__ = ("later_at", "problem", "problem_at", "requests", "size", "state", "units", "unknown", "whole")

    def __init__(self, size: int) -> None:
        self.size = size
        self.requests = 0
        self.units = 0
        self.whole = 0
        self.state = WHOLE
        self.problem = ""
        self.problem_at = NOWHERE
        self.unknown: dict[str, int] = {}
        self.later_at = NOWHERE


class Inspection:
    """One look through one file."""

    __slots__ = ("_disk", "_later_than_s", "_multi_at", "_names", "_path", "_within", "findings")

    def __init__(self, disk: Disk, path: str, names: frozenset[bytes], later_than_s: int = NOWHERE) -> None:
        """names: those of all commands, in upper case. later_than_s: the unix time that `later_at` is about."""
        self._disk = disk
        self._path = path
        self._names = names
        self._later_than_s = later_than_s
        self._multi_at = NOWHERE
        self._within = 0  # requests of the MULTI that is open
        self.findings = Findings(disk.size(path))

    def run(self, progress: Callable[[int], None], start: int = 0) -> Findings:
        """Look through the file from a place on. `progress` gets the bytes done."""
        found = self.findings
        read = partial(self._disk.read, self._path)
        found.whole = start
        reader = LogReader(read, start, found.size)
        while (block := reader.next_block()) is not None and self._count(block):
            found.whole = reader.offset
            progress(reader.offset)
        damage = reader.damage
        if damage is not None and not found.problem:
            zeros = only_zeros(read, damage.offset)
            expected = f"{damage.expected} was expected at byte {damage.offset}"
            expected += ", and only zeros follow" if zeros else ""
            self._note(TORN if zeros else DAMAGED, expected, damage.offset)
        elif reader.is_cut_off and not found.problem:
            self._note(TORN, f"the request at byte {reader.offset} is cut off", reader.offset)
        if self._multi_at != NOWHERE:
            found.whole = self._multi_at
            if not found.problem:
                self._note(TORN, f"the MULTI at byte {self._multi_at} has no EXEC", found.size)
            found.requests -= self._within
        return found

    def _note(self, state: str, problem: str, at: int) -> None:
        self.findings.state, self.findings.problem, self.findings.problem_at = state, problem, at

    def _count(self, block: LogBlock) -> bool:
        """Count a block's requests; False, and `whole` says how far all is well, where one cannot stand there."""
        if self._is_plain(block.requests):
            self.findings.requests += len(block.requests)
            self.findings.units += len(block.requests)
            return True
        for request, at in zip(block.requests, block.offsets(), strict=True):
            if not request:
                self._annotation(_TIMESTAMP.match(block.text, at - block.offset), at)
            elif not self._request(request, at):
                self.findings.whole = at
                return False
        return True

    def _is_plain(self, requests: list[list[bytes]]) -> bool:
        """Whether there are nothing but known requests, outside of any MULTI: then counting is enough."""
        if self._multi_at != NOWHERE:
            return False
        if not all(requests):
            return False
        names = {name.upper() for name in {request[0] for request in requests}}
        return names <= self._names and names.isdisjoint((b"MULTI", b"EXEC"))

    def _request(self, request: list[bytes], at: int) -> bool:
        """Count one; False where a MULTI or an EXEC stands where none can."""
        name = request[0].upper()
        if name in (b"MULTI", b"EXEC") and len(request) == 1:
            return self._bound(name == b"MULTI", at)
        self.findings.requests += 1
        if self._multi_at == NOWHERE:
            self.findings.units += 1
        else:
            self._within += 1
        if name not in self._names:
            self.findings.unknown.setdefault(request[0].decode("utf-8", "backslashreplace"), at)
        return True

    def _bound(self, is_multi: bool, at: int) -> bool:
        """A MULTI or an EXEC; False where it does not match the one before it."""
        was_open = self._multi_at != NOWHERE
        if is_multi and not was_open:
            self._multi_at, self._within = at, 0
        elif is_multi:
            self._note(DAMAGED, f"the EXEC of the MULTI at byte {self._multi_at} was expected before byte {at}", at)
            return False
        elif not was_open:
            self._note(DAMAGED, f"the EXEC at byte {at} has no MULTI before it", at)
            return False
        else:
            self._multi_at = NOWHERE
            self.findings.units += 1
        return True

    def _annotation(self, stamp: re.Match[bytes] | None, at: int) -> None:
        if stamp is None or self._later_than_s == NOWHERE or self.findings.later_at != NOWHERE:
            return
        if int(stamp[1]) > self._later_than_s:
            self.findings.later_at = at if self._multi_at == NOWHERE else self._multi_at
