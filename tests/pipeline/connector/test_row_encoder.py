"""Rows as XADD requests, and the sink's options; no Spark, no server."""

import string
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

import pyarrow as pa

from penstock.pipeline.connector.connection.client import parsed
from penstock.pipeline.connector.sink.resp_columns import SHORT
from penstock.pipeline.connector.sink.row_encoder import Encoder
from penstock.pipeline.connector.sink.sink_options import read_sink
from penstock.pipeline.errors import OptionError, PipelineError

MAP = pa.map_(pa.string(), pa.string())
BYTES = (
    st.binary(max_size=12)
    | st.sampled_from([b"\r\n", b"$3\r\nabc\r\n", b"*1\r\n"])
    | st.integers(SHORT - 1, SHORT + 1).map(lambda length: b"x" * length)
)
NAMES = st.text(string.ascii_letters, min_size=1, max_size=8)


def text_only(value: object) -> str | None:
    """A text names its case; for anything else pytest counts, since an array's repr has its address."""
    return value if isinstance(value, str) else None


def encoded(batch, **options):
    """The requests that become of a batch, as their words."""
    encoder = Encoder(read_sink({"stream": "s"} | options, False), batch.schema.names, batch.schema.types)
    rows = encoder.encode(batch)
    texts = encoder.requests(rows)
    whole = bytes(texts.between(0, rows.count))
    assert whole == b"".join(bytes(texts.between(at, at + 1)) for at in range(rows.count))
    return parsed(whole)


def words_of(row, names):
    return [word for name in names if row[name] is not None for word in (name.encode(), row[name])]


@settings(deadline=None)
@given(st.data())
def test_any_rows_come_out_as_their_fields(data):
    names = data.draw(st.lists(NAMES.filter(lambda name: name != "fields"), min_size=1, max_size=4, unique=True))
    rows = data.draw(st.lists(st.fixed_dictionaries({name: BYTES | st.none() for name in names}), max_size=8))
    rows = [row | {names[0]: row[names[0]] or b"one at least"} for row in rows]
    batch = pa.RecordBatch.from_pylist(rows, pa.schema([(name, pa.binary()) for name in names]))
    begin = data.draw(st.integers(0, len(rows)))

    assert encoded(batch.slice(begin)) == [[b"XADD", b"s", b"*", *words_of(row, names)] for row in rows[begin:]]


@settings(deadline=None)
@given(st.lists(st.lists(st.tuples(BYTES, BYTES | st.none()), max_size=4), max_size=8), st.data())
def test_any_map_comes_out_in_order_with_what_stands_beside_it(maps, data):
    kind = pa.map_(pa.binary(), pa.binary())
    batch = pa.record_batch({"n": list(range(len(maps))), "fields": pa.array(maps, kind)})
    begin = data.draw(st.integers(0, len(maps)))

    assert encoded(batch.slice(begin)) == [
        [b"XADD", b"s", b"*", b"n", b"%d" % at, *(word for pair in maps[at] if pair[1] is not None for word in pair)]
        for at in range(begin, len(maps))
    ]


def test_a_list_of_pairs_may_name_a_field_twice():
    pair = pa.struct([("name", pa.string()), ("value", pa.string())])
    pairs = [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]
    batch = pa.record_batch({"fields": pa.array([pairs], pa.list_(pair))})

    assert encoded(batch) == [[b"XADD", b"s", b"*", b"a", b"1", b"a", b"2"]]


def test_a_null_map_is_no_fields():
    batch = pa.record_batch({"n": [1, 2], "fields": pa.array([None, [("a", "b")]], MAP)})

    assert encoded(batch) == [[b"XADD", b"s", b"*", b"n", b"1"], [b"XADD", b"s", b"*", b"n", b"2", b"a", b"b"]]


def test_nulls_can_be_written_as_empty_texts():
    batch = pa.record_batch({"a": pa.array([None], pa.string()), "fields": pa.array([[("f", None)]], MAP)})

    assert encoded(batch, nulls="empty") == [[b"XADD", b"s", b"*", b"a", b"", b"f", b""]]


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (-7, pa.int32(), b"-7"),
        (0.1, pa.float64(), b"0.1"),
        (True, pa.bool_(), b"true"),
        (Decimal("1.50"), pa.decimal128(10, 2), b"1.50"),
        (date(2026, 11, 20), pa.date32(), b"2026-11-20"),
        (
            datetime(2026, 11, 20, 10, tzinfo=UTC),
            pa.timestamp("us", "America/New_York"),
            b"2026-11-20 10:00:00.000000Z",
        ),
        (datetime(2026, 11, 20, 10), pa.timestamp("us"), b"2026-11-20 10:00:00.000000"),
        ("zürich", pa.string(), "zürich".encode()),
        (b"\xff\r\n", pa.binary(), b"\xff\r\n"),
    ],
    ids=text_only,
)
def test_every_plain_type_has_a_text(value, kind, text):
    assert encoded(pa.record_batch({"f": pa.array([value], kind)})) == [[b"XADD", b"s", b"*", b"f", text]]


def test_columns_that_say_where_and_when_are_not_fields():
    batch = pa.record_batch(
        {"_stream": ["other"], "_id": ["1-1"], "_timestamp": [None], "_endpoint": ["a"], "f": ["v"]}
    )

    assert encoded(batch) == [[b"XADD", b"s", b"*", b"f", b"v"]]


def test_without_an_option_each_row_names_its_stream():
    batch = pa.record_batch({"_stream": ["a", "b{c}"], "f": ["1", "2"]})

    assert encoded(batch, stream="") == [[b"XADD", b"a", b"*", b"f", b"1"], [b"XADD", b"b{c}", b"*", b"f", b"2"]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"maxlen": "10"}, [b"MAXLEN", b"~", b"10"]),
        ({"maxlen": "10", "trim": "="}, [b"MAXLEN", b"=", b"10"]),
        ({"maxlen": "10", "limit": "5"}, [b"MAXLEN", b"~", b"10", b"LIMIT", b"5"]),
        ({"minid": "5-1"}, [b"MINID", b"~", b"5-1"]),
        ({"refs": "acked", "maxlen": "1"}, [b"ACKED", b"MAXLEN", b"~", b"1"]),
        ({"nomkstream": "true", "refs": "DELREF"}, [b"NOMKSTREAM", b"DELREF"]),
    ],
    ids=text_only,
)
def test_options_of_xadd_stand_in_its_order(options, words):
    assert encoded(pa.record_batch({"f": ["v"]}), **options) == [[b"XADD", b"s", *words, b"*", b"f", b"v"]]


def test_rows_may_bring_their_ids():
    batch = pa.record_batch({"_id": ["5-1"], "f": ["v"]})

    assert encoded(batch, ids="column") == [[b"XADD", b"s", b"5-1", b"f", b"v"]]


@pytest.mark.parametrize(
    ("columns", "options", "text"),
    [
        ({"f": ["v"]}, {"stream": ""}, "'stream', or a column '_stream'"),
        ({"_id": ["1-1"]}, {}, "no column to write"),
        ({"f": ["v"]}, {"ids": "column"}, "needs a column '_id'"),
        ({"f": ["v"]}, {"delivery": "idmp", "idempotencyColumn": "key"}, "names no column: 'key'"),
        ({"f": [{"a": 1}]}, {}, "cannot be written as struct"),
        ({"tags": [["a"]]}, {}, "cannot be written as list"),
        ({"other": pa.array([[("a", "b")]], MAP)}, {}, "only the column 'fields' may be a map"),
    ],
    ids=text_only,
)
def test_columns_that_cannot_be_written_are_refused_before_anything_is(columns, options, text):
    with pytest.raises(OptionError, match=text):
        encoded(pa.record_batch(columns), **options)


@pytest.mark.parametrize(
    ("columns", "options", "text"),
    [
        ({"_stream": pa.array([None], pa.string()), "f": ["v"]}, {"stream": ""}, "_stream must not be null"),
        ({"_id": pa.array([None], pa.string()), "f": ["v"]}, {"ids": "column"}, "_id must not be null"),
        ({"f": pa.array([None], pa.string())}, {}, "a row without any field"),
        ({"fields": pa.array([[]], MAP)}, {}, "a row without any field"),
    ],
    ids=text_only,
)
def test_rows_that_cannot_be_entries_are_refused(columns, options, text):
    with pytest.raises(PipelineError, match=text):
        encoded(pa.record_batch(columns), **options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"maxlen": "1", "minid": "1-1"}, "only one of the options 'maxlen' and 'minid'"),
        ({"trim": "="}, "need 'maxlen' or 'minid'"),
        ({"maxlen": "1", "trim": "=", "limit": "3"}, "'limit' needs 'trim' to be ~"),
        ({"maxlen": "many"}, "'maxlen' of the sink is to be a whole number"),
        ({"minid": "yesterday"}, "'minid' of the sink is to be an id"),
        ({"delivery": "twice"}, "exactly-once, at-least-once, idmp"),
        ({"operation": "delete"}, "add, ack, nack, deadletter"),
        ({"idempotencyColumn": "key"}, "needs 'delivery' to be idmp"),
        ({"ids": "column", "delivery": "idmp"}, "exclude each other"),
        ({"operation": "ack", "maxlen": "1"}, "'maxlen' is for the operation add"),
        ({"group": "g"}, "'group' is for the operation ack or nack or deadletter"),
        ({"operation": "ack", "nackMode": "FAIL"}, "'nackMode' is for the operation nack"),
        ({"deliverey": "idmp"}, "did you mean 'delivery'"),
        ({"pipeline": "0"}, "at least 1"),
        ({"table": "pending"}, "can only be entries"),
    ],
    ids=text_only,
)
def test_a_mistaken_option_is_told_by_name(options, text):
    with pytest.raises(OptionError, match=text):
        read_sink({"stream": "s"} | options, False)


def test_overwriting_is_refused():
    with pytest.raises(OptionError, match="only appended to"):
        read_sink({"stream": "s"}, True)
