"""ACL, for the one user there is."""

import re

import pytest

from penstock.clock import ManualClock
from penstock.config.settings import Settings
from penstock.errors import UsageError
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine
from tests.support.replies_beside_redis import replies_of_both

HASH = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # of abc
AGAIN = "ACL SETUSER default on nopass"

ALIKE = {
    "who": ["ACL", "ACL FOO", "ACL WHOAMI", "ACL USERS", "ACL LIST", "ACL GETUSER default", "ACL GETUSER nobody"],
    "categories": ["ACL CAT", "ACL CAT nope", "ACL CAT a b"],
    "passwords made up": ["ACL GENPASS 0", "ACL GENPASS x", "ACL GENPASS 5000", "ACL GENPASS 1 2"],
    "dry runs": [
        "ACL DRYRUN default get a", "ACL DRYRUN nobody get a", "ACL DRYRUN default nope a", "ACL DRYRUN default get",
        "ACL DRYRUN default xgroup create a",
    ],
    "log": ["ACL LOG RESET", "ACL LOG 5", "ACL LOG x", "ACL LOG -1", "ACL LOG 1 2"],
    "files": ["ACL LOAD", "ACL SAVE", "ACL DELUSER default", "ACL DELUSER nobody"],
    "bad rules": [
        "ACL SETUSER default foo", "ACL SETUSER default '#abc'", "ACL SETUSER default '!abc'",
        "ACL SETUSER default '<zzz'", "ACL SETUSER default '~a'", "ACL SETUSER default '%R~a'",
        "ACL SETUSER default '&a'",
    ],
    "passwords": [
        "ACL SETUSER default '>abc'", "ACL GETUSER default", "ACL LIST", "CONFIG GET requirepass",
        "ACL SETUSER default '>def' '>def'", "ACL LIST", "AUTH x", "AUTH abc", "AUTH default def",
        "ACL SETUSER default '<abc' foo", "ACL LIST", "ACL SETUSER default '<abc'", "ACL LIST",
        f"ACL SETUSER default '#{HASH}'", "ACL LIST", f"ACL SETUSER default '!{HASH}'", "ACL LIST",
        "ACL SETUSER default resetpass", "ACL LIST", "AUTH x", AGAIN, "ACL LIST", "AUTH x",
    ],
    "off": ["ACL SETUSER default OFF", "ACL LIST", "PING", "AUTH default x", AGAIN],
    "allowed already": ["ACL SETUSER default +@all '~*' allkeys '&*' allchannels allcommands sanitize-payload", AGAIN],
}  # fmt: skip


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("lines", ALIKE.values(), ids=ALIKE.keys())
def test_acl_answers_what_redis_answers(reference_port: int, lines: list[str], resp: int) -> None:
    theirs, ours = replies_of_both(reference_port, lines, resp)

    assert ours == theirs


def test_another_user_cannot_be_made(dialogue: Dialogue) -> None:
    assert str(dialogue("ACL SETUSER joe on")) == "ERR this server has no other user than 'default'"


def test_the_users_rights_cannot_be_taken(dialogue: Dialogue) -> None:
    assert "cannot be changed" in str(dialogue("ACL SETUSER default -get"))


def test_a_user_turned_off_lets_no_new_connection_in(dialogue: Dialogue) -> None:
    dialogue("ACL SETUSER default off")

    assert str(dialogue.another()("PING")) == "NOAUTH Authentication required."


def test_requirepass_takes_the_place_of_what_setuser_did(dialogue: Dialogue) -> None:
    dialogue("ACL SETUSER default >abc", "CONFIG SET requirepass def")

    assert dialogue.another()("AUTH def") == b"OK"
    assert str(dialogue.another()("AUTH abc")).startswith("WRONGPASS")


def test_a_category_lists_its_commands(dialogue: Dialogue) -> None:
    listed = dialogue("ACL CAT STREAM")

    assert isinstance(listed, list)
    assert {b"xadd", b"xgroup|create"} <= set(listed)
    assert b"xgroup" not in listed


def test_made_up_passwords_are_long_and_differ(dialogue: Dialogue) -> None:
    first, second = dialogue.raw("ACL GENPASS"), dialogue.raw("ACL GENPASS")

    assert re.fullmatch(rb"\$64\r\n[0-9a-f]{64}\r\n", first)
    assert first != second
    assert len(dialogue.raw("ACL GENPASS 5")) == len(b"$2\r\nff\r\n")


def test_refused_logins_are_logged_and_repetitions_counted(dialogue: Dialogue, clock: ManualClock) -> None:
    dialogue("AUTH joe a", "AUTH joe b", "hello 3 AUTH joe c", "MULTI", "AUTH joe d", "EXEC", "HELLO 3")
    clock.advance(1500)

    log = dialogue("ACL LOG")

    assert isinstance(log, list)
    assert [(line[b"context"], line[b"object"], line[b"count"]) for line in log] == [
        (b"multi", b"AUTH", 1), (b"toplevel", b"hello", 1), (b"toplevel", b"AUTH", 2),
    ]  # fmt: skip
    assert [line[b"entry-id"] for line in log] == [2, 1, 0]
    assert log[0][b"age-seconds"] == 1.5
    assert log[0][b"username"] == b"joe"


def test_the_configuration_may_have_a_line_for_the_user() -> None:
    settings = Settings()
    settings.users.append(["default", "on", ">abc"])

    dialogue = Dialogue(make_engine(settings=settings))

    assert str(dialogue("PING")) == "NOAUTH Authentication required."
    assert dialogue("AUTH abc") == b"OK"


def test_the_configuration_may_not_have_a_line_for_another() -> None:
    settings = Settings()
    settings.users.append(["joe", "on"])

    with pytest.raises(UsageError, match="no other user"):
        make_engine(settings=settings)
