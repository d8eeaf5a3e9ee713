"""redis-py's locks: without Lua, and by scripts that do what Lua does."""

import re

import pytest

from penstock.clock import ManualClock
from penstock.engine.aof.replay import Replay
from penstock.engine.aof.rewrite import base_lines
from penstock.engine.scripting import function_payload, lock_scripts, scripts
from penstock.protocol.reply import bulks
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue, decoded
from tests.support.engines import make_engine
from tests.support.late_script import LIBRARY, script
from tests.support.log import UnitLog

pytest.importorskip("lupa")


@pytest.fixture
def without_lua(dialogue: Dialogue, monkeypatch: pytest.MonkeyPatch) -> Dialogue:
    monkeypatch.setattr(scripts, "find_spec", lambda name: None)
    monkeypatch.setitem(__import__("sys").modules, "lupa", None)
    return dialogue


def test_redis_py_releases_its_lock(without_lua: Dialogue) -> None:
    lock = pytest.importorskip("redis.lock").Lock
    without_lua("SET l token PX 1000")
    without_lua.words(b"SCRIPT", b"LOAD", lock.LUA_RELEASE_SCRIPT.encode())

    assert without_lua(f"EVALSHA {lock_scripts.RELEASE.decode()} 1 l other") == 0
    assert without_lua(f"EVALSHA {lock_scripts.RELEASE.decode()} 1 l token", "EXISTS l") == 0


def test_redis_py_extends_and_reacquires_its_lock(without_lua: Dialogue) -> None:
    lock = pytest.importorskip("redis.lock").Lock
    without_lua("SET l token PX 1000")

    assert decoded(without_lua.words(b"EVAL", lock.LUA_EXTEND_SCRIPT.encode(), b"1", b"l", b"token", b"500", b"0")) == 1
    assert without_lua("PTTL l") == 1500
    assert decoded(without_lua.words(b"EVAL", lock.LUA_EXTEND_SCRIPT.encode(), b"1", b"l", b"token", b"700", b"1")) == 1
    assert without_lua("PTTL l") == 700
    assert decoded(without_lua.words(b"EVAL", lock.LUA_REACQUIRE_SCRIPT.encode(), b"1", b"l", b"token", b"900")) == 1
    assert without_lua("PTTL l") == 900


def test_any_other_script_is_told_what_to_install(without_lua: Dialogue) -> None:
    assert "the extra `lua` of penstock-server (pip install '.[lua]' in a clone)" in str(
        script(without_lua, "return 1")
    )


WHERE = re.compile(r" script: [0-9a-f]{40}, on @user_script:\d+\.$")  # what Lua adds to an error of redis.call
OTHER = b"#!lua name=other\nredis.register_function('other', function() return 1 end)"


@pytest.mark.parametrize("policy", [b"APPEND", b"REPLACE", b"FLUSH"])
def test_libraries_of_a_log_are_kept_for_the_next_base(without_lua: Dialogue, policy: bytes) -> None:
    engine = without_lua.engine
    loaded = bulks([b"FUNCTION", b"LOAD", LIBRARY])
    restored = bulks([b"FUNCTION", b"RESTORE", function_payload.written([OTHER]), policy])
    replay = Replay(engine.server, pytest.fail)
    replay.begin()
    replay.lines([loaded, restored])
    replay.end()

    kept = b"".join(base_lines(engine.keyspace, engine.settings, NOW_MS))
    assert (LIBRARY in kept, OTHER in kept) == (policy != b"FLUSH", True)
    assert "pip install" in str(without_lua("FCALL other 0 1"))


@pytest.mark.parametrize("refused", ["get", "del", "pttl", "pexpire"])
@pytest.mark.parametrize("script_of", ["LUA_RELEASE_SCRIPT", "LUA_EXTEND_SCRIPT", "LUA_REACQUIRE_SCRIPT"])
def test_a_user_that_may_not_do_all_of_it_is_refused_as_by_lua(
    monkeypatch: pytest.MonkeyPatch, script_of: str, refused: str
) -> None:
    code = getattr(pytest.importorskip("redis.lock").Lock, script_of).encode()
    answer, left = told_without(refused, code)
    monkeypatch.setattr(scripts, "find_spec", lambda name: None)
    monkeypatch.setitem(__import__("sys").modules, "lupa", None)

    assert told_without(refused, code) == (WHERE.sub("", answer), left)


def told_without(refused: str, code: bytes) -> tuple[str, object]:
    """What a user that may not run one command is told by a lock script, and what is left of the lock's time."""
    dialogue = Dialogue(make_engine())
    dialogue(f"ACL SETUSER u on nopass ~l +@all -{refused}", "SET l token PX 1000")
    user = dialogue.another()
    user("AUTH u x")
    answer = decoded(user.words(b"EVAL", code, b"1", b"l", b"token", b"500", b"0"))
    return str(answer), dialogue("PTTL l")


# -- locks beside Lua -------------------------------------------------------------------------------------------------

LOCKS = {"release": "LUA_RELEASE_SCRIPT", "extend": "LUA_EXTEND_SCRIPT", "reacquire": "LUA_REACQUIRE_SCRIPT"}
KEPT = {
    "nothing": "DEL l",
    "ours": "SET l token PX 1000",
    "ours for ever": "SET l token",
    "another's": "SET l other PX 1000",
    "overdue": "SET l token PX 1",
    "no string": "RPUSH l token",
}
SAID = {
    "as redis-py": "1 l token 500 0",
    "instead": "1 l token 500 1",
    "now": "1 l token 0 1",
    "in the past": "1 l token -500 0",
    "no time": "1 l token soon 1",
    "a time that is too large": "1 l token 9223372036854775807 1",
    "half a time": "1 l token 1.5 0",
    "too few words": "1 l",
    "two keys": "2 l m token 500 0",
    "no key": "0 l token 500 0",
}


@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT.keys())
@pytest.mark.parametrize("script_of", LOCKS.values(), ids=LOCKS.keys())
@pytest.mark.parametrize("command", ["EVALSHA", "EVALSHA_RO"])
def test_a_lock_script_does_what_lua_does(script_of: str, kept: str, command: str) -> None:
    code = getattr(pytest.importorskip("redis.lock").Lock, script_of).encode()
    in_place, by_lua = [seen_of(text, kept, command) for text in (code, code + b" ")]  # a space more, and Lua runs it

    assert in_place == by_lua


def seen_of(code: bytes, kept: str, command: str) -> list[object]:
    """Of all that is said, one after the other."""
    log, clock = UnitLog(), ManualClock(NOW_MS)
    dialogue = Dialogue(make_engine(clock, log))
    return [[name, *seen_when(said, dialogue, log, clock, code, kept, command)] for name, said in SAID.items()]


def seen_when(
    said: str, dialogue: Dialogue, log: UnitLog, clock: ManualClock, code: bytes, kept: str, command: str
) -> list[object]:
    """The script's answer without its SHA-1, what is left, what was logged, and what was counted so far."""
    dialogue("DEL l", kept)
    clock.advance(10)
    sha = decoded(dialogue.words(b"SCRIPT", b"LOAD", code))
    assert isinstance(sha, bytes)
    log.units.clear()
    answer = dialogue.raw(f"{command} {sha.decode()} {said}").replace(sha, b"SHA")
    left = dialogue("EXISTS l", "PTTL l")
    counted = [
        (name, row.calls, row.failed)
        for name, row in sorted(dialogue.engine.statistics.rows.items())
        if name in ("GET", "DEL", "PTTL", "PEXPIRE")
    ]
    return [answer, left, list(log.units), counted, dict(dialogue.engine.statistics.errors)]
