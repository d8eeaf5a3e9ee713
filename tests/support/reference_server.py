"""A real Redis to compare with, started for the tests that ask for one.

It is looked for at REFERENCE_REDIS (the server's path), in ~/.cache/penstock-reference/redis (where
tools/reference-server puts it) and on PATH.
"""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.wire import Bulk, Connection

LOCALHOST = "127.0.0.1"
PATIENCE_S = 10.0
BETWEEN_LOOKS_S = 0.005


class NoReference(Exception):
    """There is no server to compare with; the text says what was tried."""


def reference_binary(kind: str = "redis") -> Path:
    """The reference's server, or NoReference. `kind`: redis, valkey, or a path."""
    if "/" in kind:
        return Path(kind)
    if kind == "valkey":
        return _valkey_binary()
    named = os.environ.get("REFERENCE_REDIS")
    if named:
        if not os.access(named, os.X_OK):
            raise NoReference(f"REFERENCE_REDIS names {named}, which is no program")
        return Path(named)
    cached = Path.home() / ".cache/penstock-reference/redis/bin/redis-server"
    if cached.exists():
        return cached
    found = shutil.which("redis-server")
    if found is None:
        raise NoReference("no redis-server: set REFERENCE_REDIS, or run `tools/reference-server redis`")
    return Path(found)


def _valkey_binary() -> Path:
    cached = Path.home() / ".cache/penstock-reference/valkey/bin/valkey-server"
    found = cached if cached.exists() else shutil.which("valkey-server")
    if found is None:
        raise NoReference("no valkey-server: run `tools/reference-server valkey`")
    return Path(found)


@contextlib.contextmanager
def reference_server(*directives: str, binary: Path | None = None) -> Iterator[int]:
    """A fresh server on a free loopback port, which is yielded; `directives` as on its command line.

    It keeps nothing on disk and is stopped, by its process, at the end.
    """
    binary = binary or reference_binary()
    with tempfile.TemporaryDirectory(prefix="reference-") as folder:
        port = free_port()
        command = [str(binary), "--port", str(port), "--bind", LOCALHOST, "--dir", folder, "--save", ""]
        command += ["--appendonly", "no", "--enable-debug-command", "yes", "--daemonize", "no", *directives]
        with (Path(folder) / "server.log").open("w+b") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
            try:
                _await_start(process, port, Path(log.name))
                yield port
            finally:
                process.terminate()
                try:
                    process.wait(PATIENCE_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


@contextlib.contextmanager
def reference_cluster(binary: Path | None = None) -> Iterator[int]:
    """A reference server that is the only node of a cluster, and owns all slots; its port."""
    with reference_server("--cluster-enabled", "yes", "--cluster-port", str(free_port()), binary=binary) as port:
        with Connection(LOCALHOST, port) as client:
            client.ask("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
            wait_for_cluster(client)
        yield port


def wait_for_cluster(client: Connection) -> None:
    """A node of Redis that was given its slots is up after up to two seconds."""
    deadline_s = time.monotonic() + PATIENCE_S
    while "cluster_state:fail" in str(client.ask("CLUSTER", "INFO")):
        assert time.monotonic() < deadline_s, "a node that owns all slots is up"
        time.sleep(BETWEEN_LOOKS_S)


def free_port() -> int:
    """A free loopback port."""
    with socket.socket() as probe:
        probe.bind((LOCALHOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _await_start(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with contextlib.suppress(OSError), socket.create_connection((LOCALHOST, port), 1) as connection:
            connection.sendall(b"PING\r\n")
            if connection.recv(64) in (b"+PONG\r\n", b"-NOAUTH Authentication required.\r\n"):
                return
        if process.poll() is not None or time.monotonic() > deadline:
            raise NoReference(f"the reference server did not start: {log.read_text(errors='replace')[-500:]}")
        time.sleep(0.02)


def reference_version(port: int) -> tuple[int, int, int]:
    """The Redis version that the server at a port names in INFO."""
    with Connection(LOCALHOST, port) as client:
        told = client.ask("INFO", "server")
    assert isinstance(told, Bulk), told
    found = re.search(rb"redis_version:(\d+)\.(\d+)\.(\d+)", told.text)
    assert found is not None, "INFO names the version"
    return int(found[1]), int(found[2]), int(found[3])
