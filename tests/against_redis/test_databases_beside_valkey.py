"""Rules of users about databases: random rules, and requests in the user's name, as a real Valkey judges them.

`python -m` this: compares so many random dialogues (python -m tests.against_redis.test_databases_beside_valkey 0 500).
"""

import random
from contextlib import closing
from typing import Final

import pytest

from tests.against_redis.access_requests import every_row
from tests.support.engines import make_engine, settings_with
from tests.support.reference_server import NoReference, reference_binary, reference_server
from tests.support.seeds import run_seeds, seeds
from tests.support.wire import Array, Bulk, Connection, Value, parse

STEPS: Final = 120
NUMBERS: Final = ("0", "0", "1", "1", "2", "3", "15", "16", "x", "01", "+1", "-1", "99", "")
RULES: Final = (
    "db=0", "db=1", "db=0,1", "db=2,1", "DB=3", "db=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15", "alldbs", "AllDBs",
    "resetdbs", "db=", "db=x", "db=1,", "db=-1", "db=2147483648", "db= 1", "db=1 ", "db=+1", "db", "reset", "-get",
    "-select", "+@all", "-@all", "+get", "resetkeys", "~a*", "%R~b", "~*", "clearselectors", "(db=1 +@all ~*)",
    "(db=2 +select)", "(+get ~b)", "(resetdbs +@all ~*)", "(alldbs +move +copy ~b)", "(db=0,2 +@all %R~a)",
    "sanitize-payload", "skip-sanitize-payload", "(db=x)", "(db=0,1 -@all +@read ~*)", "&*",
)  # fmt: skip
REQUESTS: Final = (
    "SELECT {n}", "SELECT {n}", "SELECT {n}", "GET {k}", "SET {k} {n}", "DBSIZE", "KEYS a",
    "SCAN 0 MATCH a COUNT 100", "EXISTS {k}",
    "MOVE {k} {n}", "COPY {k} {k} DB {n}", "COPY {k} {k} DB {n} REPLACE", "COPY {k} {k} DB {n} DB {n}",
    "COPY {k} {k} {n} DB {n}", "COPY {k} {k}", "SWAPDB {n} {n}", "SWAPDB {n} {n}", "FLUSHDB", "FLUSHALL", "PING",
    "ECHO x", "MULTI", "MULTI", "EXEC", "EXEC", "DISCARD", "WATCH {k}", "XADD s{k} 1-1 f v", "XLEN s{k}",
    "XREAD STREAMS s{k} 0", "DEL {k} s{k}", "TYPE {k}", "LASTSAVE x", "FUNCTION LIST", "FUNCTION FLUSH",
    "PUBLISH c m", "SORT l BY x* GET y*", "NOSUCH x",
)  # fmt: skip
SCRIPTS: Final = (
    "return {{server.pcall('select', '{n}'), server.pcall('set', '{k}', '{n}'), server.pcall('get', '{k}')}}",
    "return {{server.pcall('copy', '{k}', '{k}', 'DB', '{n}'), server.pcall('move', '{k}', '{n}')}}",
    "return {{server.pcall('select', '{n}'), server.pcall('select', '{n}'), server.pcall('dbsize')}}",
    "return server.call('swapdb', '{n}', '{n}')",
    "return {{server.acl_check_cmd('get', '{k}'), server.acl_check_cmd('select', '{n}')}}",
    "server.pcall('select', '{n}') return {{server.acl_check_cmd('get', '{k}'), server.acl_check_cmd('ping')}}",
)  # fmt: skip


class Sides:
    """A real Valkey and an engine of ours: an administrator and a user on each."""

    def __init__(self, port: int) -> None:
        self.theirs = {name: Connection("127.0.0.1", port) for name in ("admin", "user")}
        self.engine = make_engine(settings=settings_with(compat_version="valkey-9.1"))
        self.ours = {name: self.engine.server.connect("127.0.0.1:1", "127.0.0.1:2") for name in ("admin", "user")}
        self.asked: list[str] = []

    def close(self) -> None:
        for connection in self.theirs.values():
            connection.close()

    def ask(self, name: str, *words: str) -> tuple[Value, Value]:
        """Both replies to a request."""
        self.asked.append(f"{name}: {' '.join(words)}")
        request = [word.encode() for word in words]
        theirs = self.theirs[name].ask(*request)
        return theirs, parse(self.engine.handle(self.ours[name], request))[0]

    def same(self, name: str, *words: str) -> None:
        theirs, ours = self.ask(name, *words)
        assert ours == theirs, "\n".join([*self.asked[-60:], f"theirs {theirs}", f"ours   {ours}"])


def filled(chance: random.Random, text: str) -> str:
    parts = text.split("{n}")
    text = parts[0] + "".join([chance.choice(NUMBERS) + part for part in parts[1:]])
    parts = text.split("{k}")
    return parts[0] + "".join([chance.choice(("a", "ab", "b", "c")) + part for part in parts[1:]])


def request(chance: random.Random) -> list[str]:
    if chance.random() < 0.2:
        return ["EVAL", filled(chance, chance.choice(SCRIPTS).replace("{{", "{").replace("}}", "}")), "0"]
    return filled(chance, chance.choice(REQUESTS)).split(" ")


def judge(port: int, seed: int) -> None:
    chance = random.Random(seed)
    with closing(Sides(port)) as sides:
        for words in ("FLUSHALL", "ACL DELUSER u", "ACL SETUSER u on nopass +@all ~* &*", "ACL LOG RESET"):
            sides.ask("admin", *words.split())
        sides.ask("user", "AUTH", "u", "x")
        for _ in range(STEPS):
            kind = chance.random()
            if kind < 0.15:
                begin = chance.choice(([], [], ["reset", "on", "nopass", "+@all", "~*"]))
                sides.same("admin", "ACL", "SETUSER", "u", *begin, *chance.choices(RULES, k=chance.randint(1, 3)))
                sides.same("admin", "ACL", "GETUSER", "u")
                sides.same("admin", "ACL", "LIST")
            elif kind < 0.3:
                sides.same("admin", "ACL", "DRYRUN", "u", *request(chance))
            elif kind < 0.35:
                sides.same("admin", "SELECT", chance.choice("0123"))
            elif kind < 0.4:
                sides.same("admin", "SET", chance.choice("abc"), "v")
            else:
                sides.same("user", *request(chance))
        theirs, ours = sides.ask("admin", "ACL", "LOG", "100")
        assert refusals(ours) == refusals(theirs), "\n".join(sides.asked)


def refusals(log: Value) -> list[tuple[Value, ...]]:
    """The lines of ACL LOG: count, reason, context, object and user."""
    assert isinstance(log, Array)
    return [line.elements[1:10:2] for line in log.elements if isinstance(line, Array)]


@pytest.mark.parametrize("seed", seeds(3, 40))
def test_rules_about_databases_are_those_of_valkey(valkey: int, seed: int) -> None:
    judge(valkey, seed)


def test_each_command_is_judged_by_database_as_in_valkey(valkey: int) -> None:
    with closing(Sides(valkey)) as sides:
        sides.ask("admin", "ACL", "SETUSER", "u", "reset", "on", "nopass", "+@all", "~*", "&*", "db=0")
        listed, _ = sides.ask("admin", "COMMAND", "LIST")
        assert isinstance(listed, Array)
        theirs = {word.text.decode() for word in listed.elements if isinstance(word, Bulk)}
        rows = {row.title: row for row in every_row(sides.engine) if row.title in theirs and not row.is_container}
        for database in ("0", "1"):
            sides.same("admin", "SELECT", database)
            for title, row in rows.items():
                words = [*title.split("|"), *["1"] * row.least_words][: row.least_words]
                sides.same("admin", "ACL", "DRYRUN", "u", *words)


if __name__ == "__main__":
    try:
        with reference_server(binary=reference_binary("valkey")) as port:
            run_seeds(lambda seed: judge(port, seed))
    except NoReference as absence:
        raise SystemExit(str(absence)) from None
