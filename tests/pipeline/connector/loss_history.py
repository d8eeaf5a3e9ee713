"""Random histories of a stream and of a query that reads it, with a naive model of what the query has to tell.

The query is the connector's own, without Spark; the server is an engine in this process. What happens to the stream
comes between any two steps of the query: before a batch is planned, before its tasks start, between two of their
pages, and before the next plan. The model knows every entry by a number of its own, which no id tells.
"""

import contextlib
import itertools
import random
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import hiredis
import pytest

from penstock.clock import ManualClock
from penstock.pipeline.connector.connection.client import Client, mapping, parsed
from penstock.pipeline.connector.source import cursor_reader, shared_reader
from penstock.pipeline.errors import DataLoss
from penstock.storage.streams import ids
from tests.pipeline.driving import Query
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine

ENDS, CERTAIN, GOES_ON = "true", "certain", "false"
HARMLESS, TRIM, DELETE, BACK = "harmless", "trim", "delete", "back"


class Server:
    """An engine that the connector reaches without a network; `looks` are what its driver saw of XINFO STREAM.

    `between` is called before each of the connector's requests with that request, except within a transaction.
    """

    def __init__(self) -> None:
        self.clock = ManualClock(NOW_MS)
        self.dialogue = Dialogue(make_engine(self.clock))
        self.looks: list[tuple[int, int, int, int]] = []
        self.asks_for_task = False
        self.between: Callable[[list[bytes]], object] = lambda _request: None
        self.counts = True  # PENSTOCK.XCOUNT, which Redis has not
        self.on_look: Callable[[], object] = lambda: None  # a reply tells the query a stream's counters
        self._connector = self.dialogue.another()
        self._queued: list[list[bytes]] | None = None  # the requests of the connector's transaction
        self._published: dict[bytes, list[bytes]] = {}  # by channel

    def ask(self, *words: str | int | bytes) -> Any:
        texts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        return parsed(self.dialogue.words(*texts))[0]

    def answer(self, payload: bytes) -> bytes:
        """The replies to requests; none of them blocks."""
        reader = hiredis.Reader()
        reader.feed(payload)
        replies = []
        while (words := reader.gets()) is not False:
            if self._queued is None:
                self.between(words)
            if b"BLOCK" in words:
                at = words.index(b"BLOCK")
                del words[at : at + 2]
            if words[0] == b"PUBLISH":
                self._published.setdefault(words[1], []).append(words[2])
            is_unknown = words[0] == b"PENSTOCK.XCOUNT" and not self.counts
            replies.append(b"-ERR unknown command\r\n" if is_unknown else self._connector.words(*words))
            if words[0] == b"PUBLISH":
                replies[-1] = b":1\r\n"
            self._note(words, replies[-1])
        return b"".join(replies)

    def _note(self, words: list[bytes], reply: bytes) -> None:
        """Follow the connector's transaction, and note its looks: those in one are when it is executed."""
        if words[0] in (b"MULTI", b"DISCARD"):
            self._queued = [] if words[0] == b"MULTI" and reply == b"+OK\r\n" else None
        elif words[0] == b"EXEC" and self._queued is not None:
            queued, self._queued = self._queued, None
            (found,) = parsed(reply)
            for one, answer in zip(queued, found if isinstance(found, list) else (), strict=False):
                self._look(one, answer)
        elif self._queued is not None:
            self._queued.append(words)
        elif words[:2] == [b"XINFO", b"STREAM"]:
            self._look(words, parsed(reply)[0])

    def _look(self, words: list[bytes], answer: Any) -> None:
        """What a task has seen nothing tells the driver."""
        if words[:2] == [b"XINFO", b"STREAM"] and isinstance(answer, list) and not self.asks_for_task:
            self.on_look()
            self.looks.append(counters(answer))

    @property
    def has_messages(self) -> bool:
        """Whether the driver has not taken what tasks have published."""
        return any(self._published.values())

    def messages(self, channel: str) -> list[bytes]:
        return self._published.pop(channel.encode(), [])


def counters(reply: Any) -> tuple[int, int, int, int]:
    """The last id, entries-added, max-deleted-entry-id and the number of removed entries by XINFO STREAM."""
    row = mapping(reply)
    last, deleted, added = row[b"last-generated-id"], row[b"max-deleted-entry-id"], row[b"entries-added"]
    return ids.parse(last), added, ids.parse(deleted), added - row[b"length"]


@contextlib.contextmanager
def reached(server: Server) -> Iterator[None]:
    """Every client of the connector reaches this server."""

    def exchange(_self: Client, payload: bytes, _count: int, _wait_s: float) -> Any:
        return parsed(server.answer(payload))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Client, "_connect", lambda _self: None)
        patch.setattr(Client, "_exchange_once", exchange)
        patch.setattr(Client, "_framed_once", lambda _self, payload, _most: server.answer(payload))
        for reader in (cursor_reader, shared_reader):  # each idle plan looks
            patch.setattr(reader, "now_s", partial(next, itertools.count(0.0, 10.0)))
        patch.setattr(Client, "messages", lambda _self, channel: server.messages(channel))
        yield


class History:
    """One seed's history. After `run`: what was lost, what was told of it.

    `amid`: things happen between any two requests of the query, too. `bursts`: several things happen at once.
    """

    def __init__(self, seed: int, shared: bool, amid: bool = False, bursts: bool = False) -> None:
        self.chance = random.Random(seed)
        self.server = Server()
        self.server.counts = seed % 2 > 0
        self.shared = shared
        self.amid = amid
        self.bursts = bursts
        self.steps: list[str] = []
        self.acts: set[str] = set()  # since the query began
        self.past: set[str] = set()  # before
        self.live: dict[int, int] = {}  # id -> the entry's number
        self.wanted: set[int] = set()
        self.done: set[int] = set()
        self.rows: list[int] = []  # numbers of entries that were delivered, and their batches completed
        self.base = 0  # entries-added less the entries that the query is to read, at its start
        self.error: str | None = None
        self.warned: list[str] = []
        self.counted: dict[str, int] = {}
        self.forgot = False  # a driver died before it took what its tasks missed
        self.has_others = False  # another consumer read in the query's group
        self.passed: set[int] = set()  # taken before the group came past them, and not seen by the query
        self.announced: set[int] = set()  # the entries that counters in a reply to the query have counted
        self.deleted: set[int] = set()  # one by one
        self.ids: dict[int, int] = {}  # number -> the entry's id
        self._planned: list[tuple[int, int, int, int]] = []  # the look by which the newest batch was planned
        self._lineage: set[int] = set()  # what was added to the stream as it is: entries-added counts these
        self._number = 0
        self._clock = 1
        self._kept: tuple[Any, dict[int, int], set[int]] = (None, {}, set())
        self._chances: dict[Callable[[], str | None], float] = {
            self._nothing: 10,
            self._more: 8,
            self._trim: 3,
            self._delete: 3,
            self._acknowledge: 2,
            self._drop: 0.5,
            self._anew: 0.7,
            self._ahead: 0.7,
            self._set_back: 0.7,
            self._keep: 2,
            self._fail_over: 1,
        }
        self.server.on_look = self._announce
        self.on_loss = self.chance.choice([ENDS, CERTAIN, GOES_ON])
        self.start = "earliest" if shared else self.chance.choice(["earliest", "latest", "middle"])

    # -- the stream ---------------------------------------------------------------------------------------------------

    def add(self, low: bool = False) -> None:
        last = max(self.live, default=0) >> 64
        at = last if low else max(self._clock, last)
        for _ in range(self.chance.randint(1, 8)):
            at += self.chance.choice([1, 1, 3])
            self._number += 1
            reply = self.server.ask("XADD", "s", f"{at}-0", "n", self._number)
            if isinstance(reply, bytes):
                self.ids[self._number] = at << 64
                self.live[at << 64] = self._number
                self._lineage.add(self._number)
                self.wanted.add(self._number)
        self._clock = max(self._clock, at)

    def _announce(self) -> None:
        self.announced |= self._lineage

    def disturb(self) -> None:
        """Something happens, most often nothing that takes entries."""
        for _ in range(self.chance.choice([1, 2, 4]) if self.bursts else 1):
            act: Callable[[], str | None] = self.chance.choices(list(self._chances), list(self._chances.values()))[0]
            kind = act()
            if kind is not None:
                self.steps.append(act.__name__)
                self.acts.add(kind)

    def _nothing(self) -> None:
        return None

    def _more(self) -> str:
        self.add()
        return HARMLESS

    def _trim(self) -> str | None:
        if not self.live:
            return None
        left = self.chance.randint(0, len(self.live))
        if left and self.chance.random() < 0.5:
            self.server.ask("XTRIM", "s", "MINID", f"{sorted(self.live)[-left] >> 64}-0")
        else:
            self.server.ask("XTRIM", "s", "MAXLEN", left)
        for entry_id in sorted(self.live)[: len(self.live) - left]:
            del self.live[entry_id]
        return TRIM

    def _delete(self) -> str | None:
        some = self.chance.sample(sorted(self.live), min(len(self.live), self.chance.choice([1, 1, 2, 5, 100])))
        for entry_id in some:
            self.server.ask("XDEL", "s", f"{entry_id >> 64}-0")
            self.deleted.add(self.live.pop(entry_id))
        return DELETE if some else None

    def _acknowledge(self) -> str | None:
        """A worker of another group deletes what it has done."""
        self.server.ask("XGROUP", "CREATE", "s", "workers", "0")
        reply = self.server.ask("XREADGROUP", "GROUP", "workers", "w", "COUNT", 3, "STREAMS", "s", ">")
        if not isinstance(reply, list):
            return None
        done = [entry[0] for entry in reply[0][1]]
        self.server.ask("XACKDEL", "s", "workers", "IDS", len(done), *done)
        self.deleted.update(self.live.pop(ids.parse(entry_id)) for entry_id in done)
        return DELETE

    def _drop(self) -> str:
        self.server.ask("DEL", "s")
        self.live = {}
        self._lineage = set()
        return BACK

    def _anew(self) -> str:
        self._drop()
        self.add(low=self.chance.random() < 0.3)
        return BACK

    def _ahead(self) -> str | None:
        if not isinstance(self.server.ask("XSETID", "s", f"{self._clock + 5}-0"), bytes):
            return None
        self._clock += 5
        return HARMLESS

    def _set_back(self) -> str | None:
        if self.server.ask("XLEN", "s") == 0 and self.server.ask("EXISTS", "s") == 0:
            return None
        self.server.ask("XTRIM", "s", "MAXLEN", 0)
        self.live = {}
        place = counters(self.server.ask("XINFO", "STREAM", "s"))
        self.server.ask("XSETID", "s", f"{max(place[2] >> 64, self._clock // 2)}-0")
        self.add(low=True)
        return BACK

    def _keep(self) -> None:
        """What a replica has, or a log on a disk."""
        self._kept = self.server.ask("DUMP", "s"), dict(self.live), set(self._lineage)

    def _fail_over(self) -> str:
        payload, live, lineage = self._kept
        self.server.ask("DEL", "s")
        if payload is not None:
            self.server.ask("RESTORE", "s", 0, payload)
        self.live, self._lineage = dict(live), set(lineage)
        if self.chance.random() < 0.3:
            self.add(low=True)
        return BACK

    # -- the query ----------------------------------------------------------------------------------------------------

    def run(self) -> "History":
        with reached(self.server), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(self.chance.randint(0, 3)):
                self.disturb() if self.live else self.add()
            self.past, self.acts = self.acts, set()
            query = self._begin()
            if self.amid:
                self.server.between = self._between
            try:
                for _ in range(self.chance.randint(2, 6)):
                    self._batch(query)
                self.server.between = lambda _request: None
                self.steps.append("drain")
                self._drain(query)
            except DataLoss as loss:
                self.error = str(loss)
            self._note(query)
            # That a stream is not there is no loss: that it was there before is.
            self.warned = [text for one in caught if "these are not there" not in (text := str(one.message))]
            query.reader._opened = None
        return self

    def _begin(self) -> Query:
        chance, options = self.chance, {"stream": "s", "failOnDataLoss": self.on_loss, "startingId": self.start}
        state = self.server.ask("XINFO", "STREAM", "s")
        added = counters(state)[1] if isinstance(state, list) else 0
        wanted = sorted(self.live)
        if self.start == "latest":
            wanted = []
        elif self.start == "middle":
            at = chance.choice(wanted or [1 << 64]) + chance.choice([0, 0, 1 << 64])
            options["startingId"] = f"{at >> 64}-0"
            wanted = [one for one in wanted if one >= at]
        self.base = added - len(wanted)
        self.wanted = {self.live[one] for one in wanted}
        if self.shared:
            options |= {"group": "g", "groupMode": "shared", "consumer": "spark"}
        if chance.random() < 0.5:
            options["maxEntriesPerTrigger"] = str(chance.randint(1, 8))
        options |= {"fetchSize": str(chance.choice([1, 2, 5, 100])), "minPartitions": str(chance.choice([1, 1, 2, 3]))}
        self.steps.append(f"begin {options}")
        query = Query("_id string, n bigint", **options)
        if self.shared:
            query.plan()  # joins the group
            self._read(query, disturbed=False)
        return query

    def _note(self, query: Query) -> None:
        """What the query has counted up to now; a driver that was started again goes on from the offsets."""
        for cause, missing in query.reader.missing()["entriesMissingByCause"].items():
            self.counted[cause] = max(self.counted.get(cause, 0), missing)

    def _restart(self, query: Query) -> None:
        if len(query.log) > 1 and self.chance.random() < 0.25:
            self.steps.append("restart")
            self._note(query)
            self.forgot |= self.server.has_messages
            query.start_driver()
            self.server.looks[:] = self._planned  # its offsets are all that it knows

    def _batch(self, query: Query) -> None:
        self.disturb()
        self._restart(query)
        self.steps.append("plan")
        if not self._plan(query):
            return
        if self.shared and self.chance.random() < 0.3:
            self._other_worker()
        self.disturb()
        self._restart(query)
        while not self._read(query, disturbed=True):
            self._restart(query)

    def _plan(self, query: Query) -> bool:
        """Whether there is another batch."""
        before = len(self.server.looks)
        if query.plan() is None:
            return False
        if not self.shared and _position(query.log[-1]) != _position(query.log[-2]):
            self._planned = self.server.looks[before : before + 1] or self._planned
        return True

    def _other_worker(self) -> None:
        reply = self.server.ask("XREADGROUP", "GROUP", "g", "other", "COUNT", 2, "STREAMS", "s", ">")
        if isinstance(reply, list):
            self.steps.append("other worker")
            self.has_others = True
            read = [ids.parse(entry[0]) for entry in reply[0][1]]
            self._finish([self.live[entry_id] for entry_id in read])
            self.passed |= {number for number in self._taken if self.ids[number] < read[-1]}
            self.server.ask("XACK", "s", "g", *[entry[0] for entry in reply[0][1]])

    def _between(self, request: list[bytes]) -> None:
        """Before a request of the query: another consumer reads, or something happens to the stream."""
        if self.chance.random() < 0.1:
            self.steps.append(f"before {request[0].decode()}")
            if self.shared and self.chance.random() < 0.5:
                self._other_worker()
            else:
                self.disturb()
        if self.has_others and b"BLOCK" in request:  # it reads without a look, as another consumer does
            self.passed |= self._taken

    @property
    def _taken(self) -> set[int]:
        return self.wanted - self.done - set(self.live.values())

    def _read(self, query: Query, disturbed: bool) -> bool:
        """The last batch that was planned; False if it died on the way, and is to be run again."""
        if len(query.log) < 2:
            return True
        self.steps.append("read")
        numbers: list[int] = []
        for task in query.tasks():
            pages = query.reader.read(task)
            while (page := self._next_page(pages)) is not None:
                numbers += [row["n"] for row in page.to_pylist()]
                if disturbed and self.chance.random() < 0.15:
                    self.disturb()
                if disturbed and self.chance.random() < 0.03:
                    self.steps.append("task dies")
                    return False
        self._finish(numbers)
        return True

    def _next_page(self, pages: Iterator[Any]) -> Any:
        self.server.asks_for_task = True
        try:
            return next(pages, None)
        finally:
            self.server.asks_for_task = False

    def _finish(self, numbers: list[int]) -> None:
        self.rows += numbers
        self.done.update(numbers)

    def _drain(self, query: Query) -> None:
        for _ in range(200):
            if not self._plan(query):
                return
            self._read(query, disturbed=False)
        raise AssertionError("the query does not come to an end")

    # -- the verdict --------------------------------------------------------------------------------------------------

    @property
    def lost(self) -> set[int]:
        """The numbers of the entries that were to be read and never will be."""
        readable = set() if self.error is None else set(self.live.values())
        return self.wanted - self.done - readable

    @property
    def is_told(self) -> bool:
        return self.error is not None or bool(self.warned) or any(self.counted.values())

    @property
    def is_estimated(self) -> bool:
        """Whether some of what was told was not counted."""
        return any("at most" in text or "not known" in text for text in [*self.warned, self.error or ""])

    @property
    def is_balanced(self) -> bool:
        """Whether nothing that the server has told, or could tell, differs from a history without a loss.

        Each look of the newest driver follows from the one before, and as many entries were added since the query's
        start as it read, each with an id of its own. Then a server to which those were added, and with its last id set
        (XSETID) where it was seen to be above them, would have given the same replies, and would be what this one is:
        no request tells them apart.
        """
        state = self.server.ask("XINFO", "STREAM", "s")
        added = counters(state)[1] if isinstance(state, list) else 0
        looks = self.server.looks
        ascends = all(one <= other for pair in itertools.pairwise(looks) for one, other in zip(*pair, strict=True))
        read = {self.ids[number] for number in self.rows}
        return ascends and added - self.base == len(self.rows) == len(read)


def _position(offset: Any) -> Any:
    """The id that an offset has of the stream, and entries-added there."""
    return [by_key["s"][:2] for by_key in offset["at"].values() if "s" in by_key]
