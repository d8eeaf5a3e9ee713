"""Notifies the supervisor (systemd, upstart) that the server is ready, and that it ends."""

import os
import signal
import socket
from collections.abc import Callable, Mapping
from typing import Final

SYSTEMD: Final = "NOTIFY_SOCKET"  # where systemd listens (sd_notify(3)); @ stands for the abstract socket's NUL
UPSTART: Final = "UPSTART_JOB"


def notify_ready(supervised: str, environment: Mapping[str, str], warn: Callable[[str], None]) -> None:
    """Notify the supervisor that the directive `supervised` names; `auto` finds out which there is."""
    if supervised in ("upstart", "auto") and environment.get(UPSTART):
        os.kill(os.getpid(), signal.SIGSTOP)  # upstart's `expect stop`: it sends SIGCONT
    elif supervised == "systemd" or (supervised == "auto" and environment.get(SYSTEMD)):
        _notify(environment, b"STATUS=Ready to accept connections\nREADY=1\n", warn)


def notify_end(supervised: str, environment: Mapping[str, str]) -> None:
    """Notify systemd that the server begins to shut down."""
    if supervised in ("systemd", "auto") and environment.get(SYSTEMD):
        _notify(environment, b"STOPPING=1\n", lambda _: None)


def _notify(environment: Mapping[str, str], message: bytes, warn: Callable[[str], None]) -> None:
    path = environment.get(SYSTEMD, "")
    if not path:
        warn(f"systemd supervision error: {SYSTEMD} not found!")  # Redis 8.6.3 goes on too
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
            link.sendto(message, "\0" + path[1:] if path.startswith("@") else path)
    except OSError as problem:
        warn(f"systemd supervision error: {path}: {problem.strerror}")
