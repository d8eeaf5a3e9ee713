"""docs/architecture.md names files and functions: a rename must reach it."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILES = [path for folder in ("penstock", "packaging", "tests") for path in (ROOT / folder).rglob("*.*")]
SOURCE = "\n".join(path.read_text() for path in FILES if path.suffix == ".py" and path != Path(__file__))
PAGE = re.sub(r"```.*?```", "", (ROOT / "docs/architecture.md").read_text(), flags=re.DOTALL)
NAMED = re.findall(r"`@?([\w./]+)(?:\(\w*\))?`", PAGE)


def test_every_file_that_the_architecture_page_names_is_there() -> None:
    named = [name for name in NAMED if name.endswith((".py", ".lua"))]

    assert len(named) > 20
    assert [name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in FILES)] == []


def test_every_function_and_class_that_the_architecture_page_names_is_there() -> None:
    named = [name.rpartition(".")[2] for name in NAMED if not name.endswith((".py", ".lua")) and "/" not in name]

    assert len(named) > 20
    assert [name for name in named if not re.search(rf"\b{name}\b", SOURCE)] == []
