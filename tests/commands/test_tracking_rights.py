"""CLIENT TRACKING and rights: no message names a key that the user may not use, and no cache keeps a wrong value."""

import random
from typing import Final

import pytest

from penstock.clock import ManualClock
from penstock.commands.registry import new_engine
from penstock.config.settings import Settings
from tests.commands.test_tracking import invalidated, tracker
from tests.support.access_model import fits, key_rights, without_useless
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.seeds import seeds


def client_of(dialogue: Dialogue, rules: str) -> Dialogue:
    """A client of the user u, with the right to every command with these keys."""
    dialogue(f"ACL SETUSER u reset on nopass +@all {rules}")
    client = dialogue.another()
    assert client("AUTH u x") == b"OK"
    return client


def test_a_change_is_told_to_clients_with_the_right_to_read_the_key(dialogue: Dialogue) -> None:
    client = tracker(client_of(dialogue, "%R~foo:* %W~bar:*"), "BCAST")

    dialogue("MSET topsecret:1 x foo:1 y bar:1 z")

    assert invalidated(client) == [[b"foo:1"]]
    dialogue("SET topsecret:1 x")
    assert invalidated(client) == []


def test_the_rights_of_the_moment_count(dialogue: Dialogue) -> None:
    client = tracker(client_of(dialogue, "~foo:*"), "BCAST PREFIX foo: PREFIX top")
    dialogue("SET topsecret:1 x", "ACL SETUSER u ~top*")
    assert invalidated(client) == [None, [b"topsecret:1"]]

    dialogue("SET topsecret:1 x", "ACL SETUSER u resetkeys ~foo:*")
    assert invalidated(client) == [None]


def test_a_key_that_was_read_is_told_of_while_the_user_may_use_it(dialogue: Dialogue) -> None:
    client = tracker(client_of(dialogue, "%W~k ~l"))
    client("EXISTS k", "GET l")
    dialogue("SET k 1", "SET l 1")
    assert invalidated(client) == [[b"k"], [b"l"]]

    client("EXISTS k", "GET l")
    dialogue("ACL SETUSER u resetkeys ~m", "SET k 1", "SET l 1")
    assert invalidated(client) == [None]


def test_redirected_messages_have_what_the_tracking_user_may_read(dialogue: Dialogue) -> None:
    all_rights, few_rights = dialogue.another(), client_of(dialogue, "~foo:*")
    for receiver in (all_rights, few_rights):
        receiver.session.resp = 3
    few_rights(f"CLIENT TRACKING ON BCAST REDIRECT {all_rights.session.id}")
    dialogue(f"CLIENT TRACKING ON BCAST REDIRECT {few_rights.session.id}")

    dialogue("MSET topsecret:1 x foo:1 y")

    assert invalidated(all_rights) == [[b"foo:1"]]
    assert invalidated(few_rights) == [[b"foo:1", b"topsecret:1"]]


def test_a_client_that_becomes_another_user_forgets_what_it_has_read_after_the_reply(dialogue: Dialogue) -> None:
    dialogue("ACL SETUSER v on nopass +@all ~*", "ACL SETUSER w on nopass +@all ~* &c")
    client = tracker(client_of(dialogue, "~foo:*"))

    assert (client("AUTH v x"), invalidated(client)) == (b"OK", [None])
    assert (client("AUTH v x"), invalidated(client)) == (b"OK", [])
    assert (client("AUTH w x"), invalidated(client)) == (b"OK", [])
    dialogue("ACL SETUSER w >password -get")
    assert invalidated(client) == []


def test_no_word_of_a_broken_redirection_where_there_is_nothing_to_tell(dialogue: Dialogue) -> None:
    client, receiver = client_of(dialogue, "~foo:*"), dialogue.another()
    client.session.resp = 3
    client(f"CLIENT TRACKING ON BCAST REDIRECT {receiver.session.id}")
    dialogue.engine.server.disconnect(receiver.session)

    dialogue("SET topsecret:1 x")
    dialogue.engine.end_turn()

    assert client.arrived() == []
    assert b"broken_redirect" not in client("CLIENT TRACKINGINFO")[b"flags"]


KEYS: Final = ("a", "ab", "b", "ba", "c")
RULES: Final = ("~a*", "~b", "%R~a*", "%W~a*", "%R~*", "%W~b*", "~*", "%R~?", "~c", "(+@all %R~ba)", "(+@all %W~c)")
READS: Final = ("GET {}", "EXISTS {}", "TYPE {}", "STRLEN {}", "EVAL_RO \"return redis.call('GET', '{}')\" 0")
WRITES: Final = (
    "SET {} {}", "DEL {} {}", "MSET {} 1 {} 2", "RENAME {} {}", "COPY {} {} REPLACE", "SET {} {} PX 5", "FLUSHALL",
    "EVAL \"return redis.call('SET', '{}', '{}')\" 0", "SORT {} STORE {}", "APPEND {} {}",
)  # fmt: skip
MODES: Final = (
    "",
    "OPTOUT",
    "NOLOOP",
    "BCAST",
    "BCAST NOLOOP PREFIX a PREFIX b",
    "BCAST PREFIX ab PREFIX c",
    "FAR",
    "FAR BCAST",
)


class Tracker:
    """A client that keeps what it reads until it is told, directly or at a connection of an unrestricted user."""

    def __init__(self, admin: Dialogue, user: str, mode: str) -> None:
        self.user = user
        self.by_prefix = "BCAST" in mode
        self.client = admin.another()
        self.listener = admin.another() if "FAR" in mode else self.client
        self.listener.session.resp = self.client.session.resp = 3
        redirect = f"REDIRECT {self.listener.session.id} " if "FAR" in mode else ""
        self.client(f"AUTH {user} x", f"CLIENT TRACKING ON {redirect}{mode.removeprefix('FAR')}")
        self.prefixes = [word for word in mode.split() if word.islower()] or [""]
        self.held: dict[bytes, bytes | None] = {}

    def hear(self) -> list[bytes]:
        """The names in the messages since the last call."""
        named: list[bytes] = []
        for keys in invalidated(self.listener):
            if keys is None:
                self.held.clear()
            for key in keys or ():
                self.held.pop(key, None)
                named.append(key)
        return named

    def read(self, line: str, key: str) -> None:
        answer = self.client(line.format(key))
        covered = not self.by_prefix or any(key.startswith(prefix) for prefix in self.prefixes)
        if line.startswith("GET") and covered and not isinstance(answer, Exception):
            self.held[key.encode()] = answer


class World:
    """An administrator, two users with rules that change, and clients of theirs that track keys in every way."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock = ManualClock(NOW_MS)
        self.engine = new_engine(Settings(), self.clock, self.chance)
        self.admin = Dialogue(self.engine)
        self.rules: dict[str, list[str]] = {}
        for user in ("u", "v"):
            self.change_rules(user)
        self.trackers = [Tracker(self.admin, self.chance.choice("uv"), mode) for mode in MODES]

    def change_rules(self, user: str) -> None:
        rules = sorted(self.chance.sample(RULES, self.chance.randint(0, 3)))
        root = without_useless([rule for rule in rules if rule[0] != "("])
        self.rules[user] = [*root, *[rule for rule in rules if rule[0] == "("]]
        keys = " ".join([f"'{rule}'" for rule in self.rules[user]])
        assert self.admin(f"ACL SETUSER {user} reset on nopass +@all {keys}") == b"OK"

    def may(self, listener: Tracker, key: bytes) -> bool:
        """By the rules alone: to read with BCAST, else to do anything."""
        rules = [rule.strip("()").split()[-1] for rule in self.rules[listener.user]]
        found = [rights for pattern, rights in key_rights(rules).items() if fits(key.decode(), pattern)]
        return any("R" in rights for rights in found) if listener.by_prefix else bool(found)

    def step(self) -> str:
        kind = self.chance.random()
        key, other = self.chance.choice(KEYS), self.chance.choice(KEYS)
        one = self.chance.choice(self.trackers)
        if kind < 0.1:
            done = f"rules {one.user}"
            self.change_rules(one.user)
        elif kind < 0.15:
            one.user = self.chance.choice("uv")
            done = f"AUTH {one.user} x"
            one.client(done)
        elif kind < 0.5:
            done = self.chance.choice(READS)
            one.read(done, key)
        else:
            done = self.chance.choice(WRITES).format(key, other)
            author = self.chance.choice((self.admin, self.admin, one.client))
            author.raw(done)
            if author is one.client:
                one.held.clear()  # what it changes itself it knows
            if self.chance.random() < 0.2:
                self.clock.advance(self.chance.randrange(8))
                self.engine.tick()
        return done


@pytest.mark.parametrize("seed", seeds(3, 50))
def test_no_message_names_what_the_user_may_not_use_and_no_cache_is_wrong(seed: int) -> None:
    world = World(seed)
    for _ in range(200):
        done = world.step()
        for one in world.trackers:
            assert [key for key in one.hear() if not world.may(one, key)] == [], (done, world.rules, one.by_prefix)
            assert {key: world.admin(f"GET {key.decode()}") for key in one.held} == one.held, done
        world.engine.clients.tracking.check()
