"""compat-version: what the named server does not have is hidden."""

import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from penstock.clock import ManualClock
from penstock.engine.engine import Engine
from penstock.engine.table.row import Row
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, settings_with


@pytest.fixture
def of_version(clock: ManualClock) -> Callable[..., Any]:
    """A client of an engine that passes for a version: of_version("7.2")."""

    def made(version: str) -> Dialogue:
        settings = settings_with(compat_version=version)
        return Dialogue(make_engine(clock, settings=settings))

    return made


BAD_ID = "ERR Invalid stream ID specified as stream command argument"
SYNTAX = "ERR syntax error"

REFUSED = [
    ("7.2", "XADD s KEEPREF 5 f v", BAD_ID),
    ("8.0", "XADD s acked 5 f v", BAD_ID),
    ("8.4", "XADD s IDMP p i * f v", BAD_ID),
    ("8.4", "XADD s IDMPAUTO p * f v", BAD_ID),
    ("8.0", "XTRIM s MAXLEN 5 DELREF", SYNTAX),
    ("8.2", "XREADGROUP GROUP g c CLAIM 5 STREAMS s >", SYNTAX),
    ("8.8", "XREAD MAXCOUNT 5 STREAMS s 0", SYNTAX),
    ("8.8", "XREADGROUP GROUP g c MAXSIZE 5 STREAMS s >", SYNTAX),
    ("7.2", "XREAD STREAMS s +", BAD_ID),
    ("7.2", "SET a b IFEQ c", SYNTAX),
    ("valkey-9.1", "SET a b IFNE c", SYNTAX),
    ("8.0", "BITOP DIFF a b c", SYNTAX),
    ("7.2", "CLIENT KILL MAXAGE 5", SYNTAX),
    ("8.0", "XDELEX s IDS 1 1-1", "ERR unknown command 'XDELEX', with args beginning with: 's' 'IDS' '1' '1-1' "),
    ("8.10", "STTL s", "ERR unknown command 'STTL', with args beginning with: 's' "),
    ("8.6", "XNACK s", "ERR unknown command 'XNACK', with args beginning with: 's' "),
    ("7.2", "xread streams s", "ERR wrong number of arguments for 'xread' command"),
    (
        "valkey-9.1",
        "XREAD STREAMS s 0 s",
        "ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be specified.",
    ),
]


@pytest.mark.parametrize(("version", "request_", "refusal"), REFUSED, ids=[f"{v}: {r}" for v, r, _ in REFUSED])
def test_what_is_newer_is_refused_as_any_unknown_word(
    of_version: Callable[..., Any], version: str, request_: str, refusal: str
) -> None:
    client = of_version(version)
    client("XADD s 1-1 f v", "XGROUP CREATE s g 0")

    assert str(client(request_)) == refusal


KNOWN = [
    ("8.2", "XADD s KEEPREF 5 f v", b"5-0"),
    ("8.6", "XADD s IDMP p i * f v", b"1795300000000-0"),
    ("8.4", "XREADGROUP GROUP g c CLAIM 5 STREAMS s >", [[b"s", [[b"1-1", [b"f", b"v"], 0, 0]]]]),
    ("8.10", "XREAD MAXCOUNT 5 STREAMS s 0", [[b"s", [[b"1-1", [b"f", b"v"]]]]]),
    ("8.12", "STTL h MEMBERS 1 m", [-2]),
    ("valkey-9.1", "XREAD STREAMS s +", [[b"s", [[b"1-1", [b"f", b"v"]]]]]),
    ("valkey-9.1", "SET a b IFEQ c", None),
    ("valkey-9.1", "HTTL h FIELDS 1 f", [-2]),
]


@pytest.mark.parametrize(("version", "request_", "answer"), KNOWN, ids=[f"{v}: {r}" for v, r, _ in KNOWN])
def test_what_the_version_has_is_answered(
    of_version: Callable[..., Any], version: str, request_: str, answer: bytes | list[list[bytes | list[list[Any]]]]
) -> None:
    client = of_version(version)
    client("XADD s 1-1 f v", "XGROUP CREATE s g 0")

    assert client(request_) == answer


def test_a_field_called_like_a_hidden_option_is_a_field(of_version: Callable[..., Any]) -> None:
    client = of_version("7.2")

    assert client("XADD s 1-1 KEEPREF IDMP", "XRANGE s - +") == [[b"1-1", [b"KEEPREF", b"IDMP"]]]


def test_hidden_commands_are_not_told_of(of_version: Callable[..., Any]) -> None:
    client = of_version("8.0")

    assert client("COMMAND INFO XDELEX XACK")[0] is None
    assert b"xnack" not in client("COMMAND LIST")
    assert b"xdelex" not in client("ACL CAT stream")
    assert client("COMMAND COUNT") == len(client("COMMAND"))
    assert client("COMMAND GETKEYS XDELEX s IDS 1 1-1").args == ("ERR Invalid command specified",)


def test_the_documentation_has_no_hidden_options(of_version: Callable[..., Any]) -> None:
    client = of_version("8.0")
    client("HELLO 3")

    told = client("COMMAND DOCS XADD")[b"xadd"]

    assert [argument[b"name"] for argument in told[b"arguments"]] == [
        b"key", b"nomkstream", b"trim", b"id-selector", b"data",
    ]  # fmt: skip
    assert [change[0] for change in told[b"history"]] == [b"6.2.0", b"7.0.0"]


def test_a_choice_keeps_its_known_words(of_version: Callable[..., Any]) -> None:
    client = of_version("8.2")
    client("HELLO 3")

    condition = client("COMMAND DOCS SET")[b"set"][b"arguments"][2]

    assert [word[b"token"] for word in condition[b"arguments"]] == [b"NX", b"XX"]


@pytest.mark.parametrize(
    ("version", "absent", "present"),
    [
        ("8.4", b"idmp-duration", b"entries-added"),
        ("valkey-9.1", b"iids-tracked", b"max-deleted-entry-id"),
    ],
)
def test_fields_that_came_later_are_left_out(
    of_version: Callable[..., Any], version: str, absent: bytes, present: bytes
) -> None:
    client = of_version(version)
    client("HELLO 3", "XADD s 1-1 f v", "XGROUP CREATE s g 0")

    assert absent not in client("XINFO STREAM s")
    assert present in client("XINFO STREAM s")
    assert absent not in client("XINFO STREAM s FULL")
    assert b"nacked-count" not in client("XINFO STREAM s FULL")[b"groups"][0]


def test_client_list_has_the_fields_of_its_version(of_version: Callable[..., Any]) -> None:
    assert b" watch=" not in of_version("7.2")("CLIENT LIST")
    assert b" watch=" in of_version("8.0")("CLIENT INFO")
    assert b" read-events=" not in of_version("8.6")("CLIENT LIST")


def test_acl_log_describes_clients_with_the_fields_of_its_version(of_version: Callable[..., Any]) -> None:
    client = of_version("8.6")
    client("AUTH nobody x")

    assert b" tot-cmds=" in client.raw("ACL LOG")
    assert b" read-events=" not in client.raw("ACL LOG")


def test_info_and_hello_name_the_version(of_version: Callable[..., Any]) -> None:
    client = of_version("8.2")
    client("HELLO 3")

    assert b"redis_version:8.2.0" in client("INFO server")
    assert client("HELLO")[b"version"] == b"8.2.0"
    assert b"Redis ver. 8.2.0" in client("LOLWUT")
    assert client("INFO hotkeys") == b""
    assert b"commands_per_parse_batch_avg" not in client("INFO stats")


def test_a_valkey_calls_itself_so_and_names_the_redis_that_it_equals(of_version: Callable[..., Any]) -> None:
    client = of_version("valkey-9.1")
    client("HELLO 3")

    told = client("INFO server")

    assert b"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n" in told
    assert client("HELLO")[b"server"] == b"valkey"
    assert client("HELLO")[b"version"] == b"9.1.2"


def test_the_newest_has_the_declared_rows_themselves(of_version: Callable[..., Any], engine: Engine) -> None:
    assert of_version("newest").engine.commands.rows[b"XADD"] is engine.commands.rows[b"XADD"]
    assert of_version("8.8").engine.commands.rows[b"XADD"] is not engine.commands.rows[b"XADD"]
    assert not of_version("8.12").engine.commands.rows[b"XADD"].hidden


def test_the_log_is_understood_whatever_is_hidden(of_version: Callable[..., Any]) -> None:
    client = of_version("7.2")
    client.session.privileged = True
    ctx = client.engine.server.context
    ctx.begin(client.session, 0)

    assert client.engine.replay(ctx, [[b"XADD", b"s", b"KEEPREF", b"5-0", b"f", b"v"]], 0) == (1, b"")
    assert client.engine.replay(ctx, [[b"XDELEX", b"s", b"IDS", b"1", b"5-0"]], 0) == (1, b"")


@pytest.mark.parametrize(
    ("version", "told", "number"),
    [("8.6", b"8.6.3", 0x80603), ("8.12", b"8.12.0", 0x80C00), ("7.2", b"7.2.0", 0x70200)],
)
def test_a_script_is_told_the_version(of_version: Callable[..., Any], version: str, told: bytes, number: int) -> None:
    pytest.importorskip("lupa")

    assert of_version(version)("EVAL 'return {redis.REDIS_VERSION, redis.REDIS_VERSION_NUM}' 0") == [told, number]


PAGE = Path(__file__).parents[2] / "docs/compatibility.md"
VERSIONS = ["7.2", "8.0", "8.2", "8.4", "8.6", "8.8", "8.10", "8.12"]


def known(rows: Iterable[Row]) -> set[str]:
    """The commands of rows and of their subcommands: CLUSTER SLOT-STATS."""
    return {one.name.replace("|", " ") for row in rows for one in (row, *row.subcommands.values())}


def hidden_options(rows: Iterable[Row]) -> set[str]:
    """The options that commands do not have; not the fields of replies, which have small letters."""
    return {word.decode() for row in rows for word in row.hidden if word.isupper()}


@pytest.mark.parametrize(("version", "newer"), [*pairwise(VERSIONS)])
def test_the_page_names_what_each_version_hides(of_version: Callable[..., Any], version: str, newer: str) -> None:
    rows, newer_rows = (list(of_version(one).engine.commands.rows.values()) for one in (version, newer))
    (line,) = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| `{version}` |")]
    named = re.findall(r"[A-Z][A-Z0-9*-]+", line.split(" | ")[2])

    hidden = (known(newer_rows) - known(rows)) | (hidden_options(rows) - hidden_options(newer_rows))
    assert [one for one in hidden if not any(fnmatch(word, name) for word in one.split() for name in named)] == []
