"""The scripts of redis-py's Lock, done without Lua (redis-py 3 to 8).

They are known by the SHA-1 of their text. Each has one key, the lock, and compares its value with ARGV[1], the token.
Where Lua is installed they are done here too unless something in them can be refused: only Lua says in which line.
Releasing a lock took 55 us in Lua and takes 33 here (November 2026, Python 3.11).
"""

from collections.abc import Callable
from typing import Final

from penstock.engine import arguments
from penstock.engine.scripting.script_calls import Calls
from penstock.protocol import reply
from penstock.storage.keyspace import Database
from penstock.storage.types.large_strings import LargeString

RELEASE: Final = b"c3f8721cbb97f72bc19e972846bd7aaf91901658"
EXTEND: Final = b"a4e8783852e6b949f9ef3a97212805108459a890"
REACQUIRE: Final = b"1cac51482acf5858da00f6d685d68f886cd6b6b2"
FEWEST: Final = {RELEASE: 2, EXTEND: 4, REACQUIRE: 3}  # words behind the count of keys
MOST_DIGITS: Final = 15  # of a time in milliseconds that no sum makes too large


def is_lock_script(sha: bytes) -> bool:
    return sha in FEWEST


def succeeds(db: Database, sha: bytes, keys: int, given: list[bytes]) -> bool:
    """Whether nothing in it is refused: the words are what redis-py sends, and the key is a string or missing."""
    if keys != 1 or len(given) < FEWEST[sha]:
        return False
    if sha != RELEASE and not (given[2].isdigit() and len(given[2]) <= MOST_DIGITS):
        return False
    held = db.values.get(given[0])
    return held is None or isinstance(held, (bytes, LargeString))


def run(calls: Calls, sha: bytes, given: list[bytes]) -> bytes:
    """`given` are KEYS[1] and ARGV; the reply, or an error that a request in it met."""
    if len(given) < FEWEST[sha]:
        return reply.error(b"ERR Lua redis lib command arguments must be strings or integers script: " + sha)
    key, token = given[0], given[1]
    held = calls.call((b"get", key))
    if held.startswith(b"-"):
        return held
    if held != reply.bulk(token):
        return reply.ZERO
    return STEPS[sha](calls, key, given)


def _release(calls: Calls, key: bytes, given: list[bytes]) -> bytes:
    return _done(calls.call((b"del", key)))


def _reacquire(calls: Calls, key: bytes, given: list[bytes]) -> bytes:
    return _done(calls.call((b"pexpire", key, given[2])))


def _extend(calls: Calls, key: bytes, given: list[bytes]) -> bytes:
    """The time is added to what is left, or taken instead of it."""
    left = calls.call((b"pttl", key))
    if left.startswith(b"-"):
        return left
    left_ms = int(left[1:-2])
    if left_ms < 0:
        return reply.ZERO
    time_ms = given[2]
    if given[3] == b"0" and arguments.is_integer(time_ms):
        time_ms = b"%d" % (int(time_ms) + left_ms)
    return _done(calls.call((b"pexpire", key, time_ms)))


def _done(answer: bytes) -> bytes:
    return answer if answer.startswith(b"-") else reply.ONE


STEPS: Final[dict[bytes, Callable[[Calls, bytes, list[bytes]], bytes]]] = {
    RELEASE: _release,
    EXTEND: _extend,
    REACQUIRE: _reacquire,
}
