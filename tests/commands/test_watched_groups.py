"""watch-group-changes: WATCH and CLIENT TRACKING learn of what happens to a stream's groups (Valkey since 9.1.3)."""

import pytest

from tests.support.batch_sides import Side
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, settings_with

GIVEN = (
    "XADD s 1-0 f v", "XADD s 2-0 f v", "XADD s 3-0 f v", "XGROUP CREATE s g 0", "XGROUP CREATECONSUMER s g idle",
    "XREADGROUP GROUP g c COUNT 2 STREAMS s >",
)  # fmt: skip
CHANGES = [
    "XGROUP CREATE s h 0", "XGROUP SETID s g 0", "XGROUP DESTROY s g", "XGROUP CREATECONSUMER s g d",
    "XGROUP DELCONSUMER s g c", "XSETID s 9-0", "XREADGROUP GROUP g c STREAMS s >",
    "XREADGROUP GROUP g c NOACK STREAMS s >", "XREADGROUP GROUP g new STREAMS s 0",
    "XREADGROUP GROUP g idle CLAIM 0 COUNT 1 STREAMS s >", "XACK s g 1-0", "XACK s g 1-0 2-0", "XCLAIM s g d 0 1-0",
    "XCLAIM s g c 0 5-0 LASTID 8-0", "XAUTOCLAIM s g d 0 0", "XNACK s g FAIL IDS 1 1-0",
]  # fmt: skip
NO_CHANGES = ["XACK s g 7-0", "XGROUP DESTROY s h", "XGROUP CREATECONSUMER s g c", "XPENDING s g", "XINFO GROUPS s"]


def watching(directive: str) -> Dialogue:
    """A client that watches a stream with a group, in a transaction."""
    client = Dialogue(make_engine(settings=settings_with(watch_group_changes=directive)))
    client(*GIVEN, "WATCH s", "MULTI", "PING")
    return client


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_group_makes_a_transaction_fail_where_it_is_wanted(change: str) -> None:
    client = watching("yes")
    client.another()(change)

    assert client("EXEC") is None


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_group_is_none_of_the_key_otherwise(change: str) -> None:
    client = watching("no")
    client.another()(change)

    assert client("EXEC") == [b"PONG"]


@pytest.mark.parametrize("request_line", NO_CHANGES)
def test_what_changes_no_group_lets_the_transaction_run(request_line: str) -> None:
    client = watching("yes")
    client.another()(request_line)

    assert client("EXEC") == [b"PONG"]


def test_a_client_that_tracks_a_stream_is_told_of_its_groups_after_config_set() -> None:
    client = Dialogue(make_engine())
    other = client.another()
    client(*GIVEN, "HELLO 3", "CLIENT TRACKING ON", "XLEN s")

    other("XACK s g 1-0")
    assert client.arrived() == []
    other("CONFIG SET watch-group-changes yes", "XACK s g 2-0")
    assert client.arrived() == [[b"invalidate", [b"s"]]]


@pytest.mark.parametrize(
    "pipeline",
    [["XACK s g 1-0", "XACK s g 2-0"], ["XREADGROUP GROUP g c COUNT 1 STREAMS s >"] * 2],
    ids=["XACK", "XREADGROUP"],
)
def test_requests_that_run_together_count_too(pipeline: list[str]) -> None:
    side = Side(watch_group_changes="yes")
    side.client(
        "XADD s 1-0 f v", "XADD s 2-0 f v", "XREADGROUP GROUP g c STREAMS s >", "XADD s 3-0 f v", "XADD s 4-0 f v"
    )
    watcher = side.client.another()
    watcher("WATCH s", "MULTI", "PING")

    side.together([[word.encode() for word in line.split()] for line in pipeline])
    assert watcher("EXEC") is None
