"""An engine with some data, of which every command of the table can be asked."""

from collections.abc import Iterator

from penstock.engine.engine import Engine
from penstock.engine.session import Session
from penstock.engine.table.row import Row
from tests.support.engines import make_engine
from tests.support.log import UnitLog

SETUP = (
    "SET text hello", "XADD s 1-0 f v", "XADD s 2-0 f v g w", "XADD s 3-0 f v", "XADD n 1-0 f v",
    "XGROUP CREATE s g 0", "XREADGROUP GROUP g alice COUNT 2 STREAMS s >", "XNACK s g FAIL IDS 1 1-0",
    "XGROUP CREATECONSUMER s g bob", "XGROUP CREATE n g $", "EXPIRE n 1000",
)  # fmt: skip

# What a request cannot be asked of an engine alone, or changes by being asked; and PFSELFTEST: its 50 ms are half of
# the time of a law that asks every command.
APART = {
    "DEBUG", "SHUTDOWN", "CONFIG|REWRITE", "MONITOR", "DEBUG|SLEEP", "SYNC", "PSYNC", "REPLICAOF", "SLAVEOF",
    "PFSELFTEST",
}  # fmt: skip

# Their replies hold what no two moments or sessions have in common, or are texts of their own in one of the protocols.
OWN_WORDS = {
    "HELLO", "INFO", "CLIENT|LIST", "CLIENT|INFO", "CLIENT|ID", "COMMAND", "COMMAND|INFO", "COMMAND|DOCS",
    "RESET", "QUIT", "MEMORY|STATS", "MEMORY|USAGE", "MEMORY|MALLOC-STATS", "ACL|GENPASS", "RANDOMKEY",
    "LATENCY|HISTOGRAM", "MEMORY|DOCTOR", "ROLE", "SLOWLOG|GET",
}  # fmt: skip


def prepared(log: UnitLog | None = None) -> tuple[Engine, Session]:
    engine = make_engine(log=log)
    session = engine.server.connect("127.0.0.1:1", "127.0.0.1:2")
    for line in SETUP:
        assert not engine.handle(session, [word.encode() for word in line.split()]).startswith(b"-"), line
    return engine, session


def rows(engine: Engine) -> Iterator[Row]:
    for row in engine.commands.rows.values():
        for one in (row, *row.subcommands.values()):
            if not one.is_container and one.name not in APART:
                yield one
