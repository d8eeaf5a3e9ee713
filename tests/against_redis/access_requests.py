"""Random rules of users, and random requests in their name, for both servers. `python -m` this: compares so many.

python -m tests.against_redis.access_requests SECONDS [SEED]
"""

import random
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Final

from penstock.engine.engine import Engine
from penstock.engine.table.acl_categories import categories
from penstock.engine.table.row import Row
from tests.support.engines import make_engine, settings_with
from tests.support.reference_server import reference_server
from tests.support.table_engine import APART
from tests.support.table_requests import PLAIN_WORDS, TableRequests, Vocabulary
from tests.support.wire import Array, Bulk, Connection, Error, Value, parse

Request = list[bytes]

PATIENCE_S: Final = 60.0
KEYS: Final = ("a", "ab", "abc", "b", "b1", "c:1", "c:2", "s", "n", "A", "x*")
PATTERNS: Final = ("*", "a*", "ab*", "b", "b?", "c:*", "[a-b]*", "x\\*", "", "s", "**", "A*")
RULE_WORDS: Final = (
    "on", "off", "OFF", "nopass", "resetpass", "reset", "allkeys", "resetkeys", "allchannels", "resetchannels",
    "allcommands", "nocommands", "+@all", "-@all", "+@ALL", "sanitize-payload", "skip-sanitize-payload",
    "clearselectors", ">pw", "<pw", ">x", "<x", "", "~*", "&*", "%R~*", "%W~*", "%RW~*", "%wr~*",
)  # fmt: skip
WRONG_WORDS: Final = (
    "foo", "+nosuch", "-nosuch", "+@nosuch", "%", "%X~a", "%R", "%RR~a", "%~a", "#abc", "!abc", "+", "-", "+@", "+|",
    "+get|", "-get|x", "+config|nosuch", "+config|", "+xinfo|stream|x", "~a b", "&a b", "(", ")", "(+get", "~a)",
    "(nosuch)", "(on)", "()", "((", "+get|a|b", "-config|get|x", "+@read|x", "%R~a b", "(>x)", "(+get ~a b)", "on ",
)  # fmt: skip

# Not in the reference; or never equal there: they are asked for real elsewhere.
NOT_REAL: Final = {
    "QUIT", "RESET", "AUTH", "HELLO", "SHUTDOWN", "MONITOR", "EXEC", "MULTI", "DISCARD", "CLIENT|KILL", "CLIENT|PAUSE",
    "CLIENT|REPLY", "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "ACL|SETUSER", "ACL|DELUSER", "DEBUG", "WAIT", "WAITAOF",
    "CONFIG|SET", "CONFIG|REWRITE", "ACL|LOAD", "ACL|SAVE", "MODULE|LOADEX", "CLIENT|TRACKING", "CLIENT|CACHING",
    "FLUSHALL", "FLUSHDB", "BGREWRITEAOF", "BGSAVE", "SAVE", "SWAPDB", "SELECT", "FUNCTION|RESTORE", "MOVE",
    "EVAL", "EVAL_RO", "EVALSHA", "EVALSHA_RO", "FCALL", "FCALL_RO", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE",
    "PFDEBUG",  # two replies to one request
    *APART,
}  # fmt: skip


class Both:
    """A real Redis and an engine of ours, which are told the same."""

    def __init__(self, port: int) -> None:
        self.theirs = Connection("127.0.0.1", port, PATIENCE_S)
        self.their_user = Connection("127.0.0.1", port, PATIENCE_S)
        self.engine: Engine = make_engine(settings=settings_with(enable_debug_command="yes"))
        self.ours = self.engine.server.connect("127.0.0.1:1", "127.0.0.1:2")
        self.our_user = self.engine.server.connect("127.0.0.1:3", "127.0.0.1:2")
        self.compared = 0

    def close(self) -> None:
        self.theirs.ask("ACL", "DELUSER", "u")
        self.theirs.close()
        self.their_user.close()

    def known(self) -> set[str]:
        """Names that both servers have, as rules name them."""
        listed = self.theirs.ask("COMMAND", "LIST")
        assert isinstance(listed, Array)
        here = {row.title for row in every_row(self.engine)}
        return {word.text.decode() for word in listed.elements if isinstance(word, Bulk)} & here

    def ask(self, requests: list[Request]) -> Iterator[tuple[Request, Value, Value]]:
        """Each request with both replies."""
        for request in requests:
            self.theirs.send(*request)
        for request in requests:
            self.compared += 1
            yield request, self.theirs.reply(), parse(self.engine.handle(self.ours, request))[0]

    def ask_as_user(self, request: Request) -> tuple[Value | None, Value | None]:
        """What the user is told; None for what is not a refusal of rights: it may depend on the data."""
        self.compared += 1
        theirs = self.their_user.ask(*request)
        answer = self.engine.handle(self.our_user, request)
        if self.our_user.blocked is not None:
            self.engine.waiting.release(self.our_user.blocked, b"+waits\r\n")
        self.engine.clients.outgoing.clear()
        ours = parse(answer)[0] if answer else None
        return as_refusal(theirs), as_refusal(ours)


def as_refusal(value: Value | None) -> Value | None:
    if isinstance(value, Error) and (value.text.startswith((b"NOPERM", b"NOAUTH")) or b"ACL" in value.text):
        return value
    return None


def is_judged_otherwise(request: Request) -> bool:
    """PFMERGE with a target only; a value spelled STREAMS. Redis 8.6.3 misses their keys, or takes others for keys."""
    name = request[0].upper()
    if name in (b"XREAD", b"XREADGROUP"):
        before = request[request.index(b"STREAMS") - 1].upper() if b"STREAMS" in request else b""
        return request.count(b"STREAMS") > 1 or before in (b"COUNT", b"BLOCK")
    return name == b"PFMERGE" and len(request) == 2


def every_row(engine: Engine) -> list[Row]:
    return [row for top in engine.commands.rows.values() for row in (top, *top.subcommands.values())]


class AccessRequests:
    """Random rules and requests. known: names of commands that both servers have."""

    def __init__(self, chance: random.Random, engine: Engine, known: set[str]) -> None:
        self.chance = chance
        rows = [row for row in every_row(engine) if row.title in known]
        self.names = [row.title for row in rows]
        self.rows = [row for row in rows if not row.is_container and row.name not in APART]
        self.categories = sorted({category for row in rows for category in categories(row)} - {"array"})
        words = dict(PLAIN_WORDS.words) | {"key": KEYS, "channel": KEYS, "pattern": PATTERNS, "shardchannel": KEYS}
        self.requests = TableRequests(chance, Vocabulary(words, version=(8, 6, 3)))

    def rule(self) -> str:
        chance = self.chance
        kind = chance.random()
        if kind < 0.30:
            return chance.choice("+++-") + self.some_command()
        if kind < 0.50:
            return chance.choice("+++-") + "@" + chance.choice(self.categories)
        if kind < 0.70:
            return chance.choice(("~", "~", "%R~", "%W~", "%RW~", "%r~", "%Wr~")) + chance.choice(PATTERNS)
        if kind < 0.78:
            return "&" + chance.choice(PATTERNS)
        if kind < 0.87:
            words = [self.rule() for _ in range(chance.randint(0, 4))]
            return "(" + " ".join(word for word in words if not word.startswith("(")) + ")"
        if kind < 0.98:
            return chance.choice(RULE_WORDS)
        return chance.choice(WRONG_WORDS)

    def some_command(self) -> str:
        name = self.chance.choice(self.names)
        kind = self.chance.random()
        if kind < 0.1:
            return name.upper()
        if kind < 0.2:
            return name + "|" + self.chance.choice((*KEYS, "0", "get"))
        return name

    def rules(self) -> Request:
        chance = self.chance
        start = chance.choice(("reset", "reset", "reset +@all", "reset +@all ~a* &a*", "reset +@all %R~a* %W~b*", ""))
        words = [*start.split(), *[self.rule() for _ in range(chance.randint(0, 7))]]
        if chance.random() < 0.2:  # a selector in several words
            words += ["(" + self.rule(), self.rule(), self.rule() + ")"]
        return [word.encode() for word in words]

    def request(self) -> Request:
        row = self.chance.choice(self.rows)
        made = self.requests.broken_of(row) if self.chance.random() < 0.1 else self.requests.valid(row)
        return self.request() if is_judged_otherwise(made) else made

    def real_request(self) -> Request:
        while True:
            row = self.chance.choice(self.rows)
            if row.name not in NOT_REAL and "blocking" not in row.flags:
                made = self.requests.valid(row)
                if not is_judged_otherwise(made):
                    return made


def differences(both: Both, made: AccessRequests, requests: int) -> list[str]:
    """Change a user, look at it, and ask in its name; what differs."""
    change = [b"ACL", b"SETUSER", b"u", *made.rules()]
    asked: list[Request] = [change, [b"ACL", b"GETUSER", b"u"], [b"ACL", b"LIST"], [b"ACL", b"SETUSER", b"u", b"on"]]
    asked += [[b"ACL", b"DRYRUN", b"u", *made.request()] for _ in range(requests)]
    found = [
        f"{shown(change)}\n  {shown(request)}\n  theirs {theirs}\n  ours   {ours}"
        for request, theirs, ours in both.ask(asked)
        if theirs != ours
    ]
    for _ in range(requests // 4):
        request = made.real_request()
        theirs, ours = both.ask_as_user(request)
        if theirs != ours:
            found.append(f"{shown(change)}\n  really {shown(request)}\n  theirs {theirs}\n  ours   {ours}")
    return found


def begin(both: Both) -> None:
    """Log the user in on both sides."""
    for request in ([b"ACL", b"SETUSER", b"u", b"reset", b"on", b"nopass"],):
        both.theirs.ask(*request)
        both.engine.handle(both.ours, request)
    both.their_user.ask("AUTH", "u", "x")
    both.engine.handle(both.our_user, [b"AUTH", b"u", b"x"])


def shown(request: Request) -> str:
    return " ".join([repr(word)[2:-1] or "''" for word in request])


def main() -> int:
    seconds, seed = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    count = 0
    with reference_server() as port, closing(Both(port)) as both:
        made = AccessRequests(random.Random(seed), both.engine, both.known())
        begin(both)
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            for difference in differences(both, made, 20):
                count += 1
                sys.stdout.write(difference + "\n")
        sys.stdout.write(f"{both.compared} requests compared, {count} differences\n")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
