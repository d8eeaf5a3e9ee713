"""Pending entries whose ids the stream may give again."""

from tests.dialogue import Dialogue


def test_a_stray_keeps_its_place_behind_a_neighbour_that_stayed(dialogue: Dialogue) -> None:
    dialogue(
        "XADD s 1-0 f v",
        "XADD s 2-0 f v",
        "XGROUP CREATE s g 0",
        "XREADGROUP GROUP g ann STREAMS s >",
        "XREADGROUP GROUP g ann STREAMS s 0",
        "XTRIM s MAXLEN 0",
        "XSETID s 1-0",
    )
    stream = dialogue.engine.keyspace.databases[0].values[b"s"]
    stream.check()
    timed = stream.groups[b"g"].in_time_order()
    assert [block.id_at(slot) >> 64 for block, slot in timed] == [1, 2]


def test_an_id_given_again_is_found_in_the_block_that_has_it_now(dialogue: Dialogue) -> None:
    dialogue(
        "XADD s 1-0 f v",
        "XADD s 2-0 f v",
        "XGROUP CREATE s g 0",
        "XREADGROUP GROUP g ann STREAMS s >",
        "XREADGROUP GROUP g ann STREAMS s 0",
        "XTRIM s MAXLEN 0",
        "XSETID s 1-0",
        "XADD s 2-0 f v",
    )
    stream = dialogue.engine.keyspace.databases[0].values[b"s"]
    stream.check()
    timed = stream.groups[b"g"].in_time_order()
    assert [block.id_at(slot) >> 64 for block, slot in timed] == [1, 2]
