"""COMMAND: its replies and refusals, and the whole table beside a real Redis."""

import socket
from collections.abc import Iterator
from typing import Any

import hiredis
import pytest

from penstock.commands import registry
from penstock.commands.server.descriptions import docs, info
from penstock.engine.table.row import Row
from tests.support.dialogue import Dialogue, decoded
from tests.support.wire import pack

Fields = dict[bytes, object]

ROWS = {
    declared.name: declared
    for top in registry.table().values()
    for declared in (top, *top.subcommands.values())
}  # fmt: skip

OWN_COST = {
    "APPEND",
    "CLUSTER|COUNTKEYSINSLOT",
    "CLUSTER|GETKEYSINSLOT",
    "CLUSTER|SLOT-STATS",
    "COPY",
    "DEL",
    "GETRANGE",
    "HRANDFIELD",
    "KEYS",
    "LINDEX",
    "LINSERT",
    "LPOS",
    "LRANGE",
    "LSET",
    "RANDOMKEY",
    "SCAN",
    "SETBIT",
    "SETRANGE",
    "SPOP",
    "SRANDMEMBER",
    "SUBSTR",
    "UNLINK",
    "ZSCAN",
}  # they cost something else here than in Redis


# -- replies ---------------------------------------------------------------------------------------------------------


def test_count_is_the_number_of_commands_without_subcommands(dialogue: Dialogue) -> None:
    assert dialogue("COMMAND COUNT") == len(dialogue.engine.commands.rows)


def test_bare_command_and_info_without_names_describe_every_command(dialogue: Dialogue) -> None:
    assert dialogue.raw("COMMAND") == dialogue.raw("COMMAND INFO")
    assert len(dialogue("COMMAND")) == len(dialogue.engine.commands.rows)


def test_info_answers_null_for_what_is_no_command(dialogue: Dialogue) -> None:
    assert dialogue.raw("COMMAND INFO nosuch command|nosuch command|count|x") == b"*3\r\n$-1\r\n$-1\r\n$-1\r\n"


def test_info_finds_subcommands_in_any_case(dialogue: Dialogue) -> None:
    (described,) = dialogue("COMMAND INFO Command|COUNT")

    assert described[:3] == [b"command|count", 2, [b"loading", b"stale"]]


def test_info_in_resp3_has_sets_where_redis_has_them(dialogue: Dialogue) -> None:
    dialogue.session.resp = 3

    assert dialogue.raw("COMMAND INFO command|docs") == (
        b"*1\r\n*10\r\n$12\r\ncommand|docs\r\n:-2\r\n~2\r\n+loading\r\n+stale\r\n:0\r\n:0\r\n:0\r\n"
        b"~2\r\n+@slow\r\n+@connection\r\n~1\r\n$29\r\nnondeterministic_output_order\r\n~0\r\n~0\r\n"
    )


def test_docs_leave_out_what_is_no_command(dialogue: Dialogue) -> None:
    assert dialogue.raw("COMMAND DOCS nosuch") == b"*0\r\n"


def test_docs_are_a_map_in_resp3(dialogue: Dialogue) -> None:
    dialogue.session.resp = 3

    (name,) = dialogue("COMMAND DOCS command|list nosuch")
    described = dialogue("COMMAND DOCS command|list")[b"command|list"]

    assert name == b"command|list"
    assert list(described) == [b"summary", b"since", b"group", b"complexity", b"arguments"]
    assert [argument[b"name"] for argument in described[b"arguments"]] == [b"filterby"]


def test_list_has_subcommands_behind_their_container(dialogue: Dialogue) -> None:
    listed = dialogue("COMMAND LIST FILTERBY PATTERN COMMAND*")

    assert listed[:3] == [b"command", b"command|count", b"command|info"]


def test_list_by_category_takes_no_at_sign_and_any_case(dialogue: Dialogue) -> None:
    assert b"command|count" in dialogue("COMMAND LIST FILTERBY ACLCAT CONNECTION")
    assert dialogue("COMMAND LIST FILTERBY ACLCAT @connection") == []
    assert dialogue("COMMAND LIST FILTERBY ACLCAT nosuch") == []


def test_list_by_module_is_empty(dialogue: Dialogue) -> None:
    assert dialogue("COMMAND LIST FILTERBY MODULE any") == []


@pytest.mark.parametrize("line", ["x", "FILTERBY PATTERN", "FILTERBY NOSUCH x", "a b c d"])
def test_list_refuses_other_words(dialogue: Dialogue, line: str) -> None:
    assert dialogue.raw(f"COMMAND LIST {line}") == b"-ERR syntax error\r\n"


GETKEYS_REFUSALS = {
    "unknown": ("nosuch a", b"-ERR Invalid command specified\r\n"),
    "unknown subcommand": ("command nosuch", b"-ERR Invalid command specified\r\n"),
    "without keys": ("command info get", b"-ERR The command has no key arguments\r\n"),
    "without keys, and of wrong arity": ("command count x y", b"-ERR The command has no key arguments\r\n"),
}


@pytest.mark.parametrize(("line", "refusal"), GETKEYS_REFUSALS.values(), ids=GETKEYS_REFUSALS)
def test_getkeys_refuses_as_redis_does(dialogue: Dialogue, line: str, refusal: bytes) -> None:
    assert dialogue.raw(f"COMMAND GETKEYS {line}") == refusal
    assert dialogue.raw(f"COMMAND GETKEYSANDFLAGS {line}") == refusal


def test_help_names_every_subcommand(dialogue: Dialogue) -> None:
    shown = dialogue("COMMAND HELP")
    first_words = {line.split()[0] for line in shown[1:] if not line.startswith(b" ")}

    assert first_words == {b"(no", *(name for name in dialogue.engine.commands.rows[b"COMMAND"].subcommands)}


# -- beside a real Redis ---------------------------------------------------------------------------------------------


class Reference:
    """A connection to the real Redis; called with words, it returns the decoded reply, in RESP3 unless told else."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self("HELLO", "3")
        greeting = self("HELLO")
        assert isinstance(greeting, dict)
        self.version = tuple(int(part) for part in greeting[b"version"].split(b"."))

    def __call__(self, *words: bytes | str) -> Any:
        return decoded(self.raw(*words))

    def raw(self, *words: bytes | str) -> bytes:
        """The reply's bytes."""
        self.connection.sendall(pack(*words))
        reader = hiredis.Reader(notEnoughData=...)
        received = b""
        while reader.gets() is ...:
            received += (piece := self.connection.recv(1 << 16))
            reader.feed(piece)
        return received


@pytest.fixture(scope="module")
def ask(reference_port: int) -> Iterator[Reference]:
    with socket.create_connection(("127.0.0.1", reference_port), 10) as connection:
        yield Reference(connection)


@pytest.fixture(scope="module")
def known(ask: Reference) -> dict[str, Row]:
    """Our rows that the reference has, too."""
    return {name: row for name, row in ROWS.items() if ask("COMMAND", "INFO", name) != [None]}


def without_newer(arguments: object, version: tuple[int, ...]) -> object:
    """An argument tree without what came after the reference."""
    assert isinstance(arguments, list)
    return [
        {
            name: without_newer(value, version) if name == b"arguments" else value
            for name, value in argument.items()
        }
        for argument in arguments
        if tuple(int(part) for part in argument.get(b"since", b"0").split(b".")) <= version
    ]  # fmt: skip


def test_command_info_is_the_reference_s(ask: Reference, known: dict[str, Row]) -> None:
    ours = {name: decoded(info(row, resp3=True)) for name, row in known.items()}
    theirs = {name: ask("COMMAND", "INFO", name)[0] for name in known}

    assert {name: of[:9] for name, of in ours.items()} == {name: of[:9] for name, of in theirs.items()}
    assert {(name, more) for name, of in ours.items() for more in subcommands(of) - subcommands(theirs[name])} == set()


def subcommands(described: list[Any]) -> set[bytes]:
    """The names of what COMMAND INFO shows below a command."""
    return {below[0] for below in described[9]}


def test_command_docs_are_the_reference_s_but_for_the_summary(ask: Reference, known: dict[str, Row]) -> None:
    ours = {name: (row.label, decoded(docs(row, resp3=True))) for name, row in known.items()}
    theirs = {name: next(iter(ask("COMMAND", "DOCS", name).items())) for name in known}

    assert {name: (label, list(of)) for name, (label, of) in ours.items()} == {
        name: (label, list(of)) for name, (label, of) in theirs.items()
    }
    assert {name: compared(of, ask.version) for name, (_, of) in ours.items()} == {
        name: compared(of, ask.version) for name, (_, of) in theirs.items()
    }
    differ = {name for name in known if ours[name][1].get(b"complexity") != theirs[name][1].get(b"complexity")}
    assert differ == OWN_COST & known.keys()


def compared(described: Fields, version: tuple[int, ...]) -> Fields:
    """What must be equal: all but the words, the subcommands (compared by themselves) and newer arguments."""
    left_out = (b"summary", b"complexity", b"subcommands")
    fields = {name: value for name, value in described.items() if name not in left_out}
    if b"arguments" in fields:
        fields[b"arguments"] = without_newer(fields[b"arguments"], version)
    return fields


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("name", ["XADD", "XREAD", "XGROUP|CREATE", "SET", "MSET", "RENAME", "COMMAND|LIST"])
def test_command_info_is_the_reference_s_to_the_byte(ask: Reference, dialogue: Dialogue, name: str, resp: int) -> None:
    dialogue.session.resp = resp
    ask("HELLO", str(resp))

    theirs = ask.raw("COMMAND", "INFO", name)
    ask("HELLO", "3")

    assert dialogue.raw(f"COMMAND INFO '{name}'") == theirs


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("name", ["XADD", "XGROUP|CREATE", "SET", "SETNX", "COMMAND|LIST", "CLIENT|KILL"])
def test_command_docs_are_the_reference_s_to_the_byte_behind_the_summary(
    ask: Reference, dialogue: Dialogue, name: str, resp: int
) -> None:
    dialogue.session.resp = resp
    ask("HELLO", str(resp))

    theirs = ask.raw("COMMAND", "DOCS", name)
    ask("HELLO", "3")

    assert behind_summary(dialogue.raw(f"COMMAND DOCS '{name}'")) == behind_summary(theirs)


def behind_summary(described: bytes) -> tuple[bytes, bytes]:
    """The replies' headers and what follows the summary."""
    headers, _, rest = described.partition(b"summary")
    return headers, rest.partition(b"$5\r\nsince")[2]


GETKEYS = [
    "SET k v",
    "SET k v GET",
    "SET k GET",
    "SET k",
    "DEL a b c",
    "MSET a 1 b 2",
    "MSET a 1 b",
    "RENAME a b",
    "COPY a b",
    "OBJECT ENCODING k",
    "XADD k * f v",
    "XADD k",
    "XGROUP CREATE k g $",
    "XGROUP",
    "XGROUP NOSUCH k",
    "XGROUP|CREATE k",
    "XINFO HELP",
    "XINFO STREAM k FULL",
    "XREAD STREAMS a b 0 0",
    "XREAD STREAMS a b 0",
    "XREAD COUNT 1 a b 0",
    "XREAD COUNT 1 STREAMS",
    "XREADGROUP GROUP STREAMS c STREAMS a b 0 0",
    "XREADGROUP GROUP g STREAMS STREAMS a b 0 0",
    "XREADGROUP GROUP STREAMS STREAMS NOACK STREAMS a b 0 0",
    "XREAD NONSENSE STREAMS a 0",
    "XREADGROUP GROUP g c NONSENSE STREAMS a >",
    "XREADGROUP STREAMS a b c d e f",
    "BITFIELD k GET u8 0 OVERFLOW WRAP",
    "BITFIELD k GET u8 0 SET u8 0 1",
    "BITFIELD k GET u8",
    "DELEX k",
    "DELEX k IFEQ x",
    "SORT k BY STORE STORE b",
    "SORT k STORE a STORE b",
    "SORT k LIMIT STORE b",
    "GEORADIUS k 1 1 1 m STORE",
    "ZUNION 1.5 a",
    "ZUNIONSTORE d +1x a",
    "ZUNION 4294967297 a",
    "EVAL x 1x a",
    "MSETEX 1x a b",
    "MIGRATE h 1 k 0 9 COPY",
    "MIGRATE h 1 k 0 9 KEYS a b",
    "MIGRATE h 1 k 0 9 KEYS",
    "MIGRATE h 1 k 0 9 x KEYS",
    "MSETEX 2 a 1 b",
    "MSETEX 2 a 1",
    "PING",
    "COMMAND INFO x",
    "GET",
]


@pytest.mark.parametrize("subcommand", ["GETKEYS", "GETKEYSANDFLAGS"])
@pytest.mark.parametrize("line", GETKEYS)
def test_getkeys_is_the_reference_s(ask: Reference, dialogue: Dialogue, line: str, subcommand: str) -> None:
    dialogue.session.resp = 3

    assert repr(dialogue(f"COMMAND {subcommand} {line}")) == repr(ask("COMMAND", subcommand, *line.split()))


READ_AS_THE_HANDLER = {
    "the last target": ("GEORADIUS k 1 1 1 m STORE a STORE b", [[b"k", b"RO access"], [b"b", b"OW update"]]),
    "the last target around a member": (
        "GEORADIUSBYMEMBER k m 1 m STOREDIST store STOREDIST b",
        [[b"k", b"RO access"], [b"b", b"OW update"]],
    ),
    "a target named like an option": ("SORT k STORE get STORE b", [[b"k", b"RO access"], [b"b", b"OW update"]]),
    "a compared value named like an option": ("SET k v IFEQ get", [[b"k", b"RW update"]]),
    "a number named like an option of SET": ("SET k v EX get", [[b"k", b"OW update"]]),
    "a number named like an option of XREAD": ("XREAD COUNT STREAMS STREAMS a 0", [[b"a", b"RO access"]]),
    "a field named like an option": (
        "PENSTOCK.POLICY k AT forward FORWARD b",
        [[b"k", b"RW access update"], [b"b", b"RW insert"]],
    ),
    "a group named like an option": (
        "PENSTOCK.POLICY k GROUP forward KEY deadletter DEADLETTER b",
        [[b"k", b"RW access update"], [b"b", b"RW insert"]],
    ),
    "no target": ("PENSTOCK.POLICY k FORWARD none", [[b"k", b"RW update"]]),
}


@pytest.mark.parametrize(("line", "expected"), READ_AS_THE_HANDLER.values(), ids=READ_AS_THE_HANDLER)
def test_getkeys_reads_options_as_the_handler_does(dialogue: Dialogue, line: str, expected: list[list[bytes]]) -> None:
    found = [[key, b" ".join(flags)] for key, flags in dialogue(f"COMMAND GETKEYSANDFLAGS {line}")]

    assert found == expected


def test_every_refusal_of_command_is_the_reference_s(ask: Reference, dialogue: Dialogue) -> None:
    lines = ["COMMAND NOSUCH", "COMMAND COUNT x", "COMMAND GETKEYS", "COMMAND LIST x", "COMMAND LIST FILTERBY PATTERN"]

    assert [repr(dialogue(line)) for line in lines] == [repr(ask(*line.split())) for line in lines]
