"""Commands and options that came with Redis 8.8 and 8.10, after the documentation: no Redis at hand knows them."""

from typing import Any

import pytest

from tests.support.dialogue import Dialogue
from tests.support.effects_beside_redis import steps_of_engine
from tests.support.engines import make_engine, settings_with
from tests.support.log import UnitLog


def logged(*lines: str) -> list[str]:
    return [line for step in steps_of_engine(list(lines)) for line in step.logged]


# -- AGGREGATE COUNT (8.8) -------------------------------------------------------------------------------------------


def test_a_score_counts_the_sets_that_have_the_member(dialogue: Dialogue) -> None:
    dialogue("ZADD a 5 x 7 y", "ZADD b 9 x", "SADD s x z")

    assert dialogue("ZUNION 3 a b s AGGREGATE COUNT WITHSCORES") == [b"y", b"1", b"z", b"1", b"x", b"3"]
    assert dialogue("ZINTER 2 a b AGGREGATE count WITHSCORES") == [b"x", b"2"]
    assert dialogue("ZUNION 2 a b WEIGHTS 2 3 AGGREGATE COUNT WITHSCORES") == [b"y", b"2", b"x", b"5"]


def test_counted_scores_are_logged_as_what_they_are_for_any_redis() -> None:
    lines = logged("ZADD a 5 x 7 y", "ZADD b 9 x", "ZADD d 1 z", "ZUNIONSTORE d 2 a b AGGREGATE COUNT")

    assert lines[-4:] == ["MULTI", "DEL d", "ZADD d 1 y 2 x", "EXEC"]


# -- SUNIONCARD, SDIFFCARD (8.10) ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("SUNIONCARD 2 a b", 5),
        ("SUNIONCARD 2 a b LIMIT 3", 3),
        ("SUNIONCARD 2 a b LIMIT 0", 5),
        ("SUNIONCARD 2 a b APPROX", 5),
        ("SUNIONCARD 2 a missing limit 9 approx", 3),
        ("SDIFFCARD 2 a b", 2),
        ("SDIFFCARD 2 a b LIMIT 1", 1),
        ("SDIFFCARD 1 missing", 0),
    ],
)
def test_members_are_counted_up_to_the_limit(dialogue: Dialogue, line: str, answer: Any) -> None:
    dialogue("SADD a 1 2 3", "SADD b 3 4 5")

    assert dialogue(line) == answer


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        ("SUNIONCARD 0 a", "ERR numkeys should be greater than 0"),
        ("SDIFFCARD 3 a b", "ERR Number of keys can't be greater than number of args"),
        ("SUNIONCARD 1 a LIMIT -1", "ERR LIMIT can't be negative"),
        ("SUNIONCARD 1 a LIMIT", "ERR syntax error"),
        ("SDIFFCARD 1 a APPROX", "ERR syntax error"),
        ("SDIFFCARD 1 t", "WRONGTYPE Operation against a key holding the wrong kind of value"),
    ],
)
def test_counting_refuses_as_sintercard_does(dialogue: Dialogue, line: str, refusal: str) -> None:
    dialogue("SET t x")

    assert str(dialogue(line)) == refusal


# -- INCREX (8.8) ----------------------------------------------------------------------------------------------------

INCREX: list[tuple[str, str, list[Any]]] = [
    ("", "INCREX n", [1, 1]),
    ("SET n 10", "INCREX n BYINT 5", [15, 5]),
    ("SET n 10", "INCREX n BYINT -5 UBOUND 5", [5, -5]),
    ("SET n 10", "INCREX n BYINT 5 LBOUND 20", [10, 0]),
    ("SET n 10", "INCREX n BYINT 5 UBOUND 5 SATURATE", [5, -5]),
    ("SET n 10", "INCREX n BYINT -5 LBOUND 20 SATURATE", [20, 10]),
    ("SET n 9223372036854775807", "INCREX n SATURATE", [9223372036854775807, 0]),
    ("SET n 9223372036854775807", "INCREX n", [9223372036854775807, 0]),
    ("SET n 1.5", "INCREX n BYFLOAT 0.25", [b"1.75", b"0.25"]),
    ("SET n 1.5", "INCREX n BYFLOAT 10 UBOUND 5.5", [b"1.5", b"0"]),
    ("SET n 1.5", "INCREX n BYFLOAT 10 UBOUND 5.5 SATURATE", [b"5.5", b"4"]),
    ("SET n 1.5", "INCREX n BYFLOAT 10 UBOUND inf LBOUND -inf", [b"11.5", b"10"]),
]


@pytest.mark.parametrize(("before", "line", "answer"), INCREX, ids=[line for _, line, _ in INCREX])
def test_a_counter_stays_within_its_bounds(dialogue: Dialogue, before: str, line: str, answer: Any) -> None:
    dialogue(before or "PING")

    assert dialogue(line) == answer
    assert dialogue("GET n") == (b"%d" % answer[0] if isinstance(answer[0], int) else answer[0])


def test_a_declined_count_makes_no_key_and_changes_no_expiry(dialogue: Dialogue) -> None:
    assert dialogue("INCREX n LBOUND 5 EX 100") == [0, 0]
    assert dialogue("EXISTS n") == 0
    assert dialogue("SET n 1", "INCREX n UBOUND 1 EX 100", "TTL n") == -1


def test_a_counter_gets_a_time_of_expiry_only_where_it_has_none_if_so_wished(dialogue: Dialogue) -> None:
    dialogue("INCREX n EX 100 ENX", "INCREX n EX 500 ENX")
    assert dialogue("TTL n") == 100

    assert dialogue("INCREX n", "TTL n") == 100
    assert dialogue("INCREX n PX 7000", "PTTL n") == 7000
    assert dialogue("INCREX n PERSIST", "TTL n") == -1
    assert dialogue("GET n") == b"5"


def test_a_time_in_the_past_takes_the_counter_away(dialogue: Dialogue) -> None:
    assert dialogue("INCREX n PXAT 1") == [1, 1]
    assert dialogue("EXISTS n") == 0
    assert dialogue("SET n 4", "INCREX n EXAT 1") == [5, 1]
    assert dialogue("EXISTS n") == 0
    assert dialogue("INCREX n EX 100", "INCREX n EXAT 1 ENX", "TTL n") == 100


def test_a_count_is_logged_as_the_value_it_led_to() -> None:
    assert logged("INCREX n", "INCREX n PXAT 9000000000000", "INCREX n", "INCREX n PERSIST", "INCREX n UBOUND 0") == [
        "SELECT 0", "SET n 1 KEEPTTL", "SET n 2 PXAT 9000000000000", "SET n 3 KEEPTTL", "SET n 4",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        ("INCREX n BYINT x", "ERR Increment is not an integer or out of range"),
        ("INCREX n BYFLOAT nan", "ERR Increment is not a valid float"),
        ("INCREX n BYFLOAT inf", "ERR BYFLOAT increment cannot be Infinity"),
        ("INCREX t", "ERR value is not an integer or out of range"),
        ("INCREX t BYFLOAT 1", "ERR value is not a valid float"),
        ("INCREX i BYFLOAT 1", "ERR value cannot be Infinity"),
        ("INCREX n LBOUND x", "ERR LBOUND is not an integer or out of range"),
        ("INCREX n BYFLOAT 1 UBOUND x", "ERR UBOUND is not a valid float"),
        ("INCREX n LBOUND 2 UBOUND 1", "ERR LBOUND can't be greater than UBOUND"),
        ("INCREX n ENX", "ERR ENX flag requires an expiration"),
        ("INCREX n EX 0", "ERR invalid expire time in 'increx' command"),
        ("INCREX n EX x", "ERR value is not an integer or out of range"),
        ("INCREX low BYINT 1 LBOUND 9223372036854775807 SATURATE", "ERR applied increment would overflow"),
        ("INCREX n SATURATE SATURATE", "ERR syntax error"),
        ("INCREX n BYINT 1 BYFLOAT 1", "ERR syntax error"),
        ("INCREX n EX 1 PERSIST", "ERR syntax error"),
        ("INCREX n PERSIST ENX", "ERR syntax error"),
        ("INCREX n BYINT", "ERR syntax error"),
        ("INCREX l", "WRONGTYPE Operation against a key holding the wrong kind of value"),
    ],
)
def test_what_cannot_be_counted_is_refused(dialogue: Dialogue, line: str, refusal: str) -> None:
    dialogue("SET t x", "SET i inf", "SET low -9223372036854775808", "RPUSH l a")

    assert str(dialogue(line)) == refusal
    assert dialogue("EXISTS n") == 0


def test_a_resp3_client_gets_doubles(dialogue: Dialogue) -> None:
    dialogue("HELLO 3")

    assert dialogue.raw("INCREX n BYFLOAT 1.5") == b"*2\r\n,1.5\r\n,1.5\r\n"


# -- LMOVEM, BLMOVEM (8.10) ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ends", "block", "answer", "left"),
    [
        ("LEFT LEFT", "COUNT 2 OBO", [b"2", b"1"], [b"3", b"4"]),
        ("LEFT LEFT", "COUNT 2 BULK", [b"1", b"2"], [b"3", b"4"]),
        ("LEFT RIGHT", "COUNT 2 OBO", [b"1", b"2"], [b"3", b"4"]),
        ("LEFT RIGHT", "count 2 bulk", [b"1", b"2"], [b"3", b"4"]),
        ("RIGHT RIGHT", "COUNT 2 OBO", [b"4", b"3"], [b"1", b"2"]),
        ("RIGHT RIGHT", "COUNT 2 BULK", [b"3", b"4"], [b"1", b"2"]),
        ("RIGHT LEFT", "COUNT 2 OBO", [b"3", b"4"], [b"1", b"2"]),
        ("RIGHT LEFT", "EXACTLY 2 BULK", [b"3", b"4"], [b"1", b"2"]),
        ("LEFT LEFT", "COUNT 9 BULK", [b"1", b"2", b"3", b"4"], []),
        ("LEFT LEFT", "EXACTLY 9 BULK", None, [b"1", b"2", b"3", b"4"]),
        ("LEFT LEFT", "", [b"1"], [b"2", b"3", b"4"]),
    ],
)
def test_a_block_of_items_is_moved_one_by_one_or_as_it_stands(
    dialogue: Dialogue, ends: str, block: str, answer: Any, left: list[bytes]
) -> None:
    dialogue("RPUSH l 1 2 3 4")

    assert dialogue(f"LMOVEM l o {ends} {block}") == answer
    assert dialogue("LRANGE l 0 -1") == left
    assert dialogue("LRANGE o 0 -1") == (answer or [])


def test_moving_from_no_list_answers_nothing(dialogue: Dialogue) -> None:
    assert dialogue("LMOVEM l o LEFT LEFT") is None
    assert dialogue("LMOVEM l o LEFT LEFT COUNT 2 OBO") is None
    assert dialogue("LMOVEM l o LEFT LEFT EXACTLY 2 OBO") is None


def test_a_list_is_turned_by_moving_within_it(dialogue: Dialogue) -> None:
    dialogue("RPUSH l 1 2 3 4", "LMOVEM l l LEFT RIGHT COUNT 3 BULK")

    assert dialogue("LRANGE l 0 -1") == [b"4", b"1", b"2", b"3"]


def test_moved_items_are_logged_as_any_redis_knows_them() -> None:
    assert logged("RPUSH l 1 2 3", "LMOVEM l o LEFT LEFT COUNT 2 OBO")[2:] == [
        "MULTI", "LPOP l 2", "LPUSH o 1 2", "EXEC"
    ]  # fmt: skip


def test_a_reader_of_exactly_so_many_waits_until_there_are_so_many(dialogue: Dialogue) -> None:
    reader, other = dialogue.another(), dialogue.another()
    reader("BLMOVEM l o LEFT RIGHT 0 EXACTLY 3 BULK")
    other("BLPOP l 0")

    dialogue("RPUSH l 1")
    assert (reader.arrived(), other.arrived()) == ([], [[b"l", b"1"]])
    dialogue("RPUSH l 2 3 4")
    assert reader.arrived() == [[b"2", b"3", b"4"]]


@pytest.mark.parametrize("last", ["RPUSH l 3", "LPUSHX l 3", "LINSERT l AFTER 1 3", "LMOVE m l LEFT LEFT"])
def test_a_reader_of_exactly_so_many_is_served_by_what_makes_a_list_longer(dialogue: Dialogue, last: str) -> None:
    reader = dialogue.another()
    dialogue("RPUSH l 1", "RPUSH m 3")
    reader("BLMOVEM l o LEFT RIGHT 0 EXACTLY 3 BULK")

    dialogue("RPUSH l 2")
    assert reader.arrived() == []
    dialogue(last)
    assert len(reader.arrived()[0]) == 3


def test_a_reader_of_some_takes_what_comes_first(dialogue: Dialogue) -> None:
    reader = dialogue.another()
    reader("BLMOVEM l o LEFT RIGHT 0 COUNT 3 BULK")

    dialogue("RPUSH l 1 2")
    assert reader.arrived() == [[b"1", b"2"]]


def test_no_request_waits_inside_a_transaction(dialogue: Dialogue) -> None:
    dialogue("MULTI", "BLMOVEM l o LEFT RIGHT 0 COUNT 3 BULK", "BLMOVEM l o LEFT RIGHT 0 EXACTLY 3 BULK")

    assert dialogue("EXEC") == [None, None]


@pytest.mark.parametrize(
    "line",
    [
        "LMOVEM l o UP LEFT", "LMOVEM l o LEFT LEFT COUNT", "LMOVEM l o LEFT LEFT COUNT 1",
        "LMOVEM l o LEFT LEFT FOO 1 OBO",
        "LMOVEM l o LEFT LEFT COUNT 1 FOO", "LMOVEM l o LEFT LEFT COUNT 1 OBO 1", "BLMOVEM l o LEFT LEFT 0 COUNT 1",
    ],
)  # fmt: skip
def test_moving_refuses_other_words(dialogue: Dialogue, line: str) -> None:
    assert str(dialogue(line)) == "ERR syntax error"


# -- HIMPORT (8.10) --------------------------------------------------------------------------------------------------


def test_hashes_are_imported_by_the_values_of_prepared_fields(dialogue: Dialogue) -> None:
    assert dialogue("HIMPORT PREPARE p name age") == b"OK"
    assert dialogue("HSET h old x", "HIMPORT SET h p ann 7") == b"OK"
    assert dialogue("HGETALL h") == [b"age", b"7", b"name", b"ann"]  # short fields come first
    assert dialogue("HIMPORT DISCARD p", "HIMPORT DISCARD p") == 0
    assert dialogue("HIMPORT PREPARE a f", "HIMPORT PREPARE b f", "HIMPORT DISCARDALL") == 2


def test_prepared_fields_belong_to_a_connection_until_its_reset(dialogue: Dialogue) -> None:
    dialogue("HIMPORT PREPARE p f")

    assert str(dialogue.another()("HIMPORT SET h p 1")).startswith("ERR")
    assert str(dialogue("RESET", "HIMPORT SET h p 1")).startswith("ERR")


def test_fields_that_a_script_prepared_end_with_it(dialogue: Dialogue) -> None:
    prepare, use = (
        "redis.call('HIMPORT', 'PREPARE', 'p', 'f') ",
        "return redis.call('HIMPORT', 'SET', KEYS[1], 'p', '1')",
    )

    assert dialogue.words(b"EVAL", (prepare + use).encode(), b"1", b"h") == b"+OK\r\n"
    assert dialogue.words(b"EVAL", use.encode(), b"1", b"h").startswith(b"-ERR no such fieldset")


@pytest.mark.parametrize(
    "line", ["HIMPORT PREPARE p f f", "HIMPORT SET h q 1", "HIMPORT SET h p 1 2", "HIMPORT SET h p"]
)
def test_an_import_that_does_not_fit_is_refused(dialogue: Dialogue, line: str) -> None:
    dialogue("HIMPORT PREPARE p f")

    assert str(dialogue(line)).startswith("ERR")
    assert dialogue("EXISTS h") == 0


def test_an_import_replaces_no_value_of_another_type(dialogue: Dialogue) -> None:
    assert str(dialogue("SET s x", "HIMPORT SET s unknown 1")).startswith("WRONGTYPE")


def test_an_imported_hash_is_logged_as_any_redis_knows_it() -> None:
    lines = logged("HIMPORT PREPARE p f g", "HSET h x y", "HIMPORT SET h p 1 2", "HIMPORT SET new p 1 2")

    assert lines[2:] == ["MULTI", "DEL h", "HSET h f 1 g 2", "EXEC", "HSET new f 1 g 2"]


# -- compat-version --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "unknown", "known"),
    [
        ("8.6", "INCREX n", "GEOPOS g"),
        ("8.8", "LMOVEM a b LEFT LEFT", "INCREX n"),
        ("8.8", "HIMPORT DISCARDALL", "INCREX n"),
        ("8.8", "SUNIONCARD 1 a", "INCREX n"),
    ],
)
def test_an_older_server_does_not_know_them(version: str, unknown: str, known: str) -> None:
    dialogue = Dialogue(make_engine(settings=settings_with(compat_version=version)))

    assert "unknown command" in str(dialogue(unknown))
    assert "unknown command" not in str(dialogue(known))


def test_counting_aggregates_are_hidden_from_clients_of_an_older_server() -> None:
    dialogue = Dialogue(make_engine(settings=settings_with(compat_version="8.6")))

    assert str(dialogue("ZUNION 1 a AGGREGATE COUNT")) == "ERR syntax error"


@pytest.mark.parametrize("ends", ["LEFT RIGHT", "LEFT LEFT", "RIGHT LEFT", "RIGHT RIGHT"])
def test_a_list_that_is_moved_whole_onto_itself_keeps_its_time_in_the_log(ends: str) -> None:
    log = UnitLog()
    dialogue = Dialogue(make_engine(log=log))
    dialogue("RPUSH l a b c", "PEXPIREAT l 99999999999999", f"LMOVEM l l {ends} COUNT 10 OBO")

    assert dialogue("PEXPIRETIME l") == 99999999999999
    assert b"PEXPIREAT\r\n$1\r\nl\r\n$14\r\n99999999999999\r\n*1\r\n$4\r\nEXEC" in log.text
