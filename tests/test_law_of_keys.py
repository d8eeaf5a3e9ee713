"""The law of keys: the keys that are judged are the keys that are touched, whatever the words of a request look like.

Requests are made of each row that names keys, with keys and values spelled like options, in any case, and with options
that come twice. Two engines differ in nothing but the values that a user may not read. After the same requests of that
user, the replies are the same on both, and no key has changed that the user may not write; no other key was looked up.
And a user with rights on just the keys that a request names is not refused. The same by slot, in a cluster.
"""

import random
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Final

import pytest

from penstock.clock import ManualClock
from penstock.commands.keys import digests
from penstock.engine.cluster.hash_slots import slot_of
from penstock.engine.engine import Engine
from penstock.engine.memory.recency import uses_of
from penstock.engine.session import Session
from penstock.engine.table.row import Row
from penstock.storage.streams.stream import Stream
from tests.support.clock import NOW_MS
from tests.support.engines import make_engine, settings_with
from tests.support.key_requests import ABSENT, GROUPS, KeyRequests, Made, names_for, rows_with_keys, spellings
from tests.support.keyspace_picture import KEPT, stream_picture
from tests.support.same_result import Difference, assert_same, text_of, values
from tests.support.seeds import seeds
from tests.support.word_batches import batches_of

Request = list[bytes]
NAMES: Final = ("with one value", "with another")  # of the keys that may not be read, or before and after
CALL: Final = b"return redis.pcall(unpack(ARGV))"
RIGHTS: Final = ("", "%R~", "%W~", "~", "~")
REFUSALS: Final = (b"NOPERM", b"ACL failure", b"CROSSSLOT", b"hash to the same slot")
REQUESTS_A_STORY: Final = 8
SHARE_OF_OTHERS: Final = 0.1
BY_TYPE: Final = {  # what makes a value of each type, of a key and a text that nothing else contains
    "string": "SET {key} {text}", "list": "RPUSH {key} {text} 3", "hash": "HSET {key} m {text} g {text}",
    "set": "SADD {key} m {text}", "zset": "GEOADD {key} 13.361 38.115 m 13.5 38.2 {text} 13.2 38.1 store",
    "stream": "XADD {key} 5-0 m {text}", "hll": "PFADD {key} m {text}", "array": "ARSET {key} 0 {text}",
}  # fmt: skip
TYPES: Final = {
    "bitmap": "string", "geo": "zset", "sorted-set": "zset", "hyperloglog": "hll", "generic": "list", "hash": "hash",
    "set": "set", "list": "list", "stream": "stream", "array": "array",
}  # fmt: skip


class Target:
    """Takes every key that MIGRATE sends."""

    def ask(
        self, host: str, port: str, timeout_ms: int, db_index: int, login: list[bytes], requests: list[list[bytes]]
    ) -> list[bytes]:
        return [b"+OK"] * len(requests)


class Side:
    """An engine with keys of the type that a row takes, an administrator and a user."""

    def __init__(self, row: Row, texts: dict[str, str], **directives: str) -> None:
        """texts: what is in each key."""
        self.engine: Engine = make_engine(
            ManualClock(NOW_MS), settings=settings_with(maxmemory_policy="allkeys-lru", **directives)
        )
        self.admin: Session = self.engine.server.connect("127.0.0.1:1", "127.0.0.1:2")
        self.user: Session = self.engine.server.connect("127.0.0.1:3", "127.0.0.1:2")
        if directives:
            self.ask("CLUSTER ADDSLOTSRANGE 0 16383")
        kind = TYPES.get(row.group, "string")
        for key, text in texts.items():
            self.ask(BY_TYPE[kind].format(key=key, text=text))
            for group in GROUPS if kind == "stream" else ():
                self.ask(f"XGROUP CREATE {key} {group} 0")
        self.engine.waiting.migrator = Target()
        self.row = row
        self.replies: list[bytes] = []
        self.grant({"*": "~"})
        self.engine.handle(self.user, [b"AUTH", b"joe", b"x"])

    def ask(self, line: str) -> None:
        answer = self.engine.handle(self.admin, [word.encode() for word in line.split()])
        assert not answer.startswith(b"-"), (line, answer)

    def grant(self, rights: dict[str, str]) -> None:
        """Let the user run everything, with these rights on keys, by name."""
        rules = [right + key for key, right in rights.items() if right]
        self.ask(" ".join(["ACL SETUSER joe on nopass +@all allchannels resetkeys", *rules]))

    def take(self, requests: list[Request]) -> None:
        """Hand the requests over as they come in one piece; a blocked one is released at once."""
        batches = batches_of(requests, self.engine.batch_shapes)
        while batches:
            batches = self.engine.handle_batches(self.user, batches, 1 << 30, self.replies, [])
            if self.user.blocked is not None:
                self.engine.waiting.release(self.user.blocked, b"+released\r\n")
            self.replies += [reply for session, reply in self.engine.clients.outgoing if session is self.user]
            self.engine.clients.outgoing = []

    def pictures(self) -> dict[str, object]:
        """What each key has, without what changes by reading: groups by XREADGROUP, the count in a HyperLogLog."""
        db = self.engine.keyspace.databases[0]
        found: dict[str, object] = {}
        for key in db.values:
            value = db.values[key]
            shown: object = digests.of_value(value[:8] + value[16:] if isinstance(value, bytes) else value)
            if isinstance(value, Stream):
                seen = stream_picture(value, KEPT, NOW_MS)
                if self.row.name == "XREADGROUP":
                    del seen["groups"]
                shown = seen
            found[key.decode()] = (shown, db.expires.get(key))
        return found

    def forget_uses(self) -> None:
        uses = uses_of(self.engine.server)
        assert uses is not None, "maxmemory-policy notes them"
        uses.by_key[0].clear()

    def used(self) -> set[str]:
        """The keys whose values were looked up or changed since then."""
        uses = uses_of(self.engine.server)
        assert uses is not None, "maxmemory-policy notes them"
        return {key.decode() for key in uses.by_key[0]}


# -- the doors --------------------------------------------------------------------------------------------------------

Door = Callable[[Side, list[Request], dict[str, str]], None]


def one_by_one(side: Side, requests: list[Request], rights: dict[str, str]) -> None:
    side.grant(rights)
    for request in requests:
        side.take([request])


def in_batches(side: Side, requests: list[Request], rights: dict[str, str]) -> None:
    side.grant(rights)
    side.take(requests)


def in_a_transaction(side: Side, requests: list[Request], rights: dict[str, str]) -> None:
    """EXEC judges what was queued before the rights were taken."""
    side.take([[b"MULTI"], *requests])
    side.grant(rights)
    side.take([[b"EXEC"]])


def in_scripts(side: Side, requests: list[Request], rights: dict[str, str]) -> None:
    side.grant(rights)
    for request in requests:
        side.take([[b"EVAL", CALL, b"0", *request]])


DOORS: Final[list[Door]] = [one_by_one, in_batches, in_a_transaction]
if find_spec("lupa") is not None:
    DOORS.append(in_scripts)

# -- stories ----------------------------------------------------------------------------------------------------------


def story(chance: random.Random, row: Row, names: tuple[str, ...]) -> list[Made]:
    """Some requests of a row; after some of them follow others of the same form, with other keys: batches."""
    requests = KeyRequests(chance, names)
    made: list[Made] = []
    while len(made) < REQUESTS_A_STORY:
        first = requests.made_of(row)
        made.append(first)
        if chance.random() < 0.3:
            made += [first.varied(chance, names) for _ in range(2)]
    return made


def each_case(seed: int) -> Iterator[tuple[random.Random, Row, Door]]:
    """Rows with keys that depend on options by every door; of the others some, by one."""
    for row in rows_with_keys():
        chance = random.Random(f"{seed}/{row.name}")
        if depends_on_options(row):
            for door in DOORS:
                yield chance, row, door
        elif row.keys_move or chance.random() < SHARE_OF_OTHERS:
            yield chance, row, chance.choice(DOORS)


def depends_on_options(row: Row) -> bool:
    return any("variable_flags" in spec.flags or not spec.knows_places for spec in row.key_specs)


# -- the law ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(1, 12))
def test_nothing_is_read_or_changed_without_the_right_to(seed: int) -> None:
    for chance, row, door in each_case(seed):
        names = names_for(chance, row)
        rights = {name: chance.choice(RIGHTS) for name in names}
        made = story(chance, row, names)
        title = f"{row.name} {door.__name__} with the rights {rights}"
        assert_same(made, partial(undue, row, door, rights), NAMES, line_of, title)


def undue(row: Row, door: Door, rights: dict[str, str], made: list[Made]) -> Difference | None:
    """What the user learned or changed without the right to, if anything."""
    there = [name for name in rights if name != ABSENT]
    hidden = {name for name in there if "R" not in rights[name] and rights[name] != "~"}
    sides = [Side(row, {name: text if name in hidden else "555" for name in there}) for text in ("111", "222")]
    before = [side.pictures() for side in sides]
    for side in sides:
        side.forget_uses()
        door(side, [one.words for one in made], rights)
        side.engine.tick()  # what policies do by themselves counts, too
    if sides[0].replies != sides[1].replies:
        one, other = (values(b"".join(side.replies)) for side in sides)
        return Difference("reply", one, other, len(made), "what may not be read")
    after = [side.pictures() for side in sides]
    for name, right in rights.items():
        was, got = ([seen.get(name) for seen in pictures] for pictures in (before, after))
        if right in ("", "%R~") and was != got:
            return Difference("state", was, got, len(made), f"{name!r}, which may not be written")
        if right in ("%R~", "~") and after[0].get(name) != after[1].get(name):
            return Difference("state", after[0].get(name), after[1].get(name), len(made), f"{name!r}")
    touched = sorted({name for side in sides for name in side.used() if not rights[name]})
    return Difference("use of keys without rights", [], touched, len(made)) if touched else None


@pytest.mark.parametrize("seed", seeds(1, 12))
def test_what_a_request_names_is_all_that_it_needs(seed: int) -> None:
    for chance, row, door in each_case(seed):
        names = names_for(chance, row)
        made = story(chance, row, names)
        assert_same(made, partial(refused, row, door, names), ("expected", "found"), line_of, door.__name__)


def refused(row: Row, door: Door, names: tuple[str, ...], made: list[Made]) -> Difference | None:
    """The first request that is refused to a user with rights on what it names."""
    side = Side(row, {name: "111" for name in names if name != ABSENT})
    for count, one in enumerate(made, 1):
        if succeeds(side, door, one):
            door(side, [one.words], {key.decode(): "~" for key in one.keys})
        if is_refused(side):
            return Difference("reply", "no refusal", side.replies, count, line_of(one))
    return None


@pytest.mark.parametrize("seed", seeds(1, 12))
def test_all_that_a_request_touches_is_in_one_slot(seed: int) -> None:
    for chance, row, door in each_case(seed):
        names = names_by_slot(chance, row)
        made = story(chance, row, names)
        assert_same(made, partial(spread, row, door, names), ("expected", "found"), line_of, door.__name__)


def spread(row: Row, door: Door, names: tuple[str, ...], made: list[Made]) -> Difference | None:
    """The first request that touches keys of several slots, or is refused though it names keys of one."""
    alone = Side(row, dict.fromkeys(names, "111"))
    side = Side(row, dict.fromkeys(names, "111"), cluster_enabled="yes")
    for count, one in enumerate(made, 1):
        before = side.pictures()
        side.forget_uses()
        side.replies.clear()
        door(side, [one.words], {"*": "~"})
        after = side.pictures()
        changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        touched = sorted(changed | side.used())
        if len({slot_of(name.encode()) for name in touched}) > 1:
            return Difference("slots of what is touched", "keys of one slot", touched, count, line_of(one))
        if len({slot_of(key) for key in one.keys}) == 1 and succeeds(alone, door, one) and is_refused(side):
            return Difference("reply", "no refusal", side.replies, count, line_of(one))
    return None


def line_of(made: Made) -> str:
    return text_of(made.words)


def names_by_slot(chance: random.Random, row: Row) -> tuple[str, ...]:
    """Keys in two slots, more in one of them; some are spelled like options."""
    one, other = chance.sample(sorted({*spellings(row), "store", "GET", "k"}), 2)
    return one, f"{{{one}}}1", f"{{{one}}}2", f"{{{one}}}3", other


def succeeds(side: Side, door: Door, made: Made) -> bool:
    """Whether a user with every right gets no error for a request; the replies are forgotten."""
    door(side, [made.words], {"*": "~"})
    replies, side.replies = side.replies, []
    return not any(reply.startswith(b"-") or b"\r\n-" in reply for reply in replies)


def is_refused(side: Side) -> bool:
    return any(refusal in reply for refusal in REFUSALS for reply in side.replies)


# -- one table --------------------------------------------------------------------------------------------------------


def test_a_command_with_keys_behind_a_word_finds_them_itself() -> None:
    """`keys=` has the word for COMMAND INFO only; without a function the keys would not be judged at all."""
    behind_words = [row for row in rows_with_keys() if any(spec.keyword for spec in row.key_specs)]
    varying = [row for row in rows_with_keys() if any("variable_flags" in spec.flags for spec in row.key_specs)]

    assert [row.name for row in [*behind_words, *varying] if row.find_keys is None] == []
    assert {"XREADGROUP", "GEORADIUS", "MIGRATE", "PENSTOCK.POLICY"} <= {row.name for row in behind_words}
