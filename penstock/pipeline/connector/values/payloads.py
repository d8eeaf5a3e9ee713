"""Payloads as columns: the documents in one field of the entries, in JSON, Avro or Protobuf.

A payload fits or it does not: one that cannot be decoded, or has a member of another type than its column, gives nulls
in all columns, and its bytes in `_corrupt`. An entry without the field has nulls, and is not corrupt.

Many payloads are decoded at once. If that fails those that cannot be parsed are left out. If it fails still, for types
that do not fit, they are halved until the ones at fault stand alone: O(n + k log n) for k of n.
"""

import json
from collections.abc import Callable
from datetime import UTC
from decimal import Decimal
from io import BytesIO
from typing import Any, Final, TypeAlias

import pyarrow
import pyarrow.json

from penstock.pipeline.connector.values.payload_options import AVRO, JSON, PayloadOptions
from penstock.pipeline.connector.values.schema_registry import HEADER, SchemaRegistry, parted
from penstock.pipeline.connector.values.text_values import lenient, value_of
from penstock.pipeline.errors import OptionError

MISREAD: Final = (ValueError, EOFError, IndexError, KeyError, TypeError, OverflowError, MemoryError)  # by fastavro
SHOWN: Final = 80  # characters of a value that a message has
ONE_BY_ONE: Final = 8  # payloads that are not halved any more


_PLAIN_JSON: Final = json.JSONDecoder().decode


class Corrupt(Exception):
    """A payload cannot be decoded."""


Decoder: TypeAlias = Callable[[list[bytes]], Any]  # a StructArray with a row for each payload; Corrupt if one is


class Payloads:
    """Decodes the payloads of pages into the columns of a schema."""

    def __init__(self, options: PayloadOptions, schema: Any) -> None:
        """`schema` is Arrow's, of the payload's columns only. OptionError for a payload schema that is none."""
        self._kind = pyarrow.struct(list(schema))
        self.field = options.field
        self._one: Callable[[bytes], Any]
        self._check: Callable[[bytes], Any]  # as _one, and quicker where it can be
        if options.form == JSON:
            self._one, self._many, self._check = _json_value, _json_decoder(self._kind), _json_check
            if options.schema or options.registry:
                self._one = self._check = _valid_json(options)
                self._many = _each_checked(self._one, self._many, bool(options.registry))
        else:
            self._one = self._check = _avro_reader(options) if options.form == AVRO else _protobuf_reader(options)
            self._many = _each(self._one, self._kind)

    def decode(self, payloads: Any) -> tuple[Any, Any]:
        """A StructArray of the columns, and a binary array of what is corrupt (else null), for a binary array."""
        texts = payloads.to_pylist()
        rows, corrupt = self._some([at for at, text in enumerate(texts) if text is not None], texts)
        return rows, pyarrow.array(corrupt, pyarrow.binary())

    def _some(self, places: list[int], texts: list[Any]) -> tuple[Any, list[bytes | None]]:
        """Rows for all texts, null but for those at `places`, which are decoded; and what of these is corrupt."""
        some = texts if len(places) == len(texts) else [texts[at] for at in places]
        rows, broken = self._together(some)
        if some is texts:
            return rows, broken
        number_of: list[int | None] = [None] * len(texts)
        corrupt: list[bytes | None] = [None] * len(texts)
        for number, at in enumerate(places):
            number_of[at] = number
            corrupt[at] = broken[number]
        return rows.take(pyarrow.array(number_of, pyarrow.int64())), corrupt

    def _together(self, texts: list[bytes]) -> tuple[Any, list[bytes | None]]:
        """All at once; if that fails, without those that cannot be parsed; if that fails too, in halves."""
        try:
            return self._many(texts), [None] * len(texts)
        except Corrupt:
            readable = [at for at, text in enumerate(texts) if self._is_readable(text)]
        if len(readable) == len(texts):
            parts: list[Any] = []
            corrupt: list[bytes | None] = []
            self._decode(texts, parts, corrupt)
            return pyarrow.concat_arrays(parts), corrupt
        rows, corrupt = self._some(readable, texts)
        for at in set(range(len(texts))).difference(readable):
            corrupt[at] = texts[at]
        return rows, corrupt

    def _is_readable(self, text: bytes) -> bool:
        try:
            return isinstance(self._check(text), dict)
        except Corrupt:
            return False

    def _decode(self, texts: list[bytes], parts: list[Any], corrupt: list[bytes | None]) -> None:
        """Append the rows of some payloads, in order."""
        if len(texts) > ONE_BY_ONE:
            try:
                parts.append(self._many(texts))
                corrupt += [None] * len(texts)
            except Corrupt:
                half = len(texts) // 2
                self._decode(texts[:half], parts, corrupt)
                self._decode(texts[half:], parts, corrupt)
            return
        for text in texts:
            self._decode_one(text, parts, corrupt)

    def _decode_one(self, text: bytes, parts: list[Any], corrupt: list[bytes | None]) -> None:
        try:
            parts.append(pyarrow.array([_row(self._one(text), self._kind)], self._kind))
            corrupt.append(None)
        except Corrupt:
            parts.append(pyarrow.nulls(1, self._kind))
            corrupt.append(text)

    def reason(self, text: bytes) -> str:
        """Why a corrupt payload is so."""
        try:
            _row(self._one(text), self._kind)
        except Corrupt as mistake:
            return str(mistake)
        return "it does not fit"


def _row(value: Any, kind: Any) -> dict[str, Any]:
    """One decoded payload as its columns take it; Corrupt if it does not fit."""
    if not isinstance(value, dict):
        raise Corrupt(f"not an object with members but {type(value).__name__}")
    row = {}
    for field in kind:
        try:
            row[field.name] = _fitted(value.get(field.name), field.type)
        except Corrupt as mistake:
            raise Corrupt(f"column {field.name!r}: {mistake}") from None
    return row


def _fitted(value: Any, kind: Any) -> Any:
    """A value as its column's type takes it; Corrupt if it does not fit."""
    types = pyarrow.types
    if value is None:
        return None
    if types.is_struct(kind) and isinstance(value, dict):
        return {field.name: _fitted(value.get(field.name), field.type) for field in kind}
    if types.is_map(kind) and isinstance(value, dict):
        return [(_fitted(key, kind.key_type), _fitted(one, kind.item_type)) for key, one in value.items()]
    if types.is_list(kind) and isinstance(value, list | tuple):
        return [_fitted(one, kind.value_type) for one in value]
    if types.is_nested(kind) or isinstance(value, dict | list):
        raise Corrupt(f"{type(value).__name__} in a column of type {kind}")
    if types.is_boolean(kind) != isinstance(value, bool) or (types.is_string(kind) and not isinstance(value, str)):
        raise Corrupt(f"{repr(value)[:SHOWN]} in a column of type {kind}")
    try:
        if isinstance(value, str) and not types.is_string(kind) and not types.is_binary(kind):
            found = value_of(value, kind)
            if found is None:
                raise Corrupt(f"{repr(value)[:SHOWN]} in a column of type {kind}")
            return found
        return pyarrow.scalar(value).cast(kind).as_py()
    except (pyarrow.ArrowException, ValueError, TypeError, OverflowError):
        raise Corrupt(f"{repr(value)[:SHOWN]} in a column of type {kind}") from None


def _each(one: Callable[[bytes], Any], kind: Any) -> Decoder:
    """A decoder of many from one of a single payload: Arrow converts the rows together if they fit as they are."""

    lists = [field.name for field in kind if pyarrow.types.is_list(field.type)]

    def many(texts: list[bytes]) -> Any:
        rows = [one(text) for text in texts]
        if not all(isinstance(row, dict) for row in rows):
            raise Corrupt("not a record")
        for name in lists:  # Arrow would take a text for a list of its characters
            if any(type(row.get(name)) is str for row in rows):
                raise Corrupt(f"a text in the list {name!r}")
        try:
            return pyarrow.array(rows, kind)
        except (pyarrow.ArrowException, ValueError, TypeError, OverflowError) as mistake:
            raise Corrupt(str(mistake)) from None

    return many


# -- JSON -------------------------------------------------------------------------------------------------------------


def _json_value(text: bytes) -> Any:
    try:
        return json.loads(text, parse_float=_float_of)
    except (ValueError, RecursionError) as mistake:
        raise Corrupt(str(mistake)) from None


def _json_check(text: bytes) -> Any:
    try:
        return _PLAIN_JSON(text.decode())
    except (ValueError, RecursionError) as mistake:
        raise Corrupt(str(mistake)) from None


def _float_of(digits: str) -> float | Decimal:
    """A float if it has these digits, else a Decimal: money must not be rounded twice."""
    number = float(digits)
    return number if repr(number) == digits else Decimal(digits)


def _json_decoder(kind: Any) -> Decoder:
    """Arrow's reader of JSON lines; in columns of types that JSON does not have it reads texts, which are cast."""
    if not all(_is_json(field.type) or not pyarrow.types.is_nested(field.type) for field in kind):
        return lambda texts: pyarrow.array([_row(_json_value(text), kind) for text in texts], kind)
    read_as = [
        field if _is_json(field.type) else pyarrow.field(field.name, pyarrow.string(), field.nullable) for field in kind
    ]
    parsing = pyarrow.json.ParseOptions(
        explicit_schema=pyarrow.schema(read_as), newlines_in_values=True, unexpected_field_behavior="ignore"
    )

    def many(texts: list[bytes]) -> Any:
        # Objects only, so that a text's end ends a value: between `}` and `{` nothing else is valid, and within a
        # string no line end is. So as many values as texts means one of each.
        if not all(text.lstrip().startswith(b"{") and text.rstrip().endswith(b"}") for text in texts):
            raise Corrupt("not an object")
        lines = b"\n".join(texts)
        try:
            reading = pyarrow.json.ReadOptions(use_threads=False, block_size=len(lines) + 2)
            table = pyarrow.json.read_json(BytesIO(lines + b"\n"), reading, parsing)
        except (pyarrow.ArrowException, ValueError) as mistake:
            raise Corrupt(str(mistake)) from None
        if len(table) != len(texts):
            raise Corrupt("more than one value")
        columns = []
        for field in kind:
            (column,) = table.column(field.name).chunks or [pyarrow.nulls(0, field.type)]
            if column.type != field.type:
                texts_of = column
                column = lenient(texts_of, field.type)
                if column.null_count != texts_of.null_count:
                    raise Corrupt(f"a text in a column of type {field.type}")
            columns.append(column)
        return pyarrow.StructArray.from_arrays(columns, fields=list(kind))

    return many


def _is_json(kind: Any) -> bool:
    """Whether JSON has this type."""
    types = pyarrow.types
    if types.is_struct(kind):
        return all(_is_json(field.type) for field in kind)
    if types.is_list(kind):
        return _is_json(kind.value_type)
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_string(kind))


# -- schemas ----------------------------------------------------------------------------------------------------------

Reader: TypeAlias = Callable[[bytes], Any]  # a document's value; Corrupt if it has none


def _by_schema(options: PayloadOptions, reader_of: Callable[[str], Reader]) -> Reader:
    """Reads documents by the schema of the options, or by those whose numbers precede the documents."""
    if not options.registry:
        return reader_of(options.schema.decode(errors="replace"))
    registry = SchemaRegistry(options.registry)
    readers: dict[int, Reader] = {}

    def read(payload: bytes) -> Any:
        try:
            number, document = parted(payload)
            if number not in readers:
                readers[number] = reader_of(registry.schema(number))
        except (ValueError, LookupError) as mistake:
            raise Corrupt(str(mistake)) from None
        return readers[number](document)

    return read


def _valid_json(options: PayloadOptions) -> Reader:
    """Reads a JSON document that is valid by a JSON Schema."""
    try:
        from jsonschema import exceptions, validators
    except ImportError:
        raise OptionError("a JSON Schema needs jsonschema: pip install '.[payload]' in a clone") from None

    def reader_of(text: str) -> Reader:
        try:
            schema = json.loads(text)
            kind = validators.validator_for(schema)
            kind.check_schema(schema)
        except (ValueError, exceptions.SchemaError) as mistake:
            raise OptionError(f"the JSON Schema of the payload is none: {str(mistake).splitlines()[0]}") from None
        validator = kind(schema)

        def read(document: bytes) -> Any:
            value = _json_value(document)
            mistake = next(validator.iter_errors(value), None)
            if mistake is not None:
                place = "/".join(map(str, mistake.absolute_path))
                raise Corrupt(f"{place and f'member {place!r}: '}{mistake.message[:SHOWN]}")
            return value

        return read

    return _by_schema(options, reader_of)


def _each_checked(check: Reader, many: Decoder, framed: bool) -> Decoder:
    """A decoder of many documents that checks each of them first."""

    def checked(payloads: list[bytes]) -> Any:
        for payload in payloads:
            check(payload)
        return many([payload[HEADER:] for payload in payloads] if framed else payloads)

    return checked


# -- Avro -------------------------------------------------------------------------------------------------------------


def _avro_reader(options: PayloadOptions) -> Reader:
    """Reads one datum. `payloadSchema` beside a registry is the schema that a datum is converted to."""
    try:
        import fastavro
    except ImportError:
        raise OptionError("payload 'avro' needs fastavro: pip install '.[payload]' in a clone") from None

    def parsed_schema(text: str) -> Any:
        try:
            return fastavro.parse_schema(json.loads(text))
        except (ValueError, fastavro.schema.SchemaParseException, fastavro.schema.UnknownType) as mistake:
            raise OptionError(f"the payload's schema is no Avro schema: {mistake}") from None

    wanted = parsed_schema(options.schema.decode(errors="replace")) if options.registry and options.schema else None

    def reader_of(text: str) -> Reader:
        schema = parsed_schema(text)

        def read(document: bytes) -> Any:
            stream = BytesIO(document)
            try:
                found = fastavro.schemaless_reader(stream, schema, wanted)
            except (*MISREAD, fastavro.read.SchemaResolutionError) as mistake:
                raise Corrupt(str(mistake) or type(mistake).__name__) from None
            if stream.tell() != len(document):
                raise Corrupt(f"{len(document) - stream.tell()} bytes behind the end")
            return found

        return read

    return _by_schema(options, reader_of)


# -- Protobuf ---------------------------------------------------------------------------------------------------------


def _protobuf_reader(options: PayloadOptions) -> Callable[[bytes], Any]:
    """Reads one message of a descriptor set."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory
    except ImportError:
        raise OptionError("payload 'protobuf' needs protobuf: pip install '.[payload]' in a clone") from None
    pool = descriptor_pool.DescriptorPool()
    try:
        for file in descriptor_pb2.FileDescriptorSet.FromString(options.schema).file:
            pool.Add(file)
        kind = message_factory.GetMessageClass(pool.FindMessageTypeByName(options.message))
    except (message.DecodeError, TypeError) as mistake:
        raise OptionError(f"option 'payloadSchema' is no descriptor set: {mistake}") from None
    except KeyError:
        raise OptionError(f"option 'payloadMessage': the descriptor set has no message {options.message!r}") from None

    def read(text: bytes) -> Any:
        try:
            return _members(kind.FromString(text))
        except message.DecodeError as mistake:
            raise Corrupt(str(mistake)) from None

    return read


def _members(found: Any) -> Any:
    """A message as a dict by field name: enums by name, times as datetimes; an absent optional member is None."""
    if found.DESCRIPTOR.full_name == "google.protobuf.Timestamp":
        return found.ToDatetime(tzinfo=UTC)
    members: dict[str, Any] = {}
    for field in found.DESCRIPTOR.fields:
        value = getattr(found, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            one = field.message_type.fields_by_name["value"]
            members[field.name] = [(key, _member(one, item)) for key, item in value.items()]
        elif field.is_repeated:
            members[field.name] = [_member(field, item) for item in value]
        elif field.has_presence and not found.HasField(field.name):
            members[field.name] = None
        else:
            members[field.name] = _member(field, value)
    return members


def _member(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return _members(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    return value
