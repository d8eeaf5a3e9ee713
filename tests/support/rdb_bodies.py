"""Bodies of DUMP payloads, made part by part, so that a test can say what no writer of ours would."""

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from penstock.storage.rdb import crc64, listpack
from penstock.storage.rdb.rdb_format import STREAM, STREAM_3
from penstock.storage.rdb.stream_reader import DELETED, SAME_FIELDS
from penstock.storage.rdb.string_writer import length

Id: TypeAlias = tuple[int, int]
PendingEntry: TypeAlias = tuple[Id, int, int]  # id, delivered at unix ms, count of deliveries

PAYLOAD_VERSION: Final = 11  # the newest that Redis 8.6 and Valkey 9.1 both take
TIME_MS: Final = 1_795_319_336_717
FAR_MS: Final = 4_102_444_800_000  # 2100
NO_PRODUCERS: Final = length(100) + length(100) + bytes(3)  # IDMP of 100 s and 100 ids, none there, none counted


def payload(body: bytes, version: int = PAYLOAD_VERSION) -> bytes:
    """With a footer that has a right checksum: Valkey does not take one of zeros."""
    body += version.to_bytes(2, "little")
    return body + crc64.footer(crc64.checksum(body))


def blob(text: bytes) -> bytes:
    return length(len(text)) + text


def id_bytes(entry_id: Id) -> bytes:
    return entry_id[0].to_bytes(8, "big") + entry_id[1].to_bytes(8, "big")


def id_lengths(entry_id: Id) -> bytes:
    return length(entry_id[0]) + length(entry_id[1])


def entry(seq_more: int, value: bytes = b"v", flags: int = SAME_FIELDS, ms_more: int = 0) -> list[bytes | int]:
    """An entry's elements, of a node with one field in its master."""
    return [flags, ms_more, seq_more, value, 4]


def node(
    entries: Sequence[list[bytes | int]], live: int | None = None, deleted: int | None = None, fields: int = 1
) -> bytes:
    """A node's listpack. Its counts are those of its entries, unless others are given."""
    dead = sum(isinstance(one[0], int) and one[0] & DELETED for one in entries)
    head: list[bytes | int] = [len(entries) - dead if live is None else live, dead if deleted is None else deleted]
    head += [fields, *[b"f"] * fields, 0]
    return listpack.packed([*head, *[element for one in entries for element in one]])


def stream(
    nodes: Sequence[tuple[Id, bytes]] = (((1, 1), node([entry(0), entry(1), entry(2)])),),
    entries: int = 3,
    last: Id = (1, 3),
    first: Id = (1, 1),
    max_deleted: Id = (0, 0),
    added: int = 3,
    groups: Iterable[bytes] = (),
    kind: int = STREAM_3,
    behind: bytes = b"",
) -> bytes:
    """A stream's body; as given, of entries 1-1, 1-2 and 1-3. `behind`: what types above STREAM_3 have at the end."""
    groups = list(groups)
    since_7 = b"" if kind == STREAM else id_lengths(first) + id_lengths(max_deleted) + length(added)
    return b"".join([
        bytes((kind,)), length(len(nodes)), *[blob(id_bytes(first_id)) + blob(made) for first_id, made in nodes],
        length(entries), id_lengths(last), since_7, length(len(groups)), *groups, behind,
    ])  # fmt: skip


def group(
    pending: Sequence[PendingEntry] = (),
    consumers: Sequence[bytes] = (),
    name: bytes = b"g",
    last: Id = (1, 3),
    entries_read: int = 3,
    behind: bytes = b"",
) -> bytes:
    held = [
        id_bytes(one) + when_ms.to_bytes(8, "little", signed=True) + length(count) for one, when_ms, count in pending
    ]
    return b"".join([
        blob(name), id_lengths(last), length(entries_read), length(len(held)), *held,
        length(len(consumers)), *consumers, behind,
    ])  # fmt: skip


def consumer(ids: Sequence[Id] = (), name: bytes = b"c", seen_ms: int = TIME_MS, active_ms: int = TIME_MS) -> bytes:
    times = seen_ms.to_bytes(8, "little", signed=True) + active_ms.to_bytes(8, "little", signed=True)
    return blob(name) + times + length(len(ids)) + b"".join([id_bytes(one) for one in ids])


def producers(duration_s: int, most: int, *made: bytes) -> bytes:
    """What a stream of Redis 8.6 has at its end: the settings of idempotent producers, the producers, two counts."""
    return length(duration_s) + length(most) + length(len(made)) + b"".join(made) + bytes(2)


def producer(name: bytes, *ids: bytes) -> bytes:
    return blob(name) + length(len(ids)) + b"".join([blob(one) + id_lengths((1, 1)) for one in ids])


# -- collections ------------------------------------------------------------------------------------------------------


def listpack_of(*elements: bytes | int, count: int | None = None, size: int | None = None) -> bytes:
    """A listpack; with another count or size in its header, where these are given."""
    made = bytearray(listpack.packed(list(elements)))
    made[:4] = (len(made) if size is None else size).to_bytes(4, "little")
    made[4:6] = (len(elements) if count is None else count).to_bytes(2, "little")
    return bytes(made)


def ziplist(*entries: bytes, count: int | None = None, size: int | None = None, last_at: int | None = None) -> bytes:
    """A ziplist of entries that are given without the length before them; with other numbers in its header."""
    body, before, at = b"", 0, 10
    for one in entries:
        at, before, body = 10 + len(body), len(one) + 1, body + bytes((before,)) + one
    head = (11 + len(body) if size is None else size).to_bytes(4, "little")
    head += (at if last_at is None else last_at).to_bytes(4, "little")
    return head + (len(entries) if count is None else count).to_bytes(2, "little") + body + b"\xff"


def text(letters: bytes) -> bytes:
    """An entry of a ziplist."""
    return bytes((len(letters),)) + letters


def intset(width: int, *numbers: int, count: int | None = None) -> bytes:
    head = width.to_bytes(4, "little") + (len(numbers) if count is None else count).to_bytes(4, "little")
    return head + b"".join([number.to_bytes(width, "little", signed=True) for number in numbers])


def hash_table(*fields: bytes) -> bytes:
    return b"\x04" + length(len(fields)) + b"".join([blob(field) + blob(b"v") for field in fields])


def timed(*triples: bytes | int, earliest_ms: int = 1) -> bytes:
    """A small hash of Redis 7.4: field, value and time of expiry in turn."""
    return b"\x19" + earliest_ms.to_bytes(8, "little") + blob(listpack_of(*triples))


def timed_table(earliest_ms: int, distance: int) -> bytes:
    """A large hash of Redis 7.4, of one field."""
    return b"\x18" + earliest_ms.to_bytes(8, "little", signed=True) + length(1) + length(distance) + b"\x01a\x01b"
