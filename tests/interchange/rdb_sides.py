"""One state carried between Penstock and a real server and back: by RDB files, and by DUMP and RESTORE.

By hand, for many states: `python -m tests.interchange.rdb_sides --seeds 300`.
"""

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Final

from penstock.engine.rdb import rdb_saving
from tests.interchange.pictures import Ours, Theirs, decoded, ours
from tests.interchange.rdb_states import States, shown
from tests.support.reference_server import reference_binary, reference_server

OWN_RULES: Final = frozenset({b"lag"})  # reckoned from what is compared; Valkey has a rule of its own for it


class Raw:
    """Requests of bytes to either side."""

    @staticmethod
    def ours(server: Ours, *words: bytes) -> object:
        return decoded(server.engine.handle(server.session, list(words)))

    @staticmethod
    def theirs(server: Theirs, *words: bytes) -> object:
        server._piped.send([list(words)])
        return decoded(server._piped.answer())


def save_ours(server: Ours, path: Path) -> None:
    now_ms = server.clock.now_us() // 1000
    snapshot = rdb_saving.snapshot_of(server.engine.keyspace, server.settings, now_ms)
    path.write_bytes(b"".join(snapshot.chunks()))


def checked(server: Ours) -> None:
    """Every structure holds its invariants."""
    for db in server.engine.keyspace.databases:
        db.check()
        for value in db.values.values():
            check = getattr(value, "check", None)
            if check is not None:
                check()


def there_and_back_by_files(theirs: Theirs, folder: Path, states: States, version: str) -> None:
    """Redis saves, Penstock loads and saves, Redis loads: nothing differs."""
    theirs.ask("FLUSHALL")
    theirs.tell(states.requests())
    before = shown(theirs.ask)
    theirs.ask("SELECT", "0")
    assert theirs.ask("SAVE") == b"OK" or theirs.ask("SAVE") == "OK"
    mine = folder / "ours"
    mine.mkdir()
    shutil.copy(folder / "dump.rdb", mine)
    with ours(mine, appendonly="no", rdb_compat_version=version) as server:
        checked(server)
        assert_same(before, shown(server.ask))
        save_ours(server, folder / "dump.rdb")
    assert theirs.ask("DEBUG", "RELOAD", "NOSAVE") in (b"OK", "OK")
    assert_same(before, shown(theirs.ask))
    shutil.rmtree(mine)


def there_and_back_by_payloads(theirs: Theirs, folder: Path, states: States, version: str) -> None:
    """Penstock dumps, Redis restores and dumps, Penstock restores: nothing differs."""
    theirs.ask("FLUSHALL")
    mine = folder / "ours"
    mine.mkdir()
    with ours(mine, appendonly="no", rdb_compat_version=version) as server:
        for request in states.requests():
            server.ask(*request)
        before = shown(server.ask)
        for database, key in before:
            theirs.ask("SELECT", database)
            server.ask("SELECT", database)
            payload = Raw.ours(server, b"DUMP", key.encode())
            expires = server.ask("PEXPIRETIME", key)
            assert isinstance(payload, bytes) and isinstance(expires, int)
            words = (b"%d" % max(expires, 0), payload, b"ABSTTL")
            answer = Raw.theirs(theirs, b"RESTORE", key.encode(), *words)
            assert answer in (b"OK", "OK"), (key, answer)
            again = Raw.theirs(theirs, b"DUMP", key.encode())
            assert isinstance(again, bytes)
            answer = Raw.ours(server, b"RESTORE", key.encode(), words[0], again, b"ABSTTL", b"REPLACE")
            assert answer in (b"OK", "OK"), (key, answer)
        assert_same(before, shown(theirs.ask))
        assert_same(before, shown(server.ask))
        checked(server)
    shutil.rmtree(mine)


def assert_same(before: dict[tuple[str, str], object], after: dict[tuple[str, str], object]) -> None:
    assert before.keys() == after.keys()
    for place, one in before.items():
        assert_equal(place, one, after[place])


def assert_equal(place: object, one: object, other: object) -> None:
    """Equal, but for what only one of the servers shows."""
    if isinstance(one, dict) and isinstance(other, dict) and b"groups" in one:
        for name in one.keys() & other.keys():
            assert_equal((place, name), one[name], other[name])
    elif isinstance(one, list) and one and isinstance(one[0], dict) and isinstance(other, list):
        assert len(one) == len(other), place
        for mine, theirs in zip(one, other, strict=True):
            for name in (mine.keys() & theirs.keys()) - OWN_RULES:
                assert_equal((place, name), mine[name], theirs[name])
    elif isinstance(one, tuple) and isinstance(other, tuple):
        for mine, theirs in zip(one, other, strict=True):
            assert_equal(place, mine, theirs)
    else:
        assert one == other, (place, str(one)[:500], str(other)[:500])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kind", default="redis")
    parser.add_argument("--version", default="")
    words = parser.parse_args()
    failures = run(words.kind, range(words.first, words.first + words.seeds), words.version)
    print(f"{words.seeds} states by files and by payloads beside {words.kind}: {len(failures)} differ {failures[:20]}")  # noqa: T201


def run(kind: str, seeds: range, version: str = "") -> list[int]:
    """The seeds of states that were not the same."""
    failures = []
    is_redis = kind == "redis"
    version = version or ("8.6" if is_redis else "7.2")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with reference_server("--dir", name, binary=reference_binary(kind)) as port:
            theirs = Theirs(port)
            for seed in seeds:
                try:
                    for carry in (there_and_back_by_files, there_and_back_by_payloads):
                        states = States(seed, field_times=is_redis, producers=is_redis)
                        carry(theirs, folder, states, version)
                except AssertionError as problem:
                    print(seed, carry.__name__, str(problem)[:1500])  # noqa: T201
                    failures.append(seed)
                    shutil.rmtree(folder / "ours", ignore_errors=True)
            theirs.close()
    return failures


if __name__ == "__main__":
    main()
