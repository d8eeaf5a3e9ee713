"""Nodes of streams that are read and written at once come to what reading and writing each element comes to."""

import random
from array import array
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.engine.rdb import native_node_writer, native_nodes
from penstock.native.columns import WIDE
from penstock.protocol import entries
from penstock.storage.rdb import listpack
from penstock.storage.rdb.errors import BadRdb
from penstock.storage.rdb.rdb_format import STREAM
from penstock.storage.rdb.source import Source
from penstock.storage.rdb.stream_reader import DELETED, SAME_FIELDS, NodeHead, ReadNode, StreamDefaults, StreamReader
from penstock.storage.rdb.stream_writer import node_blob
from penstock.storage.rdb.string_writer import length
from penstock.storage.streams.entry_run import EntryRun
from penstock.storage.streams.ids import HALF
from penstock.storage.streams.listpack_nodes import StreamLimits
from tests.support.seeds import seeds

Entry = tuple[int, int, list[bytes]]

EDGES: Final = [0, 9, 10, 99, 100, 127, 128, 4095, 4096, 1 << 15, 1 << 23, 1 << 31, 10**18, (1 << 63) - 1, 1 << 63]
numbers = st.sampled_from([sign * (edge + more) for edge in EDGES for more in (-1, 0, 1) for sign in (1, -1)])
words = (
    st.binary(max_size=30)
    | numbers.map(b"%d".__mod__)
    | st.sampled_from([b"", b"-", b"-0", b"007", b"+1", b"\r\n", b"$1\r\n"])
    | st.sampled_from([7, 8, 9, 40, 41, 63, 64, 65, 125, 4095, 4096]).map(b"v".__mul__)
)
halves = st.sampled_from([0, 1, 5, 150, 5000, 1_795_300_000_000, HALF // 2, HALF - 5])


@st.composite
def nodes(draw: st.DrawFn) -> list[Entry]:
    """Entries of a node, ascending; most have the first one's fields."""
    ms, seq = draw(halves), draw(halves)
    names = draw(st.lists(words, min_size=1, max_size=4))
    found: list[Entry] = []
    for _ in range(draw(st.integers(1, 5))):
        fields = names if draw(st.integers(0, 3)) else draw(st.lists(words, min_size=1, max_size=4))
        found.append((ms, seq, [word for name in fields for word in (name, draw(words))]))
        if draw(st.booleans()) or seq == HALF:
            ms, seq = ms + draw(st.integers(1, 200)), draw(halves)
        else:
            seq += min(draw(st.integers(1, 200)), HALF - seq)
    return [entry for entry in found if entry[0] <= HALF]


def blob_of(node: list[Entry]) -> bytes:
    return node_blob(
        array(WIDE, [ms for ms, _, _ in node]),
        array(WIDE, [seq for _, seq, _ in node]),
        [texts for _, _, texts in node],
    )


def encoded(node: list[Entry]) -> bytes:
    return b"".join([entries.encode(b"%d-%d" % (ms, seq), texts) for ms, seq, texts in node])


MANY_FIELDS: Final = [b"%d" % number for number in range(80)]
ALIKE: Final[list[Entry]] = [(7, seq, MANY_FIELDS) for seq in (0, 9, 10, 127, 128, 5000)]


@given(nodes())
@example(ALIKE)
def test_a_node_is_written_as_its_elements_are(node: list[Entry]) -> None:
    ms_column = b"".join([ms.to_bytes(8, "little") for ms, _, _ in node])
    seq_column = b"".join([seq.to_bytes(8, "little") for _, seq, _ in node])

    blob = native_node_writer.write_node(encoded(node), ms_column, seq_column)

    assert blob in (None, blob_of(node))
    assert blob is not None or max(max(ms, seq) for ms, seq, _ in node) >= 1 << 63


def read(blob: bytes, first_id: tuple[int, int], read_node: ReadNode | None) -> "tuple[object, ...] | None":
    """What a reader has after one node; None where it refuses it."""
    key = first_id[0].to_bytes(8, "big") + first_id[1].to_bytes(8, "big")
    body = b"\x01\x10" + key + length(len(blob)) + blob
    reader = StreamReader(
        Source(body), STREAM, StreamDefaults(StreamLimits(0, 0), 1, 1, entries.encode_columns, read_node)
    )
    try:
        reader.read_node()
    except BadRdb:
        return None
    builder = reader._builder
    (node,) = builder.nodes
    count, last_id = len(builder), builder.run.last_id
    builder._take_run()
    segments = [(one.ms, one.seq, one.blob, one.offsets, one.size) for one in builder._segments]
    return count, last_id, segments, node.first, node.last, node.live, node.total, node.entries_size, node._names


@given(nodes())
@example(ALIKE)
def test_a_node_is_read_as_its_elements_are(node: list[Entry]) -> None:
    first_id = node[0][:2]
    blob = blob_of(node)

    wanted = read(blob, first_id, None)

    assert wanted is not None
    assert wanted[0] == len(node)
    assert read(blob, first_id, native_nodes.read_node) == wanted
    run = EntryRun()
    if native_nodes.read_node(blob, *first_id, run, NodeHead()):
        assert run.entries.getvalue() == encoded(node)
    else:
        assert max(max(ms, seq) for ms, seq, _ in node) >= 1 << 61


DELETED_IN_BETWEEN: Final = listpack.packed([
    2, 1, 2, b"a", b"b", 0,
    SAME_FIELDS, 0, 0, 1, b"hello", 5,
    SAME_FIELDS | DELETED, 0, 1, 2, b"x", 5,
    0, 1, -1, 1, b"other", 1, 6,
])  # fmt: skip


def test_deleted_entries_are_passed_over() -> None:
    run, head = EntryRun(), NodeHead()

    assert native_nodes.read_node(DELETED_IN_BETWEEN, 1, 1, run, head)

    assert run.entries.getvalue() == encoded([(1, 1, [b"a", b"1", b"b", b"hello"]), (2, 0, [b"other", b"1"])])
    assert (head.live, head.deleted, head.last_ms, head.last_seq, head.names) == (2, 1, 2, 0, [b"a", b"b"])
    assert read(DELETED_IN_BETWEEN, (1, 1), native_nodes.read_node) == read(DELETED_IN_BETWEEN, (1, 1), None)


@pytest.mark.parametrize("seed", seeds(2, 20))
def test_a_damaged_node_is_refused_by_both_and_leaves_the_run_as_it_was(seed: int) -> None:
    chance = random.Random(seed)
    whole = [DELETED_IN_BETWEEN, blob_of([(1, at, [b"f", b"v" * size]) for at, size in enumerate((1, 70, 5000, 3), 1)])]
    refused = 0
    for _ in range(3000):
        blob = bytearray(chance.choice(whole))
        for _ in range(chance.choice((1, 1, 2, 5))):
            place = chance.choice((chance.randrange(len(blob)), chance.randrange(30)))
            blob[place] = chance.choice((chance.randrange(256), blob[place] ^ 1 << chance.randrange(8), 0xF0, 0xF4))
        if chance.random() < 0.2:
            del blob[chance.randrange(len(blob)) :]
        run = EntryRun()
        run.add(1, 0, b"before")
        taken = native_nodes.read_node(bytes(blob), 1, 1, run, NodeHead())
        wanted = read(bytes(blob), (1, 1), None)
        if wanted is None:
            refused += 1
            assert not taken
        if not taken:
            assert (run.count, run.last_id, run.entries.getvalue(), len(run.ms)) == (1, 1 << 64, b"before", 8)
        assert read(bytes(blob), (1, 1), native_nodes.read_node) == wanted
    assert refused > 500


def test_distances_overflow_as_in_redis() -> None:
    """XADD s 0-1 a 1, then 1-18446744073709551615, 9223372036854775809-3 and 18446744073709551615-3."""
    ids = [(0, 1), (1, HALF), ((1 << 63) + 1, 3), (HALF, 3)]
    blob = blob_of([(ms, seq, [b"a", b"1"]) for ms, seq in ids])

    assert listpack.elements(blob)[11::5] == [1, -(1 << 63) + 1, -1]
    assert listpack.elements(blob)[12::5] == [-2, 2, 2]
    found = read(blob, ids[0], native_nodes.read_node)
    assert found is not None
    assert found[0] == 4
    assert found[4] == HALF << 64 | 3
