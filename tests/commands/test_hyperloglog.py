"""HyperLogLogs, beside a real Redis and alone."""

import pytest

from tests.support.dialogue import Dialogue
from tests.support.effects_beside_redis import RedisSide, assert_as_redis

EMPTY = r"HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff"
DIALOGUES = {
    "added": [
        "PFADD h", "PFADD h", "GET h", "PFADD h a", "PFADD h a", "PFADD h b c", "PFADD h ''", "GET h",
        "PFADD h2 foo bar zap a", "GET h2", "PEXPIREAT h 9000000000000", "PFADD h zzz", "PEXPIRETIME h",
        "STRLEN h", "PFADD",
    ],
    "counted": [
        "PFCOUNT h", "PFCOUNT h missing", "PFADD h a b c", "PFCOUNT h", "GET h", "PFCOUNT h", "PFADD h d", "GET h",
        "PFCOUNT h", "PFADD h2 c d e", "PFCOUNT h h2", "GET h2", "PFCOUNT h2 h2", "GET h2", "PFCOUNT",
        "SET old x PXAT 1", "PFCOUNT old", "EXISTS old",
    ],
    "united": [
        "PFADD a 1 2 3", "PFADD b 3 4 5", "PFMERGE c a b", "GET c", "PFCOUNT c", "PFMERGE c a", "GET c", "PFMERGE d",
        "GET d", "PFMERGE e missing", "GET e", "PFMERGE a a b", "PFDEBUG TODENSE b", "PFMERGE f b missing", "STRLEN f",
        "PFMERGE a b", "STRLEN a", "PFCOUNT a", "PFCOUNT a c", "PFMERGE",
    ],
    "looked into": [
        "PFADD h a b c", "PFDEBUG DECODE h", "PFDEBUG ENCODING h", "PFDEBUG encoding missing", "PFDEBUG FOO missing",
        "PFDEBUG FOO h", "PFDEBUG TODENSE h", "PFDEBUG TODENSE h", "PFDEBUG DECODE h", "PFDEBUG ENCODING h",
        "PFDEBUG SIMD ON", "PFDEBUG simd off", "PFADD g a", "PFDEBUG GETREG g", "PFDEBUG GETREG g", "GET g",
        "PFDEBUG GETREG", "PFDEBUG GETREG h h", "PFSELFTEST x", "PFSELFTEST",
    ],
    "small limits": [
        "CONFIG SET hll-sparse-max-bytes 23", "PFADD h a", "PFADD h b", "STRLEN h", "PFADD h c", "STRLEN h",
        "CONFIG SET hll-sparse-max-bytes 0", "PFADD g", "STRLEN g", "PFADD g a", "STRLEN g",
        "CONFIG SET hll-sparse-max-bytes 3000",
    ],
    "other values": [
        "SET t abc", "PFADD t a", "PFCOUNT t", "PFMERGE t", "PFMERGE d t", "PFDEBUG GETREG t", "SET n 12345",
        "PFADD n a", "LPUSH l a", "PFADD l a", "PFCOUNT l", "PFCOUNT missing l", "PFMERGE l", "PFMERGE d l",
        "PFDEBUG ENCODING l", "SET s HYLLxxxxxxxxxxxxxxxxx", "PFADD s a",
        r"SET s 'HYLL\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff'",
        "PFCOUNT s", r"SET s 'HYLL\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff'", "PFCOUNT s",
        f"SET s '{EMPTY}'", "PFADD s a", "EXISTS d",
    ],
    "corrupt": [
        r"SET s 'HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80'", "PFCOUNT s", "PFADD s a", "PFMERGE d s",
        "PFDEBUG TODENSE s", "PFDEBUG GETREG s", "PFDEBUG DECODE s", "PFADD s",
        r"SET s 'HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xfe'", "PFCOUNT s", "PFCOUNT s s",
        r"SET s 'HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff\x00'", "PFCOUNT s", "PFCOUNT s s",
        "PFMERGE s", "PFMERGE d s", "PFADD s a", "PFDEBUG TODENSE s",
        r"SET s 'HYLL\x01\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00'", "PFCOUNT s", "PFCOUNT s s", "EXISTS d",
    ],
}  # fmt: skip


@pytest.mark.parametrize("lines", DIALOGUES.values(), ids=DIALOGUES)
def test_hyperloglogs_answer_tell_and_log_as_redis_does(logging_redis: RedisSide, lines: list[str]) -> None:
    assert_as_redis(logging_redis, lines)


@pytest.mark.parametrize(
    ("count", "estimate", "length"),
    [
        (1, 1, 21),
        (3, 3, 27),
        (10, 10, 47),
        (100, 100, 289),
        (1000, 1002, 1896),
        (2000, 2005, 12304),
        (5000, 4993, 12304),
    ],
)
def test_the_estimate_and_the_size_are_those_of_redis(
    dialogue: Dialogue, count: int, estimate: int, length: int
) -> None:
    dialogue.words(b"PFADD", b"h", *[b"ele:%d" % number for number in range(count)])

    assert dialogue("PFCOUNT h") == estimate
    assert dialogue("STRLEN h") == length


def test_a_count_that_had_to_be_made_breaks_a_watch_and_a_kept_one_does_not(dialogue: Dialogue) -> None:
    dialogue("PFADD h a", "WATCH h", "PFCOUNT h", "MULTI", "PING")
    assert dialogue("EXEC") is None

    dialogue("WATCH h", "PFCOUNT h", "MULTI", "PING")
    assert dialogue("EXEC") == [b"PONG"]


def test_a_corrupt_value_is_refused_whole_and_stays_as_it_was(dialogue: Dialogue) -> None:
    half = b"HYLL\x01" + bytes(10) + b"\x80" + b"\x5f\xff"  # 8192 of 16384 registers; `b` is in 8436, `c` in 15780
    dialogue.words(b"SET", b"h", half)

    assert str(dialogue("PFADD h e0 e1 e2 e3 e4 e5 e6 e7 b")) == "INVALIDOBJ Corrupted HLL object detected"
    assert dialogue("GET h") == half


@pytest.mark.parametrize("request_line", ["PFADD h a", "PFCOUNT h", "PFDEBUG DECODE h", "PFDEBUG TODENSE h"])
def test_a_run_that_is_cut_in_half_is_refused(dialogue: Dialogue, request_line: str) -> None:
    """Redis takes the missing byte for 0."""
    dialogue.words(b"SET", b"h", b"HYLL\x01" + bytes(10) + b"\x80" + b"\x7f")

    assert str(dialogue(request_line)) == "INVALIDOBJ Corrupted HLL object detected"


def test_a_server_of_its_own_says_that_its_hyperloglogs_are_sound(dialogue: Dialogue) -> None:
    assert dialogue("PFSELFTEST") == b"OK"
