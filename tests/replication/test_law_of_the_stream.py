"""Whatever a master sends, a replica changes its data, or ends the link: nothing else of the replica changes."""

import random
import shlex
from typing import Final

import pytest

from penstock.engine.replication import master as links
from penstock.engine.replication import role
from penstock.engine.replication.stream_applier import NotReplicated, StreamApplier
from penstock.engine.table.row import Row
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.log import UnitLog
from tests.support.random_words import Request
from tests.support.table_engine import prepared
from tests.support.table_requests import TableRequests, rows_by_name

ROWS: Final = [row for row in rows_by_name().values() if not row.is_container]
REQUESTS: Final = 3  # of each row

# What a master that means harm would send
ORDERS: Final = {
    "CONFIG|SET": ["CONFIG SET maxmemory 1mb", "CONFIG SET requirepass x dir /"],
    "ACL|SETUSER": ["ACL SETUSER eve on nopass ~* +@all"],
    "ACL|DELUSER": ["ACL DELUSER kept"],
    "REPLICAOF": ["REPLICAOF NO ONE", "REPLICAOF 127.0.0.1 1"],
    "SLAVEOF": ["SLAVEOF NO ONE"],
    "SHUTDOWN": ["SHUTDOWN NOSAVE", "SHUTDOWN NOW FORCE"],
    "FAILOVER": ["FAILOVER"],
    "BGREWRITEAOF": ["BGREWRITEAOF"],
    "BGSAVE": ["BGSAVE SCHEDULE"],
    "DEBUG": ["DEBUG SLEEP 0", "DEBUG SET-ACTIVE-EXPIRE 0", "DEBUG PANIC"],
    "CLIENT|PAUSE": ["CLIENT PAUSE 100000 ALL"],
    "CLIENT|KILL": ["CLIENT KILL TYPE normal SKIPME no"],
    "SLOWLOG|RESET": ["SLOWLOG RESET"],
    "CONFIG|RESETSTAT": ["CONFIG RESETSTAT"],
    "MIGRATE": ["MIGRATE 127.0.0.1 1 text 0 10"],
    "SUBSCRIBE": ["SUBSCRIBE c"],
    "MONITOR": ["MONITOR"],
    "EVAL": ["EVAL 'while true do end' 0", "EVAL \"return redis.call('SET', 'text', '1')\" 0"],
    "SELECT": ["SELECT 99", "SELECT x"],
    "PSYNC": ["PSYNC ? -1"],
    "RESET": ["RESET"],
    "QUIT": ["QUIT"],
}


class Replica:
    """An engine that follows, with some data, a user and a client."""

    def __init__(self) -> None:
        self.engine, _ = prepared(UnitLog())
        self.client = Dialogue(self.engine)
        self.client("ACL SETUSER kept on nopass ~* +@all", "CLIENT SETNAME me", "CONFIG SET slowlog-log-slower-than 0")
        role.follow(self.engine.server, "127.0.0.1", 7001)
        master = self.engine.replication.master
        assert master is not None
        master.set_link(links.CONNECTED, NOW_MS)
        self.applier = StreamApplier(self.engine, 0, lambda line: None)

    def takes(self, request: Request) -> bool:
        """False where that ends the link."""
        try:
            self.applier.apply([[word.encode("utf-8", "surrogateescape") for word in request]])
        except NotReplicated:
            return False
        return True

    def picture(self) -> list[object]:
        """What is not data."""
        engine, ask = self.engine, self.client
        clients, conditions, persistence = engine.clients, engine.conditions, engine.persistence
        master = engine.replication.master
        return [
            ask("CONFIG GET *"), ask("ACL LIST"), ask("CLIENT GETNAME"), ask("CLIENT TRACKINGINFO"),
            ask("PUBSUB CHANNELS"), ask("PUBSUB SHARDCHANNELS"), ask.session.blocked, ask.session.closing,
            len(clients.sessions), len(clients.to_close), len(clients.monitors), conditions.bits, conditions.busy,
            conditions.loading, persistence.wanted_shutdown, persistence.wanted_rewrite, conditions.pauses_all,
            conditions.active_expiry, persistence.child, persistence.rewrite_scheduled,
            master is not None and master.is_up, engine.replication.failover.state, engine.replication.id,
            len(engine.replication.replicas),
        ]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_request_of_the_stream_changes_data_or_ends_the_link(row: Row) -> None:
    requests = TableRequests(random.Random(row.name))
    lines = [shlex.split(line) for line in ORDERS.get(row.name, [])]
    replica = Replica()
    before = replica.picture()

    for request in [*lines, *[requests.of_row(row) for _ in range(REQUESTS)]]:
        if not replica.takes(request):
            replica.applier = StreamApplier(replica.engine, 0, lambda line: None)
        assert replica.picture() == before, request
