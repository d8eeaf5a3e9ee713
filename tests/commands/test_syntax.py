"""The declaration language: every construct, the readable form, arity, and what is refused."""

import pytest

from penstock.commands import registry
from penstock.engine.table import argument_tree, command_syntax
from penstock.engine.table.argument_tree import Argument

Tree = dict[str, object]


def tree(argument: Argument) -> Tree:
    """An argument as a dictionary without what is not set."""
    found: Tree = {"name": argument.name, "type": argument.type}
    named = {
        "token": argument.token,
        "display": argument.display if argument.display not in ("", argument.name) else None,
        "key_spec": argument.key_spec if argument.key_spec >= 0 else None,
        "since": argument.since or None,
        "deprecated": argument.deprecated or None,
        "optional": argument.optional or None,
        "multiple": argument.multiple or None,
        "multiple_token": argument.multiple_token or None,
        "arguments": [tree(inner) for inner in argument.arguments] or None,
    }
    found.update({name: value for name, value in named.items() if value is not None})
    return found


def only(line: str) -> Tree:
    """The tree of a line with one argument."""
    (argument,) = command_syntax.parse(line)
    return tree(argument)


ONE_ARGUMENT = {
    "a value": ("field", {"name": "field", "type": "string"}),
    "a value whose name tells its type": ("count", {"name": "count", "type": "integer"}),
    "a value with a type": ("score:double", {"name": "score", "type": "double"}),
    "a key": ("key", {"name": "key", "type": "key", "key_spec": 0}),
    "a key of another name": ("newkey:key", {"name": "newkey", "type": "key", "key_spec": 0}),
    "a key of a certain specification": ("key2:key#3", {"name": "key2", "type": "key", "key_spec": 3}),
    "a token": ("NOACK", {"name": "noack", "type": "pure-token", "token": "NOACK"}),
    "a token under another name": ("auto-id:*", {"name": "auto-id", "type": "pure-token", "token": "*"}),
    "the equals sign as a token": ("equal:=", {"name": "equal", "type": "pure-token", "token": "="}),
    "the empty token": ('nothing:""', {"name": "nothing", "type": "pure-token", "token": ""}),
    "a value behind a token": ("COUNT count", {"name": "count", "type": "integer", "token": "COUNT"}),
    "a value behind a token under another name": (
        "auth:AUTH password",
        {"name": "auth", "type": "string", "token": "AUTH", "display": "password"},
    ),
    "a value shown in other words": (
        'addr:ADDR "ip:port"',
        {"name": "addr", "type": "string", "token": "ADDR", "display": "ip:port"},
    ),
    "an optional value": ("[count]", {"name": "count", "type": "integer", "optional": True}),
    "since": (
        "NOMKSTREAM@6.2.0",
        {"name": "nomkstream", "type": "pure-token", "token": "NOMKSTREAM", "since": "6.2.0"},
    ),
    "deprecated": ("old@-2.8.12", {"name": "old", "type": "string", "deprecated": "2.8.12"}),
    "a repeated value": ("id [id ...]", {"name": "id", "type": "string", "multiple": True}),
    "a repeated value, shortly": ("id ...", {"name": "id", "type": "string", "multiple": True}),
    "values or none": ("[id [id ...]]", {"name": "id", "type": "string", "optional": True, "multiple": True}),
    "values behind one token": ("IDS id [id ...]", {"name": "id", "type": "string", "token": "IDS", "multiple": True}),
    "a token repeated with its value": (
        "[GET field [GET field ...]]",
        {
            "name": "field",
            "type": "string",
            "token": "GET",
            "optional": True,
            "multiple": True,
            "multiple_token": True,
        },
    ),
    "a choice": (
        "strategy:<MAXLEN|MINID@6.2.0>",
        {
            "name": "strategy",
            "type": "oneof",
            "arguments": [
                {"name": "maxlen", "type": "pure-token", "token": "MAXLEN"},
                {"name": "minid", "type": "pure-token", "token": "MINID", "since": "6.2.0"},
            ],
        },
    ),
    "a choice named after its first": (
        "[LEFT|RIGHT]@7.0.0",
        {
            "name": "left",
            "type": "oneof",
            "since": "7.0.0",
            "optional": True,
            "arguments": [
                {"name": "left", "type": "pure-token", "token": "LEFT"},
                {"name": "right", "type": "pure-token", "token": "RIGHT"},
            ],
        },
    ),
    "a choice behind a token": (
        "by:FILTERBY <MODULE name|PATTERN pattern>",
        {
            "name": "by",
            "type": "oneof",
            "token": "FILTERBY",
            "arguments": [
                {"name": "name", "type": "string", "token": "MODULE"},
                {"name": "pattern", "type": "pattern", "token": "PATTERN"},
            ],
        },
    ),
    "a repeated block": (
        "data:(field value) [field value ...]",
        {
            "name": "data",
            "type": "block",
            "multiple": True,
            "arguments": [{"name": "field", "type": "string"}, {"name": "value", "type": "string"}],
        },
    ),
    "an optional block": (
        "full-block:[FULL [COUNT count]]",
        {
            "name": "full-block",
            "type": "block",
            "optional": True,
            "arguments": [
                {"name": "full", "type": "pure-token", "token": "FULL"},
                {"name": "count", "type": "integer", "token": "COUNT", "optional": True},
            ],
        },
    ),
    "a comma between a token and a value": (
        "(idmp-token:IDMP, pid)",
        {
            "name": "idmp-token",
            "type": "block",
            "arguments": [
                {"name": "idmp-token", "type": "pure-token", "token": "IDMP"},
                {"name": "pid", "type": "string"},
            ],
        },
    ),
}


@pytest.mark.parametrize(("line", "expected"), ONE_ARGUMENT.values(), ids=ONE_ARGUMENT)
def test_each_construct_means_one_tree(line: str, expected: Tree) -> None:
    assert only(line) == expected


def test_keys_are_numbered_in_order() -> None:
    assert [argument.key_spec for argument in command_syntax.parse("source:key destination:key [REPLACE]")] == [
        0,
        1,
        -1,
    ]


def test_a_repetition_does_not_number_its_key_again() -> None:
    assert [argument.key_spec for argument in command_syntax.parse("key [key ...] other:key")] == [0, 1]


SHOWN = {
    "XREADGROUP": (
        "group-block:GROUP (group consumer) [COUNT count] [NOACK] streams:STREAMS (key [key ...] id [id ...])",
        "GROUP group consumer [COUNT count] [NOACK] STREAMS key [key ...] id [id ...]",
    ),
    "trim": (
        "trim:[strategy:<MAXLEN|MINID@6.2.0> operator:[equal:=|approximately:~] threshold [LIMIT count@6.2.0]]",
        "[<MAXLEN | MINID> [= | ~] threshold [LIMIT count]]",
    ),
    "repeated": ("data:(field value) [field value ...]", "field value [field value ...]"),
    "repeated token": ("[GET pattern [GET pattern ...]]", "[GET pattern [GET pattern ...]]"),
    "quoted": ('[addr:ADDR "ip:port"]', "[ADDR ip:port]"),
    "optional choice behind a token": ("[skipme:SKIPME <YES|NO>]", "[SKIPME <YES | NO>]"),
}


@pytest.mark.parametrize(("line", "expected"), SHOWN.values(), ids=SHOWN)
def test_a_reader_sees_the_documentation_s_notation(line: str, expected: str) -> None:
    assert argument_tree.shown(command_syntax.parse(line)) == expected


ARITIES = {
    "nothing": ("PING", "", 1),
    "a subcommand has two words of its own": ("XINFO|HELP", "", 2),
    "fixed": ("XGROUP|CREATECONSUMER", "key group consumer", 5),
    "optional": ("PING", "[message]", -1),
    "repeated": ("XACK", "key group id [id ...]", -4),
    "a token counts": ("X", "COUNT count", 3),
    "a choice counts as its shortest": ("X", "<a|choice:(b c)>", -2),
    "a choice of equal lengths is fixed": ("X", "<a|B>", 2),
    "a block behind a token": ("XREADGROUP", "g:GROUP (group consumer) s:STREAMS (key [key ...] id [id ...])", -7),
}


@pytest.mark.parametrize(("name", "line", "expected"), ARITIES.values(), ids=ARITIES)
def test_arity_follows_from_the_line(name: str, line: str, expected: int) -> None:
    assert command_syntax.arity(name, line) == expected


def test_the_arity_of_every_command_is_that_of_its_tree() -> None:
    rows = [one for row in registry.table().values() for one in (row, *row.subcommands.values())]
    for row in rows:
        if row.syntax:
            least, is_fixed = argument_tree.extent(command_syntax.parse(row.syntax))
            own = 2 if "|" in row.name else 1
            found = command_syntax.arity(row.name, row.syntax)
            assert found == (own + least if is_fixed else -(own + least)), row.name


MALFORMED = [
    "[key",
    "key]",
    "<a|b",
    "(a",
    "a [b ...]",
    "[id ...]",
    "key:nonsense",
    "<a|>",
    "()",
    "[]",
    "data:(a b) [a c ...]",
]


@pytest.mark.parametrize("line", MALFORMED)
def test_a_malformed_line_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="in the syntax"):
        command_syntax.parse(line)
