"""Runs the tests of one command module: `python -m tools.test_one xclaim [pytest's arguments]`, or `make test-one`.

Which they are stands in the module's docstring, in a paragraph that begins with `Tests:`. Its parts are separated by
semicolons; each has a kind and names: `transcripts` (in tests/transcripts), `cases` (dialogues and tables), `law`
(random requests that must come to the same) and `model` (random steps beside a naive structure), these by their paths
below tests.
"""

import ast
import difflib
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
COMMANDS: Final = ROOT / "penstock/commands"
KINDS: Final = ("transcripts", "cases", "law", "model")
IN_AN_ENGINE: Final = "tests/test_transcripts.py::test_an_engine_replies_as_written_down"


def modules() -> dict[str, Path]:
    """The command modules by their file names, without `.py`."""
    return {path.stem: path for path in sorted(COMMANDS.rglob("*.py"))}


def named_tests(path: Path) -> list[tuple[str, str]]:
    """What a module's docstring names: kinds and names; empty where it names nothing."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = next((part for part in docstring.split("\n\n") if part.startswith("Tests: ")), "")
    found: list[tuple[str, str]] = []
    for part in " ".join(paragraph.split()).removeprefix("Tests: ").removesuffix(".").split("; "):
        kind, _, names = part.partition(" ")
        found += [(kind, name) for name in names.split(", ") if name]
    return found


def pytest_arguments(tests: list[tuple[str, str]]) -> list[str]:
    """Files and tests, as pytest takes them."""
    return [
        argument
        for kind, name in tests
        for argument in (
            [f"{IN_AN_ENGINE}[{name}-{resp}]" for resp in (2, 3)] if kind == "transcripts" else [f"tests/{name}.py"]
        )
    ]


def main(words: list[str]) -> int:
    name = Path(words[0]).stem if words else ""
    found = modules()
    if name not in found:
        near = difflib.get_close_matches(name, found, 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "F= takes the name of a file in penstock/commands."
        print(f"There is no command module {name!r}: {hint}" if name else hint, file=sys.stderr)
        return 2
    tests = named_tests(found[name])
    if not tests:
        print(f"The docstring of {found[name].relative_to(ROOT)} has no line that begins with Tests:.", file=sys.stderr)
        return 2
    pytest = [sys.executable, "-m", "pytest", "-m", "not slow"]
    return subprocess.run([*pytest, *pytest_arguments(tests), *words[1:]], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
