"""A snapshot comes out of a link as it went in, however the link cuts it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol.snapshot_frame import MARK_BYTES, SnapshotFrame

MARK = bytes(range(65, 65 + MARK_BYTES))


def taken(frame: SnapshotFrame, wire: bytes, cuts: list[int]) -> tuple[bytes, bytes]:
    """The snapshot, and what is left on the wire behind it."""
    found = b""
    for cut in [*cuts, *[len(wire)] * (len(wire) + 1)]:
        if frame.is_whole:
            break
        piece, wire = wire[: min(cut, frame.wanted)], wire[min(cut, frame.wanted) :]
        found += frame.take(piece)
    return found, wire


@given(st.binary(max_size=200), st.lists(st.integers(1, 60), max_size=20))
def test_a_snapshot_of_known_length_ends_where_the_stream_begins(snapshot: bytes, cuts: list[int]) -> None:
    frame = SnapshotFrame(b"$%d" % len(snapshot))

    assert frame.size == len(snapshot)
    assert taken(frame, snapshot + b"*1\r\n", cuts) == (snapshot, b"*1\r\n")


@given(st.binary(max_size=200), st.lists(st.integers(1, 60), max_size=20))
def test_a_snapshot_of_unknown_length_ends_at_its_mark(snapshot: bytes, cuts: list[int]) -> None:
    frame = SnapshotFrame(b"$EOF:" + MARK)

    assert frame.size == -1
    assert taken(frame, snapshot + MARK, cuts) == (snapshot, b"")
    assert frame.is_whole


@pytest.mark.parametrize("head", [b"-ERR no", b"$", b"$-1", b"$EOF:short", b"$" + b"9" * 400])
def test_what_is_no_head_is_refused_by_its_text(head: bytes) -> None:
    with pytest.raises(ValueError, match=r"ERR no|\$"):
        SnapshotFrame(head)
