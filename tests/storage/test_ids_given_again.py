"""Pending entries with ids that the stream may give again."""

from penstock.storage.streams.pending.delivery_walk import runs_in_time_order
from penstock.storage.streams.stream import Stream
from tests.support.dialogue import Dialogue
from tests.support.engines import value_of


def in_time_order(dialogue: Dialogue) -> list[int]:
    """The milliseconds of what is pending; the stream is checked."""
    stream = value_of(dialogue.engine, b"s")
    assert isinstance(stream, Stream)
    stream.check()
    return [block.id_at(slot) >> 64 for block, slot, _ in runs_in_time_order(stream.groups[b"g"].pel.order)]


def set_back(dialogue: Dialogue) -> None:
    """Two pending entries that were read again are trimmed away, and the second one's id may be given again."""
    dialogue(
        "XADD s 1-0 f v",
        "XADD s 2-0 f v",
        "XGROUP CREATE s g 0",
        "XREADGROUP GROUP g ann STREAMS s >",
        "XREADGROUP GROUP g ann STREAMS s 0",
        "XTRIM s MAXLEN 0",
        "XSETID s 1-0",
    )


def test_a_stray_keeps_its_place_behind_a_neighbour_that_stayed(dialogue: Dialogue) -> None:
    set_back(dialogue)

    assert in_time_order(dialogue) == [1, 2]


def test_an_id_given_again_is_found_in_the_block_that_has_it_now(dialogue: Dialogue) -> None:
    set_back(dialogue)
    dialogue("XADD s 2-0 f v")

    assert in_time_order(dialogue) == [1, 2]


def test_a_segment_that_was_followed_takes_no_more_entries(dialogue: Dialogue) -> None:
    dialogue("XADD s 1-0 f v", "XGROUP CREATE s g 0", "XSETID s 7-0", "XSETID s 5-0", "XADD s 6-0 f v")
    dialogue("XREADGROUP GROUP g ann STREAMS s >", "XDEL s 6-0", "XADD s 7-0 f v", "XREADGROUP GROUP g ann STREAMS s >")

    assert in_time_order(dialogue) == [1, 6, 7]
