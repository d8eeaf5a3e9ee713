"""The modules of the package as syntax trees, and what each imports."""

import ast
import functools
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FILES: Final = sorted((ROOT / "penstock").rglob("*.py"))

Imports = dict[str, set[str]]


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """A module's tree, made by the first test that asks."""
    return ast.parse(path.read_text())


@functools.cache
def nodes_of(tree: ast.Module) -> list[ast.AST]:
    """All nodes of a module, kept: to find them takes longer than to look at each, and ten tests look at them."""
    return list(ast.walk(tree))


def trees() -> dict[Path, ast.Module]:
    """Every module's tree, by its path; some seconds of CPU for the first test that asks."""
    return {path: tree_of(path) for path in FILES}


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@functools.cache
def imports() -> Imports:
    """What each module imports of the package, under TYPE_CHECKING and in functions, too."""
    return {module_name(path): imported(tree) for path, tree in trees().items()}


@functools.cache
def _names() -> frozenset[str]:
    return frozenset(map(module_name, FILES))


def imported(tree: ast.AST) -> set[str]:
    """The modules of the package that a piece of source imports."""
    found: set[str] = set()
    for node in nodes_of(tree) if isinstance(tree, ast.Module) else ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= whole & _names() or {node.module} & _names()
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & _names()
    return found
