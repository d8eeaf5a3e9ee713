"""The judge without Spark: the checks of audit_spark.py in one process, line by line, for what fits in its memory.

`make demo` asks it: half a million entries take it some seconds. A bigger log, or one that lies elsewhere, is for
`python -m examples.audit --master`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from examples.audit.checks import CHECKS, Finding
from examples.audit.journals import ACKED, ENDING, PROCESSED, SENT, WORKED, Line, lines
from penstock.pipeline.aof.log_files import DamagedLog, bytes_of, opened, parts_of
from penstock.protocol.log_reader import LogReader, Request
from penstock.storage.streams import ids

PENDING_EVENTS: Final = (b"XCLAIM", b"XNACK", b"XACK", b"XACKDEL")
FLAGS: Final = (b"NOMKSTREAM", b"KEEPREF", b"DELREF", b"ACKED")
SERIAL: Final = b"serial"
FIRST_DELIVERY: Final = "1"


class Found:
    """What a check counts: entries, and the least id among them."""

    __slots__ = ("count", "example")

    def __init__(self, entries: Iterable[tuple[str, int]]) -> None:
        """`entries` are ids, and how often each counts."""
        self.count = 0
        self.example: str | None = None
        for entry_id, times in entries:
            self.count += times
            if self.example is None or entry_id < self.example:
                self.example = entry_id


def check(
    log: Iterable[Request], journals: dict[str, Iterable[Line]], stream: bytes, group: bytes, serial: bytes = SERIAL
) -> list[Finding]:
    """What became of the entries of `stream` in `group`; `journals` are the lines of each process by its name.

    `serial` is the field that producers number their entries with.
    """
    return Audit(stream, group, serial).read_log(log).read_journals(journals).findings()


def requests(path: str) -> Iterator[Request]:
    """Every line of a log, in order. A torn end of its last file is left out; DamagedLog is raised."""
    parts, _ = parts_of(path)
    for part in parts:
        with opened(part.path) as file:
            reader = LogReader(bytes_of(file), 0, part.size)
            while (block := reader.next_block()) is not None:
                yield from filter(None, block.requests)  # an annotation has no words
        if reader.damage is not None:
            raise DamagedLog(f"{part.path}: {reader.damage}")
        if reader.is_cut_off and not part.is_last:
            raise DamagedLog(f"{part.path} ends within a request, and is not the log's last file")


def journals_in(folder: Path) -> dict[str, Iterable[Line]]:
    """The journals of a folder by their writers' names."""
    return {path.name.removesuffix(ENDING): lines(path) for path in sorted(folder.glob(f"*{ENDING}"))}


class Audit:
    """What has been read so far: by id, unless it says otherwise."""

    def __init__(self, stream: bytes, group: bytes, serial: bytes) -> None:
        self._stream = stream
        self._group = group
        self._serial = serial
        self._serials: dict[str, bytes | None] = {}  # of the entries in the log
        self._deliveries: Counter[str] = Counter()
        self._releases: Counter[str] = Counter()
        self._acked: set[str] = set()
        self._after_ack: Counter[str] = Counter()  # deliveries
        self._pending: set[str] = set()
        self._sent: Counter[str] = Counter()
        self._disordered: Counter[str] = Counter()
        self._processed: Counter[str] = Counter()
        self._first_time: Counter[str] = Counter()  # processed at the first delivery
        self._replied_ns: dict[str, int] = {}
        self._asked_ns: list[tuple[str, int]] = []

    # -- reading ------------------------------------------------------------------------------------------------------

    def read_log(self, log: Iterable[Request]) -> "Audit":
        for request in log:
            verb = request[0].upper()
            if verb == b"XADD" and request[1] == self._stream:
                self._added(request)
            elif verb in PENDING_EVENTS and request[1] == self._stream and request[2] == self._group:
                self._told(verb, request)
        return self

    def _added(self, request: Request) -> None:
        at = id_at(request)
        pairs = request[at + 1 :]
        named = dict(zip(pairs[-2::-2], pairs[::-2], strict=True))  # backwards: of two with one name the first counts
        self._serials.setdefault(request[at].decode(), named.get(self._serial))

    def _told(self, verb: bytes, request: Request) -> None:
        match verb:
            case b"XCLAIM":
                end = request.index(b"TIME") if b"TIME" in request else 0
                for entry_id in map(bytes.decode, request[5:end]):
                    self._deliveries[entry_id] += 1
                    self._after_ack[entry_id] += entry_id in self._acked
                    self._pending.add(entry_id)
            case b"XNACK":
                for entry_id in _listed(request):
                    self._releases[entry_id] += 1
                    self._pending.add(entry_id)
            case _:
                named = map(bytes.decode, request[3:]) if verb == b"XACK" else _listed(request)
                for entry_id in named:
                    self._acked.add(entry_id)
                    self._pending.discard(entry_id)

    def read_journals(self, journals: dict[str, Iterable[Line]]) -> "Audit":
        for journal in journals.values():
            before = ids.ZERO
            for words in journal:
                verb, entry_id = words[0], words[1]
                if verb in SENT:
                    self._sent[entry_id] += 1
                    number = ids.parse(entry_id.encode())
                    self._disordered[entry_id] += number <= before
                    before = number
                elif verb in WORKED:
                    self._asked_ns.append((entry_id, int(words[5])))
                    if verb == PROCESSED:
                        self._processed[entry_id] += 1
                        self._first_time[entry_id] += words[3] == FIRST_DELIVERY
                elif verb == ACKED:
                    replied_ns = int(words[2])
                    self._replied_ns[entry_id] = min(replied_ns, self._replied_ns.get(entry_id, replied_ns))
        return self

    # -- judging ------------------------------------------------------------------------------------------------------

    def findings(self) -> list[Finding]:
        done, there = self._processed, self._serials
        of_serial: defaultdict[bytes, list[str]] = defaultdict(list)
        for entry_id, serial in there.items():
            if serial is not None:
                of_serial[serial].append(entry_id)
        found = (
            Found((one, 1) for one in there),
            Found((one, 1) for one in done),
            _beyond_one(self._deliveries),
            Found(self._releases.items()),
            _beyond_one(done),
            Found((one, times) for one, times in self._sent.items() if one not in there),
            Found((one, 1) for one in there if one not in done and one not in self._pending),
            Found((max(some), len(some) - 1) for some in of_serial.values() if len(some) > 1),
            _counted(self._disordered),
            _beyond_one(self._first_time),
            _counted(self._after_ack),
            Found((one, 1) for one, asked_ns in self._asked_ns if asked_ns > self._replied_ns.get(one, asked_ns)),
            Found((one, 1) for one in self._acked if one not in done),
            Found((one, 1) for one in self._pending),
        )
        return [Finding(check, one.count, one.example) for check, one in zip(CHECKS, found, strict=True)]


def _beyond_one(times: Counter[str]) -> Found:
    return Found((entry_id, count - 1) for entry_id, count in times.items() if count > 1)


def _counted(times: Counter[str]) -> Found:
    return Found((entry_id, count) for entry_id, count in times.items() if count)


def _listed(request: Request) -> list[str]:
    """The ids behind IDS and their number."""
    at = request.index(b"IDS") + 2
    return [entry_id.decode() for entry_id in request[at : at + int(request[at - 1])]]


def id_at(request: Request) -> int:
    """Where in an XADD of a log its id stands.

    >>> id_at(b"XADD s NOMKSTREAM MAXLEN ~ 10 LIMIT 5 IDMP producer 7 1-1 field value".split())
    11
    """
    at = 2
    while True:
        match request[at].upper():
            case word if word in FLAGS:
                at += 1
            case b"IDMPAUTO" | b"LIMIT":
                at += 2
            case b"IDMP":
                at += 3
            case b"MAXLEN" | b"MINID":
                at += 3 if request[at + 1] in (b"=", b"~") else 2
            case _:
                return at
