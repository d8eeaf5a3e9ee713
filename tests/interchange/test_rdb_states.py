"""Random states go through RDB files and DUMP's payloads to a real server and back: nothing differs."""

from pathlib import Path

import pytest

from tests.interchange import rdb_sides
from tests.interchange.pictures import ours
from tests.interchange.rdb_states import shown
from tests.support.reference_server import NoReference, reference_binary
from tests.support.seeds import seeds


@pytest.mark.parametrize("seed", seeds(1, 4))
@pytest.mark.parametrize("kind", ["redis", "valkey"])
def test_states_are_the_same_there_and_back(kind: str, seed: int) -> None:
    try:
        reference_binary(kind)
    except NoReference as absence:
        pytest.skip(str(absence))

    assert rdb_sides.run(kind, range(seed, seed + 1)) == []


def test_a_saved_state_is_loaded_with_what_no_other_server_knows(tmp_path: Path) -> None:
    """Released entries, hidden ones among them, in their order of release."""
    (tmp_path / "after").mkdir()
    with ours(tmp_path / "before", appendonly="no") as server:
        server.lines(
            "XADD s 1-0 f v", "XADD s 2-0 f v", "XADD s 3-0 f v", "XGROUP CREATE s g 0",
            "XREADGROUP GROUP g alice STREAMS s >", "XNACK s g FAIL IDS 2 3-0 1-0", "XDEL s 3-0",
            "HSET h f v g w", "HPEXPIREAT h 4102444800000 FIELDS 1 f", "XADD t IDMP p one * f v",
            "XADD back 5-0 f v", "XGROUP CREATE back g 0", "XREADGROUP GROUP g c STREAMS back >", "XTRIM back MAXLEN 0",
            "XSETID back 3-0",
        )  # fmt: skip
        before = shown(server.ask)
        rdb_sides.save_ours(server, tmp_path / "after" / "dump.rdb")

    with ours(tmp_path / "after", appendonly="no") as server:
        rdb_sides.checked(server)
        rdb_sides.assert_same(before, shown(server.ask))
        server.lines("SELECT 0")
        claimed = server.ask("XREADGROUP", "GROUP", "g", "bob", "CLAIM", "0", "STREAMS", "s", ">")
        assert [entry[0] for entry in claimed[b"s"]] == [b"1-0", b"2-0"]
        server.lines("XADD back 4-0 f v", "XADD back 5-0 f v")
        assert server.ask("XPENDING", "back", "g") == [1, b"5-0", b"5-0", [[b"c", b"1"]]]
        rdb_sides.checked(server)
