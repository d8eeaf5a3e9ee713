"""Scripts and functions are answered as a real Redis answers them: a table of them, byte for byte, then random ones."""

import random
from typing import Any

import pytest

from tests.against_redis.conftest import Reference
from tests.against_redis.makers.anything import Anything
from tests.against_redis.makers.scripts import Scripts
from tests.against_redis.script_commands_table import COMMANDS
from tests.against_redis.script_errors_table import ERRORS
from tests.against_redis.script_language_table import LANGUAGE
from tests.against_redis.script_libraries_table import LIBRARIES
from tests.against_redis.script_memory_table import MEMORY
from tests.against_redis.typed import compare_types
from tests.support.compared_sides import InProcess, Piped

pytest.importorskip("lupa")

TABLES = {"language": LANGUAGE, "errors": ERRORS, "libraries": LIBRARIES, "commands": COMMANDS, "memory": MEMORY}
RESET = (("RESET",), ("CONFIG", "SET", "maxmemory", "0"), ("FLUSHALL",), ("FUNCTION", "FLUSH"), ("SCRIPT", "FLUSH"))


def answers(side: Piped | InProcess, table: tuple[tuple[str, ...], ...], resp: str) -> list[bytes]:
    requests = [list(request) for request in (*RESET, ("HELLO", resp), *table)]
    replies = []
    for request in requests:
        side.send([request])
        replies.append(side.answer())
    return replies[len(RESET) + 1 :]


@pytest.mark.parametrize("resp", ["2", "3"])
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_every_script_of_the_table_is_answered_as_by_redis(reference: Reference, table: Any, resp: str) -> None:
    theirs = answers(reference.piped, table, resp)
    ours = answers(InProcess(), table, resp)

    assert list(zip(table, ours, strict=True)) == list(zip(table, theirs, strict=True))


@pytest.mark.parametrize("seed", range(2))
def test_random_scripts_are_answered_kept_and_logged_as_by_redis(reference: Reference, seed: int) -> None:
    _, difference = compare_types(reference.piped, reference.known, f"scripts {seed}", 3000, (Anything, Scripts))

    assert difference == ""


def test_the_same_seed_gives_the_same_scripts(reference: Reference) -> None:
    made = [Scripts(random.Random(3), reference.known).script() for _ in range(2)]

    assert made[0] == made[1]
