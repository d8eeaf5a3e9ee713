"""The keyspace as an RDB file, in the version that the settings ask for."""

from collections.abc import Iterator
from typing import Final

from penstock.config.settings import Settings
from penstock.engine.aof.rewrite_progress import Progress
from penstock.engine.policies import policy_lines
from penstock.engine.rdb import beyond_rdb, rdb_values
from penstock.engine.versions import PENSTOCK_VERSION
from penstock.storage.keyspace import Keyspace
from penstock.storage.rdb import rdb_format, rdb_writer
from penstock.storage.rdb.rdb_writer import RdbWriter
from penstock.storage.types.arrays import Array

OF_BASES: Final = rdb_format.OF_REDIS["7.0"]  # at least: no older Redis loads such logs, and an older file lacks counts
OLDEST_READER: Final = {version: name for name, version in reversed(rdb_format.OF_REDIS.items())}


def snapshot_of(
    keyspace: Keyspace,
    settings: Settings,
    now_ms: int,
    more_aux: list[tuple[bytes, bytes]] | None = None,
    field_times: bool = True,
) -> RdbWriter:
    """A writing of everything as it is now; its version is higher than the settings' where the data needs it.

    more_aux: names and values that the head is to have besides the usual ones. field_times: those of hashes, too.
    """
    version = rdb_writer.version_for(keyspace, rdb_values.version_of(settings), field_times)
    return _writing(keyspace, settings, now_ms, version, [*(more_aux or []), (b"aof-base", b"0")], field_times)


def base_of(keyspace: Keyspace, settings: Settings, now_ms: int) -> RdbWriter | None:
    """The same as a base of the log; None where what must load the log (aof-compat-version) could not read it."""
    name = settings.text("aof-compat-version")
    newest = rdb_format.NEWEST_WRITTEN if name == "newest" else rdb_format.OF_REDIS[name]
    wanted = max(min(rdb_values.version_of(settings), newest), OF_BASES)
    version = rdb_writer.version_for(keyspace, wanted)
    return None if version > newest else _writing(keyspace, settings, now_ms, version, [(b"aof-base", b"1")], True)


def has_arrays(keyspace: Keyspace) -> bool:
    """Whether a key has an array.  O(keys)."""
    return any(isinstance(value, Array) for db in keyspace.databases for value in db.values.values())


def counted(snapshot: RdbWriter, progress: Progress) -> Iterator[bytes]:
    """The bytes of a writing; `progress` counts its keys."""
    progress.steps_total = progress.keys_total
    for chunk in snapshot.chunks():
        progress.keys = progress.steps = snapshot.keys
        yield chunk


def _writing(
    keyspace: Keyspace,
    settings: Settings,
    now_ms: int,
    version: int,
    more_aux: list[tuple[bytes, bytes]],
    field_times: bool,
) -> RdbWriter:
    aux = [
        (b"penstock-ver", PENSTOCK_VERSION.encode()),
        (b"redis-ver", OLDEST_READER[version].encode() + b".0"),
        (b"redis-bits", b"64"),
        (b"ctime", b"%d" % (now_ms // 1000)),
        *more_aux,
    ]
    policies = policy_lines.of_keyspace(keyspace, now_ms)
    if policies:
        aux.append((policy_lines.AUX_FIELD, policies))
    requests = beyond_rdb.of_keyspace(keyspace)
    if requests:
        aux.append((beyond_rdb.AUX_FIELD, requests))
    writer = rdb_values.writer_of_files(settings, version)
    writer.field_times = field_times
    return RdbWriter(keyspace, writer, aux, settings.yes("rdbchecksum"))


def note_of(header: bytes, settings: Settings) -> str:
    """A line for a person where the file with this header is of a later version than was asked for; else ""."""
    version, wanted = int(header[len(rdb_format.MAGIC) :]), settings.text("rdb-compat-version")
    if version <= rdb_format.OF_REDIS[wanted]:
        return ""
    return (
        f"The RDB file is for Redis {OLDEST_READER[version]} and later, not {wanted} (rdb-compat-version): it has data"
        " that an earlier one does not know (functions need 7.0, times of hash fields 7.4, idempotent producers 8.6,"
        " released entries 8.8)."
    )
