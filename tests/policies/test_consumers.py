"""Consumers that leave give back what they hold."""

import pytest

from tests.policies.conftest import PolicyDialogue
from tests.policies.test_leases import READ


@pytest.fixture
def orders(dialogue: PolicyDialogue) -> PolicyDialogue:
    """Three entries, of which alice has two; two deliveries are enough."""
    dialogue("XADD s 1-0 n 1", "XADD s 2-0 n 2", "XADD s 3-0 n 3", "XGROUP CREATE s g 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 30000 BACKOFF 1000 60000 MAXDELIVER 2 DEADLETTER dead")
    dialogue("XREADGROUP GROUP g alice COUNT 2 STREAMS s >", "XCLAIM s g alice 0 1-0 RETRYCOUNT 2")
    return dialogue


def test_a_consumer_is_deleted_in_one_unit_with_what_it_gives_back(orders: PolicyDialogue) -> None:
    orders.since()
    assert orders("PENSTOCK.DELCONSUMER s g alice RELEASE") == 2

    assert orders.since() == [
        "XADD dead 1795300000000-0 n 1 _stream s _group g _id 1-0 _deliveries 2 _consumer alice"
        " _reason delivered 2 times ; XACK s g 1-0 ; XNACK s g FAIL IDS 1 2-0 RETRYCOUNT 1 FORCE"
        " ; PENSTOCK.XNACK s g FAIL IDS 1 2-0 RETRYCOUNT 1 UNTIL 1795300001000 ; XGROUP DELCONSUMER s g alice"
    ]
    orders.reloaded()
    orders.rewritten()


def test_a_consumer_that_holds_something_stays_and_nothing_is_logged(orders: PolicyDialogue) -> None:
    orders.since()

    assert orders("PENSTOCK.DELCONSUMER s g alice IFEMPTY") == 2
    assert orders.since() == []


def test_what_is_given_back_without_a_policy_goes_to_a_reader_with_claim(dialogue: PolicyDialogue) -> None:
    bob = dialogue.another()
    dialogue("XADD s 1-0 n 1", "XGROUP CREATE s g 0", READ.format("alice"))
    bob("XREADGROUP GROUP g bob CLAIM 60000 BLOCK 0 STREAMS s >")
    dialogue("PENSTOCK.DELCONSUMER s g alice RELEASE")

    assert [answer[0][1][0][0] for answer in bob.arrived()] == [b"1-0"]
    dialogue.reloaded()


@pytest.fixture
def left(dialogue: PolicyDialogue) -> PolicyDialogue:
    """A group to which connections give back."""
    dialogue("XADD s 1-0 n 1", "XADD s 2-0 n 2", "XADD s 3-0 n 3", "XGROUP CREATE s g 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 30000 BACKOFF 1000 60000 ONDISCONNECT RELEASE")
    return dialogue


def close(client: PolicyDialogue) -> None:
    client.engine.server.disconnect(client.session)
    client.engine.tick()


def test_a_connection_that_ends_gives_back_what_its_consumers_hold(left: PolicyDialogue) -> None:
    bob, carol, dora = left.another(), left.another(), left.another()
    bob("XREADGROUP GROUP g bob COUNT 2 STREAMS s >", "XACK s g 1-0")
    carol("XREADGROUP GROUP g carol BLOCK 0 COUNT 1 STREAMS s >")
    dora("XREADGROUP GROUP g dora BLOCK 0 COUNT 1 STREAMS s >")
    left.since()
    close(bob)
    assert left("XPENDING s g - + 10") == [[b"2-0", b"", -1, 1], [b"3-0", b"carol", 0, 1]]
    assert left.since() == [
        "XNACK s g FAIL IDS 1 2-0 RETRYCOUNT 1 FORCE"
        " ; PENSTOCK.XNACK s g FAIL IDS 1 2-0 RETRYCOUNT 1 UNTIL 1795300001000"
    ]
    left("PENSTOCK.CLOCK ADVANCE 1000")

    assert [answer[0][1][0][0] for answer in dora.arrived()] == [b"2-0"]
    left.reloaded()
    left.rewritten()


def test_a_later_read_on_another_connection_takes_the_consumer_over(left: PolicyDialogue) -> None:
    bob, later = left.another(), left.another()
    bob("XREADGROUP GROUP g bob COUNT 2 STREAMS s >")
    later("XREADGROUP GROUP g bob STREAMS s 0")
    close(bob)
    assert left("XPENDING s g - + 10 bob") == [[b"1-0", b"bob", 0, 2], [b"2-0", b"bob", 0, 2]]
    close(later)

    assert left("XPENDING s g - + 10 bob") == []


def test_a_consumer_that_was_deleted_and_made_anew_is_another_one(left: PolicyDialogue) -> None:
    bob, later = left.another(), left.another()
    bob("XREADGROUP GROUP g bob COUNT 1 STREAMS s >", "XGROUP DELCONSUMER s g bob")
    later("XCLAIM s g bob 0 1-0")
    close(bob)

    assert [row[0] for row in left("XPENDING s g - + 10 bob")] == [b"1-0"]


@pytest.mark.parametrize(
    "leave",
    ["XGROUP DELCONSUMER s g c{0}", "PENSTOCK.DELCONSUMER s g c{0} RELEASE", "XREADGROUP GROUP g c{0} STREAMS s 0"],
    ids=["deleted", "released", "taken over"],
)
def test_a_connection_forgets_consumers_that_give_back_by_it_no_more(left: PolicyDialogue, leave: str) -> None:
    bob, other = left.another(), left.another()
    bob("XREADGROUP GROUP g bob COUNT 2 STREAMS s >")
    for at in range(500):
        bob(f"XREADGROUP GROUP g c{at} COUNT 1 STREAMS s 0")
        other(leave.format(at))
    assert len(bob.session.reads_as) <= 4
    close(bob)

    assert left("XPENDING s g - + 10 bob") == []


def test_a_connection_forgets_groups_and_streams_that_are_gone(left: PolicyDialogue) -> None:
    for at in range(500):
        left(f"XGROUP CREATE t{at} g 0 MKSTREAM", f"PENSTOCK.POLICY t{at} GROUP g ACKWAIT 9 ONDISCONNECT RELEASE")
        left(f"XREADGROUP GROUP g a STREAMS t{at} >", f"DEL t{at}")

    assert len(left.session.reads_as) <= 4


def test_each_of_many_consumers_of_a_connection_gives_back(left: PolicyDialogue) -> None:
    bob = left.another()
    for at in range(100):
        bob(f"XADD s {at + 10}-0 n 1", f"XREADGROUP GROUP g c{at} COUNT 1 STREAMS s >")
    close(bob)

    assert {row[1] for row in left("XPENDING s g - + 1000")} == {b""}


def test_reads_before_the_option_was_set_do_not_count(left: PolicyDialogue) -> None:
    bob = left.another()
    left("PENSTOCK.POLICY s GROUP g ONDISCONNECT NONE")
    bob("XREADGROUP GROUP g bob COUNT 2 STREAMS s >")
    left("PENSTOCK.POLICY s GROUP g ONDISCONNECT RELEASE")
    close(bob)

    assert len(left("XPENDING s g - + 10 bob")) == 2


def test_the_end_of_a_connection_at_a_shutdown_gives_back_nothing(left: PolicyDialogue) -> None:
    bob = left.another()
    bob("XREADGROUP GROUP g bob STREAMS s >")
    left.engine.persistence.wanted_shutdown = True
    close(bob)

    assert len(left("XPENDING s g - + 10 bob")) == 3
