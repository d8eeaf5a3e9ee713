"""What a command declares is what it reads: each word of its syntax, and no other.

A word that is declared and not read is refused, though COMMAND DOCS shows it; one that is read and not declared is
shown by nothing, and neither the random requests nor the key finder know it.
"""

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterable

from penstock.commands import registry
from penstock.engine.table import argument_tree, command_syntax
from penstock.engine.table.command_table import Command, command_of
from tests.support.source_trees import FILES, ROOT, imported, module_name, nodes_of, tree_of

REFUSED_WHOLE = {
    "CLUSTER|MIGRATION",
    "CLUSTER|MIGRATESLOTS",
    "CLUSTER|SYNCSLOTS",
    "MODULE|LOADEX",
}  # whatever they have
BATCHES = (  # words of commands that other modules declare
    "penstock.commands.streams.changing.xadd_batch", "penstock.commands.streams.replay_batches",
    "penstock.commands.strings.string_batches",
)  # fmt: skip
HALF_DECLARED = (  # Redis declares their first word only: DEBUG, PFDEBUG, REPLCONF and PSYNC
    "penstock.commands.hyperloglog.hll_debug", "penstock.commands.replication.syncing",
    "penstock.commands.server.debug", "penstock.commands.server.debug_protocol",
)  # fmt: skip
ONLY_REFUSED: dict[str, set[str]] = {}  # by a text of its own


@functools.cache
def modules() -> dict[str, ast.Module]:
    """Those of the commands, by name."""
    return {module_name(path): tree_of(path) for path in FILES if path.is_relative_to(ROOT / "penstock/commands")}


def rows() -> dict[str, Command]:
    every = [one for row in registry.TABLE.values() for one in (row, *row.subcommands.values())]
    return {one.name: command_of(one) for one in every if not one.is_container and one.name not in REFUSED_WHOLE}


def words_declared(syntax: str) -> set[str]:
    return {token for token, _ in argument_tree.dated_tokens(command_syntax.parse(syntax))}


def handler_module(row: Command) -> str:
    assert row.handler is not None
    return row.handler.__module__


@functools.cache
def with_imported(module: str) -> set[str]:
    """A module of the commands, and all of the commands that it imports, directly or through others."""
    found: set[str] = set()
    left = [module]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += [other for other in imported(modules()[name]) if other in modules()]
    return found


def constants(nodes: Iterable[ast.AST]) -> set[str]:
    return {
        node.value.decode("latin-1").upper()
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, bytes)
    }


def compared(tree: ast.Module) -> Iterable[ast.AST]:
    """What a module compares words with, and the keys of its option tables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare | ast.MatchValue) or (
            isinstance(node, ast.Call) and ast.unparse(node.func) == "OptionTable"
        ):
            yield from ast.walk(node)


def test_each_word_that_a_command_declares_is_read() -> None:
    texts = {name: constants(nodes_of(tree)) for name, tree in modules().items()}
    unread: dict[str, set[str]] = {}
    for name, row in rows().items():
        known = set.union(*(texts[module] for module in with_imported(handler_module(row))))
        unread[name] = words_declared(row.syntax) - known

    assert {name: words for name, words in unread.items() if words} == {}


def test_each_word_that_a_module_reads_is_declared() -> None:
    declared: dict[str, set[str]] = defaultdict(set)
    for row in rows().values():
        for module in with_imported(handler_module(row)):
            declared[module] |= words_declared(row.syntax) | {row.name}
    undeclared = {
        name: {word for word in constants(compared(tree)) if re.fullmatch(r"[A-Z][A-Z0-9-]+", word)} - declared[name]
        for name, tree in modules().items()
        if name not in (*BATCHES, *HALF_DECLARED)
    }

    assert {name: words for name, words in undeclared.items() if words} == ONLY_REFUSED
