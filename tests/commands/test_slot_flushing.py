"""CLUSTER FLUSHSLOT and the migrations of slots that a Valkey has (compat-version valkey-9.1), beside a naive model.

`python -m` this: so many random histories (python -m tests.commands.test_slot_flushing 0 500).
"""

import random
from collections.abc import Iterator
from typing import Final

import pytest

from penstock.clock import ManualClock
from penstock.engine.cluster.hash_slots import slot_of
from penstock.protocol.reply import bulks
from tests.commands.test_valkey_dialect import shown
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import loaded_engine, make_engine, settings_with
from tests.support.keyspace_picture import KEPT, keyspace
from tests.support.log import UnitLog
from tests.support.reference_server import NoReference, reference_binary, reference_cluster
from tests.support.seeds import run_seeds, seeds
from tests.support.shell_words import split
from tests.support.wire import Connection, parse

SLOT: Final = 15891  # of {t}
WRONG_SLOT: Final = "-ERR Invalid or out of range slot"
DIALOGUE: Final = [
    ("CLUSTER FLUSHSLOT", "-ERR wrong number of arguments for 'cluster|flushslot' command"),
    ("CLUSTER FLUSHSLOT x", WRONG_SLOT),
    ("CLUSTER FLUSHSLOT 16384 FOO", WRONG_SLOT),
    ("CLUSTER FLUSHSLOT -1", WRONG_SLOT),
    ("CLUSTER FLUSHSLOT 1 FOO", "-ERR syntax error"),
    ("CLUSTER FLUSHSLOT 1 SYNC ASYNC",
     "-ERR unknown subcommand or wrong number of arguments for 'FLUSHSLOT'. Try CLUSTER HELP."),
    ("MSET {t}a 1 {t}b 2", "+OK"),
    ("SET {u}a 1", "+OK"),
    ("WATCH {u}a", "+OK"),
    ("CLUSTER FLUSHSLOT 15891", "+OK"),
    ("MULTI", "+OK"),
    ("EXISTS {t}a {t}b", "+QUEUED"),
    ("SET {t}a 1", "+QUEUED"),
    ("CLUSTER FLUSHSLOT 15891 async", "+QUEUED"),
    ("DBSIZE", "+QUEUED"),
    ("EXEC", "*4 :0 +OK +OK :1"),
    ("SET {t}a 1", "+OK"),
    ("WATCH {t}a", "+OK"),
    ("CLUSTER FLUSHSLOT 15891 Sync", "+OK"),
    ("MULTI", "+OK"),
    ("EXEC", "NullArray()"),
    ("SET {t}a 1", "+OK"),
    ("CONFIG SET cluster-require-full-coverage no", "+OK"),
    ("CLUSTER DELSLOTS 15891", "+OK"),
    ("CLUSTER FLUSHSLOT 15891", "+OK"),
    ("CLUSTER ADDSLOTS 15891", "+OK"),
    ("EXISTS {t}a", ":0"),
    ("CLUSTER GETSLOTMIGRATIONS", "*0"),
    ("CLUSTER CANCELSLOTMIGRATIONS", "-ERR No migrations ongoing"),
]  # fmt: skip
STEPS: Final = 150
KEYS: Final = ("{t}a", "{t}b", "{u}a", "{u}b", "c", "d", "")
REQUESTS: Final = (
    "SET {key} 1", "RPUSH {key} a b", "XADD {key} * f v", "DEL {key}", "EXISTS {key}", "DBSIZE", "SET {key} 1 PX 50",
    "CLUSTER COUNTKEYSINSLOT {slot}", "CLUSTER FLUSHSLOT {slot}", "CLUSTER FLUSHSLOT {slot} ASYNC", "FLUSHALL",
)  # fmt: skip


@pytest.fixture(scope="module")
def valkey_node() -> Iterator[int]:
    """The port of a real Valkey that is the only node of a cluster."""
    try:
        binary = reference_binary("valkey")
    except NoReference as absence:
        pytest.skip(str(absence))
    with reference_cluster(binary=binary) as port:
        yield port


def node(log: UnitLog | None = None, clock: ManualClock | None = None) -> Dialogue:
    settings = settings_with(compat_version="valkey-9.1", cluster_enabled="yes")
    return Dialogue(make_engine(clock or ManualClock(NOW_MS), log, settings))


def test_a_node_answers_so() -> None:
    client = node()

    assert [(line, shown(parse(client.raw(line))[0])) for line, _ in DIALOGUE] == DIALOGUE


def test_a_valkey_answers_so(valkey_node: int) -> None:
    with Connection("127.0.0.1", valkey_node) as client:
        assert [(line, shown(client.ask(*split(line)))) for line, _ in DIALOGUE] == DIALOGUE


def test_without_a_cluster_it_is_refused() -> None:
    client = Dialogue(make_engine(settings=settings_with(compat_version="valkey-9.1")))

    for line in ("FLUSHSLOT x", "GETSLOTMIGRATIONS", "CANCELSLOTMIGRATIONS", "MIGRATESLOTS SLOTSRANGE 1 2 NODE x"):
        assert str(client(f"CLUSTER {line}")) == "ERR This instance has cluster support disabled"


def test_slots_move_in_no_other_way_than_they_do_here() -> None:
    assert "CLUSTER SETSLOT" in str(node()("CLUSTER MIGRATESLOTS SLOTSRANGE 1 2 NODE x"))


def test_a_blocked_reader_of_the_slot_learns_that_its_group_has_gone() -> None:
    client = node()
    client("XGROUP CREATE {t}s g $ MKSTREAM")
    reader = client.another()
    reader("XREADGROUP GROUP g c BLOCK 0 STREAMS {t}s >")

    client(f"CLUSTER FLUSHSLOT {SLOT}")

    assert str(reader.arrived()[0]).startswith("NOGROUP")


def test_each_key_is_published_and_told_to_clients_that_track_it() -> None:
    client = node()
    client("CONFIG SET notify-keyspace-events Eg", "MSET {t}a 1 {t}b 2", "SET {u}a 1")
    listener = client.another()
    listener("HELLO 3", "CLIENT TRACKING ON", "GET {t}a", "GET {u}a", "SUBSCRIBE __keyevent@0__:del")

    client(f"CLUSTER FLUSHSLOT {SLOT}")
    client.engine.end_turn()

    assert sorted(map(str, listener.arrived())) == [
        "[b'invalidate', [b'{t}a']]", "[b'message', b'__keyevent@0__:del', b'{t}a']",
        "[b'message', b'__keyevent@0__:del', b'{t}b']",
    ]  # fmt: skip


@pytest.mark.parametrize("version", ["newest", "7.2", "valkey-9.1"])
def test_the_line_of_a_valkey_s_log_is_followed_with_every_version(version: str) -> None:
    lines = [bulks([word.encode() for word in line.split()]) for line in ("SET {t}a 1", f"CLUSTER FLUSHSLOT {SLOT}")]

    assert keyspace(loaded_engine(lines, settings=settings_with(compat_version=version))) == {}


# -- beside a naive model ---------------------------------------------------------------------------------------------


class Naive:
    """Keys and when they expire."""

    def __init__(self) -> None:
        self.keys: dict[str, int] = {}

    def reply(self, words: list[str], now_ms: int) -> object:
        """What the request is answered, None where that does not matter; and what it does."""
        self.keys = {key: until_ms for key, until_ms in self.keys.items() if until_ms >= now_ms}
        name, key = words[0], words[1] if len(words) > 1 else ""
        if name in ("SET", "RPUSH", "XADD"):
            if name == "SET" or key not in self.keys:
                self.keys[key] = now_ms + 50 if "PX" in words else 1 << 60
            return None
        if name == "DEL":
            return int(self.keys.pop(key, None) is not None)
        if name == "EXISTS":
            return int(key in self.keys)
        if name == "DBSIZE":
            return len(self.keys)
        if name == "FLUSHALL":
            self.keys.clear()
            return b"OK"
        there = [one for one in self.keys if slot_of(one.encode()) == int(words[2])]
        if words[1] == "COUNTKEYSINSLOT":
            return len(there)
        for one in there:
            del self.keys[one]
        return b"OK"


def check_history(seed: int) -> None:
    chance, log, clock, naive = random.Random(seed), UnitLog(), ManualClock(NOW_MS), Naive()
    client = node(log, clock)
    for _ in range(STEPS):
        key = chance.choice(KEYS)
        line = chance.choice(REQUESTS).format(key=key or '""', slot=slot_of(chance.choice(KEYS).encode()))
        if chance.random() < 0.1:
            clock.advance(chance.choice((10, 60)))
            client.engine.tick()
        ours, expected = client(line), naive.reply(split(line), clock.now_us() // 1000)
        if expected is not None and not str(ours).startswith("WRONGTYPE"):
            assert ours == expected, line
    loaded = loaded_engine(log.units, now_ms=clock.now_us() // 1000)
    assert keyspace(loaded, KEPT) == keyspace(client.engine, KEPT)


@pytest.mark.parametrize("seed", seeds(2, 60))
def test_slots_are_emptied_as_a_naive_model_says(seed: int) -> None:
    check_history(seed)


if __name__ == "__main__":
    run_seeds(check_history)
