"""DUMP's payloads: bytes that real servers answered, and bytes that no server should take."""

import pytest

from penstock.commands.keys import digests
from penstock.storage.rdb import crc64, lzf
from tests.storage.rdb_golden import OF_REDIS, OLD, ONLY_READ, REFUSED_BODIES, REFUSED_STREAMS, STREAM, unspaced
from tests.support.dialogue import Dialogue
from tests.support.engines import value_of

NO_CHECKSUM = bytes(8)
READ = OF_REDIS | ONLY_READ
BAD = b"-ERR Bad data format\r\n"


def restored(dialogue: Dialogue, payload: bytes) -> bytes:
    return dialogue.words(b"RESTORE", b"r", b"0", payload)


def made(dialogue: Dialogue, lines: str) -> None:
    dialogue(*lines.split("|"))


def digest(dialogue: Dialogue, key: str) -> object:
    return digests.of_value(dialogue.engine.keyspace.databases[0].values[key.encode()])


@pytest.mark.parametrize("name", READ)
def test_what_a_server_dumped_is_restored(dialogue: Dialogue, name: str) -> None:
    lines, payload = READ[name]
    made(dialogue, lines)

    assert restored(dialogue, unspaced(payload)) == b"+OK\r\n"

    assert digest(dialogue, "r") == digest(dialogue, "k")


@pytest.mark.parametrize("name", OF_REDIS)
def test_what_is_dumped_for_redis_86_is_what_redis_86_dumps(dialogue: Dialogue, name: str) -> None:
    lines, payload = OF_REDIS[name]
    dialogue("CONFIG SET rdb-compat-version 8.6")
    made(dialogue, lines)

    assert dialogue("DUMP k") == unspaced(payload)


@pytest.mark.parametrize("name", OLD)
def test_what_older_servers_dumped_is_restored(dialogue: Dialogue, name: str) -> None:
    lines, payload = OLD[name]
    made(dialogue, lines)

    assert restored(dialogue, unspaced(payload) + NO_CHECKSUM) == b"+OK\r\n"

    assert digest(dialogue, "r") == digest(dialogue, "k")


def test_a_stream_is_restored_with_groups_deleted_pending_entries_and_times(dialogue: Dialogue) -> None:
    assert restored(dialogue, bytes.fromhex(STREAM)) == b"+OK\r\n"

    assert dialogue("XRANGE r - +") == [
        [b"1-1", [b"a", b"1", b"b", b"hello"]],
        [b"2-0", [b"other", b"1"]],
        [b"3-0", [b"a", b"9", b"b", b"y"]],
    ]
    full = dialogue("XINFO STREAM r FULL")
    group = dict(zip(full[-1][0][::2], full[-1][0][1::2], strict=True))
    assert group[b"last-delivered-id"] == b"1-2"
    assert group[b"entries-read"] == 2
    assert group[b"pending"] == [[b"1-1", b"c1", 1795319336717, 1], [b"1-2", b"c1", 1795319336717, 1]]
    assert dialogue("XINFO CONSUMERS r g")[1][-1] == -1
    value_of(dialogue.engine, b"r").check()


def test_entries_delivered_in_one_millisecond_are_claimed_in_the_order_of_their_ids_after_a_restore(
    dialogue: Dialogue,
) -> None:
    """RDB does not have the order in which they were delivered. (8.6.3 answers the same before and after.)"""
    made(dialogue, "XADD k 1-0 f v|XADD k 2-0 f v|XADD k 3-0 f v|XADD k 4-0 f v|XGROUP CREATE k g 0")
    made(dialogue, "XREADGROUP GROUP g a STREAMS k >|XCLAIM k g b 0 3-0 TIME 50|XCLAIM k g b 0 1-0 TIME 50")
    made(dialogue, "XCLAIM k g b 0 4-0 TIME 40|XCLAIM k g b 0 2-0 TIME 40")

    assert restored(dialogue, dialogue("DUMP k")) == b"+OK\r\n"

    claims = [dialogue(f"XREADGROUP GROUP g c CLAIM 0 STREAMS {key} >") for key in ("k", "r")]
    assert [[entry[0] for entry in claim[0][1]] for claim in claims] == [
        [b"4-0", b"2-0", b"3-0", b"1-0"],
        [b"2-0", b"4-0", b"1-0", b"3-0"],
    ]


def test_a_stream_is_dumped_as_redis_86_does_but_for_the_deleted_entry(dialogue: Dialogue) -> None:
    dialogue("CONFIG SET rdb-compat-version 8.6")
    restored(dialogue, bytes.fromhex(STREAM))

    payload = dialogue("DUMP r")

    assert dialogue.words(b"RESTORE", b"s", b"0", payload) == b"+OK\r\n"
    assert dialogue("DUMP s") == payload
    assert dialogue("XINFO STREAM s FULL") == dialogue("XINFO STREAM r FULL")
    behind_nodes = bytes.fromhex("ff0303000101010204")
    assert payload.partition(behind_nodes)[2][:-8] == bytes.fromhex(STREAM).partition(behind_nodes)[2][:-8]


def test_idempotent_producers_are_restored_and_dumped(dialogue: Dialogue) -> None:
    body = bytes.fromhex(STREAM)[:-17] + unspaced("4064 4064 01 027031 01 026931 81000001a2015f0f0d 00 01 00 0d00")

    assert restored(dialogue, body + NO_CHECKSUM) == b"+OK\r\n"

    assert dialogue("XADD r IDMP p1 i1 * z 1") == b"1795319336717-0"
    dialogue("CONFIG SET rdb-compat-version 7.2")
    assert dialogue("DUMP r")[-10:-8] == b"\x0d\x00"  # what only 8.6 knows is written for it


@pytest.mark.parametrize("body", REFUSED_BODIES.values(), ids=REFUSED_BODIES)
def test_a_damaged_body_is_refused_and_changes_nothing(dialogue: Dialogue, body: str) -> None:
    dialogue("SET r before")

    answer = dialogue.words(b"RESTORE", b"r", b"0", unspaced(body) + b"\x0d\x00" + NO_CHECKSUM, b"REPLACE")

    assert answer == BAD
    assert dialogue("GET r") == b"before"


@pytest.mark.parametrize("name", REFUSED_STREAMS)
def test_a_damaged_stream_is_refused(dialogue: Dialogue, name: str) -> None:
    old, new = REFUSED_STREAMS[name]
    assert STREAM.count(old) == 1

    answer = restored(dialogue, bytes.fromhex(STREAM.replace(old, new))[:-8] + NO_CHECKSUM)

    assert answer == BAD


@pytest.mark.parametrize("version", [18, 79, 81, 65535])
def test_a_payload_of_a_later_version_is_refused(dialogue: Dialogue, version: int) -> None:
    body = b"\x00\xc0\x05" + version.to_bytes(2, "little")

    answer = restored(dialogue, body + crc64.footer(crc64.checksum(body)))

    assert answer == b"-ERR DUMP payload version or checksum are wrong\r\n"


@pytest.mark.parametrize(
    "text", [b"", b"a" * 100, b"abc" * 50, bytes(range(256)) * 3, b"ab" * 9000, b"xyz" + b"q" * 299]
)
def test_what_was_compressed_is_expanded_again(text: bytes) -> None:
    packed = lzf.compressed(text)

    assert packed is None or lzf.expanded(packed, len(text)) == text
    assert packed is None or len(packed) + 5 <= len(text)
