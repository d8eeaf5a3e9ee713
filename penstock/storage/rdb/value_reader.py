"""One value, by its type's number."""

from collections.abc import Callable
from typing import Final, TypeAlias

from penstock.storage.keyspace import Value
from penstock.storage.rdb import collection_reader as collections
from penstock.storage.rdb import listpack, old_blobs, rdb_format
from penstock.storage.rdb.array_codec import array_of
from penstock.storage.rdb.collection_reader import hash_of, list_of, of_members_and_scores, set_of, strings
from penstock.storage.rdb.errors import BadRdb
from penstock.storage.rdb.source import Source
from penstock.storage.rdb.stream_reader import StreamDefaults, StreamReader

ReadValue: TypeAlias = Callable[[Source], Value]


READERS: Final[dict[int, ReadValue]] = {
    rdb_format.STRING: lambda source: source.string(),
    rdb_format.LIST: lambda source: list_of(strings(source)),
    rdb_format.SET: lambda source: set_of(strings(source)),
    rdb_format.ZSET_TEXT: collections.text_sorted_set,
    rdb_format.HASH: lambda source: hash_of(strings(source, 2)),
    rdb_format.ZSET: collections.sorted_set,
    rdb_format.HASH_ZIPMAP: lambda source: hash_of(old_blobs.zipmap(source.string())),
    rdb_format.LIST_ZIPLIST: lambda source: list_of(old_blobs.ziplist(source.string())),
    rdb_format.SET_INTSET: lambda source: set_of(old_blobs.intset(source.string())),
    rdb_format.ZSET_ZIPLIST: lambda source: of_members_and_scores(old_blobs.ziplist(source.string())),
    rdb_format.HASH_ZIPLIST: lambda source: hash_of(old_blobs.ziplist(source.string())),
    rdb_format.QUICKLIST: collections.quicklist,
    rdb_format.HASH_LISTPACK: lambda source: hash_of(listpack.texts(source.string())),
    rdb_format.ZSET_LISTPACK: lambda source: of_members_and_scores(listpack.texts(source.string())),
    rdb_format.QUICKLIST_2: collections.quicklist_2,
    rdb_format.SET_LISTPACK: collections.listpack_set,
    rdb_format.HASH_TIMES_PRE_GA: collections.timed_hash_pre_ga,
    rdb_format.HASH_TIMES_LISTPACK_PRE_GA: collections.timed_listpack_hash_pre_ga,
    rdb_format.HASH_TIMES: collections.timed_hash,
    rdb_format.HASH_TIMES_LISTPACK: collections.timed_listpack_hash,
    rdb_format.ARRAY: array_of,
    rdb_format.HASH_FIELDS_LISTPACK: collections.hash_of_fields,
    rdb_format.HASH_FIELDS: lambda source: hash_of(strings(source, 2)),
}


def read_value(source: Source, kind: int, is_valkey: bool, defaults: StreamDefaults) -> Value:
    """BadRdb where the value is damaged, or of a type that is not kept here."""
    if kind in rdb_format.STREAMS:
        reader = StreamReader(source, kind, defaults)
        while reader.nodes_left:
            reader.read_node()
        return reader.finished()
    if is_valkey and kind == rdb_format.VALKEY_HASH_TIMES:
        return collections.timed_hash_of_valkey(source)
    read = READERS.get(kind)
    if read is None:
        raise refusal_of(source, kind)
    return read(source)


def refusal_of(source: Source, kind: int) -> BadRdb:
    """Why a value of this type cannot be read."""
    if kind == rdb_format.MODULE:
        return BadRdb(
            f"a value of the module type {rdb_format.module_name(source.length())}, which Penstock does not have"
        )
    if kind == rdb_format.MODULE_PRE_GA:
        return BadRdb("a value of a module, in the form of Redis 4.0's release candidates")
    return BadRdb(f"a value of the unknown type {kind}")


def skip_module_values(source: Source) -> None:
    """Pass what a module wrote, which says itself what it is, up to its end."""
    while True:
        opcode = source.length()
        if opcode == rdb_format.MODULE_END:
            return
        if opcode in (rdb_format.MODULE_SIGNED, rdb_format.MODULE_UNSIGNED):
            source.length()
        elif opcode == rdb_format.MODULE_FLOAT:
            source.take(4)
        elif opcode == rdb_format.MODULE_DOUBLE:
            source.take(8)
        elif opcode == rdb_format.MODULE_STRING:
            source.string()
        else:
            raise BadRdb(f"a module's data has the unknown opcode {opcode}")


def skip_key_meta(source: Source) -> list[str]:
    """Pass what modules attached to a key (Redis 8.6); the classes that it was of."""
    names = []
    for _ in range(source.count(5)):
        names.append(source.take(4).hex())
        skip_module_values(source)
    return names
