"""Readers that wait: which are served, in which order, with what, and what it costs the others."""

from typing import Any

import pytest

from penstock.clock import ManualClock
from penstock.engine.engine import Engine
from penstock.engine.waiting.blocked_request import BlockedRequest
from tests.support.builds import replaces_functions
from tests.support.dialogue import NO_REPLY, Dialogue

READ = "XREADGROUP GROUP g {} BLOCK {} STREAMS s >"


@pytest.fixture
def group(dialogue: Dialogue) -> Dialogue:
    dialogue("XGROUP CREATE s g $ MKSTREAM")
    return dialogue


def blocked_readers(dialogue: Dialogue, *lines: str) -> list[Dialogue]:
    """A client a line, all of them waiting."""
    readers = [dialogue.another() for _ in lines]
    for reader, line in zip(readers, lines, strict=True):
        assert reader(line) == NO_REPLY
        assert reader.session.blocked is not None
    return readers


def names(found: list[Any]) -> list[object]:
    return [value if isinstance(value, Exception | None) else [entry[0] for entry in value[0][1]] for value in found]


def test_the_first_that_waits_is_served_first(group: Dialogue) -> None:
    first, second = blocked_readers(group, READ.format("a", 0), READ.format("b", 0))

    assert group("XADD s 1-0 f v") == b"1-0"
    assert names(first.arrived()) == [[b"1-0"]]
    assert second.arrived() == []

    group("XADD s 2-0 f v")
    assert names(second.arrived()) == [[b"2-0"]]


def test_two_readers_share_what_one_transaction_adds(group: Dialogue) -> None:
    one = "XREADGROUP GROUP g {} COUNT 1 BLOCK 0 STREAMS s >"
    first, second = blocked_readers(group, one.format("a"), one.format("b"))

    group("MULTI", "XADD s 1-0 f v", "XADD s 2-0 f v", "EXEC")
    assert names(first.arrived()) == [[b"1-0"]]
    assert names(second.arrived()) == [[b"2-0"]]


def test_what_a_transaction_adds_and_deletes_wakes_no_client(group: Dialogue) -> None:
    (reader,) = blocked_readers(group, READ.format("a", 0))

    group("MULTI", "XADD s 1-0 f v", "XDEL s 1-0", "EXEC")
    assert reader.arrived() == []


def test_every_client_that_waits_by_xread_gets_everything(dialogue: Dialogue) -> None:
    readers = blocked_readers(dialogue, *["XREAD BLOCK 0 STREAMS s $"] * 3)

    dialogue("XADD s 1-0 f v")
    assert [names(reader.arrived()) for reader in readers] == [[[b"1-0"]]] * 3


def test_a_dollar_is_remembered_as_the_id_it_stood_for(dialogue: Dialogue) -> None:
    dialogue("XADD s 5-0 f v")
    (reader,) = blocked_readers(dialogue, "XREAD BLOCK 0 STREAMS s $")

    dialogue("DEL s", "XADD s 5-0 f v")
    assert reader.arrived() == []
    dialogue("XADD s 5-1 f v")
    assert names(reader.arrived()) == [[b"5-1"]]


def test_a_plus_is_looked_at_anew(dialogue: Dialogue) -> None:
    (reader,) = blocked_readers(dialogue, "XREAD BLOCK 0 STREAMS s +")

    dialogue("MULTI", "XADD s 1-0 f v", "XADD s 2-0 f v", "EXEC")
    assert names(reader.arrived()) == [[b"2-0"]]


def test_time_ends_a_wait_with_a_null_array(group: Dialogue, clock: ManualClock, engine: Engine) -> None:
    early, late = blocked_readers(group, READ.format("a", 100), READ.format("b", 200))

    assert engine.next_wakeup_ms() == clock.now_us() // 1000 + 100
    clock.advance(100)
    engine.tick()
    assert early.arrived() == [None]
    assert late.arrived() == []
    assert early.session.blocked is None


def test_a_fruitless_wake_up_does_not_move_the_deadline(group: Dialogue, clock: ManualClock, engine: Engine) -> None:
    first, second = blocked_readers(group, READ.format("a", 0), READ.format("b", 100))

    clock.advance(60)
    group("XADD s 1-0 f v")
    clock.advance(40)
    engine.tick()
    assert len(first.arrived()) == 1
    assert second.arrived() == [None]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("DEL s", "NOGROUP"),
        ("RENAME s t", "NOGROUP"),
        ("MOVE s 3", "NOGROUP"),
        ("FLUSHALL", "NOGROUP"),
        ("SWAPDB 0 1", "NOGROUP"),
        ("XGROUP DESTROY s g", "NOGROUP"),
        ("PEXPIREAT s 1", "NOGROUP"),
        ("SET s x", "WRONGTYPE"),
    ],
)
def test_a_group_reader_hears_of_the_loss_of_its_key_or_group(group: Dialogue, line: str, text: str) -> None:
    (reader,) = blocked_readers(group, READ.format("a", 0))
    (patient,) = blocked_readers(group, "XREAD BLOCK 0 STREAMS s $")

    group(line)
    (refusal,) = reader.arrived()
    assert str(refusal).startswith(text)
    assert patient.arrived() == []


def test_a_key_expiring_ends_the_wait_of_a_group_reader(group: Dialogue, clock: ManualClock, engine: Engine) -> None:
    group("PEXPIRE s 50")
    (reader,) = blocked_readers(group, READ.format("a", 0))

    clock.advance(51)
    engine.tick()
    assert str(reader.arrived()[0]).startswith("NOGROUP")


def test_a_reader_of_several_keys_that_was_tried_in_vain_goes_to_the_tail_of_the_others(dialogue: Dialogue) -> None:
    dialogue("XGROUP CREATE a g $ MKSTREAM", "XGROUP CREATE b g $ MKSTREAM")
    both, only_b = blocked_readers(
        dialogue,
        "XREADGROUP GROUP g both BLOCK 0 STREAMS a b > >",
        "XREADGROUP GROUP g only BLOCK 0 STREAMS b >",
    )

    dialogue("XADD a 1-0 f v", "XACK a g 1-0")  # served
    assert len(both.arrived()) == 1
    assert both("XREADGROUP GROUP g both BLOCK 0 STREAMS a b > >") == NO_REPLY
    dialogue("XADD b 1-0 f v")
    assert names(only_b.arrived()) == [[b"1-0"]]

    assert only_b("XREADGROUP GROUP g only BLOCK 0 STREAMS b >") == NO_REPLY
    dialogue("XNACK a g FAIL IDS 1 1-0 FORCE")  # tries `both` at a, in vain: behind `only` at b from now on
    dialogue("XADD b 2-0 f v")
    assert names(only_b.arrived()) == [[b"2-0"]]
    assert both.arrived() == []


@replaces_functions
def test_no_other_reader_is_tried_when_one_of_many_is_served(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[BlockedRequest] = []
    retry = Engine.retry
    monkeypatch.setattr(Engine, "retry", lambda *words: tried.append(words[1]) or retry(*words))
    asker = Dialogue(engine)
    asker("XGROUP CREATE s g $ MKSTREAM")
    readers = blocked_readers(asker, *[READ.format(f"c{number}", 0) for number in range(2000)])

    asker("XADD s 1-0 f v")
    assert len(tried) == 2  # the one that is served, and the next, which finds nothing for its whole group
    assert len(readers[0].arrived()) == 1
    assert len(engine.blocking) == 1999


def test_what_a_vain_try_would_leave_behind_is_there(group: Dialogue, clock: ManualClock) -> None:
    blocked_readers(group, READ.format("a", 0), READ.format("b", 0), READ.format("c", 0))
    group("XGROUP DELCONSUMER s g c")

    clock.advance(500)
    group("XADD s 1-0 f v")
    rows = group("XINFO CONSUMERS s g")
    assert isinstance(rows, list)
    seen = {row[1]: row[5] for row in rows}
    assert seen == {b"a": 0, b"b": 0, b"c": 0}  # c exists again, and all were seen just now


def test_a_claiming_reader_is_woken_when_an_entry_has_idled_enough(
    group: Dialogue, clock: ManualClock, engine: Engine
) -> None:
    group("XADD s 1-0 f v", "XREADGROUP GROUP g slow STREAMS s >")
    (reader,) = blocked_readers(group, "XREADGROUP GROUP g a BLOCK 0 CLAIM 300 STREAMS s >")

    clock.advance(200)
    engine.tick()
    assert reader.arrived() == []
    clock.set_ms(engine.next_wakeup_ms())
    engine.tick()
    (served,) = reader.arrived()
    assert served == [[b"s", [[b"1-0", [b"f", b"v"], 301, 1]]]]


def test_a_released_entry_wakes_a_claiming_reader_at_once(group: Dialogue) -> None:
    group("XADD s 1-0 f v", "XREADGROUP GROUP g slow STREAMS s >")
    claiming, plain = blocked_readers(
        group, "XREADGROUP GROUP g a BLOCK 0 CLAIM 3600000 STREAMS s >", READ.format("b", 0)
    )

    group("XNACK s g FAIL IDS 1 1-0")
    assert names(claiming.arrived()) == [[b"1-0"]]
    assert plain.arrived() == []


def test_client_unblock_ends_a_wait_as_asked(group: Dialogue) -> None:
    timed_out, refused = blocked_readers(group, READ.format("a", 0), READ.format("b", 0))

    assert group(f"CLIENT UNBLOCK {timed_out.session.id}") == 1
    assert timed_out.arrived() == [None]
    assert group(f"CLIENT UNBLOCK {refused.session.id} ERROR") == 1
    assert [str(answer) for answer in refused.arrived()] == ["UNBLOCKED client unblocked via CLIENT UNBLOCK"]
    assert group(f"CLIENT UNBLOCK {refused.session.id}") == 0


def test_a_client_that_hangs_up_is_forgotten(group: Dialogue, engine: Engine) -> None:
    gone, next_one = blocked_readers(group, READ.format("a", 0), READ.format("b", 0))

    engine.server.disconnect(gone.session)
    group("XADD s 1-0 f v")
    assert gone.arrived() == []
    assert names(next_one.arrived()) == [[b"1-0"]]
    assert len(engine.blocking) == 0
    assert not engine.blocking.by_key


def test_inside_multi_no_request_waits(group: Dialogue) -> None:
    assert group("MULTI", READ.format("a", 0), "XREAD BLOCK 0 STREAMS s $", "EXEC") == [None, None]


def test_pausing_writers_delays_the_service_to_the_end_of_the_pause(
    group: Dialogue, clock: ManualClock, engine: Engine
) -> None:
    (reader,) = blocked_readers(group, READ.format("a", 0))
    group("MULTI", "CLIENT PAUSE 100 WRITE", "XADD s 1-0 f v", "EXEC")
    assert reader.arrived() == []

    clock.advance(100)
    engine.tick()
    assert names(reader.arrived()) == [[b"1-0"]]
