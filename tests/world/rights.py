"""A user with rules that tries every command with keys, by every way, and the judge of what it read and changed.

The user has `own:*`, may read `seen:*` and write `drop:*`; `hidden:*` it may not touch. What it may not read contains
a secret, which is then in no reply; what it may not write is in the end as its owner left it. A request for keys of its
own is not refused because of a key.
"""

import asyncio
from typing import TYPE_CHECKING, Any, Final

import hiredis

from tests.support.key_requests import KeyRequests, rows_with_keys
from tests.support.keyspace_picture import KEPT, keyspace
from tests.world import judges
from tests.world.actors import OK, Actor, Write
from tests.world.client import Client, Lost, is_refusal
from tests.world.process import Machine

if TYPE_CHECKING:
    from tests.world.world import World

USER: Final = b"intruder"
SECRET: Final = b"s3cr3t"
RULES: Final = (
    b"reset", b"on", b"nopass", b"+@all", b"-@dangerous", b"-@admin", b"-flushall", b"-flushdb", b"-swapdb", b"+sort",
    b"+restore", b"&*", b"~own:*", b"%R~seen:*", b"%W~drop:*",
)  # fmt: skip
BY_TYPE: Final = {  # a request that makes a value with a text in it
    "string": "SET {key} {text}", "list": "RPUSH {key} {text} 3", "hash": "HSET {key} m {text} g {text}",
    "set": "SADD {key} m {text}", "zset": "GEOADD {key} 13.361 38.115 m 13.5 38.2 {text} 13.2 38.1 store",
    "stream": "XADD {key} 5-0 m {text}", "array": "ARSET {key} 0 {text}",
}  # fmt: skip
TYPES: Final = {
    "bitmap": "string", "geo": "zset", "sorted-set": "zset", "hyperloglog": "string", "hash": "hash", "set": "set",
    "list": "list", "stream": "stream", "array": "array",
}  # fmt: skip
ZONES: Final = ("own", "own", "own", "seen", "drop", "hidden")
LEFT: Final = ("seen", "hidden")  # the user may not write them
SECRETS: Final = ("drop", "hidden")  # nor read these
FORWARDS: Final = (  # the owner's: what is added to one stream goes into another
    b"XADD seen:feed 5-0 at 99999999999999", b"PENSTOCK.POLICY seen:feed FORWARD hidden:stream AT at",
)  # fmt: skip
TRIED: Final = (  # beside what the table of commands gives
    b"COPY seen:feed own:feed REPLACE", b"COPY seen:feed own:stream REPLACE", b"XADD own:feed * at 1",
    b"XADD own:stream * at 1", b"PENSTOCK.POLICY own:stream FORWARD hidden:stream",
    b"PENSTOCK.POLICY own:stream GROUP g DEADLETTER hidden:stream", b"XGROUP CREATE own:stream g 0 MKSTREAM",
    b"XREADGROUP GROUP g a BLOCK 300 STREAMS own:stream hidden:stream > >",
    b"XREADGROUP GROUP g a STREAMS own:stream >", b"XNACK own:stream g FATAL IDS 1 5-0",
    b"BLPOP own:list hidden:list 1", b"BLMOVE own:list seen:list LEFT LEFT 1",
    b"SORT own:list BY hidden:* GET hidden:*", b"SORT own:list STORE hidden:list", b"SORT seen:list STORE own:list",
    b"GEORADIUS own:zset 13 38 500 km STORE seen:zset", b"GEORADIUS seen:zset 13 38 500 km STORE own:zset",
    b"XADD own:stream * m v",
)  # fmt: skip
CALL: Final = b"return redis.pcall(unpack(ARGV))"
OF_A_KEY: Final = (b"access a key", b"access one of the keys")
LONGEST_S: Final = 3.0
SCRIPTS: Final = frozenset(("EVAL", "EVAL_RO", "EVALSHA", "EVALSHA_RO", "FCALL", "FCALL_RO"))  # a way, not a command
ELSEWHERE: Final = SCRIPTS | {"MIGRATE"}
SHOWN: Final = 3


class Owner(Actor):
    """Writes each key once, and then leaves it."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        self.kept: dict[bytes, tuple[Write, object]] = {}  # by key: the writing, and what was there then
        self.is_done = False
        self._left = [
            (f"{zone}:{kind}".encode(), line.format(key=f"{zone}:{kind}", text=_text(zone)).encode())
            for zone in dict.fromkeys(ZONES)
            for kind, line in BY_TYPE.items()
        ]
        self._left += [(b"seen:feed", line) for line in FORWARDS]

    async def step(self) -> None:
        if not self._left:
            self.is_done = True
            await asyncio.sleep(0.5)
            return
        key, line = self._left[0]
        write = self.begin(key, [])
        await self.client.ask(b"DEL", key) if line.startswith(b"XADD") else None
        await self.all_of([tuple(line.split())], [write])
        if write.outcome != OK:
            return
        self.kept[key] = (write, _picture(self.machine).get(f"0 {key.decode()}"))
        self._left.pop(0)


class Intruder(Actor):
    """Sends requests for keys of all zones: alone, in transactions, by scripts, and blocked."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        self.objections: list[str] = []
        self._rows = [row for row in rows_with_keys() if row.name not in ELSEWHERE]
        self._known: Any = None  # the connection that has logged in

    async def step(self) -> None:
        owner = next((actor for actor in self.world.actors if isinstance(actor, Owner)), None)
        if owner is None or not owner.is_done:
            await asyncio.sleep(0.1)
            return
        if self._known is not self.client.connected:
            await self._log_in()
        words, is_own = self._drawn()
        requests = self._by_some_way(words)
        try:
            async with asyncio.timeout(LONGEST_S):
                replies = await self.all_of(requests, [None] * len(requests))
        except TimeoutError:  # it waits for what does not come
            self.client.reset()
            return
        self.world.story.tell(self.name, f"{b' '.join(words)!r} in {len(requests)}: {replies[-1]!r}"[:300])
        self._judge(words, replies, is_own)

    async def _log_in(self) -> None:
        replies = [await one for one in self.client.send((b"ACL", b"SETUSER", USER, *RULES), (b"AUTH", USER, b"x"))]
        if any(is_refusal(reply) for reply in replies):
            self.client.reset()
            raise Lost
        self._known = self.client.connected

    def _drawn(self) -> tuple[tuple[bytes, ...], bool]:
        """A request; whether all its keys are the user's own."""
        if self.chance.random() < 0.3:
            words = self.chance.choice(TRIED).split()
            return tuple(words), not any(word.startswith((b"seen:", b"hidden:", b"drop:")) for word in words)
        row = self.chance.choice(self._rows)
        kinds = [TYPES.get(row.group) or self.chance.choice(list(BY_TYPE))]
        if self.chance.random() < 0.2:
            kinds = list(BY_TYPE)
        names = tuple(f"{zone}:{kind}" for zone in ZONES for kind in kinds)
        made = KeyRequests(self.chance, names).made_of(row)
        named = made.keys | {word for word in made.words if b":" in word}
        return tuple(made.words), all(key.startswith(b"own:") for key in named)

    def _by_some_way(self, words: tuple[bytes, ...]) -> list[tuple[bytes, ...]]:
        way = self.chance.random()
        if way < 0.5:
            return [words]
        if way < 0.7:
            return [(b"MULTI",), words, (b"EXEC",)]
        if way < 0.85:
            return [(b"EVAL", CALL, b"0", *words)]
        return [words] * self.chance.choice((2, 5))

    def _judge(self, words: tuple[bytes, ...], replies: list[Any], is_own: bool) -> None:
        for text in _texts(replies):
            if SECRET in text and SECRET not in b" ".join(words):
                self.objections.append(f"{USER.decode()} reads {text!r} by {b' '.join(words)!r}")
            if is_own and any(refusal in text for refusal in OF_A_KEY):
                self.objections.append(f"{USER.decode()} is refused {b' '.join(words)!r}: {text!r}")


def _picture(machine: Machine) -> dict[str, object]:
    """All keys with everything that they have: values, times of expiry, groups, policies."""
    assert machine.process is not None, "it has just answered"
    return keyspace(machine.process.engine, KEPT)


def _text(zone: str) -> str:
    return SECRET.decode() if zone in SECRETS else "plain"


def _texts(reply: Any) -> list[bytes]:
    if isinstance(reply, list):
        return [text for one in reply for text in _texts(one)]
    if isinstance(reply, hiredis.ReplyError):
        return [str(reply).encode()]
    return [reply] if isinstance(reply, bytes) else []


async def judge(world: "World", client: Client) -> list[str]:
    """What the users noted, and keys that are not as their owner left them."""
    keeping, objections = world.keeping(), []
    for actor in world.actors:
        if isinstance(actor, Intruder):
            objections += actor.objections
        if not isinstance(actor, Owner):
            continue
        there = _picture(world.machine)
        for key, (write, left) in actor.kept.items():
            name, found = key.decode(), there.get(f"0 {key.decode()}")
            if name.startswith(LEFT) and found != left and not (keeping.may_lose(write) or keeping.may_forget):
                objections.append(f"{name} is not as its owner left it: {judges.difference(left, found)}")
    return objections[:SHOWN]
