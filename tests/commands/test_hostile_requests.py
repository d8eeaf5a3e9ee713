"""Requests that are meant to harm, refused in the words of a real Redis. docs/security.md names them."""

import shlex

import pytest

from tests.support.dialogue import Dialogue
from tests.support.wire import Connection, parse

PATIENCE_S = 60.0
LARGEST = "9223372036854775807"
LEAST = "-9223372036854775808"

NUMBERS = [
    "SETRANGE k 536870912 x", "SETRANGE k -1 x", f"SETRANGE k {LARGEST} x", "SETBIT k 4294967296 1", "SETBIT k -1 1",
    "BITFIELD k SET u8 #536870912 1", "BITFIELD k GET u64 0", "BITFIELD k SET i65 0 1", "LPOP l -1", f"LPOP l {LEAST}",
    f"HRANDFIELD h {LEAST}", f"SRANDMEMBER s {LEAST}", f"ZRANDMEMBER z {LEAST} WITHSCORES", f"SPOP s {LEAST}",
    f"SINTERCARD {LARGEST} a", f"ZUNION {LARGEST} a", "ZUNION 0 a", f"LMPOP {LARGEST} a LEFT", "LMPOP 1 a LEFT COUNT 0",
    f"ZMPOP {LARGEST} a MIN", f"EVAL 'return 1' {LARGEST}", "SCAN 0 COUNT 0", "SCAN x", f"EXPIRE k {LARGEST}",
    f"PEXPIRE k {LARGEST}", f"SET k v EX {LARGEST}", f"SET k v PX {LARGEST}", f"XREAD BLOCK {LARGEST} STREAMS s $",
    "XREAD COUNT 1 BLOCK -1 STREAMS s $", "BLPOP k 1e300", "BLPOP k nan", "BLPOP k -1", f"CLIENT PAUSE {LARGEST}",
    "SELECT 100000", "SELECT -1", "GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1e400 km", "GEOADD g 181 0 m",
    "GEOADD g nan 0 m", f"INCRBY n {LARGEST}", "INCRBYFLOAT n inf", "HINCRBYFLOAT h f nan", "ZADD z nan m",
    "ZINCRBY z nan m", "XADD x 18446744073709551616-0 f v", "XADD x MAXLEN -1 * f v",
    "XADD x MAXLEN ~ 5 LIMIT -1 * f v",
    f"SORT l LIMIT {LARGEST}0 1", "LPOS l x RANK 0", f"LPOS l x RANK {LEAST}", "LPOS l x COUNT -1",
    "CLIENT TRACKING ON REDIRECT 999999", "CLIENT KILL ID 0", "CLIENT UNBLOCK x", "SLOWLOG GET -2", "RESTORE r -1 x",
    "COPY a b DB 999", "MOVE a 999", "SWAPDB 0 999", "OBJECT FREQ k", "REPLICAOF 127.0.0.1 99999", "WAIT -1 0",
    "HEXPIRE h -1 FIELDS 1 f", f"HEXPIRE h {LARGEST} FIELDS 1 f", f"HEXPIRE h 1 FIELDS {LARGEST} f",
    "LOLWUT VERSION x", "GETRANGE k x 1", "BITCOUNT k x 1", "BITPOS k 2",
]  # fmt: skip
NAMES = [
    ["CLIENT", "SETNAME", "a b"], ["CLIENT", "SETNAME", "a\nb"], ["CLIENT", "SETINFO", "LIB-NAME", "a b"],
    ["ACL", "SETUSER", "a b"], ["ACL", "SETUSER", "a\0b"], ["ACL", "SETUSER", "u", "+@nosuch"],
    ["ACL", "SETUSER", "u", "#00"], ["FUNCTION", "LOAD", "#!lua name=a b\nreturn 1"], ["CONFIG", "SET", "dir", "/tmp"],
    ["CONFIG", "SET", "dbfilename", "x"], ["CONFIG", "SET", "enable-debug-command", "no"],
    ["CONFIG", "SET", "appenddirname", "../x"], ["MODULE", "LOAD", "/tmp/x.so"], ["SHUTDOWN", "FOO"],
]  # fmt: skip
SCRIPTS = [
    "return os.execute('id')", "return io", "return require('os')", "return debug.getinfo(1)", "return package.path",
    "return dofile('/etc/passwd')", "return loadfile('/etc/passwd')", "x = 1", "return x", "redis.call = nil",
    "string.rep = nil", "getmetatable('').__index = nil", "setmetatable(_G, nil)", "rawset(_G, 'x', 1)",
    "return struct.pack('>I100', 1)", "return {err = 'x\\r\\n+OK'}", "return {ok = 'x\\r\\n+OK'}",
    "return redis.error_reply('a\\r\\nb')", "local t = {} for i = 1, 2000 do t = {t} end return cjson.encode(t)",
    "return cjson.decode(string.rep('[', 2000))", "local a = {} a[1] = a return cmsgpack.pack(a)",
    "return redis.call('EVAL', 'return 1', 0)", "return redis.call('SHUTDOWN')", "return redis.call('MULTI')",
    "return redis.call('SUBSCRIBE', 'c')", "return redis.call('DEBUG', 'SEGFAULT')",
    "return redis.call('BLPOP', 'l', 0)", "return redis.call('CONFIG', 'SET', 'dir', '/tmp')",
    "return redis.call()", "return redis.call('nosuch')",
    "return redis.log(9, 'x')", "return redis.setresp(9)", "return loadstring('return os')().execute",
]  # fmt: skip


def answers(dialogue: Dialogue, port: int, words: list[str]) -> tuple[object, object]:
    """Of both servers, each reply with its type."""
    with Connection("127.0.0.1", port, PATIENCE_S) as client:
        client.ask("FLUSHALL")
        theirs = client.ask(*words)
    return parse(dialogue.words(*[word.encode() for word in words]))[0], theirs


@pytest.mark.parametrize("line", NUMBERS)
def test_a_number_out_of_range_is_refused_as_in_redis(dialogue: Dialogue, reference_port: int, line: str) -> None:
    ours, theirs = answers(dialogue, reference_port, shlex.split(line))

    assert ours == theirs


@pytest.mark.parametrize("words", NAMES, ids=repr)
def test_a_name_or_a_file_that_may_not_be_is_refused_as_in_redis(
    dialogue: Dialogue, reference_port: int, words: list[str]
) -> None:
    ours, theirs = answers(dialogue, reference_port, words)

    assert ours == theirs


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_gets_out_of_nothing_and_is_told_so_as_in_redis(
    dialogue: Dialogue, reference_port: int, script: str
) -> None:
    ours, theirs = answers(dialogue, reference_port, ["EVAL", script, "0"])

    assert ours == theirs
