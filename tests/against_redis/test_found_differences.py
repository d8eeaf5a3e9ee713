"""What the comparison has found, each as the shortest dialogue, so that it stays found without a reference."""

from penstock.clock import ManualClock
from tests.support.dialogue import Dialogue


def test_a_node_is_measured_without_the_entry_that_is_being_added(dialogue: Dialogue) -> None:
    dialogue("CONFIG SET stream-node-max-bytes 100", "XADD k 6-2 z -7 z 5000000000", "XADD k 29-2 a 70000 b 70000")
    dialogue("XADD k 9000000000000-3 a 300 b 300")

    assert dialogue("XINFO STREAM k")[2:4] == [b"radix-tree-keys", 1]


def test_hello_inside_a_transaction_changes_the_protocol_of_what_follows(dialogue: Dialogue) -> None:
    dialogue("XGROUP CREATE k g 0 MKSTREAM", "HELLO 3", "MULTI", "HELLO 2", "XINFO GROUPS k")

    assert isinstance(dialogue("EXEC")[1][0], list)


def test_an_option_of_expire_is_shown_up_to_its_first_nul(dialogue: Dialogue) -> None:
    assert dialogue.words(b"EXPIRE", b"k", b"9", b"n\0n") == b"-ERR Unsupported option n\r\n"


def test_xpending_shows_what_was_delivered_before_the_clock_was_set_back(
    dialogue: Dialogue, clock: ManualClock
) -> None:
    dialogue("XADD k 1-0 f v", "XGROUP CREATE k g 0", "XREADGROUP GROUP g a STREAMS k >")
    clock.advance(-1000)

    assert dialogue("XPENDING k g - + 10") == [[b"1-0", b"a", 0, 1]]


def test_readers_passed_over_were_seen_even_if_their_stream_then_goes_elsewhere(
    dialogue: Dialogue, clock: ManualClock
) -> None:
    dialogue("XGROUP CREATE k g 0 MKSTREAM")
    dialogue.another()("XREADGROUP GROUP g a BLOCK 0 STREAMS k >")
    dialogue.another()("XREADGROUP GROUP g b BLOCK 0 STREAMS k >")
    clock.advance(5000)
    dialogue("XGROUP CREATE k other 0", "XGROUP DESTROY k other", "SWAPDB 0 1", "SELECT 1")

    assert [consumer[5] for consumer in dialogue("XINFO CONSUMERS k g")] == [0, 0]


def test_readers_passed_over_are_consumers_of_a_stream_that_takes_the_place_of_theirs(dialogue: Dialogue) -> None:
    dialogue("XGROUP CREATE k g 0 MKSTREAM", "XGROUP CREATE l g 0 MKSTREAM")
    dialogue.another()("XREADGROUP GROUP g a BLOCK 0 STREAMS k >")
    dialogue.another()("XREADGROUP GROUP g b BLOCK 0 STREAMS k >")
    dialogue("RENAME l k")

    assert [consumer[1] for consumer in dialogue("XINFO CONSUMERS k g")] == [b"a", b"b"]


def test_a_deleted_consumer_with_a_reader_that_waits_no_more_stays_deleted(dialogue: Dialogue) -> None:
    gone, waiting = dialogue.another(), dialogue.another()
    dialogue("XGROUP CREATE k g 0 MKSTREAM")
    gone("XREADGROUP GROUP g c BLOCK 0 STREAMS k >")
    waiting("XREADGROUP GROUP g a BLOCK 0 STREAMS k >")
    dialogue("XGROUP CREATE k other 0", "XGROUP DESTROY k other", "XGROUP DELCONSUMER k g c")
    dialogue(f"CLIENT UNBLOCK {gone.session.id}", "XGROUP CREATE k other 0", "XGROUP DESTROY k other")

    assert [consumer[1] for consumer in dialogue("XINFO CONSUMERS k g")] == [b"a"]


def test_fields_as_the_last_word_is_a_request_with_too_few_words(dialogue: Dialogue) -> None:
    assert str(dialogue("HGETEX h PXAT 9000000000000 FIELDS")).endswith("for 'hgetex' command")
    assert str(dialogue("HSETEX h FNX EX 5 FIELDS")).endswith("for 'hsetex' command")
    assert str(dialogue("HGETEX h EX 5 FIELDS 1")) == "ERR wrong number of arguments"
    assert str(dialogue("HGETEX h EX 5 FIELDS x")) == "ERR invalid number of fields"
