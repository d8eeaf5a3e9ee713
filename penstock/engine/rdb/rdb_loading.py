"""An RDB file is read into an engine, in steps."""

from collections.abc import Callable, Iterator
from typing import Final

from penstock.engine.context import Context
from penstock.engine.policies import policy_lines
from penstock.engine.rdb import beyond_rdb, key_delay, rdb_values
from penstock.engine.server_state import ServerState
from penstock.engine.session import Session
from penstock.errors import UsageError
from penstock.protocol.log_reader import whole_requests
from penstock.storage.aof.disk import Disk
from penstock.storage.keyspace import Value
from penstock.storage.rdb import rdb_format, rdb_reader
from penstock.storage.rdb.errors import BadRdb, shown
from penstock.storage.rdb.rdb_reader import RdbReader
from penstock.storage.rdb.source import FileSource
from penstock.storage.types.collection import Timed

NEVER_EXPIRED: Final = 0  # a time at which nothing has expired
STEPS: Final = 64  # between two looks at the clients; a stream's node is a step


def is_rdb(disk: Disk, path: str) -> bool:
    """Whether a file begins as an RDB file does."""
    return disk.read(path, 0, rdb_format.HEADER_BYTES).startswith((rdb_format.MAGIC, rdb_format.VALKEY_MAGIC))


class RdbLoading:
    """One loading of one file into a keyspace, which is empty unless it `merges`. `report` takes lines for a person.

    end: bytes that the file took, its checksum included; more may follow it (a log of before Redis 7). keys, expired:
    how many were loaded, and left out because their time had passed.
    """

    __slots__ = ("_keeps_expired", "_merges", "_name", "_reader", "_report", "_server", "end", "expired", "keys")

    def __init__(
        self,
        server: ServerState,
        disk: Disk,
        path: str,
        report: Callable[[str], None],
        keeps_expired: bool = False,
        merges: bool = False,
        name: str = "",
    ) -> None:
        """keeps_expired: expired keys are loaded, too (a replica waits for its master's DEL).

        merges: a key of the file replaces an existing one. name: of the file, in messages instead of its path.
        """
        self._server = server
        self._name = name or path
        self._keeps_expired = keeps_expired
        self._merges = merges
        self._report = report
        defaults = rdb_values.stream_defaults(server.settings, server.form_limits.streams)
        self._reader = RdbReader(FileSource(disk, path), defaults, server.settings.yes("rdbchecksum"))
        self.end = 0
        self.keys = 0
        self.expired = 0

    @property
    def stream_db(self) -> int:
        """The database that the stream behind a master's snapshot is in."""
        text = self._reader.aux.get(b"repl-stream-db", b"0")
        return int(text) if text.isdigit() and int(text) < len(self._server.keyspace.databases) else 0

    def run(self) -> Iterator[int]:
        """Read the file; yields the bytes done. UsageError where it cannot be loaded."""
        reader = self._reader
        now_ms = self._server.clock.now_us() // 1000
        try:
            reader.begin()
            met = rdb_reader.OTHER
            while met != rdb_reader.END:
                for _ in range(STEPS):
                    met = reader.step()
                    if met == rdb_reader.KEY:
                        if reader.corrections:
                            self._report(f"{self._name}: {reader.corrected()}.")
                        self._keep(reader.key, reader.value, now_ms)
                        if self._server.settings.number("key-load-delay"):
                            self._server.clock.sleep(key_delay.wait_s(self._server.settings, "key-load-delay", 1))
                            break  # clients are served between two keys
                    elif met == rdb_reader.EMPTY_KEY:
                        self._report(f"{self._name}: the empty key {shown(reader.key)} is left out.")
                    elif met == rdb_reader.LIBRARY:
                        self._load_library(reader.library)
                    elif met == rdb_reader.END:
                        break
                self.end = reader.source.position()
                yield self.end
        except BadRdb as problem:
            raise UsageError(f"{self._name}: {problem}.") from None
        for name in (beyond_rdb.AUX_FIELD, policy_lines.AUX_FIELD):
            self._run_requests(reader.aux.get(name, b""))
        if reader.left_out:
            names = ", ".join(sorted(set(reader.left_out)))
            self._report(f"{self._name}: data of modules is left out ({names}); no key was stored in it.")

    def _keep(self, key: bytes, value: Value, now_ms: int) -> None:
        server, reader = self._server, self._reader
        databases = server.keyspace.databases
        if reader.db_index >= len(databases):
            raise BadRdb(f"it has a database {reader.db_index}, and `databases` says that there are {len(databases)}")
        db = databases[reader.db_index]
        if key in db.values and not self._merges:
            raise BadRdb(f"it has the key {shown(key)} twice in database {reader.db_index}")
        if self._keeps_expired:
            now_ms = NEVER_EXPIRED
        if isinstance(value, Timed) and value.first_due_ms() < now_ms:
            value.take_out(value.overdue(now_ms, len(value)))
        if 0 <= reader.expires_ms < now_ms or (isinstance(value, Timed) and not len(value)):
            self.expired += 1
            return
        rdb_values.fit_to_settings(value, server.settings)
        if self._merges:
            db.remove(key)
        db.put(key, value)
        if reader.expires_ms != rdb_reader.NOT_GIVEN:
            db.expire_at(key, reader.expires_ms)
        if reader.is_blessed:
            db.blessed.add(key)
        self.keys += 1

    def _run_requests(self, text: bytes) -> None:
        """Run the requests beside the data of the file; those about keys that were left out have no effect."""
        ctx = self._privileged()
        for request in whole_requests(text).requests:
            self._server.runner.replay(ctx, [request], 0)

    def _privileged(self) -> Context:
        session = Session(0)
        session.privileged = True
        ctx = Context(self._server, session)
        ctx.begin(session, self._server.clock.now_us())
        return ctx

    def _load_library(self, code: bytes) -> None:
        options = [b"REPLACE"] if self._merges else []
        _, refusal = self._server.runner.replay(self._privileged(), [[b"FUNCTION", b"LOAD", *options, code]], 0)
        if refusal:
            raise BadRdb(f"a library of functions is refused: {shown(refusal[1:-2])}")
