"""Bodies at the edge of what RDB's readers take: what Penstock does with each, and what real servers answered.

The servers' answers are recorded in rdb_refusals.txt, with `sanitize-dump-payload` as it is by default and with `yes`:
`python -m tests.storage.rdb_refusals`. Whole files are there, too: whether the servers start with them. Penstock takes
what one of them takes when it checks, and refuses what both refuse; where it does otherwise, the case says why.
"""

import tempfile
from pathlib import Path
from typing import Final

from penstock.storage.rdb.rdb_format import STREAM, STREAM_4, STREAM_5
from penstock.storage.rdb.string_writer import length
from tests.support.compared_sides import Piped
from tests.support.rdb_bodies import (
    FAR_MS,
    NO_PRODUCERS,
    TIME_MS,
    blob,
    consumer,
    entry,
    group,
    hash_table,
    id_bytes,
    intset,
    listpack_of,
    node,
    payload,
    producer,
    producers,
    stream,
    text,
    timed,
    timed_table,
    ziplist,
)  # fmt: skip
from tests.support.reference_server import NoReference, reference_binary, reference_server

RECORDED: Final = Path(__file__).with_suffix(".txt")
SERVERS: Final = (("redis", "no"), ("redis", "yes"), ("valkey", "no"), ("valkey", "yes"))  # sanitize-dump-payload

TAKEN: Final = "taken"
REFUSED: Final = "refused"
DIES: Final = "dies"  # it takes the payload, and ends when that or the value is looked at
OK: Final = b"+OK\r\n"
BAD: Final = b"-ERR Bad data format\r\n"

LOOKS: Final = {
    b"stream": ("XINFO STREAM r FULL COUNT 0", "XRANGE r - +", "XREVRANGE r + -"),
    b"hash": ("HGETALL r",),
    b"list": ("LRANGE r 0 -1",),
    b"set": ("SMEMBERS r",),
    b"zset": ("ZRANGE r 0 -1 WITHSCORES",),
    b"string": ("GET r",),
}

# Why Penstock does not do what a server that checks does
NO_WRITER: Final = "no command of a released server makes it, and what it should mean is not known"
NOT_IN_A_LOG: Final = "XADD wants a field and a value, so that no log could hold the entry"
LIKE_STRTOD: Final = "no server writes such a score: they read it as what strtod makes of it"
LATER: Final = "Redis 8.8 writes it"
FOOTER: Final = "they read on in the footer; in a file the next record would be read as the text"

P: Final = [((1, 1), TIME_MS, 1)]  # 1-1 is pending
OWN: Final = [consumer([(1, 1)])]  # and c has it
GONE: Final = entry(0, flags=3), entry(1, flags=3)

Case = tuple[str, str, bytes, str]  # name, what Penstock does, body, why that is not what a server that checks does


def one_node(*elements: bytes | int) -> bytes:
    return stream([((1, 1), listpack_of(*elements))], entries=1, last=(1, 1))


STREAMS: Final[list[Case]] = [
    ("a length that is too large", TAKEN, stream(entries=4), ""),
    ("a length that is too small", TAKEN, stream(entries=2), ""),
    ("a length of 0", TAKEN, stream(entries=0), ""),
    ("a length of 2^64-1", TAKEN, stream(entries=(1 << 64) - 1), ""),
    ("a length of a stream of Redis 5", TAKEN, stream(entries=4, kind=STREAM), ""),
    ("a length without nodes", REFUSED, stream([], entries=3), ""),
    ("a node without live entries",
        TAKEN, stream([((1, 1), node(GONE)), ((2, 1), node([entry(0)]))], entries=1, last=(2, 1)), ""),
    ("a last node without live entries",
        TAKEN, stream([((0, 1), node([entry(0)])), ((1, 1), node(GONE))], entries=1, last=(1, 2)), ""),
    ("no node with live entries", TAKEN, stream([((1, 1), node(GONE))], entries=0), ""),
    ("a node without entries", TAKEN, stream([((1, 1), node([]))], entries=0), ""),
    ("a node of an empty listpack",
        REFUSED, stream([((1, 1), listpack_of()), ((2, 1), node([entry(0)]))], entries=1, last=(2, 1)), ""),
    ("a node with one live entry too many",
        REFUSED, stream([((1, 1), node([entry(0), entry(1), entry(2)], live=4))]), ""),
    ("a node with one live entry too few",
        REFUSED, stream([((1, 1), node([entry(0), entry(1), entry(2)], live=2))]), ""),
    ("a node with one deleted entry too many",
        REFUSED, stream([((1, 1), node([entry(0), entry(1), entry(2)], deleted=1))]), ""),
    ("a node with less than no deleted entries",
        REFUSED, stream([((1, 1), node([entry(0), entry(1), entry(2)], deleted=-1))]), ""),
    ("a live entry that is counted as deleted",
        TAKEN, stream([((1, 1), node([entry(0), entry(1), entry(2)], live=2, deleted=1))]), ""),
    ("entries without fields", REFUSED, one_node(1, 0, 0, 0, 2, 0, 0, 3), NOT_IN_A_LOG),
    ("an entry of its own without fields", REFUSED, one_node(1, 0, 1, b"f", 0, 0, 0, 0, 0, 4), NOT_IN_A_LOG),
    ("a negative number of fields",
        REFUSED, one_node(1, 0, -1, 0, 0, 0, 0, 1, b"f", b"v", 6), "Redis ends, Valkey refuses"),
    ("an entry of its own with a negative number of fields",
        REFUSED, one_node(1, 0, 1, b"f", 0, 0, 0, 0, -1, 2), "Redis ends, Valkey refuses"),
    ("a master entry that ends otherwise", REFUSED, one_node(1, 0, 1, b"f", 5, 2, 0, 0, b"v", 4), ""),
    ("a count that is a text", REFUSED, one_node(b"x", 0, 1, b"f", 0, 2, 0, 0, b"v", 4), ""),
    ("flags that are a text", REFUSED, one_node(1, 0, 1, b"f", 0, b"x", 0, 0, b"v", 4), ""),
    ("a distance that is a text", REFUSED, one_node(1, 0, 1, b"f", 0, 2, b"x", 0, b"v", 4), ""),
    ("an entry that is cut off", REFUSED, one_node(1, 0, 1, b"f", 0, 2, 0, 0), ""),
    ("an entry of another number of elements", REFUSED, one_node(1, 0, 1, b"f", 0, 2, 0, 0, b"v", 3), ""),
    ("a flag of no meaning", REFUSED, one_node(1, 0, 1, b"f", 0, 6, 0, 0, b"v", 4), NO_WRITER),
    ("entries out of order", REFUSED, stream([((1, 1), node([entry(1), entry(0), entry(2)]))]), NO_WRITER),
    ("an entry twice", REFUSED, stream([((1, 1), node([entry(0), entry(1), entry(1)]))]), NO_WRITER),
    ("a deleted entry above the next one",  # XADD, XDEL, XSETID, XADD of Redis 5.0 to 6.2
        TAKEN, stream([((1, 1), node([entry(0), entry(5, flags=3), entry(2)]))], entries=2), ""),
    ("an entry below its node's id", TAKEN, stream([((1, 2), node([entry(-1), entry(0), entry(1)]))]), ""),
    ("nodes out of order",
        REFUSED, stream([((2, 1), node([entry(0)])), ((1, 1), node([entry(0)]))], entries=2, last=(2, 1)), NO_WRITER),
    ("a node twice", REFUSED, stream([((1, 1), node([entry(0)]))] * 2, entries=2), ""),
    ("nodes that overlap",
        REFUSED, stream([((1, 1), node([entry(0), entry(2)])), ((1, 2), node([entry(0)]))]), NO_WRITER),
    ("nodes that overlap by a deleted entry",
        TAKEN, stream([((1, 1), node([entry(0), entry(2, flags=3)])), ((1, 2), node([entry(0)]))], entries=2), ""),
    ("a node's id of 15 bytes", REFUSED, b"\x15\x01" + blob(bytes(15)) + blob(node([entry(0)])) + bytes(9), ""),
    ("a last id below the last entry", TAKEN, stream(last=(1, 2)), ""),
    ("fewer entries added than there are", TAKEN, stream(added=2), ""),
    ("more entries added than a reply can tell", TAKEN, stream(added=1 << 63), ""),  # XSETID ENTRIESADDED 2^63-1, XADD
    ("another first id", TAKEN, stream(first=(9, 9)), ""),
    ("a deleted id above the last one", TAKEN, stream(max_deleted=(9, 9)), ""),
    ("a group twice", REFUSED, stream(groups=[group(), group()]), ""),
    ("a group ahead of the stream", TAKEN, stream(groups=[group(last=(9, 9))]), ""),
    ("a group that read more than was added", TAKEN, stream(groups=[group(entries_read=50)]), ""),
    ("a group that read 2^63 entries", TAKEN, stream(groups=[group(entries_read=1 << 63)]), ""),
    ("a pending entry twice", REFUSED, stream(groups=[group(P + P, OWN)]), ""),
    ("a pending entry of no consumer", REFUSED, stream(groups=[group(P, [consumer()])]), ""),
    ("a pending entry of two consumers",
        REFUSED, stream(groups=[group(P, [*OWN, consumer([(1, 1)], b"d")])]), NO_WRITER),
    ("a pending entry twice at its consumer", REFUSED, stream(groups=[group(P, [consumer([(1, 1), (1, 1)])])]), ""),
    ("a consumer's entry that the group has not", REFUSED, stream(groups=[group(P, [consumer([(1, 2)])])]), ""),
    ("a consumer twice", REFUSED, stream(groups=[group(P, [*OWN, consumer()])]), ""),
    ("a pending entry above the last id",
        TAKEN, stream(groups=[group([((7, 0), TIME_MS, 1)], [consumer([(7, 0)])])]), ""),
    ("a delivery before 1970", TAKEN, stream(groups=[group([((1, 1), -5, 1)], OWN)]), ""),
    ("a delivery of the future", TAKEN, stream(groups=[group([((1, 1), 1 << 62, 1)], OWN)]), ""),
    ("2^63 deliveries", TAKEN, stream(groups=[group([((1, 1), TIME_MS, 1 << 63)], OWN)]), ""),
    ("a consumer that was seen before 1970", TAKEN, stream(groups=[group(P, [consumer([(1, 1)], seen_ms=-5)])]), ""),
    ("a consumer that was active before 1970",
        TAKEN, stream(groups=[group(P, [consumer([(1, 1)], active_ms=-2)])]), ""),
    ("producers of the longest time and most ids", TAKEN, stream(kind=STREAM_4, behind=producers(86400, 10000)), ""),
    ("producers of a longer time", REFUSED, stream(kind=STREAM_4, behind=producers(86401, 100)), ""),
    ("producers of more ids", REFUSED, stream(kind=STREAM_4, behind=producers(100, 10001)), ""),
    ("producers of no time", REFUSED, stream(kind=STREAM_4, behind=producers(0, 100)), ""),
    ("producers of no ids", REFUSED, stream(kind=STREAM_4, behind=producers(100, 0)), ""),
    ("a producer twice",
        REFUSED, stream(kind=STREAM_4, behind=producers(100, 100, producer(b"p", b"i"), producer(b"p", b"j"))), ""),
    ("a producer's id twice",
        REFUSED, stream(kind=STREAM_4, behind=producers(100, 100, producer(b"p", b"i", b"i"))), NO_WRITER),
    ("a producer of none", TAKEN, stream(kind=STREAM_4, behind=producers(100, 100, producer(b"p"))), ""),
    ("more ids of a producer than are kept",
        TAKEN, stream(kind=STREAM_4, behind=producers(100, 1, producer(b"p", b"i", b"j"))), ""),
    ("2^64-1 ids counted", TAKEN, stream(kind=STREAM_4, behind=NO_PRODUCERS[:-2] + 2 * length((1 << 64) - 1)), ""),
    ("released entries", TAKEN, stream(kind=STREAM_5, groups=[group(behind=length(0))], behind=NO_PRODUCERS), LATER),
    ("a released entry that the group has not", REFUSED,
        stream(kind=STREAM_5, groups=[group(behind=length(1) + id_bytes((1, 1)))], behind=NO_PRODUCERS), ""),
]  # fmt: skip

STRINGS: Final[list[Case]] = [
    ("a text that is longer than the payload", REFUSED, b"\x00\x05a", FOOTER),
    ("a length of no encoding", REFUSED, b"\x00\x82a", ""),
    ("a text of no encoding", REFUSED, b"\x00\xc4a", ""),
    ("a list of more items than bytes", REFUSED, b"\x01\x81" + b"\xff" * 8 + b"\x01a", ""),
    ("a compressed text of no bytes", REFUSED, b"\x00\xc3\x02\x00\x00a", NO_WRITER),
    ("a compressed text that is shorter", REFUSED, b"\x00\xc3\x03\x03\x01aa", ""),
    ("a compressed text that is longer", REFUSED, b"\x00\xc3\x03\x01\x01aa", ""),
    ("a compressed text from before its start", REFUSED, b"\x00\xc3\x05\x14\x00a\xe0\x57\x00", ""),
    ("a module's value", REFUSED, bytes.fromhex("0781bde72da2bb1eb400020100"), ""),
    ("a module's value of release candidates", REFUSED, bytes.fromhex("0681bde72da2bb1eb400"), ""),
    ("a module's metadata of a key", TAKEN, b"\xf3\x01AAAA\x00\x00\xc0\x05", ""),
    ("a module's metadata of no opcode", REFUSED, b"\xf3\x01AAAA\x09\x00\xc0\x05", ""),
    ("an unused type", REFUSED, b"\x08\x01a", ""),
    ("an unknown type", REFUSED, b"\x63\x01a", ""),
    ("nothing", REFUSED, b"", ""),
]

BLOBS: Final[list[Case]] = [
    ("a listpack of a larger size", REFUSED, b"\x10" + blob(listpack_of(b"a", b"b", size=15)), ""),
    ("a listpack of a smaller size", REFUSED, b"\x10" + blob(listpack_of(b"a", b"b", size=12)), ""),
    ("a listpack without an end", REFUSED, b"\x10" + blob(listpack_of(b"a", b"b")[:-1] + b"\x00"), ""),
    ("a listpack of too many elements", REFUSED, b"\x10" + blob(listpack_of(b"a", b"b", count=3)), ""),
    ("a listpack of too few elements", REFUSED, b"\x10" + blob(listpack_of(b"a", b"b", count=1)), ""),
    ("a listpack that is not counted", TAKEN, b"\x10" + blob(listpack_of(b"a", b"b", count=65535)), ""),
    ("an element of no encoding", REFUSED, bytes.fromhex("100d0d0000000200816102f57602ff"), ""),
    ("an element that is cut off", REFUSED, bytes.fromhex("100d0d0000000200816102897602ff"), ""),
    ("an element of a wrong length behind it", REFUSED, bytes.fromhex("100d0d0000000200816103817602ff"), ""),
    ("an integer in a longer form", TAKEN, bytes.fromhex("100d0d0000000200816102c00102ff"), ""),
    ("an integer as a text", TAKEN, bytes.fromhex("100d0d0000000200816102813102ff"), ""),
    ("a text in a longer form", TAKEN, bytes.fromhex("1011110000000200816102f0010000006106ff"), ""),
    ("a ziplist of another size", REFUSED, b"\x0a" + blob(ziplist(text(b"a"), size=15)), ""),
    ("a ziplist of another count", REFUSED, b"\x0a" + blob(ziplist(text(b"a"), count=2)), ""),
    ("a ziplist that is not counted", TAKEN, b"\x0a" + blob(ziplist(text(b"a"), count=65535)), ""),
    ("a ziplist that ends elsewhere", REFUSED, b"\x0a" + blob(ziplist(text(b"a"), last_at=11)), ""),
    ("an empty ziplist that ends elsewhere",
        REFUSED, b"\x0e\x02" + blob(ziplist(last_at=0)) + blob(ziplist(text(b"a"))), NO_WRITER),
    ("a ziplist without an end", REFUSED, b"\x0a" + blob(ziplist(text(b"a"))[:-1] + b"\x00"), ""),
    ("a wrong length before an entry", REFUSED, bytes.fromhex("0a11110000000d0000000200000161020161ff"), ""),
    ("a long length before a short entry",
        TAKEN, b"\x0a" + blob(bytes.fromhex("150000000d0000000200000161fe030000000161ff")), ""),
    ("an entry of no encoding", REFUSED, b"\x0a" + blob(ziplist(b"\xc1a")), ""),
    ("an entry of a spare encoding", REFUSED, b"\x0a" + blob(ziplist(b"\x81\x00\x00\x00\x01a")), NO_WRITER),
    ("an entry that is cut off in a ziplist", REFUSED, b"\x0a" + blob(ziplist(b"\x05a")), ""),
    ("a zipmap", TAKEN, b"\x09" + blob(b"\x01\x01a\x01\x001\xff"), ""),
    ("a zipmap that is not counted", TAKEN, b"\x09" + blob(b"\xfe\x01a\x01\x001\xff"), ""),
    ("a zipmap of 255 fields", REFUSED, b"\x09" + blob(b"\xff\x01a\x01\x001\xff"), ""),
    ("a zipmap of another count", REFUSED, b"\x09" + blob(b"\x02\x01a\x01\x001\xff"), ""),
    ("a zipmap's length in a form that is longer than it must be",
        REFUSED, b"\x09" + blob(b"\x01\xfe\x01\x00\x00\x00a\x01\x001\xff"), ""),
    ("a zipmap's value of 253 bytes in the long form",
        REFUSED, b"\x09" + blob(b"\x01\x01a\xfe\xfd\x00\x00\x00\x00" + b"x" * 253 + b"\xff"), ""),
    ("a zipmap's value of 254 bytes",
        TAKEN, b"\x09" + blob(b"\x01\x01a\xfe\xfe\x00\x00\x00\x00" + b"x" * 254 + b"\xff"), ""),
    ("a zipmap without an end", REFUSED, b"\x09" + blob(b"\x01\x01a\x01\x001\x00"), ""),
    ("a zipmap without its last value", REFUSED, b"\x09" + blob(b"\x01\x01a\xff"), ""),
    ("a zipmap's value that is cut off", REFUSED, b"\x09" + blob(b"\x01\x01a\x05\x001\xff"), ""),
    ("a zipmap with more unused bytes than there are", REFUSED, b"\x09" + blob(b"\x01\x01a\x01\x051\xff"), ""),
    ("a set of integers of three bytes", REFUSED, b"\x0b" + blob(intset(3, 1, 2)), ""),
    ("a set of integers of another size", REFUSED, b"\x0b" + blob(intset(2, 1, 2, count=3)), ""),
    ("integers out of order", REFUSED, b"\x0b" + blob(intset(2, 2, 1)), ""),
    ("an integer twice", REFUSED, b"\x0b" + blob(intset(2, 1, 1)), ""),
    ("integers that are wider than they must be", TAKEN, b"\x0b" + blob(intset(8, 1, 2)), ""),
]  # fmt: skip

COLLECTIONS: Final[list[Case]] = [
    ("a list's node of no kind", REFUSED, b"\x12\x01\x03\x01a", ""),
    ("an empty list", REFUSED, b"\x01\x00", ""),
    ("a list of an empty listpack", REFUSED, b"\x12\x01\x02" + blob(listpack_of()), ""),
    ("a list that begins with an empty listpack", TAKEN, b"\x12\x02\x02" + blob(listpack_of()) + b"\x01\x01x", ""),
    ("an empty set", REFUSED, b"\x02\x00", ""),
    ("a member twice", REFUSED, b"\x02\x02\x01a\x01a", ""),
    ("a member twice in a listpack", REFUSED, b"\x14" + blob(listpack_of(b"a", b"a")), ""),
    ("an empty set in a listpack", REFUSED, b"\x14" + blob(listpack_of()), ""),
    ("an empty hash", REFUSED, b"\x04\x00", ""),
    ("a field twice", REFUSED, b"\x04\x02\x01a\x01b\x01a\x01b", ""),
    ("a field twice in a large hash", REFUSED, hash_table(*[b"f%d" % at for at in range(600)], b"f1"), ""),
    ("a field twice in a listpack", REFUSED, b"\x10" + blob(listpack_of(b"a", 1, b"a", 2)), ""),
    ("a field twice in a ziplist", REFUSED, b"\x0d" + blob(ziplist(*map(text, (b"a", b"b", b"a", b"c")))), ""),
    ("a field without a value", REFUSED, b"\x10" + blob(listpack_of(b"a", 1, b"b")), ""),
    ("a field without a value in a ziplist", REFUSED, b"\x0d" + blob(ziplist(*map(text, (b"a", b"b", b"c")))), ""),
    ("an empty hash in a listpack", REFUSED, b"\x10" + blob(listpack_of()), ""),
    ("an empty sorted set", REFUSED, b"\x05\x00", ""),
    ("a score that is no number", REFUSED, b"\x05\x01\x01a" + bytes.fromhex("000000000000f87f"), ""),
    ("a member of two scores", REFUSED, b"\x05\x02\x01a" + bytes(8) + b"\x01a" + bytes(8), ""),
    ("a member of two scores in a listpack", REFUSED, b"\x11" + blob(listpack_of(b"a", 1, b"a", 2)), ""),
    ("scores out of order", TAKEN, b"\x11" + blob(listpack_of(b"a", 2, b"b", 1)), ""),
    ("a member without a score", REFUSED, b"\x11" + blob(listpack_of(b"a", 1, b"b")), ""),
    ("a score that is a word", REFUSED, b"\x11" + blob(listpack_of(b"a", b"x.5")), LIKE_STRTOD),
    ("a score that is a word in a ziplist", REFUSED, b"\x0c" + blob(ziplist(text(b"a"), text(b"x"))), LIKE_STRTOD),
    ("a score of nan", REFUSED, b"\x11" + blob(listpack_of(b"a", b"nan")), LIKE_STRTOD),
    ("a hexadecimal score", REFUSED, b"\x11" + blob(listpack_of(b"a", b"0x10")), LIKE_STRTOD),
    ("a score of Infinity", REFUSED, b"\x11" + blob(listpack_of(b"a", b"Infinity")), LIKE_STRTOD),
    ("a score behind a space", REFUSED, b"\x11" + blob(listpack_of(b"a", b" 1.5")), LIKE_STRTOD),
    ("a score with a letter behind it", REFUSED, b"\x11" + blob(listpack_of(b"a", b"1.5x")), LIKE_STRTOD),
    ("a score of no letters", REFUSED, b"\x11" + blob(listpack_of(b"a", b"")), LIKE_STRTOD),
    ("a score above all numbers", TAKEN, b"\x11" + blob(listpack_of(b"a", b"1e999")), ""),
    ("a score of -0", TAKEN, b"\x0c" + blob(ziplist(text(b"a"), text(b"-0"))), ""),
    ("a text score of nan", REFUSED, b"\x03\x01\x01a\xfd", ""),
    ("a text score that is a word", REFUSED, b"\x03\x01\x01a\x01x", ""),
    ("a hexadecimal text score", REFUSED, b"\x03\x01\x01a\x040x10", LIKE_STRTOD),
    ("a field's time of the year 4199", TAKEN, timed(b"a", 1, (1 << 46) - 1), ""),
    ("a field's time that no command of Redis sets", TAKEN, timed(b"a", 1, 1 << 46), ""),
    ("a field's time that Redis does not load", REFUSED, timed(b"a", 1, 1 << 48), ""),
    ("a field's time before 1970", REFUSED, timed(b"a", 1, -5), ""),
    ("a field's time that is a text", REFUSED, timed(b"a", 1, b"x"), ""),
    ("a field without a time", REFUSED, timed(b"a", 1, FAR_MS, b"b"), ""),
    ("another earliest time", TAKEN, timed(b"a", 1, FAR_MS, earliest_ms=5), ""),
    ("fields out of the order of their times", REFUSED, timed(b"a", 1, FAR_MS + 5, b"b", 2, FAR_MS), ""),
    ("a field of two times", REFUSED, timed(b"a", 1, FAR_MS, b"a", 2, FAR_MS), ""),
    ("no fields with times", REFUSED, timed(), ""),
    ("a hash table's time that no command of Redis sets", TAKEN, timed_table(1 << 47, 1), ""),
    ("a hash table's time that Redis does not load", REFUSED, timed_table(1 << 60, 1), ""),
    ("a hash table's time before 1970", REFUSED, timed_table(-5, 1), ""),
    ("a hash table's time that is beyond 64 bits",
        REFUSED, timed_table(FAR_MS, (1 << 64) - 1), "it is a time before the earliest one"),
    ("a time of release candidates that is too late", REFUSED, b"\x16\x01" + length(1 << 50) + b"\x01a\x01b", ""),
]  # fmt: skip

CASES: Final = STREAMS + STRINGS + BLOBS + COLLECTIONS

# -- whole files ------------------------------------------------------------------------------------------------------


def rdb(*records: bytes, head: bytes = b"REDIS0011", end: bytes = b"\xff" + bytes(8)) -> bytes:
    """A file with a checksum that says that none was computed."""
    return head + b"".join(records) + end


A_KEY: Final = b"\x00\x01a\x011"
MODULE_DATA: Final = b"\xf7\x81" + bytes.fromhex("bde72da2bb1eb400") + b"\x02\x01"  # of `vectorset`, before the keys
NEWER: Final = "the newest that is known here is 15"

FILES: Final[list[Case]] = [
    ("a file of a key", TAKEN, rdb(A_KEY), ""),
    ("a file of version 0", REFUSED, rdb(A_KEY, head=b"REDIS0000"), ""),
    ("a file of version 1", TAKEN, rdb(A_KEY, head=b"REDIS0001", end=b"\xff"), ""),
    ("a file of version 14", TAKEN, rdb(A_KEY, head=b"REDIS0014"), NEWER),
    ("a file of version 18", REFUSED, rdb(A_KEY, head=b"REDIS0018"), ""),
    ("a file of Valkey 9", TAKEN, rdb(A_KEY, head=b"VALKEY080"), ""),
    ("a file of a later Valkey", REFUSED, rdb(A_KEY, head=b"VALKEY081"), ""),
    ("a file of nothing", REFUSED, b"", ""),
    ("a file that is none", REFUSED, rdb(A_KEY, head=b"NOSUCH011"), ""),
    ("a file that is cut off", REFUSED, rdb(A_KEY)[:-9], ""),
    ("a file whose checksum is cut off", REFUSED, rdb(A_KEY)[:-3], ""),
    ("a file of a wrong checksum", REFUSED, rdb(A_KEY)[:-1] + b"x", ""),
    ("bytes behind the checksum", TAKEN, rdb(A_KEY) + b"more", ""),
    ("a key twice", REFUSED, rdb(A_KEY, A_KEY), ""),
    ("an empty collection", TAKEN, rdb(b"\x02\x01e\x00", A_KEY), ""),
    ("a database beyond `databases`", REFUSED, rdb(b"\xfe\x10", A_KEY), ""),
    ("a record of no kind", REFUSED, rdb(b"\xe0", A_KEY), ""),
    ("a library of a release candidate", REFUSED, rdb(b"\xf6\x01l", A_KEY), ""),
    ("a library that does not compile", REFUSED, rdb(b"\xf5" + blob(b"#!lua name=l\n("), A_KEY), ""),
    ("data of a module beside the keys",
        TAKEN, rdb(MODULE_DATA, b"\x02\x05\x00", A_KEY), "the keys are whole without it"),
    ("data of a module of no opcode", REFUSED, rdb(MODULE_DATA, b"\x09", A_KEY), ""),
    ("a time of expiry before 1970", TAKEN, rdb(b"\xfc" + b"\xff" * 8, A_KEY), ""),
    ("an unknown name beside the keys", TAKEN, rdb(b"\xfa\x06nosuch\x01v", A_KEY), ""),
    ("a stream that is counted wrongly", TAKEN, rdb(b"\x15\x01s" + stream(entries=5)[1:]), ""),
    ("a hash of a template that is not there", REFUSED, rdb(b"\x20\x01h\x07", head=b"REDIS0015"), ""),
]  # fmt: skip


def recorded() -> dict[str, list[str]]:
    """What the servers answered, in the order of SERVERS."""
    rows = [line.split(" | ") for line in RECORDED.read_text().splitlines() if line and not line.startswith("#")]
    return {row[0].strip(): [answer.strip() for answer in row[1:]] for row in rows}


def answers_of(kind: str, sanitizes: str) -> list[str]:
    """What a real server does with each body. One that ends is started again."""
    found: list[str] = []
    flags = ("--sanitize-dump-payload", sanitizes, "--crash-log-enabled", "no")
    while len(found) < len(CASES):
        with reference_server(*flags, binary=reference_binary(kind)) as port:
            client = Piped(port)
            try:
                while len(found) < len(CASES):
                    found.append(answer_of(client, CASES[len(found)][2]))
            except OSError:
                found.append(DIES)
            client.close()
    return found


def answer_of(client: Piped, body: bytes) -> str:
    client.ask("DEL", "r")
    client.send([[b"RESTORE", b"r", b"0", payload(body)]])
    answer = client.answer()
    if answer != OK:
        assert answer == BAD, answer
        return REFUSED
    client.send([["TYPE", "r"]])
    for line in LOOKS[client.answer()[1:-2]]:
        client.send([line.split()])
        client.answer()
    return TAKEN


def starts_of(kind: str, sanitizes: str) -> list[str]:
    """Whether a real server starts with each file."""
    return [start_of(kind, sanitizes, content) for _, _, content, _ in FILES]


def start_of(kind: str, sanitizes: str, content: bytes) -> str:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "dump.rdb").write_bytes(content)
        flags = ("--dir", folder, "--sanitize-dump-payload", sanitizes, "--crash-log-enabled", "no")
        try:
            with reference_server(*flags, binary=reference_binary(kind)):
                return TAKEN
        except NoReference:
            return REFUSED


def main() -> None:
    columns = [[*answers_of(*server), *starts_of(*server)] for server in SERVERS]
    lines = [f"# case | {' | '.join(f'{kind}, sanitize-dump-payload {sanitizes}' for kind, sanitizes in SERVERS)}"]
    rows = zip(CASES + FILES, zip(*columns, strict=True), strict=True)
    lines += [f"{case[0]} | {' | '.join(row)}" for case, row in rows]
    RECORDED.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
