"""Module-level state does not change, but for what is listed here, with the reason.

What changes belongs to an engine, a session or another object: two servers in one process must not meet in it.
"""

import ast
import importlib
import random
import sys
from collections.abc import Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

from tests.support.source_trees import FILES, module_name, nodes_of, trees
from tests.support.table_engine import prepared, rows
from tests.support.table_requests import TableRequests

CACHES = {  # of values that are equal wherever they come from, so that no caller can tell whether they are there
    ("penstock.native.columns", "_last"),  # the last column of one number
    ("penstock.storage.streams.ids", "_heads"),  # the first bytes of ids of the last two milliseconds
    ("penstock.storage.types.field_names", "_names"),  # names of hash fields
    ("penstock.storage.types.field_names", "_tables"),  # the same, of whole hashes
    ("penstock.pipeline.connector.connection.cluster", "_tags"),  # a hash tag for each slot
    ("penstock.pipeline.connector.sink.placement", "_winners"),  # by the endpoints' names
    ("penstock.commands.streams.groups.info_fields", "_NAMES"),  # of XINFO's fields: 1 % of XINFO STREAM FULL
}
DECLARATIONS = {  # filled while modules are imported, not after
    ("penstock.engine.table.command_table", "BATCHED"),
    ("penstock.engine.table.command_table", "DECLARED"),
    ("penstock.engine.table.command_table", "REPLAYED"),
}
CHANGING = {
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "move_to_end", "pop", "popitem", "popleft",
    "remove", "reverse", "setdefault", "sort", "update", "write",
}  # fmt: skip
CACHED = {"cache", "lru_cache", "cached"}  # decorators that keep what a function returned


def module_level_names(tree: ast.Module) -> set[str]:
    """The names that a module assigns, in the branches of its `if` and `try`, too."""
    found: set[str] = set()
    left: list[ast.stmt] = list(tree.body)
    while left:
        statement = left.pop()
        if isinstance(statement, ast.If | ast.Try | ast.With):
            left += statement.body + getattr(statement, "orelse", [])
        elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
            found |= {
                node.id
                for node in ast.walk(statement)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
    return found


def changed_by(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Iterator[str]:
    """The names, not its own, that a function changes the value of, or that keep what it returned."""
    if not isinstance(function, ast.Lambda):
        for decorator in function.decorator_list:
            if {
                node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
                for node in ast.walk(decorator)
            } & CACHED:
                yield function.name
    everywhere = {name for node in ast.walk(function) if isinstance(node, ast.Global) for name in node.names}
    own = {argument.arg for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    own |= {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    yield from everywhere
    for node in ast.walk(function):
        target: ast.expr | None = None
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            target = node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
            target = node.func
        while isinstance(target, ast.Attribute | ast.Subscript):
            target = target.value
        if isinstance(target, ast.Name) and target.id not in own - everywhere:
            yield target.id


def changed_in(tree: ast.Module) -> set[str]:
    """The module-level names of a module that its functions change."""
    functions = [
        node for node in nodes_of(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    ]
    names = module_level_names(tree) | {function.name for function in functions if not isinstance(function, ast.Lambda)}
    return {name for function in functions for name in changed_by(function)} & names


def test_what_changes_a_name_of_its_module_is_found() -> None:
    source = """
A, B, C, D, E, F = {}, [], set(), 0, object(), 1
@functools.lru_cache(2)
def kept(): A[1] = 2
def changes(): B.append(1)
def sets():
    global D
    D = C.add(1)
def marks(): E.last = 3
def own(B, C):
    A = {}
    A[1] = F
    B.append(C)
"""
    assert changed_in(ast.parse(source)) == {"A", "B", "C", "D", "E", "kept"}


def test_functions_change_no_module_level_value_but_these() -> None:
    changed = {(module_name(path), name) for path, tree in trees().items() for name in changed_in(tree)}

    assert changed == CACHES | DECLARATIONS


def picture(value: Any, seen: set[int]) -> Any:
    """What a value holds, to be compared: containers and our own objects by their contents."""
    if value is None or isinstance(value, int | float | str | bytes | type | ModuleType):
        return value
    if id(value) in seen:
        return "seen"
    seen.add(id(value))
    if isinstance(value, list | tuple):
        return tuple(picture(one, seen) for one in value)
    if isinstance(value, set | frozenset):
        return frozenset(value)
    if isinstance(value, dict):
        return tuple((picture(key, seen), picture(one, seen)) for key, one in value.items())
    if hasattr(value, "cache_info"):
        return value.cache_info()
    if type(value).__module__.startswith("penstock."):
        slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        return tuple(picture(getattr(value, name, None), seen) for name in (*slots, *getattr(value, "__dict__", ())))
    return id(value)


def module_level_values() -> dict[tuple[str, str], int]:
    """A digest of each value of each module of the package that is imported."""
    return {
        (module, name): hash(picture(value, set()))
        for module, loaded in list(sys.modules.items())
        if module.startswith("penstock.")
        for name, value in vars(loaded).items()
        if not name.startswith("__") and not isinstance(value, type | ModuleType)
    }


def test_no_module_level_value_is_a_set_that_could_be_changed() -> None:
    """A constant is a frozenset; `frozenset | dict.keys()` is none, and stops a compiled module's import."""
    for path in FILES:
        if path.name != "__main__.py":
            with suppress(ModuleNotFoundError):  # what an extra brings
                importlib.import_module(module_name(path))

    found = {
        (module, name)
        for module, loaded in list(sys.modules.items())
        if module.startswith("penstock.")
        for name, value in vars(loaded).items()
        if type(value) is set and name != "__conditional_annotations__"  # Python 3.14's own
    }
    shared = ("penstock.engine.session", "NO_PLACES")  # of sessions that watch nothing: the others have a set
    assert found - CACHES <= {shared, ("penstock.engine.clients", "NO_PLACES")}


def test_requests_of_every_command_change_no_module_level_value_but_the_caches() -> None:
    """By a method of an object neither: the rows of the table and shared sessions and users stay as they are."""
    requests = TableRequests(random.Random(1))
    engine, _ = prepared()
    before = module_level_values()
    for row in rows(engine):
        engine, _ = prepared()
        for _ in range(5):
            engine.handle(engine.server.connect("127.0.0.1:1", "127.0.0.1:2"), requests.valid(row))
    after = module_level_values()

    assert {place for place, digest in before.items() if after[place] != digest} <= CACHES
