"""OBJECT ENCODING after a history, as Redis 8.6.3 answered each of these."""

import pytest

from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, settings_with

LONG = "v" * 65
PAIRS = " ".join(f"f{number} v" for number in range(513))
FIELDS = " ".join(f"f{number}" for number in range(500))
NUMBERS = " ".join(map(str, range(513)))
NAMES = " ".join(f"m{number}" for number in range(150))
SCORES = " ".join(f"{number} m{number}" for number in range(129))

HISTORIES = [
    # strings
    ("SET k 12", "int"),
    ("SET k 12|APPEND k ''", "raw"),
    ("SET k ab|APPEND k c", "raw"),
    ("APPEND k 12", "int"),
    ("SET k 12|SETRANGE k 1 3", "raw"),
    ("SET k 12|SETRANGE k 1 ''", "int"),
    ("SETRANGE k 0 12", "raw"),
    ("SET k 12|SETBIT k 3 1", "raw"),
    ("SET k 12|BITFIELD k GET u8 0", "int"),
    ("SET k 12|BITFIELD k OVERFLOW FAIL INCRBY u8 0 255", "raw"),
    ("SET j 1|BITOP NOT k j", "raw"),
    ("PFADD k a", "raw"),
    ("SET k 12|APPEND k 3|INCR k", "int"),
    ("SET k 12|APPEND k 3|INCRBYFLOAT k 1", "embstr"),
    ("SET k 12|APPEND k 3|SET k 12", "int"),
    ("SET k 12|APPEND k 3|SETNX k 12", "raw"),
    ("SET j 12|APPEND j 3|COPY j k", "raw"),
    ("SET j 12|APPEND j 3|RENAME j k", "raw"),
    ("INCRBYFLOAT k 1|EXPIRE k 100|PERSIST k", "embstr"),
    ("INCRBYFLOAT j 1|RENAME j k", "embstr"),
    (f"SET {'j' * 20} {'v' * 40}|RENAME {'j' * 20} k", "raw"),
    (f"SET {'j' * 20} {'v' * 40}|COPY {'j' * 20} k", "raw"),
    ("SET k ab|APPEND k c|DEBUG RELOAD", "embstr"),
    ("INCRBYFLOAT k 1|DEBUG RELOAD", "int"),
    # hashes
    (f"HSET k {PAIRS}|HDEL k {FIELDS}", "hashtable"),
    (f"HSET k {'f v ' * 513}", "hashtable"),
    (f"HSET k f {LONG}|HSET k f v", "hashtable"),
    (f"HSET k f {LONG} g v|HDEL k f", "hashtable"),
    (f"HSET k g v|HSETNX k f {LONG}|HDEL k f", "hashtable"),
    (f"HSET j f {LONG} g w|HDEL j f|COPY j k", "hashtable"),
    (f"HSET k f {LONG} g w|HDEL k f|DEBUG RELOAD", "listpack"),
    ("HSET k f v g w|CONFIG SET hash-max-listpack-entries 1|HDEL k i", "listpack"),
    ("HSET k f v g w|CONFIG SET hash-max-listpack-entries 1|HINCRBY k i 1", "hashtable"),
    ("HSET k f v|HEXPIRE k 100 FIELDS 1 f|HPERSIST k FIELDS 1 f", "listpackex"),
    ("HSET k f v|HEXPIRE k 100 FIELDS 1 other", "listpackex"),
    ("HSET k f v|HGETEX k PERSIST FIELDS 1 f", "listpackex"),
    ("HSETEX k KEEPTTL FIELDS 1 f v", "listpack"),
    (f"HSETEX k EX 100 FIELDS 1 f {LONG}", "hashtable"),
    # lists
    (f"RPUSH k {'x' * 8180}", "listpack"),
    (f"RPUSH k {'x' * 8192}", "quicklist"),
    (f"RPUSH k {'x' * 8000}|RPUSH k {'x' * 180}", "quicklist"),
    (f"RPUSH k {'x' * 8000}|RPUSH k {'x' * 170}", "listpack"),
    (f"RPUSH k {'x' * 4080} {'x' * 6000}|RPOP k", "listpack"),
    (f"RPUSH k {'x' * 4090} {'x' * 6000}|RPOP k", "quicklist"),
    (f"RPUSH k a|LSET k 5 {'x' * 9000}", "quicklist"),
    (f"RPUSH k a|LINSERT k BEFORE b {'x' * 9000}", "quicklist"),
    (f"RPUSH k {'x' * 9000}|LSET k 0 a", "listpack"),
    ("CONFIG SET list-max-listpack-size 4|RPUSH k a b c d e|RPOP k 2", "quicklist"),
    ("CONFIG SET list-max-listpack-size 4|RPUSH k a b c d e|RPOP k 3", "listpack"),
    ("CONFIG SET list-max-listpack-size 4|RPUSH j a b c d e|RPOP j|COPY j k", "quicklist"),
    ("CONFIG SET list-max-listpack-size 4|RPUSH j a b c d e|RPOP j|SORT j ALPHA STORE k", "listpack"),
    ("RPUSH k a b|CONFIG SET list-max-listpack-size 1", "listpack"),
    # sets
    (f"SADD k {NUMBERS}|SREM k {NUMBERS[4:]}", "hashtable"),
    ("SADD k 1 2 x|SREM k x", "listpack"),
    ("SADD k 1|SADD k x|SREM k x", "listpack"),
    (f"SADD k {NAMES}|SPOP k 124", "hashtable"),
    (f"SADD k {NAMES}|SPOP k 125", "listpack"),
    (f"SADD j {NUMBERS}|SREM j {NUMBERS[4:]}|SUNIONSTORE k j", "intset"),
    (f"SADD j {NUMBERS}|SREM j {NUMBERS[4:]}|COPY j k", "hashtable"),
    ("CONFIG SET set-max-listpack-entries 1|SADD k a b", "hashtable"),
    ("SADD k a|CONFIG SET set-max-listpack-entries 1|SADD k a|SADD k b", "hashtable"),
    ("CONFIG SET set-max-intset-entries 2|SADD k 1|SADD k 2|SADD k 3", "hashtable"),
    ("CONFIG SET set-max-listpack-value 3|SADD k abc|SADD k abcd", "hashtable"),
    # sorted sets
    (f"ZADD k {SCORES}|ZREMRANGEBYRANK k 0 100", "skiplist"),
    (f"ZADD j {SCORES}|ZREMRANGEBYRANK j 0 100|ZRANGESTORE k j 0 -1", "listpack"),
    ("ZADD k 1 a|SORT k ALPHA LIMIT 0 0", "skiplist"),
    ("ZADD k 1 a|SORT_RO k ALPHA", "skiplist"),
]


@pytest.fixture
def dialogue() -> Dialogue:
    return Dialogue(make_engine(settings=settings_with(enable_debug_command="yes")))


@pytest.mark.parametrize(("history", "encoding"), HISTORIES)
def test_the_encoding_follows_from_the_history(dialogue: Dialogue, history: str, encoding: str) -> None:
    dialogue(*history.split("|"))

    assert dialogue("OBJECT ENCODING k") == encoding.encode()


@pytest.mark.parametrize(
    ("history", "encoding"),
    [
        ("SADD j 1 x|SREM j x", b"listpack"),
        ("SADD j 1 2", b"intset"),
        (f"HSET j f {LONG} g w|HDEL j f", b"listpack"),
        ("SET j 12|APPEND j 3", b"int"),
    ],
)
def test_the_encoding_of_a_restored_value_follows_from_its_payload(
    dialogue: Dialogue, history: str, encoding: bytes
) -> None:
    dialogue(*history.split("|"))
    dialogue.words(b"RESTORE", b"k", b"0", dialogue("DUMP j"))

    assert dialogue("OBJECT ENCODING k") == encoding


def test_a_string_of_another_encoding_is_the_same_string(dialogue: Dialogue) -> None:
    dialogue("SET plain 12", "SET changed 1", "APPEND changed 2", "SET k 11", "INCRBYFLOAT k 1")

    assert dialogue("MGET plain changed k") == [b"12"] * 3
    assert len(set(dialogue("DEBUG DIGEST-VALUE plain changed k"))) == 1
    assert dialogue("TYPE changed") == dialogue("TYPE k") == b"string"
    assert dialogue("DUMP changed") == dialogue("DUMP k") == dialogue("DUMP plain")
