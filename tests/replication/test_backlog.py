"""The backlog keeps the last bytes of the stream."""

from penstock.engine.replication.backlog import Backlog


def test_what_is_newer_than_the_limit_is_kept() -> None:
    backlog = Backlog(10, 4)
    for piece in (b"ab", b"cde", b"f"):
        backlog.append(piece)

    assert (backlog.start, backlog.end) == (12, 16)
    assert backlog.since(12) == b"cdef"
    assert backlog.since(14) == b"ef"
    assert backlog.since(16) == b""
    assert [backlog.has(offset) for offset in (11, 12, 16, 17)] == [False, True, True, False]


def test_a_piece_larger_than_the_limit_is_kept_whole() -> None:
    backlog = Backlog(0, 4)
    backlog.append(b"x" * 100)

    assert backlog.has(0)
    backlog.append(b"yyyy")
    assert backlog.start == 100
