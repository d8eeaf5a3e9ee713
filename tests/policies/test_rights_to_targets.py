"""A policy with targets is set, or carried to a key, by a user that may read and write it and write the targets."""

import pytest

from tests.policies.conftest import PolicyDialogue
from tests.policies.test_retention import refused
from tests.support.dialogue import Dialogue

NO_KEY = "NOPERM No permissions to access a key"
IN_SCRIPT = "ERR ACL failure in script: No permissions to access a key"


def client_with(dialogue: Dialogue, rules: str) -> Dialogue:
    """A client of a user with all commands and these rules about keys."""
    dialogue(f"ACL SETUSER u reset on nopass +@all {rules}")
    client = dialogue.another()
    assert client("AUTH u x") == b"OK"
    return client


@pytest.fixture
def policies(dialogue: PolicyDialogue) -> PolicyDialogue:
    """a:f forwards to `secret`, the dead letters of a:d go there."""
    dialogue("XADD a:f 1-0 n 1", "PENSTOCK.POLICY a:f FORWARD secret AFTER 100000")
    dialogue("XADD a:d 1-0 n 1", "XGROUP CREATE a:d g 0", "PENSTOCK.POLICY a:d GROUP g DEADLETTER secret")
    return dialogue


@pytest.mark.parametrize("source", ["a:f", "a:d"])
@pytest.mark.parametrize(
    "line", ["COPY {} b:1", "COPY {} b:1 DB 1 REPLACE", "RENAME {} b:1", "RENAMENX {} b:1", "MOVE {} 1"]
)
def test_what_carries_a_policy_needs_the_right_to_write_its_target(
    policies: PolicyDialogue, line: str, source: str
) -> None:
    client = client_with(policies, "~a:* ~b:*")
    policies.since()

    assert refused(client(line.format(source))) == NO_KEY
    assert (policies.since(), policies("EXISTS b:1"), policies("EXISTS " + source)) == ([], 0, 1)
    assert policies("ACL LOG")[0][7] == b"secret"

    policies("ACL SETUSER u %W~secret")
    assert client(line.format(source)) in (b"OK", 1)


@pytest.mark.parametrize("source", ["a:f", "a:d"])
def test_what_was_carried_in_vain_reaches_nothing(policies: PolicyDialogue, source: str) -> None:
    client = client_with(policies, "%R~a:* ~b:*")
    client(f"COPY {source} b:1", "XADD b:1 1-0 n 1", "XGROUP CREATE b:1 g 0", "XREADGROUP GROUP g c STREAMS b:1 >")

    client("XNACK b:1 g FATAL IDS 1 1-0")
    policies("PENSTOCK.CLOCK ADVANCE 200000")

    assert [entry[1] for entry in policies("XRANGE secret - +")] == [[b"n", b"1"]]  # of a:f itself


def test_in_a_transaction_the_request_is_refused_and_the_others_are_run(policies: PolicyDialogue) -> None:
    client = client_with(policies, "~a:* ~b:*")
    client("MULTI", "COPY a:f b:1", "SET b:2 x")

    answers = client("EXEC")

    assert [str(answers[0]), answers[1]] == [NO_KEY, b"OK"]
    assert policies("ACL LOG")[0][5] == b"multi"


def test_a_script_and_a_function_are_refused_as_for_keys_that_are_named(policies: PolicyDialogue) -> None:
    client = client_with(policies, "~a:* ~b:*")
    policies.words(
        b"FUNCTION",
        b"LOAD",
        b"#!lua name=l\nredis.register_function('f', function() return redis.call('COPY', 'a:f', 'b:1') end)",
    )

    assert str(client("EVAL \"return redis.call('COPY', 'a:f', 'b:1')\" 0")).startswith(IN_SCRIPT + " script: ")
    assert str(client("EVAL \"return redis.pcall('RENAME', 'a:f', 'b:1')\" 0")) == IN_SCRIPT
    assert str(client("FCALL f 0")).startswith(IN_SCRIPT + " script: f")
    assert policies("ACL LOG")[0][5] == b"lua"
    assert policies("EXISTS b:1") == 0


def test_what_was_held_back_is_asked_with_the_rights_of_the_moment_it_is_run(policies: PolicyDialogue) -> None:
    client = client_with(policies, "~a:* ~b:* ~secret")
    policies("CLIENT PAUSE 1000 WRITE")
    client("COPY a:f b:1")
    policies("ACL SETUSER u resetkeys ~a:* ~b:*", "CLIENT UNPAUSE")
    policies.engine.tick()

    assert [str(answer) for answer in client.arrived()] == [NO_KEY]
    assert policies("EXISTS b:1") == 0


def test_one_selector_must_allow_the_request_and_the_targets(policies: PolicyDialogue) -> None:
    client = client_with(policies, "~a:* ~b:* (+xadd ~secret)")

    assert refused(client("COPY a:f b:1")) == NO_KEY
    policies("ACL SETUSER u '(+copy ~a:* ~b:* ~secret)'")
    assert client("COPY a:f b:1") == 1


@pytest.mark.parametrize("line", ["PENSTOCK.POLICY w FORWARD b:1", "PENSTOCK.POLICY w GROUP g DEADLETTER b:1"])
def test_where_the_user_may_not_read_it_leads_no_entries_to_where_it_may(dialogue: PolicyDialogue, line: str) -> None:
    dialogue("XADD w 1-0 n 1", "XGROUP CREATE w g 0")
    client = client_with(dialogue, "%W~w ~b:*")

    assert refused(client(line)) == NO_KEY
    assert client("PENSTOCK.POLICY w MAXLEN 5") == b"OK"
    dialogue("ACL SETUSER u %R~w")
    assert client(line) == b"OK"


def test_nor_by_a_copy_over_a_stream_that_it_may_not_read(dialogue: PolicyDialogue) -> None:
    client = client_with(dialogue, "%W~w ~b:*")
    client("XADD b:1 1-0 n 1", "PENSTOCK.POLICY b:1 FORWARD b:2 AFTER 100000")

    assert refused(client("COPY b:1 w REPLACE")) == NO_KEY
    assert refused(client("RENAME b:1 w")) == NO_KEY
    assert client("COPY b:1 b:3") == 1


def test_other_policies_of_the_same_stream_may_be_set_without_rights_to_the_target(policies: PolicyDialogue) -> None:
    client = client_with(policies, "~a:*")

    assert client("PENSTOCK.POLICY a:f MAXLEN 5") == b"OK"
    assert client("PENSTOCK.POLICY a:d GROUP g ACKWAIT 5") == b"OK"


def test_a_stream_without_targets_is_carried_as_ever(dialogue: PolicyDialogue) -> None:
    dialogue("XADD a 1-0 n 1", "PENSTOCK.POLICY a MAXLEN 5")
    client = client_with(dialogue, "~a ~b")

    assert (client("COPY a b"), client("RENAME b a"), client("MOVE a 1")) == (1, b"OK", 1)


def test_a_payload_and_an_exchange_of_databases_need_no_right_to_targets(policies: PolicyDialogue) -> None:
    client = client_with(policies, "~a:* ~b:*")

    assert client.words(b"RESTORE", b"b:1", b"0", client("DUMP a:f")) == b"+OK\r\n"
    assert policies("XINFO STREAM b:1")[-2] != b"penstock-policy"
    assert client("SWAPDB 0 1") == b"OK"
    policies("SELECT 1")
    assert policies("XINFO STREAM a:f")[-2] == b"penstock-policy"


def test_a_policy_that_was_set_goes_on_when_its_user_has_lost_the_right(dialogue: PolicyDialogue) -> None:
    client = client_with(dialogue, "~a ~b")
    client("XADD a 1-0 n 1", "PENSTOCK.POLICY a FORWARD b AFTER 100000000000000")
    dialogue("ACL SETUSER u resetkeys ~a", "PENSTOCK.POLICY a AFTER 0")

    dialogue("PENSTOCK.CLOCK ADVANCE 1")

    assert dialogue("XLEN b") == 1
    assert refused(client("COPY a b")) == NO_KEY


def test_the_log_carries_policies_whatever_users_may(policies: PolicyDialogue) -> None:
    policies("COPY a:f b:1", "RENAME a:d b:2")
    policies("ACL SETUSER default resetkeys")

    policies.reloaded()
