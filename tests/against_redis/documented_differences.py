"""Rows of docs/differences.md that are a request and its reply, with the replies of both sides.

Requests are lines, as in a transcript. The last one's reply is compared; `ECHO next` shows a second reply to the one
before it.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Documented:
    """row: how the row's first cell begins. ours, theirs: how the last request's reply begins, or all of it."""

    row: str
    requests: tuple[str, ...]
    ours: bytes
    theirs: bytes


def script(row: str, code: str, ours: bytes, redis: bytes) -> Documented:
    return Documented(row, (f'EVAL "{code}" 0',), ours, redis)


NO_NUMBER: Final = b"-ERR user_script:1: attempt to perform arithmetic on a string value"

DOCUMENTED: Final = (
    Documented(
        "XTRIM, and XADD with a trim, with DELREF",
        (
            "XADD s 1-0 f v", "XADD s 2-0 f v", "XADD s 3-0 f v", "XGROUP CREATE s g 0",
            "XREADGROUP GROUP g c STREAMS s >", "XDEL s 1-0", "XTRIM s MAXLEN 1 DELREF", "XPENDING s g",
        ),
        b"*4\r\n:1\r\n$3\r\n3-0\r\n",
        b"*4\r\n:2\r\n$3\r\n1-0\r\n",
    ),
    Documented(
        "SET with IFEQ, IFNE, IFDEQ or IFDNE",
        ("SET k x", "SET k w IFEQ x XX"),
        b"-ERR syntax error\r\n",
        b"+OK\r\n",
    ),
    Documented(
        "CONFIG SET of one directive under its name and its alias",
        ("CONFIG SET list-max-listpack-size -2 list-max-ziplist-size -2",),
        b"-ERR CONFIG SET failed (possibly related to argument 'list-max-ziplist-size') - duplicate parameter\r\n",
        b"+OK\r\n",
    ),
    Documented(
        "LSET with an index beyond 32 bits",
        ("RPUSH l a", "LSET l 4294967296 b"),
        b"-ERR index out of range\r\n",
        b"+OK\r\n",
    ),
    Documented(
        "SET with GET and a digest of the wrong length",
        ("SET k v", "SET k w GET IFDEQ x", "ECHO next"),
        b"$4\r\nnext\r\n",
        b"-ERR",
    ),
    Documented(
        "CLIENT TRACKING ON BCAST with prefixes",
        ("CLIENT TRACKING ON BCAST PREFIX x PREFIX a PREFIX ab", "ECHO next"),
        b"$4\r\nnext\r\n",
        b"+OK\r\n",
    ),
    Documented(
        "PFDEBUG SIMD with another word",
        ("PFDEBUG SIMD x", "ECHO next"),
        b"$4\r\nnext\r\n",
        b"+enabled\r\n",
    ),
    Documented(
        "INFO keysizes after SETBIT or BITFIELD",
        ('SET k ""', "SETBIT k 0 1", "INFO keysizes"),
        b"$43\r\n# Keysizes\r\ndb0_distrib_strings_sizes:1=1\r\n",
        b"$43\r\n# Keysizes\r\ndb0_distrib_strings_sizes:0=1\r\n",
    ),
    Documented("MODULE LIST", ("MODULE LIST",), b"*0\r\n", b"*1\r\n"),
    Documented("an option with a zero byte", ("SET k v NX\0",), b"-ERR syntax error\r\n", b"+OK\r\n"),
    Documented(
        "SCRIPT DEBUG YES and SYNC",
        ("SCRIPT DEBUG YES",),
        b"-ERR this server has no debugger for scripts\r\n",
        b"+OK\r\n",
    ),
    Documented(
        "ACL: PFMERGE with a target only",
        ("COMMAND GETKEYS PFMERGE k",),
        b"*1\r\n$1\r\nk\r\n",
        b"-ERR Invalid arguments specified for command\r\n",
    ),
    Documented(
        "ACL, slots, COMMAND GETKEYS: keys after options",
        ("COMMAND GETKEYS GEORADIUS g 1 1 10 km STORE a STORE b",),
        b"*2\r\n$1\r\ng\r\n$1\r\nb\r\n",
        b"*2\r\n$1\r\ng\r\n$1\r\na\r\n",
    ),
    Documented(
        "REPLCONF version, which Valkey sends",
        ("REPLCONF version 9.1.0",),
        b"+OK\r\n",
        b"-ERR Unrecognized REPLCONF option: version\r\n",
    ),
    Documented("vector sets", ("VADD v VALUES 1 1 x",), b"-ERR unknown command 'VADD'", b":1\r\n"),
    script("nan joined to a text", "return 'a' .. 0/0", b"$4\r\nanan\r\n", b"$5\r\na-nan\r\n"),
    script("nan joined to a text", "return tostring(tonumber('nan'))", b"$4\r\n-nan\r\n", b"$3\r\nnan\r\n"),
    script("math.max and math.min", "return tostring(math.max(0/0, 1))", b"$1\r\n1\r\n", b"$4\r\n-nan\r\n"),
    script("numbers from 2^31 on", "return string.sub('abc', 2147483648)", b"$3\r\nabc\r\n", b"$0\r\n"),
    script("a text with an exponent", "return tostring('1e9999999' + 0)", NO_NUMBER, b"$3\r\ninf\r\n"),
    script("texts as numbers in arithmetic", "return tostring('0b1' + 1)", b"$1\r\n2\r\n", NO_NUMBER),
    script("a text that ends in a zero byte", "return '1\\0' + 1", NO_NUMBER, b":2\r\n"),
    script("`-0` written in a function", "local a, b = 0, -0 return tostring(b)", b"$2\r\n-0\r\n", b"$1\r\n0\r\n"),
    script(
        "string.dump",
        "return string.dump(function() end)",
        b"-ERR user_script:1: unable to dump given function",
        b"$77\r\n",
    ),
    script(
        "load(f) where f raises an error",
        "local f, e = load(function() error('x') end) return type(e)",
        b"$6\r\nstring\r\n",
        b"$5\r\ntable\r\n",
    ),
    script(
        "coroutine.yield in an iterator",
        "return coroutine.wrap(function() for x in function() coroutine.yield(5) end do end end)()",
        b":5\r\n",
        b"-ERR user_script:1: attempt to yield across metamethod/C-call boundary",
    ),
    script(
        "of several wrong arguments of bit.band",
        "return bit.band(1, 'x', 'y')",
        b"-ERR user_script:1: bad argument #2",
        b"-ERR user_script:1: bad argument #3",
    ),
    script("`#`, unpack, ipairs", "return #{1, nil, 2}", b":1\r\n", b":3\r\n"),
    script(
        "ipairs() without an argument",
        "return ipairs()",
        b"-ERR user_script:1: bad argument #1 to 'ipairs' (value expected)",
        b"-ERR user_script:1: bad argument #1 to 'ipairs' (table expected, got no value)",
    ),
    script(
        "ipairs() without an argument",
        "return struct.unpack('i4', 'abcdefgh', -0.5)",
        b"-ERR user_script:1: bad argument #2 to 'unpack' (data string too short)",
        b"-ERR user_script:1: bad argument #3 to 'unpack' (offset must be 1 or greater)",
    ),
)  # fmt: skip

OF_VALKEY: Final = (
    Documented("BITCOUNT with a start", ("SET k abc", "BITCOUNT k 1"), b"-ERR syntax error\r\n", b":7\r\n"),
    Documented(
        "GEOSEARCH BYPOLYGON",
        ("GEOADD g 1 2 a", "GEOSEARCH g BYPOLYGON 3 0 0 0 5 5 0"),
        b"-ERR syntax error\r\n",
        b"*1\r\n$1\r\na\r\n",
    ),
    Documented(
        "a search around a member",
        ("GEOADD g 1 2 a", "GEOSEARCH g FROMMEMBER b BYRADIUS 1 km"),
        b"-ERR could not decode requested zset member\r\n",
        b"-ERR member b does not exist\r\n",
    ),
    Documented(
        "coordinates in replies",
        ("GEOADD g 1 2 a", "GEOPOS g a"),
        b"*1\r\n*2\r\n$18\r\n0.9999999403953552\r\n",
        b"*1\r\n*2\r\n$19\r\n0.99999994039535522\r\n",
    ),
    Documented("hexadecimal numbers", ("ZADD z 0x10 a",), b":1\r\n", b"-ERR value is not a valid float\r\n"),
    Documented("SET with IFEQ given twice", ("SET k x IFEQ a IFEQ b",), b"$-1\r\n", b"-ERR syntax error\r\n"),
    Documented(
        "SET with IFEQ given twice",
        ("MSETEX x a b",),
        b"-ERR invalid numkeys value\r\n",
        b"-ERR invalid numkeys value or out of range\r\n",
    ),
    Documented(
        "GETEX of a key of another type",
        ("RPUSH l a", "GETEX l PX x"),
        b"-WRONGTYPE ",
        b"-ERR value is not an integer or out of range\r\n",
    ),
    Documented(
        "`import-mode yes`",
        ("CONFIG SET import-mode yes", "SET k 1 PXAT 1000", "DEL k"),
        b":0\r\n",
        b":1\r\n",
    ),
)  # fmt: skip
