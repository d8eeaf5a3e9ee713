"""The server under the frameworks: Penstock, or another one that CLIENTS_SERVER names by its program.

    CLIENTS_SERVER=/usr/bin/redis-server python -m tests.clients.report rq

Either keeps an append-only log, synced before every answer, in the directory that it is given; so it can be stopped
and started again on the same port with the same data.
"""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import redis

from tests.support.certificates import Authority
from tests.support.reference_server import LOCALHOST, free_port

NAMED = "CLIENTS_SERVER"
START_S = 60.0
END_S = 60.0
BETWEEN_LOOKS_S = 0.1
ROOT = Path(__file__).parent.parent.parent
USER = "worker"
PASSWORD = "a-secret"
KEYS = ("~jobs", "~results", "~{desk}*", "&kept")  # of the jobs in tests/clients/apps
COMMANDS = ("+@read", "+@write", "+@connection", "+@transaction", "+@scripting", "+@pubsub", "+info")


def version_of(server: redis.Redis) -> str:
    """As it tells in INFO: `Redis 8.6.3`, `Penstock 0.1.0`."""
    told: dict[str, object] = server.info("server")
    own = told.get("penstock_version")
    return f"Penstock {own}" if own else f"Redis {told['redis_version']}"


class KeptServer:
    """One server, with its data; `start` again after `stop`. It leads a session of its own (`leaders`).

    in_cluster: it is the only node of a cluster, which owns every slot. by_tls: `url` is one of a user with few rights,
    by TLS; `authority` signed the server's certificate.
    """

    def __init__(self, directory: Path, in_cluster: bool = False, by_tls: bool = False) -> None:
        self._in_cluster = in_cluster
        self._tls_port = free_port() if by_tls else 0
        self.authority: Path | None = None
        if by_tls:
            authority = Authority(directory)
            self.authority = authority.file
            self._pair = authority.sign("server")
        self._log = directory / "server.log"
        self._data = directory / "data"
        self._data.mkdir()
        self.port = free_port()
        self._bus_port = free_port()
        self._process = self._started()

    @property
    def leaders(self) -> list[int]:
        """Processes that lead a session."""
        return [self._process.pid]

    @property
    def environment(self) -> dict[str, str]:
        """What the programs of the frameworks are told."""
        return {
            "PORT": str(self.port),
            "REDIS_URL": self.url,
            "NODE_EXTRA_CA_CERTS": str(self.authority or ""),
            "IN_CLUSTER": "1" if self._in_cluster else "",
        }

    @property
    def url(self) -> str:
        """What clients are given."""
        if self._tls_port:
            return f"rediss://{USER}:{PASSWORD}@{LOCALHOST}:{self._tls_port}/0"
        return f"redis://{LOCALHOST}:{self.port}/0"

    def start(self) -> None:
        self._process = self._started()

    def wait_until_ready(self) -> None:
        """Answers to PING; an AssertionError with what it said if it does not."""
        deadline_s = time.monotonic() + START_S
        with redis.Redis(LOCALHOST, self.port) as link:
            while True:
                try:
                    link.ping()
                except redis.RedisError:  # not there, or still loading
                    assert self._process.poll() is None and time.monotonic() < deadline_s, self._log.read_text()[-2000:]
                    time.sleep(BETWEEN_LOOKS_S)
                else:
                    break
            if self._in_cluster:
                self._own_all_slots(link, deadline_s)

    def _own_all_slots(self, link: redis.Redis, deadline_s: float) -> None:
        with contextlib.suppress(redis.ResponseError):  # it owns them already
            link.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        while "cluster_state:ok" not in str(link.execute_command("CLUSTER", "INFO")):
            assert time.monotonic() < deadline_s, "a node that owns all slots is up"
            time.sleep(BETWEEN_LOOKS_S)

    def stop(self) -> None:
        """SIGTERM, as a container host sends it."""
        self._process.terminate()
        self._process.wait(END_S)

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait()

    def version(self) -> str:
        with redis.Redis(LOCALHOST, self.port) as link:
            return version_of(link)

    def _started(self) -> subprocess.Popen[bytes]:
        program = os.environ.get(NAMED)
        command = [program] if program else [sys.executable, "-m", "penstock", "serve"]
        flags = ["--port", str(self.port), "--bind", LOCALHOST, "--dir", str(self._data)]
        flags += ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        if self._in_cluster:
            flags += ["--cluster-enabled", "yes", "--cluster-port", str(self._bus_port)]
            flags += ["--cluster-announce-ip", LOCALHOST]  # ioredis connects to no node without an address
        if self._tls_port:
            flags += ["--tls-port", str(self._tls_port), "--tls-auth-clients", "no"]
            flags += ["--tls-ca-cert-file", str(self.authority)]
            flags += ["--tls-cert-file", str(self._pair.certificate), "--tls-key-file", str(self._pair.key)]
            flags += ["--user", USER, "on", f">{PASSWORD}", *KEYS, *COMMANDS]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [*command, *flags],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
