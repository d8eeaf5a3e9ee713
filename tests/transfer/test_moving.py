"""`penstock import` and `penstock export`, beside a server that goes on serving."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.storage.aof.disk import SystemDisk
from penstock.transfer import import_note
from tests.support.certificates import Authority
from tests.support.rdb_bodies import listpack_of, payload, stream
from tests.support.reference_server import NoReference, free_port, reference_server
from tests.support.server_process import running_server
from tests.support.wire import Bulk, Connection, Integer, Simple

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0


class Source(Connection):
    """A client of the server that data come from."""

    def __init__(self, port: int) -> None:
        super().__init__("127.0.0.1", port, PATIENCE_S)
        self.port = port
        for line in ("SET k 1", "XADD s 1-0 f v", "HSET h f v", "SELECT 3", "RPUSH l a b", "SELECT 0"):
            self.ask(*line.split())

    def stats(self) -> dict[str, str]:
        told = self.ask("INFO", "stats")
        assert isinstance(told, Bulk)
        return dict(line.split(":", 1) for line in told.text.decode().split("\r\n") if ":" in line)


def from_redis() -> Iterator[Source]:
    try:
        with reference_server("--repl-diskless-sync-delay", "0") as port:
            client = Source(port)
            with client:
                yield client
    except NoReference as why:
        pytest.skip(str(why))


@pytest.fixture
def redis() -> Iterator[Source]:
    """A real Redis with some keys."""
    yield from from_redis()


@pytest.fixture(params=["penstock", "redis"])
def source(request: pytest.FixtureRequest) -> Iterator[Source]:
    """A server with some keys; it goes on serving."""
    if request.param == "penstock":
        with running_server("--repl-diskless-sync-delay", "0") as own:
            client = Source(own.port)
            with client:
                yield client
        return
    yield from from_redis()


def penstock(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "penstock", *words], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S
    )


TABLE = """\
  hash          1 here          1 there
  list          1 here          1 there
  stream        1 here          1 there
  string        1 here          1 there
"""


def test_a_server_s_data_become_a_file_that_another_loads(source: Source, tmp_path: Path) -> None:
    told = penstock("export", str(tmp_path / "dump.rdb"), f"redis://127.0.0.1:{source.port}")

    assert (told.returncode, told.stdout.partition("\n")[2]) == (0, TABLE), told
    with running_server("--appendonly", "no", dir=tmp_path) as copy, Connection("127.0.0.1", copy.port) as client:
        assert client.ask("XLEN", "s") == Integer(1)
    again = penstock("export", str(tmp_path / "dump.rdb"), f"redis://127.0.0.1:{source.port}")
    assert again.returncode == 1 and "exists already" in again.stderr


def test_a_server_s_data_are_imported_into_a_directory(source: Source, tmp_path: Path) -> None:
    told = penstock("import", f"redis://127.0.0.1:{source.port}", "--dir", str(tmp_path))

    assert (told.returncode, told.stdout.partition("\n")[2]) == (0, TABLE), told
    with running_server(dir=tmp_path) as copy, Connection("127.0.0.1", copy.port) as client:
        assert client.ask("GET", "k") == Bulk(b"1")
        assert client.ask("SELECT", "3") == Simple(b"OK")
        assert client.ask("LLEN", "l") == Integer(2)
        client.ask("SET", "own", "1")
    again = penstock("import", f"redis://127.0.0.1:{source.port}", "--dir", str(tmp_path))
    assert again.returncode == 1 and "was changed after its import" in again.stderr


def test_an_import_goes_on_where_the_last_one_ended(source: Source, tmp_path: Path) -> None:
    words = ("import", f"redis://127.0.0.1:{source.port}", "--dir", str(tmp_path))
    assert penstock(*words).returncode == 0
    before = source.stats()
    source.ask("SELECT", "3")
    source.ask("RPUSH", "l", "more")
    source.ask("SELECT", "0")
    assert penstock(*words).returncode == 0
    after = source.stats()

    assert after["sync_full"] == before["sync_full"]
    assert int(after["sync_partial_ok"]) == int(before["sync_partial_ok"]) + 1
    with running_server(dir=tmp_path) as copy, Connection("127.0.0.1", copy.port) as client:
        assert client.ask("SELECT", "3") == Simple(b"OK")
        assert client.ask("LLEN", "l") == Integer(3)


def test_an_import_that_was_not_whole_begins_anew(source: Source, tmp_path: Path) -> None:
    words = ("import", f"redis://127.0.0.1:{source.port}", "--dir", str(tmp_path))
    assert penstock(*words).returncode == 0
    import_note.write(SystemDisk(), str(tmp_path), import_note.BEGUN)
    (tmp_path / "appendonlydir" / "appendonly.aof.manifest").write_text("torn")

    assert penstock(*words).returncode == 0
    with running_server(dir=tmp_path) as copy, Connection("127.0.0.1", copy.port) as client:
        assert client.ask("GET", "k") == Bulk(b"1")


def test_an_import_does_not_take_a_directory_from_a_server(source: Source, tmp_path: Path) -> None:
    with running_server(dir=tmp_path):
        import_note.write(SystemDisk(), str(tmp_path), import_note.BEGUN)
        told = penstock("import", f"redis://127.0.0.1:{source.port}", "--dir", str(tmp_path))
    assert told.returncode == 1 and "Another server is using the log" in told.stderr


def test_data_that_are_no_import_s_stay(source: Source, tmp_path: Path) -> None:
    with running_server(dir=tmp_path):
        pass
    told = penstock("import", f"redis://127.0.0.1:{source.port}", "--dir", str(tmp_path))
    assert told.returncode == 1 and "has data already" in told.stderr


def test_a_damaged_note_is_told_of(source: Source, tmp_path: Path) -> None:
    (tmp_path / "appendonlydir").mkdir()
    (tmp_path / import_note.NAME).write_text('{"replication_id": 5}')
    told = penstock("import", f"redis://127.0.0.1:{source.port}", "--dir", str(tmp_path))
    assert told.returncode == 1 and "cannot be read" in told.stderr


def test_an_import_that_follows_has_what_was_written_meanwhile(source: Source, tmp_path: Path) -> None:
    words = ["import", f"redis://127.0.0.1:{source.port}", "--dir", str(tmp_path), "--follow"]
    with subprocess.Popen(
        [sys.executable, "-m", "penstock", *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as importer:
        try:
            waiter = threading.Timer(PATIENCE_S, importer.kill)
            waiter.start()
            assert importer.stderr is not None
            for line in importer.stderr:
                if line.endswith("bytes behind\n"):  # what came first is in the log
                    break
            source.ask("SET", "late", "1")
            assert source.ask("WAIT", "1", str(int(PATIENCE_S * 1000))) == Integer(1)
            importer.send_signal(signal.SIGINT)
            out, _ = importer.communicate(timeout=PATIENCE_S)
        finally:
            waiter.cancel()
            importer.kill()
    assert importer.returncode == 0, out
    with running_server(dir=tmp_path) as copy, Connection("127.0.0.1", copy.port) as client:
        assert client.ask("GET", "late") == Bulk(b"1")


def test_a_stream_that_redis_counts_wrongly_is_imported_and_the_correction_is_told(
    redis: Source, tmp_path: Path
) -> None:
    assert redis.ask("RESTORE", "orders", "0", payload(stream(entries=5))) == Simple(b"OK")

    told = penstock("import", f"redis://127.0.0.1:{redis.port}", "--dir", str(tmp_path))

    assert told.returncode == 0, told
    assert "the key 'orders' in database 0 was corrected: it says that it has 5 entries, and has 3." in told.stdout
    with running_server(dir=tmp_path) as copy, Connection("127.0.0.1", copy.port) as client:
        assert client.ask("XLEN", "orders") == Integer(3)


def test_an_import_of_what_cannot_be_kept_names_it_and_ends(redis: Source, tmp_path: Path) -> None:
    node = listpack_of(1, 0, 0, 0, 2, 0, 0, 3)  # an entry without fields
    assert redis.ask("RESTORE", "odd", "0", payload(stream([((1, 1), node)], entries=1))) == Simple(b"OK")

    told = penstock("import", f"redis://127.0.0.1:{redis.port}", "--dir", str(tmp_path))

    assert told.returncode == 1, told
    assert "cannot be imported: the master's snapshot: the key 'odd' in database 0: a stream's node is damaged" in (
        told.stderr
    )


def test_an_import_by_a_user_without_the_right_to_copy_names_the_refusal_and_ends(
    redis: Source, tmp_path: Path
) -> None:
    redis.ask("ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@all", "-psync")

    told = penstock("import", f"redis://reader:pw@127.0.0.1:{redis.port}", "--dir", str(tmp_path))

    assert told.returncode == 1, told
    assert "cannot be imported: the master answers -NOPERM" in told.stderr


def test_a_source_that_is_not_there_is_told_of(tmp_path: Path) -> None:
    told = penstock("import", "redis://127.0.0.1:1", "--dir", str(tmp_path))

    assert told.returncode == 1
    assert told.stderr.startswith("127.0.0.1:1 cannot be reached")


def test_a_server_is_copied_over_tls(tmp_path: Path) -> None:
    """Both certificates are checked: the server's and the client's; with as little in them as redis-cli takes."""
    authority = Authority(tmp_path, is_bare=True)
    own, client = authority.sign("server"), authority.sign("client")
    port = free_port()
    directives = {
        "tls-port": str(port), "tls-cert-file": str(own.certificate), "tls-key-file": str(own.key),
        "tls-ca-cert-file": str(authority.file),
    }  # fmt: skip
    words = [word for pair in directives.items() for word in pair]
    certificate = f"ssl_ca_certs={authority.file}&ssl_certfile={client.certificate}&ssl_keyfile={client.key}"
    (tmp_path / "copy").mkdir()
    with running_server("--repl-diskless-sync-delay", "0") as server, Source(server.port) as source:
        assert source.ask("CONFIG", "SET", *words) == Simple(b"OK")
        exported = penstock("export", str(tmp_path / "all.rdb"), f"rediss://127.0.0.1:{port}?{certificate}")
        imported = penstock("import", f"rediss://127.0.0.1:{port}?{certificate}", "--dir", str(tmp_path / "copy"))
        stranger = penstock("export", str(tmp_path / "none.rdb"), f"rediss://127.0.0.1:{port}")
        unchecked = penstock("import", f"rediss://127.0.0.1:{port}?ssl_cert_reqs=none", "--dir", str(tmp_path))

    assert (exported.returncode, imported.returncode) == (0, 0), exported.stderr + imported.stderr
    assert TABLE in exported.stdout
    assert TABLE in imported.stdout
    assert stranger.returncode == unchecked.returncode == 1
    assert "cannot be reached" in stranger.stderr
    assert "CERTIFICATE_VERIFY_FAILED" in stranger.stderr.upper()
    assert "checks the server's certificate" in unchecked.stderr
