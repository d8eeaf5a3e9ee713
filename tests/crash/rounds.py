"""Rounds of start, check, load, crash, all in one directory."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.crash.loaders import Link, Loader, PrivateLoader, Rewriter, SharedLoader, linked
from tests.crash.verdicts import Lost, check_private, check_shared, check_unchanged
from tests.support.server_process import ServerProcess

PRIVATE = 3  # clients
SHARED = 2
DATABASES = (0, 0, 1)
FLAGS = ("--auto-aof-rewrite-min-size", "64kb", "--auto-aof-rewrite-percentage", "100", "--hz", "100")
START_S = 120.0  # the machine may be busy
END_S = 60.0


class Suffered(NamedTuple):
    """What a fault led to: whether clients met MISCONF, and whether the server came out of it."""

    trouble: bool
    recovered: bool


class Rounds:
    """Crash after crash of servers that share a directory. Lost is raised where something is missing.

    The keys of a round are checked after its crash and once more after the next one, then deleted.
    """

    def __init__(self, directory: Path, chance: random.Random, policy: str, rdb_base: str = "no") -> None:
        self.directory = directory
        self._chance = chance
        self._flags = ("--appendfsync", policy, "--aof-use-rdb-preamble", rdb_base, *FLAGS)
        self._loaders: list[Loader] = []  # of the last round
        self._pictures: list[tuple[PrivateLoader, object]] = []  # of the round before
        self.rounds = 0
        self.requests = 0  # answered

    def start(self, fault: str = "") -> ServerProcess:
        """A server; it may end while it starts, where there is a fault."""
        server = ServerProcess(self._flags, self.directory, {"PENSTOCK_FAULT": fault})
        try:
            server.wait_until_ready(START_S)
        except AssertionError:
            if not fault:
                server.kill()
                raise Lost("the log does not load:\n" + server.said) from None
        return server

    def round(self, longest_s: float = 0.3) -> None:
        """Check what the last crash left, load, and kill at a random moment."""
        server = self.start()
        try:
            self.check(server)
            self._load(server, self._chance.random() * longest_s)
        finally:
            server.kill()
        self._end_loading()

    def crash_at(self, fault: str) -> bool:
        """Load until the server is killed at a fault's point, maybe while it starts; whether it was."""
        server = self.start(fault)
        try:
            self._load(server, END_S)
            return not server.is_alive
        finally:
            server.kill()
            self._end_loading()

    def suffer(self, fault: str, seconds: float) -> "Suffered":
        """Load a server with a fault that it should outlive, wait until it serves writers again, and kill it.

        The load lasts so long, or until a loader has met trouble: how soon that is depends on the disk's speed.
        """
        server = self.start(fault)
        try:
            self._load(server, seconds, lambda: any(loader.met_trouble for loader in self._loaders))
            self._end_loading()
            assert server.is_alive, "the server ended:\n" + server.said
            with linked(server.port) as link:
                in_time = recovered(link)
            return Suffered(any(loader.met_trouble for loader in self._loaders), in_time)
        finally:
            server.kill()

    def last_check(self) -> None:
        """What the last crash left."""
        server = self.start()
        try:
            self.check(server)
        finally:
            server.kill()

    @contextmanager
    def served(self) -> Iterator[Link]:
        """A connection to what the last crash left."""
        server = self.start()
        try:
            with linked(server.port) as link:
                yield link
        finally:
            server.kill()

    # -- loading ----------------------------------------------------------------------------------------------------

    def _load(self, server: ServerProcess, seconds: float, is_enough: Callable[[], bool] = lambda: False) -> None:
        """For so long, or until the server ends, or until it is enough."""
        if not server.is_alive:
            return
        self.rounds += 1
        prefix = f"r{self.rounds}:"
        chance = self._chance
        private = [
            PrivateLoader(server.port, f"{prefix}{number}:", DATABASES[number], random.Random(chance.random()))
            for number in range(PRIVATE)
        ]
        shared = [
            SharedLoader(server.port, prefix, f"client{number}", random.Random(chance.random()))
            for number in range(SHARED)
        ]
        self._loaders = [*private, *shared, Rewriter(server.port, random.Random(chance.random()))]
        for loader in self._loaders:
            loader.start()
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s and server.is_alive and not is_enough():
            time.sleep(min(0.01, max(0.0, until_s - time.monotonic())))

    def _end_loading(self) -> None:
        for loader in self._loaders:
            loader.stops = True
            loader.join(END_S)
            if loader.failure is not None:
                raise loader.failure
        self.requests += sum(loader.answered for loader in self._loaders if isinstance(loader, PrivateLoader))

    # -- checking ---------------------------------------------------------------------------------------------------

    def check(self, server: ServerProcess) -> None:
        with linked(server.port) as link:
            for private, was in self._pictures:
                check_unchanged(link, private, was)
                self._forget(link, private)
            self._pictures = []
            shared = [loader for loader in self._loaders if isinstance(loader, SharedLoader)]
            if shared:
                check_shared(link, shared)
                link.ask(b"DEL", *[shared[0].prefix + name for name in (b"shared", b"pairs", b"count")])
            for loader in self._loaders:
                if isinstance(loader, PrivateLoader):
                    self._pictures.append((loader, check_private(link, loader)))
            self._loaders = []

    def _forget(self, link: Link, loader: PrivateLoader) -> None:
        link.ask(b"SELECT", b"%d" % loader.database)
        keys = link.ask(b"KEYS", loader.prefix.encode() + b"*")
        if isinstance(keys, list) and keys:
            link.ask(b"DEL", *keys)


def recovered(link: Link) -> bool:
    """Wait until writers are served again; whether they are."""
    until_s = time.monotonic() + END_S
    while (answer := link.ask(b"PING")) != b"PONG" and time.monotonic() < until_s:
        time.sleep(0.05)
    return answer == b"PONG"
