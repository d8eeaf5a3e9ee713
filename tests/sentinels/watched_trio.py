"""A master and two replicas, started from files, that real Sentinels watch: each can be killed, stopped and cut off."""

import os
import re
import signal
from contextlib import ExitStack
from pathlib import Path

import redis

from tests.sentinels.parted_network import PartedNetwork, source_address
from tests.support.deployments import MASTER, Process, RedisProcess, Sentinels, until
from tests.support.reference_server import LOCALHOST, free_port
from tests.support.server_process import ServerProcess

SERVERS = 3
HOST = "localhost"
PASSWORD = "secret"
EXAMPLE = Path(__file__).parents[2] / "examples" / "high-availability" / "server.conf"
CHANNEL, RIGHTS = re.findall("^user sentinel .* (&.*) -@all (.*)$", EXAMPLE.read_text(), re.MULTILINE)[0]
FILE = """\
port {port}
bind 127.0.0.1
dir {folder}
appendonly yes
appendfsync everysec
requirepass secret
masterauth secret
user sentinel on >watching resetchannels {channel} -@all {rights}
replica-announce-ip localhost
replica-announce-port {announced}
bind-source-addr {source}
replica-priority {priority}
repl-diskless-sync-delay 0
min-replicas-max-lag 10
"""
LOGIN = "sentinel auth-user main sentinel\nsentinel auth-pass main watching"


def client_of(port: int, timeout_s: float | None = 5.0) -> redis.Redis:
    return redis.Redis(LOCALHOST, port, password=PASSWORD, socket_timeout=timeout_s, decode_responses=True)


class Trio:
    """Server 0 is the master at first. Of the others the last has the lowest `replica-priority`: it is preferred."""

    def __init__(
        self,
        stack: ExitStack,
        folder: Path,
        kind: str,
        sentinels: str = "redis",
        more: str = "",
        parts: bool = False,
        lead_sessions: bool = False,
    ) -> None:
        """kind: penstock, redis, valkey, or the path of a server. more: lines of the servers' files.

        parts: they reach each other by a `network` that can be parted. lead_sessions: each process has one of its own.
        """
        self._kind = kind
        self._lead_sessions = lead_sessions
        self.ports = [free_port() for _ in range(SERVERS)]
        self.announced = self.ports
        if parts:
            self.network = PartedNetwork(stack, self.ports)
            self.announced = self.network.ports
        self.files = [folder / f"{number}" / "server.conf" for number in range(SERVERS)]
        for number, file in enumerate(self.files):
            file.parent.mkdir()
            role = f"replicaof {HOST} {self.announced[0]}\n" if number else ""
            file.write_text(self._text_of(number, file.parent) + more + role)
        self.processes = [self._started(number) for number in range(SERVERS)]
        stack.callback(lambda: [process.kill() for process in self.processes])
        self.clients = [stack.enter_context(client_of(port)) for port in self.ports]
        until(lambda: self.follow(0), "the replicas have no link")
        self.sentinels = Sentinels(stack, folder, self.announced[0], sentinels, HOST, LOGIN, lead_sessions)
        until(self.is_settled, "the Sentinels do not meet")

    def _text_of(self, number: int, folder: Path) -> str:
        return FILE.format(
            port=self.ports[number],
            announced=self.announced[number],
            source=source_address(number),
            folder=folder,
            priority=100 - 10 * number,
            channel=CHANNEL,
            rights=RIGHTS,
        )

    def _started(self, number: int) -> Process:
        file = self.files[number]
        if self._kind != "penstock":
            port, leads = self.ports[number], self._lead_sessions
            return RedisProcess(file.parent, str(file), port=port, kind=self._kind, leads_session=leads)
        words = (str(file), "--port", str(self.ports[number]))
        process = ServerProcess(words, file.parent, {}, leads_session=self._lead_sessions)
        process.wait_until_ready()
        return process

    @property
    def master(self) -> int:
        """The server that the first Sentinel names."""
        _, port = self.sentinels.clients[0].execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER)
        return self.announced.index(int(port))

    def role(self, number: int) -> str:
        """`master` or `slave`; nothing if it does not answer."""
        try:
            return str(self.clients[number].role()[0])
        except redis.RedisError:
            return ""

    def follow(self, master: int) -> bool:
        """Whether the others are replicas of a server, with a link."""
        links = [self.clients[number].info("replication") for number in range(SERVERS) if number != master]
        expected = ("up", self.announced[master])
        return all((link.get("master_link_status"), link.get("master_port")) == expected for link in links)

    def is_settled(self) -> bool:
        """Whether all servers are up and follow the master, and the Sentinels know it."""
        return self.follow(self.master) and self.sentinels.know(replicas=SERVERS - 1)

    def kill(self, number: int) -> None:
        self.processes[number].kill()

    def start(self, number: int) -> None:
        """Start a server that was killed, from its file as it is by now."""
        self.processes[number] = self._started(number)

    def freeze(self, number: int) -> None:
        """Stop the process of a server: it holds its connections and does not answer."""
        os.kill(self.processes[number].pid, signal.SIGSTOP)

    def thaw(self, number: int) -> None:
        os.kill(self.processes[number].pid, signal.SIGCONT)
