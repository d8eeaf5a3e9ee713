"""The link to the master that this server follows: handshake, snapshot, stream, and a new link where one is lost."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final

from penstock.engine.cluster import following_map
from penstock.engine.engine import Engine
from penstock.engine.rdb.rdb_loading import RdbLoading
from penstock.engine.replication import failover
from penstock.engine.replication import master as links
from penstock.engine.replication.backoff import FIRST_S, Backoff
from penstock.engine.replication.master import Master
from penstock.engine.replication.stream_applier import NotReplicated, StreamApplier
from penstock.engine.session import Endpoints, Session
from penstock.errors import UsageError
from penstock.protocol import reply
from penstock.protocol.log_reader import lacking, whole_requests
from penstock.protocol.snapshot_frame import SnapshotFrame
from penstock.server.connections.connection import endpoints_of
from penstock.server.files.rewrite_child import created
from penstock.server.tls import tls_context
from penstock.server.tls.tls_context import TlsError
from penstock.storage.aof.append_log import AppendLog
from penstock.storage.aof.disk import Disk
from penstock.storage.aof.log_directory import write_all

TEMPORARY: Final = "temp-master-{}.rdb"
PIECE_BYTES: Final = 64 * 1024
LONGEST_LINE: Final = 64 * 1024
SNAPSHOT: Final = "the master's snapshot"  # in lines for a person
RETRY_OF_FAILOVER_S: Final = 0.1  # writers wait for it
SLICE_S: Final = 0.02  # of loading or applying, before clients are answered
SECOND_MS: Final = 1000
NOT_UP: Final = -1.0
BUSY_S: Final = 0.01  # between two looks whether a script is over
VALKEY_VERSION: Final = b"9.1.0"  # a Valkey sends times of hash fields only to readers of its files
ALLOWED: Final = (b"-NOAUTH", b"-NOPERM", b"-ERR operation not permitted")  # answers to PING, before AUTH
LATER: Final = (b"-LOADING", b"-NOMASTERLINK", b"-BUSY", b"-MASTERDOWN")  # answers of a master to be asked later


class LinkLost(Exception):
    """The link is of no use any more; the text says why. Another is tried."""


class UselessLink(LinkLost):
    """As LinkLost, and another link would most likely come to the same."""


def _refused(answer: bytes) -> LinkLost:
    kind = LinkLost if answer.startswith(LATER) else UselessLink
    return kind(f"the master answers {answer.decode('utf-8', 'backslashreplace')}")


class MasterLink:
    """The one link of a server. `report` takes lines for a person; `changed` is called after something was applied."""

    def __init__(self, engine: Engine, disk: Disk, report: Callable[[str], None], changed: Callable[[], None]) -> None:
        self._engine = engine
        self._replication = engine.replication
        self._settings = engine.settings
        self._disk = disk
        self._report = report
        self._changed = changed
        self._master: Master | None = None
        self._task: asyncio.Task[None] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._applier: StreamApplier | None = None  # of the history that is followed, through all links
        self._session: Session | None = None  # as CLIENT LIST shows the link
        self._sent_ms = 0
        self._not_before_s = 0.0  # in the loop's time, after an unexpected error
        # of the last link
        self._was_accepted = False  # by the master's answer to PSYNC
        self._up_s = NOT_UP  # when it came up, in the loop's time
        self._synced = 0  # offset up to which everything is safe on our disk
        self._wrote_at = (0, 0)  # units of the log, and the offset then: a sync up to there makes the offset safe
        self._log: AppendLog | None = None  # that these units are of

    # -- time -------------------------------------------------------------------------------------------------------

    def cron(self) -> None:
        """Called ten times a second: follow REPLICAOF, acknowledge, notice silence."""
        replication, loop = self._replication, asyncio.get_running_loop()
        if self._task is not None and self._task.done():
            task, self._task = self._task, None
            error = None if task.cancelled() else task.exception()
            if error is not None:
                self._report(f"The link to the master met an unexpected error: {error!r}")
                self._master = None  # begin anew
                self._not_before_s = loop.time() + FIRST_S
        if replication.master is not self._master:
            self.stop()
            self._master = replication.master
            if self._master is None:
                self._applier = None
            elif loop.time() < self._not_before_s:
                self._master = None
            else:
                self._task = loop.create_task(self._follow(self._master))
        master, writer = self._master, self._writer
        if master is None or writer is None:
            return
        now_ms = replication.now_ms()
        if master.heard_ms >= 0 and now_ms - master.heard_ms > self._replication.timeout_ms():
            self._report(f"Master {master.host}:{master.port} is silent: the link is closed.")
            writer.transport.abort()
        elif self._session is not None and self._session.closing:
            writer.transport.abort()  # CLIENT KILL
        elif now_ms - self._sent_ms >= SECOND_MS:
            self._sent_ms = now_ms
            if master.is_up:
                self.acknowledge()
            elif master.link == links.SYNCING:
                writer.write(b"\n")

    def acknowledge(self) -> None:
        """Acknowledge the offset that was applied, and the one on the disk."""
        if self._writer is None:
            return
        words = [b"REPLCONF", b"ACK", b"%d" % self._replication.offset]
        persistence = self._engine.persistence
        log = persistence.log
        if log is not None and not log.writes_held:
            safe = persistence.synced_units()
            if log is not self._log:
                self._log, self._wrote_at = log, (log.appended, self._replication.offset)
            units, offset = self._wrote_at
            if safe >= units:
                self._synced = offset
                self._wrote_at = (log.appended, self._replication.offset)
            if safe == log.appended:
                self._synced = self._replication.offset
            words += [b"FACK", b"%d" % self._synced]
        self._writer.write(reply.bulks(words))

    def stop(self) -> None:
        """End the link, if there is one."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._writer is not None:
            self._writer.transport.abort()
            self._writer = None

    # -- a link -----------------------------------------------------------------------------------------------------

    async def _follow(self, master: Master) -> None:
        """Make a link, again and again, until another role is chosen."""
        loop = asyncio.get_running_loop()
        backoff = Backoff()
        while True:
            failure: Exception | None = None
            self._was_accepted, self._up_s = False, NOT_UP
            try:
                await self._link(master)
            except (OSError, ValueError, LinkLost, UsageError, EOFError) as found:  # ValueError: a line that is none
                failure = found
            finally:
                if self._replication.master is master:
                    master.set_link(links.CONNECT, self._replication.now_ms())
            is_closed = failure is None or isinstance(failure, EOFError)
            master.problem = "the master closed it" if is_closed else " ".join(str(failure).rstrip(".").splitlines())
            master.is_unusable = isinstance(failure, (UselessLink, UsageError))
            if self._replication.master is not master:
                self._report(f"The link to master {master.host}:{master.port} is down: {master.problem}.")
                return  # a cancellation may be lost where something ends at the same moment
            lasted_s = 0.0 if self._up_s == NOT_UP else loop.time() - self._up_s
            is_useless = isinstance(failure, (LinkLost, UsageError, ValueError))
            wait_s = backoff.wait_s(self._was_accepted, is_useless, lasted_s)
            if failover.is_in_progress(self._engine.server):
                wait_s = min(wait_s, RETRY_OF_FAILOVER_S)
            again = f"; another one is made in {wait_s:g} seconds" if wait_s > FIRST_S else ""
            self._report(f"The link to master {master.host}:{master.port} is down: {master.problem}{again}.")
            await asyncio.sleep(wait_s)

    async def _link(self, master: Master) -> None:
        master.set_link(links.CONNECTING, self._replication.now_ms())
        timeout_s = self._settings.number("repl-timeout")
        source = self._settings.text("bind-source-addr")
        self._report(f"Connecting to master {master.host}:{master.port}.")
        try:
            context = tls_context.build_outgoing(self._settings) if self._settings.yes("tls-replication") else None
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_connection(
                    master.host,
                    master.port,
                    limit=LONGEST_LINE,
                    ssl=context,
                    local_addr=(source, 0) if source else None,
                )
        except TimeoutError:
            raise LinkLost("it takes too long") from None
        except TlsError as problem:
            raise LinkLost(str(problem)) from None
        try:
            self._check(master)
            self._writer = writer
            await self._use(Wire(reader, writer, master, self._replication.now_ms), timeout_s)
        finally:
            writer.transport.abort()
            if self._writer is writer:  # else another link was made meanwhile
                self._writer = None

    async def _use(self, link: "Wire", timeout_s: float) -> None:
        """Follow the master over a link that was opened, until it is lost."""
        master = link.master
        master.set_link(links.HANDSHAKE, self._replication.now_ms())
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._shake_hands(link)
        except TimeoutError:
            raise LinkLost("it takes too long") from None
        self._check(master)
        words = answer.split()
        if failover.is_in_progress(self._engine.server):
            self._end_failover(answer)
        self._was_accepted = answer.startswith(b"+")
        if answer.startswith(b"+FULLRESYNC") and len(words) == 3:
            master.set_link(links.SYNCING, self._replication.now_ms())
            master.attempts += 1
            try:
                db_index = await self._copy(link, words[1].decode(), int(words[2]))
            finally:
                following_map.take_role(self._engine.server)  # a map that came while the copy was loaded changed none
                self._changed()
            self._check(master)
            self._applier = StreamApplier(self._engine, db_index, self._report)
        elif answer.startswith(b"+CONTINUE"):
            if self._replication.continue_stream(words[1].decode() if len(words) > 1 else ""):
                self._engine.clients.to_close += (
                    self._replication.replicas
                )  # they learn the new id when they come again
            self._report(f"The master goes on at offset {self._replication.offset}.")
        else:
            raise _refused(answer)
        master.set_link(links.CONNECTED, self._replication.now_ms())
        self._up_s = asyncio.get_running_loop().time()
        self.acknowledge()
        self._changed()
        if self._applier is None:
            self._applier = StreamApplier(self._engine, self._replication.stream_db, self._report)
        try:
            self._engine.clients.master = self._session = self._made_session(link)
            await self._stream(link, self._session, self._applier)
        finally:
            if self._engine.clients.master is self._session:
                self._engine.clients.master = None
            self._session = None

    def _made_session(self, link: "Wire") -> Session:
        """The link as a client of this server (Redis 8.6.3)."""
        clients = self._engine.clients
        session = Session(clients.next_id, link.endpoints(), self._engine.clock.now_us() // 1000)
        session.is_master = True
        clients.next_id += 1
        return session

    def _end_failover(self, answer: bytes) -> None:
        """The target has answered PSYNC: it has taken over, or it refuses and we stay the master.

        LinkLost where it is to be asked again: its log does not have its copy of our data yet.
        """
        if answer.startswith((b"+FULLRESYNC", b"+CONTINUE")):
            failover.succeed(self._engine.server)
        elif answer.startswith(LATER):
            raise _refused(answer)
        else:
            failover.abort(self._engine.server, failover.REFUSED)
        self._changed()

    def _check(self, master: Master) -> None:
        """LinkLost where another role was chosen since: what still comes is none of ours."""
        if self._replication.master is not master:
            raise LinkLost("another master is followed, or none")

    async def _shake_hands(self, link: "Wire") -> bytes:
        """The answer to PSYNC. LinkLost where the master refuses."""
        settings, replication = self._settings, self._replication
        answer = await link.ask(b"PING")
        if answer.startswith(b"-") and not answer.startswith(ALLOWED):
            raise _refused(answer)
        if settings.text("masterauth"):
            names = [settings.text(name).encode(errors="surrogateescape") for name in ("masteruser", "masterauth")]
            answer = await link.ask(b"AUTH", *[name for name in names if name])
            if not answer.startswith(b"+OK"):
                raise UselessLink(f"the master refuses AUTH: {answer.decode('utf-8', 'backslashreplace')}")
        await link.ask(b"REPLCONF", b"listening-port", b"%d" % self._own_port())
        if settings.text("replica-announce-ip"):
            await link.ask(b"REPLCONF", b"ip-address", settings.text("replica-announce-ip").encode())
        await link.ask(b"REPLCONF", b"capa", b"eof", b"capa", b"psync2", b"capa", b"penstock")
        await link.ask(b"REPLCONF", b"version", VALKEY_VERSION)
        words = [b"PSYNC", replication.id.encode(), b"%d" % (replication.offset + 1)]
        if failover.is_in_progress(self._engine.server):
            words.append(b"FAILOVER")
        return await link.ask(*words)

    def _own_port(self) -> int:
        """Where the master finds us."""
        settings = self._settings
        own = settings.number("tls-port") if settings.yes("tls-replication") else 0
        return settings.number("replica-announce-port") or own or settings.number("port")

    # -- the snapshot -----------------------------------------------------------------------------------------------

    async def _copy(self, link: "Wire", replication_id: str, offset: int) -> int:
        """Receive a snapshot and load it in place of what there is; the database that the stream is in."""
        path = f"{self._settings.text('dir')}/{TEMPORARY.format(os.getpid())}"
        try:
            file = created(self._disk, path)
            try:
                async for piece in link.snapshot():
                    try:
                        write_all(file, piece)
                    except OSError as problem:
                        raise UselessLink(f"{SNAPSHOT} cannot be written: {problem.strerror}") from None
                    link.master.copied_bytes += len(piece)
                self._report(f"A copy of {self._disk.size(path)} bytes has come from the master: it is loaded.")
                return await self._load(link.master, path, replication_id, offset)
            finally:
                file.close()
        finally:
            with suppress(OSError):
                self._disk.remove(path)

    async def _load(self, master: Master, path: str, replication_id: str, offset: int) -> int:
        engine = self._engine
        while engine.conditions.busy:
            await asyncio.sleep(BUSY_S)
        self._check(master)
        engine.effects.mute()
        self._replication.change_id()  # a copy that fails is followed by another one
        self._replication.is_partial = True
        engine.conditions.loading = True  # first: a file is not saved of what is emptied now
        try:
            self._empty()
            self._changed()  # replicas are to leave, and caches to be emptied, before the copy is loaded
            loading = RdbLoading(
                engine.server, self._disk, path, engine.persistence.report, keeps_expired=True, name=SNAPSHOT
            )
            began_s = asyncio.get_running_loop().time()
            for _ in loading.run():
                if asyncio.get_running_loop().time() - began_s > SLICE_S:
                    await asyncio.sleep(0)
                    began_s = asyncio.get_running_loop().time()
            engine.persistence.begin_anew()
        finally:
            engine.conditions.loading = False
            engine.effects.unmute()
        self._replication.adopt(replication_id, offset, loading.stream_db)
        self._synced, self._wrote_at = 0, (0, 0)  # they were offsets of another history
        self._report(f"Loaded {loading.keys} keys from the master.")
        return loading.stream_db

    def _empty(self) -> None:
        """Nothing of what was kept stays."""
        engine = self._engine
        ctx = engine.server.context
        session = Session(0)
        session.privileged = True
        ctx.begin(session, engine.clock.now_us())
        request = [b"FLUSHALL"]
        engine.run(ctx, engine.commands.logged(request), request, ctx.now_us)
        engine.scripts.libraries.flush()
        engine.clients.to_close += self._replication.replicas  # theirs is another history

    # -- the stream -------------------------------------------------------------------------------------------------

    async def _stream(self, link: "Wire", session: Session, applier: StreamApplier) -> None:
        """Apply what the master sends, until the link is lost."""
        engine, replication = self._engine, self._replication
        held = b""
        while True:
            held = await link.more(held)
            session.last_ms = engine.clock.now_us() // 1000
            while True:
                block = whole_requests(held[:PIECE_BYTES] if len(held) > PIECE_BYTES else held)
                if not block.taken:
                    block = whole_requests(held)
                if block.damage is not None and not block.taken:
                    raise LinkLost(f"the stream is damaged: {block.damage}")
                if not block.taken:
                    break
                while engine.conditions.busy:
                    await asyncio.sleep(BUSY_S)
                self._check(link.master)
                try:
                    applier.apply([request for request in block.requests if request])
                except NotReplicated as found:
                    self._leave_history()
                    raise UselessLink(str(found)) from None
                except BaseException:  # a bug, or no memory: it is not known what was run, and nothing is run twice
                    self._leave_history()
                    raise
                replication.pass_on(held[: block.taken])
                replication.stream_db, replication.is_amid = applier.db_index, applier.is_amid
                held = held[block.taken :]
                if applier.wants_ack:
                    applier.wants_ack = False
                    self.acknowledge()
                self._changed()
                if held:
                    await asyncio.sleep(0)

    def _leave_history(self) -> None:
        """The stream cannot go on here: the next link begins with a copy of everything."""
        self._replication.change_id()
        self._applier = None


class Wire:
    """Reads and writes a link. EOFError once the master has closed it."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, master: Master, now_ms: Callable[[], int]
    ) -> None:
        self._reader = reader
        self._writer = writer
        self.master = master
        self._now_ms = now_ms

    def endpoints(self) -> Endpoints:
        """The addresses of both ends, the master's first."""
        return endpoints_of(self._writer.transport)

    async def ask(self, *words: bytes) -> bytes:
        """The answer's line."""
        self._writer.write(reply.bulks(list(words)))
        return await self.line()

    async def line(self) -> bytes:
        """The next line that is not empty."""
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except asyncio.LimitOverrunError:
                raise UselessLink(f"the master sends a line of more than {LONGEST_LINE} bytes") from None
            self.master.heard_ms = self._now_ms()
            if line.strip():
                return line.strip()

    async def read(self, at_most: int = PIECE_BYTES) -> bytes:
        """The next bytes of the link, at least one."""
        piece = await self._reader.read(at_most)
        if not piece:
            raise EOFError
        self.master.heard_ms = self._now_ms()
        return piece

    async def more(self, held: bytes) -> bytes:
        """The part of a request that has come, and as many bytes more as it is known to lack at least."""
        pieces = [held] if held else []
        left = lacking(held)
        while left > 0:
            pieces.append(await self.read())
            left -= len(pieces[-1])
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def snapshot(self) -> AsyncIterator[bytes]:
        """The pieces of the snapshot, in either frame. LinkLost where none comes."""
        head = await self.line()
        if head.startswith(b"-"):
            raise _refused(head)
        try:
            frame = SnapshotFrame(head)
        except ValueError as line:
            raise UselessLink(f"instead of a snapshot comes {line}") from None
        self.master.copied_bytes, self.master.copy_bytes = 0, frame.size
        while not frame.is_whole:
            yield frame.take(await self.read(frame.wanted))
