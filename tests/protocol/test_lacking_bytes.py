"""How many bytes a request lacks that has not come as a whole: never more than are to come, and one at least."""

import random

import pytest

from penstock.protocol.log_reader import lacking
from penstock.protocol.reply import bulks
from tests.support.seeds import seeds


def request(chance: random.Random) -> bytes:
    return bulks([bytes(chance.choice((0, 1, 9, 10, 300))) for _ in range(chance.choice((1, 2, 12, 150)))])


@pytest.mark.parametrize("seed", seeds(quick=5, full=50))
def test_it_is_never_more_than_what_is_to_come(seed: int) -> None:
    text = request(random.Random(seed))

    wrong = [cut for cut in range(1, len(text)) if not 1 <= lacking(text[:cut]) <= len(text) - cut]
    assert wrong == []


@pytest.mark.parametrize("text", [b"", b"#TS:1", b"*x\r\n", b"*1\r\n+OK", b"*-1\r\n"])
def test_of_what_is_no_request_one_byte_is_waited_for(text: bytes) -> None:
    assert lacking(text) == 1
