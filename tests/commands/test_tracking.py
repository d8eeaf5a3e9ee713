"""Client-side caching: which clients are told of changed keys, beyond what the transcripts show."""

import random

import pytest

from penstock.clock import ManualClock
from penstock.commands.registry import new_engine
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, settings_with
from tests.support.seeds import seeds

KEYS = [b"a", b"ab", b"abc", b"b", b"bc", b"c"]


def tracker(client: Dialogue, options: str = "") -> Dialogue:
    """A client with RESP3 and tracking."""
    client.session.resp = 3
    assert client(f"CLIENT TRACKING ON {options}") == b"OK"
    return client


def invalidated(client: Dialogue) -> list[list[bytes] | None]:
    """What the client was told, message by message."""
    client.engine.end_turn()
    told = client.arrived()
    assert all(message[0] == b"invalidate" for message in told)
    return [message[1] for message in told]


@pytest.fixture
def reader(dialogue: Dialogue) -> Dialogue:
    return tracker(dialogue.another())


def test_a_key_that_expires_is_told_of_when_it_goes(dialogue: Dialogue, reader: Dialogue) -> None:
    dialogue("SET k v PX 10")
    reader("GET k")
    clock = dialogue.engine.clock
    assert isinstance(clock, ManualClock)
    clock.advance(11)
    assert invalidated(reader) == []

    dialogue.engine.tick()

    assert invalidated(reader) == [[b"k"]]


def test_a_key_found_expired_by_its_reader_is_told_of_after_the_reply_and_read_again(
    dialogue: Dialogue, reader: Dialogue
) -> None:
    dialogue("SET k v PX 10")
    reader("GET k")
    clock = dialogue.engine.clock
    assert isinstance(clock, ManualClock)
    clock.advance(11)

    assert reader("GET k") is None
    assert invalidated(reader) == [[b"k"]]
    dialogue("SET k w")
    assert invalidated(reader) == [[b"k"]]


def test_noloop_hides_what_expires_under_its_own_request_only(dialogue: Dialogue) -> None:
    quiet = tracker(dialogue.another(), "NOLOOP")
    dialogue("SET k v PX 10", "SET l v PX 10")
    quiet("GET k", "GET l")
    clock = dialogue.engine.clock
    assert isinstance(clock, ManualClock)
    clock.advance(11)

    quiet("GET k")
    assert invalidated(quiet) == []
    dialogue.engine.tick()
    assert invalidated(quiet) == [[b"l"]]


def test_an_evicted_key_is_told_of() -> None:
    engine = make_engine()
    writer, reader = Dialogue(engine), tracker(Dialogue(engine))
    writer("SET k " + "x" * 100_000)
    reader("GET k")

    writer("CONFIG SET maxmemory-policy allkeys-random", "CONFIG SET maxmemory 1", "SET l v")

    assert invalidated(reader) == [[b"k"]]


def test_a_client_that_left_is_not_told_and_its_keys_are_forgotten_as_they_change(dialogue: Dialogue) -> None:
    leaver = tracker(dialogue.another())
    leaver("GET a", "GET b")
    dialogue.engine.server.disconnect(leaver.session)
    dialogue("SET a 1")

    assert dialogue.engine.clients.outgoing == []
    assert len(dialogue.engine.clients.tracking.read) == 1
    dialogue("SET b 1", "SET c 1")
    assert not dialogue.engine.clients.follows_changes


def test_info_counts_clients_keys_readers_and_prefixes(dialogue: Dialogue, reader: Dialogue) -> None:
    other, third = tracker(dialogue.another()), tracker(dialogue.another(), "BCAST PREFIX a PREFIX b")
    reader("MGET a b")
    other("MGET b c")

    told = dialogue("INFO clients").decode() + dialogue("INFO stats").decode()

    assert "tracking_clients:3\r\n" in told
    assert "tracking_total_keys:3\r\ntracking_total_items:4\r\ntracking_total_prefixes:2\r\n" in told
    third("CLIENT TRACKING OFF")
    assert "tracking_total_prefixes:0\r\n" in dialogue("INFO stats").decode()


def test_client_list_shows_tracking_with_letters_and_the_redirection(dialogue: Dialogue, reader: Dialogue) -> None:
    tracker(dialogue, f"BCAST REDIRECT {reader.session.id}")
    dialogue.engine.server.disconnect(reader.session)
    dialogue("SET k v")
    dialogue.engine.end_turn()

    assert " flags=tRB db=0 " in dialogue("CLIENT INFO").decode()
    assert f" redir={reader.session.id} " in dialogue("CLIENT INFO").decode()


def test_prefixes_that_overlap_among_each_other_are_refused_and_nothing_changes(dialogue: Dialogue) -> None:
    refusal = dialogue("CLIENT TRACKING ON BCAST PREFIX y PREFIX xx PREFIX x")

    assert str(refusal) == (
        "ERR Prefix 'xx' overlaps with another provided prefix 'x'. Prefixes for a single client must not overlap."
    )
    assert dialogue("CLIENT GETREDIR") == -1


def test_with_replies_off_a_client_is_still_told(dialogue: Dialogue, reader: Dialogue) -> None:
    reader("GET k", "CLIENT REPLY OFF")

    assert (reader.raw("SET k 1"), invalidated(reader)) == (b"", [[b"k"]])
    assert (reader.raw("FLUSHALL"), invalidated(reader)) == (b"", [None])


def test_above_the_limit_keys_are_dropped_and_their_readers_told() -> None:
    engine = make_engine(settings=settings_with(tracking_table_max_keys="3"))
    reader = tracker(Dialogue(engine))
    for number in range(10):
        reader(f"GET k{number}")

    told = invalidated(reader)

    assert len(told) == 7
    assert len(engine.clients.tracking.read) == 3
    reader("CONFIG SET tracking-table-max-keys 1")
    engine.tick()
    assert len(invalidated(reader)) == 2


def test_data_are_loaded_again_without_a_word_about_single_keys() -> None:
    dialogue = Dialogue(make_engine(settings=settings_with(enable_debug_command="yes")))
    reader = tracker(dialogue.another(), "BCAST")
    dialogue("SET k v")
    invalidated(reader)

    dialogue("DEBUG RELOAD")

    assert invalidated(reader) == [None]


def test_a_script_that_takes_long_has_its_own_message_after_its_reply(dialogue: Dialogue, reader: Dialogue) -> None:
    reader("GET k")
    assert reader("EVAL \"for i = 1, 100 do redis.call('SET', 'k', i) end return 1\" 0") == 1
    assert invalidated(reader) == [[b"k"]]


class Cache:
    """A client that keeps what it reads until it is told of a change, and finds out whether it was right."""

    def __init__(self, client: Dialogue, chance: random.Random) -> None:
        self.client = client
        self.chance = chance
        self.held: dict[bytes, bytes | None] = {}

    def hear(self) -> None:
        for keys in invalidated(self.client):
            for key in list(self.held) if keys is None else keys:
                self.held.pop(key, None)

    def read(self, key: bytes) -> None:
        self.hear()
        if key not in self.held:
            self.held[key] = self.client(f"GET {key.decode()}")
            self.hear()


WRITES = [
    "SET {0} {1}", "APPEND {0} {1}", "DEL {0}", "UNLINK {0} {2}", "RENAME {0} {2}", "COPY {0} {2} REPLACE",
    "MSET {0} {1} {2} {1}", "GETDEL {0}", "SET {0} {1} PX 5", "EXPIRE {0} 0", "SETRANGE {0} 1 {1}", "PEXPIRE {0} 3",
    "FLUSHALL", "DEBUG RELOAD", "SORT {3} STORE {0}",
    "EVAL \"redis.call('SET', '{0}', '{1}') return redis.call('DEL', '{2}')\" 0",
]  # fmt: skip


@pytest.mark.parametrize("seed", seeds(2, 40))
def test_no_cache_ever_holds_what_a_key_is_not(seed: int) -> None:
    chance = random.Random(seed)
    clock = ManualClock(NOW_MS)
    engine = new_engine(settings_with(enable_debug_command="yes"), clock, chance)
    plain = Dialogue(engine)
    caches = [
        Cache(tracker(Dialogue(engine), options), chance)
        for options in ("", "NOLOOP", "OPTOUT", "BCAST", "BCAST NOLOOP PREFIX a PREFIX b PREFIX c")
    ]
    for _ in range(400):
        key, other, third = (chance.choice(KEYS) for _ in range(3))
        line = chance.choice(WRITES).format(key.decode(), chance.randrange(100), other.decode(), third.decode())
        author = chance.choice([*caches, None])
        client = plain if author is None else author.client
        for asked in ["MULTI", line, "EXEC"] if chance.random() < 0.2 else [line]:
            client.raw(asked)
        if author is not None:  # what it changes itself it knows
            author.hear()
            author.held.clear()
        if chance.random() < 0.2:
            clock.advance(chance.randrange(4))
            engine.tick()
        for cache in caches:
            cache.read(chance.choice(KEYS))
        engine.clients.tracking.check()
        for cache in caches:
            cache.hear()
            for key, value in cache.held.items():
                assert value == plain(f"GET {key.decode()}"), (line, key)
