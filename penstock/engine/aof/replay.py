"""Replaying the log: its files' requests, run once more in order, give the keyspace back.

The lines between MULTI and EXEC are run together or not at all. A log that ends within a request, or within a MULTI,
was torn by a crash: the last file is cut back to its last whole unit, with a warning. Anything else that is wrong
stops the start (Redis 8.6.3). So does a MULTI within a MULTI, or an EXEC without one, which no server writes: a damaged
MULTI or EXEC would otherwise take what is whole with it. (Redis 8.6.3 goes on there, with a warning.)
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from penstock.engine.context import Context
from penstock.engine.rdb import key_delay
from penstock.engine.rdb.rdb_loading import RdbLoading, is_rdb
from penstock.engine.server_state import ServerState
from penstock.engine.session import Session
from penstock.errors import ReplyError, UsageError
from penstock.protocol.log_reader import BLOCK_BYTES, LogBlock, LogReader, only_zeros, whole_requests
from penstock.storage.aof.append_log import AppendLog
from penstock.storage.aof.disk import Disk

SHOWN_ERRORS: Final = 10  # replies to lines that were refused; more are only counted
SHOWN_BYTES: Final = 64  # of the name of an unknown command

Place = tuple[int, int]  # a request: the offset of a request before it in the file, and how many requests lie between


class Tail:
    """How a file ended: `whole` bytes of whole units, of `size`; `problem` says what follows them, if anything."""

    __slots__ = ("garbage", "problem", "size", "whole")

    def __init__(self, whole: int, size: int) -> None:
        self.whole = whole
        self.size = size
        self.problem = ""
        self.garbage = False  # not merely cut off


class Replay:
    """One loading of a log into an engine. Meanwhile its `loading` is set and its effects go nowhere.

    `report` takes lines for a person. The other sessions of the engine may be answered between two blocks.
    """

    __slots__ = (
        "_ctx", "_disk", "_multi_at", "_path", "_server", "_session", "_skips", "_unit", "applied", "expired", "keys",
        "refused", "report", "skipped",
    )  # fmt: skip

    def __init__(self, server: ServerState, report: Callable[[str], None]) -> None:
        self._server = server
        self._session = Session(0)
        self._session.privileged = True
        self._ctx = Context(server, self._session)
        self._ctx.waits = False
        self._unit: list[list[bytes]] | None = None  # lines since MULTI, annotations (no words) too
        self._multi_at: Place = (0, 0)
        self._disk: Disk | None = None  # of the file that is being read; None where the lines are not a file's
        self._path = ""
        self.report = report
        self.applied = 0  # requests
        self.refused = 0  # of them answered with an error
        self._skips = server.settings.yes("aof-skip-unknown")
        self.skipped: dict[str, int] = {}  # requests that name no command, by its name, where they are left out
        self.keys = 0  # of RDB files
        self.expired = 0  # and those left out there, because their time had passed

    def begin(self) -> None:
        """Nothing may be logged and most clients are refused from here on."""
        self._server.conditions.loading = True
        self._server.effects.log = None

    def end(self) -> None:
        """The engine serves again; its log is the caller's to set."""
        self._server.conditions.loading = False
        self._server.effects.start_of_file()

    # -- a file -----------------------------------------------------------------------------------------------------

    def file(self, disk: Disk, path: str, tail: Tail, start: int = 0) -> Iterator[int]:
        """Run a file's requests, from a place on; yields the bytes done and fills in `tail` at the end.

        UsageError where a line names no command, or MULTI and EXEC do not match. Every file begins in database 0,
        outside of any MULTI.
        """
        self._session.db_index = 0
        self._disk, self._path = disk, path
        reader = LogReader(partial(disk.read, path), start, tail.size)
        while (block := reader.next_block()) is not None:
            applied = self.applied
            self._run(block)
            if self._server.settings.number("key-load-delay"):
                wait_s = key_delay.wait_s(self._server.settings, "key-load-delay", self.applied - applied)
                self._server.clock.sleep(wait_s)
            del block  # two blocks at a time would be more garbage to look through
            yield reader.offset
        damage = reader.damage
        if damage is not None:
            tail.problem = f"{damage.expected} was expected at byte {damage.offset}"
            # A power failure may leave the size of a file without its last bytes: zeros are a tail that is torn.
            tail.garbage = not only_zeros(partial(disk.read, path), damage.offset)
        elif reader.is_cut_off:
            tail.problem = f"the request at byte {reader.offset} is cut off"
        tail.whole = reader.offset
        if self._unit is not None:
            self._refuse_unknown(self._unit)
            tail.whole = self._offset_of(self._multi_at)
            tail.problem = tail.problem or f"the MULTI at byte {tail.whole} has no EXEC"
            self._unit = None

    def snapshot(self, disk: Disk, path: str, keeps_expired: bool = False) -> Iterator[int]:
        """Load the RDB file that a file is, or begins with; yields the bytes done. UsageError where that fails.

        keeps_expired: what has expired by now is loaded, too, because the log's next requests may need it (PERSIST).
        """
        loading = RdbLoading(self._server, disk, path, self.report, keeps_expired)
        yield from loading.run()
        self.keys += loading.keys
        self.expired += loading.expired

    # -- requests ---------------------------------------------------------------------------------------------------

    def lines(self, chunks: Iterable[bytes]) -> None:
        """Run chunks of whole requests that this process made itself (DEBUG RELOAD)."""
        for chunk in chunks:
            at = 0
            while at < len(chunk):
                block = whole_requests(chunk[at : at + BLOCK_BYTES])
                if not block.taken:
                    block = whole_requests(chunk[at:])
                assert block.taken, "a chunk holds whole requests"
                self._run(block)
                at += block.taken

    def _run(self, block: LogBlock) -> None:
        """Run requests in order, those within MULTI once their EXEC has come."""
        replay, ctx = self._server.runner.replay, self._ctx
        ctx.begin(self._session, self._server.clock.now_us())
        requests, offset = block.requests, block.offset
        count = len(requests)
        index = 0
        while index < count:
            try:
                while index < count:
                    request = requests[index]
                    if len(request) < 2:
                        self._run_short(request, (offset, index))
                    elif self._unit is not None:
                        self._unit.append(request)
                    else:
                        done, refusal = replay(ctx, requests, index)
                        self.applied += done
                        if refusal:
                            self._note(request, refusal, (offset, index))
                        index += done
                        continue
                    index += 1
            except ReplyError as unknown:
                self._leave_out(requests[index], unknown, (offset, index))
                index += 1

    def _run_short(self, request: list[bytes], place: Place) -> None:
        """A line of one word (MULTI, EXEC, FLUSHALL) or of none: an annotation."""
        word = request[0].upper() if request else b""
        if self._unit is None:
            if word == b"MULTI":
                self._unit = []
                self._multi_at = place
            elif word == b"EXEC":
                raise UsageError(f"{self._path}: the EXEC at byte {self._offset_of(place)} has no MULTI before it")
            elif word:
                self._apply(request, place)
        elif word == b"EXEC":
            unit, self._unit = self._unit, None
            for number, line in enumerate(unit):
                if line:
                    self._apply(line, self._place_in_unit(number))
        elif word == b"MULTI":
            self._refuse_unknown(self._unit)
            multi_at, at = self._offset_of(self._multi_at), self._offset_of(place)
            raise UsageError(f"{self._path}: the EXEC of the MULTI at byte {multi_at} was expected before byte {at}")
        else:
            self._unit.append(request)

    def _apply(self, request: list[bytes], place: Place) -> None:
        self.applied += 1
        try:
            _, refusal = self._server.runner.replay(self._ctx, [request], 0)
        except ReplyError as unknown:
            self._leave_out(request, unknown, place)
            return
        if refusal:
            self._note(request, refusal, place)

    # -- what is wrong ----------------------------------------------------------------------------------------------

    def _refuse_unknown(self, unit: list[list[bytes]]) -> None:
        """A MULTI has no EXEC: was one of its lines that once, and is no command any more?"""
        for number, line in enumerate(unit):
            if line:
                try:
                    self._server.commands.logged(line)
                except ReplyError as refusal:
                    self._leave_out(line, refusal, self._place_in_unit(number))

    def _leave_out(self, request: list[bytes], refusal: ReplyError, place: Place) -> None:
        """A line names no command, or has the wrong number of words: UsageError, but for the former if it may be."""
        is_unknown = refusal.text.startswith(b"ERR unknown")
        if is_unknown and self._skips:
            name = line_of(request[0].upper()[:SHOWN_BYTES])
            self.skipped[name] = self.skipped.get(name, 0) + 1
            return
        way_on = "; aof-skip-unknown yes leaves such requests out" if is_unknown else ""
        raise UsageError(
            f"{self._path}: {line_of(refusal.text)} (the request at byte {self._offset_of(place)}){way_on}"
        )

    def _note(self, request: list[bytes], answer: bytes, place: Place) -> None:
        """A line was refused: Redis ignores that, too, but for the warning."""
        self.refused += 1
        if self.refused <= SHOWN_ERRORS:
            hides = self._server.settings.yes("hide-user-data-from-log")
            words = line_of(b" ".join(request[: 1 if hides else 4])[:120])
            why = line_of(answer[1:-2])
            where = f"{self._path}: the request at byte {self._offset_of(place)}"
            self.report(f"Warning: {where} was refused and is ignored: {words} ...: {why}")

    def _place_in_unit(self, number: int) -> Place:
        offset, index = self._multi_at
        return offset, index + 1 + number

    def _offset_of(self, place: Place) -> int:
        """The offset of a request in the file that is being read."""
        offset, count = place
        if self._disk is None:
            return offset
        reader = LogReader(partial(self._disk.read, self._path), offset, self._disk.size(self._path))
        while (block := reader.next_block()) is not None:
            if count < len(block.requests):
                return block.offsets()[count]
            count -= len(block.requests)
        return reader.offset


def line_of(text: bytes) -> str:
    """Text for a person, on one line."""
    return " ".join(text.decode("utf-8", "backslashreplace").splitlines())


def load(replay: Replay, log: AppendLog, mends: bool, most_garbage: int) -> Iterator[tuple[int, int]]:
    """Run all files of a log, opened and not started; yields the bytes done and the bytes in all.

    The first file may be an RDB file, or begin with one (a log of before Redis 7).
    mends: a torn tail of the last file is cut off (aof-load-truncated); most_garbage: so is a tail of that many bytes
    that was not merely torn (aof-load-corrupt-tail-max-size). UsageError where the log cannot be loaded.
    """
    directory = log.directory
    disk = directory.disk
    files = directory.manifest.files()
    paths = [directory.path_of(file) for file in files]
    sizes = [disk.size(path) for path in paths]
    total = sum(sizes)
    before = 0
    for path, size in zip(paths, sizes, strict=True):
        tail = Tail(0, size)
        start = 0
        if path == paths[0] and is_rdb(disk, path):
            for start in replay.snapshot(disk, path, keeps_expired=True):
                yield before + start, total
        for done in replay.file(disk, path, tail, start):
            yield before + done, total
        before += size
        if not tail.problem:
            continue
        where = f"{path}: {tail.problem}; its first {tail.whole} bytes are whole"
        if path != paths[-1]:
            raise UsageError(f"{where}. It is not the log's last file, so this is no torn tail.")
        lost = size - tail.whole
        if not (lost <= most_garbage if tail.garbage else mends):
            how = "aof-load-corrupt-tail-max-size" if tail.garbage else "aof-load-truncated"
            raise UsageError(f"{where}, the rest ({lost} bytes) is not. ({how} says what may be cut off.)")
        replay.report(f"Warning: {where}. The rest ({lost} bytes) is cut off.")
        log.cut(path, tail.whole)
