"""Pages of entries as Arrow record batches, with the columns and types of the schema."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy
import pyarrow
import pyarrow.compute as compute

from penstock.pipeline.connector import schemas
from penstock.pipeline.connector.source.entry_pages import DASH, Page, numbers
from penstock.pipeline.connector.values.payload_options import PayloadOptions
from penstock.pipeline.connector.values.payloads import SHOWN, Payloads
from penstock.pipeline.connector.values.text_values import Texts
from penstock.pipeline.errors import OptionError, PipelineError
from penstock.storage.streams import ids

LARGEST: Final = numpy.uint64(2**63 - 1)  # of a bigint
LATEST_MS: Final = 2**63 // 1000 - 1  # the last moment that Spark's microseconds hold; an id may be far beyond


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a page comes from: the stream of each reply, and delivery counts by id if the schema asks for them."""

    endpoint: str
    streams: tuple[bytes, ...]
    deliveries: dict[bytes, int] | None = None


@dataclass(frozen=True, slots=True)
class _Misfits:
    """Values that do not fit a column's type: which entries of the page have them, in which fields."""

    column: str
    kind: Any
    entries: list[int]
    fields: list[bytes]
    texts: list[bytes]


Builder: TypeAlias = Callable[[Page, Origin], Any]


class Columns:
    """Builds record batches from pages, with one builder for each column. Created once for each task."""

    def __init__(
        self, schema: Any, fail_fast: bool, replace_bad_text: bool, payload: PayloadOptions | None = None
    ) -> None:
        """`schema` is Arrow's, as Spark expects it; OptionError for a column that cannot be had so.

        With `payload`, columns that are neither metadata nor `fields` are members of the payloads.
        """
        self.schema = schema
        self._fail_fast = fail_fast
        self._texts = Texts(replace_bad_text)
        self._readable = Texts(replace_bad_text=True)
        self._misfits: list[_Misfits] = []  # of the page
        self._payloads: Payloads | None = None
        self._decoded: tuple[Any, Any] | None = None  # the page's payloads as columns, and what is corrupt
        if payload is not None:
            members = [column for column in schema if column.name not in (*_METADATA, schemas.FIELDS, schemas.CORRUPT)]
            self._payloads = Payloads(payload, members)
        self._builders = [self._builder(column) for column in schema]

    def wants(self, name: str) -> bool:
        return name in self.schema.names

    def batch(self, page: Page, origin: Origin) -> Any:
        """The rows of a page. With FAILFAST, PipelineError for the first value that does not fit."""
        if self._payloads is not None:
            self._decoded = self._payloads.decode(field_of(page, self._payloads.field.encode()))
        arrays = [build(page, origin) for build in self._builders]
        if self._fail_fast:
            self._refuse(page, origin)
        for at, name in enumerate(self.schema.names):
            if name == schemas.CORRUPT:  # after all others, which say what does not fit
                arrays[at] = self._corrupt(page, self.schema.field(at).type)
        self._decoded = None
        self._misfits = []
        return pyarrow.RecordBatch.from_arrays(arrays, schema=self.schema)

    # -- what does not fit --------------------------------------------------------------------------------------------

    def _cast(self, page: Page, texts: Any, kind: Any, column: str, field: bytes | None = None) -> Any:
        """Values of a field, or of all fields of all entries, as a type; those that do not fit are noted."""
        values = self._texts.cast(texts, kind)
        if values.null_count > texts.null_count:
            at: Any = numpy.flatnonzero(compute.and_(values.is_null(), texts.is_valid()).to_numpy(False))
            entries: Any = at if field is not None else numpy.searchsorted(page.offsets, at, "right") - 1
            fields = [field] * len(at) if field is not None else page.texts(page.name_at[at]).to_pylist()
            self._misfits.append(_Misfits(column, kind, entries.tolist(), fields, texts.take(at).to_pylist()))
        return values

    def _refuse(self, page: Page, origin: Origin) -> None:
        """PipelineError for the first value of a page that does not fit; the sentence says where it is."""
        found = []
        for misfits in self._misfits:
            hint = (
                "; declare the column binary, or set decodeErrors=replace" if misfits.kind == pyarrow.string() else ""
            )
            text, field = misfits.texts[0], misfits.fields[0].decode(errors="replace")
            what = f"field {field!r}, column {misfits.column!r}: {text[:SHOWN]!r} is no {misfits.kind}{hint}"
            found.append((misfits.entries[0], what))
        if self._decoded is not None and self._payloads is not None:
            corrupt = self._decoded[1]
            if corrupt.null_count < len(corrupt):
                at = int(numpy.flatnonzero(corrupt.is_valid().to_numpy(False))[0])
                text, field = corrupt[at].as_py(), self._payloads.field
                found.append((at, f"field {field!r}, {self._payloads.reason(text)}: {text[:SHOWN]!r}"))
        if found:
            at, what = min(found)
            reply: Any = numpy.searchsorted(numpy.cumsum(page.counts), at, "right")
            raise PipelineError(
                f"{origin.endpoint}: stream {origin.streams[int(reply)].decode(errors='replace')!r}, entry "
                f"{page.texts(page.id_at[at : at + 1])[0].as_py().decode()}, {what} (mode=PERMISSIVE makes it null)"
            )

    def _corrupt(self, page: Page, kind: Any) -> Any:
        """The column `_corrupt`: a payload that cannot be decoded, else JSON with the fields that do not fit."""
        texts = pyarrow.nulls(len(page), pyarrow.binary()) if self._decoded is None else self._decoded[1]
        rows: dict[int, dict[str, str]] = {}
        for misfits in self._misfits:
            for entry, field, text in zip(misfits.entries, misfits.fields, misfits.texts, strict=True):
                name = field.decode(errors="backslashreplace")
                rows.setdefault(entry, {})[name] = text.decode(errors="backslashreplace")
        if rows:
            written = [
                json.dumps(rows[at], ensure_ascii=False).encode() if at in rows else None for at in range(len(page))
            ]
            texts = compute.coalesce(texts, pyarrow.array(written, pyarrow.binary()))
        return self._readable.cast(texts, kind)

    # -- columns ------------------------------------------------------------------------------------------------------

    def _builder(self, column: Any) -> Builder:
        name, kind = column.name, column.type
        if name in _METADATA:
            allowed, build = _METADATA[name]
            if not any(kind.equals(one) for one in allowed):
                raise OptionError(f"the column {name!r} is to be {' or '.join(map(str, allowed))}, not {kind}")
            return lambda page, origin: build(page, origin, kind)
        if name == schemas.CORRUPT:
            _text_or_bytes(kind, "values of the column '_corrupt'")
            return lambda page, origin: None
        if name == schemas.FIELDS and pyarrow.types.is_map(kind):
            return self._map_builder(kind)
        if name == schemas.FIELDS and pyarrow.types.is_list(kind):
            return self._list_builder(kind)
        if self._payloads is not None:
            return lambda page, origin: self._payload_column(name)
        if pyarrow.types.is_nested(kind):
            raise OptionError(
                f"the column {name!r} cannot be {kind}: 'fields' may be map<string,string>, map<string,binary>, "
                "map<binary,binary> or array<struct<name,value>>; every other column is one field's text"
            )
        wanted = name.encode()
        return lambda page, origin: self._cast(page, field_of(page, wanted), kind, name, wanted)

    def _payload_column(self, name: str) -> Any:
        assert self._decoded is not None, "batch() decodes first"
        return self._decoded[0].field(name)

    def _names_and_values(self, page: Page, name_kind: Any, value_kind: Any) -> tuple[Any, Any]:
        """All fields of all entries; a name that is not UTF-8 has U+FFFD in it, because keys cannot be null."""
        texts = page.texts(page.name_at)
        names = self._cast(page, texts, name_kind, schemas.FIELDS)
        if names.null_count:
            names = self._readable.cast(texts, name_kind)
        return names, self._cast(page, page.texts(page.value_at), value_kind, schemas.FIELDS)

    def _map_builder(self, kind: Any) -> Builder:
        for part in (kind.key_type, kind.item_type):
            _text_or_bytes(part)

        def build(page: Page, origin: Origin) -> Any:
            names, values = self._names_and_values(page, kind.key_type, kind.item_type)
            offsets, names, values = keys_once(page, names, values)
            return pyarrow.MapArray.from_arrays(pyarrow.array(offsets), names, values, kind)

        return build

    def _list_builder(self, kind: Any) -> Builder:
        pair = kind.value_type
        if not pyarrow.types.is_struct(pair) or pair.num_fields != 2:
            raise OptionError(f"the column 'fields' as a list is to be array<struct<name,value>>, not {kind}")
        for part in pair:
            _text_or_bytes(part.type)

        def build(page: Page, origin: Origin) -> Any:
            names, values = self._names_and_values(page, pair[0].type, pair[1].type)
            pairs = pyarrow.StructArray.from_arrays([names, values], fields=list(pair))
            return pyarrow.ListArray.from_arrays(pyarrow.array(page.offsets), pairs, kind)

        return build


def _text_or_bytes(kind: Any, what: str = "names and values in 'fields'") -> None:
    if kind not in (pyarrow.string(), pyarrow.binary()):
        raise OptionError(f"{what} are string or binary, not {kind}")


# -- one field of every entry -----------------------------------------------------------------------------------------


def field_of(page: Page, wanted: bytes) -> Any:
    """The value of the field `wanted` in every entry: the first where there are two, null where there is none."""
    at = _same_place(page, wanted)
    if at >= 0:
        return page.texts(page.value_at[at :: page.width])
    if not len(page.name_at):
        return pyarrow.nulls(len(page), pyarrow.binary())
    entries, fields = page.places_of(wanted)
    places: Any = numpy.zeros(len(page), numpy.int64)
    missing: Any = numpy.ones(len(page), bool)
    places[entries[::-1]] = page.value_at[fields[::-1]]  # backwards: the first of two is what stays
    missing[entries] = False
    return page.texts(places, missing)


def _same_place(page: Page, wanted: bytes) -> int:
    """The index of the field, if it and the fields before it have the same names in all entries; else -1."""
    known = page.same_names
    for at in range(page.width):
        if at == len(known):
            names = page.texts(page.name_at[at :: page.width])
            known.append(names[0].as_py() if compute.all(compute.equal(names, names[0])).as_py() else None)
        if known[at] is None:
            return -1
        if known[at] == wanted:
            return at
    return -1


def keys_once(page: Page, names: Any, values: Any) -> tuple[Any, Any, Any]:
    """Where the fields of each entry begin, names and values, without fields with a name that the entry has before.

    `names` and `values` are of all fields of all entries, as they will be in a map. Spark's maps have a key once.
    """
    encoded = names.dictionary_encode()
    numbers: Any = encoded.indices.to_numpy().astype(numpy.int64)
    numbers += numpy.repeat(numpy.arange(len(page)) * len(encoded.dictionary), numpy.diff(page.offsets))
    ordered: Any = numpy.sort(numbers, kind="stable")  # mostly in order as they are
    if not (ordered[1:] == ordered[:-1]).any():
        return page.offsets, names, values
    first: Any = numpy.sort(numpy.unique(numbers, return_index=True)[1])
    kept = pyarrow.array(first)
    return numpy.searchsorted(first, page.offsets).astype(numpy.int32), names.take(kept), values.take(kept)


# -- metadata columns -------------------------------------------------------------------------------------


def _stream(page: Page, origin: Origin, kind: Any) -> Any:
    names = pyarrow.array(origin.streams, pyarrow.binary())
    if kind == pyarrow.string():
        try:
            names = names.cast(kind)
        except pyarrow.ArrowInvalid:
            shown = next(one for one in origin.streams if not _is_text(one))
            raise PipelineError(f"the key {shown!r} is not UTF-8: declare the column _stream binary") from None
    return names.take(pyarrow.array(numpy.repeat(numpy.arange(len(page.counts)), page.counts)))


def _is_text(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True


def _endpoint(page: Page, origin: Origin, kind: Any) -> Any:
    return pyarrow.repeat(pyarrow.scalar(origin.endpoint, kind), len(page))


def _id(page: Page, origin: Origin, kind: Any) -> Any:
    return page.texts(page.id_at).cast(kind)


def _ms(page: Page, origin: Origin, kind: Any) -> Any:
    return _half(halves(page)[0], kind)


def _seq(page: Page, origin: Origin, kind: Any) -> Any:
    return _half(halves(page)[1], kind)


def _half(numbers_of_ids: Any, kind: Any) -> Any:
    """Half an id as a number; null for one that a bigint does not hold."""
    beyond = numbers_of_ids > LARGEST if kind == pyarrow.int64() and numbers_of_ids.dtype == numpy.uint64 else None
    return pyarrow.array(numbers_of_ids, mask=beyond).cast(kind)


def _timestamp(page: Page, origin: Origin, kind: Any) -> Any:
    return moments(halves(page)[0], kind)


def moments(ms: Any, kind: Any) -> Any:
    """Unix milliseconds as a time; null for one that is beyond Spark's times."""
    beyond = ms > LATEST_MS
    micros = numpy.where(beyond, 0, ms).astype(numpy.int64) * 1000
    return pyarrow.array(micros, mask=beyond if beyond.any() else None).cast(kind)


def _deliveries(page: Page, origin: Origin, kind: Any) -> Any:
    known = origin.deliveries or {}
    return pyarrow.array(
        [known.get(one) for one in page.texts(page.id_at).to_pylist()] if known else [None] * len(page), kind
    )


_STRING: Final = (pyarrow.string(), pyarrow.binary())
_NUMBER: Final = (pyarrow.int64(), pyarrow.decimal128(20, 0))
_TIME: Final = (pyarrow.timestamp("us", "UTC"), pyarrow.timestamp("us"))
_METADATA: Final[dict[str, tuple[tuple[Any, ...], Callable[[Page, Origin, Any], Any]]]] = {
    "_stream": (_STRING, _stream),
    "_endpoint": ((pyarrow.string(),), _endpoint),
    "_id": ((pyarrow.string(),), _id),
    "_ms": (_NUMBER, _ms),
    "_seq": (_NUMBER, _seq),
    "_timestamp": (_TIME, _timestamp),
    "_deliveries": ((pyarrow.int64(),), _deliveries),
}


def halves(page: Page) -> tuple[Any, Any]:
    """Milliseconds and sequence numbers of a page's ids."""
    return halves_of(page.texts(page.id_at))


def halves_of(texts: Any) -> tuple[Any, Any]:
    """Milliseconds and sequence numbers of ids in a binary array, as integers: int64 if they fit, else uint64."""
    if len(texts) and texts.type == pyarrow.binary():
        bounds = numpy.frombuffer(texts.buffers()[1], numpy.int32, len(texts) + 1, 4 * texts.offset)
        text = numpy.frombuffer(texts.buffers()[2], numpy.uint8)
        begin, end = bounds[:-1].astype(numpy.int64), bounds[1:].astype(numpy.int64)
        dash = begin + texts[0].as_py().find(
            b"-"
        )  # where it is in the first id; ids of a page mostly are of one length
        if (dash < end).all() and (text.take(dash) == DASH).all():
            ms, seq = numbers(text, begin, dash), numbers(text, dash + 1, end)
            if ms is not None and seq is not None:
                return ms, seq
    found = [ids.parse(one) for one in texts.to_pylist()]
    return (_integers([one >> 64 for one in found]), _integers([one & ids.HALF for one in found]))


def _integers(values: list[int]) -> Any:
    return numpy.array(values, numpy.uint64 if max(values, default=0) >= 2**63 else numpy.int64)
