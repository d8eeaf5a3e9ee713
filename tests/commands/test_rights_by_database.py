"""Rules of users about databases (compat-version valkey-9.1): where they are kept, and when they begin to hold.

What they allow: commands/test_valkey_dialect, test_law_of_databases, against_redis/test_databases_beside_valkey.
"""

from pathlib import Path

import pytest

from penstock.errors import UsageError
from penstock.protocol.reply import bulks
from tests.support.dialogue import Dialogue
from tests.support.engines import loaded_engine, make_engine, settings_with

REFUSED = "NOPERM No permissions to access database"


def with_file(folder: Path, text: str, version: str = "valkey-9.1") -> Dialogue:
    (folder / "users.acl").write_text(text)
    return Dialogue(make_engine(settings=settings_with(dir=str(folder), aclfile="users.acl", compat_version=version)))


def test_they_are_saved_and_loaded(tmp_path: Path) -> None:
    dialogue = with_file(tmp_path, "user joe on nopass ~* db=2,0 +@all (resetdbs +get)\nuser amy resetdbs alldbs\n")
    before = dialogue("ACL LIST")

    assert dialogue("ACL SAVE", "ACL LOAD", "ACL LIST") == before
    assert before == [
        b"user amy off resetchannels -@all", b"user default on nopass ~* &* +@all",
        b"user joe on nopass ~* resetchannels db=0,2 +@all (resetchannels resetdbs -@all +get)",
    ]  # fmt: skip
    assert "db=0,2 +@all" in (tmp_path / "users.acl").read_text()


def test_they_hold_for_connections_that_are_there_when_the_file_is_loaded(tmp_path: Path) -> None:
    dialogue = with_file(tmp_path, "user joe on nopass ~* +@all\n")
    joe = dialogue.another()
    assert joe("AUTH joe x", "SELECT 1", "SET k v") == b"OK"

    (tmp_path / "users.acl").write_text("user joe on nopass ~* db=0 +@all\n")
    dialogue("ACL LOAD")

    assert str(joe("GET k")) == REFUSED
    assert joe("SELECT 0", "GET k") is None


def test_a_server_that_passes_for_a_redis_refuses_a_file_with_them(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"users\.acl:1: Syntax error"):
        with_file(tmp_path, "user joe on db=0\n", "newest")


def test_they_are_written_into_the_configuration() -> None:
    dialogue = Dialogue(make_engine(settings=settings_with(compat_version="valkey-9.1")))
    dialogue("ACL SETUSER joe on nopass db=0")

    assert dialogue.engine.access.lines_for_configuration() == [
        "user default on nopass ~* &* +@all", "user joe on nopass resetchannels db=0 -@all",
    ]  # fmt: skip


def test_the_log_is_loaded_whatever_default_may_use() -> None:
    settings = settings_with(compat_version="valkey-9.1")
    settings.users.append(["default", "on", "nopass", "~*", "db=0", "+@all"])
    lines = [bulks([word.encode() for word in line.split()]) for line in ("SELECT 1", "SET k v")]

    client = Dialogue(loaded_engine(lines, settings=settings))

    assert str(client("SELECT 1")) == REFUSED
    assert len(client.engine.keyspace.databases[1]) == 1


def test_a_client_that_tracks_keys_forgets_them_when_it_loses_a_database() -> None:
    dialogue = Dialogue(make_engine(settings=settings_with(compat_version="valkey-9.1")))
    dialogue("ACL SETUSER joe on nopass ~* +@all")
    joe = dialogue.another()
    joe("HELLO 3 AUTH joe x", "CLIENT TRACKING ON", "GET k")

    dialogue("ACL SETUSER joe db=1")

    assert joe.arrived() == [[b"invalidate", None]]
