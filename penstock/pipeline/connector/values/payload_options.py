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
    """`field` holds documents of a format. `schema`: Avro's JSON, or Protobuf's descriptor set; `message`: its name."""

    form: str
    field: str
    schema: bytes
    message: str


def read_payload(reader: OptionReader) -> PayloadOptions | None:
    """The options `payload...`; None if there is no `payload`. Files are read here, on the driver."""
    form = reader.choice("payload", NONE, (NONE, JSON, AVRO, PROTOBUF))
    field = reader.text("payloadField")
    schema = reader.text("payloadSchema")
    message = reader.text("payloadMessage")
    if form == NONE:
        if field or schema or message:
            raise OptionError("'payloadField', 'payloadSchema' and 'payloadMessage' need the option 'payload'")
        return None
    if (schema is None) != (form == JSON) or (message is None) != (form != PROTOBUF):
        raise OptionError(
            "payload 'json' takes no 'payloadSchema'; 'avro' needs one (JSON, or the path of a file with it); "
            "'protobuf' needs the path of a descriptor set (protoc --descriptor_set_out) and 'payloadMessage'"
        )
    return PayloadOptions(form, field or "payload", _schema_bytes(form, schema), message or "")


def _schema_bytes(form: str, schema: str | None) -> bytes:
    if schema is None:
        return b""
    if form == AVRO and schema.lstrip()[:1] in ("{", "[", '"'):
        return schema.encode()
    try:
        return Path(schema).read_bytes()
    except OSError as failure:
        raise OptionError(f"option 'payloadSchema': {schema} cannot be read: {failure.strerror}") from None
