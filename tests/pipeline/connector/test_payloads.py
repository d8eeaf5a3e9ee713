"""The documents in one field of the entries as columns: JSON, Avro, Protobuf, and what cannot be decoded."""

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import redis
from pyspark.sql import types
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.pipeline.connector.source.entry_columns import Columns, Origin
from penstock.pipeline.connector.source.entry_pages import from_lists
from penstock.pipeline.connector.values import payloads
from penstock.pipeline.connector.values.payload_options import PayloadOptions
from penstock.pipeline.errors import OptionError, PipelineError
from tests.pipeline import driving
from tests.pipeline.driving import schema

INNER = types.StructType().add("name", types.StringType()).add("size", types.LongType())
NESTED = (
    types.StructType()
    .add("inner", INNER)
    .add("tags", types.ArrayType(types.StringType()))
    .add("counts", types.MapType(types.StringType(), types.LongType()))
)
CORRUPT = "a bigint, b string, _corrupt string"


def decoded(
    wanted: Any, *documents: bytes | None, form: str = "json", fail_fast: bool = False, **more: Any
) -> list[dict[str, Any]]:
    """Rows of entries that have a document each in the field `payload`; None: they have another field."""
    arrow = to_arrow_schema(schema(wanted) if isinstance(wanted, str) else wanted, timezone="UTC")
    fields = [[b"other", b"x"] if document is None else [b"payload", document] for document in documents]
    page = from_lists([[[b"%d-0" % number, some] for number, some in enumerate(fields, 1)]])
    options = PayloadOptions(form, "payload", more.get("schema", b""), more.get("message", ""))
    batch = Columns(arrow, fail_fast, False, options).batch(page, Origin("main", (b"s",)))
    batch.validate(full=True)
    return batch.to_pylist()


def test_members_of_a_document_are_columns_beside_the_entrys_own() -> None:
    assert decoded("_id string, a bigint, b string", b'{"a": 1, "b": "x", "c": [1]}', b'{"b": null}') == [
        {"_id": "1-0", "a": 1, "b": "x"},
        {"_id": "2-0", "a": None, "b": None},
    ]


def test_a_document_over_several_lines_is_one() -> None:
    assert decoded("a bigint", b'{\r\n "a":\n 1\n}\n', b'{"a": 2}') == [{"a": 1}, {"a": 2}]


def test_an_entry_without_the_field_has_nulls_and_is_not_corrupt() -> None:
    assert decoded(CORRUPT, b'{"a": 1}', None, b'{"a": 3}') == [
        {"a": 1, "b": None, "_corrupt": None},
        {"a": None, "b": None, "_corrupt": None},
        {"a": 3, "b": None, "_corrupt": None},
    ]


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b" ",
        b'{"a": 1',
        b'{"a": 1} {"a": 2}',
        b'[{"a": 1}]',
        b"1",
        b"null",
        b'{"a": "x", "b": "x"}',
        b'{"a": 1.5}',
        b'{"a": true}',
        b'{"a": [1]}',
        b'{"b": 1}',
        b'{"b": {"c": 1}}',
        b'{"b": "one\ntwo"}',
        b'{"a": 99999999999999999999}',
        b"[" * 100_000,
    ],
)
def test_what_does_not_fit_is_corrupt_and_its_neighbours_are_not(document: bytes) -> None:
    assert decoded(CORRUPT, b'{"a": 1}', document, b'{"b": "y"}') == [
        {"a": 1, "b": None, "_corrupt": None},
        {"a": None, "b": None, "_corrupt": document.decode()},
        {"a": None, "b": "y", "_corrupt": None},
    ]


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (b'{"a": 1', r"field 'payload', Expecting ',' delimiter: .*: b'\{\"a\": 1' \(mode"),
        (b'{"a": "x"}', r"field 'payload', column 'a': 'x' in a column of type int64: b'\{\"a\": \"x\"\}' \(mode"),
    ],
    ids=["no JSON", "a member of another type"],
)
def test_a_query_that_fails_fast_names_the_document_and_where_it_is(document: bytes, told: str) -> None:
    with pytest.raises(PipelineError, match=r"^main: stream 's', entry 2-0, " + told):
        decoded("a bigint", b'{"a": 1}', document, b"{", fail_fast=True)


def test_a_document_that_is_not_utf8_is_in_a_text_with_replacements() -> None:
    (row,) = decoded(CORRUPT, b"\xff{")

    assert row["_corrupt"] == "\N{REPLACEMENT CHARACTER}{"


def test_types_that_json_lacks_are_texts() -> None:
    ddl = "t timestamp, d date, m decimal(10,2), _corrupt string"
    good = b'{"t": "2026-11-22T10:00:00Z", "d": "2026-11-22", "m": "1.25"}'
    bad = b'{"d": "the 22nd"}'

    assert decoded(ddl, good, bad, b'{"m": 2.5}') == [
        {"t": datetime(2026, 11, 22, 10, tzinfo=UTC), "d": date(2026, 11, 22), "m": Decimal("1.25"), "_corrupt": None},
        {"t": None, "d": None, "m": None, "_corrupt": bad.decode()},
        {"t": None, "d": None, "m": Decimal("2.50"), "_corrupt": None},
    ]


def test_nested_members_are_structs_lists_and_maps() -> None:
    document = b'{"inner": {"name": "n", "size": 3, "more": 1}, "tags": ["x", null], "counts": {"k": 1}}'

    assert decoded(NESTED, document, b'{"tags": "x"}', b"{}") == [
        {"inner": {"name": "n", "size": 3}, "tags": ["x", None], "counts": [("k", 1)]},
        {"inner": None, "tags": None, "counts": None},
        {"inner": None, "tags": None, "counts": None},
    ]


@pytest.mark.parametrize("bad", [b"{", b'{"a": "x"}'], ids=["no JSON", "another type"])
def test_one_corrupt_document_among_thousands_is_found_in_few_readings(
    bad: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [b'{"a": %d}' % at for at in range(5000)]
    many[3210] = bad
    alone = []
    one = payloads.Payloads._decode_one
    monkeypatch.setattr(
        payloads.Payloads, "_decode_one", lambda self, text, *into: (alone.append(text), one(self, text, *into))
    )

    rows = decoded(CORRUPT, *many)

    assert [row["a"] for row in rows] == [None if at == 3210 else at for at in range(5000)]
    assert len(alone) <= 2 * payloads.ONE_BY_ONE


def test_many_corrupt_documents_are_left_out_together(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [b"{" if at % 7 == 3 else None if at % 7 == 5 else b'{"a": %d}' % at for at in range(5000)]
    monkeypatch.setattr(payloads.Payloads, "_decode_one", None)

    assert decoded(CORRUPT, *many) == [
        {"a": at if at % 7 not in (3, 5) else None, "b": None, "_corrupt": "{" if at % 7 == 3 else None}
        for at in range(5000)
    ]


# -- Avro -------------------------------------------------------------------------------------------------------------

AVRO_SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "a", "type": "long"},
            {"name": "b", "type": ["null", "string"]},
            {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
).encode()


def avro(**members: Any) -> bytes:
    fastavro = pytest.importorskip("fastavro")
    into = io.BytesIO()
    fastavro.schemaless_writer(into, fastavro.parse_schema(json.loads(AVRO_SCHEMA)), members)
    return into.getvalue()


def test_avro_is_decoded_by_its_schema() -> None:
    moment = datetime(2026, 11, 22, 10, tzinfo=UTC)
    good = avro(a=1, b="x", t=moment)

    found = decoded(
        "a bigint, t timestamp, _corrupt binary", good, good[:-1], good + b"x", form="avro", schema=AVRO_SCHEMA
    )

    assert found == [
        {"a": 1, "t": moment, "_corrupt": None},
        {"a": None, "t": None, "_corrupt": good[:-1]},
        {"a": None, "t": None, "_corrupt": good + b"x"},
    ]


def test_a_schema_that_is_none_is_refused() -> None:
    pytest.importorskip("fastavro")
    with pytest.raises(OptionError, match="is no Avro schema"):
        decoded("a bigint", b"", form="avro", schema=b'{"type": "order"}')


# -- Protobuf ---------------------------------------------------------------------------------------------------------


def descriptors() -> tuple[bytes, Any]:
    """A descriptor set, as protoc writes it, and the class of its message."""
    pytest.importorskip("google.protobuf")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="o.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    order = file.message_type.add(name="Order")
    order.enum_type.add(name="State").value.add(name="NEW", number=0)
    order.field.add(name="a", number=1, type=kinds.TYPE_INT64, label=kinds.LABEL_OPTIONAL)
    order.field.add(name="tags", number=2, type=kinds.TYPE_STRING, label=kinds.LABEL_REPEATED)
    order.field.add(
        name="state", number=3, type=kinds.TYPE_ENUM, type_name=".shop.Order.State", label=kinds.LABEL_OPTIONAL
    )
    order.field.add(
        name="t", number=4, type=kinds.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp", label=kinds.LABEL_OPTIONAL
    )
    times = descriptor_pb2.FileDescriptorProto.FromString(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(times)
    pool.Add(file)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
    return descriptor_pb2.FileDescriptorSet(file=[times, file]).SerializeToString(), kind


def test_protobuf_is_decoded_by_its_descriptor_set() -> None:
    described, order = descriptors()
    moment = datetime(2026, 11, 22, 10, tzinfo=UTC)
    full = order(a=1, tags=["x", "y"])
    full.t.FromDatetime(moment)
    wanted = schema("a bigint, state string, t timestamp, _corrupt binary").add(
        "tags", types.ArrayType(types.StringType())
    )

    found = decoded(
        wanted, full.SerializeToString(), b"", b"\xff", form="protobuf", schema=described, message="shop.Order"
    )

    assert found == [
        {"a": 1, "state": "NEW", "t": moment, "_corrupt": None, "tags": ["x", "y"]},
        {"a": 0, "state": "NEW", "t": None, "_corrupt": None, "tags": []},
        {"a": None, "state": None, "t": None, "_corrupt": b"\xff", "tags": None},
    ]


def test_a_message_that_the_descriptor_set_lacks_is_named() -> None:
    described, _ = descriptors()
    with pytest.raises(OptionError, match=r"the descriptor set has no message 'shop\.Nothing'"):
        decoded("a bigint", b"", form="protobuf", schema=described, message="shop.Nothing")


# -- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"payloadField": "f"}, "need the option 'payload'"),
        ({"payload": "xml"}, "is to be one of none, json, avro, protobuf"),
        ({"payload": "avro"}, "'avro' needs one"),
        ({"payload": "json", "payloadSchema": "/no/such.json"}, "/no/such.json cannot be read"),
        ({"payload": "protobuf", "payloadSchema": "x"}, "and 'payloadMessage'"),
        ({"payload": "avro", "payloadSchema": "/no/such.avsc"}, "/no/such.avsc cannot be read"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, str], told: str) -> None:
    with pytest.raises(OptionError, match=told):
        driving.read("a bigint", stream="s", **options)


def test_a_stream_of_documents_is_read(server: redis.Redis, endpoint: str, tmp_path: Path) -> None:
    server.xadd("s", {"doc": '{"a": 7}', "kind": "order"}, "1-0")
    server.xadd("s", {"doc": "{", "kind": "order"}, "2-0")

    rows = driving.read(f"_id string, {CORRUPT}", endpoints=endpoint, stream="s", payload="json", payloadField="doc")

    assert rows == [
        {"_id": "1-0", "a": 7, "b": None, "_corrupt": None},
        {"_id": "2-0", "a": None, "b": None, "_corrupt": "{"},
    ]
