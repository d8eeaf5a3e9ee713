"""Payloads as real servers answered them: DUMP on Redis 8.6.3 and Valkey 9.1.2, and some of 5.0 to 7.2 by hand."""

from typing import Final

STREAM: Final = (
    "1a0110000000000000000100000000000000014055550000001f000301010102018161028162020001020100010001010185"
    "68656c6c6f0605010301000101010201817802050100010101dfff020101856f74686572060101060102010201dfff020901"
    "8179020501ff0303000101010204010167010202020000000000000001000000000000000"
    "10d0f5f01a201000001000000000000000100000000000000020d0f5f01a201000001020263310d0f5f01a20100000d0f5f01"
    "a20100000200000000000000010000000000000001000000000000000100000000000000020263320d0f5f01a2010000ffffff"
    "ffffffffff00406440640000000d007e0f9de1e0ad71c3"
)

# The requests that made a value on Redis 8.6.3, and what DUMP answered.
OF_REDIS: Final[dict[str, tuple[str, str]]] = {
    "a number of a byte": ("SET k 5", "00 c005 0d00 c186d6d5849ac491"),
    "a number of two bytes": ("SET k -300", "00 c1d4fe 0d00 646d0f90f90ba9ee"),
    "a number of four bytes": ("SET k 100000", "00 c2a0860100 0d00 538d8ae3689ad1b4"),
    "a text": ("SET k hello", "00 05 68656c6c6f 0d00 c1db56c5628157ca"),
    "a text that compression makes four bytes shorter": (
        "SET k 44444460444446044607319",
        "00 17 3434343434343630343434343436303434363037333139 0d00 56ea33b9a8fcca56",
    ),
    "a text that compression makes seven bytes shorter": (
        "SET k 44444444444444abcdefgh",
        "00 c3 0f 16 013434e003000761626364656667 68 0d00 b9b60b5efb2cdc4f",
    ),
    "a set of integers": (
        "SADD k 1 2 300",
        "0b 0e 02000000 03000000 0100 0200 2c01 0d00 47b93b3d7c205e6a",
    ),
    "a sorted set": (
        "ZADD k 1 a 2.5 b inf c",
        "11 1c 1c000000 0600 816102 0101 816202 83322e3504 816302 83696e6604 ff 0d00 c9b4576fef57b459",
    ),
    "a hash": ("HSET k f v g 12", "10 12 12000000 0400 816602 817602 816702 0c01 ff 0d00 7cbab020f036f6be"),
    "a hash with a field's time": (
        "HSET k f v g 12|HPEXPIREAT k 4102444800000 FIELDS 1 f",
        "19 00d8c32cbb030000 1e 1e000000 0600 816602 817602 f400d8c32cbb03000009 816702 0c01 0001 ff 0d00"
        " 3746e9eee9277d49",
    ),
}

# What a writer may well write otherwise: compressed, in another order, or with what no request can say again.
ONLY_READ: Final[dict[str, tuple[str, str]]] = {
    "a set": ("SADD k a b 3", "14 0f 0f000000 0300 816102 816202 0301 ff 0d00 d977a6b63a669a47"),
    "a compressed text": ("SET k " + "a" * 100, "00 c3 09 4064 016161 e05700 016161 0d00 4a0a3cb4b7d885b1"),
    "a list": (
        "RPUSH k a 1 300 -5 70000 " + "x" * 70,
        "12 01 02 c3 20 40 60 186000000006008161020101c12c02dffb02f270110104e04678e03c000148ff 0d00 f386812367fee840",
    ),
    "a large hash with a field's time": (
        "HSET k f " + "z" * 65 + " g 1|HPEXPIREAT k 4102444800000 FIELDS 1 f",
        "18 00d8c32cbb030000 02 00 0167 c001 01 0166 c3094041017a7ae03400017a7a 0d00 d0f10fb087f1dc96",
    ),
    "a large sorted set": (
        "ZADD k 1 " + "y" * 65 + " 2.5 b",
        "05 02 0162 0000000000000440 c3094041017979e034000179 79 000000000000f03f 0d00 5d3bad7e78aa8f1c",
    ),
    "a hash of Valkey 9": (
        "HSET k f v g 12|HPEXPIREAT k 4102444800000 FIELDS 1 f",
        "16 02 0166 0176 00d8c32cbb030000 0167 c00c ffffffffffffffff 5000 1c9c7bd825fee16c",
    ),
    "a number without a checksum": ("SET k 5", "00 c005 0d00 0000000000000000"),
    "a value after a module's metadata": ("SET k 5", "f3 00 00 c005 0d00 0000000000000000"),
    "bytes behind the value": ("SET k 5", "00 c005 ffff 0d00 0000000000000000"),
}

# Bodies of older versions, made by hand; the checksum is left out.
OLD: Final[dict[str, tuple[str, str]]] = {
    "a linked list": ("RPUSH k a 12", "01 02 0161 c00c 0600"),
    "a list as ziplist": (
        "RPUSH k a 12 -1 1024",
        "0a 17 17000000 12000000 0400 00 0161 03 fd 02 feff 03 c00004 ff 0600",
    ),
    "a quicklist of ziplists": ("RPUSH k a", "0e 01 0e 0e000000 0a000000 0100 00 0161 ff 0900"),
    "a set's hash table": ("SADD k a b", "02 02 0161 0162 0600"),
    "a sorted set with text scores": ("ZADD k 1.5 a inf b -inf c", "03 03 0161 03312e35 0162 fe 0163 ff 0600"),
    "a sorted set as ziplist": ("ZADD k 2 a", "0c 10 10000000 0d000000 0200 00 0161 03 f3 ff 0600"),
    "a hash as zipmap": ("HSET k a 1 b xy", "09 0e 02 01610100 31 01 62 02 01 7879 2e ff 0600"),
    "a hash as ziplist": ("HSET k a 1", "0d 10 10000000 0d000000 0200 00 0161 03 f2 ff 0600"),
    "a hash table": ("HSET k a 1", "04 01 0161 c001 0600"),
    "times of release candidates": ("HSET k a 1|HPEXPIREAT k 4102444800000 FIELDS 1 a",
        "16 01 81000003bb2cc3d800 0161 c001 0c00"),
    "a hash of fields and values": ("HSET k a 1 b 2", "1f 02 0161 c001 0162 c002 0f00"),
}  # fmt: skip

REFUSED_BODIES: Final[dict[str, str]] = {
    "nothing": "",
    "an empty list": "01 00",
    "an empty set": "02 00",
    "an empty hash": "04 00",
    "an empty sorted set": "05 00",
    "an empty quicklist": "12 00",
    "a quicklist of an empty listpack": "12 01 02 07 07000000 0000 ff",
    "an empty listpack": "10 07 07000000 0000 ff",
    "a member twice": "02 02 0161 0161",
    "a field twice": "04 02 0161 0162 0161 0162",
    "a field twice in a listpack": "10 13 13000000 0400 816102 0101 816102 0101 ff",
    "a hash of three elements": "10 0f 0f000000 0300 816102 0101 816202 ff",
    "a score that is no number": "05 01 0161 000000000000f87f",
    "a score that is a word": "11 0e 0e000000 0200 816102 83782e35 04 ff",
    "integers out of order": "0b 0c 02000000 02000000 0200 0100",
    "integers doubled": "0b 0c 02000000 02000000 0100 0100",
    "integers of three bytes": "0b 0e 03000000 02000000 010000 020000",
    "a module's value": "07 81bde72da2bb1eb400 0201 00",
    "a module's value of release candidates": "06 81bde72da2bb1eb400",
    "an unused type": "08 0161",
    "an unknown type": "63 0161",
    "an array with an item twice": "1c 02 00 00 00 0161 00 00 0162",
    "an item of an array of an unknown kind": "1c 01 00 00 04 0161",
    "an unknown container": "12 01 03 0161",
    "a listpack that is longer than it says": "10 0f 0e000000 0200 816102 817602 00 ff",
    "a listpack of a wrong count": "10 0d 0d000000 0300 816102 817602 ff",
    "a wrong length behind an element": "10 0d 0d000000 0200 816103 817602 ff",
    "an element that reaches beyond": "10 0d 0d000000 0200 816102 897602 ff",
    "a listpack's element of no encoding": "10 0d 0d000000 0200 816102 f57602 ff",
    "a text that is longer than the payload": "00 81ffffffffffffffff 61",
    "a list of more items than bytes": "01 81ffffffffffffffff 0161",
    "a compressed text of 2^60 bytes": "00 c3 02 811000000000000000 0161",
    "a compressed text from before its start": "00 c3 05 14 0061e05700",
    "a compressed text that is shorter": "00 c3 03 03 016161",
    "a length that is none": "00 8261",
    "fields out of the order of their times": (
        "19 0100000000000000 16 16000000 0600 816102 0101 0501 816202 0101 0401 ff"
    ),
    "a field's negative time": "16 01 81ffffffffffffffff 0161 0162",
    "a ziplist that ends elsewhere": "0a 0e 0e000000 0b000000 0100 00 0161 ff",
    "a zipmap without its last value": "09 05 01 01 61 ff ff",
}

REFUSED_STREAMS: Final[dict[str, tuple[str, str]]] = {
    # what is replaced in STREAM, and by what
    "flags of no meaning": ("0102010001000101018568", "0106010001000101018568"),
    "an element count that is wrong": ("18568656c6c6f06050103", "18568656c6c6f06040103"),
    "counts that are wrong": ("1f00030101010201", "1f00020101010201"),
    "a consumer's entry that the group has not": (
        "02000000000000000100000000000000010000000000000001000000000000000202633",
        "02000000000000000100000000000000010000000000000001000000000000000302633",
    ),
    "a consumer twice": ("0263320d0f", "0263310d0f"),
}


def unspaced(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))
