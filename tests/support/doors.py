"""A server that is reached by TCP, by a unix socket and by TLS, on either event loop."""

import os
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.certificates import Authority
from tests.support.reference_server import free_port
from tests.support.server_process import ServerProcess, running_server

PATIENCE_S: Final = 60.0


@dataclass
class Doors:
    """The ways into one server."""

    server: ServerProcess
    path: Path
    tls_port: int
    context: ssl.SSLContext

    def tcp(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.server.port), PATIENCE_S)

    def tls(self) -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", self.tls_port), PATIENCE_S)
        return self.context.wrap_socket(plain, server_hostname="localhost")

    def unix(self) -> socket.socket:
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(PATIENCE_S)
        link.connect(str(self.path))
        return link

    def stop(self) -> None:
        """Have the process stand still from now on."""
        os.kill(self.server.pid, signal.SIGSTOP)
        os.waitpid(self.server.pid, os.WUNTRACED)

    def go_on(self) -> None:
        os.kill(self.server.pid, signal.SIGCONT)


@contextmanager
def open_doors(loop: str, folder: Path) -> Iterator[Doors]:
    """loop: uvloop or asyncio."""
    authority = Authority(folder)
    pair = authority.sign("server")
    path, tls_port = folder / "socket", free_port()
    flags = (
        "--appendonly", "no", "--unixsocket", str(path), "--tls-port", str(tls_port), "--tls-auth-clients", "no",
        "--tls-cert-file", str(pair.certificate), "--tls-key-file", str(pair.key),
        "--tls-ca-cert-file", str(authority.file),
    )  # fmt: skip
    environment = {"PENSTOCK_LOOP": loop}
    words = ("--port", str(free_port()), *flags)
    with running_server(*words, environment=environment, wrapper=("env",)) as server:  # a child, for `stop` to wait for
        yield Doors(server, path, tls_port, ssl.create_default_context(cafile=str(authority.file)))
