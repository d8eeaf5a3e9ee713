"""Redis's snapshot format (RDB): versions, opcodes and value types by name. Start reading here.

A file is a magic, records, the byte EOF and a checksum. A record is an opcode with its content, or a value type, a key
and a value. What DUMP answers is a value type, a value, a version and a checksum. Numbers are little-endian unless a
name says otherwise. The facts were seen on Redis 8.6.3 and Valkey 9.1.2, those of 8.8 to 8.12 read only.

`source.py` has lengths and strings, `value_reader.py` and `value_writer.py` one value, `rdb_reader.py` and
`rdb_writer.py` a whole file, `dump_payload.py` what DUMP answers.
"""

from typing import Final

MAGIC: Final = b"REDIS"
VALKEY_MAGIC: Final = b"VALKEY"
HEADER_BYTES: Final = 9  # the magic and the version's digits: four of REDIS, three of VALKEY

# -- versions ---------------------------------------------------------------------------------------------------------

NEWEST: Final = 17  # that is read: Redis 8.12, as far as its formats are known
NEWEST_WRITTEN: Final = 15  # Redis 8.10
VALKEY: Final = 80  # Valkey 9: type 22 and opcode 243 mean other things there
CHECKSUM_SINCE: Final = 5

OF_REDIS: Final = {
    "5.0": 9, "6.0": 9, "6.2": 9, "7.0": 10, "7.2": 11, "7.4": 12, "8.0": 12, "8.2": 12, "8.4": 12, "8.6": 13,
    "8.8": 14, "8.10": NEWEST_WRITTEN, "8.12": NEWEST_WRITTEN,
}  # fmt: skip  # the newest version that each reads of those that are written here

# -- opcodes ----------------------------------------------------------------------------------------------------------

EOF: Final = 255
SELECT_DB: Final = 254
EXPIRE_S: Final = 253
EXPIRE_MS: Final = 252
RESIZE_DB: Final = 251
AUX: Final = 250
BITMAP_FIELD: Final = b"penstock-bitmap"  # stands before a string that is a native bitmap; a Redis skips it
FREQUENCY: Final = 249
IDLE_S: Final = 248
MODULE_AUX: Final = 247
FUNCTION_PRE_GA: Final = 246
FUNCTION: Final = 245
SLOT_INFO: Final = 244
KEY_META: Final = 243  # Redis 8.6
VALKEY_SLOT_IMPORT: Final = 243
HASH_TEMPLATE: Final = 242
KEY_NO_EVICT: Final = 241  # Redis 8.12
LOWEST_OPCODE: Final = KEY_NO_EVICT

# -- value types ------------------------------------------------------------------------------------------------------

STRING: Final = 0
LIST: Final = 1
SET: Final = 2
ZSET_TEXT: Final = 3
HASH: Final = 4
ZSET: Final = 5
MODULE_PRE_GA: Final = 6
MODULE: Final = 7
HASH_ZIPMAP: Final = 9
LIST_ZIPLIST: Final = 10
SET_INTSET: Final = 11
ZSET_ZIPLIST: Final = 12
HASH_ZIPLIST: Final = 13
QUICKLIST: Final = 14
STREAM: Final = 15
HASH_LISTPACK: Final = 16
ZSET_LISTPACK: Final = 17
QUICKLIST_2: Final = 18
STREAM_2: Final = 19
SET_LISTPACK: Final = 20
STREAM_3: Final = 21
HASH_TIMES_PRE_GA: Final = 22
VALKEY_HASH_TIMES: Final = 22
HASH_TIMES_LISTPACK_PRE_GA: Final = 23
HASH_TIMES: Final = 24
HASH_TIMES_LISTPACK: Final = 25
STREAM_4: Final = 26
STREAM_5: Final = 27
ARRAY: Final = 28
HASH_FIELDS_LISTPACK: Final = 29
HASH_TEMPLATE_LISTPACK: Final = 30
HASH_FIELDS: Final = 31
HASH_TEMPLATE_VALUES: Final = 32

STREAMS: Final = frozenset({STREAM, STREAM_2, STREAM_3, STREAM_4, STREAM_5})

PLAIN_NODE: Final = 1  # in QUICKLIST_2: the node's string is one item
PACKED_NODE: Final = 2  # a listpack of items

# -- modules ----------------------------------------------------------------------------------------------------------

MODULE_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
MODULE_END: Final = 0
MODULE_SIGNED: Final = 1
MODULE_UNSIGNED: Final = 2
MODULE_FLOAT: Final = 3
MODULE_DOUBLE: Final = 4
MODULE_STRING: Final = 5


def module_name(module_id: int) -> str:
    """The nine letters of a module type's 64-bit id; its low ten bits are the encoding's version.

    >>> module_name(0xBDE72DA2BB1EB400)
    'vectorset'
    """
    return "".join([MODULE_LETTERS[module_id >> shift & 63] for shift in range(58, 4, -6)])
