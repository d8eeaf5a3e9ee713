"""Random rules of a user, and what they allow, beside a naive model: by ACL DRYRUN, by a real request, and in MULTI.

And random histories of a user with rules beside policies, which change no key that the user may not write.
"""

import random
import traceback
from collections.abc import Iterator
from typing import Final

from penstock.engine.engine import Engine
from penstock.engine.session import Session
from tests.fuzz.limit import Found, Limit
from tests.policies.restricted_user import check_history
from tests.support.access_model import (
    COMMAND_WORDS,
    COMMANDS,
    KEY_NAMES,
    PATTERNS,
    REQUESTS,
    allows,
    in_parentheses,
    without_useless,
)
from tests.support.engines import make_engine

OK: Final = b"+OK\r\n"
QUEUED: Final = b"+QUEUED\r\n"
REQUESTS_A_USER: Final = 8


class Users:
    """One engine, an administrator and a client of the user with changing rules."""

    def __init__(self) -> None:
        self.engine: Engine = make_engine()
        self._admin: Session = self.engine.server.connect("127.0.0.1:1", "127.0.0.1:2")
        self._client: Session = self.engine.server.connect("127.0.0.1:3", "127.0.0.1:2")
        self.ask(b"ACL", b"SETUSER", b"u", b"on", b"nopass")
        self.engine.handle(self._client, [b"AUTH", b"u", b"x"])

    def ask(self, *words: bytes) -> bytes:
        """As the administrator."""
        return self.engine.handle(self._admin, list(words))

    def as_user(self, *words: bytes) -> bytes:
        return self.engine.handle(self._client, list(words))

    def verdicts(self, words: list[bytes]) -> set[bool]:
        """Whether the request is allowed, by every way that asks."""
        tried = self.ask(b"ACL", b"DRYRUN", b"u", *words) == OK
        done = not self.as_user(*words).startswith(b"-NOPERM")
        self.as_user(b"MULTI")
        queued = self.as_user(*words) == QUEUED
        self.as_user(b"DISCARD")
        return {tried, done, queued}


def rule(chance: random.Random) -> str:
    how = chance.random()
    if how < 0.5:
        return chance.choice("++-") + chance.choice(COMMAND_WORDS)
    if how < 0.8:
        return chance.choice(("~", "%R~", "%W~")) + chance.choice(PATTERNS)
    return "&" + chance.choice(PATTERNS)


def attack_access(seed: str, limit: Limit) -> Iterator[Found]:
    """Users with random rules and selectors. An input is one set of rules, with some requests."""
    users = Users()
    while limit.more():
        chance = random.Random(f"{seed}/{limit.done}")
        try:
            problem = one_user(users, chance)
        except Exception:
            problem = traceback.format_exc()[-1500:]
            users = Users()
        if problem:
            yield Found("access", f"{seed}/{limit.done}", problem)


def attack_by_policies(seed: str, limit: Limit) -> Iterator[Found]:
    """Histories of requests and policies (tests/policies/restricted_user.py). An input is one history."""
    while limit.more():
        history = f"{seed}/{limit.done}"
        try:
            check_history(history)
        except Exception:
            yield Found("policies", history, traceback.format_exc()[-1500:])


def one_user(users: Users, chance: random.Random) -> str:
    """What differs from the model; empty if nothing does."""
    selectors = [
        without_useless([rule(chance) for _ in range(chance.randint(0, 6))]) for _ in range(chance.randint(1, 3))
    ]
    always = ["+multi", "+discard", "+auth"]
    root, *others = selectors
    rules = [b"reset", b"on", b"nopass", *[one.encode() for one in [*root, *always]], *map(in_parentheses, others)]
    if users.ask(b"ACL", b"SETUSER", b"u", *rules) != OK:
        return f"refused: {rules}"
    users.as_user(b"AUTH", b"u", b"x")
    for _ in range(REQUESTS_A_USER):
        name = chance.choice(list(COMMANDS))
        words = REQUESTS[name].format(chance.choice(KEY_NAMES), chance.choice(KEY_NAMES)).split()
        expected = any(allows(each, name, words) for each in selectors)
        found = users.verdicts([word.encode() for word in words])
        if found != {expected}:
            return f"{rules}\n  {words}: the model says {expected}, found {found}"
    return ""
