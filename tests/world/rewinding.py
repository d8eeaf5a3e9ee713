"""Ids that go back: XSETID raises and lowers the last id of a stream, and ids are used again; beside a naive model.

An id cannot go below that of an entry that XDEL deleted, but below what was trimmed, and what is pending.
The model is what the documentation of each command says, and has one client, so that each reply has one answer. When
the fate of a request is not known, the client goes on with another stream.
"""

from typing import TYPE_CHECKING, Any, Final

from tests.world.actors import Actor
from tests.world.client import Client, is_refusal
from tests.world.process import Machine

if TYPE_CHECKING:
    from tests.world.world import World

GROUP: Final = b"g"
CONSUMERS: Final = (b"a", b"b", b"c")
SHOWN: Final = 3


class Model:
    """A stream with one group. pending: the consumer of each id, also of ids that are not there any more."""

    def __init__(self) -> None:
        self.entries: dict[int, bytes] = {}
        self.last_id = 0
        self.delivered_to = 0  # the group's last id
        self.pending: dict[int, bytes] = {}

    def delivered(self, consumer: bytes, count: int) -> list[int]:
        """The next new entries, which the consumer has now."""
        found = [one for one in sorted(self.entries) if one > self.delivered_to][:count]
        self.pending.update(dict.fromkeys(found, consumer))
        self.delivered_to = max([self.delivered_to, *found])
        return found

    def trimmed(self, length: int) -> int:
        """How many of the oldest entries go."""
        gone = sorted(self.entries)[: max(len(self.entries) - length, 0)]
        for entry_id in gone:
            del self.entries[entry_id]
        return len(gone)

    def claimed(self, consumer: bytes, entry_id: int) -> list[int]:
        """What a claim gets of one id. One that is not there any more is pending no more."""
        if entry_id not in self.pending:
            return []
        if entry_id not in self.entries:
            del self.pending[entry_id]
            return []
        self.pending[entry_id] = consumer
        return [entry_id]


class Rewinder(Actor):
    """Adds, reads, trims, deletes, acknowledges and claims under ids that go up and down."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        self.objections: list[str] = []
        self._streams = 0
        self._known: Any = None  # the connection of the model's stream
        self._begin()

    def _begin(self) -> None:
        self._streams += 1
        self._key = b"ids:%d:%d" % (self.number, self._streams)
        self._model = Model()

    async def step(self) -> None:
        if self._known is not self.client.connected:
            self._begin()
            self._known = self.client.connected
            await self.client.ask(b"XGROUP", b"CREATE", self._key, GROUP, b"0", b"MKSTREAM")
        kind, model = self.chance.random(), self._model
        if kind < 0.3:
            await self._add()
        elif kind < 0.5:
            consumer, count = self.chance.choice(CONSUMERS), self.chance.choice((1, 2, 10))
            reading = (b"XREADGROUP", b"GROUP", GROUP, consumer, b"COUNT", b"%d" % count, b"STREAMS", self._key, b">")
            await self._expect(reading, lambda: _shown(model.delivered(consumer, count)), of=_ids_of_read)
        elif kind < 0.55 and model.entries:
            gone = self._of(sorted(model.entries))
            await self._expect((b"XDEL", self._key, _text(gone)), lambda: int(bool(model.entries.pop(gone, None))))
        elif kind < 0.62:
            length = self.chance.choice((0, 0, 1, 3))
            await self._expect((b"XTRIM", self._key, b"MAXLEN", b"%d" % length), lambda: model.trimmed(length))
        elif kind < 0.72:
            await self._set_id()
        elif kind < 0.77:
            position = self.chance.choice((0, model.last_id // 2, model.last_id))
            reply = await self.client.ask(b"XGROUP", b"SETID", self._key, GROUP, _text(position))
            if not is_refusal(reply):
                model.delivered_to = position
        elif kind < 0.85 and model.pending:
            done = self._of(sorted(model.pending))
            acknowledging = (b"XACK", self._key, GROUP, _text(done))
            await self._expect(acknowledging, lambda: int(bool(model.pending.pop(done, None))))
        elif kind < 0.92 and model.pending:
            claimed, consumer = self._of(sorted(model.pending)), self.chance.choice(CONSUMERS)
            claiming = (b"XCLAIM", self._key, GROUP, consumer, b"0", _text(claimed), b"JUSTID")
            await self._expect(claiming, lambda: _shown(model.claimed(consumer, claimed)))
        await self._look()

    def _of(self, found: list[int]) -> int:
        """One of some ids, often the highest: ids that go back are those of the last entries."""
        return found[-1] if self.chance.random() < 0.5 else self.chance.choice(found)

    async def _add(self) -> None:
        model, added = self._model, self._model.last_id + self.chance.choice((1, 1, 1, 3))
        reply = await self.client.ask(b"XADD", self._key, _text(added), b"n", b"%d" % added)
        if not is_refusal(reply):
            model.entries[added] = reply
            model.last_id = added

    async def _set_id(self) -> None:
        model = self._model
        top = max(model.entries, default=0)
        wanted = max(
            self.chance.choice((top, model.last_id - 1, model.last_id - 10, model.last_id + 20, model.last_id + 20)), 0
        )
        reply = await self.client.ask(b"XSETID", self._key, _text(wanted))
        if not is_refusal(reply):
            model.last_id = wanted
            if wanted < top:
                self._object(f"XSETID to {wanted}, although {top} is there")

    async def _look(self) -> None:
        """Pending entries and entries are those of the model, in its order. (A consumer's history is in no log.)"""
        model, key = self._model, self._key
        words = (b"XPENDING", key, GROUP, b"-", b"+", b"1000")
        await self._expect(words, lambda: [(_text(one), model.pending[one]) for one in sorted(model.pending)], _owners)
        await self._expect((b"XRANGE", key, b"-", b"+"), lambda: _shown(sorted(model.entries)), _ids)

    async def _expect(self, words: tuple[bytes, ...], expected: Any, of: Any = lambda reply: reply) -> None:
        """Ask, and compare what comes with what the model has. A refusal changes nothing."""
        reply = await self.client.ask(*words)
        if is_refusal(reply):
            return
        found, wanted = of(reply), expected()
        self.world.story.tell(self.name, f"{b' '.join(words)!r}: {found!r}"[:300])
        if found != wanted:
            self._object(f"{b' '.join(words)!r} gives {found!r}, the model has {wanted!r}")
            self._known = None

    def _object(self, what: str) -> None:
        self.objections.append(f"{self.name} at {self.world.loop.time():.6f}: {what}"[:500])


def _text(entry_id: int) -> bytes:
    return b"1-%d" % entry_id


def _shown(found: list[int]) -> list[bytes]:
    return [_text(one) for one in found]


def _ids(reply: Any) -> list[bytes]:
    return [one[0] for one in reply]


def _ids_of_read(reply: Any) -> list[bytes]:
    return _ids(reply[0][1]) if reply else []


def _owners(reply: Any) -> list[tuple[bytes, bytes]]:
    return [(one[0], one[1]) for one in reply]


async def judge(world: "World", client: Client) -> list[str]:
    """What the clients noted."""
    return [one for actor in world.actors if isinstance(actor, Rewinder) for one in actor.objections][:SHOWN]
