"""A whole RDB file, in pieces that are worth a write."""

from collections.abc import Iterator
from typing import Final

from penstock.storage.chunks import in_chunks
from penstock.storage.keyspace import Keyspace
from penstock.storage.rdb import crc64, rdb_format
from penstock.storage.rdb.string_writer import length
from penstock.storage.rdb.value_writer import ValueWriter, version_needed
from penstock.storage.types.bitmaps import Bitmap

NEEDED_FOR_LIBRARIES: Final = rdb_format.OF_REDIS["7.0"]


def version_for(keyspace: Keyspace, wanted: int, field_times: bool = True) -> int:
    """The version that is wanted, or the lowest higher one that has everything.  O(keys)."""
    needed = [version_needed(value, field_times) for db in keyspace.databases for value in db.values.values()]
    return max([wanted, NEEDED_FOR_LIBRARIES if keyspace.libraries else 0, *needed])


class RdbWriter:
    """One writing. `keys` were written so far; those past their time, too: the reader leaves them out if it may."""

    __slots__ = ("_aux", "_keyspace", "_sums", "_values", "keys")

    def __init__(self, keyspace: Keyspace, values: ValueWriter, aux: list[tuple[bytes, bytes]], sums: bool) -> None:
        """aux: names and values for the file's head; sums: with a checksum."""
        self._keyspace = keyspace
        self._values = values
        self._aux = aux
        self._sums = sums
        self.keys = 0

    @property
    def version(self) -> int:
        return self._values.version

    def chunks(self) -> Iterator[bytes]:
        """The file's bytes."""
        summed = 0
        for chunk in in_chunks(self._parts()):
            if self._sums:
                summed = crc64.checksum(chunk, summed)
            yield chunk
        yield crc64.footer(summed if self._sums else crc64.NOT_COMPUTED)

    def _parts(self) -> Iterator[bytes]:
        writer = self._values
        string = writer.strings.string
        yield rdb_format.MAGIC + b"%04d" % writer.version
        for name, text in self._aux:
            yield bytes((rdb_format.AUX,)) + string(name) + string(text)
        for code in self._keyspace.libraries.values():
            yield bytes((rdb_format.FUNCTION,)) + string(code)
        for index, db in enumerate(self._keyspace.databases):
            if not db.values:
                continue
            yield bytes((rdb_format.SELECT_DB,)) + length(index)
            yield bytes((rdb_format.RESIZE_DB,)) + length(len(db.values)) + length(len(db.expires))
            for key, value in db.values.items():
                self.keys += 1
                if isinstance(value, Bitmap):
                    yield bytes((rdb_format.AUX,)) + string(rdb_format.BITMAP_FIELD) + string(b"1")
                when_ms = db.expires.get(key)
                if when_ms is not None:
                    yield bytes((rdb_format.EXPIRE_MS,)) + when_ms.to_bytes(8, "little")
                kind = writer.kind(value)
                yield bytes((kind,)) + string(key)
                yield from writer.parts(value, kind)
        yield bytes((rdb_format.EOF,))
