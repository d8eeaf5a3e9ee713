"""Long strings that are changed where they stand: no other bytes change with them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.storage.types.large_strings import SHORTEST, LargeString
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, value_of

LONG = b"0123456789abcdef" * (SHORTEST // 16)
CHANGES = [
    ("APPEND k tail", LONG + b"tail"),
    ("SETRANGE k 3 xyz", LONG[:3] + b"xyz" + LONG[6:]),
    ("SETBIT k 0 1", bytes([LONG[0] | 0x80]) + LONG[1:]),
    ("BITFIELD k SET u8 #1 65", LONG[:1] + b"A" + LONG[2:]),
]


@pytest.mark.parametrize(("request_", "changed"), CHANGES, ids=["append", "setrange", "setbit", "bitfield"])
def test_a_long_string_changes_without_being_copied(dialogue: Dialogue, request_: str, changed: bytes) -> None:
    dialogue.words(b"SET", b"k", LONG)
    dialogue(request_)
    before = value_of(dialogue.engine, b"k")
    dialogue("APPEND k more", request_)
    after = value_of(dialogue.engine, b"k")

    assert isinstance(before, LargeString)
    assert before is after
    assert dialogue("GETRANGE k 0 9") == changed[:10]


@pytest.mark.parametrize(("request_", "changed"), CHANGES, ids=["append", "setrange", "setbit", "bitfield"])
def test_a_copy_and_a_reply_keep_what_the_string_was(dialogue: Dialogue, request_: str, changed: bytes) -> None:
    dialogue.words(b"SET", b"k", LONG)
    dialogue("APPEND k x", "COPY k c")
    payload, answer = dialogue("DUMP k"), dialogue.words(b"GET", b"k")
    dialogue("MULTI", "GET k", request_, "GET k")
    first, _, last = dialogue("EXEC")
    dialogue.words(b"RESTORE", b"r", b"0", payload)

    assert answer == b"$%d\r\n%b\r\n" % (len(LONG) + 1, LONG + b"x")
    assert first == dialogue("GET c") == dialogue("GET r") == LONG + b"x"
    assert last == dialogue("GET k") != first


def test_a_long_string_is_a_string_to_every_command(dialogue: Dialogue) -> None:
    dialogue.words(b"SET", b"k", LONG)
    dialogue("APPEND k x", "EXPIRE k 100")

    assert dialogue("TYPE k") == b"string"
    assert dialogue("OBJECT ENCODING k") == b"raw"
    assert dialogue("STRLEN k") == len(LONG) + 1
    assert dialogue("MGET k none") == [LONG + b"x", None]
    assert dialogue("TTL k") == 100
    assert len(LONG) < dialogue("MEMORY USAGE k") < 2 * len(LONG)
    assert dialogue("GETBIT k 2") == 1
    assert dialogue("BITCOUNT k 0 0") == 2
    assert dialogue("BITPOS k 1") == 2
    assert dialogue("BITFIELD_RO k GET u8 0") == [0x30]
    assert dialogue("GETDEL k") == LONG + b"x"
    assert dialogue("EXISTS k") == 0


def test_a_client_that_watches_a_long_string_learns_that_it_was_changed_in_place(dialogue: Dialogue) -> None:
    dialogue.words(b"SET", b"k", LONG)
    dialogue("APPEND k x", "WATCH k", "SETBIT k 7 1", "MULTI", "PING")

    assert dialogue("EXEC") is None


def test_the_same_string_has_the_same_digest_however_it_is_kept(dialogue: Dialogue) -> None:
    dialogue.engine.settings.read_line(["enable-debug-command", "yes"], set())
    dialogue.words(b"SET", b"k", LONG)
    dialogue("APPEND k x")
    dialogue.words(b"SET", b"l", LONG + b"x")

    assert len(set(dialogue("DEBUG DIGEST-VALUE k l"))) == 1


STEPS = st.one_of(
    st.tuples(st.just(b"APPEND"), st.binary(max_size=5)),
    st.tuples(st.just(b"SETRANGE"), st.integers(0, SHORTEST + 40).map(lambda at: b"%d" % at), st.binary(max_size=9)),
    st.tuples(st.just(b"SETBIT"), st.integers(0, 8 * SHORTEST + 99).map(lambda at: b"%d" % at), st.just(b"1")),
)


def naive(text: bytes, step: tuple[bytes, ...]) -> bytes:
    if step[0] == b"APPEND":
        return text + step[1]
    at = int(step[1])
    if step[0] == b"SETRANGE":
        return text[:at].ljust(at, b"\0") + step[2] + text[at + len(step[2]) :] if step[2] else text
    longer = text.ljust((at >> 3) + 1, b"\0")
    return longer[: at >> 3] + bytes([longer[at >> 3] | 0x80 >> (at & 7)]) + longer[(at >> 3) + 1 :]


@given(st.integers(SHORTEST - 20, SHORTEST + 20), st.lists(STEPS, min_size=1, max_size=6))
def test_a_string_that_grows_into_a_long_one_holds_what_the_plainest_model_does(length: int, steps: list[Any]) -> None:
    dialogue = Dialogue(make_engine())
    model = bytes(length)
    dialogue.words(b"SET", b"k", model)
    for step in steps:
        dialogue.words(step[0], b"k", *step[1:])
        model = naive(model, step)

    assert dialogue.words(b"GET", b"k") == b"$%d\r\n%b\r\n" % (len(model), model)
