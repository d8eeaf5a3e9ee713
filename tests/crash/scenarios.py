"""A random life of a server on a disk that forgets, fails and fills up, until the power goes; and what must be left.

Every reply is true. What was refused changed nothing. What was confirmed is there after the power went (`always`; with
`everysec`, if it is old enough), and after the process was killed once the disk has recovered. A connection is closed
by `always` only, and then there may be either.
"""

import errno
import random
from typing import NamedTuple

from penstock.errors import UsageError
from penstock.server.turns.log_writer import MOST_WAITING
from tests.crash.loaders import is_trouble
from tests.crash.picture import picture
from tests.crash.powered import Peer, PoweredServer, PowerLoss
from tests.crash.requests import Requests
from tests.support.dialogue import Dialogue, decoded
from tests.support.memory_disk import MemoryDisk

PREFIXES = ("p:", "q:")
OLDEST_UNSYNCED_MS = 1000  # everysec: of an answer, when a sync begins
FILLER = b"v" * 300_000  # takes room of the disk, in a key that no picture has
RECOVERY_S = 70  # within which each failure is tried again


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
        """Every second seed has a log with RDB files as bases, every third a disk that cannot reserve room.

        Two of four have a log in which next to nothing may wait in memory for a base.
        """
        self._chance = random.Random(seed)
        self._policy = policy
        self._directives = {"appendfsync": policy, "aof_use_rdb_preamble": ("no", "yes")[seed % 2]}
        self._faults = faults
        self._most_waiting = (MOST_WAITING, 100)[seed % 4 // 2]
        self._requests = [Requests(self._chance, prefix) for prefix in PREFIXES]
        self.disk = MemoryDisk()
        self.disk.reserves = seed % 3 != 2
        self.refused_starts = 0
        self.misconfs = 0
        self.closed = 0
        self.refused_ends = 0
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
        server.durability.most_waiting = self._most_waiting
        self._peers = [Peer(server) for _ in PREFIXES]
        self._observer = Dialogue(server.engine)
        self.moments = [Moment([], self.picture(), False)]
        self._asked: dict[Peer, list[int]] = {peer: [] for peer in self._peers}  # moments with replies to come
        self._answered: list[tuple[int, int]] = []  # when, which moment
        # A sync runs, or failed and no fresh base came after it, or something waits in memory.
        self._shaky_since_ms: int | None = None
        self._has_ended = self._is_safe = False  # by SHUTDOWN; with everything on the disk

    def picture(self) -> object:
        return [picture(lambda *words: decoded(self._observer.words(*words)), prefix) for prefix in PREFIXES]

    # -- living -----------------------------------------------------------------------------------------------------

    def live(self, steps: int, ends_amid: bool = True) -> None:
        """Until the power goes, at a random step or, if it ends amid one, at a random named moment of it."""
        countdown = self._chance.randrange(4 * steps) if ends_amid else 0

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
            log = server.durability.log
            has_bound = log is None or not log.writes_held or log.buffered <= self._most_waiting
            assert has_bound, "what waits for a base has a bound"
        elif kind < 0.75:
            server.finish_syncs()
        elif kind < 0.8:
            Peer(server).send([b"BGREWRITEAOF"])
            server.loop.turn()
        elif kind < 0.85:
            self.rewritings += server.rewriting.pid != 0
            server.finish_rewriting()
        elif kind < 0.87:
            Peer(server).send([b"SET", b"filler", FILLER])
            server.loop.turn()
        elif kind < 0.9:
            self._begin_log()
        elif self._faults:
            self._break_disk()

    def _begin_log(self) -> None:
        """A log begins, or begins anew, with a base that is still to be written; or the server is told to end then."""
        server = self.server
        what = self._chance.choice(("no", "yes", "anew", "anew", "end"))
        if what == "anew":
            server.durability.begin_anew()
        elif what == "end":
            self._shut_down()
        else:
            Peer(server).send([b"CONFIG", b"SET", b"appendonly", what.encode()])
            server.loop.turn()

    def _shut_down(self) -> None:
        """SHUTDOWN, which is refused while the data are in no file."""
        persistence = self.server.engine.persistence
        lacks_base = persistence.log is not None and persistence.log.lacks_base
        has_log = persistence.log is not None
        admin = Peer(self.server)  # nothing that it asked before is withheld
        admin.send([b"SHUTDOWN", b"NOSAVE"])
        if lacks_base:
            self.server.loop.turn()
            self.refused_ends += 1
            assert "Errors trying to SHUTDOWN" in str(admin.read())
            return
        self.moments.append(Moment([b"SHUTDOWN"], self.picture(), False))
        self._has_ended = True
        self._is_safe = self.server.turn.close() and has_log
        self._look()
        raise PowerLoss("the process has ended")

    def _break_disk(self) -> None:
        disk, chance = self.disk, self._chance
        what = chance.choice(("room", "short", "mended", "mended", "write", "sync", "sync", "sync", "truncate",
                              "rename", "create", "sync_directory"))  # fmt: skip
        if what == "room":
            disk.room = chance.choice((0, chance.randrange(2000), chance.randrange(2_000_000)))
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
        now_ms = self.server.clock.now_us() // 1000
        for number, peer in enumerate(self._peers):
            asked = self._asked[peer]
            for reply in peer.read():
                moment = asked.pop(0)
                if is_trouble(reply):
                    self.misconfs += 1
                    self._check_refused(moment)
                else:
                    self.answers += 1
                    if self.moments[moment].is_logged and log is not None:  # without one, nothing is promised
                        self._answered.append((now_ms, moment))
            if peer.is_closed and not self._has_ended:
                self.closed += 1
                assert self._policy == "always", "no other policy has an outcome that is not known"
                del self._asked[peer]
                self._peers[number] = Peer(self.server)
                self._asked[self._peers[number]] = []
        if log is None:
            return  # nothing is promised
        if durability.syncing.sync is None and not log.writes_held and self.server.engine.conditions.trouble is None:
            self._shaky_since_ms = None
        elif self._shaky_since_ms is None:
            self._shaky_since_ms = min(now_ms, durability.syncing.began_ms) if durability.syncing.sync else now_ms

    def _check_refused(self, number: int) -> None:
        moment, before = self.moments[number], self.moments[number - 1]
        assert moment.picture == before.picture and not moment.is_logged, f"{moment.request} was refused, and is there"

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

    def recover(self) -> None:
        """The disk works from here on, and time passes. Then the process is killed: all that was confirmed is there."""
        self.disk.on_reach = None
        self.disk.room = self.disk.shortest = None
        self.disk.failures.clear()
        if not self._has_ended:
            self._settle()
        wanted = self.picture()
        is_safe = not self._has_ended or self._is_safe
        self.disk = self.disk.restart()
        self._begin(self._started())
        assert self.moments[0].picture == wanted or not is_safe

    def _settle(self) -> None:
        """Time passes until nothing waits for the log any more."""
        Peer(self.server).send([b"CONFIG", b"SET", b"appendonly", b"yes"])
        self.server.loop.turn()
        for _ in range(RECOVERY_S):
            self.server.later(1000)
            self.server.finish_rewriting()
            self.server.finish_syncs()
        self._look()
        assert self.server.engine.conditions.trouble is None, self.server.engine.conditions.trouble
        assert not any(self._asked.values()), "each request has its reply by now, or its connection is closed"

    def lose_power(self) -> None:
        """Restart, and check that what is left is what was there at some moment, none before the certain one."""
        certain = self.certain()
        moments = self.moments
        if self._is_safe:
            certain = len(moments) - 1
        self.disk = self.disk.lose_power(self._chance)
        self._begin(self._started())
        found = self.moments[0].picture
        left = [number for number, moment in enumerate(moments) if moment.picture == found]
        assert left, f"this never was: {found}"
        assert left[-1] >= certain, f"left is {left}, but {certain} of {len(moments)} moments were certain"
