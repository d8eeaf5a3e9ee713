"""Times of expiry, beside a real Redis and alone."""

import pytest

from penstock.clock import ManualClock
from penstock.engine.effects import pack
from penstock.engine.key_expiry import EXPIRED_A_TICK, EXPIRED_EVERY_MS, LOOKED_AT
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.effects_beside_redis import RedisSide, assert_as_redis
from tests.support.engines import make_engine
from tests.support.log import UnitLog

DIALOGUES = {
    "set": [
        "MSET a 1 b 2",
        "EXPIRE a 100",
        "pexpire a 100000",
        "EXPIREAT a 9999999999",
        "pexpireat a 9999999999999",
        "PTTL missing",
        "EXPIRE missing 10",
        "EXPIRE a x",
        "EXPIRE missing x",
        "EXPIRE a",
    ],
    "asked for": [
        "SET a 1",
        "TTL a",
        "PTTL a",
        "EXPIRETIME a",
        "PEXPIRETIME a",
        "TTL missing",
        "PTTL missing",
        "EXPIRETIME missing",
        "PEXPIRETIME missing",
        "PEXPIREAT a 9999999999499",
        "EXPIRETIME a",
        "PEXPIREAT a 9999999999500",
        "EXPIRETIME a",
        "PEXPIRETIME a",
        "PEXPIREAT a 1",
        "TTL a",
    ],
    "conditions": [
        "SET a 1",
        "EXPIRE a 100 XX",
        "EXPIRE a 100 GT",
        "EXPIRE a 100 LT XX",
        "EXPIRE a 100 NX",
        "EXPIRE a 200 nx",
        "EXPIRE a 200 gt",
        "EXPIRE a 100 GT",
        "EXPIRE a 100 LT",
        "EXPIRE a 200 LT",
        "EXPIRE a 300 XX GT",
        "EXPIRE a 300 xx xx",
        "EXPIRE a 100 NX XX",
        "EXPIRE a 100 NX GT",
        "EXPIRE a 100 GT LT",
        "EXPIRE a 100 Foo",
        "EXPIRE a 100 NX XX FOO",
        "EXPIRE a x FOO",
        "EXPIRE a x GT LT",
        "PERSIST a",
        "EXPIRE a 100 LT",
    ],
    "in the past": [
        "SET a 1",
        "EXPIRE a 0",
        "SET a 1",
        "EXPIRE a -1 GT",
        "EXPIRE a -1 XX",
        "EXPIRE a -1 LT",
        "SET a 1",
        "PEXPIREAT a 1 nx",
        "SET a 1",
        "EXPIREAT a -5",
        "SET a 1",
        "PEXPIRE a -9223372036854775808",
    ],
    "too far": [
        "SET a 1",
        "EXPIRE a 9223372036854775807",
        "EXPIRE a -9223372036854775807",
        "EXPIRE a 9223372036854775",
        "EXPIREAT a 9223372036854775807",
        "EXPIREAT a -9223372036854776",
        "PEXPIRE a 9223372036854775807",
        "EXPIRE missing 9223372036854775807",
        "EXPIREAT a 9223372036854775",
        "PEXPIREAT a 9223372036854775807",
        "PEXPIRETIME a",
        "PEXPIRE a 9223372036854775808",
    ],
    "taken away": ["SET a 1 EX 100", "persist a", "PERSIST a", "PERSIST missing", "SET a 1 PXAT 1", "PERSIST a"],
}


@pytest.mark.parametrize("lines", DIALOGUES.values(), ids=DIALOGUES)
def test_expiry_answers_tells_and_logs_as_redis_does(logging_redis: RedisSide, lines: list[str]) -> None:
    assert_as_redis(logging_redis, lines)


def test_a_key_is_there_in_the_millisecond_of_its_time_and_gone_in_the_next(
    dialogue: Dialogue, clock: ManualClock
) -> None:
    dialogue("SET a 1 PX 100")

    clock.advance(100)
    assert dialogue("GET a") == b"1"
    clock.advance(1)
    assert dialogue("GET a") is None


def test_remaining_seconds_are_rounded_to_the_nearest(dialogue: Dialogue, clock: ManualClock) -> None:
    dialogue("SET a 1 PX 2000")

    clock.advance(500)
    assert dialogue("TTL a") == 2
    clock.advance(1)
    assert dialogue("TTL a") == 1


def test_a_replay_keeps_a_key_past_its_time_until_its_delete_comes(dialogue: Dialogue) -> None:
    dialogue.session.privileged = True

    assert dialogue("SET a 1 PXAT 1", "PEXPIREAT a 2") == 1
    assert dialogue("INCR a") == 2
    assert dialogue("DEL a") == 1


def test_the_tick_removes_what_is_overdue(dialogue: Dialogue, clock: ManualClock) -> None:
    dialogue("SET a 1 PX 100", "SET b 1 PX 200")

    clock.advance(150)
    dialogue.engine.tick()

    assert dialogue("DBSIZE") == 1


def test_what_one_tick_leaves_is_removed_by_the_next_ones_which_come_soon(
    dialogue: Dialogue, clock: ManualClock
) -> None:
    engine = dialogue.engine
    dialogue(*[f"SET k{number} 1 PX 100" for number in range(2 * EXPIRED_A_TICK + 1)])
    clock.advance(150)

    engine.tick()
    assert engine.next_wakeup_ms() == clock.now_us() // 1000 + EXPIRED_EVERY_MS
    engine.tick()
    assert dialogue("DBSIZE") == 1
    engine.tick()

    assert dialogue("DBSIZE") == 0
    assert engine.next_wakeup_ms() == 0


class LateClock(ManualClock):
    """A clock that goes on by two milliseconds whenever it is read."""

    def monotonic_us(self) -> int:
        self.advance(2)
        return super().monotonic_us()


def test_a_tick_ends_after_some_milliseconds_of_removing() -> None:
    clock = LateClock(NOW_MS)
    dialogue = Dialogue(make_engine(clock))
    dialogue(*[f"SET k{number} 1 PXAT {NOW_MS + 100_000}" for number in range(3 * LOOKED_AT)])
    clock.advance(200_000)

    dialogue.engine.tick()

    assert 0 < len(dialogue.engine.keyspace.databases[0].values) < 3 * LOOKED_AT
    assert dialogue.engine.server.ticks_are_behind
    told = dialogue("INFO stats").decode()
    assert "expired_time_cap_reached_count:1\r" in told
    assert "expire_cycle_cpu_milliseconds:0\r" not in told
    assert "expired_stale_perc:100.00\r" in told


def test_overdue_keys_of_every_type_go_together_and_are_told_one_by_one(dialogue: Dialogue, clock: ManualClock) -> None:
    engine = dialogue.engine
    watcher, listener = dialogue.another(), dialogue.another()
    dialogue("CONFIG SET notify-keyspace-events Ex", "SET stays 1")
    dialogue("SET t 1", "RPUSH l 1", "HSET h f v g w", "HPEXPIRE h 90000 FIELDS 1 f", "SADD s 1", "ZADD z 1 a")
    dialogue("XADD x 1-0 f v", "XGROUP CREATE x g 0", "SCAN 0", "ARSET a 0 v")
    keys = ["t", "l", "h", "s", "z", "x", "a"]
    for at, key in enumerate(keys):
        dialogue(f"PEXPIRE {key} {100 + at}")
    dialogue("SELECT 2", "SET other 1 PX 50", "SELECT 0")
    watcher("WATCH z", "MULTI", "PING")
    listener("SUBSCRIBE __keyevent@0__:expired")
    engine.effects.log = log = UnitLog()
    clock.advance(200)

    engine.tick()

    assert dialogue("KEYS *") == [b"stays"]
    assert log.text == b"".join([pack((b"SELECT", b"0")), *lines(keys), pack((b"SELECT", b"2")), *lines(["other"])])
    assert [message[2].decode() for message in listener.arrived()] == keys
    assert watcher("EXEC") is None
    for database in engine.keyspace.databases:
        database.check()


def lines(keys: list[str]) -> list[bytes]:
    return [pack((b"DEL", key.encode())) for key in keys]
