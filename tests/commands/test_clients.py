"""CLIENT."""

import re

import pytest

from penstock.clock import ManualClock
from penstock.engine.engine import Engine
from tests.support.dialogue import NO_REPLY, Dialogue
from tests.support.replies_beside_redis import replies_of_both

ALIKE = {
    "names": [
        "CLIENT GETNAME", "CLIENT SETNAME 'a b'", "CLIENT SETNAME x", "CLIENT GETNAME", "CLIENT SETNAME ''",
        "CLIENT GETNAME",
    ],
    "libraries": [
        "CLIENT SETINFO lib-namE 'a b'", "CLIENT SETINFO foo x", "CLIENT SETINFO foo", "CLIENT SETINFO LIB-VER 1",
    ],
    "unknown": [
        "CLIENT", "CLIENT FOO", "CLIENT FOO BAR",
        "CLIENT MAINT_NOTIFICATIONS ON", "CLIENT CAPA redirect", "CLIENT ID x",
    ],
    "switches": [
        "CLIENT NO-EVICT", "CLIENT NO-EVICT x", "CLIENT NO-EVICT ON", "CLIENT NO-TOUCH off", "CLIENT NO-TOUCH x",
    ],
    "replies off": ["CLIENT REPLY x", "CLIENT REPLY OFF", "PING", "CLIENT REPLY SKIP", "CLIENT REPLY ON", "PING"],
    "replies skipped": [
        "CLIENT REPLY SKIP", "CLIENT REPLY SKIP", "PING", "PING", "CLIENT REPLY SKIP", "CLIENT REPLY ON",
        "CLIENT REPLY SKIP", "RESET", "PING", "CLIENT REPLY OFF", "RESET", "PING",
    ],
    "lists": [
        "CLIENT LIST TYPE", "CLIENT LIST TYPE foo", "CLIENT LIST TYPE normal ID 3", "CLIENT LIST ID",
        "CLIENT LIST ID x", "CLIENT LIST ID 0",
        "CLIENT LIST ID -1", "CLIENT LIST FOO", "CLIENT LIST FOO bar", "CLIENT LIST TYPE master",
        "CLIENT LIST TYPE replica", "CLIENT LIST TYPE slave", "CLIENT LIST TYPE PUBSUB",
    ],
    "kills": [
        "CLIENT KILL", "CLIENT KILL 127.0.0.1:1", "CLIENT KILL ID", "CLIENT KILL ID x", "CLIENT KILL ID 0",
        "CLIENT KILL ID -1", "CLIENT KILL ID 999999", "CLIENT KILL ID 99999 99998", "CLIENT KILL ID 99999 ID 99998",
        "CLIENT KILL ID 99999 FOO", "CLIENT KILL FOO bar", "CLIENT KILL TYPE foo", "CLIENT KILL TYPE master",
        "CLIENT KILL ADDR x", "CLIENT KILL LADDR x", "CLIENT KILL USER x", "CLIENT KILL SKIPME foo",
        "CLIENT KILL MAXAGE x", "CLIENT KILL MAXAGE 0", "CLIENT KILL MAXAGE -1", "CLIENT KILL MAXAGE 10000",
        "CLIENT KILL IP 1",
    ],
    "pauses": [
        "CLIENT PAUSE", "CLIENT PAUSE x", "CLIENT PAUSE -1", "CLIENT PAUSE 1.5", "CLIENT PAUSE 1 FOO",
        "CLIENT PAUSE x FOO", "CLIENT PAUSE 99999999999999999999", "CLIENT PAUSE 9223372036854775807",
        "CLIENT PAUSE 1 WRITE ALL", "CLIENT PAUSE 0 WRITE", "CLIENT UNPAUSE",
    ],
    "unblocking": [
        "CLIENT UNBLOCK x", "CLIENT UNBLOCK 999999", "CLIENT UNBLOCK 999999 foo", "CLIENT UNBLOCK x foo",
        "CLIENT UNBLOCK 999999 ERROR x",
    ],
    "tracking": [
        "CLIENT GETREDIR", "CLIENT TRACKINGINFO", "CLIENT CACHING YES", "CLIENT TRACKING FOO", "CLIENT TRACKING OFF",
    ],
}  # fmt: skip


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("lines", ALIKE.values(), ids=ALIKE.keys())
def test_client_answers_what_redis_answers(reference_port: int, lines: list[str], resp: int) -> None:
    theirs, ours = replies_of_both(reference_port, lines, resp)

    assert ours == theirs


def fields(line: bytes) -> dict[str, str]:
    """The fields of one line of CLIENT LIST."""
    return dict(re.findall(r"(\S+)=(\S*)", line.decode()))


def test_client_info_has_the_fields_of_redis_in_its_order_and_three_more(
    dialogue: Dialogue, reference_port: int
) -> None:
    theirs, _ = replies_of_both(reference_port, ["CLIENT INFO"], 2)

    assert list(fields(dialogue.raw("CLIENT INFO")))[:-3] == list(fields(theirs[0]))


def test_client_list_tells_what_a_client_is_like(dialogue: Dialogue, clock: ManualClock) -> None:
    dialogue("HELLO 3 SETNAME me", "CLIENT SETINFO LIB-NAME lib", "SELECT 2", "WATCH k", "CLIENT NO-EVICT ON")
    dialogue("CLIENT NO-TOUCH ON", "MULTI", "PING")
    dialogue.another()("SELECT 2", "SET k v")
    clock.advance(3000)

    shown = fields(dialogue.another().raw(f"CLIENT LIST ID {dialogue.session.id}"))

    wanted = {"name": "me", "lib-name": "lib", "db": "2", "watch": "1", "multi": "1", "flags": "xdeT", "resp": "3"}
    assert wanted.items() <= shown.items()
    assert {"age": "3", "idle": "3", "cmd": "ping", "addr": "127.0.0.1:50000"}.items() <= shown.items()


@pytest.mark.parametrize(
    ("line", "named"),
    {
        "NOSUCH": "NULL", "GET": "get", "CONFIG": "config", "CONFIG NOSUCH": "NULL", "CONFIG GET": "config|get",
        "Get k": "get", "config|get x": "NULL",
    }.items(),
)  # fmt: skip
@pytest.mark.parametrize("before", ["PING", "MULTI"])
def test_client_list_names_the_last_command_whether_it_was_refused_or_not(
    dialogue: Dialogue, before: str, line: str, named: str
) -> None:
    other = dialogue.another()
    other(before, line)

    assert fields(dialogue.raw(f"CLIENT LIST ID {other.session.id}"))["cmd"] == named


def test_a_waiting_client_and_a_monitor_are_flagged(dialogue: Dialogue) -> None:
    waiting, monitor = dialogue.another(), dialogue.another()
    waiting("XREAD BLOCK 0 STREAMS s $")
    monitor("MONITOR")

    shown = dialogue.raw("CLIENT LIST").split(b"\n")

    assert [fields(line)["flags"] for line in shown[1:4]] == ["N", "b", "O"]


def test_client_list_can_be_asked_for_some(dialogue: Dialogue) -> None:
    other = dialogue.another()
    other("SUBSCRIBE news")

    assert b"sub=1" in dialogue.raw("CLIENT LIST TYPE pubsub")
    assert dialogue.raw(f"CLIENT LIST ID {other.session.id} 99").count(b"id=") == 1


# -- KILL -------------------------------------------------------------------------------------------------------------


def test_kill_closes_others_and_spares_oneself(dialogue: Dialogue, engine: Engine) -> None:
    other = dialogue.another()

    assert dialogue("CLIENT KILL TYPE normal") == 1
    assert engine.clients.to_close == [other.session]


def test_kill_of_oneself_answers_first(dialogue: Dialogue, engine: Engine) -> None:
    assert dialogue(f"CLIENT KILL SKIPME no ID {dialogue.session.id}") == 1
    assert dialogue.session.closing
    assert engine.clients.to_close == []


def test_kill_by_address_closes_the_first_that_fits(dialogue: Dialogue) -> None:
    assert dialogue("CLIENT KILL 127.0.0.1:50000") == b"OK"


def test_kill_by_age_spares_the_young(dialogue: Dialogue, engine: Engine, clock: ManualClock) -> None:
    old = dialogue.another()
    clock.advance(10_000)
    dialogue.another()

    assert dialogue("CLIENT KILL MAXAGE 10") == 1
    assert engine.clients.to_close == [old.session]


# -- PAUSE ------------------------------------------------------------------------------------------------------------


def test_a_paused_write_runs_when_the_pause_ends(dialogue: Dialogue, engine: Engine, clock: ManualClock) -> None:
    other = dialogue.another()
    dialogue("CLIENT PAUSE 1000 WRITE")

    assert other("SET k v") == NO_REPLY
    assert dialogue("GET k") is None
    clock.advance(1000)
    engine.tick()
    assert other.arrived() == [b"OK"]


def test_unpause_releases_all_clients(dialogue: Dialogue, engine: Engine) -> None:
    other = dialogue.another()
    dialogue("CLIENT PAUSE 100000 WRITE")
    other("SET k v")

    assert dialogue("CLIENT UNPAUSE") == b"OK"
    engine.tick()
    assert other.arrived() == [b"OK"]


def test_a_pause_of_all_holds_even_client_back(dialogue: Dialogue) -> None:
    dialogue("CLIENT PAUSE 1000 ALL")

    assert dialogue("CLIENT UNPAUSE") == NO_REPLY


def test_a_second_pause_makes_the_first_neither_shorter_nor_milder(
    dialogue: Dialogue, engine: Engine, clock: ManualClock
) -> None:
    other = dialogue.another()
    dialogue("CLIENT PAUSE 1000 WRITE", "CLIENT PAUSE 10 ALL")
    clock.advance(999)
    engine.tick()

    assert other("PING") == NO_REPLY


def test_a_write_is_held_back_before_it_is_queued(dialogue: Dialogue) -> None:
    other = dialogue.another()
    other("MULTI", "PING")
    dialogue("CLIENT PAUSE 1000 WRITE")

    assert other("SET k v") == NO_REPLY


def test_a_transaction_without_writes_is_not_held_back(dialogue: Dialogue) -> None:
    other = dialogue.another()
    other("MULTI", "PING")
    dialogue("CLIENT PAUSE 1000 WRITE")

    assert other("EXEC") == [b"PONG"]


# -- UNBLOCK ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_line", "timeout"),
    [("XREAD BLOCK 0 STREAMS s $", None), ("WAIT 1 0", 0), ("WAITAOF 0 1 0", [0, 0])],
    ids=["XREAD", "WAIT", "WAITAOF"],
)
def test_unblock_ends_a_wait_as_if_its_time_were_up(dialogue: Dialogue, request_line: str, timeout: object) -> None:
    waiting = dialogue.another()
    waiting(request_line)

    assert dialogue(f"CLIENT UNBLOCK {waiting.session.id}") == 1
    assert waiting.arrived() == [timeout]
    assert dialogue(f"CLIENT UNBLOCK {waiting.session.id}") == 0


def test_unblock_with_an_error_says_so(dialogue: Dialogue) -> None:
    waiting = dialogue.another()
    waiting("WAIT 1 0")

    assert dialogue(f"CLIENT UNBLOCK {waiting.session.id} ERROR") == 1
    assert [str(answer) for answer in waiting.arrived()] == ["UNBLOCKED client unblocked via CLIENT UNBLOCK"]


def test_a_client_held_back_by_a_pause_cannot_be_unblocked(dialogue: Dialogue) -> None:
    paused = dialogue.another()
    dialogue("CLIENT PAUSE 1000 WRITE")
    paused("SET k v")

    assert dialogue(f"CLIENT UNBLOCK {paused.session.id}") == 0
