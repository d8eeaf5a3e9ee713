"""Reading a log's bytes: the quick way gives what the exact way gives, or nothing."""

import pytest

from penstock.engine.effects import pack
from penstock.protocol.log_reader import Damage, Unfinished, next_request, quick_requests

LINES = (
    "SELECT 0",
    "XADD s 1-1 abc:defg v",
    "MULTI",
    "XACK s g 1-1",
    "EXEC",
    "SET txt:a txt:hello",
    "SET a =b",
    "GET ~",
)
LOG = b"".join(pack(tuple(line.encode().split())) for line in LINES)


def exactly(text: bytes, size: int) -> list[list[bytes]] | None:
    """The requests in the first bytes of a text, by the exact way; None where it finds damage."""
    requests, at = [], 0
    try:
        while at < size:
            request, at = next_request(text, at)
            requests.append(request)
    except (Damage, Unfinished):
        return None
    return requests


def test_the_quick_way_reads_all_but_the_last_request() -> None:
    quick = quick_requests(LOG)
    assert quick == ([line.encode().split() for line in LINES[:-1]], len(LOG) - len(pack((b"GET", b"~"))))


@pytest.mark.parametrize("at", range(len(LOG)))
def test_whatever_a_byte_becomes_the_quick_way_is_right_or_in_doubt(at: int) -> None:
    altered = [LOG[:at] + bytes([value]) + LOG[at + 1 :] for value in range(256)]
    read = [(text, quick) for text in altered if (quick := quick_requests(text)) is not None]
    assert [quick[0] for text, quick in read] == [exactly(text, quick[1]) for text, quick in read]


@pytest.mark.parametrize(
    "request_of_one",
    [b"*1\r\n=5\r\ntxt:a\r\n", b"~1\r\n$1\r\na\r\n", b"*1\r\n%1\r\n*0\r\n$1\r\na\r\n", b"*1\r\n,inf\r\n"],
    ids=["verbatim", "set", "map with a list for a key", "double"],
)
@pytest.mark.parametrize("before", [b"", pack((b"SET", b"a", b"1"))], ids=["first", "later"])
def test_what_only_replies_have_is_left_to_the_exact_way(before: bytes, request_of_one: bytes) -> None:
    assert quick_requests(before + request_of_one + pack((b"SET", b"a", b"1"))) is None
