"""What a value becomes under the schema's types."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pyarrow
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.pipeline.connector.source.entry_columns import Columns, Origin
from penstock.pipeline.connector.source.entry_pages import from_lists
from penstock.pipeline.connector.values import text_values
from penstock.pipeline.errors import OptionError, PipelineError
from tests.pipeline.driving import schema

ORDER = [b"1795214535211-3", [b"sku", b"a1", b"qty", b"7"]]


def columns(ddl: str, *entries: Any, fail_fast: bool = False, replace: bool = False) -> list[dict[str, Any]]:
    arrow = to_arrow_schema(schema(ddl), timezone="UTC")
    page = from_lists([list(entries)])
    batch = Columns(arrow, fail_fast, replace).batch(page, Origin("main", (b"orders",)))
    batch.validate(full=True)
    assert batch.schema.equals(arrow)
    return batch.to_pylist()


def values(kind: str, *words: bytes, **how: bool) -> list[Any]:
    entries = [[b"%d-0" % number, [b"v", word]] for number, word in enumerate(words, 1)]
    return [row["v"] for row in columns(f"v {kind}", *entries, **how)]


def test_the_metadata_of_an_entry() -> None:
    ddl = "_stream string, _endpoint string, _id string, _ms bigint, _seq bigint, _timestamp timestamp"

    assert columns(ddl + ", _deliveries bigint", ORDER) == [
        {
            "_stream": "orders",
            "_endpoint": "main",
            "_id": "1795214535211-3",
            "_ms": 1795214535211,
            "_seq": 3,
            "_timestamp": datetime(2026, 11, 20, 22, 42, 15, 211000, UTC),
            "_deliveries": None,
        }
    ]


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("map<string,string>", [("sku", "a1"), ("qty", "7")]),
        ("map<string,binary>", [("sku", b"a1"), ("qty", b"7")]),
        ("map<binary,binary>", [(b"sku", b"a1"), (b"qty", b"7")]),
        (
            "array<struct<name:string,value:binary>>",
            [{"name": "sku", "value": b"a1"}, {"name": "qty", "value": b"7"}],
        ),
    ],
)
def test_all_fields_in_one_column(kind: str, fields: Any) -> None:
    assert columns(f"fields {kind}", ORDER) == [{"fields": fields}]


def test_a_named_column_is_the_field_of_that_name_under_its_type() -> None:
    assert columns("sku string, qty int, price double", ORDER) == [{"sku": "a1", "qty": 7, "price": None}]


def test_fields_in_another_order_or_missing_are_found_all_the_same() -> None:
    rows = columns(
        "sku string, qty int",
        ORDER,
        [b"1795214535211-4", [b"qty", b"8", b"sku", b"b2"]],
        [b"1795214535211-5", []],
        [b"1795214535211-6", [b"x", b"y", b"z", b"z", b"qty", b"9"]],
    )

    assert [tuple(row.values()) for row in rows] == [("a1", 7), ("b2", 8), (None, None), (None, 9)]


def test_numbers_of_ids_that_no_bigint_holds_are_null() -> None:
    largest, beyond = 2**63 - 1, 2**63
    places = [(largest, largest), (largest, beyond), (beyond, largest), (2**64 - 1, 2**64 - 1)]
    rows = columns("_ms bigint, _seq bigint", *[[b"%d-%d" % place, []] for place in places])

    assert [tuple(row.values()) for row in rows] == [(largest, largest), (largest, None), (None, largest), (None, None)]


def test_of_two_fields_with_one_name_the_first_counts() -> None:
    twice = [b"1-0", [b"a", b"1", b"v", b"first", b"v", b"second"]]
    early = [b"2-0", [b"v", b"early", b"v", b"late", b"c", b"3"]]

    assert [row["v"] for row in columns("v string", twice, early)] == ["first", "early"]


@pytest.mark.parametrize(
    "others", [[], [[b"3-0", [b"v", b"alone"]]]], ids=["as many fields", "other numbers of fields"]
)
def test_a_map_has_a_name_once_with_its_first_value_and_a_list_has_all(others: list[Any]) -> None:
    entries = [[b"1-0", [b"v", b"early", b"v", b"late", b"c", b"3"]], [b"2-0", [b"a", b"1", b"v", b"2", b"c", b"3"]]]
    maps = [row["fields"] for row in columns("fields map<string,string>", *others, *entries)]
    lists = [row["fields"] for row in columns("fields array<struct<name:string,value:binary>>", *others, *entries)]

    assert maps[-2:] == [[("v", "early"), ("c", "3")], [("a", "1"), ("v", "2"), ("c", "3")]]
    assert [[pair["name"] for pair in row] for row in lists[-2:]] == [["v", "v", "c"], ["a", "v", "c"]]
    assert maps[:-2] == [[("v", "alone")] for _ in others]


def test_names_that_are_the_same_once_they_are_replaced_are_one_key() -> None:
    (row,) = columns("fields map<string,string>", [b"1-0", [b"\xff", b"1", b"\xfe", b"2"]])

    assert row["fields"] == [("\N{REPLACEMENT CHARACTER}", "1")]


@pytest.mark.parametrize(
    ("kind", "word", "value"),
    [
        ("int", b"-5", -5),
        ("int", b" 12 ", 12),
        ("int", b"1.5", None),
        ("int", b"2147483648", None),
        ("bigint", b"9223372036854775807", 2**63 - 1),
        ("double", b"1e3", 1000.0),
        ("boolean", b"true", True),
        ("boolean", b"0", False),
        ("boolean", b"perhaps", None),
        ("decimal(10,2)", b"12.34", Decimal("12.34")),
        ("date", b"2026-11-20", date(2026, 11, 20)),
        ("timestamp", b"2026-11-20T10:00:00Z", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        ("timestamp", b"2026-11-20T10:00:00+01:00", datetime(2026, 11, 20, 9, tzinfo=UTC)),
        ("timestamp", b"2026-11-20 10:00:00", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        ("timestamp_ntz", b"2026-11-20 10:00:00", datetime(2026, 11, 20, 10)),
        ("timestamp", b"yesterday", None),
        ("string", "é\r\n".encode(), "é\r\n"),
        ("binary", b"\xff\x00\r\n", b"\xff\x00\r\n"),
    ],
)
def test_a_text_under_a_type(kind: str, word: bytes, value: Any) -> None:
    assert values(kind, word) == [value]


def test_what_does_not_parse_is_null_and_its_neighbours_are_not() -> None:
    assert values("int", b"1", b"no", b"3") == [1, None, 3]


@pytest.mark.parametrize(
    ("ddl", "fields", "told"),
    [
        ("sku string, qty int", [b"sku", b"a", b"qty", b"x1"], "field 'qty', column 'qty': b'x1' is no int32"),
        (
            "sku string",
            [b"sku", b"\xff" * 100],
            "field 'sku', column 'sku': b'" + "\\xff" * 80 + "' is no string; declare",
        ),
        ("fields map<string,string>", [b"a", b"1", b"b", b"\xfe"], "field 'b', column 'fields': b'\\xfe' is no string"),
        ("fields map<string,binary>", [b"\xfe", b"1"], "column 'fields': b'\\xfe' is no string"),
    ],
    ids=["a number", "a text", "among all fields", "a name"],
)
def test_a_query_that_fails_fast_names_the_value_and_where_it_is(ddl: str, fields: list[bytes], told: str) -> None:
    good, bad = [b"1-0", [b"sku", b"a", b"qty", b"1"]], [b"2-7", fields]
    with pytest.raises(PipelineError) as caught:
        columns(ddl, good, bad, [b"3-0", fields], fail_fast=True)

    assert str(caught.value).startswith("main: stream 'orders', entry 2-7, field ")
    assert told in str(caught.value)
    assert str(caught.value).endswith("(mode=PERMISSIVE makes it null)")


def test_the_stream_of_a_value_that_does_not_fit_is_named_where_a_page_has_several() -> None:
    page = from_lists([[[b"1-0", [b"n", b"1"]]], [], [[b"1-0", [b"n", b"2"]], [b"2-0", [b"n", b"?"]]]])
    arrow = to_arrow_schema(schema("n int"), timezone="UTC")
    with pytest.raises(PipelineError, match=r"stream 'c', entry 2-0, field 'n'"):
        Columns(arrow, True, False).batch(page, Origin("main", (b"a", b"b", b"c")))


@pytest.mark.parametrize(
    ("ddl", "rows"),
    [
        (
            "sku string, qty int, _corrupt string",
            [
                ("a", 1, None),
                ("b", None, '{"qty": "x"}'),
                (None, None, '{"sku": "\\\\xff", "qty": "é"}'),
                (None, None, None),
            ],
        ),
        (
            "_corrupt binary, qty int",
            [(None, 1), (b'{"qty": "x"}', None), ('{"qty": "é"}'.encode(), None), (None, None)],
        ),
        (
            "fields map<string,string>, _corrupt string",
            [
                ([("sku", "a"), ("qty", "1")], None),
                ([("sku", "b"), ("qty", "x")], None),
                ([("sku", None), ("qty", "é")], '{"sku": "\\\\xff"}'),
                ([], None),
            ],
        ),
    ],
    ids=["columns", "as bytes", "all fields"],
)
def test_what_does_not_fit_is_null_and_in_the_column_corrupt(ddl: str, rows: list[Any]) -> None:
    fields = [[b"sku", b"a", b"qty", b"1"], [b"sku", b"b", b"qty", b"x"], [b"sku", b"\xff", b"qty", "é".encode()], []]
    entries = [[b"%d-0" % number, some] for number, some in enumerate(fields, 1)]

    assert [tuple(row.values()) for row in columns(ddl, *entries)] == rows


def test_text_that_is_not_utf8_is_null_or_replaced_and_ends_no_query_that_did_not_ask_for_it() -> None:
    assert values("string", b"ok", b"\xff") == ["ok", None]
    assert values("string", b"ok", b"\xff", replace=True) == ["ok", "\N{REPLACEMENT CHARACTER}"]
    assert values("int", b"7", b"\xff") == [7, None]


def test_a_name_that_is_not_utf8_is_replaced() -> None:
    (row,) = columns("fields map<string,string>, _corrupt string", [b"1-0", [b"\xffa", b"1"]])

    assert row == {"fields": [("\N{REPLACEMENT CHARACTER}a", "1")], "_corrupt": '{"\\\\xffa": "\\\\xffa"}'}


def test_ids_beyond_sparks_times_have_no_time() -> None:
    last = b"18446744073709551615-18446744073709551615"
    rows = columns("_timestamp timestamp, _ms decimal(20,0), _seq decimal(20,0)", [last, []], [b"5-1", []])

    assert rows[0] == {"_timestamp": None, "_ms": Decimal(2**64 - 1), "_seq": Decimal(2**64 - 1)}
    assert rows[1]["_seq"] == 1


def test_ids_of_different_lengths_are_read() -> None:
    rows = columns("_ms bigint, _seq bigint", [b"9-10", []], [b"10-9", []], [b"11-0", []])

    assert [tuple(row.values()) for row in rows] == [(9, 10), (10, 9), (11, 0)]


@pytest.mark.parametrize(
    "ddl", ["_id bigint", "_timestamp string", "fields map<string,bigint>", "x map<string,string>", "_stream double"]
)
def test_a_column_that_cannot_be_had_is_refused_before_anything_is_read(ddl: str) -> None:
    with pytest.raises(OptionError):
        columns(ddl)


WORDS = (
    b"7",
    b" 7 ",
    b"-7",
    b"+7",
    b"07",
    b"0x1F",
    b"1e3",
    b"1.5",
    b".5",
    b"5.",
    b"nan",
    b"inf",
    b"-Infinity",
    b"",
    b" ",
    b"x",
    b"99999999999999999999",
    b"128",
    b"true",
    b"1",
    b"False",
    b"2026-11-22",
    b"2026-11-22 10:00",
    b"2026-11-22T10:00:00Z",
    b"2026-11-22T10:00:00.5+02:00",
    b"2026-11-22T10:00:00+0200",
    b"20261122T100000",
    b"2026-13-01",
    b"10:00",
)


@pytest.mark.parametrize(
    "kind",
    [
        pyarrow.int64(),
        pyarrow.int8(),
        pyarrow.float64(),
        pyarrow.bool_(),
        pyarrow.decimal128(10, 2),
        pyarrow.date32(),
        pyarrow.timestamp("us"),
        pyarrow.timestamp("us", "UTC"),
    ],
    ids=str,
)
def test_values_converted_together_are_those_converted_one_by_one(kind: Any) -> None:
    words = [word.decode() for word in WORDS] * 9

    together = text_values.lenient(pyarrow.array([*words, None], pyarrow.string()), kind)

    one_by_one = pyarrow.array([*(text_values.value_of(word, kind) for word in words), None], kind)
    assert together.equals(one_by_one) or str(together) == str(one_by_one)  # not a number is not equal to itself
