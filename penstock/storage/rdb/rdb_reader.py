"""A whole RDB file, record by record."""

from typing import Final

from penstock.storage.keyspace import Value
from penstock.storage.rdb import crc64, rdb_format, value_reader
from penstock.storage.rdb.collection_reader import hash_of_template, strings
from penstock.storage.rdb.errors import BadRdb, EmptyValue, correction, in_key
from penstock.storage.rdb.listpack import texts
from penstock.storage.rdb.source import FileSource
from penstock.storage.rdb.stream_reader import StreamDefaults, StreamReader
from penstock.storage.types import bitmaps

NOT_GIVEN: Final = -1  # no time of expiry

# What `step` met
KEY: Final = 1  # `key` and `value` are read, with what stood before them
EMPTY_KEY: Final = 2  # a key without a value, which is left out
LIBRARY: Final = 3  # `library` is read
OTHER: Final = 4  # nothing that is kept, or a part of a large stream
END: Final = 5


class RdbReader:
    """One reading. `step` until it answers END; what it met stands in the fields until the next step.

    expires_ms: the key's time of expiry in unix ms, or NOT_GIVEN. is_blessed: the key is never evicted.
    left_out: names of modules with data that was passed.
    corrections: what was wrong in the key's value, and was put right; `corrected` has the sentence.
    BadRdb says what is wrong, in which key, at which byte. Cost: O(size of the file), one step a key, or a node.
    """

    __slots__ = (
        "_defaults", "_expires_ms", "_is_blessed", "_stream", "_templates", "aux", "corrections", "db_index",
        "expires_ms", "is_blessed", "is_valkey", "key", "left_out", "library", "source", "value", "verifies", "version",
    )  # fmt: skip

    def __init__(self, source: FileSource, defaults: StreamDefaults, verifies: bool) -> None:
        """verifies: whether the checksum at the end is compared."""
        self.source = source
        self.verifies = verifies
        self._defaults = defaults
        self._stream: StreamReader | None = None
        self._templates: dict[int, list[bytes]] = {}
        self._expires_ms = NOT_GIVEN  # of the key that is to come
        self._is_blessed = False  # the same
        self.version = 0
        self.is_valkey = False
        self.aux: dict[bytes, bytes] = {}
        self.left_out: list[str] = []
        self.corrections: list[str] = []
        self.db_index = 0
        self.key = b""
        self.value: Value = b""
        self.expires_ms = NOT_GIVEN
        self.is_blessed = False
        self.library = b""

    def begin(self) -> None:
        """Read the header; BadRdb where this is no file that can be read here."""
        header = self.source.take(rdb_format.HEADER_BYTES) if self.source.left() else b""
        self.is_valkey = header.startswith(rdb_format.VALKEY_MAGIC)
        magic = rdb_format.VALKEY_MAGIC if self.is_valkey else rdb_format.MAGIC
        digits = header[len(magic) :]
        if not header.startswith(magic) or not digits.isdigit():
            raise BadRdb("it is no RDB file: its first bytes are not REDIS or VALKEY and a version")
        self.version = int(digits)
        newest = rdb_format.VALKEY if self.is_valkey else rdb_format.NEWEST
        if self.version > newest or not self.version:
            of = "Valkey's RDB version" if self.is_valkey else "RDB version"
            raise BadRdb(f"its {of} {self.version} is not known here, {newest} is the newest that is")

    def step(self) -> int:
        """Read a record; what it was."""
        at = self.source.position()
        try:
            if self._stream is not None:
                return self._read_on(self._stream)
            kind = self.source.byte()
            if kind < rdb_format.LOWEST_OPCODE:
                return self._read_key(kind)
            return self._opcode(kind)
        except EmptyValue:
            return EMPTY_KEY
        except BadRdb as problem:
            raise BadRdb(f"{problem} (the record at byte {at})") from None

    # -- keys -------------------------------------------------------------------------------------------------------

    def _read_key(self, kind: int) -> int:
        self.key = self.source.string()
        self.expires_ms, self._expires_ms = self._expires_ms, NOT_GIVEN
        self.is_blessed, self._is_blessed = self._is_blessed, False
        stream: StreamReader | None = None
        try:
            if kind in rdb_format.STREAMS:
                stream = StreamReader(self.source, kind, self._defaults)
            else:
                self.value = self._value(kind)
                if self.aux.pop(rdb_format.BITMAP_FIELD, b"") and isinstance(self.value, bytes):
                    self.value = bitmaps.of_text(self.value)
        except EmptyValue:
            raise
        except BadRdb as problem:
            raise self._in_key(problem) from None
        if stream is not None:
            return self._read_on(stream)
        self.corrections = self.source.take_corrections()
        return KEY

    def _read_on(self, stream: StreamReader) -> int:
        """A node of a stream, or what follows the last one."""
        self._stream = None
        try:
            if stream.nodes_left:
                stream.read_node()
                self._stream = stream
                return OTHER
            self.value = stream.finished()
        except BadRdb as problem:
            raise self._in_key(problem) from None
        self.corrections = self.source.take_corrections()
        return KEY

    def _in_key(self, problem: BadRdb) -> BadRdb:
        return BadRdb(f"{in_key(self.key, self.db_index)}: {problem}")

    def corrected(self) -> str:
        """A sentence about the corrections in the last key; empty if there were none."""
        return correction(self.key, self.db_index, self.corrections) if self.corrections else ""

    def _value(self, kind: int) -> Value:
        source = self.source
        if not self.is_valkey:
            if kind == rdb_format.HASH_TEMPLATE_LISTPACK:
                number, *values = texts(source.string()) or [b""]
                return hash_of_template(self._template(int(number) if number.isdigit() else -1), values)
            if kind == rdb_format.HASH_TEMPLATE_VALUES:
                fields = self._template(source.length())
                return hash_of_template(fields, [source.string() for _ in fields])
        return value_reader.read_value(source, kind, self.is_valkey, self._defaults)

    def _template(self, number: int) -> list[bytes]:
        fields = self._templates.get(number)
        if fields is None:
            raise BadRdb("a hash of a template that the file has not")
        return fields

    # -- other records ----------------------------------------------------------------------------------------------

    def _opcode(self, kind: int) -> int:
        source = self.source
        if kind == rdb_format.EOF:
            return self._end()
        if kind == rdb_format.FUNCTION:
            self.library = source.string()
            return LIBRARY
        if kind == rdb_format.SELECT_DB:
            self.db_index = source.length()
        elif kind == rdb_format.EXPIRE_MS:
            self._expires_ms = max(source.signed(8), 0)
        elif kind == rdb_format.EXPIRE_S:
            self._expires_ms = max(source.signed(4), 0) * 1000
        elif kind == rdb_format.RESIZE_DB:
            source.length()
            source.length()
        elif kind == rdb_format.AUX:
            name = source.string()
            self.aux[name] = source.string()
        elif kind == rdb_format.FREQUENCY:
            source.byte()
        elif kind == rdb_format.IDLE_S:
            source.length()
        elif kind == rdb_format.MODULE_AUX:
            self.left_out.append(rdb_format.module_name(source.length()))
            for _ in range(2):  # a number that says when it was written
                source.length()
            value_reader.skip_module_values(source)
        elif kind == rdb_format.SLOT_INFO:
            for _ in range(3):
                source.length()
        elif kind == rdb_format.VALKEY_SLOT_IMPORT and self.is_valkey:
            source.string()
            for _ in range(2 * source.count(2)):
                source.length()
        elif kind == rdb_format.KEY_META and not self.is_valkey:
            self.left_out += [f"class {name}" for name in value_reader.skip_key_meta(source)]
        elif kind == rdb_format.KEY_NO_EVICT and not self.is_valkey:
            self._is_blessed = True
        elif kind == rdb_format.HASH_TEMPLATE and not self.is_valkey:
            self._templates[source.length()] = strings(source)
        elif kind == rdb_format.FUNCTION_PRE_GA:
            raise BadRdb("a library of functions in the form of Redis 7.0's release candidates")
        else:
            raise BadRdb(f"the byte {kind} begins no record")
        return OTHER

    def _end(self) -> int:
        if self.version >= rdb_format.CHECKSUM_SINCE:
            made = self.source.checksum()
            stored = int.from_bytes(self.source.take(crc64.CHECKSUM_BYTES), "little")
            if self.verifies and stored not in (crc64.NOT_COMPUTED, made):
                raise BadRdb("the checksum at its end is another one than its bytes have")
        return END
