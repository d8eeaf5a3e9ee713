"""Servers and Sentinels that examples/high-availability/start runs, each at a loopback address of its own."""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import redis

from tests.support.deployments import MASTER, known_to, until
from tests.support.reference_server import free_port, reference_binary

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "examples" / "high-availability"
NAMES: Final = ("127.0.1.1", "127.0.1.2", "127.0.1.3")
PASSWORD: Final = "clients"


def write_programs(folder: Path, **scripts: str) -> None:
    """Programs for PATH: what a shell runs under each name."""
    folder.mkdir()
    for name, script in scripts.items():
        file = folder / name.replace("_", "-")
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)


def environment(programs: Path, name: str, port: int, sentinel_port: int) -> dict[str, str]:
    """What a container has: `programs` stand before those of the system."""
    told = {"NAME": name, "FIRST": NAMES[0], "SENTINELS": " ".join(NAMES), "PASSWORD": PASSWORD}
    told |= {"PORT": str(port), "SENTINEL_PORT": str(sentinel_port), "SENTINEL_PASSWORD": "watching"}
    return os.environ | told | {"PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


class Started:
    """Three servers and three Sentinels, of which none has a file at first. NoReference if there is no Redis."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        sentinel = reference_binary()
        self._folder = folder
        self._programs = folder / "bin"
        write_programs(
            self._programs,
            redis_server=f'exec {sys.executable} -m penstock serve "$@" --bind "$NAME"',
            redis_sentinel=f'exec {sentinel} "$@" --sentinel --bind "$NAME"',
            redis_cli=f'exec {sentinel.with_name("redis-cli")} "$@"',
        )
        self._port, self._sentinel_port = free_port(), free_port()
        self._processes: dict[tuple[str, int], subprocess.Popen[bytes]] = {}
        stack.callback(lambda: [self.kill(kind, number) for kind, number in list(self._processes)])
        self.clients = [
            stack.enter_context(redis.Redis(name, self._port, password=PASSWORD, decode_responses=True))
            for name in NAMES
        ]
        self._sentinels = [
            stack.enter_context(redis.Redis(name, self._sentinel_port, decode_responses=True)) for name in NAMES
        ]

    def folder(self, kind: str, number: int) -> Path:
        """The volume of one."""
        found = self._folder / f"{kind}-{number}"
        found.mkdir(exist_ok=True)
        return found

    def start(self, kind: str, number: int) -> None:
        """kind: server or sentinel."""
        with (self._folder / f"{kind}-{number}.log").open("ab") as log:
            self._processes[kind, number] = subprocess.Popen(
                ["sh", str(FOLDER / "start"), kind],
                cwd=self.folder(kind, number),
                env=environment(self._programs, NAMES[number], self._port, self._sentinel_port),
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def said(self, kind: str, number: int) -> str:
        return (self._folder / f"{kind}-{number}.log").read_text()

    def kill(self, kind: str, number: int) -> None:
        """SIGKILL."""
        self._processes[kind, number].kill()
        self._processes[kind, number].wait()

    @property
    def master(self) -> int:
        """The server that the first Sentinel names."""
        host, _ = self._sentinels[0].execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER)
        return NAMES.index(host)

    def is_settled(self) -> bool:
        """Whether the others follow the master that the Sentinels name, and all Sentinels know all."""
        try:
            links = [one.info("replication") for number, one in enumerate(self.clients) if number != self.master]
            known = [known_to(one) for one in self._sentinels]
        except redis.RedisError:
            return False
        expected = ("up", NAMES[self.master])
        follow = [(link.get("master_link_status"), link.get("master_host")) == expected for link in links]
        return all(follow) and known == [(2, 2, True)] * len(NAMES)

    def wait_until_settled(self) -> None:
        until(self.is_settled, "the servers do not settle")
