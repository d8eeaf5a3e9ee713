"""Random scripts that begin in place are answered as those that are watched from the first, and hold no client up."""

import random
import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.clock import SystemClock
from penstock.engine.scripting import quick_code
from penstock.engine.scripting.lua_machine import Machine
from tests.scripts.grammar import Grammar
from tests.scripts.hostile_scripts import HostileScripts
from tests.support.builds import replaces_functions
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine
from tests.support.seeds import examples

pytest.importorskip("lupa")

WORDS = (b"2", b"k1", b"k2", b"a", b"17")
STEPS = (20_000, 400)
PIECES = st.sampled_from((
    b"function(a) ", b"end",
    b"if x then ", b"else ", b"elseif y then ", b"for i = 1, 2 do ", b"while z do ", b"repeat ",
    b"until x ", b"local ", b"return ", b".. ", b"( ", b") ", b"{ ", b"} ", b"[ ", b"] ", b", ", b"; ", b"= ", b"'t' ",
    b"[[l]] ", b"-- c\n", b"x ", b"f ", b"f( ", b":m( ", b".y ", b"1 ", b"not ", b"- ", b"# ", b"== ", b"< ", b"and ",
    b"... ", b"do ", b"in ", b"nil ", b"break ",
))  # fmt: skip
# Addresses; and which of several values cjson refuses, which depends on the order of pairs, another in each Lua.
VARYING = re.compile(rb"0x[0-9a-f]{6,}|(?<=Cannot serialise)[^\r]*?(?= script:)")
LUAS = 30  # that are asked where answers differ: the order of pairs, which a packed table shows, is another in each
LONGEST_S = 2  # of processor time: some milliseconds are usual, what nothing bounds takes minutes
MOST_MADE = 4 * 1024 * 1024
HOLDING = (
    "a = a .. a", "x = a .. b .. a .. b", "x = (a .. b) .. (b .. a)", "x = a < b", "x = a + 0", "x = -a",
    "x = a:upper()",
    "x = a:find('y', 1, true)", "x = a:byte(1, -1)", "x = tonumber(a)", "x = table.concat(t)", "x = {unpack(t)}",
    "table.insert(t, 1, 1)", "table.remove(t, 1)", "x = next(h)", "x = select('#', unpack(t))", "x = {v(unpack(t))}",
    "x = cjson.encode({a, a})", "x = cmsgpack.pack(t)", "x = struct.pack('s', a)", "x = string.format('%s', a)",
    "pcall(error, a)", "x = pcall(function() error(a) end)", "x = r(3)", "x = {t, t, {t}}", "x = a:gsub('1', '22')",
    "x = a:match('.-.-y')", "x = unpack(t, 1, 5000)", "x = redis.sha1hex(a)", "x = redis.call('STRLEN', a .. b)",
)  # fmt: skip
HOLDING_LOCALS = """local a, b, x, t, h = ARGV[1], ARGV[2], nil, {}, {}
for i = 1, 300 do t[i] = i h[i] = 1 end for i = 1, 300 do h[i] = nil end
local function r(n) if n == 0 then return a end local s = r(n - 1) .. a return s end
local function v(...) return ... end
"""


def fresh() -> Dialogue:
    dialogue = Dialogue(make_engine(SystemClock()))
    dialogue("CONFIG SET busy-reply-threshold 60000")
    return dialogue


def answers(code: bytes, steps: int, monkeypatch: Any) -> list[bytes]:
    """What a script answers, and leaves behind. steps: that it may take in place, 0 where it is watched at once."""
    dialogue = fresh()
    with monkeypatch.context() as patched:
        patched.setattr(quick_code, "MOST_STEPS", steps)
        if not steps:
            patched.setattr(quick_code, "judged", lambda text: (0, []))
        answer = VARYING.sub(b"", dialogue.words(b"EVAL", code, *WORDS))
        return [answer, dialogue.words(b"DBSIZE"), dialogue.words(b"GET", b"k1")]


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 2**32))
def test_a_random_script_answers_in_place_as_when_it_is_watched(seed: int) -> None:
    code = "\n".join(Grammar(random.Random(seed)).script()).encode("utf-8", "surrogateescape")
    with pytest.MonkeyPatch.context() as patched:
        expected = answers(code, 0, patched)
        for steps in STEPS:
            found = answers(code, steps, patched)
            if found != expected:
                assert found in [answers(code, 0, patched) for _ in range(LUAS)], expected


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(PIECES, max_size=40))
def test_a_text_that_is_no_script_is_refused_as_if_nothing_were_counted(pieces: list[bytes]) -> None:
    assert complaint(b"".join(pieces), True) == complaint(b"".join(pieces), False)


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 2000), st.integers(0, 20), st.lists(PIECES, max_size=3))
def test_a_damaged_script_is_refused_as_if_nothing_were_counted(
    seed: int, place: int, length: int, pieces: list[bytes]
) -> None:
    code = "\n".join(Grammar(random.Random(seed)).script()).encode("utf-8", "surrogateescape")
    damaged = code[:place] + b"".join(pieces) + code[place + length :]

    assert complaint(damaged, True) == complaint(damaged, False)


@pytest.mark.parametrize("code", [b"x 't' .. y", b"x = 1 f() .. y", b"; f 't' .. y", b"repeat f() .. y until 1",
    b"function f() end .. y", b"if x then end .. y", b"do f {} .. y end", b"for i = 1, 2 do break f() .. y end",
    b"x, y .. z = 1", b"local x .. y", b"for x .. y = 1, 2 do end", b"return return x .. y", b"x = .. y", b"(x .. y)",
    b"x = y ..", b"x = y .. .. z"])  # fmt: skip
def test_a_join_that_stands_nowhere_is_refused(code: bytes) -> None:
    assert complaint(code, True)
    assert complaint(code, True) == complaint(code, False)


ALONE = Machine(make_engine(SystemClock()).scripts.calls, "8.6.3")


def complaint(code: bytes, counts: bool) -> bytes | None:
    _, changes = quick_code.judged(code)
    found = ALONE.compile(b"sha", code, changes if counts else [])
    return found if isinstance(found, bytes) else None


@replaces_functions
@pytest.mark.parametrize("body", HOLDING)
def test_nothing_holds_the_server_up_in_place(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)
    for length in (10, 3000, 9000):
        for code in (
            f"for j = 1, 1e9 do {body} end", f"while true do {f'{body}; ' * 20} end", f"{body}; " * 150,
            f"local function z() {body} return z() end z()", f"local function z() {body} z() {body} end z()",
            f"local function z(n) if n > 0 then z(n - 1) z(n - 1) end {body} end z(60)",
        ):  # fmt: skip
            words = (b"1" * length, b"1" * length + b"2")
            held.dialogue.words(b"EVAL", (HOLDING_LOCALS + code).encode(), b"0", *words)

    assert held.begun
    assert held.longest_s < LONGEST_S
    assert held.most_made < MOST_MADE


@replaces_functions
def test_no_hostile_script_holds_the_server_up_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)
    for seed in range(500):
        for request in HostileScripts(random.Random(seed)).requests():
            held.dialogue.words(*request)

    assert held.begun > 100
    assert held.longest_s < LONGEST_S
    assert held.most_made < MOST_MADE


class Held:
    """How long scripts ran in place, at most, and how many bytes were made; what goes on elsewhere ends there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = 0
        self.longest_s = 0.0
        self.most_made = 0
        self.dialogue = fresh()
        monkeypatch.setattr(Machine, "run_in_place", self._measured(Machine.run_in_place))
        for name in ("run", "go_on"):
            monkeypatch.setattr(Machine, name, lambda machine, *given: b"-ERR went on\r\n")

    def _measured(self, function: Any) -> Any:
        def run(machine: Machine, *given: Any) -> bytes | None:
            before, began = machine.memory(), time.thread_time()
            answer: bytes | None = function(machine, *given)
            self.begun += 1
            self.longest_s = max(self.longest_s, time.thread_time() - began)
            self.most_made = max(self.most_made, machine.memory() - before)
            return answer

        return run
