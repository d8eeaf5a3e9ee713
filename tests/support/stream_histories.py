"""Random histories of streams: every request that changes one, with every option, and time that passes between them.

The command table gives requests their form (table_requests.py): a command or an option that is added to it comes in by
itself. Ids are near those that are added next, so that they are often there, pending or deleted.

Two requests are no request: `PASS ms` turns the clock, at times back; `RESTART log` (or `base`, `rdb`) goes on with a
server that has loaded what is kept.
"""

import functools
import random
from collections.abc import Callable
from typing import Final

from penstock.commands.policies.policy_arguments import GROUP_OPTIONS
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine
from tests.support.random_words import Request
from tests.support.table_requests import TableRequests, Vocabulary, Words, option_names, rows_by_name

PASS: Final = "PASS"
RESTART: Final = "RESTART"
WAYS: Final = ("log", "base", "rdb")
KEYS: Final = (*["s"] * 18, "t", "t", "u", "text")
GROUPS: Final = ("g", "g", "g", "h")
CONSUMERS: Final = ("a", "b", "c", "d")
WEIGHTS: Final = {  # how often each command is asked; every other one that writes to streams OTHERWISE
    "XADD": 24, "XREADGROUP": 24, "XDEL": 8, "XCLAIM": 6, "XAUTOCLAIM": 5, "XNACK": 4, "XGROUP|CREATE": 6, "XTRIM": 4,
    "XDELEX": 4, "XACKDEL": 4, "XACK": 4, "XGROUP|DESTROY": 0.5, "PENSTOCK.POLICY": 8, "XIDMPRECORD": 0.5,
    "DEL": 0.3, "UNLINK": 0.3, "RENAME": 0.5, "RENAMENX": 0.5, "MOVE": 0.4, "COPY": 1, "SWAPDB": 0.4, "FLUSHDB": 0.2,
    "SELECT": 0.4, "PEXPIRE": 0.4, "PEXPIREAT": 0.3, "PERSIST": 0.5, "SET": 0.3, "RESTORE": 0.5,
}  # fmt: skip
LOSES: Final = (
    "XGROUP",
    "DEL",
    "UNLINK",
    "RENAME",
    "RENAMENX",
    "MOVE",
    "SWAPDB",
    "FLUSHDB",
    "SELECT",
    "SET",
    "RESTORE",
)
OTHERWISE: Final = 2.0
NEWER: Final = (
    "XNACK",
    "PENSTOCK.XNACK",
    "PENSTOCK.POLICY",
    "PENSTOCK.DELCONSUMER",
    "XCFGSET",
    "XIDMPRECORD",
    "RESTORE",
)
POLICY: Final = "PENSTOCK.POLICY"
POLICIES: Final = {  # how likely an option is that others need, or that does much; every other one 0.1
    "ACKWAIT": 0.8, "KEY": 0.4, "PRIORITY": 0.3, "DEADLETTER": 0.5, "BACKOFF": 0.3, "MAXLEN": 0.4, "MAXBYTES": 0.3,
    "condition": 0.6, "IDLEGROUP": 0.3, "FORWARD": 0.2,
}  # fmt: skip


class Histories(TableRequests):
    """Requests of one history.

    reads_history: XREADGROUP may read what a consumer has; no log has what that does. A history has producers or
    XSETID: a base of requests cannot have an idempotent id of an entry above the stream's last id (XIDMPRECORD refuses
    it). It has policies, or a clock that is set back: that has holds begin again that had ended, which no log has.
    """

    def __init__(self, chance: random.Random, for_older: bool = False) -> None:
        """for_older: nothing is sent that an older Redis has no words for, however it is put (docs/log.md)."""
        super().__init__(chance)
        self.reads_history = chance.random() < 0.25
        self.has_producers = chance.random() < 0.5 and not for_older
        self._since_ms = 0  # the time that has passed
        self._made = [f"{NOW_MS}-1"]  # ids of entries that may have been added, the last ones
        self.vocabulary = _vocabulary(self)
        rows = rows_by_name().items()
        self._weights = {name: OTHERWISE for name, row in rows if row.group == "stream" and "write" in row.flags}
        self._weights |= WEIGHTS
        self._has_policies = chance.random() < 0.5
        if not self._has_policies:
            self._weights = {name: one for name, one in self._weights.items() if not name.startswith("PENSTOCK.")}
        if self.has_producers:
            del self._weights["XSETID"]
        if for_older:
            self._weights = {name: one for name, one in self._weights.items() if name not in NEWER}

    def history(self, count: int) -> list[Request]:
        """So many requests, and those that belong to the last of them."""
        made: list[Request] = [_group("s")]
        while len(made) < count:
            made += self._step()
        return made

    def _step(self) -> list[Request]:
        roll = self.chance.random()
        if roll < 0.12:
            passed_ms = self.chance.choice((1, 1, 40, 40, 900, 1100, 7000, 1 if self._has_policies else -30))
            self._since_ms += passed_ms
            return [[PASS, str(passed_ms)]]
        if roll < 0.13:
            return [[RESTART, self.of(*WAYS)]]
        if roll < 0.16:
            return [["EVAL", "return redis.call(unpack(ARGV))", "0", *self._request()]]
        if roll < 0.18:
            return [["MULTI"], *[self._request() for _ in range(self.chance.randrange(1, 5))], ["EXEC"]]
        request = self._request()
        return [request, _group(self.of(*KEYS[:-1]))] if request[0] in LOSES and roll < 0.8 else [request]

    def _request(self) -> Request:
        names = list(self._weights)
        request = self.of_command(self.chance.choices(names, list(self._weights.values()))[0])
        return self.broken(request) if self.chance.random() < 0.03 else request

    # -- words ------------------------------------------------------------------------------------------------------

    def near(self, request: Request) -> str:
        """An id that may be there."""
        if self.chance.random() < 0.03:
            return self.of("0-0", "0", "18446744073709551615-18446744073709551615", "x", "1")
        return self.chance.choice(self._made)

    def high(self, request: Request) -> str:
        """An id above which there is little."""
        return self.of(self._made[-1], self._made[-1], f"{NOW_MS + self._since_ms + 50}-0", self.near(request))

    def new_id(self, request: Request) -> str:
        now_ms = NOW_MS + self._since_ms
        last_ms, _, seq = self._made[-1].partition("-")
        made = f"{last_ms}-{int(seq) + 1}" if int(last_ms) >= now_ms else f"{now_ms}-1"
        self._made = [*self._made[-14:], made]
        if any(word.upper() in ("IDMP", "IDMPAUTO") for word in request):
            return "*"
        return self.of(made, made, made, made, "*", "*", f"{made.partition('-')[0]}-*", self.near(request))

    def place(self, request: Request) -> str:
        """Where XREADGROUP reads from."""
        return self.of(">", ">", "0", self.near(request)) if self.reads_history else ">"

    def threshold(self, request: Request) -> str:
        strategy = next((word for word in reversed(request) if word.upper() in ("MAXLEN", "MINID")), "MAXLEN")
        return self.of("0", "1", "2", "4", "8") if strategy.upper() == "MAXLEN" else self.near(request)


def _vocabulary(made: Histories) -> Vocabulary:
    few = ("0", "1", "2", "3", "5", "100")
    words: dict[str, Words] = {
        "key": KEYS, "group": GROUPS, "consumer": CONSUMERS, "id": made.near, "start": made.near, "lastid": made.near,
        "last-id": made.high, "max-deleted-id": lambda request: made.of("0-0", made.near(request)),
        "stream-id": made.near, "threshold": made.threshold, "XADD id": made.new_id, "XREADGROUP id": made.place,
        "count": few, "integer": few, "string": ("k", "x", "y"), "serialized-value": lambda _: payload(),
        "ttl": ("0", "0", "5000"),
        "min-idle-time": ("0", "0", "50", "1000"), "ms": ("0", "40", "5000", "-5"), "milliseconds": few,
        "unix-time": ("0", str(NOW_MS + 900), str(NOW_MS - 5000), str(NOW_MS + 99_000), "x"),
        "PEXPIRE milliseconds": ("1000", "5000", "-1"), "double": few,
        "deadletter-key": ("dead", "dead", "s"), "forward-key": ("t", "u", "s"), "maxcount": ("1", "3"),
        "maxsize": ("1", "100", "1000"), "duration": ("1", "5", "86400"), "db": ("0", "1"), "index": ("0", "0", "1"),
        "destination-db": ("0", "1"), "index1": ("0",), "index2": ("1", "0"),
    }  # fmt: skip
    for name in ("maxlen", "max", "PENSTOCK.XNACK milliseconds"):
        words[name] = ("0", "3", "5", "500", "1000", "3000")
    words[f"{POLICY} milliseconds"] = ("5", "40", "500", "1000", "3000")
    words["bytes"] = ("1", "4", "9", "30")
    words["XADD value"] = ("k", "x", "y", "x", "y", "x", "y", "9", "0", "+40", "1000")  # keys, levels and times
    words["until"] = ("+40", "+900", "NONE", str(NOW_MS + 900))
    chances: dict[str, float | Callable[[Request], float]] = {
        "BLOCK": 0.15, "NOMKSTREAM": 0.1, "MKSTREAM": 0.8, "RESET": 0.05,
        "LIMIT": lambda request: 0.4 if "~" in request else 0.02, "MAXCOUNT": 0.1, "MAXSIZE": 0.1,
        "idmp": 0.3 if made.has_producers else 0, "XADD trim": 0.3, "RESTORE REPLACE": 0.9, "XADD *": 0,
    }  # fmt: skip
    chances[f"{POLICY} GROUP"] = 0.6
    for name in option_names(POLICY):
        if name not in ("GROUP", "RESET"):
            chances[f"{POLICY} {name}"] = functools.partial(_chance_of_policy, name)
    return Vocabulary(words, chances, {"XREADGROUP key": 2}, first=(f"{POLICY} GROUP",))


def _chance_of_policy(name: str, request: Request) -> float:
    """How likely an option of PENSTOCK.POLICY is: never one of a group for a stream, or the other way round."""
    is_of_group = GROUP_OPTIONS.has(name.encode())
    return POLICIES.get(name, 0.1) if is_of_group == ("GROUP" in map(str.upper, request)) else 0


def _group(key: str) -> Request:
    """Gives a stream a group, and makes it if it is not there."""
    return ["XGROUP", "CREATE", key, "g", "0", "MKSTREAM"]


@functools.cache
def payload() -> str:
    """What DUMP gives of a stream with groups, each byte a character."""
    client = Dialogue(make_engine())
    client("XADD s 1-0 k x", "XADD s 2-0 k y", "XADD s 3-0 k x", "XGROUP CREATE s g 0", "XGROUP CREATE s h 2")
    client("XREADGROUP GROUP g a COUNT 2 STREAMS s >", "XGROUP CREATECONSUMER s h d", "XDEL s 1-0")
    dumped = client("XNACK s g FAIL IDS 1 2-0", "DUMP s")
    assert isinstance(dumped, bytes)
    return dumped.decode("latin-1")
