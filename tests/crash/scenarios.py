"""A random life of a server on a disk that forgets, fails and fills up, until the power goes; and what must be left."""

import errno
import random
from typing import NamedTuple

from penstock.errors import UsageError
from tests.crash.loaders import is_trouble
from tests.crash.picture import picture
from tests.crash.powered import Peer, PoweredServer, PowerLoss
from tests.crash.requests import Requests
from tests.support.dialogue import Dialogue, decoded
from tests.support.memory_disk import MemoryDisk

PREFIXES = ("p:", "q:")
OLDEST_UNSYNCED_MS = 1000  # everysec: of an answer, when a sync begins


class Moment(NamedTuple):
    """A request was handled: what everything looked like then, and whether the log got something to write.

    In trouble a request that only reads is answered, and may see what no log has: its answer makes nothing certain.
    """

    request: list[bytes]
    picture: object
    is_logged: bool


class Life:
    """One server after the other on one disk. `moments` are those since the last start, the state it found first."""

    def __init__(self, seed: int, policy: str, faults: bool) -> None:
        """Every second seed has a log whose bases are RDB files."""
        self._chance = random.Random(seed)
        self._policy = policy
        self._directives = {"appendfsync": policy, "aof_use_rdb_preamble": ("no", "yes")[seed % 2]}
        self._faults = faults
        self._requests = [Requests(self._chance, prefix) for prefix in PREFIXES]
        self.disk = MemoryDisk()
        self.refused_starts = 0
        self.misconfs = 0
        self.answers = 0
        self.rewritings = 0
        self._begin(self._started())
        for peer, requests in zip(self._peers, self._requests, strict=True):
            self._send(peer, requests.opening())

    # -- starting ---------------------------------------------------------------------------------------------------

    def _started(self) -> PoweredServer:
        """A refusal must say where; then what is damaged is cut off, as `check-log --fix` does."""
        try:
            return PoweredServer(self.disk, **self._directives)
        except UsageError as refusal:
            assert "incr.aof" in str(refusal) and "byte" in str(refusal), refusal
            self.refused_starts += 1
        most = {"aof_load_corrupt_tail_max_size": "1000000"}
        return PoweredServer(self.disk.restart(), **self._directives, **most)

    def _begin(self, server: PoweredServer) -> None:
        self.server = server
        self.disk = server.disk
        self._peers = [Peer(server) for _ in PREFIXES]
        self._admin = Peer(server)
        self._observer = Dialogue(server.engine)
        self.moments = [Moment([], self.picture(), False)]
        self._asked: dict[Peer, list[int]] = {peer: [] for peer in self._peers}  # moments whose replies are to come
        self._answered: list[tuple[int, int]] = []  # when, which moment
        self._shaky_since_ms: int | None = None  # a sync runs, or failed and no fresh base came after it

    def picture(self) -> object:
        return [picture(lambda *words: decoded(self._observer.words(*words)), prefix) for prefix in PREFIXES]

    # -- living -----------------------------------------------------------------------------------------------------

    def live(self, steps: int) -> None:
        """Until the power goes, at a random step or at a random named moment of it."""
        countdown = self._chance.randrange(4 * steps)

        def reached(point: str) -> None:
            nonlocal countdown
            countdown -= 1
            if countdown == 0:
                raise PowerLoss(point)

        self.disk.on_reach = reached
        try:
            for _ in range(self._chance.randrange(1, steps)):
                self._step()
                self._look()
        except PowerLoss:
            pass

    def _step(self) -> None:
        chance, server = self._chance, self.server
        kind = chance.random()
        if kind < 0.5:
            for number in range(len(self._peers)):
                if chance.random() < 0.7:
                    self._send(self._peers[number], self._requests[number].batch()[: chance.randint(1, 8)])
            server.loop.turn()
        elif kind < 0.6:
            server.later(chance.choice((1, 100, 300, 1000, 1000)))
        elif kind < 0.75:
            server.finish_syncs()
        elif kind < 0.8:
            self._admin.send([b"BGREWRITEAOF"])
            server.loop.turn()
        elif kind < 0.85:
            self.rewritings += server.rewriting.pid != 0
            server.finish_rewriting()
        elif self._faults:
            self._break_disk()

    def _break_disk(self) -> None:
        disk, chance = self.disk, self._chance
        what = chance.choice(("room", "short", "mended", "mended", "write", "sync", "sync", "sync", "truncate",
                              "rename", "create", "sync_directory"))  # fmt: skip
        if what == "room":
            disk.room = chance.randrange(2000)
        elif what == "short":
            disk.shortest = chance.choice((1, 7, 100))
        elif what == "mended":
            disk.room = disk.shortest = None
            disk.failures.clear()
        else:
            disk.failures[what] = [0] * chance.randrange(3) + [chance.choice((errno.EIO, errno.ENOSPC))]

    def _send(self, peer: Peer, requests: list[list[bytes]]) -> None:
        for request in requests:
            persistence = self.server.engine.persistence
            units = persistence.appended_units()
            try:
                peer.send(request)
            finally:  # its turn may end at once, and the power go meanwhile
                self._asked[peer].append(len(self.moments))
                self.moments.append(Moment(request, self.picture(), persistence.appended_units() > units))

    def _look(self) -> None:
        """Take note of what was answered, and of how old an answer may be that is not safe."""
        durability = self.server.durability
        log = durability.log
        assert log is not None, "appendonly is yes"
        now_ms = self.server.clock.now_us() // 1000
        for peer, asked in self._asked.items():
            for reply in peer.read():
                moment = asked.pop(0)
                if is_trouble(reply):
                    self.misconfs += 1
                else:
                    self.answers += 1
                    if self.moments[moment].is_logged:
                        self._answered.append((now_ms, moment))
        if durability.syncing.sync is None and not log.held:
            self._shaky_since_ms = None
        elif self._shaky_since_ms is None:
            self._shaky_since_ms = min(now_ms, durability.syncing.began_ms) if durability.syncing.sync else now_ms

    # -- dying ------------------------------------------------------------------------------------------------------

    def certain(self) -> int:
        """The last moment that nothing may be lost of, nor of any before it."""
        self._look()
        if self._policy == "always":
            return max((moment for _, moment in self._answered), default=0)
        now_ms = self.server.clock.now_us() // 1000
        shaky_ms = now_ms if self._shaky_since_ms is None else self._shaky_since_ms
        before_ms = shaky_ms - OLDEST_UNSYNCED_MS
        return max((moment for when_ms, moment in self._answered if when_ms < before_ms), default=0)

    def lose_power(self) -> None:
        """Restart, and check that what is left is what was there at some moment, none before the certain one."""
        certain = self.certain()
        moments = self.moments
        self.disk = self.disk.lose_power(self._chance)
        self._begin(self._started())
        found = self.moments[0].picture
        left = [number for number, moment in enumerate(moments) if moment.picture == found]
        assert left, f"this never was: {found}"
        assert left[-1] >= certain, f"left is {left}, but {certain} of {len(moments)} moments were certain"
