"""Random requests over all types of values beside a real Redis: replies, what is left in every key, and the log.

The makers (tests/against_redis/makers) make the requests; this is the frame that mixes them, breaks some, puts others
into transactions, takes out of the replies what has no order or is chance's, and compares the whole picture at the
end: of both servers, of an engine that loaded our log, and of the Redis itself after it took our log.
"""

import random
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Final

from penstock.engine.engine import Engine
from tests.against_redis.makers import anything, hashes, lists, scripts, sets, sortedsets, sorting, strings
from tests.against_redis.makers.shared import Maker, elements_of
from tests.support.compared_sides import InProcess, Piped
from tests.support.engines import loaded_engine
from tests.support.first_difference import lines
from tests.support.log import UnitLog
from tests.support.random_words import RandomWords, Request
from tests.support.reference_knowledge import Known
from tests.support.same_result import listed, text_of
from tests.support.shrinking import shortest
from tests.support.wire import Array, Bulk, Error, Map, Set, Value, Verbatim, parse

# Redis 8.6.3 does not forget that a number was out of range (of a score, a count, an id, in Lua): its next SORT finds
# no numbers then. A score that is none lets it forget.
FORGETTING: Final[Request] = ["ZADD", "z1", "none", "member"]

MAKERS: Final[tuple[type[Maker], ...]] = (
    anything.Anything,
    hashes.Hashes,
    lists.Lists,
    scripts.Scripts,
    sets.Sets,
    sortedsets.SortedSets,
    sorting.Sorting,
    strings.Strings,
)

BATCH: Final = 200
PICTURED: Final = ("0", "1", "2")  # databases in which there may be something
UNCUT: Final = (
    "AGGREGATE",  # its COUNT is newer than the reference
    "XADD",  # an id that is cut to `*` is made of the time, which each side reads for itself
    "MULTI",
    "EXEC",
    "DISCARD",
    "HELLO",
    "PEXPIREAT",
    "EXPIREAT",
    "KEYS",
    "SCAN",
    "FLUSHDB",
    "LSET",  # of an index beyond 32 bits Redis takes the lower ones (docs/differences.md)
    "IFDEQ",
    "IFDNE",
    "HSCAN",
    "SSCAN",
    "ZSCAN",
)
DUMPS: Final[dict[bytes, Request]] = {  # requests that show the whole of a value, without its key, by its type
    b"string": ["GET"],
    b"list": ["LRANGE", "0", "-1"],
    b"hash": ["HGETALL"],
    b"set": ["SMEMBERS"],
    b"zset": ["ZRANGE", "0", "-1", "WITHSCORES"],
    b"stream": ["XRANGE", "-", "+"],
}


class Mixture(RandomWords):
    """Requests of several makers, one in twenty broken, some of them in transactions."""

    def __init__(self, chance: random.Random, known: Known, makers: tuple[type[Maker], ...] = MAKERS) -> None:
        super().__init__(chance)
        self.makers = [maker(chance, known) for maker in makers]
        self.shapes = Shapes(self.makers)
        self._rows: list[Callable[[], Request]] = []
        self._sorts = sorting.Sorting in makers
        for maker in self.makers:
            for weight, name, make in maker.rows():
                if known.command(name):
                    self._rows += [make] * weight

    def requests(self, count: int) -> list[Request]:
        made: list[Request] = []
        while len(made) < count:
            if self.chance.random() < 0.02:
                made += self.transaction()
                continue
            request = self.chance.choice(self._rows)()
            if not self.shapes.waits(request):
                made.append(self.broken(request) if self.chance.random() < 0.05 else request)
        if not self._sorts:
            return made
        sorts = [request[0].upper() in ("SORT", "SORT_RO") for request in made]
        return [one for request, is_sort in zip(made, sorts, strict=True) for one in [FORGETTING] * is_sort + [request]]

    def transaction(self) -> list[Request]:
        """MULTI, a few requests, perhaps a broken one, and an end; perhaps with a watched key."""
        made: list[Request] = []
        if self.chance.random() < 0.3:
            made.append(["WATCH", self.makers[0].key(), self.makers[0].key()])
            if self.chance.random() < 0.5:
                made.append(self._certain(waits=False))
        queued = [self._certain(waits=True) for _ in range(self.chance.randrange(0, 6))]
        made += [["MULTI"], *queued]
        if queued and self.chance.random() < 0.1:
            made[-1] = self.broken(made[-1])
        return [*made, ["DISCARD" if self.chance.random() < 0.1 else "EXEC"]]

    def _certain(self, waits: bool) -> Request:
        """A request that chance does not decide; waits: it may be one that would wait outside a transaction."""
        while True:
            request = self.chance.choice(self._rows)()
            if self.shapes.maker_by_chance(request) is None and (waits or not self.shapes.waits(request)):
                return request

    def broken(self, request: Request, whole: Iterable[str] = UNCUT) -> Request:
        """As any; what chance decides stays whole too."""
        broken = request if self.shapes.maker_by_chance(request) else super().broken(request, whole)
        return request if hashes.kills_the_reference(broken) else broken


class Shapes:
    """Replies with what has no order put into one."""

    def __init__(self, makers: list[Maker]) -> None:
        self._by_chance = {name: maker for maker in makers for name in maker.by_chance}
        self._unordered = frozenset().union(*[maker.unordered for maker in makers])
        self._pairwise = frozenset().union(*[maker.pairwise for maker in makers])
        self._scans = {name: paired for maker in makers for name, paired in maker.scans.items()}
        self._blocking = frozenset().union(*[maker.blocking for maker in makers])

    def maker_by_chance(self, request: Request) -> Maker | None:
        return self._by_chance.get(request[0].upper()) if len(request) > 1 else None

    def waits(self, request: Request) -> bool:
        """Whether a request may wait outside a transaction."""
        return request[0].upper() in self._blocking

    def may_wait(self, requests: list[Request]) -> bool:
        """Whether a request would wait outside a transaction, which shortening may lay open."""
        is_open = False
        for request in requests:
            name = request[0].upper()
            is_open = name == "MULTI" or (is_open and name not in ("EXEC", "DISCARD", "RESET"))
            if not is_open and self.waits(request):
                return True
        return False

    def of(self, request: Request, value: Value) -> Value:
        name = request[0].upper()
        if name in self._unordered:
            return in_order(value)
        if name in self._pairwise:
            return _pairs_sorted(value)
        if name in self._scans and isinstance(value, Array) and len(value.elements) == 2:
            cursor, found = value.elements
            return Array((cursor, _pairs_sorted(found) if self._scans[name] else in_order(found)))
        if name == "HELLO" and not isinstance(value, Error):
            return Bulk(b"hello")  # versions, modules, the connection's number
        if name == "INFO" and isinstance(value, Bulk | Verbatim):
            return Bulk(value.text[value.text.find(b"# Keysizes") :])  # all else tells of the server
        return value

    def of_transaction(self, queued: list[Request], value: Value) -> Value:
        """EXEC's reply, each element as the reply to its request."""
        if not isinstance(value, Array) or len(value.elements) != len(queued):
            return value
        return Array(tuple(map(self.of, queued, value.elements)))


def in_order(value: Value) -> Value:
    if isinstance(value, Array | Set):
        return type(value)(tuple(sorted(value.elements, key=repr)))
    return value


def _pairs_sorted(value: Value) -> Value:
    if isinstance(value, Map):
        return Map(tuple(sorted(value.pairs, key=repr)))
    if isinstance(value, Array) and len(value.elements) % 2 == 0:
        pairs = sorted(zip(value.elements[::2], value.elements[1::2], strict=True), key=repr)
        return Array(tuple(word for pair in pairs for word in pair))
    return value


class TypedComparison:
    """A reference and an engine in this process, held beside one another."""

    def __init__(self, reference: Piped, known: Known, makers: tuple[type[Maker], ...] = MAKERS) -> None:
        self.reference = reference
        self.known = known
        self.shapes = Mixture(random.Random(0), known, makers).shapes
        self.handled = 0
        self.refused = 0

    def first_difference(self, requests: list[Request], resp: int) -> list[str]:
        """What differs first, as lines for a reader; none: nothing does."""
        self.ours = InProcess()
        self.log = UnitLog()
        self.ours.engine.effects.log = self.log
        self._queued: list[Request] | None = None
        opening = [["RESET"], ["FLUSHALL"], ["SCRIPT", "FLUSH"], ["HELLO", str(resp)]]  # cjson keeps its settings
        for alone, some in groupby([*opening, *requests], self._stands_alone):
            batch = list(some)
            for start in range(0, len(batch), 1 if alone else BATCH):
                found = self._batch_differs(batch[start : start + (1 if alone else BATCH)])
                if found:
                    return found
            self.ours.check()
        return self._pictures_differ()

    def _stands_alone(self, request: Request) -> bool:
        return self.shapes.maker_by_chance(request) is not None

    # -- replies ----------------------------------------------------------------------------------------------------

    def _batch_differs(self, batch: list[Request]) -> list[str]:
        maker = self.shapes.maker_by_chance(batch[0]) if self._queued is None else None
        if maker is not None:
            return self._chance_differs(maker, batch[0])
        self.reference.send(batch)
        self.ours.send(batch)
        for at, request in enumerate(batch):
            self.handled += 1
            ours = self.ours.answer()
            if self.reference.has_answered(ours):
                self.refused += ours.startswith(b"-")
                self._heed(request, ours)
                continue
            theirs = self.reference.answer()
            self.refused += theirs.startswith(b"-")
            shown = self._shown(request, theirs), self._shown(request, ours)
            self._heed(request, theirs)
            if shown[0] != shown[1]:
                for _ in batch[at + 1 :]:
                    self.reference.answer()
                    self.ours.answer()
                return [f"  in the reply to {text_of(request)}", *lines(*shown)]
        return []

    def _chance_differs(self, maker: Maker, request: Request) -> list[str]:
        """As above, of one request with a reply by chance; both sides hold the same afterwards."""
        self.handled += 1
        held = self._ours_to(maker.look(request))
        self.reference.send([request])
        theirs, ours = parse(self.reference.answer())[0], self._ours_to(request)
        try:
            shown = [maker.without_chance(request, reply, held) for reply in (theirs, ours)]
        except AssertionError as wrong:
            return [f"  in the reply to {text_of(request)}: {wrong}", *lines(theirs, ours)]
        one, other = shown
        if one != other:
            return [f"  in the reply to {text_of(request)}", *lines(one, other)]
        for mending in maker.mended(request, theirs, ours):
            self._ours_to(mending)
        return []

    def _ours_to(self, request: Request) -> Value:
        self.ours.send([request])
        return parse(self.ours.answer())[0]

    def _shown(self, request: Request, reply: bytes) -> Value:
        value = parse(reply)[0]
        if request[0].upper() == "EXEC" and self._queued is not None:
            return self.shapes.of_transaction(self._queued, value)
        return value if reply == b"+QUEUED\r\n" else self.shapes.of(request, value)

    def _heed(self, request: Request, reply: bytes) -> None:
        """Keep what is queued since MULTI."""
        name = request[0].upper()
        if reply == b"+QUEUED\r\n" and self._queued is not None:
            self._queued.append(request)
        elif name == "MULTI" and reply == b"+OK\r\n":
            self._queued = []
        elif name == "EXEC" or (name in ("DISCARD", "RESET") and reply.startswith(b"+")):
            self._queued = None

    # -- what is left -----------------------------------------------------------------------------------------------

    def _pictures_differ(self) -> list[str]:
        """Every key of Redis and of the engine, of an engine that loaded the log, and of the Redis that took it."""
        theirs, ours = picture(self._theirs_to), picture(self._ours_to)
        if theirs != ours:
            return ["  in what is left in the end", *lines(theirs, ours)]
        replayed = picture(answerer(loaded_engine(self.log.units, 1)))
        if replayed != ours:
            return ["  in what the log gives back", *lines(replayed, ours)]
        for request in ([b"RESET"], [b"FLUSHALL"]):
            self._theirs_to([word.decode() for word in request])
        self.reference.send_raw(b"".join(self.log.units) + MARKED)
        while self.reference.answer() != MARK:
            pass
        taken = picture(self._theirs_to)
        return [] if taken == ours else ["  in what Redis makes of the log", *lines(taken, ours)]

    def _theirs_to(self, request: Request) -> Value:
        self.reference.send([request])
        return parse(self.reference.answer())[0]

    # -- the shortest -----------------------------------------------------------------------------------------------

    def shown(self, seed: str, requests: list[Request], resp: int, found: list[str]) -> str:
        """The shortest dialogue found that still differs, and how."""
        handled, refused = self.handled, self.refused

        def differs(fewer: list[Request]) -> bool:
            return not self.shapes.may_wait(fewer) and bool(self.first_difference(fewer, resp))

        if differs(requests):
            requests = shortest(requests, differs)
            found = self.first_difference(requests, resp) or found
        else:
            requests = [["(seen once; the last requests were)"], *requests[-20:]]
        self.handled, self.refused = handled, refused
        return "\n".join([f"seed {seed}, RESP{resp}", *listed(map(text_of, requests), len(requests)), *found])


MARK: Final = b"$8\r\nall done\r\n"
MARKED: Final = b"*2\r\n$4\r\nECHO\r\n" + MARK


def picture(ask: Callable[[Request], Value]) -> dict[str, object]:
    """All that is held, by database and key: the value, and when it expires."""
    ask(["RESET"])
    found: dict[str, object] = {}
    for number in PICTURED:
        ask(["SELECT", number])
        for name in sorted(elements_of(ask(["KEYS", "*"])), key=repr):
            assert isinstance(name, Bulk), "KEYS answers names"
            key = name.text.decode()
            type_of = ask(["TYPE", key])
            dump, *options = DUMPS[type_of.text] if hasattr(type_of, "text") else ["GET"]
            value = ask([dump, key, *options])
            if dump == "HGETALL":
                value = _pairs_sorted(value)
                fields = [word.text.decode() for word in elements_of(value)[::2] if isinstance(word, Bulk)]
                found[f"{number} {key} fields"] = ask(["HPEXPIRETIME", key, "FIELDS", str(len(fields)), *fields])
            elif dump == "SMEMBERS":
                value = in_order(value)
            found[f"{number} {key}"] = value
            found[f"{number} {key} expires"] = ask(["PEXPIRETIME", key])
    ask(["SELECT", "0"])
    return found


def answerer(engine: Engine) -> Callable[[Request], Value]:
    session = engine.server.connect()
    return lambda request: parse(engine.handle(session, [word.encode() for word in request]))[0]


def compare_types(
    reference: Piped, known: Known, seed: str, count: int, makers: tuple[type[Maker], ...] = MAKERS
) -> tuple[TypedComparison, str]:
    """A run of so many random requests, two thousand a scenario; and the first difference as a text."""
    comparison = TypedComparison(reference, known, makers)
    for number in range(-(-count // 2000)):
        named = f"{seed}/{number}"
        chance = random.Random(named)
        requests = Mixture(chance, known, makers).requests(min(count, 2000))
        resp = chance.choice((2, 3))
        found = comparison.first_difference(requests, resp)
        if found:
            return comparison, comparison.shown(named, requests, resp, found)
    return comparison, ""
