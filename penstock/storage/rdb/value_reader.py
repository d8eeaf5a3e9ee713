"""One value, by its type's number."""

from collections.abc import Callable
from typing import Final, TypeAlias

from penstock.storage.keyspace import Value
from penstock.storage.rdb import collection_reader as collections
from penstock.storage.rdb import rdb_format
from penstock.storage.rdb.array_codec import array_of
from penstock.storage.rdb.errors import BadRdb
from penstock.storage.rdb.source import Source
from penstock.storage.rdb.stream_reader import StreamDefaults, StreamReader

ReadValue: TypeAlias = Callable[[Source], Value]


def string(source: Source) -> Value:
    return source.string()


READERS: Final[dict[int, ReadValue]] = {
    rdb_format.STRING: string,
    rdb_format.LIST: collections.linked_list,
    rdb_format.SET: collections.plain_set,
    rdb_format.ZSET_TEXT: collections.text_sorted_set,
    rdb_format.HASH: collections.plain_hash,
    rdb_format.ZSET: collections.sorted_set,
    rdb_format.HASH_ZIPMAP: collections.zipmap_hash,
    rdb_format.LIST_ZIPLIST: collections.ziplist_list,
    rdb_format.SET_INTSET: collections.intset_set,
    rdb_format.ZSET_ZIPLIST: collections.ziplist_sorted_set,
    rdb_format.HASH_ZIPLIST: collections.ziplist_hash,
    rdb_format.QUICKLIST: collections.quicklist,
    rdb_format.HASH_LISTPACK: collections.listpack_hash,
    rdb_format.ZSET_LISTPACK: collections.listpack_sorted_set,
    rdb_format.QUICKLIST_2: collections.quicklist_2,
    rdb_format.SET_LISTPACK: collections.listpack_set,
    rdb_format.HASH_TIMES_PRE_GA: collections.timed_hash_pre_ga,
    rdb_format.HASH_TIMES_LISTPACK_PRE_GA: collections.timed_listpack_hash_pre_ga,
    rdb_format.HASH_TIMES: collections.timed_hash,
    rdb_format.HASH_TIMES_LISTPACK: collections.timed_listpack_hash,
    rdb_format.ARRAY: array_of,
    rdb_format.HASH_FIELDS_LISTPACK: collections.hash_of_fields,
    rdb_format.HASH_FIELDS: collections.plain_hash,
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
