"""Rows as XADD requests. The keys and the fields are kept apart as well, for checksums."""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipeline.connector import schemas
from penstock.pipeline.connector.connection.client import bulk_strings
from penstock.pipeline.connector.sink.resp_columns import BINARY, FieldEncoder, Headers, Texts, as_bytes, join, present
from penstock.pipeline.connector.sink.sink_options import SinkOptions
from penstock.pipeline.errors import OptionError

STREAM: Final = "_stream"
ID: Final = "_id"
ENDPOINT: Final = "_endpoint"


class Encoded:
    """A batch's rows: `fields` are the words of each behind the id, `keys` is None where all have the same."""

    __slots__ = ("count", "fields", "ids", "keys", "words")

    def __init__(self, count: int, keys: Any, ids: Any, fields: Texts, words: Any) -> None:
        self.count = count
        self.keys: Texts | None = keys
        self.ids = ids  # an array, or None
        self.fields = fields
        self.words = words  # how many words `fields` are: an array, or one number


class Encoder:
    """Makes requests of batches with one schema. OptionError for a schema that cannot be written."""

    def __init__(self, options: SinkOptions, names: Sequence[str], kinds: Sequence[Any]) -> None:
        self._options = options
        self._headers = Headers()
        # As with Kafka's topic, the option overrules the column: a copy of a stream says where it goes.
        self.keyed = options.stream is None
        if self.keyed and STREAM not in names:
            raise OptionError("the sink needs the option 'stream', or a column '_stream' that names each row's stream")
        if options.own_ids and ID not in names:
            raise OptionError("'ids' column needs a column '_id'")
        column = options.idempotency_column
        if column is not None and column not in names:
            raise OptionError(f"'idempotencyColumn' names no column: {column!r}")
        fields = [name for name in names if name not in schemas.METADATA]
        if not fields:
            raise OptionError("there is no column to write: those that begin with _ say where and when, not what")
        self._fields = FieldEncoder(fields, options.skip_nulls)
        for name, kind in zip(names, kinds, strict=True):
            if name in fields or name in (STREAM, ID):
                check_kind(name, kind)

    def encode(self, batch: Any) -> Encoded:
        """The rows of a batch; PipelineError for a row that cannot be an entry."""
        count = batch.num_rows
        keys = None
        if self.keyed:
            keys = present(as_bytes(batch.column(STREAM)), STREAM)
        own_ids = present(as_bytes(batch.column(ID)), ID) if self._options.own_ids else None
        fields, words = self._fields.encode(batch)
        return Encoded(count, None if keys is None else Texts(keys), own_ids, fields, words)

    def requests(self, rows: Encoded, producers: Any = None, iids: Any = None) -> Texts:
        """An XADD for each row; with IDMP where `producers` and `iids` are given, as arrays of bytes."""
        options = self._options
        before = bulk_strings([word.encode() for word in options.before_id])
        behind = bulk_strings([word.encode() for word in options.trim])
        words = 3 + len(options.before_id) + len(options.trim) + (3 if iids is not None else 0)
        parts: list[Any] = []
        if isinstance(rows.words, int):
            parts.append(b"*%d\r\n" % (words + rows.words))
        else:
            parts += [b"*", pc.add(rows.words, words).cast(pa.string()).cast(BINARY), b"\r\n"]
        parts.append(b"$4\r\nXADD\r\n")
        if rows.keys is None:
            parts.append(bulk_strings([str(options.stream).encode()]))
        else:
            parts += [self._headers.of(rows.keys.array), rows.keys.array, b"\r\n"]
        parts.append(before)
        if iids is not None:
            parts += [self._headers.of(producers, b"$4\r\nIDMP\r\n"), producers]
            parts += [self._headers.of(iids, b"\r\n"), iids, b"\r\n"]
        parts.append(behind)
        if rows.ids is None:
            parts.append(b"$1\r\n*\r\n")
        else:
            parts += [self._headers.of(rows.ids), rows.ids, b"\r\n"]
        return Texts(join([*parts, rows.fields.array], rows.count))

    def keys_of(self, rows: Encoded) -> list[bytes]:
        """The streams that the rows go to, each once."""
        if rows.keys is None:
            return [str(self._options.stream).encode()]
        found: list[bytes] = rows.keys.array.unique().to_pylist()
        return found


def check_kind(name: str, kind: Any) -> None:
    """OptionError for a column of a type that cannot be written as text."""
    if pa.types.is_map(kind):
        inner = [kind.key_type, kind.item_type]
    elif pa.types.is_list(kind) and pa.types.is_struct(kind.value_type) and kind.value_type.num_fields == 2:
        inner = [field.type for field in kind.value_type]
    else:
        inner = [kind]
    if len(inner) == 2 and name != schemas.FIELDS:
        inner = []
    plain = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    more = (
        pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_date,
        pa.types.is_timestamp, pa.types.is_null,
    )  # fmt: skip
    if not inner or not all(any(fits(one) for fits in plain + more) for one in inner):
        raise OptionError(
            f"the column {name!r} cannot be written as {kind}: an entry's fields are texts (to_json makes one of "
            "anything); only the column 'fields' may be a map, or an array of structs of a name and a value"
        )
