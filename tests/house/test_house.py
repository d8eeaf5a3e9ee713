"""The plan of the house: which modules know each other, how large rooms are, and what stays with the server."""

import ast
import re
from pathlib import Path

import pytest

from penstock.commands import registry
from tests.support.source_trees import FILES, ROOT, Imports, imported, imports, module_name, nodes_of, trees

# Two that need each other's types; at run time, one imports the other. A line that is not needed any more fails, too.
CIRCLES = [
    ["penstock.server.files.aof_rewrite", "penstock.server.turns.log_writer"],
    [
        "penstock.server.connections.client_eviction",
        "penstock.server.connections.connection",
        "penstock.server.turns.turn",
    ],
    ["penstock.engine.context", "penstock.engine.scripting.scripts", "penstock.engine.server_state"],
    ["penstock.storage.key_table", "penstock.storage.keyspace", "penstock.storage.size_counts"],
    ["penstock.engine.session", "penstock.engine.waiting.blocked_request"],
    ["penstock.testing.connections.links", "penstock.testing.faults.failing"],
    ["penstock.storage.compression", "penstock.storage.streams.segment"],
]
MOST_MODULES = 20  # of one folder, __init__.py left out
MOST_LINES = 600
ENVIRONMENT = {"penstock/server/run.py", "penstock/pipeline/session.py"}  # read variables, at the start


def circles(graph: Imports) -> list[list[str]]:
    """The groups of modules that import each other, directly or through others (Kosaraju)."""
    order: list[str] = []
    seen: set[str] = set()
    for start in graph:
        _visit(graph, start, seen, order)
    importers: Imports = {name: set() for name in graph}
    for name, needed in graph.items():
        for other in needed:
            importers[other].add(name)
    seen.clear()
    found: list[list[str]] = []
    for start in reversed(order):
        group: list[str] = []
        _visit(importers, start, seen, group)
        if len(group) > 1:
            found.append(sorted(group))
    return found


def _visit(graph: Imports, name: str, seen: set[str], left: list[str]) -> None:
    """Go through all that can be reached; `left` gets each module once its own have been."""
    if name in seen:
        return
    seen.add(name)
    for other in sorted(graph[name]):
        _visit(graph, other, seen, left)
    left.append(name)


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}

    assert sorted(circles(graph)) == [["a", "b", "c"], ["d", "e"]]


def reachable(graph: Imports, name: str) -> set[str]:
    """What a module imports, directly or through others."""
    found: list[str] = []
    _visit(graph, name, set(), found)
    return set(found) - {name}


def test_modules_import_each_other_in_these_circles_only() -> None:
    assert sorted(circles(imports())) == sorted(CIRCLES)


def test_no_import_in_a_function_hides_a_circle() -> None:
    graph = imports()
    hidden = [
        (module_name(path), node.name, other)
        for path, tree in trees().items()
        for node in nodes_of(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for other in imported(node)
        if module_name(path) in reachable(graph, other)
    ]

    assert hidden == []


@pytest.mark.parametrize("folder", sorted({path.parent for path in FILES}), ids=lambda path: path.name)
def test_a_folder_holds_at_most_twenty_modules(folder: Path) -> None:
    assert len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) <= MOST_MODULES


def test_no_file_is_longer_than_six_hundred_lines() -> None:
    assert [module_name(path) for path in FILES if len(path.read_text().splitlines()) > MOST_LINES] == []


def reads_environment(tree: ast.Module) -> bool:
    """Whether it names os.environ or os.getenv, which import-linter cannot see."""
    return any(
        (isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv"))
        or (isinstance(node, ast.ImportFrom) and node.module == "os")
        for node in nodes_of(tree)
    )


def test_the_environment_is_read_where_a_program_starts_only() -> None:
    assert {
        path.relative_to(ROOT).as_posix() for path, tree in trees().items() if reads_environment(tree)
    } == ENVIRONMENT


def test_which_build_answers_is_decided_in_one_place() -> None:
    assert [path.name for path in FILES if 'endswith((".so"' in path.read_text()] == ["build.py"]


# Names of commands that engine/ and server/ may have. A line that is not needed any more fails, too: remove it.
COMMANDS_WRITTEN = {  # as words of the log, of a base file, of the stream to replicas, of requests to a master
    "ARMSET", "ARSEEK", "AUTH", "BLESS", "DEL", "EXEC", "FAILOVER", "FUNCTION", "HDEL", "HPEXPIREAT", "HSET", "MULTI",
    "PENSTOCK.POLICY", "PENSTOCK.XNACK", "PEXPIREAT", "PING", "PSYNC", "REPLCONF", "RPUSH", "SADD", "SELECT", "SET",
    "SETBIT", "SETRANGE", "SPEXPIREAT", "SREM", "TIME", "XACK", "XADD", "XCFGSET", "XCLAIM", "XDEL", "XGROUP",
    "XIDMPRECORD", "XNACK", "XSETID", "XTRIM", "ZADD",
}  # fmt: skip
COMMANDS_ASKED = {  # in a decision: what a transaction, a link or the end of the server is
    "EXEC", "MULTI", "PING", "REPLCONF", "FLUSHALL", "SHUTDOWN",
}  # fmt: skip
COMPATIBILITY = ROOT / "penstock/engine/table/client_compat.py"  # reply fields by version, and what Valkey has


def texts_of(tree: ast.Module) -> set[str]:
    """The texts of a module, docstrings left out."""
    docs = {
        id(node.body[0].value)
        for node in nodes_of(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return {
        node.value if isinstance(node.value, str) else node.value.decode("latin-1")
        for node in nodes_of(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and id(node) not in docs
    }


def test_the_engine_and_the_server_name_no_command_but_these() -> None:
    names = {row.name for top in registry.table().values() for row in (top, *top.subcommands.values())}
    floors = [ROOT / "penstock/engine", ROOT / "penstock/server"]
    found = [
        texts_of(trees()[path]) & names
        for path in FILES
        if path != COMPATIBILITY and any(path.is_relative_to(floor) for floor in floors)
    ]

    assert set.union(*found) == COMMANDS_WRITTEN | COMMANDS_ASKED


# A handler reaches the parts of the server by the doors of Context. It hands the whole on to a function of the engine
# that works on all of it, but takes nothing out of it itself.
PAST_THE_DOORS = re.compile(r"\b(?:ctx|self|context)\.(?:engine\b|server\.)|= ctx\.server$", re.MULTILINE)
COMMANDS_PAST_THE_DOORS: set[str] = set()  # this list only gets shorter


def test_no_handler_reaches_past_the_doors_of_its_context() -> None:
    commands = [path for path in FILES if path.is_relative_to(ROOT / "penstock/commands")]
    past = {module_name(path) for path in commands if PAST_THE_DOORS.search(path.read_text())}

    assert past == COMMANDS_PAST_THE_DOORS


MOST_LINES_OF_A_FUNCTION = 70


def test_no_function_is_longer_than_seventy_lines() -> None:
    longer = {
        (path.relative_to(ROOT / "penstock").as_posix(), node.name)
        for path, tree in trees().items()
        for node in nodes_of(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= MOST_LINES_OF_A_FUNCTION
    }

    assert longer == set()


def test_docstrings_are_texts() -> None:
    """Python 3.13 and later do not compile one with a lone surrogate, as `\\ud800` gives it where no r is before it."""
    with_docstrings = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    bad = []
    for path, tree in trees().items():
        for node in nodes_of(tree):
            if isinstance(node, with_docstrings) and (text := ast.get_docstring(node, clean=False)) is not None:
                try:
                    text.encode()
                except UnicodeEncodeError:
                    bad.append(f"{module_name(path)}: {text[:60]!r}")

    assert bad == []
