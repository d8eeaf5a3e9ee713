"""Keys as such, beside a real Redis and alone."""

import pytest

from tests.support.dialogue import Dialogue
from tests.support.effects_beside_redis import RedisSide, assert_as_redis

DIALOGUES = {
    "removed": ["MSET a 1 b 2 c 3", "DEL a a missing b", "del missing", "UNLINK c c", "DEL", "SET a 1 PXAT 1", "DEL a"],
    "there or not": [
        "SET a 1",
        "EXISTS a a missing",
        "TOUCH a missing",
        "EXISTS",
        "SET b 1 PXAT 1",
        "EXISTS b a",
        "SET b 1 PXAT 1",
        "TOUCH b",
    ],
    "type": ["SET a 1", "XADD s 1-1 f v", "TYPE a", "TYPE s", "TYPE missing", "SET a 1 PXAT 1", "TYPE a"],
    "renamed": [
        "SET a 1",
        "RENAME a a",
        "RENAME missing missing",
        "RENAME a b",
        "SET a 2 EXAT 9999999999",
        "rename a b",
        "PEXPIRETIME b",
        "SET a 3",
        "RENAME a b",
        "TTL b",
        "XADD s 1-1 f v",
        "RENAME s b",
        "TYPE b",
        "SET a 1 PXAT 1",
        "RENAME b a",
        "SET b 1 PXAT 1",
        "RENAME b a",
    ],
    "renamed to a new name": [
        "MSET a 1 b 2",
        "RENAMENX a b",
        "RENAMENX a a",
        "RENAMENX missing missing",
        "RENAMENX a c",
        "SET b 1 PXAT 1",
        "RENAMENX c b",
    ],
    "copied": [
        "SET a 1 EXAT 9999999999",
        "COPY a b",
        "PEXPIRETIME b",
        "COPY a b",
        "copy a b replace",
        "COPY a b DB 1",
        "COPY a b REPLACE DB 1 REPLACE",
        "COPY a a",
        "COPY missing missing",
        "COPY a a DB 0",
        "COPY a a DB 2",
        "COPY a b FOO",
        "COPY a b DB",
        "COPY a b DB x",
        "COPY a b DB 16",
        "COPY a b DB -1",
        "COPY a b DB 99999999999",
        "COPY a b FOO DB 16",
        "COPY missing b REPLACE",
        "XADD s 1-1 f v",
        "COPY s a REPLACE",
        "XADD a 2-1 f v",
        "XLEN s",
        "SET b 1 PXAT 1",
        "COPY a b",
    ],
    "moved": [
        "SET a 1 EXAT 9999999999",
        "MOVE a 0",
        "MOVE missing 0",
        "MOVE a 16",
        "MOVE a x",
        "MOVE a 99999999999",
        "MOVE missing 1",
        "MOVE a 1",
        "SET a 2",
        "MOVE a 1",
        "SELECT 1",
        "PEXPIRETIME a",
        "SET a 1 PXAT 1",
        "SELECT 0",
        "MOVE a 1",
    ],
    "how they are kept": [
        "SET a 1",
        "OBJECT ENCODING a",
        "SET a 9223372036854775808",
        "OBJECT ENCODING a",
        f"SET a {'x' * 40}",
        "OBJECT ENCODING a",
        f"SET a {'x' * 41}",
        "OBJECT ENCODING a",
        f"SET {'k' * 30} {'x' * 11}",
        f"OBJECT ENCODING {'k' * 30}",
        f"SET {'k' * 30} {'x' * 12}",
        f"OBJECT ENCODING {'k' * 30}",
        "XADD s 1-1 f v",
        "OBJECT ENCODING s",
        "OBJECT encoding missing",
        "OBJECT REFCOUNT s",
        "OBJECT REFCOUNT missing",
        "OBJECT FREQ a",
        "OBJECT FREQ missing",
        "OBJECT FOO a",
        "OBJECT",
        "OBJECT ENCODING",
        "SET a 1 PXAT 1",
        "OBJECT ENCODING a",
    ],
}


@pytest.mark.parametrize("lines", DIALOGUES.values(), ids=DIALOGUES)
def test_keys_answer_tell_and_log_as_redis_does(logging_redis: RedisSide, lines: list[str]) -> None:
    assert_as_redis(logging_redis, lines)


def test_object_help_names_every_subcommand(dialogue: Dialogue) -> None:
    lines = dialogue("OBJECT HELP")

    assert {b"ENCODING <key>", b"FREQ <key>", b"IDLETIME <key>", b"REFCOUNT <key>", b"HELP"} <= set(lines)
