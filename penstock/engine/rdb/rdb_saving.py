"""The keyspace as an RDB file, in the version that the settings ask for."""

from typing import Final

from penstock.config.settings import Settings
from penstock.engine.policies import policy_lines
from penstock.engine.rdb import rdb_values
from penstock.engine.versions import PENSTOCK_VERSION
from penstock.storage.keyspace import Keyspace
from penstock.storage.rdb import rdb_format, rdb_writer
from penstock.storage.rdb.rdb_writer import RdbWriter

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
    aux = [
        (b"penstock-ver", PENSTOCK_VERSION.encode()),
        (b"redis-ver", OLDEST_READER[version].encode() + b".0"),
        (b"redis-bits", b"64"),
        (b"ctime", b"%d" % (now_ms // 1000)),
        *(more_aux or []),
        (b"aof-base", b"0"),
    ]
    policies = policy_lines.of_keyspace(keyspace, now_ms)
    if policies:
        aux.append((policy_lines.AUX_FIELD, policies))
    writer = rdb_values.new_writer(settings, version)
    writer.field_times = field_times
    return RdbWriter(keyspace, writer, now_ms, aux, settings.yes("rdbchecksum"))


def note_of(header: bytes, settings: Settings) -> str:
    """A line for a person where a file, of whose header this is, is of a later version than was asked for; else ""."""
    version, wanted = int(header[len(rdb_format.MAGIC) :]), settings.text("rdb-compat-version")
    if version <= rdb_format.OF_REDIS[wanted]:
        return ""
    return (
        f"The RDB file is for Redis {OLDEST_READER[version]} and later, not {wanted} (rdb-compat-version): it has data"
        " that an earlier one does not know (times of hash fields need 7.4, idempotent producers 8.6, released entries"
        " 8.8)."
    )
