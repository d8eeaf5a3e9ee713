"""Dead letters: what may not be delivered again moves to another stream, with why."""

from typing import Any

import pytest

from tests.policies.conftest import PolicyDialogue, made
from tests.policies.test_leases import READ, read_ids
from tests.policies.test_retention import refused
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue


@pytest.fixture
def poisoned(dialogue: PolicyDialogue) -> PolicyDialogue:
    """Three entries, of which alice got two; two deliveries are enough."""
    dialogue("XADD s 1-0 f v", "XADD s 2-0 f v", "XADD s 3-0 f v", "XGROUP CREATE s g 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 30000 MAXDELIVER 2 DEADLETTER dead")
    dialogue("XREADGROUP GROUP g alice COUNT 2 STREAMS s >")
    return dialogue


def dead(dialogue: Dialogue) -> list[dict[str, str]]:
    """What the dead letters say of each entry."""
    return [_pairs(entry[1]) for entry in dialogue("XRANGE dead - +")]


def _pairs(fields: list[bytes]) -> dict[str, str]:
    words = [word.decode() for word in fields]
    return dict(zip(words[::2], words[1::2], strict=True))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("MAXDELIVER 2", "ERR MAXDELIVER needs DEADLETTER"),
        ("MAXDELIVER 0 DEADLETTER d", "ERR MAXDELIVER must be between 1 and 1000000"),
        ("DEADLETTER s", "ERR a stream cannot be its own DEADLETTER"),
        ("DEADLETTER list", "WRONGTYPE Operation against a key holding the wrong kind of value"),
    ],
)
def test_dead_letters_refuse(dialogue: PolicyDialogue, options: str, text: str) -> None:
    dialogue("XGROUP CREATE s g 0 MKSTREAM", "RPUSH list x")

    assert refused(dialogue(f"PENSTOCK.POLICY s GROUP g {options}")) == text


def test_an_entry_moves_at_the_end_of_its_last_lease_in_one_unit(poisoned: PolicyDialogue) -> None:
    poisoned("PENSTOCK.CLOCK ADVANCE 30000", "XREADGROUP GROUP g bob COUNT 1 STREAMS s >")
    poisoned.since()
    poisoned("PENSTOCK.CLOCK ADVANCE 30000")

    assert poisoned.since() == [
        "XADD dead 1795300060000-0 f v _stream s _group g _id 1-0 _deliveries 2 _consumer bob"
        " _reason delivered 2 times ; XACK s g 1-0"
    ]
    assert dead(poisoned) == [
        {"f": "v", "_stream": "s", "_group": "g", "_id": "1-0", "_deliveries": "2", "_consumer": "bob",
         "_reason": "delivered 2 times"}
    ]  # fmt: skip
    poisoned.reloaded()
    poisoned.rewritten()


def test_a_last_failure_moves_the_entry_at_once(poisoned: PolicyDialogue) -> None:
    poisoned("PENSTOCK.CLOCK ADVANCE 30000", READ.format("bob"))

    assert poisoned("XNACK s g FAIL IDS 3 1-0 2-0 3-0") == 3
    assert [letter["_id"] for letter in dead(poisoned)] == ["1-0", "2-0"]
    assert poisoned("XPENDING s g - + 10") == [[b"3-0", b"", -1, 1]]
    poisoned.reloaded()


def test_a_claim_that_names_an_entry_twice_keeps_what_it_has_claimed(poisoned: PolicyDialogue) -> None:
    assert poisoned("XCLAIM s g bob 0 1-0 2-0 1-0") == [[b"1-0", [b"f", b"v"]], [b"2-0", [b"f", b"v"]]]

    assert dead(poisoned) == []
    assert poisoned("XPENDING s g - + 1") == [[b"1-0", b"bob", 0, 2]]
    poisoned.reloaded()


def test_giving_back_in_silence_is_no_failure(poisoned: PolicyDialogue) -> None:
    for _ in range(5):
        poisoned("XNACK s g SILENT IDS 1 1-0")
        assert read_ids(poisoned, "XREADGROUP GROUP g bob COUNT 1 STREAMS s >") == ["1-0"]

    assert dead(poisoned) == []


def test_a_fatal_failure_is_told_with_the_true_number_of_deliveries(poisoned: PolicyDialogue) -> None:
    poisoned("PENSTOCK.XNACK s g FATAL IDS 2 1-0 3-0 DELAY 99 FORCE")

    letters = [(letter["_id"], letter["_deliveries"], letter["_reason"]) for letter in dead(poisoned)]
    assert letters == [("1-0", "1", "fatal"), ("3-0", "0", "fatal")]
    poisoned.reloaded()


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("XREADGROUP GROUP g alice STREAMS s 0", [[b"s", []]]),
        ("XREADGROUP GROUP g bob COUNT 2 CLAIM 0 STREAMS s >", [[b"s", [[b"3-0", [b"f", b"v"], 0, 0]]]]),
        ("XAUTOCLAIM s g alice 0 0", [b"0-0", [], []]),
        ("XCLAIM s g alice 0 1-0 2-0", []),
    ],
)
def test_a_lowered_limit_acts_when_entries_would_be_handed_out(
    poisoned: PolicyDialogue, line: str, answer: Any
) -> None:
    poisoned("PENSTOCK.POLICY s GROUP g MAXDELIVER 1")
    assert dead(poisoned) == []

    assert poisoned(line) == answer
    assert [letter["_id"] for letter in dead(poisoned)] == ["1-0", "2-0"]
    poisoned.reloaded()


@pytest.mark.parametrize(
    "line",
    ["XCLAIM s g bob 0 1-0 2-0 JUSTID", "XAUTOCLAIM s g bob 0 0 JUSTID", "XCLAIM s g bob 0 1-0 2-0 RETRYCOUNT 0"],
)
def test_a_claim_that_is_no_delivery_moves_nothing(poisoned: PolicyDialogue, line: str) -> None:
    poisoned("PENSTOCK.POLICY s GROUP g MAXDELIVER 1", line)

    assert dead(poisoned) == []
    assert poisoned("XPENDING s g")[3] == [[b"bob", b"2"]]


def test_a_deleted_consumers_last_attempts_move(poisoned: PolicyDialogue) -> None:
    poisoned("PENSTOCK.POLICY s GROUP g MAXDELIVER 1", "XDEL s 2-0")

    assert poisoned("XGROUP DELCONSUMER s g alice") == 2
    assert [(letter["_id"], letter["_consumer"]) for letter in dead(poisoned)] == [("1-0", "alice")]
    poisoned.reloaded()


def test_dead_letters_that_cannot_be_written_wait_and_nothing_is_handed_out(poisoned: PolicyDialogue) -> None:
    poisoned("RPUSH dead x", "XNACK s g FATAL IDS 1 1-0")
    assert read_ids(poisoned, READ.format("bob")) == ["3-0"]
    fields = poisoned("XINFO GROUPS s")[0][-1]
    assert fields[fields.index(b"blocked") + 1] == b"dead holds a list"

    poisoned("DEL dead", "PENSTOCK.CLOCK ADVANCE 1000")
    assert [letter["_id"] for letter in dead(poisoned)] == ["1-0"]
    fields = poisoned("XINFO GROUPS s")[0][-1]
    assert fields[fields.index(b"blocked") + 1] is None
    poisoned.reloaded()


def test_what_could_not_move_moves_though_another_dead_letter_was_the_first_that_could(
    poisoned: PolicyDialogue,
) -> None:
    poisoned("RPUSH dead x", "XNACK s g FATAL IDS 1 1-0", "DEL dead", "XNACK s g FATAL IDS 1 2-0")
    assert [letter["_id"] for letter in dead(poisoned)] == ["2-0"]
    poisoned("PENSTOCK.CLOCK ADVANCE 1000")

    assert [letter["_id"] for letter in dead(poisoned)] == ["2-0", "1-0"]
    fields = poisoned("XINFO GROUPS s")[0][-1]
    assert fields[fields.index(b"blocked") + 1] is None
    poisoned.reloaded()


def test_a_reader_that_claims_does_not_look_each_ms_at_what_cannot_move(poisoned: PolicyDialogue) -> None:
    poisoned("RPUSH dead x", "XNACK s g FATAL IDS 1 1-0", READ.format("bob"))
    poisoned.another()("XREADGROUP GROUP g bob BLOCK 0 CLAIM 60000 STREAMS s >")
    poisoned("PENSTOCK.CLOCK ADVANCE 0")

    assert poisoned.engine.next_wakeup_ms() == NOW_MS + 1000


def test_a_dead_letter_lets_the_entry_go_where_only_needed_ones_are_kept(poisoned: PolicyDialogue) -> None:
    poisoned("PENSTOCK.POLICY s MAXLEN 0 ACKED", "XNACK s g FATAL IDS 1 1-0")

    assert [entry[0] for entry in poisoned("XRANGE s - +")] == [b"2-0", b"3-0"]
    poisoned.reloaded()


@pytest.fixture
def crowded(dialogue: PolicyDialogue) -> PolicyDialogue:
    """3,000 entries with alice, a hundred a ms; their leases have ended; one delivery is enough."""
    dialogue(*["XADD s * f v"] * 3000, "XGROUP CREATE s g 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 60000 MAXDELIVER 1 DEADLETTER dead")
    for _ in range(30):
        dialogue("XREADGROUP GROUP g alice COUNT 100 STREAMS s >", "PENSTOCK.CLOCK ADVANCE 1")
    return dialogue


def test_many_dead_letters_at_a_time_keep_other_clients_waiting_for_a_slice_only(crowded: PolicyDialogue) -> None:
    engine = crowded.engine
    crowded("PENSTOCK.POLICY s GROUP g ACKWAIT 1")
    moved: list[int] = []
    for _ in range(3):
        assert engine.next_wakeup_ms() == NOW_MS + 30 or not moved
        engine.tick()
        moved.append(crowded("XLEN dead"))

    assert moved == [1000, 2000, 3000]
    assert crowded("XPENDING s g")[0] == 0
    crowded.reloaded()


def test_many_dead_letters_move_as_soon_as_their_stream_can_be_written(crowded: PolicyDialogue) -> None:
    crowded("PENSTOCK.POLICY s GROUP g ACKWAIT 1", "RPUSH dead x", "PENSTOCK.CLOCK ADVANCE 1000")
    assert crowded("XPENDING s g")[0] == 3000
    crowded("DEL dead", "PENSTOCK.CLOCK ADVANCE 1000")

    assert crowded("XLEN dead") == 3000
    assert crowded("XPENDING s g")[0] == 0


ENDS = {
    "fatal": ["XNACK s g FATAL IDS 1 1-0"],
    "fatal twice": ["XNACK s g FATAL IDS 1 1-0", "XNACK s g FATAL IDS 1 1-0"],
    "fatal, then renewed": ["XNACK s g FATAL IDS 1 1-0", "XCLAIM s g alice 0 1-0 JUSTID", "XNACK s g FATAL IDS 1 1-0"],
    "fatal of a done entry": ["XACK s g 2-0", "XNACK s g FATAL IDS 1 2-0 FORCE"],
    "failed": ["XCLAIM s g bob 0 1-0", "XNACK s g FAIL IDS 1 1-0"],
    "failed, and a consumer is deleted": ["XCLAIM s g bob 0 2-0", "XGROUP DELCONSUMER s g bob"],
    "expired": [
        f"XADD s 4-0 at {NOW_MS + 5}", "XREADGROUP GROUP g bob COUNT 9 STREAMS s >", "PENSTOCK.CLOCK ADVANCE 5",
        "XNACK s g SILENT IDS 1 4-0",
    ],
}  # fmt: skip


def letters_of(ends: list[str], is_blocked: bool, restart: str) -> list[dict[str, str]]:
    """What the dead letters say after these requests; is_blocked: they are written later, after a restart if named."""
    dialogue = made()
    dialogue("XADD s 1-0 f v", "XADD s 2-0 f v", "XADD s 3-0 f v", "XGROUP CREATE s g 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 30000 MAXDELIVER 2 DEADLETTER dead EXPIREAT at")
    dialogue("XREADGROUP GROUP g alice COUNT 2 STREAMS s >", "RPUSH dead x" if is_blocked else "PING", *ends)
    if is_blocked:
        engine = {"no": lambda: dialogue.engine, "log": dialogue.reloaded, "base": dialogue.rewritten}[restart]()
        after = Dialogue(engine)
        after("DEL dead", READ.format("carol"))
        return dead(after)
    return dead(dialogue)


@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("restart", ["no", "log", "base"])
def test_a_dead_letter_says_the_same_if_it_could_not_be_written_at_once(ends: list[str], restart: str) -> None:
    at_once = letters_of(ends, False, "no")

    assert len(at_once) == 1
    assert letters_of(ends, True, restart) == at_once
