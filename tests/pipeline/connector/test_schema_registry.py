"""Documents with the number of their schema before them, and JSON documents that must be valid by a schema."""

import http.server
import io
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytest.importorskip("fastavro")
pytest.importorskip("jsonschema")

import fastavro
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.pipeline.connector.source.entry_columns import Columns, Origin
from penstock.pipeline.connector.source.entry_pages import from_lists
from penstock.pipeline.connector.source.source_options import read_entries
from penstock.pipeline.errors import OptionError, PipelineError
from tests.pipeline.driving import schema
from tests.support.reference_server import LOCALHOST

FIRST = {"type": "record", "name": "order", "fields": [{"name": "sku", "type": "string"}]}
SECOND = {**FIRST, "fields": [*FIRST["fields"], {"name": "qty", "type": "int", "default": 1}]}
ORDER = {"type": "object", "properties": {"sku": {"type": "string"}, "qty": {"minimum": 1}}, "required": ["sku"]}
SCHEMAS = {1: FIRST, 2: SECOND, 3: ORDER}
SECRET = "Basic dXNlcjpwYSBzcw=="  # user, "pa ss"


def framed(number: int, document: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + document


def avro(number: int, **members: Any) -> bytes:
    into = io.BytesIO()
    fastavro.schemaless_writer(into, fastavro.parse_schema(SCHEMAS[number]), members)
    return framed(number, into.getvalue())


@pytest.fixture
def asked() -> list[tuple[str, str | None]]:
    """What a registry was asked for, and with which authorization."""
    return []


@pytest.fixture
def url(asked: list[tuple[str, str | None]]) -> Iterator[str]:
    """A registry that speaks Confluent's REST interface."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Authorization"]))
            number = int(self.path.rpartition("/")[2])
            known = {key: {"schema": json.dumps(value)} for key, value in SCHEMAS.items()}
            known[5] = {"schema": "{}", "references": [{"name": "other"}]}
            body = json.dumps(known.get(number, {"error_code": 40403})).encode()
            self.send_response(500 if number == 6 else 200 if number in known else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer((LOCALHOST, 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://{LOCALHOST}:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """The same schemas in files."""
    for number, suffix in ((1, "avsc"), (2, "avsc"), (3, "json")):
        (tmp_path / f"{number}.{suffix}").write_text(json.dumps(SCHEMAS[number]))
    return str(tmp_path)


def decoded(*documents: bytes, ddl: str = "sku string, qty int, _corrupt binary", **options: str) -> list[Any]:
    found = read_entries({"stream": "s", **options}, streaming=False)
    page = from_lists([[[b"%d-0" % number, [b"payload", one]] for number, one in enumerate(documents, 1)]])
    columns = Columns(to_arrow_schema(schema(ddl), timezone="UTC"), found.fail_fast, False, found.payload)
    return [tuple(row.values()) for row in columns.batch(page, Origin("main", (b"s",))).to_pylist()]


@pytest.mark.parametrize("place", ["url", "folder"])
def test_each_datum_is_read_by_the_schema_whose_number_it_brings(request: pytest.FixtureRequest, place: str) -> None:
    lost, plain, short = framed(9, b"\x02a"), b"\x02a", b"\0\0"
    rows = decoded(
        avro(1, sku="a"), avro(2, sku="b", qty=7), lost, plain, short, avro(1, sku="c")[:-1],
        payload="avro", schemaRegistry=request.getfixturevalue(place),
    )  # fmt: skip

    assert rows == [
        ("a", None, None), ("b", 7, None), (None, None, lost), (None, None, plain), (None, None, short),
        (None, None, avro(1, sku="c")[:-1]),
    ]  # fmt: skip


def test_data_of_an_older_schema_get_the_defaults_of_the_one_that_is_wanted(folder: str) -> None:
    wanted = {"payload": "avro", "schemaRegistry": folder, "payloadSchema": json.dumps(SECOND)}

    assert decoded(avro(1, sku="a"), avro(2, sku="b", qty=7), **wanted) == [("a", 1, None), ("b", 7, None)]


def test_a_registry_is_asked_once_for_a_schema_and_with_the_password_of_its_url(
    url: str, asked: list[tuple[str, str | None]]
) -> None:
    place = url.replace("//", "//user:pa%20ss@")
    decoded(*[avro(1, sku="a"), avro(2, sku="b", qty=7)] * 50, payload="avro", schemaRegistry=place)

    assert asked == [("/schemas/ids/1", SECRET), ("/schemas/ids/2", SECRET)]


@pytest.mark.parametrize(
    ("number", "told"), [(5, "schema 5 of http://.* refers to other schemas"), (6, "answers HTTP Error 500")]
)
def test_what_a_registry_cannot_tell_ends_the_query(url: str, number: int, told: str) -> None:
    with pytest.raises(PipelineError, match=told):
        decoded(framed(number, b""), payload="avro", schemaRegistry=url)


def test_a_registry_that_is_not_there_ends_the_query_and_is_named_without_its_password() -> None:
    with pytest.raises(PipelineError, match=f"registry http://{LOCALHOST}:1 cannot be read: .*refused"):
        decoded(framed(1, b""), payload="avro", schemaRegistry=f"http://user:secret@{LOCALHOST}:1")


def test_json_that_is_not_valid_by_its_schema_is_corrupt() -> None:
    documents = [b'{"sku": "a", "qty": 2}', b'{"qty": 2}', b'{"sku": "b", "qty": 0}', b'{"sku": "c"}', b"{"]

    assert decoded(*documents, payload="json", payloadSchema=json.dumps(ORDER)) == [
        ("a", 2, None), (None, None, documents[1]), (None, None, documents[2]), ("c", None, None),
        (None, None, documents[4]),
    ]  # fmt: skip


def test_json_may_bring_the_number_of_its_schema(folder: str) -> None:
    documents = [framed(3, b'{"sku": "a"}'), framed(3, b"{}"), b'{"sku": "b"}']

    assert decoded(*documents, payload="json", schemaRegistry=folder) == [
        ("a", None, None), (None, None, documents[1]), (None, None, documents[2]),
    ]  # fmt: skip


def test_a_query_that_fails_fast_says_what_is_not_valid() -> None:
    with pytest.raises(PipelineError, match=r"entry 1-0, field 'payload', member 'qty': 0 is less than the minimum"):
        decoded(b'{"sku": "a", "qty": 0}', payload="json", payloadSchema=json.dumps(ORDER), mode="FAILFAST")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"payload": "avro", "schemaRegistry": "/no/such"}, "/no/such is no folder and no URL"),
        ({"payload": "protobuf", "payloadSchema": "x", "payloadMessage": "m", "schemaRegistry": "."}, "'avro'"),
        ({"payload": "json", "payloadSchema": "{}", "schemaRegistry": "."}, "without 'payloadSchema'"),
        ({"schemaRegistry": "."}, "need the option 'payload'"),
        ({"payload": "json", "payloadSchema": '{"type": "order"}'}, "JSON Schema of the payload is none"),
        ({"payload": "json", "payloadSchema": "{"}, "JSON Schema of the payload is none"),
    ],
    ids=["no folder", "protobuf", "two schemas", "no payload", "no schema", "no JSON"],
)
def test_options_that_do_not_go_together_are_refused_before_anything_is_read(
    options: dict[str, str], told: str
) -> None:
    with pytest.raises(OptionError, match=told):
        decoded(b"", **options)
