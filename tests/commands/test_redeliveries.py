"""A group counts how often its entries were delivered again."""

from penstock.engine.engine import Engine
from penstock.storage.streams.stream import Stream
from tests.support.dialogue import Dialogue


def redeliveries(engine: Engine) -> int:
    stream = engine.keyspace.databases[0].values[b"s"]
    assert isinstance(stream, Stream)
    return stream.groups[b"g"].pel.redeliveries


def test_a_first_delivery_is_no_redelivery(dialogue: Dialogue, engine: Engine) -> None:
    dialogue("XADD s 1-0 f v", "XGROUP CREATE s g 0", "XREADGROUP GROUP g alice STREAMS s >")

    assert redeliveries(engine) == 0


def test_reading_again_and_claiming_count_each_entry(dialogue: Dialogue, engine: Engine) -> None:
    dialogue("XADD s 1-0 f v", "XADD s 2-0 f v", "XADD s 3-0 f v", "XGROUP CREATE s g 0")
    dialogue("XREADGROUP GROUP g alice STREAMS s >")

    dialogue("XREADGROUP GROUP g alice STREAMS s 0")
    dialogue("XCLAIM s g bob 0 1-0 3-0")
    dialogue("XAUTOCLAIM s g carol 0 0 COUNT 1")

    assert redeliveries(engine) == 3 + 2 + 1


def test_a_change_of_owner_without_a_delivery_does_not_count(dialogue: Dialogue, engine: Engine) -> None:
    dialogue("XADD s 1-0 f v", "XGROUP CREATE s g 0", "XREADGROUP GROUP g alice STREAMS s >")

    dialogue("XCLAIM s g bob 0 1-0 JUSTID")

    assert redeliveries(engine) == 0
