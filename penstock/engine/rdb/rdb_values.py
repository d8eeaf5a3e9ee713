"""The part of this server that RDB's readers and writers need: its settings, and how an entry is encoded."""

from typing import Final

from penstock.config.settings import Settings
from penstock.engine import encodings
from penstock.engine.rdb import native_node_writer, native_nodes
from penstock.native.build import IS_COMPILED
from penstock.protocol import entries
from penstock.storage.keyspace import Value
from penstock.storage.rdb import lzf, rdb_format
from penstock.storage.rdb.stream_reader import StreamDefaults
from penstock.storage.rdb.stream_writer import EntryForms
from penstock.storage.rdb.value_writer import ValueWriter, version_needed
from penstock.storage.streams.listpack_nodes import StreamLimits
from penstock.storage.types.hashes import Hash
from penstock.storage.types.lists import List
from penstock.storage.types.sets import Set
from penstock.storage.types.sorted_sets import SortedSet

ZERO: Final = 0.0


def stream_defaults(settings: Settings, limits: StreamLimits) -> StreamDefaults:
    """`limits` are shared by all streams of an engine."""
    duration_s, max_size = settings.number("stream-idmp-duration"), settings.number("stream-idmp-maxsize")
    read_node = native_nodes.read_node if IS_COMPILED else None
    return StreamDefaults(limits, duration_s, max_size, entries.encode_columns, read_node)


def version_of(settings: Settings) -> int:
    """The RDB version that rdb-compat-version asks for."""
    return rdb_format.OF_REDIS[settings.text("rdb-compat-version")]


def _new_writer(version: int, settings: Settings, most: int) -> ValueWriter:
    """most: bytes that it compresses, where rdbcompression says that it does."""
    forms = EntryForms(entries.fields_of, native_node_writer.write_node if IS_COMPILED else None)
    return ValueWriter(version, most if settings.yes("rdbcompression") else 0, forms)


def writer_of_files(settings: Settings, version: int) -> ValueWriter:
    """In plain Python a file is not compressed: 100 bytes would take 28 us, several times what saving them takes."""
    return _new_writer(version, settings, lzf.UNLIMITED if IS_COMPILED else 0)


def writer_of_payloads(settings: Settings, value: Value) -> ValueWriter:
    """A writer of the version that is asked for, or the lowest higher one that has everything of this value."""
    return _new_writer(max(version_of(settings), version_needed(value)), settings, lzf.MOST_OF_PAYLOAD)


def fit_to_settings(value: Value, settings: Settings) -> None:
    """Take note in a collection that was read whether Redis would keep it in its large form."""
    if isinstance(value, List):
        value.choose_form(settings.number("list-max-listpack-size"))
    if isinstance(value, Hash):
        value.choose_form(*map(settings.number, encodings.HASH_LIMITS))
    if isinstance(value, Set):
        value.choose_form(encodings.set_limits(settings))
    if not isinstance(value, SortedSet):
        return
    most, longest = map(settings.number, encodings.ZSET_LIMITS)
    if len(value) > most or any(len(one) > longest for one in value.members()):
        value.is_large = True
        return
    for member in [member for member, score in value.scores().items() if not score]:
        value.put_over(member, ZERO, ZERO)  # a small set knows no -0
