"""Each command module names its tests (`Tests:` in its docstring), and `make test-one` runs them."""

import re
from pathlib import Path

import pytest

from penstock.commands import registry
from penstock.engine.table.command_table import Command
from tests.support import transcripts
from tools.test_one import KINDS, main, named_tests, pytest_arguments

ROOT = Path(__file__).parents[2]
COMMANDS = ROOT / "penstock/commands"
DECLARES = re.compile(r"^@(command|batched|replayed)\(", re.MULTILINE)
MODULES = [
    ".".join(path.relative_to(COMMANDS).with_suffix("").parts)
    for path in sorted(COMMANDS.rglob("*.py"))
    if DECLARES.search(path.read_text())
]
NAMES = [name.rpartition(".")[2] for name in MODULES]


def commands_of(module: str) -> set[str]:
    """The commands of which a module has the handler, the batch handler or the handler for the log's lines."""
    found = set()
    for top in registry.table().values():
        for row in (top, *top.subcommands.values()):
            assert isinstance(row, Command), "the registry's table has commands"
            handlers = (row.handler, row.batch_handler, row.replay_handler)
            if f"penstock.commands.{module}" in [getattr(handler, "__module__", "") for handler in handlers]:
                found.add(row.name)
    return found


def requests_in(topic: str) -> set[str]:
    """The commands that a transcript sends, with and without their second words."""
    requests = [transcripts.words_of(step.request) for step in transcripts.read(topic).steps if step.request]
    words = [[word.decode("latin-1").upper() for word in request[:2]] for request in requests]
    return {"|".join(some) for two in words for some in (two, two[:1])}


@pytest.mark.parametrize("module", MODULES)
def test_a_command_module_names_tests_that_exist(module: str) -> None:
    path = ROOT / "penstock/commands" / f"{module.replace('.', '/')}.py"
    found = named_tests(path)

    assert found, f"{path} has no line that begins with Tests:"
    assert [kind for kind, _ in found if kind not in KINDS] == []
    assert [name for kind, name in found if kind == "transcripts" and name not in transcripts.names()] == []
    assert [name for kind, name in found if kind != "transcripts" and not (ROOT / f"tests/{name}.py").exists()] == []


@pytest.mark.parametrize("module", MODULES)
def test_each_transcript_that_a_module_names_sends_a_command_of_it(module: str) -> None:
    path = ROOT / "penstock/commands" / f"{module.replace('.', '/')}.py"
    topics = [name for kind, name in named_tests(path) if kind == "transcripts"]

    assert [topic for topic in topics if not requests_in(topic) & commands_of(module)] == []


def test_command_modules_have_names_of_their_own() -> None:
    assert len(set(NAMES)) == len(NAMES)


def test_the_arguments_of_pytest_are_tests_and_files() -> None:
    assert pytest_arguments([("transcripts", "xclaim"), ("law", "test_laws")]) == [
        "tests/test_transcripts.py::test_an_engine_replies_as_written_down[xclaim-2]",
        "tests/test_transcripts.py::test_an_engine_replies_as_written_down[xclaim-3]",
        "tests/test_laws.py",
    ]


HINT = "F= takes the name of a file in penstock/commands.\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["xclam"], "There is no command module 'xclam': did you mean xclaim?\n"),
        (["nothing-like-it"], f"There is no command module 'nothing-like-it': {HINT}"),
        ([], HINT),
        (["help.py"], "The docstring of penstock/commands/common/help.py has no line that begins with Tests:.\n"),
    ],
    ids=["nearly", "wrong", "none", "a module without commands"],
)
def test_a_wrong_name_gets_one_sentence(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err == said
