"""What happens outside of a request is finished by itself: logged and synced, told to caches and listeners.

Each cause is set up by requests; then cron runs once, and no request comes.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from penstock.engine.replication import failover
from penstock.engine.replication.stream_applier import StreamApplier
from tests.support.whole_server import PERIOD_MS, WholeServer


def nothing(server: WholeServer) -> None:
    """Time passes, that is all."""


def fails_over(server: WholeServer) -> None:
    """No replica has everything in time."""
    server.engine.effects.replicate(server.engine.replication.open_stream())
    failover.begin(server.engine.server, None, server.engine.replication.now_ms() + PERIOD_MS, False)
    server.asks(server.other, "SET k 2")


def applies(server: WholeServer) -> None:
    StreamApplier(server.engine, 0, server.said.append).apply([[b"SET", b"k", b"1"]])
    server.turn.applied()


class Cause(NamedTuple):
    """requests: of one client, before. begins: what else begins it. key: what the listener hears of."""

    requests: tuple[str, ...]
    begins: Callable[[WholeServer], None] = nothing
    key: bytes = b"k"


CAUSES = {
    "CONFIG SET maxmemory": Cause(("SET k 1", "CONFIG SET maxmemory 1")),
    "CONFIG SET of several": Cause(("SET k 1", "CONFIG SET maxmemory 1 maxmemory-policy allkeys-random")),
    "a policy that may evict": Cause(
        (
            "SET k 1",
            "CONFIG SET maxmemory-policy noeviction maxmemory 1",
            "PING",
            "CONFIG SET maxmemory-policy allkeys-lru",
        )
    ),
    "a lower limit in EXEC": Cause(("SET k 1", "MULTI", "CONFIG SET maxmemory 1", "EXEC")),
    "a key expires": Cause(("SET k 1 PX 50",)),
    "a field expires": Cause(("HSET k f v", "HPEXPIRE k 50 FIELDS 1 f")),
    "an age is over": Cause(("XADD k * f v", "PENSTOCK.POLICY k MAXAGE 50")),
    "a time to forward has come": Cause(("XADD s 1-0 f v", "PENSTOCK.POLICY s FORWARD k AFTER 50", "XADD s * f v")),
    "a pause is over": Cause(("CLIENT PAUSE 50 WRITE",), lambda server: server.asks(server.other, "SET k 2")),
    "a failover is given up": Cause((), fails_over),
    "a master's stream": Cause((), applies),
}


@pytest.mark.parametrize("cause", CAUSES.values(), ids=CAUSES)
def test_it_is_logged_and_told_without_another_request(cause: Cause) -> None:
    server = WholeServer()
    server.asks(server.client, *cause.requests)
    server.heard.received()
    before = server.logged()
    cause.begins(server)

    server.loop.pass_ms(PERIOD_MS)
    server.loop.pass_ms(1)  # the timer that this has set, not the next cron

    assert server.logged() > before
    assert server.unlogged() == 0
    told = server.heard.received()
    assert b"\r\n%b\r\n" % cause.key in told
    assert b"invalidate" in told


def test_evictions_go_on_by_themselves_until_there_is_room() -> None:
    server = WholeServer()
    server.asks(server.client, *(f"SET key:{number} v" for number in range(2500)), "CONFIG SET maxmemory 1")

    server.loop.pass_ms(PERIOD_MS)
    for _ in range(3):
        server.loop.pass_ms(PERIOD_MS)

    assert server.client.says(b"DBSIZE\r\n") == b":0\r\n"
    assert server.logged() >= 5000


@pytest.mark.parametrize(("ignores", "left"), [("no", b":0\r\n"), ("yes", b":1\r\n")])
def test_a_replica_evicts_what_its_master_sent_unless_it_leaves_that_to_the_master(ignores: str, left: bytes) -> None:
    server = WholeServer()
    limit = f"CONFIG SET replica-ignore-maxmemory {ignores} maxmemory 1 maxmemory-policy allkeys-lru"
    server.asks(server.client, limit, "REPLICAOF 127.0.0.1 1")
    server.loop.pass_ms(PERIOD_MS)
    applies(server)

    server.loop.pass_ms(PERIOD_MS)

    assert server.client.says(b"DBSIZE\r\n") == left


@pytest.mark.parametrize("policy", ["noeviction", "volatile-lru"])
def test_a_limit_that_nothing_can_keep_costs_no_time(policy: str) -> None:
    server = WholeServer()
    server.asks(server.client, "SET k 1", f"CONFIG SET maxmemory 1 maxmemory-policy {policy}")

    server.loop.pass_ms(PERIOD_MS)

    assert server.engine.next_wakeup_ms() == 0
