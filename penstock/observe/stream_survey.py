"""The groups of any Redis-compatible server, asked for by its commands and ranked by what needs an operator.

`penstock top` and doctor ask by a WireClient, the console by its own connection: what is asked is a generator that
yields requests and is sent their replies.
"""

from collections.abc import Generator, Iterable
from heapq import nsmallest
from typing import Any, Final, NamedTuple, TypeAlias

from penstock.errors import UsageError
from penstock.observe import urgency
from penstock.wire_client import WireClient, info_fields

SCANNED: Final = b"1000"  # keys a SCAN
SCANS: Final = 20  # of a look
AT_ONCE: Final = 100  # streams in a pipeline: the server serves others between two
FIRST_ASKED: Final = 10_000  # streams of the first look
ASKED: Final = 1_000  # streams of a later look, in turns
WATCHED: Final = 200  # groups that every look asks for, the most urgent ones

Requests: TypeAlias = list[list[bytes]]
Asking: TypeAlias = Generator[Requests, list[Any], list["GroupState"]]


class GroupState(NamedTuple):
    """One group. `lag` is None where the server does not know it; `oldest_idle_ms` where nothing is pending.

    oldest_idle_ms: of the pending entry with the smallest id. gone: consumers without a sign. growth: of the lag, since
    this group was asked for before. dead_letters: moved by the group's policy, to dead_letter. limits: what its PAUSE,
    RATE and INFLIGHT let out now, what has expired, and why dead letters cannot move, in words; is_paused: nothing at
    all; is_blocked: they cannot.
    """

    key: bytes
    name: bytes
    consumers: int
    pending: int
    lag: int | None
    oldest_idle_ms: int | None
    gone: int = 0
    dead_letters: int = 0
    growth: int = 0
    limits: str = ""
    is_paused: bool = False
    is_blocked: bool = False
    dead_letter: bytes = b""

    @property
    def rank(self) -> urgency.Rank:
        """Where the group stands among others."""
        idle_ms, lag = self.oldest_idle_ms or 0, self.lag or 0
        return urgency.rank(idle_ms, self.growth, self.gone, self.dead_letters, lag, self.pending)


class StreamState(NamedTuple):
    """One stream; `added` counts the entries that were ever added."""

    key: bytes
    length: int
    added: int


def ranked(groups: Iterable[GroupState]) -> list[GroupState]:
    """The most urgent group first, those alike by names."""
    return sorted(groups, key=lambda one: (one.rank, one.key, one.name))


class Watch:
    """The streams of one server (of its database), as far as they are known, look by look.

    Every look goes on with SCAN, asks for the groups that were the most urgent, and for some other streams in turns.
    """

    def __init__(self) -> None:
        self.keys: dict[bytes, None] = {}  # streams, in the order in which they were found
        self.is_complete = False  # SCAN has met all keys once
        self.asked = 0  # streams whose groups are known
        self._groups: dict[bytes, list[GroupState]] = {}
        self._cursor = b"0"
        self._met: set[bytes] = set()  # in this walk of SCAN
        self._turn: list[bytes] = []  # streams that are asked for before any is asked again

    @property
    def groups(self) -> list[GroupState]:
        """The groups that are known, ranked."""
        return ranked(group for groups in self._groups.values() for group in groups)

    @property
    def is_between_walks(self) -> bool:
        """Whether SCAN has met all keys, and begins again."""
        return self.is_complete and self._cursor == b"0"

    def found(self, reply: Any) -> bool:
        """Take a reply of SCAN ... TYPE stream; whether it went on. UsageError for an error."""
        if not isinstance(reply, list):
            raise UsageError(str(reply))
        before, self._cursor = self._cursor, reply[0]
        self._met.update(reply[1])
        self.keys.update(dict.fromkeys(reply[1]))
        if self._cursor == b"0":
            for gone in self.keys.keys() - self._met:
                del self.keys[gone]
                self._groups.pop(gone, None)
            self._met = set()
            self.is_complete = True
        return self._cursor != before

    def scan_request(self) -> list[bytes]:
        return [b"SCAN", self._cursor, b"MATCH", b"*", b"COUNT", SCANNED, b"TYPE", b"stream"]

    def follow(self, keys: Iterable[bytes]) -> None:
        """Take the streams that there are from elsewhere than `found`."""
        self.keys = dict.fromkeys(keys)
        self._groups = {key: groups for key, groups in self._groups.items() if key in self.keys}
        self.asked = len(self._groups)

    def groups_of(self, key: bytes) -> list[GroupState]:
        """The groups of a stream, as far as they are known."""
        return self._groups.get(key, [])

    def due(self, count: int, watched: int = WATCHED) -> list[bytes]:
        """The streams to ask for: those of the most urgent groups, and so many others."""
        urgent = {one.key: None for one in nsmallest(watched, self.groups, key=lambda one: one.rank)}
        if not self._turn:
            self._turn = [key for key in self.keys if key not in self._groups] or list(self.keys)
        some, self._turn = self._turn[:count], self._turn[count:]
        return list(urgent | dict.fromkeys(some))

    def take(self, key: bytes, groups: list[GroupState]) -> None:
        """The groups of a stream, as they are now."""
        lags = {one.name: one.lag for one in self._groups.get(key, ())}
        self._groups[key] = [one._replace(growth=_growth(lags.get(one.name), one.lag)) for one in groups]
        self.asked = len(self._groups)

    def look(self, keys: list[bytes]) -> Generator[Requests, list[Any], None]:
        """Ask for the groups of streams: yields requests, is sent their replies."""
        for start in range(0, len(keys), AT_ONCE):
            some = keys[start : start + AT_ONCE]
            found: dict[bytes, list[GroupState]] = {key: [] for key in some}
            for group in (yield from groups_of(some)):
                found[group.key].append(group)
            for key, groups in found.items():
                self.take(key, groups)


def _growth(before: int | None, lag: int | None) -> int:
    return 0 if before is None or lag is None else lag - before


def groups_of(keys: list[bytes]) -> Asking:
    """The groups of some streams: yields requests, is sent their replies. A stream that is gone has none."""
    listed = yield [[b"XINFO", b"GROUPS", key] for key in keys]
    groups = [(key, fields_of(one)) for key, reply in zip(keys, listed, strict=True) for one in elements(reply)]
    busy = [(key, one) for key, one in groups if one[b"pending"] or (one.get(b"lag") or 0) > 0]
    questions: Requests = []
    for key, one in busy:
        questions += [[b"XPENDING", key, one[b"name"], b"-", b"+", b"1"], [b"XINFO", b"CONSUMERS", key, one[b"name"]]]
    replies = (yield questions) if questions else []
    asked = {(key, one[b"name"]): replies[2 * at : 2 * at + 2] for at, (key, one) in enumerate(busy)}
    return [_state(key, one, *asked.get((key, one[b"name"]), ([], []))) for key, one in groups]


def _state(key: bytes, about: dict[bytes, Any], oldest: Any, consumers: Any) -> GroupState:
    pending, lag = about[b"pending"], about.get(b"lag")
    found = elements(oldest)
    policy = fields_of(about.get(b"penstock-policy"))
    idle_and_pending = [(one[b"idle"], one[b"pending"]) for one in map(fields_of, elements(consumers))]
    return GroupState(
        key,
        about[b"name"],
        about[b"consumers"],
        pending,
        lag,
        max(int(found[0][2]), 0) if pending and found else None,
        urgency.gone(idle_and_pending, lag or 0),
        policy.get(b"dead-lettered", 0),
        limits=limits_of(policy),
        is_paused=policy.get(b"pause") is not None,
        is_blocked=policy.get(b"blocked") is not None,
        dead_letter=policy.get(b"deadletter") or b"",
    )


def limits_of(policy: dict[bytes, Any]) -> str:
    """The limits of a group's policy now, from XINFO.

    >>> limits_of({b"pause": -1, b"rate": 9, b"rate-ms": 1000, b"rated": 7, b"inflight": 5, b"owned": 4, b"expired": 0})
    'paused, 7 of 9 in 1000 ms, 4 of 5 in flight'
    """
    words: list[str] = []
    if policy.get(b"pause") is not None:
        words.append("paused" if policy[b"pause"] < 0 else f"paused until {policy[b'pause']}")
    if policy.get(b"rate") is not None:
        words.append(f"{policy[b'rated']} of {policy[b'rate']} in {policy[b'rate-ms']} ms")
    if policy.get(b"inflight") is not None:
        words.append(f"{policy[b'owned']} of {policy[b'inflight']} in flight")
    if policy.get(b"expired"):
        words.append(f"{policy[b'expired']} expired")
    if policy.get(b"blocked"):
        words.append(f"nothing moves: {text_of(policy[b'blocked'])}")
    return ", ".join(words)


def elements(reply: Any) -> list[Any]:
    """An array's elements; none for an error: the stream is gone, or the user may not read it."""
    return reply if isinstance(reply, list) else []


def fields_of(reply: Any) -> dict[bytes, Any]:
    """A flat array of names and values as a dict; empty for an error."""
    flat = elements(reply)
    return dict(zip(flat[::2], flat[1::2], strict=True))


def text_of(name: bytes) -> str:
    """A name as a text; bytes that are not UTF-8 are shown as \\xff."""
    return name.decode(errors="backslashreplace")


# -- over a WireClient ------------------------------------------------------------------------------------------------


class Survey(NamedTuple):
    """One look: INFO's fields, streams and groups, the most urgent first. `keys` are streams that SCAN has met."""

    fields: dict[str, str]
    streams: list[StreamState]
    groups: list[GroupState]
    keys: int
    asked: int
    is_complete: bool


def take(client: WireClient, watch: Watch | None = None) -> Survey:
    """Ask a server. The first look of a Watch asks for FIRST_ASKED streams. UsageError where it refuses."""
    info = client.ask(b"INFO")
    if not isinstance(info, bytes):
        raise UsageError(str(info))
    watch = Watch() if watch is None else watch
    is_first = not watch.keys
    scan(client, watch)
    run(client, watch.look(watch.due(FIRST_ASKED if is_first else ASKED)))
    groups = watch.groups
    shown = list(dict.fromkeys([*(one.key for one in groups[:WATCHED]), *sorted(watch.keys)]))[:WATCHED]
    return Survey(info_fields(info), _streams(client, shown), groups, len(watch.keys), watch.asked, watch.is_complete)


def scan(client: WireClient, watch: Watch) -> None:
    """SCANS calls of SCAN that go on, or fewer if all keys were met.

    A Penstock with many keys puts them in order first: meanwhile the cursor stays where it is.
    """
    calls = 0
    while calls < SCANS:
        calls += watch.found(client.ask(*watch.scan_request()))
        if watch.is_between_walks:
            break


def run(client: WireClient, asking: Generator[Requests, list[Any], Any]) -> None:
    """Send what a generator yields, and send it the replies."""
    try:
        requests = next(asking)
        while True:
            requests = asking.send(client.ask_all(requests))
    except StopIteration:
        return


def _streams(client: WireClient, keys: list[bytes]) -> list[StreamState]:
    replies = [fields_of(one) for one in client.ask_all([[b"XINFO", b"STREAM", key] for key in keys])]
    found = [(key, one) for key, one in zip(keys, replies, strict=True) if one]
    return [StreamState(key, one[b"length"], one.get(b"entries-added", one[b"length"])) for key, one in found]
