"""The machine's unix time is set, forwards or backwards, while the server runs: nothing stalls, ends early or spins.

docs/architecture.md, "Time", says what follows unix time: what is stored. A jump of the manual clock moves unix time
only; `pass_ms` lets time pass for both readings.
"""

import random

import pytest

from penstock.clock import ManualClock
from penstock.engine.memory.memory_limit import READ_EVERY_US
from penstock.engine.replication import master as links
from penstock.engine.replication.master import Master
from penstock.protocol import reply
from penstock.storage.aof.append_log import LEAST_ROOM
from tests.support.clock import NOW_MS
from tests.support.fake_server import Client
from tests.support.seeds import seeds
from tests.support.whole_server import PERIOD_MS, WholeServer

HOUR_MS = 3_600_000
JUMPS = {"back": -2 * HOUR_MS, "on": 2 * HOUR_MS}
FULL = 0  # bytes that the disk still takes
LARGER_THAN_RESERVED = b"x" * LEAST_ROOM
SLACK_MS = 200  # jumps below a tenth of a second are not told from how NTP adjusts a clock

jumps = pytest.mark.parametrize("jump_ms", JUMPS.values(), ids=JUMPS)


@pytest.fixture
def server() -> WholeServer:
    return WholeServer()


@jumps
def test_writers_are_let_in_a_second_after_the_disk_has_room_again(server: WholeServer, jump_ms: int) -> None:
    server.asks(server.client, "CONFIG SET appendfsync everysec")
    server.disk.room = FULL
    server.client.says(set_request(LARGER_THAN_RESERVED))
    assert server.client.says(b"SET a 2\r\n").startswith(b"-MISCONF")
    server.disk.room = None

    server.clock.jump(jump_ms)
    server.passes(1100)

    assert server.client.says(b"SET a 3\r\n") == b"+OK\r\n"


@jumps
def test_everysec_goes_on_syncing(server: WholeServer, jump_ms: int) -> None:
    server.asks(server.client, "CONFIG SET appendfsync everysec", "SET a 1")
    server.passes(2000)
    server.clock.jump(jump_ms)
    server.asks(server.client, "SET a 2")

    server.passes(1200)

    assert server.unlogged() == 0


@jumps
@pytest.mark.parametrize(
    "request_line", ["BLPOP q 5", "XREAD BLOCK 5000 STREAMS s $", "WAIT 1 5000", "BLMOVE a b LEFT LEFT 5"]
)
def test_a_blocked_request_waits_as_long_as_it_said(server: WholeServer, jump_ms: int, request_line: str) -> None:
    server.client.sends(request_line.encode() + b"\r\n")
    server.passes(1000)
    server.clock.jump(jump_ms)
    server.passes(3800)
    assert server.client.received() == b""

    server.passes(400)

    assert server.client.received() in (b"*-1\r\n", b"$-1\r\n", b":0\r\n")


@jumps
@pytest.mark.parametrize("request_line", ["BLPOP q 5", "WAIT 1 5000", "CLIENT PAUSE 5000 ALL"])
def test_what_begins_right_after_a_jump_lasts_as_long_as_it_said(
    server: WholeServer, jump_ms: int, request_line: str
) -> None:
    server.clock.jump(jump_ms)
    server.client.sends(request_line.encode() + b"\r\n")
    server.other.sends(b"PING\r\n" if "PAUSE" in request_line else b"")
    server.passes(4800)
    assert server.client.received() in (b"", b"+OK\r\n")
    assert server.other.received() == b""

    server.passes(400)

    assert server.client.received() + server.other.received() in (b"*-1\r\n", b":0\r\n", b"+PONG\r\n")


@jumps
def test_what_begins_after_a_jump_there_and_back_lasts_as_long_as_it_said(server: WholeServer, jump_ms: int) -> None:
    server.passes(PERIOD_MS // 2)
    server.asks(server.client, "PING")
    server.clock.jump(jump_ms)
    server.passes(PERIOD_MS // 2 + 10)  # cron has noticed it
    server.clock.jump(-jump_ms)
    server.client.sends(b"BLPOP q 5\r\n")
    server.passes(4800)
    assert server.client.received() == b""

    server.passes(400)

    assert server.client.received() == b"*-1\r\n"


@jumps
def test_an_active_client_is_not_idle_right_after_a_jump(server: WholeServer, jump_ms: int) -> None:
    server.asks(server.client, "CONFIG SET timeout 10")
    server.clock.jump(jump_ms)
    server.asks(server.client, "PING")
    server.passes(9000)
    assert not server.client.transport.aborted

    server.passes(4000)

    assert server.client.transport.aborted


@jumps
def test_a_pause_lasts_as_long_as_it_said(server: WholeServer, jump_ms: int) -> None:
    server.asks(server.other, "CLIENT PAUSE 5000 WRITE")
    server.client.sends(b"SET a 1\r\n")
    server.passes(1000)
    server.clock.jump(jump_ms)
    server.passes(3800)
    assert server.client.received() == b""

    server.passes(400)

    assert server.client.received() == b"+OK\r\n"


@jumps
def test_idle_clients_are_closed_when_they_were_idle_for_so_long(server: WholeServer, jump_ms: int) -> None:
    server.asks(server.client, "CONFIG SET timeout 10")
    server.passes(5000)
    server.clock.jump(jump_ms)
    server.passes(4000)
    assert not server.client.transport.aborted

    server.passes(4000)

    assert server.client.transport.aborted


@jumps
def test_the_time_since_the_last_save_is_what_has_passed(server: WholeServer, jump_ms: int) -> None:
    saves = server.engine.persistence.saves
    server.passes(30_000)
    server.clock.jump(jump_ms)
    server.passes(29_000)

    assert saves.seconds_since_save() == 59


@jumps
def test_the_memory_is_read_again_soon(server: WholeServer, jump_ms: int) -> None:
    used = [(1000, 1000)]
    server.engine.memory.reading = lambda: used[0]
    server.asks(server.client, "CONFIG SET maxmemory 5000", "SET a 1")
    used[0] = (9000, 9000)

    server.clock.jump(jump_ms)
    server.passes(READ_EVERY_US // 1000 + PERIOD_MS)

    server.asks(server.client, "CONFIG SET maxmemory-policy noeviction")
    assert server.client.says(b"SET b 1\r\n").startswith(b"-OOM")


@jumps
def test_a_link_is_neither_lost_nor_trusted_for_longer(server: WholeServer, jump_ms: int) -> None:
    replication = server.engine.replication
    master = Master("127.0.0.1", 1, replication.now_ms())
    master.set_link(links.CONNECTED, replication.now_ms())
    server.clock.jump(jump_ms)
    server.passes(3000)

    assert replication.now_ms() - master.since_ms == 3000


class SetAsleep(ManualClock):
    """A clock that is set while a request sleeps."""

    jump_ms = 0

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.jump(self.jump_ms)


class SleepingServer(WholeServer):
    """A server with a clock that is set while a request sleeps."""

    def new_clock(self) -> ManualClock:
        return SetAsleep(NOW_MS)


@jumps
def test_what_a_request_took_is_not_what_the_clock_has_jumped(jump_ms: int) -> None:
    server = SleepingServer()
    assert isinstance(server.clock, SetAsleep)
    server.clock.jump_ms = jump_ms
    server.asks(server.client, "CONFIG SET slowlog-log-slower-than 10000", "CONFIG RESETSTAT")
    server.asks(server.client, "DEBUG SLEEP 0.5")

    assert b"\r\n:500000\r\n" in server.client.says(b"SLOWLOG GET 1\r\n")
    assert b"usec=500000" in server.client.says(b"INFO commandstats\r\n")


@jumps
def test_uptime_and_idle_times_go_on(server: WholeServer, jump_ms: int) -> None:
    server.passes(5000)
    server.clock.jump(jump_ms)
    server.passes(5000)

    assert b"uptime_in_seconds:10\r\n" in server.client.says(b"INFO server\r\n")
    assert b" age=10 idle=10 " in server.client.says(b"CLIENT LIST ID 2\r\n")


@pytest.mark.parametrize(
    ("words", "jump_ms", "left"),
    [("SET k v PX 60000", 2 * HOUR_MS, b"*0\r\n"), ("SET k v PX 60000", -2 * HOUR_MS, b"*1\r\n$1\r\nk\r\n")],
    ids=["on", "back"],
)
def test_what_is_stored_follows_unix_time(server: WholeServer, words: str, jump_ms: int, left: bytes) -> None:
    server.asks(server.client, words)
    server.clock.jump(jump_ms)
    server.passes(120_000)

    assert server.client.says(b"KEYS *\r\n") == left


@pytest.mark.parametrize(("jump_ms", "redelivered"), [(2 * HOUR_MS, b"1-0"), (-2 * HOUR_MS, b"")], ids=["on", "back"])
def test_a_lease_follows_unix_time_as_the_entries_times_do(
    server: WholeServer, jump_ms: int, redelivered: bytes
) -> None:
    server.asks(
        server.client, "XGROUP CREATE s g 0 MKSTREAM", "PENSTOCK.POLICY s GROUP g ACKWAIT 60000", "XADD s 1-0 f v",
        "XREADGROUP GROUP g alice STREAMS s >",
    )  # fmt: skip
    server.passes(1000)
    server.clock.jump(jump_ms)
    server.passes(62_000)

    assert redelivered in server.other.says(b"XREADGROUP GROUP g bob STREAMS s >\r\n")
    assert (b"1-0" in server.client.says(b"XPENDING s g - + 10 alice\r\n")) is not bool(redelivered)


def test_a_lease_that_ends_once_more_wakes_its_reader(server: WholeServer) -> None:
    server.asks(
        server.client, "XGROUP CREATE s g 0 MKSTREAM", "PENSTOCK.POLICY s GROUP g ACKWAIT 6000", "XADD s 1-0 f v",
        "XREADGROUP GROUP g alice STREAMS s >",
    )  # fmt: skip
    server.passes(6200)
    server.clock.jump(-3000)
    server.passes(200)
    server.other.sends(b"XREADGROUP GROUP g bob BLOCK 0 STREAMS s >\r\n")
    assert server.other.received() == b""
    server.passes(3000)

    assert b"1-0" in server.other.received()


@jumps
def test_a_rate_holds_for_as_long_as_it_said(server: WholeServer, jump_ms: int) -> None:
    server.asks(
        server.client, "XGROUP CREATE s g 0 MKSTREAM", "PENSTOCK.POLICY s GROUP g RATE 1 5000", "XADD s 1-0 f v",
        "XADD s 2-0 f v", "XREADGROUP GROUP g alice STREAMS s >",
    )  # fmt: skip
    server.passes(2000)
    server.clock.jump(jump_ms)
    server.other.sends(b"XREADGROUP GROUP g bob BLOCK 0 STREAMS s >\r\n")
    server.passes(2800)
    assert server.other.received() == b""
    server.passes(400)

    assert b"2-0" in server.other.received()


@jumps
def test_a_group_is_idle_after_as_long_as_it_was_not_read(server: WholeServer, jump_ms: int) -> None:
    server.asks(
        server.client, "XADD s 1-0 f v", "XGROUP CREATE s late 0", "XGROUP CREATE s busy 0",
        "PENSTOCK.POLICY s MAXLEN 0 ACKED IDLEGROUP 5000", "XREADGROUP GROUP busy alice STREAMS s >",
        "XACK s busy 1-0",
    )  # fmt: skip
    server.passes(2000)
    server.clock.jump(jump_ms)
    server.passes(200)
    server.asks(server.client, "XREADGROUP GROUP busy alice STREAMS s >")
    server.passes(2600)
    assert server.client.says(b"XLEN s\r\n") == b":1\r\n"
    server.passes(400)

    assert server.client.says(b"XLEN s\r\n") == b":0\r\n"


def test_leases_end_after_the_start_also_where_the_clock_was_set_back(server: WholeServer) -> None:
    server.engine.conditions.loading = True
    server.engine.conditions.loading = False  # as after a start: for five seconds no lease ends
    server.clock.jump(-2 * HOUR_MS)
    server.asks(
        server.client, "XGROUP CREATE s g 0 MKSTREAM", "PENSTOCK.POLICY s GROUP g ACKWAIT 10000", "XADD s 1-0 f v",
        "XREADGROUP GROUP g alice STREAMS s >",
    )  # fmt: skip
    server.passes(12_000)

    assert b"1-0" in server.other.says(b"XREADGROUP GROUP g bob STREAMS s >\r\n")


def set_request(value: bytes) -> bytes:
    return reply.bulks([b"SET", b"k", value])


def waits(server: WholeServer, client: Client, chance: random.Random) -> int:
    """A request that waits for up to some seconds: until when, by the time that never jumps."""
    most_ms = chance.randrange(1000, 20_000)
    client.sends(b"XREAD BLOCK %d STREAMS s $\r\n" % most_ms)
    return server.clock.monotonic_us() // 1000 + most_ms


@pytest.mark.parametrize("seed", seeds(5, 60))
def test_nothing_stalls_ends_early_or_spins_whatever_the_clock_does(seed: int) -> None:
    chance = random.Random(seed)
    server = WholeServer()
    server.asks(server.client, "CONFIG SET appendfsync everysec", "CONFIG SET timeout 0")
    until_ms = {client: waits(server, client, chance) for client in [server.connect() for _ in range(5)]}
    for number in range(80):
        if chance.random() < 0.3:
            server.clock.jump(chance.choice([-1, 1]) * chance.choice([50, 500, 5000, HOUR_MS, 40 * HOUR_MS]))
        is_full = chance.random() < 0.1
        server.disk.room = FULL if is_full else None
        server.other.says(set_request(LARGER_THAN_RESERVED if is_full else b"%d" % number))
        fired = server.loop.fired
        server.passes(chance.choice([100, 700, 2200]))
        assert server.loop.fired - fired < 60, "it spins"
        now_ms = server.clock.monotonic_us() // 1000
        for client, due_ms in list(until_ms.items()):
            came = client.received()
            assert not came or now_ms >= due_ms - SLACK_MS, "it ends early"
            assert came or now_ms < due_ms + SLACK_MS + PERIOD_MS, "it stalls"
            if came:
                until_ms[client] = waits(server, client, chance)
    server.disk.room = None
    server.passes(2500)
    assert server.other.says(b"SET k 1\r\n") == b"+OK\r\n"
    server.passes(1200)
    assert server.unlogged() == 0
