"""What shows the names and values of keys that a user may not read: what docs/security.md lists, and nothing else."""

import random
import re
from pathlib import Path
from typing import Final

import pytest

from penstock.engine.engine import Engine
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, settings_with
from tests.support.seeds import seeds
from tests.support.table_engine import APART
from tests.support.table_requests import PLAIN_WORDS, TableRequests, Vocabulary, rows_by_name

PAGE: Final = Path(__file__).parent.parent.parent / "docs/security.md"
HIDDEN: Final = (b"opsecret", b"hidden")  # in each name and value that the user may not read
SETUP: Final = (
    "SET topsecret:1 hidden", "XADD topsecret:2 1-0 hidden hidden", "XGROUP CREATE topsecret:2 hidden 0",
    "XREADGROUP GROUP hidden hidden STREAMS topsecret:2 >", "HSET topsecret:3 hidden hidden", "SET foo:1 x",
    "XADD foo:2 1-0 f v", "XGROUP CREATE foo:2 g 0", "PENSTOCK.POLICY foo:2 FORWARD topsecret:4 AFTER 100000000",
    "PENSTOCK.POLICY foo:2 GROUP g DEADLETTER topsecret:5", "RPUSH foo:3 a b", "HSET foo:4 f v", "SADD foo:5 m",
    "ZADD foo:6 1 m", "SUBSCRIBE hidden", "SSUBSCRIBE hidden", "CLIENT SETNAME hidden",
    "ACL SETUSER hidden on ~topsecret:* +get", "ACL SETUSER u on nopass +@all &* ~foo:*",
    "CONFIG SET slowlog-log-slower-than 0", "CONFIG SET notify-keyspace-events KEA",
    "CONFIG SET latency-monitor-threshold 1",
    "HOTKEYS START METRICS 2 CPU NET", "BLESS SET topsecret:1 NO-EVICT", "BLESS SET foo:1 NO-EVICT",
)  # fmt: skip
LIBRARY: Final = b"#!lua name=hidden\nredis.register_function('hidden', function() return 'topsecret:1' end)"
MEANWHILE: Final = ("SET topsecret:1 hidden", "MSET topsecret:1 hidden foo:1 y", "GET topsecret:1")
WORDS: Final = Vocabulary(
    {
        **PLAIN_WORDS.words,
        "key": ("foo:1", "foo:2", "foo:2", "foo:3", "foo:4", "foo:5", "foo:6", "foo:7"),
        "group": ("g",),
        "cursor": ("0",),
        "pattern": ("*", "foo*", "t*"),
        "string": ("a", "1", "", "*", "m", "f", "SLOWLOG"),
    }
)
SHOWING: Final = {  # of each command that the page lists, a request that shows something
    "ACL GETUSER": "ACL GETUSER hidden",
    "ACL LIST": "ACL LIST",
    "ACL LOG": "ACL LOG",
    "ACL USERS": "ACL USERS",
    "BLESS SCAN": "BLESS SCAN 0 NO-EVICT",
    "CLIENT LIST": "CLIENT LIST",
    "CLUSTER GETKEYSINSLOT": "CLUSTER GETKEYSINSLOT 3042 5",
    "FUNCTION DUMP": "FUNCTION DUMP",
    "FUNCTION LIST": "FUNCTION LIST WITHCODE",
    "HOTKEYS GET": "HOTKEYS GET",
    "KEYS": "KEYS *",
    "MONITOR": "MONITOR",
    "PSUBSCRIBE": "PSUBSCRIBE __key*",
    "PUBSUB CHANNELS": "PUBSUB CHANNELS",
    "PUBSUB SHARDCHANNELS": "PUBSUB SHARDCHANNELS",
    "RANDOMKEY": "RANDOMKEY",
    "SCAN": "SCAN 0 COUNT 100",
    "SLOWLOG GET": "SLOWLOG GET",
    "SUBSCRIBE": "SUBSCRIBE __keyevent@0__:set",
    "XINFO GROUPS": "XINFO GROUPS foo:2",
    "XINFO STREAM": "XINFO STREAM foo:2",
}
SECTION: Final = PAGE.read_text().partition("\n## Names and values")[2].partition("\n## ")[0]
ADVICE: Final = SECTION.partition("give a user `")[2].partition("`")[0]  # rules that keep names secret
LISTED: Final = frozenset(
    name
    for line in SECTION.splitlines()
    if f"[tests/commands/{Path(__file__).name}]" in line
    for name in re.findall(r"`([A-Z ]+)`", line.split("|")[1])
)


class Watched:
    """An administrator's secrets, and one user with every command but rights to other keys alone."""

    def __init__(self, cluster: str = "no") -> None:
        settings = settings_with(enable_debug_command="yes", cluster_enabled=cluster)
        self.engine: Engine = make_engine(settings=settings)
        self.admin = Dialogue(self.engine)
        self.admin.session.resp = 3
        for line in SETUP:
            self.admin(line)
        self.admin.words(b"FUNCTION", b"LOAD", LIBRARY)
        refused = self.client()
        refused("GET topsecret:1")
        for line in MEANWHILE:
            self.admin(line)

    def client(self) -> Dialogue:
        client = Dialogue(self.engine)
        client.session.resp = 3
        client("AUTH u x")
        return client

    def shown(self, words: list[bytes]) -> bytes:
        """All that a new client gets for a request, and while the administrator changes and reads its keys."""
        client = self.client()
        self.engine.clients.outgoing.clear()
        answer = client.words(*words)
        for line in MEANWHILE:
            self.admin(line)
        self.engine.end_turn()
        pushed = b"".join([message for session, message in self.engine.clients.outgoing if session is client.session])
        self.engine.server.disconnect(client.session)
        return answer + pushed


def shows(text: bytes) -> bool:
    return any(mark in text for mark in HIDDEN)


@pytest.mark.parametrize("name", SHOWING)
def test_what_is_listed_shows_names_or_values(name: str) -> None:
    watched = Watched(cluster="yes" if name.startswith("CLUSTER") else "no")
    words = SHOWING[name].encode().split()

    assert shows(b"".join([watched.shown(words) for _ in range(20)]))


def test_the_page_lists_what_shows_something() -> None:
    assert sorted(SHOWING) == sorted(LISTED)


@pytest.mark.parametrize("name", sorted({name for name in SHOWING if not name.startswith("XINFO")}))
def test_a_user_with_the_rules_that_the_page_advises_sees_nothing(name: str) -> None:
    watched = Watched(cluster="yes" if name.startswith("CLUSTER") else "no")
    watched.admin(f"ACL SETUSER u resetchannels {ADVICE}")

    assert not shows(b"".join([watched.shown(SHOWING[name].encode().split()) for _ in range(20)]))


@pytest.mark.parametrize("seed", seeds(1, 9))
def test_no_other_command_shows_what_the_user_may_not_read(seed: int) -> None:
    """Of a third of the commands; three seeds have the same third."""
    requests = TableRequests(random.Random(seed), WORDS)
    reading = Watched()  # for all that changes nothing
    for name, row in list(rows_by_name().items())[seed % 3 :: 3]:
        if name.replace("|", " ") not in LISTED and name not in APART:
            watched = reading if "readonly" in row.flags else Watched()
            for words in [requests.valid(row) for _ in range(8)]:
                assert not shows(watched.shown(words)), words
