"""Passwords are shown neither to MONITOR nor in SLOWLOG, in whatever order they come."""

import itertools
from collections.abc import Iterator

import pytest

from penstock.commands import registry
from penstock.engine.table.row import Row
from penstock.engine.telemetry.redaction import redacted
from tests.support.dialogue import Dialogue
from tests.support.reference_server import NoReference, reference_server
from tests.support.wire import Array, Bulk, Connection

REQUESTS = [  # as Redis 8.6.3 shows them
    "HELLO 3 SETNAME AUTH AUTH default secret", "HELLO 3 AUTH default secret", "HELLO 3 AUTH default secret SETNAME n",
    "HELLO 3 SETNAME n AUTH default secret", "HELLO 3 AUTH AUTH AUTH", "HELLO 3 AUTH SETNAME secret",
    "HELLO 3 AUTH default secret AUTH default secret2", "HELLO 3 SETNAME SETNAME AUTH default secret",
    "HELLO 3 setname auth auth default secret", "AUTH secret", "AUTH default secret", "auth secret",
    "CONFIG SET masterauth secret timeout 0", "CONFIG SET masteruser secret", "CONFIG SET MASTERAUTH secret",
    "CONFIG SET timeout 0 masterauth secret", "CONFIG SET timeout 0", "ACL SETUSER default on", "ACL GETUSER default",
    "ACL DELUSER bob", "ACL DRYRUN default get a", "PING secret",
    "MIGRATE h 1 nokey 0 1 AUTH secret", "MIGRATE h 1 nokey 0 1 copy auth2 bob secret replace",
    "MIGRATE h 1 nokey 0 x AUTH secret AUTH2 bob secret", "MIGRATE h 1 nokey 0 1 AUTH secret KEYS AUTH key",
    "MIGRATE h 1 nokey 0 1 AUTH",
]  # fmt: skip
REFUSED = [  # Redis shows the password in most of them
    "HELLO 4 AUTH default secret", "HELLO x AUTH default secret", "HELLO AUTH default secret", "AUTH a b secret",
    "HELLO 3 AUTH d s FOO AUTH e secret", "HELLO 3 FOO AUTH default secret",
    "HELLO 3 SETNAME AUTH secret AUTH d secret",
    "HELLO 3 AUTH secret", "CONFIG SET timeout requirepass secret", "CONFIG SET requirepass secret timeout",
    "CONFIG SET hz x requirepass secret", "ACL SETUSER default on nonsense >secret",
    "MIGRATE h 1 nokey 0 1 FOO AUTH secret", "MIGRATE h 1 nokey 0 1 AUTH2 secret",
    "MIGRATE h 1 nokey 0 1 x AUTH2 bob secret",
    "ACL DRYRUN default AUTH secret", "ACL DRYRUN default ACL DRYRUN default HELLO 3 AUTH default secret",
    "ACL DRYRUN default AUHT secret", "ACL DRYRUN default ACL SETUSSER bob >secret", "ACL DRYRUN nobody AUTH secret",
    "COMMAND GETKEYS AUTH secret", "command getkeysandflags migrate h 1 k 0 1 auth secret",
    "COMMAND GETKEYS COMMAND GETKEYSANDFLAGS ACL DRYRUN default config set requirepass secret",
]  # fmt: skip
ROWS = [row for top in registry.table().values() for row in (top, *top.subcommands.values())]
HIDING = [row for row in ROWS if row.hide is not None]
ASKING = [row for row in ROWS if row.asks_about]
HELLO = registry.table()[b"HELLO"]
WORDS = [b"SETNAME", b"AUTH", b"n", b"default", b"secret"]


def shown(dialogue: Dialogue, line: str) -> list[bytes]:
    """The request as SLOWLOG has it."""
    dialogue("CONFIG SET slowlog-log-slower-than 0")
    dialogue(line)
    return dialogue.engine.telemetry.slow_log.requests[0].words


@pytest.fixture(scope="module")
def theirs() -> Iterator[Connection]:
    try:
        with reference_server() as port, Connection("127.0.0.1", port) as client:
            client.ask("CONFIG", "SET", "slowlog-log-slower-than", "0")
            yield client
    except NoReference as absence:
        pytest.skip(str(absence))


@pytest.mark.parametrize("line", REQUESTS)
def test_a_request_is_shown_as_redis_shows_it(dialogue: Dialogue, theirs: Connection, line: str) -> None:
    theirs.ask(*line.split())
    slow = theirs.ask("SLOWLOG", "GET", "1")
    assert isinstance(slow, Array) and isinstance(slow.elements[0], Array)
    words = slow.elements[0].elements[3]

    assert Array(tuple(Bulk(word) for word in shown(dialogue, line))) == words


@pytest.mark.parametrize("line", REQUESTS + REFUSED)
def test_no_password_is_shown(dialogue: Dialogue, line: str) -> None:
    assert b"secret" not in b" ".join(shown(dialogue, line)) or line == "PING secret"


@pytest.mark.parametrize("name", ["2", "3"])
def test_whatever_the_order_of_hellos_words_the_password_behind_auth_is_hidden(name: str) -> None:
    for count in range(1, 6):
        for words in itertools.product(WORDS, repeat=count):
            request = [b"HELLO", name.encode(), *words, b"AUTH", b"default", b"PASSWORD"]
            shown = redacted(registry.COMMANDS, HELLO, request)
            assert b"PASSWORD" not in shown, request
            assert len(shown) == len(request)


def named(row: Row) -> list[bytes]:
    return row.name.encode().split(b"|")


@pytest.mark.parametrize("asking", ASKING, ids=lambda row: row.name)
@pytest.mark.parametrize("hiding", HIDING, ids=lambda row: row.name)
def test_a_request_that_is_asked_about_is_hidden_as_by_itself(asking: Row, hiding: Row) -> None:
    before = [*named(asking), b"default"][: asking.asks_about]
    request = [*named(hiding), *b"requirepass secret AUTH AUTH >secret AUTH secret".split()]

    by_itself = redacted(registry.COMMANDS, hiding, request)

    assert by_itself != request
    assert redacted(registry.COMMANDS, asking, before + request) == before + by_itself
    twice = redacted(registry.COMMANDS, asking, before + before + request)
    assert twice == before + before + by_itself


def test_what_asks_about_requests_is_known() -> None:
    assert {row.name for row in ASKING} == {"ACL|DRYRUN", "COMMAND|GETKEYS", "COMMAND|GETKEYSANDFLAGS"}
