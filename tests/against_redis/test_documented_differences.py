"""docs/differences.md is true: what it says of a request is what Penstock, and a real Redis, reply."""

import contextlib
import re
from pathlib import Path
from typing import Final

import pytest

from tests.against_redis.conftest import Reference
from tests.against_redis.documented_differences import DOCUMENTED, OF_VALKEY, Documented
from tests.support import shell_words
from tests.support.compared_sides import InProcess, Piped, Side

PAGE: Final = (Path(__file__).parents[2] / "docs/differences.md").read_text()
FIRST_CELLS: Final = re.findall(r"^\| (.+?) \|", PAGE, re.MULTILINE)


def of_each(documented: tuple[Documented, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("documented", documented, ids=lambda one: f"{one.row}: {one.requests[-1]}")


def last_reply(side: Side, documented: Documented) -> bytes:
    """The requests are sent one by one, each after the first reply to the one before."""
    reply = b""
    for line in ("FLUSHALL", *documented.requests):
        side.send([shell_words.split(line)])
        reply = side.answer()
    return reply


@of_each(DOCUMENTED)
def test_the_page_has_the_row_and_penstock_replies_so(documented: Documented) -> None:
    assert [cell for cell in FIRST_CELLS if cell.startswith(documented.row)]
    assert last_reply(InProcess(), documented).startswith(documented.ours)


@of_each(DOCUMENTED)
def test_redis_replies_so(reference: Reference, documented: Documented) -> None:
    with contextlib.closing(Piped(reference.port)) as own:
        assert last_reply(own, documented).startswith(documented.theirs)


@of_each(OF_VALKEY)
def test_the_page_has_the_row_and_penstock_replies_so_as_a_valkey(documented: Documented) -> None:
    assert [cell for cell in FIRST_CELLS if cell.startswith(documented.row)]
    assert last_reply(InProcess("valkey-9.1"), documented).startswith(documented.ours)


@of_each(OF_VALKEY)
def test_valkey_replies_so(valkey: int, documented: Documented) -> None:
    with contextlib.closing(Piped(valkey)) as own:
        assert last_reply(own, documented).startswith(documented.theirs)
