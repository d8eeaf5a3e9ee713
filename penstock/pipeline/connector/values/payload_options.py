"""The options of `payload`: one field of the entries holds a document with the columns as its members."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.pipeline.connector.connection.option_reader import OptionReader
from penstock.pipeline.errors import OptionError

JSON, AVRO, PROTOBUF = "json", "avro", "protobuf"
NONE: Final = "none"


@dataclass(frozen=True, slots=True)
class PayloadOptions:
    """`field` holds documents of a format.

    `schema`: Avro's or JSON Schema's JSON, or Protobuf's descriptor set; `message`: its name. `registry`: where the
    schemas are whose numbers precede the documents; "" if none do.
    """

    form: str
    field: str
    schema: bytes
    message: str
    registry: str = ""


def read_payload(reader: OptionReader) -> PayloadOptions | None:
    """The options `payload...`; None if there is no `payload`. Files are read here, on the driver."""
    form = reader.choice("payload", NONE, (NONE, JSON, AVRO, PROTOBUF))
    field = reader.text("payloadField")
    schema = reader.text("payloadSchema")
    message = reader.text("payloadMessage")
    registry = reader.text("schemaRegistry")
    if form == NONE:
        if field or schema or message or registry:
            raise OptionError(
                "'payloadField', 'payloadSchema', 'payloadMessage' and 'schemaRegistry' need the option 'payload'"
            )
        return None
    needs_schema = form == PROTOBUF or (form == AVRO and registry is None)
    if (needs_schema and schema is None) or (message is None) != (form != PROTOBUF):
        raise OptionError(
            "payload 'json' takes a 'payloadSchema' (JSON Schema) or none; 'avro' needs one, or a 'schemaRegistry' "
            "(JSON, or the path of a file with it); 'protobuf' needs the path of a descriptor set "
            "(protoc --descriptor_set_out) and 'payloadMessage'"
        )
    if registry is not None and (form == PROTOBUF or (form == JSON and schema is not None)):
        raise OptionError("'schemaRegistry' is for payload 'avro', and for payload 'json' without 'payloadSchema'")
    return PayloadOptions(form, field or "payload", _schema_bytes(form, schema), message or "", registry or "")


def _schema_bytes(form: str, schema: str | None) -> bytes:
    if schema is None:
        return b""
    if form != PROTOBUF and schema.lstrip()[:1] in ("{", "[", '"'):
        return schema.encode()
    try:
        return Path(schema).read_bytes()
    except OSError as failure:
        raise OptionError(f"option 'payloadSchema': {schema} cannot be read: {failure.strerror}") from None
