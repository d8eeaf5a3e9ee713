"""Random histories of a user with rules beside an administrator with policies, and the promise about what changes.

The promise (docs/policies.md): a key that the user may not write changes only by the server's move from a key at which
the administrator set the policy that names it. What changed is seen in the keyspace, and why in the log: a move is
XADDs to the target, then XDEL or XACK at the key that they come from.
"""

import random
from collections.abc import Sequence
from typing import Final

from penstock.clock import ManualClock
from penstock.commands.keys import digests
from penstock.engine.engine import Engine
from penstock.engine.policies import policy_lines
from penstock.protocol.log_reader import whole_requests
from penstock.storage.keyspace import Value
from penstock.storage.streams.stream import Stream
from tests.support.access_model import fits, key_rights
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine
from tests.support.keyspace_picture import KEPT, stream_picture
from tests.support.log import UnitLog
from tests.support.same_result import told_on_failure
from tests.support.table_requests import PLAIN_WORDS, TableRequests, Vocabulary, rows_by_name

SOURCES: Final = ("p1", "p2")  # the administrator's, with policies; the user may have some rights to them
OWN: Final = ("b1", "b2", "b3")  # the user's
TARGETS: Final = ("f1", "f2")  # the administrator's
RIGHTS: Final = (("%R~p*", "~b*"), ("~p*", "~b*"), ("%W~p*", "~b*"), ("%R~*", "~b1", "%W~b2"), ("~p1", "~b*", "%W~f2"))
NOT_DRAWN: Final = frozenset(("RESET", "AUTH", "HELLO", "SCRIPT", "FUNCTION"))  # they would end what the history needs
COMMANDS: Final = ("+@all", "-@dangerous", "-@admin", "+sort", "+sort_ro", "+restore")
WHOLE_DATABASES: Final = ("-flushall", "-flushdb", "-swapdb")  # no pattern restricts them, as in Redis
KEYED: Final = Vocabulary(
    {
        **PLAIN_WORDS.words,
        "key": (*SOURCES, *OWN, *OWN, *TARGETS),
        "group": ("g", "h"),
        "db": ("0", "1"),
        "destination-db": ("0", "1"),
        "index": ("0", "1"),
        "milliseconds": ("0", "1", "500", "NONE"),
    }
)
FOCUS: Final = (
    "COPY {} {}", "COPY {} {} REPLACE", "COPY {} {} DB 1 REPLACE", "RENAME {} {}", "RENAMENX {} {}", "MOVE {} 1",
    "XADD {} * n 1", "XADD {} * n 1", "XADD {} * n 2 at +5", "XGROUP CREATE {} g 0 MKSTREAM",
    "XREADGROUP GROUP g a STREAMS {} >",
    "XREADGROUP GROUP g a BLOCK 300 STREAMS {} >", "XREADGROUP GROUP g a STREAMS {} 0", "XNACK {} g FATAL IDS 1 1-0",
    "PENSTOCK.POLICY {} FORWARD {}", "PENSTOCK.POLICY {} GROUP g DEADLETTER {}", "PENSTOCK.POLICY {} AFTER 0", "DEL {}",
    "SELECT 1", "SELECT 0",
)  # fmt: skip
POLICIES: Final = (
    "{} FORWARD {}", "{} FORWARD {} AT at", "{} FORWARD {} AFTER 400", "{} GROUP g DEADLETTER {}",
    "{} GROUP g ACKWAIT 200 MAXDELIVER 1 DEADLETTER {}", "{} MAXLEN 2",
)  # fmt: skip
SCRIPT: Final = "return redis.{}(unpack(ARGV))"
LIBRARY: Final = "#!lua name=l\nredis.register_function('f', function(keys, args) return redis.call(unpack(args)) end)"
MOVED_BY: Final = (b"XDEL", b"XACK")
OF_A_PLACE: Final = (b"XDEL", b"XACK", b"XTRIM", b"XCLAIM", b"XNACK", b"XGROUP")  # what its policies do to it

STEPS: Final = 250

Place = tuple[int, bytes]


def check_history(seed: int | str) -> None:
    """A random history; AssertionError where the promise is broken."""
    history = RestrictedUser(seed)
    done: list[str] = []
    with told_on_failure(done):
        for _ in range(STEPS):
            done.append(history.step())


class RestrictedUser:
    """One history. links: from which place an administrator's policy leads to which key of the same database.

    writable: patterns that the user could write at any time so far: a policy that it set then goes on.
    """

    def __init__(self, seed: int | str) -> None:
        self.chance = random.Random(seed)
        self.log = UnitLog()
        self.clock = ManualClock(NOW_MS)
        self.engine: Engine = make_engine(self.clock, self.log)
        self.requests = TableRequests(self.chance, KEYED)
        self.admin = Dialogue(self.engine)
        self.links: set[tuple[int, bytes, bytes]] = set()
        self.writable: set[str] = set()
        self.readable: set[str] = set()
        self._database = 0  # of the log's last line
        self._read = 0  # units
        self.admin.words(b"FUNCTION", b"LOAD", LIBRARY.encode())
        self._set_rights()
        self.admin("ACL SETUSER default >secret")
        for key in (*SOURCES, OWN[0], TARGETS[0]):
            self.admin(f"XADD {key} 1-0 n 0", f"XGROUP CREATE {key} g 0")
        if self.chance.random() < 0.2:
            self.admin("RPUSH f2 x")
        self.user = self._log_in()
        self._names = [
            name for name in rows_by_name() if name.partition("|")[0] not in NOT_DRAWN and "SUBSCRIBE" not in name
        ]

    def _set_rights(self) -> None:
        rules = self.chance.choice(RIGHTS)
        self.admin(f"ACL SETUSER u reset on nopass {' '.join((*COMMANDS, *WHOLE_DATABASES, *rules))}")
        for pattern, rights in key_rights(list(rules)).items():
            for known, letter in ((self.writable, "W"), (self.readable, "R")):
                if letter in rights:
                    known.add(pattern)

    def _log_in(self) -> Dialogue:
        client = Dialogue(self.engine)
        assert client("AUTH u x") == b"OK"
        return client

    # -- steps ------------------------------------------------------------------------------------------------------

    def step(self) -> str:
        """One request of the administrator, or something that is judged; what was done."""
        kind = self.chance.random()
        if kind < 0.1:
            return self._ask_as_admin()
        before = self._pictures()
        self._lines()
        done = self._tick() if kind < 0.3 else self._ask_as_user()
        self._judge(before, done)
        return done

    def _ask_as_admin(self) -> str:
        database, key = self.chance.choice((0, 0, 0, 1)), self.chance.choice((*SOURCES, *SOURCES, *OWN))
        self.admin(f"SELECT {database}")
        kind = self.chance.random()
        if kind < 0.1:
            self._set_rights()
            return "rights"
        if kind < 0.4:
            if not isinstance(self.engine.keyspace.databases[database].values.get(key.encode()), Stream):
                self.admin(f"DEL {key}")
            self.admin(f"XADD {key} * n 3", f"XGROUP CREATE {key} g 0")
            return f"admin adds to {key}"
        target = self.chance.choice((*TARGETS, *TARGETS, *OWN))
        line = "PENSTOCK.POLICY " + self.chance.choice(POLICIES).format(key, target)
        if self.admin(line) == b"OK":
            self.links.add((database, key.encode(), target.encode()))
        return line

    def _tick(self) -> str:
        self.clock.advance(self.chance.choice((0, 1, 100, 300, 1000)))
        self.engine.tick()
        return "tick"

    def _ask_as_user(self) -> str:
        if self.user.session.user is not self.engine.access.users[b"u"] or self.user.session.blocked is not None:
            self.user = self._log_in()
        words = self._request()
        way = self.chance.choice(("plain", "plain", "plain", "EVAL", "FCALL", "MULTI"))
        if way == "MULTI":
            for request in ([b"MULTI"], words, self._request(), [b"EXEC"]):
                self.user.words(*request)
        elif way == "EVAL":
            script = SCRIPT.format(self.chance.choice(("call", "pcall"))).encode()
            self.user.words(b"EVAL", script, b"0", *words)
        elif way == "FCALL":
            self.user.words(b"FCALL", b"f", b"0", *words)
        else:
            self.user.words(*words)
        self.engine.clients.outgoing.clear()
        return f"{way} {words!r}"

    def _request(self) -> list[bytes]:
        if self.chance.random() < 0.85:
            first = self.chance.choice((*SOURCES, *OWN, *OWN))
            second = self.chance.choice((*SOURCES, *OWN, *OWN, *TARGETS))
            return self.chance.choice(FOCUS).format(first, second).encode().split()
        return [word.encode("latin-1") for word in self.requests.of_command(self.chance.choice(self._names))]

    # -- the promise ------------------------------------------------------------------------------------------------

    def _judge(self, before: dict[Place, object], done: str) -> None:
        after = self._pictures()
        changed = {place for place in {*before, *after} if before.get(place) != after.get(place)}
        lines = self._lines()
        for database, key in changed:
            named = [at for at, (of, words) in enumerate(lines) if of == database and key in words[1:]]
            assert named, f"{done} changed {key!r}, which the log does not tell"
            for at in named:
                assert self._is_explained(lines, at, database, key), f"{done} changed {key!r}: {lines}"

    def _is_explained(self, lines: Sequence[tuple[int, list[bytes]]], at: int, database: int, key: bytes) -> bool:
        """Whether a line of the log that names a key is what an administrator's policy does."""
        words = lines[at][1]
        if words[0] == b"XADD" and words[1] == key:
            ends = [line for _, line in lines[at:] if line[0] != b"XADD"]
            return bool(ends) and ends[0][0] in MOVED_BY and (database, ends[0][1], key) in self.links
        if key not in words[1:3]:
            return True  # a field or a value
        has_policy = any(link[:2] == (database, key) for link in self.links)
        return words[0] in OF_A_PLACE and (has_policy or self._allows(self.readable, key))

    def _allows(self, patterns: set[str], key: bytes) -> bool:
        return any(fits(key.decode("latin-1"), pattern) for pattern in patterns)

    def _pictures(self) -> dict[Place, object]:
        """What is at each key that the user was never allowed to write."""
        found: dict[Place, object] = {}
        for number, db in enumerate(self.engine.keyspace.databases):
            for key in db.values:
                if not self._allows(self.writable, key):
                    found[(number, key)] = (db.expires.get(key), self._picture(key, db.values[key]))
        return found

    def _picture(self, key: bytes, value: Value) -> object:
        """What XREADGROUP changes of a group is left out where the user may read: it asks no more, as in Redis."""
        if not isinstance(value, Stream):
            return digests.of_value(value)
        shown = stream_picture(value, KEPT)
        requests = policy_lines.base_requests(b"", value, self.clock.now_us() // 1000)
        shown["policies"] = [request for request in requests if request[0] == b"PENSTOCK.POLICY"]  # no holds
        if self._allows(self.readable, key):
            del shown["groups"]
        return shown

    def _lines(self) -> list[tuple[int, list[bytes]]]:
        """The log's requests since the last call, each with its database."""
        units, self._read = self.log.units[self._read :], len(self.log.units)
        found: list[tuple[int, list[bytes]]] = []
        for unit in units:
            for words in whole_requests(unit).requests:
                if words[0] == b"SELECT":
                    self._database = int(words[1])
                elif words[0] not in (b"MULTI", b"EXEC"):
                    found.append((self._database, words))
        return found
