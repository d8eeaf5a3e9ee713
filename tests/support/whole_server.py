"""A server without a network that has all that does something outside of requests: its log, its cron, its replicas."""

from penstock.server.cron import PERIOD_S, Cron
from penstock.server.replication.replicas import Replicas
from penstock.server.turns.log_writer import AofWriter
from tests.support.deferred_log import DeferredThreads
from tests.support.fake_server import Client, FakeServer
from tests.support.memory_disk import MemoryDisk

PERIOD_MS = round(PERIOD_S * 1000)
STEP_MS = 20


class WholeServer(FakeServer):
    """appendfsync always, on a disk in memory. `heard` is a client that hears of every change."""

    def __init__(self) -> None:
        super().__init__(
            appendonly="yes", appendfsync="always", notify_keyspace_events="KEA", maxmemory_policy="allkeys-lru"
        )
        self.settings.read_line(["enable-debug-command", "yes"], set())
        self.said: list[str] = []
        self.disk = MemoryDisk()
        self.threads = DeferredThreads()
        self.log_file = AofWriter(self.settings, self.engine, self.said.append, self.disk, self.threads)
        for _ in self.log_file.loading():
            pass
        self.turn.log_writer = self.log_file
        self.log_file.synced = self.turn.look_after_log
        self.replicas = Replicas(self.turn, MemoryDisk(), self.said.append)
        self.turn.replicas = self.replicas
        Cron(self.turn).start()
        self.client = self.connect()
        self.other = self.connect()
        self.heard = self.connect()
        self.heard.says(b"HELLO 3\r\nCLIENT TRACKING ON BCAST\r\nPSUBSCRIBE __key*__:*\r\n")

    def asks(self, client: Client, *lines: str) -> None:
        for line in lines:
            client.says(line.encode() + b"\r\n")

    def passes(self, ms: int) -> None:
        """Let time pass in small steps, with what comes due on the way; threads run between two steps."""
        for _ in range(0, ms, STEP_MS):
            self.loop.pass_ms(STEP_MS)
            self.threads.run()
            self.loop.turn()

    def unlogged(self) -> int:
        """Units that are not safe on the disk."""
        log = self.log_file.log
        assert log is not None
        return log.appended - log.synced

    def logged(self) -> int:
        """Units that are safe."""
        log = self.log_file.log
        assert log is not None
        return log.synced
