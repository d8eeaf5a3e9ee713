"""For every command that takes something and may wait for it: a request that waits, and what ends the wait."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from penstock.protocol.reply import bulks

SETUP: Final = "XGROUP CREATE queue g $ MKSTREAM"  # what requests of STREAM ask for


@dataclass(frozen=True)
class Waiting:
    """request: waits at the key `queue`. push: what adds an element (a number). answer: what the client then gets."""

    request: str
    push: Callable[[int], str]
    answer: Callable[[int], bytes]
    setup: str = "PING"


def _to_list(number: int) -> str:
    return f"RPUSH queue {number}"


def _to_sorted_set(number: int) -> str:
    return f"ZADD queue 1 {number}"


def _to_stream(number: int) -> str:
    return f"XADD queue 1-{number} f v"


def _words(text: str) -> bytes:
    return bulks([word.encode() for word in text.split()])


def _element(number: int) -> bytes:
    return b"$%d\r\n%d\r\n" % (len(str(number)), number)


def _in_one(number: int) -> bytes:
    return b"*1\r\n" + _element(number)


def _from_key(number: int) -> bytes:
    return _words(f"queue {number}")


def _in_array(number: int) -> bytes:
    return b"*2\r\n$5\r\nqueue\r\n*1\r\n" + _element(number)


def _with_score(number: int) -> bytes:
    return _words(f"queue {number} 1")


def _with_score_in_array(number: int) -> bytes:
    return b"*2\r\n$5\r\nqueue\r\n*1\r\n" + _words(f"{number} 1")


def _entry(number: int) -> bytes:
    identifier = f"1-{number}"
    entry = b"*2\r\n$%d\r\n%s\r\n" % (len(identifier), identifier.encode()) + _words("f v")
    return b"*1\r\n*2\r\n$5\r\nqueue\r\n*1\r\n" + entry


WAITING: Final = {
    "BLPOP": Waiting("BLPOP queue 0", _to_list, _from_key),
    "BRPOP": Waiting("BRPOP queue 0", _to_list, _from_key),
    "BLMOVE": Waiting("BLMOVE queue moved LEFT RIGHT 0", _to_list, _element),
    "BLMOVEM": Waiting("BLMOVEM queue moved LEFT RIGHT 0 COUNT 1 OBO", _to_list, _in_one),
    "BLMPOP": Waiting("BLMPOP 0 1 queue LEFT", _to_list, _in_array),
    "BRPOPLPUSH": Waiting("BRPOPLPUSH queue moved 0", _to_list, _element),
    "BZPOPMIN": Waiting("BZPOPMIN queue 0", _to_sorted_set, _with_score),
    "BZPOPMAX": Waiting("BZPOPMAX queue 0", _to_sorted_set, _with_score),
    "BZMPOP": Waiting("BZMPOP 0 1 queue MIN", _to_sorted_set, _with_score_in_array),
    "BZMOVE": Waiting("BZMOVE queue moved MIN 0", _to_sorted_set, _in_one),
    "XREADGROUP": Waiting("XREADGROUP GROUP g c COUNT 1 BLOCK 0 STREAMS queue >", _to_stream, _entry, SETUP),
}  # fmt: skip
TAKE_NOTHING: Final = {"XREAD", "WAIT", "WAITAOF"}  # they wait, too
