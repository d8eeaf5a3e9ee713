"""`penstock.policies` writes what the commands read, for clients of redis-py of both kinds."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import penstock
from penstock import policies
from penstock.commands.registry import table
from penstock.engine.table import command_syntax
from penstock.engine.table.argument_tree import Argument
from penstock.engine.table.client_compat import OWN_PREFIX

ROWS = {name.decode(): row for name, row in table().items()}
FUNCTIONS = {
    "PENSTOCK.POLICY": ("set_stream", "set_group", "reset"),
    "PENSTOCK.XNACK": ("nack",),
    "PENSTOCK.DELCONSUMER": ("delete_consumer",),
    "PENSTOCK.REDRIVE": ("redrive",),
    "PENSTOCK.PEEK": ("peek",),
    "PENSTOCK.XCOUNT": ("count_range",),
    "PENSTOCK.CLOCK": ("move_clock",),
}
OTHERWISE = {"PENSTOCK.POLICY": {"GROUP", "RESET"}}  # a name that comes first, and a function
NOW_S = 4_000_000_000
SECOND = timedelta(seconds=1)
CASES: list[tuple[Any, tuple[Any, ...], dict[str, Any], str]] = [
    (policies.set_stream, ("s",), {"maxlen": 0, "acked": True}, "POLICY s MAXLEN 0 ACKED"),
    (policies.set_stream, ("s",), {"maxage": SECOND, "keepref": True}, "POLICY s MAXAGE 1000 KEEPREF"),
    (
        policies.set_stream,
        ("s",),
        {"maxbytes": 9, "acked": True, "idlegroup": SECOND},
        "POLICY s MAXBYTES 9 ACKED IDLEGROUP 1000",
    ),
    (policies.set_stream, ("s",), {"maxlen": 9, "delref": True, "acked": False}, "POLICY s MAXLEN 9 DELREF"),
    (policies.set_stream, ("s",), {"maxlen": None}, "POLICY s MAXLEN NONE"),
    (
        policies.set_stream,
        ("s",),
        {"forward": "t", "at": b"\xff", "after": SECOND},
        "POLICY s FORWARD t AT \xff AFTER 1000",
    ),
    (
        policies.set_group,
        ("s", "g"),
        {"ackwait": 30_000, "backoff": (SECOND, 60_000), "jitter": 20, "maxdeliver": 5, "deadletter": "d", "reap": 9},
        "POLICY s GROUP g ACKWAIT 30000 BACKOFF 1000 60000 JITTER 20 MAXDELIVER 5 DEADLETTER d REAP 9",
    ),
    (
        policies.set_group,
        ("s", "g"),
        {"ackwait": SECOND, "key": "tenant", "parallel": 3, "fair": "YES", "priority": "level", "aging": SECOND},
        "POLICY s GROUP g ACKWAIT 1000 KEY tenant PARALLEL 3 FAIR YES PRIORITY level AGING 1000",
    ),
    (
        policies.set_group,
        ("s", "g"),
        {
            "ackwait": 1,
            "key": "k",
            "lookahead": 0,
            "inflight": 10,
            "rate": (100, SECOND * 60),
            "ondisconnect": "RELEASE",
        },
        "POLICY s GROUP g ACKWAIT 1 KEY k LOOKAHEAD 0 INFLIGHT 10 RATE 100 60000 ONDISCONNECT RELEASE",
    ),
    (
        policies.set_stream,
        ("s",),
        {"forward": "t", "every": "e", "missed": "ALL"},
        "POLICY s FORWARD t EVERY e MISSED ALL",
    ),
    (policies.set_group, ("s", "g"), {"expire": SECOND, "expireat": "b"}, "POLICY s GROUP g EXPIRE 1000 EXPIREAT b"),
    (policies.set_group, ("s", "g"), {"pause": "FOREVER"}, "POLICY s GROUP g PAUSE FOREVER"),
    (policies.set_group, ("s", "g"), {"pause": SECOND}, "POLICY s GROUP g PAUSE +1000"),
    (
        policies.set_group,
        ("s", "g"),
        {"pause": datetime(2100, 1, 1, tzinfo=UTC)},
        "POLICY s GROUP g PAUSE 4102444800000",
    ),
    (policies.set_group, ("s", "g"), {"pause": None, "rate": None}, "POLICY s GROUP g PAUSE NONE RATE NONE"),
    (policies.reset, ("s", "g"), {}, "POLICY s GROUP g RESET"),
    (policies.reset, ("s",), {}, "POLICY s RESET"),
    (
        policies.nack,
        ("s", "g", "FAIL", ["1-0", b"2-0"]),
        {"delay": SECOND, "retrycount": 0, "force": True},
        "XNACK s g FAIL IDS 2 1-0 2-0 DELAY 1000 RETRYCOUNT 0 FORCE",
    ),
    (policies.nack, ("s", "g", "SILENT", ["1-0"]), {"until": 5}, "XNACK s g SILENT IDS 1 1-0 UNTIL 5"),
    (policies.delete_consumer, ("s", "g", "c", "IFEMPTY"), {}, "DELCONSUMER s g c IFEMPTY"),
    (
        policies.redrive,
        ("d", "s"),
        {"group": "g", "reason": "deliv*", "count": 3},
        "REDRIVE d s GROUP g REASON deliv* COUNT 3",
    ),
    (policies.redrive, ("d", "s"), {"new": True}, "REDRIVE d s NEW"),
    (policies.peek, ("s", "g"), {"count": 2}, "PEEK s g COUNT 2"),
    (policies.peek, ("s", "g"), {}, "PEEK s g"),
    (policies.count_range, ("s", "-", "+"), {"count": 9, "every": 2}, "XCOUNT s - + COUNT 9 EVERY 2"),
    (policies.move_clock, ("ADVANCE", SECOND), {}, "CLOCK ADVANCE 1000"),
    (policies.move_clock, ("RUN",), {}, "CLOCK RUN"),
]
of_each_case = pytest.mark.parametrize(("function", "names", "options", "text"), CASES, ids=[case[3] for case in CASES])


def optional_tokens(arguments: list[Argument]) -> set[str]:
    """The tokens of what may be left out; of a choice without a token, those of its members."""
    found: set[str] = set()
    for argument in arguments:
        if argument.optional and argument.token is not None:
            found.add(argument.token)
        elif argument.optional:
            found |= {one.token for one in argument.arguments if one.token is not None}
    return found


def test_each_command_of_penstock_has_a_function() -> None:
    assert {name for name in ROWS if name.startswith(OWN_PREFIX)} == FUNCTIONS.keys()
    assert policies.OPTIONS.keys() <= {function for functions in FUNCTIONS.values() for function in functions}


@pytest.mark.parametrize("command", FUNCTIONS)
def test_each_option_that_a_command_declares_is_a_keyword_and_each_keyword_an_option(command: str) -> None:
    declared = optional_tokens(command_syntax.parse(ROWS[command].syntax)) - OTHERWISE.get(command, set())

    written = [name.upper() for function in FUNCTIONS[command] for name in policies.OPTIONS.get(function, ())]

    assert sorted(written) == sorted(declared)


def test_each_option_is_in_a_case() -> None:
    named = {(function.__name__, name) for function, _, options, _ in CASES for name in options}

    assert named == {(function, name) for function, names in policies.OPTIONS.items() for name in names}


@of_each_case
def test_the_words_are_those_that_are_typed(
    function: Any, names: tuple[Any, ...], options: dict[str, Any], text: str
) -> None:
    assert b" ".join(function.words(*names, **options)) == f"PENSTOCK.{text}".encode("latin-1")


@pytest.fixture
def servers() -> Iterator[list[penstock.Server]]:
    """Two servers with the same keys at the same moment."""
    with penstock.Server(penstock_test_clock=True) as one, penstock.Server(penstock_test_clock=True) as other:
        for server in (one, other):
            server.clock.stop()
            server.clock.travel(NOW_S)
            server.client().xadd("s", {"k": "v"}, "1-0")
            server.client().xgroup_create("s", "g", "0")
            server.client().xgroup_create("d", "g", "0", mkstream=True)
        yield [one, other]


def shown(server: penstock.Server) -> list[Any]:
    client = server.client()
    clock = server.clock.is_stopped and client.time()
    return [clock, client.xinfo_stream("s"), client.xinfo_groups("s"), client.xpending("s", "g")]


@of_each_case
async def test_a_server_takes_them_from_clients_of_both_kinds(
    servers: list[penstock.Server], function: Any, names: tuple[Any, ...], options: dict[str, Any], text: str
) -> None:
    one, other = servers

    reply = function(one.client(), *names, **options)

    async with other.async_client() as client:
        assert await function(client, *names, **options) == reply
    assert shown(one) == shown(other)


def test_a_pipeline_keeps_them(servers: list[penstock.Server]) -> None:
    pipe = servers[0].client().pipeline()

    policies.set_group(pipe, "s", "g", ackwait=SECOND)
    policies.peek(pipe, "s", "g")

    assert pipe.execute() == [b"OK", [[b"1-0", [b"k", b"v"]]]]


def test_a_keyword_that_is_no_option_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(TypeError, match=r"set_stream\(\) has no option 'ackwait'"):
        policies.set_stream.words("s", ackwait=1)  # type: ignore[call-arg]


def test_it_needs_no_redis_py() -> None:
    program = "import sys; from penstock import policies; print('redis' in sys.modules)"

    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    assert ran.stdout == "False\n"
