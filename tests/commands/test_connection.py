"""Connections: HELLO, AUTH, PING, ECHO, SELECT, QUIT, RESET."""

import pytest

from penstock.engine.engine import Engine
from tests.support.dialogue import NO_REPLY, Dialogue
from tests.support.replies_beside_redis import replies_of_both

ALIKE = {
    "hello": ["HELLO", "HELLO 4", "HELLO x", "HELLO 02", "HELLO 9999999999999999999", "HELLO 2", "HELLO 3"],
    "hello options": [
        "HELLO 2 FOO", "HELLO 2 AUTH", "HELLO 2 AUTH default", "HELLO 2 setname", "HELLO 2 SETNAME a AUTH nobody b FOO",
    ],
    "hello login": ["HELLO 2 AUTH default x", "HELLO 2 AUTH nobody x", "HELLO 3 AUTH nobody x", "PING"],
    "hello names": [
        "HELLO 3 SETNAME 'a b'", "HELLO 2 SETNAME 'a b'", "CLIENT GETNAME", "HELLO 2 SETNAME ok", "CLIENT GETNAME",
        "HELLO 3 SETNAME ''", "CLIENT GETNAME",
    ],
    "auth": ["AUTH x", "AUTH a b c", "AUTH a b", "AUTH default b", "AUTH"],
    "ping": ["PING", "PING a", "PING a b", "ECHO a", "ECHO", "ECHO a b"],
    "select": ["SELECT x", "SELECT 16", "SELECT -1", "SELECT 3000000000", "SELECT 99999999999999999999", "SELECT 15"],
    "quit": ["QUIT"],
    "quit with words": ["QUIT a b"],
    "reset": ["CLIENT SETNAME a", "MULTI", "RESET", "EXEC", "CLIENT GETNAME", "PING"],
    "quit in a transaction": ["MULTI", "QUIT"],
    "queued": ["MULTI", "HELLO 2", "SELECT 3", "AUTH a", "RESET"],
}  # fmt: skip

LOCKED = [
    "RESET", "PING", "ECHO a", "HELLO", "HELLO 3", "HELLO 2 AUTH default x", "HELLO 4", "HELLO 3 FOO", "AUTH x",
    "AUTH default x", "AUTH a b c", "NOSUCH a", "GET", "PING a b c", "CLIENT ID", "MULTI", "EXEC", "RESET",
    "AUTH secret", "PING", "RESET", "PING", "HELLO 3 AUTH default secret", "PING",
]  # fmt: skip


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("lines", ALIKE.values(), ids=ALIKE.keys())
def test_connections_are_answered_as_redis_answers_them(reference_port: int, lines: list[str], resp: int) -> None:
    theirs, ours = replies_of_both(reference_port, lines, resp)

    assert ours == theirs


@pytest.mark.parametrize("resp", [2, 3])
def test_a_password_locks_what_redis_locks(reference_port: int, resp: int) -> None:
    lines = ["CONFIG SET requirepass secret", *LOCKED, 'CONFIG SET requirepass ""', "AUTH secret"]

    theirs, ours = replies_of_both(reference_port, lines, resp)

    assert ours == theirs


@pytest.fixture
def locked(engine: Engine) -> Engine:
    engine.settings.set_pairs([("requirepass", "secret")])
    return engine


def test_a_new_connection_waits_for_the_password(locked: Engine) -> None:
    dialogue = Dialogue(locked)

    assert str(dialogue("PING")) == "NOAUTH Authentication required."
    assert dialogue("AUTH secret", "PING") == b"PONG"


def test_a_connection_from_before_the_password_stays_logged_in(dialogue: Dialogue) -> None:
    assert dialogue("CONFIG SET requirepass secret", "PING") == b"PONG"


def test_a_password_taken_away_lets_every_client_in(locked: Engine) -> None:
    locked.settings.set_pairs([("requirepass", "")])

    assert Dialogue(locked)("PING") == b"PONG"


def test_failed_logins_are_counted(dialogue: Dialogue) -> None:
    dialogue("AUTH nobody x", "HELLO 3 AUTH nobody x")

    assert b"acl_access_denied_auth:2" in dialogue.raw("INFO stats")


def test_hello_that_is_refused_changes_nothing(dialogue: Dialogue) -> None:
    dialogue("HELLO 3 SETNAME me AUTH nobody x")

    assert dialogue.raw("CLIENT GETNAME") == b"$-1\r\n"


def test_hello_names_the_redis_with_all_commands_here(dialogue: Dialogue) -> None:
    assert b"$6\r\n8.12.0\r\n" in dialogue.raw("HELLO")


def test_quit_closes_after_its_reply(dialogue: Dialogue) -> None:
    assert dialogue("QUIT") == b"OK"
    assert dialogue.session.closing


def test_a_subscriber_of_the_old_protocol_gets_its_ping_as_a_message(dialogue: Dialogue) -> None:
    dialogue("SUBSCRIBE news")

    assert dialogue("PING") == [b"pong", b""]
    assert dialogue("PING hello") == [b"pong", b"hello"]


def test_reset_ends_subscriptions_monitoring_and_silence(dialogue: Dialogue) -> None:
    dialogue("HELLO 3", "SUBSCRIBE news", "MONITOR", "CLIENT REPLY OFF")

    assert dialogue("RESET") == b"RESET"
    assert dialogue("PING") == b"PONG"
    assert dialogue.arrived() == []


def test_reset_asks_for_the_password_again(locked: Engine) -> None:
    dialogue = Dialogue(locked)

    dialogue("AUTH secret", "RESET")

    assert str(dialogue("PING")) == "NOAUTH Authentication required."


def test_select_works_in_another_database(dialogue: Dialogue) -> None:
    dialogue("SET k 0", "SELECT 1", "SET k 1", "SELECT 0")

    assert dialogue("GET k") == b"0"


def test_a_skipped_reply_is_the_next_one_only(dialogue: Dialogue) -> None:
    assert dialogue("CLIENT REPLY SKIP") == NO_REPLY
    assert dialogue("PING") == NO_REPLY
    assert dialogue("PING") == b"PONG"
