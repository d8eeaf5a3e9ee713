"""What a real Redis lists by COMMAND DOCS, word by word: all of it is here, or named in docs/differences.md."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import redis

from tests.against_redis.conftest import Reference
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine

DIFFERENCES = Path(__file__).parents[2] / "docs/differences.md"


def left_out() -> set[str]:
    """The commands of the page's section "Left out"."""
    section = DIFFERENCES.read_text().partition("## Left out")[2].partition("\n## ")[0]
    rows = [line.split("|")[2] for line in section.splitlines() if line.startswith("| ") and "commands" not in line]
    return {name for row in rows for name in re.findall(r"[A-Z-]{2,}", row)}


def described(docs: list[Any]) -> dict[str, dict[str, Any]]:
    """Each command and subcommand by its name, with what COMMAND DOCS says of it."""
    found: dict[str, dict[str, Any]] = {}
    for name, about in pairs(docs):
        found[name.upper()] = dict(pairs(about))
        found |= described(found[name.upper()].get("subcommands", []))
    return found


def pairs(flat: list[Any]) -> list[tuple[str, Any]]:
    words = [word.decode() if isinstance(word, bytes) else word for word in flat]
    return list(zip(words[::2], words[1::2], strict=True))


def options(about: dict[str, Any]) -> Iterator[str]:
    """The tokens of a command's arguments, at any depth."""
    for argument in about.get("arguments", []):
        parts = dict(pairs(argument))
        if "token" in parts:
            yield parts["token"].upper()
        yield from options(parts)


def both(reference: Reference) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    with redis.Redis(port=reference.port, protocol=2) as client:
        client.response_callbacks.clear()
        theirs = client.execute_command("COMMAND", "DOCS")
    return described(theirs), described(Dialogue(make_engine())("COMMAND DOCS"))


def test_every_command_of_redis_is_here_or_named_as_left_out(reference: Reference) -> None:
    theirs, ours = both(reference)

    assert {name for name in theirs if name not in ours} == left_out() & theirs.keys()


def test_every_option_of_redis_is_here(reference: Reference) -> None:
    theirs, ours = both(reference)
    missing = {
        name: sorted(set(options(about)) - set(options(ours[name]))) for name, about in theirs.items() if name in ours
    }

    assert {name: tokens for name, tokens in missing.items() if tokens} == {}
