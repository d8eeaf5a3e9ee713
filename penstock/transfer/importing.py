"""`penstock import redis://host:port`: a running server's data become the data of a Penstock in a directory.

A server without a port follows the other one, as a replica, and writes its log. It ends once it has everything,
or, with --follow, when it is told to (Ctrl-C, SIGTERM). A link that is cut meanwhile is made anew, and goes on. So does
an import into the directory of an earlier one; if that was not whole, it begins anew (import_note.py). Where the source
refuses, or has what cannot be kept here, the import says why and ends.
"""

import asyncio
import os
import random
import ssl
import sys
from pathlib import Path
from typing import Final

from penstock.clock import SystemClock
from penstock.commands.registry import new_engine
from penstock.config.settings import Settings
from penstock.engine.engine import Engine
from penstock.engine.replication import master as links
from penstock.errors import UsageError
from penstock.progress_line import ProgressLine, bar
from penstock.server.run import CLEAN, Server, loop_factory
from penstock.server.server_log import ServerLog
from penstock.storage.aof.disk import Disk, SystemDisk
from penstock.storage.aof.log_directory import LOCK_NAME
from penstock.transfer import counts, import_note
from penstock.transfer.import_note import ImportNote
from penstock.transfer.remote import Remote
from penstock.wire_client import Address, Tls

LOOK_EVERY_S: Final = 0.2
ASK_EVERY_S: Final = 1.0  # the source, how far its stream is


def prepared(disk: Disk, directory: str, log: str) -> ImportNote:
    """Where to go on in a directory. UsageError where it is none, or has data that are not an import's.

    What an import left that was not whole is removed.
    """
    snapshot = f"{directory}/{Settings().text('dbfilename')}"
    note = import_note.read(disk, directory) if disk.exists(log) else None
    for path in [log, snapshot] if note is None else [snapshot]:
        if disk.exists(path):
            name = path.rpartition("/")[2]
            raise UsageError(f"{directory} has data already ({name}): import into an empty directory")
    if note is None:
        return import_note.BEGUN
    lock = disk.lock(f"{log}/{LOCK_NAME}")
    if lock is None:
        raise UsageError(f"Another server is using the log in {log}: stop it, or import into another directory.")
    try:
        if not note.is_whole:
            for name in disk.names(log):
                if name != LOCK_NAME:
                    disk.remove(f"{log}/{name}")
        elif note.sizes != import_note.sizes_of(disk, log):
            raise UsageError(f"{directory} was changed after its import: import into an empty directory")
    finally:
        lock.close()
    return note


def settings_for(address: Address, directory: Path) -> Settings:
    """Those of a server without a port."""
    settings = Settings()
    wanted = {
        "dir": str(directory),
        "port": "0",
        "appendonly": "yes",
        "loglevel": "warning",
        "masterauth": address.password,
        "masteruser": address.user if address.password else "",
    }
    if address.tls is not None:
        wanted |= tls_directives(address.tls)
    for name, value in wanted.items():
        settings.read_line([name, value], set())
    settings.read_line(["replicaof", address.host, str(address.port)], set())
    return settings


def tls_directives(tls: Tls) -> dict[str, str]:
    """The directives for a replica that speaks TLS with its master. UsageError if it cannot."""
    if not tls.verifies:
        raise UsageError("an import checks the server's certificate: ssl_cert_reqs=none is for export only")
    usual = ssl.get_default_verify_paths()
    ca_file = tls.ca_file or usual.cafile or ""
    return {
        "tls-replication": "yes",
        "tls-ca-cert-file": ca_file,
        "tls-ca-cert-dir": "" if ca_file else usual.capath or "",
        "tls-client-cert-file": tls.certificate,
        "tls-client-key-file": tls.key or tls.certificate,
    }


def import_from(address: Address, directory: Path, follows: bool) -> int:
    """The exit code. UsageError where the source cannot be reached or the directory cannot be used."""
    if not directory.exists():
        raise UsageError(f"There is no directory {directory}: make it first")
    if not directory.is_dir():
        raise UsageError(f"{directory} is no directory: name an empty one")
    settings, clock, disk = settings_for(address, directory), SystemClock(), SystemDisk()
    engine = new_engine(settings, clock, random.Random(os.urandom(32)))
    begin(engine, disk, address, str(directory))
    importer = Importer(engine, address, str(directory), follows)
    with asyncio.Runner(loop_factory=loop_factory()[0]) as runner:
        code = runner.run(importer.run(Server(engine, ServerLog(settings, clock), disk)))
    is_same, text = ended(importer, disk, code)
    sys.stdout.write(text)
    return int(not is_same)


def log_in(directory: str, settings: Settings) -> str:
    return f"{directory}/{settings.text('appenddirname')}"


def begin(engine: Engine, disk: Disk, address: Address, directory: str) -> None:
    """Before the server runs: look at the directory and the source, and take up what is there.

    UsageError, which names the directory as it was given: the setting `dir` is its real path.
    """
    try:
        note = prepared(disk, directory, log_in(directory, engine.settings))
    except OSError as failure:
        raise UsageError(f"{directory} cannot be used: {failure.strerror}") from None
    with Remote(address) as remote:
        kind = remote.info("replication").get("role", "")
    if not kind:
        raise UsageError(f"{address.shown} does not say what it is (INFO replication)")
    if note.is_whole:
        engine.replication.adopt(note.replication_id, note.offset, note.db_index)
    import_note.write(disk, directory, import_note.BEGUN)


def ended(importer: "Importer", disk: Disk, code: int) -> tuple[bool, str]:
    """After the server has ended with this exit code: see `report`. UsageError where the copy is not whole."""
    engine, address, directory = importer.engine, importer.address, importer.directory
    if code != CLEAN or importer.problem or not importer.is_whole:
        why = f"{address.shown} cannot be imported: {importer.problem}.\n" if importer.problem else ""
        raise UsageError(f"{why}The copy is not whole, and of no use: the same command begins anew.")
    import_note.write(disk, directory, import_note.of(engine.replication, disk, log_in(directory, engine.settings)))
    return report(engine, directory, address)


def report(engine: Engine, directory: str, address: Address) -> tuple[bool, str]:
    """Whether the source has the same numbers of keys now as are here; the lines that say so."""
    here = counts.of_keyspace(engine.keyspace)
    with Remote(address) as remote:
        there = counts.of_server(remote)
    lines = [f"{directory}: {sum(here.values())} keys, from {address.shown}"]
    lines += [f"  {line}" for line in counts.table(here, there)]
    if here != there:
        lines.append("The numbers differ: keys were written, or have expired, since.")
    return here == there, "\n".join(lines) + "\n"


class Importer:
    """One import. is_whole: everything has come, and is in the log. problem: why it cannot be, or cannot go on."""

    def __init__(self, engine: Engine, address: Address, directory: str, follows: bool) -> None:
        self.engine = engine
        self.address = address
        self.directory = directory
        self._follows = follows
        self._line = ProgressLine(engine.clock)
        self._their_offset = 0
        self.is_whole = False
        self.problem = ""

    async def run(self, server: Server) -> int:
        """The server's exit code."""
        watching = asyncio.create_task(self._watch(server))
        try:
            return await server.run()
        finally:
            watching.cancel()
            self._line.end()

    async def _watch(self, server: Server) -> None:
        """Show how far it is; end the server once everything is there, unless it is to follow."""
        loop = asyncio.get_running_loop()
        asked_s = 0.0
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            engine, replication = self.engine, self.engine.replication
            master, log = replication.master, engine.persistence.log
            if master is None or log is None:
                continue
            if master.is_unusable:
                self.problem = master.problem
                server.stop()
                return
            self._line.show(self._state())
            is_logged = not log.writes_held and not engine.persistence.child
            self.is_whole = self.is_whole or (master.is_up and is_logged)
            if master.is_up and loop.time() - asked_s >= ASK_EVERY_S:
                asked_s = loop.time()
                self._their_offset = await asyncio.to_thread(self._offset_of_source)
                if self.is_whole and not self._follows and replication.offset >= self._their_offset:
                    server.stop()
                    return

    def _offset_of_source(self) -> int:
        """How long the source's stream is; as it was, where it does not say."""
        try:
            with Remote(self.address) as remote:
                return int(remote.info("replication").get("master_repl_offset", "0"))
        except UsageError:
            return self._their_offset

    def _state(self) -> str:
        """For a person."""
        engine = self.engine
        master = engine.replication.master
        assert master is not None, "an import has a source"
        where = self.address.shown
        keys = sum([len(db) for db in engine.keyspace.databases])
        if engine.conditions.loading:
            return f"{where}: {bar(master.copied_bytes, master.copy_bytes)} have come, {keys} keys are loaded"
        if master.link == links.SYNCING:
            return f"{where}: {bar(master.copied_bytes, master.copy_bytes)}"
        if not master.is_up:
            why = f" ({master.problem})" if master.problem else ""
            return f"{where}: {'connecting' if not self.is_whole else 'the link is cut, connecting anew'}{why}"
        behind = max(0, self._their_offset - engine.replication.offset)
        written = "" if self.is_whole else ", the log is being written"
        return f"{where}: {keys} keys, {behind} bytes behind{written}"
