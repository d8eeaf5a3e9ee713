"""DEBUG RELOAD and LOADAOF: the keyspace is put together again while clients stay."""

from penstock.engine.aof import aof_compat
from penstock.engine.aof.persistence import discard
from penstock.engine.aof.replay import Replay
from penstock.engine.aof.rewrite import base_lines
from penstock.engine.encodings import set_limits
from penstock.engine.server_state import ServerState
from penstock.errors import ReplyError
from penstock.storage.keyspace import Database
from penstock.storage.types.collection import Timed
from penstock.storage.types.hashes import Hash
from penstock.storage.types.sets import Form, Set, SetLimits


def reload(server: ServerState, now_ms: int) -> None:
    """DEBUG RELOAD: replace the keyspace by what a rewrite keeps of it; blocked readers stay blocked.

    For a client that watches a key, the key has changed, as in Redis.
    """
    chunks = list(base_lines(server.keyspace, server.settings, now_ms, aof_compat.AofCompat()))
    kept = [_with_kept_forms(db) for db in server.keyspace.databases]
    with_log = server.effects.log
    was_ready = dict(server.blocking.ready)
    notified = server.key_events.letters
    server.key_events.choose("")  # nothing happens to the keys, as far as clients see
    for db in server.keyspace.databases:
        db.clear()
    replay = Replay(server, discard)
    replay.begin()
    try:
        replay.lines(chunks)
    finally:
        server.conditions.loading = False
        server.effects.log = with_log
        server.blocking.ready = was_ready
        server.key_events.choose(notified)
    assert not replay.refused, "what this process writes it can read"
    for db, keys in zip(server.keyspace.databases, kept, strict=True):
        _take_up_forms(db, keys, set_limits(server.settings))


def _with_kept_forms(db: Database) -> dict[bytes, bool]:
    """Keys of sets and hashes with a form that is in Redis's file, and not in the lines; whether it has room for times.

    O(keys).
    """
    return {
        key: value.due is not None
        for key, value in db.values.items()
        if (isinstance(value, Set) and value.form is Form.LISTPACK)
        or (isinstance(value, Hash) and value.due is not None and not value.is_large)
    }


def _take_up_forms(db: Database, keys: dict[bytes, bool], limits: SetLimits) -> None:
    for key, has_times in keys.items():
        value = db.values.get(key)
        if isinstance(value, Set):
            value.take_form(Form.LISTPACK)
            value.choose_form(limits)
        if isinstance(value, Timed) and has_times:
            value.keep_times()


def reload_from_log(server: ServerState) -> None:
    """DEBUG LOADAOF: what a restart would find. Without a log it is refused and changes nothing (Redis empties all)."""
    state = server.persistence
    if state.load_log is None or state.log is None or state.load_log():
        raise ReplyError(b"ERR Error trying to load the AOF files, check server logs.")
