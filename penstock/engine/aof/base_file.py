"""The content of a new base file of the log: requests, or an RDB file (aof-use-rdb-preamble)."""

from collections.abc import Iterator

from penstock.config.settings import Settings
from penstock.engine.aof import rewrite
from penstock.engine.aof.rewrite_progress import Progress
from penstock.engine.rdb import rdb_saving
from penstock.storage.keyspace import Keyspace


def chunks(keyspace: Keyspace, settings: Settings, now_ms: int, progress: Progress) -> Iterator[bytes]:
    """The file's bytes; `progress` counts what is done.

    An RDB file has one version for all of its data. Where something needs a later one than `aof-compat-version` names,
    the base has requests, which say it in words that such a Redis knows.
    """
    if settings.yes("aof-use-rdb-preamble"):
        snapshot = rdb_saving.base_of(keyspace, settings, now_ms)
        if snapshot is not None:
            return rdb_saving.counted(snapshot, progress)
    return rewrite.base_lines(keyspace, settings, now_ms, progress=progress)
