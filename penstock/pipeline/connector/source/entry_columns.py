"""Pages of entries as Arrow record batches, with the columns and types of the schema."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy
import pyarrow
import pyarrow.compute as compute

from penstock.pipeline.connector import schemas
from penstock.pipeline.connector.source.entry_pages import DASH, Page, numbers
from penstock.pipeline.connector.source.payload_options import PayloadOptions
from penstock.pipeline.connector.source.payloads import Payloads
from penstock.pipeline.connector.source.text_values import Texts
from penstock.pipeline.errors import OptionError, PipelineError
from penstock.storage.streams import ids

LATEST_MS: Final = 2**63 // 1000 - 1  # the last moment that Spark's microseconds hold; an id may be far beyond


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a page comes from: the stream of each reply, and delivery counts by id if the schema asks for them."""

    endpoint: str
    streams: tuple[bytes, ...]
    deliveries: dict[bytes, int] | None = None


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
        self._texts = Texts(fail_fast, replace_bad_text)
        self._payloads: Payloads | None = None
        self._decoded: tuple[Any, Any] | None = None  # the page's payloads as columns, and what is corrupt
        if payload is not None:
            members = [column for column in schema if column.name not in (*_METADATA, schemas.FIELDS, schemas.CORRUPT)]
            self._payloads = Payloads(payload, members, fail_fast)
        self._builders = [self._builder(column) for column in schema]

    def wants(self, name: str) -> bool:
        return name in self.schema.names

    def batch(self, page: Page, origin: Origin) -> Any:
        if self._payloads is not None:
            self._decoded = self._payloads.decode(field_of(page, self._payloads.field.encode()))
        arrays = [build(page, origin) for build in self._builders]
        self._decoded = None
        return pyarrow.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _builder(self, column: Any) -> Builder:
        name, kind = column.name, column.type
        if name in _METADATA:
            allowed, build = _METADATA[name]
            if not any(kind.equals(one) for one in allowed):
                raise OptionError(f"the column {name!r} is to be {' or '.join(map(str, allowed))}, not {kind}")
            return lambda page, origin: build(page, origin, kind)
        if name == schemas.FIELDS and pyarrow.types.is_map(kind):
            return self._map_builder(kind)
        if name == schemas.FIELDS and pyarrow.types.is_list(kind):
            return self._list_builder(kind)
        if self._payloads is not None:
            return self._payload_builder(name, kind)
        if pyarrow.types.is_nested(kind):
            raise OptionError(
                f"the column {name!r} cannot be {kind}: 'fields' may be map<string,string>, map<string,binary>, "
                "map<binary,binary> or array<struct<name,value>>; every other column is one field's text"
            )
        wanted = name.encode()
        return lambda page, origin: self._texts.cast(field_of(page, wanted), kind, name)

    def _payload_builder(self, name: str, kind: Any) -> Builder:
        if name != schemas.CORRUPT:
            return lambda page, origin: self._payload_columns()[0].field(name)
        _text_or_bytes(kind, "values of the column '_corrupt'")
        return lambda page, origin: self._texts.cast(self._payload_columns()[1], kind, name)

    def _payload_columns(self) -> tuple[Any, Any]:
        assert self._decoded is not None, "batch() decodes first"
        return self._decoded

    def _map_builder(self, kind: Any) -> Builder:
        for part in (kind.key_type, kind.item_type):
            _text_or_bytes(part)

        def build(page: Page, origin: Origin) -> Any:
            names = self._texts.cast(page.texts(page.name_at), kind.key_type, "fields")
            values = self._texts.cast(page.texts(page.value_at), kind.item_type, "fields")
            return pyarrow.MapArray.from_arrays(pyarrow.array(page.offsets), names, values, kind)

        return build

    def _list_builder(self, kind: Any) -> Builder:
        pair = kind.value_type
        if not pyarrow.types.is_struct(pair) or pair.num_fields != 2:
            raise OptionError(f"the column 'fields' as a list is to be array<struct<name,value>>, not {kind}")
        for part in pair:
            _text_or_bytes(part.type)

        def build(page: Page, origin: Origin) -> Any:
            names = self._texts.cast(page.texts(page.name_at), pair[0].type, "fields")
            values = self._texts.cast(page.texts(page.value_at), pair[1].type, "fields")
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


# -- metadata columns -------------------------------------------------------------------------------------


def _stream(page: Page, origin: Origin, kind: Any) -> Any:
    names = pyarrow.array(origin.streams, pyarrow.binary())
    if kind == pyarrow.string():
        try:
            names = names.cast(kind)
        except pyarrow.ArrowInvalid:
            raise PipelineError("a key is not UTF-8: declare the column _stream binary") from None
    return names.take(pyarrow.array(numpy.repeat(numpy.arange(len(page.counts)), page.counts)))


def _endpoint(page: Page, origin: Origin, kind: Any) -> Any:
    return pyarrow.repeat(pyarrow.scalar(origin.endpoint, kind), len(page))


def _id(page: Page, origin: Origin, kind: Any) -> Any:
    return page.texts(page.id_at).cast(kind)


def _ms(page: Page, origin: Origin, kind: Any) -> Any:
    return pyarrow.array(halves(page)[0]).cast(kind)


def _seq(page: Page, origin: Origin, kind: Any) -> Any:
    return pyarrow.array(halves(page)[1]).cast(kind)


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
    return (
        _integers([one >> 64 for one in found]),
        _integers([one & ids.HALF for one in found]),
    )


def _integers(values: list[int]) -> Any:
    return numpy.array(values, numpy.uint64 if max(values, default=0) >= 2**63 else numpy.int64)
