"""How a server starts, or refuses to: what it finds in `dir`, and what it is told to be."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import redis

from penstock.clock import SystemClock
from penstock.engine.effects import pack
from penstock.server.server_log import ServerLog
from tests.support.engines import settings_with
from tests.support.no_retry import NO_RETRY
from tests.support.reference_server import NoReference, reference_binary, reference_server
from tests.support.server_process import ServerProcess, running_server

LINES = b"".join(pack((b"SET", b"key%d" % number, b"v" * 100)) for number in range(50_000))


def make_log(folder: Path, lines: bytes) -> None:
    (folder / "appendonlydir").mkdir()
    (folder / "appendonlydir/last").write_bytes(lines)
    (folder / "appendonlydir/appendonly.aof.manifest").write_bytes(b"file last seq 1 type i\n")


def answers_until_it_ends(server: ServerProcess) -> set[bytes]:
    """What SET was answered, asked again and again until the server is gone."""
    answers: set[bytes] = set()
    while server.is_alive:
        try:
            with socket.create_connection(("127.0.0.1", server.port), timeout=10) as link:
                while answer := ask(link):
                    answers.add(answer)
        except OSError:
            continue
    return answers


def ask(link: socket.socket) -> bytes:
    link.sendall(b"SET a 1\r\n")
    return link.recv(100)


# -- what is found in dir ---------------------------------------------------------------------------------------------


def test_no_client_is_served_while_a_damaged_log_is_loaded_and_refused(tmp_path: Path) -> None:
    make_log(tmp_path, LINES * 5 + b"garbage\r\n" + LINES[:1000])
    server = ServerProcess((), tmp_path, {})
    answers = answers_until_it_ends(server)

    assert server.wait() == 1
    assert answers == {b"-LOADING Redis is loading the dataset in memory\r\n"}
    assert "was expected at byte" in server.said


def refused(*flags: str, dir: Path) -> str:
    """What a server said that did not start."""
    server = ServerProcess(flags, dir, {})
    assert server.wait() == 1, server.said
    return server.said


SNAPSHOT = b"REDIS0011\xfe\x00\x00\x04kept\xc0\x01\xff" + bytes(8)  # without a checksum: kept is 1


@pytest.mark.parametrize("appendonly", ["yes", "no"])
def test_a_snapshot_without_a_log_is_loaded(tmp_path: Path, appendonly: str) -> None:
    (tmp_path / "dump.rdb").write_bytes(SNAPSHOT)

    with running_server("--appendonly", appendonly, dir=tmp_path) as server:
        assert redis.Redis(port=server.port).get("kept") == b"1"

    assert "DB loaded from disk: " in server.said
    assert ", 1 keys from an RDB file" in server.said


def test_a_log_begins_with_the_snapshot_and_goes_on_without_it(tmp_path: Path) -> None:
    (tmp_path / "mine.rdb").write_bytes(SNAPSHOT)
    with running_server("--dbfilename", "mine.rdb", dir=tmp_path) as server:
        redis.Redis(port=server.port).incr("kept")
    assert f"There is no log yet: it begins with a copy of {tmp_path}/mine.rdb" in server.said
    (tmp_path / "mine.rdb").unlink()

    with running_server(dir=tmp_path) as server:
        assert redis.Redis(port=server.port).get("kept") == b"2"
        redis.Redis(port=server.port).bgrewriteaof()
        while redis.Redis(port=server.port).info("persistence")["aof_rewrite_in_progress"]:
            time.sleep(0.02)  # a process of its own writes the base

    with running_server(dir=tmp_path) as server:
        assert redis.Redis(port=server.port).get("kept") == b"2"


@pytest.mark.parametrize("appendonly", ["yes", "no"])
def test_a_damaged_snapshot_stops_the_start_and_stays(tmp_path: Path, appendonly: str) -> None:
    (tmp_path / "dump.rdb").write_bytes(SNAPSHOT[:-9])

    said = refused("--appendonly", appendonly, dir=tmp_path)

    assert f"{tmp_path}/dump.rdb: it ends too early (the record at byte 19)." in said
    assert (tmp_path / "dump.rdb").read_bytes() == SNAPSHOT[:-9]
    (tmp_path / "dump.rdb").write_bytes(SNAPSHOT)
    with running_server(dir=tmp_path) as server:
        assert redis.Redis(port=server.port).get("kept") == b"1"


def test_a_value_of_a_module_is_named_with_its_key(tmp_path: Path) -> None:
    vector = b"\x07\x01v\x81\xbd\xe7\x2d\xa2\xbb\x1e\xb4\x00\x02\x01\x00"
    (tmp_path / "dump.rdb").write_bytes(b"REDIS0011" + vector + b"\xff" + bytes(8))

    said = refused(dir=tmp_path)

    assert "the key 'v' in database 0: a value of the module type vectorset, which Penstock does not have" in said


def test_an_empty_log_beside_a_snapshot_is_told(tmp_path: Path) -> None:
    with running_server(dir=tmp_path):
        pass
    (tmp_path / "dump.rdb").write_bytes(SNAPSHOT)

    with running_server(dir=tmp_path) as server:
        assert redis.Redis(port=server.port).dbsize() == 0

    assert f"Warning: {tmp_path}/dump.rdb is not read, because there is a log." in server.said


def test_a_snapshot_beside_a_log_is_none_of_our_business(tmp_path: Path) -> None:
    make_log(tmp_path, LINES[:1390])
    (tmp_path / "dump.rdb").write_bytes(b"REDIS0012")

    with running_server(dir=tmp_path) as server:
        assert redis.Redis(port=server.port).dbsize() == 10


@pytest.mark.parametrize("kind", ["redis", "valkey"])
@pytest.mark.parametrize("appendonly", ["yes", "no"])
def test_what_a_redis_or_a_valkey_saved_is_there(tmp_path: Path, kind: str, appendonly: str) -> None:
    """Its snapshot, or its log with an RDB base."""
    try:
        binary = reference_binary(kind)
    except NoReference as absence:
        pytest.skip(str(absence))
    with reference_server("--dir", str(tmp_path), "--appendonly", appendonly, binary=binary) as port:
        redis.Redis(port=port).set("kept", "1")
        redis.Redis(port=port).incr("kept")
        redis.Redis(port=port).save()

    with running_server(dir=tmp_path) as server:
        assert redis.Redis(port=server.port).get("kept") == b"2"


# -- the end ----------------------------------------------------------------------------------------------------------


def test_shutdown_save_saves_what_no_log_keeps(tmp_path: Path) -> None:
    with running_server("--appendonly", "no", dir=tmp_path) as server:
        redis.Redis(port=server.port).set("a", "1")
        redis.Redis(port=server.port, retry=NO_RETRY).shutdown(save=True)
        assert server.wait() == 0
    with running_server("--appendonly", "no", dir=tmp_path) as server:
        assert redis.Redis(port=server.port).get("a") == b"1"


@pytest.mark.parametrize("flags", [("--save", "3600", "1"), ("--shutdown-on-sigterm", "save")], ids=str)
def test_a_signal_saves_where_there_are_save_points_or_it_is_to(tmp_path: Path, flags: tuple[str, ...]) -> None:
    with running_server("--appendonly", "no", *flags, dir=tmp_path) as server:
        redis.Redis(port=server.port).set("a", "1")
        server.stop()
    with running_server("--appendonly", "no", dir=tmp_path) as server:
        assert redis.Redis(port=server.port).get("a") == b"1"


def test_a_signal_does_not_end_a_server_that_cannot_save(tmp_path: Path) -> None:
    with running_server("--appendonly", "no", "--save", "3600", "1", dir=tmp_path) as server:
        client = redis.Redis(port=server.port)
        client.set("a", "1")
        (tmp_path / "dump.rdb").mkdir()
        with pytest.raises(redis.ResponseError, match="Errors trying to SHUTDOWN"):
            client.execute_command("SHUTDOWN")
        os.kill(server.pid, signal.SIGTERM)
        while "the RDB file cannot be saved, so the server goes on" not in server.said:
            assert client.ping()
        assert "scheduling shutdown" not in server.said  # it would say two things
        client.execute_command("CONFIG", "SET", "save", "")


def test_shutdown_save_ends_a_server_with_a_log_that_keeps_everything(tmp_path: Path) -> None:
    with running_server(dir=tmp_path) as server:
        redis.Redis(port=server.port).set("a", "1")
        redis.Redis(port=server.port, retry=NO_RETRY).shutdown(save=True)
        assert server.wait() == 0
    with running_server(dir=tmp_path) as server:
        assert redis.Redis(port=server.port).get("a") == b"1"


# -- what it is told to be --------------------------------------------------------------------------------------------

NOT_CARRIED_OUT = [
    (["--tls-port", "6380"], "# No tls-cert-file configured!"),
    (["--aclfile", "users.acl"], "# Aborting Redis startup because of ACL errors: Error loading ACLs, opening file"),
]


@pytest.mark.parametrize(("flags", "sentence"), NOT_CARRIED_OUT, ids=[flags[-2] for flags, _ in NOT_CARRIED_OUT])
def test_what_cannot_be_carried_out_stops_the_start(tmp_path: Path, flags: list[str], sentence: str) -> None:
    said = refused(*flags, dir=tmp_path)

    assert sentence in said
    assert "Listening on" not in said
    assert list(tmp_path.iterdir()) == []


def test_the_node_of_a_cluster_does_not_start_as_a_replica(tmp_path: Path) -> None:
    said = refused("--cluster-enabled", "yes", "--replicaof", "127.0.0.1", "6379", dir=tmp_path)

    assert "replicaof is not allowed with cluster-enabled yes" in said


def test_systemd_is_told_when_the_server_is_ready_and_when_it_ends(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(60)
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        with running_server("--supervised", "systemd", environment=environment) as server:
            assert b"READY=1" in systemd.recv(1000)
            server.stop()
            assert systemd.recv(1000) == b"STOPPING=1\n"


def test_a_server_without_systemd_warns_and_goes_on() -> None:
    with running_server("--supervised", "systemd") as server:
        assert redis.Redis(port=server.port).ping()
        assert "NOTIFY_SOCKET not found" in server.said


def test_what_users_sent_is_kept_out_of_the_warnings_of_a_load(tmp_path: Path) -> None:
    make_log(tmp_path, pack((b"SET", b"text", b"x")) + pack((b"LPUSH", b"text", b"secret")))
    with running_server("--hide-user-data-from-log", "yes", dir=tmp_path) as server:
        assert "was refused and is ignored: LPUSH ...: WRONGTYPE" in server.said
        assert "secret" not in server.said


# -- pipes where files should be --------------------------------------------------------------------------------------

LOG_FILES = [
    "appendonly.aof",
    "appendonlydir/appendonly.aof.manifest",
    "appendonlydir/last",
    "appendonlydir/penstock.lock",
]


@pytest.mark.parametrize("name", LOG_FILES)
def test_a_pipe_in_place_of_a_file_of_the_log_stops_the_start(tmp_path: Path, name: str) -> None:
    make_log(tmp_path, LINES[:139])
    if name == "appendonly.aof":
        (tmp_path / "appendonlydir/appendonly.aof.manifest").unlink()
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)

    assert "is no regular file" in refused(dir=tmp_path)


def test_a_log_that_needs_more_memory_than_there_is_stops_the_start_in_one_sentence(tmp_path: Path) -> None:
    make_log(tmp_path, b"*4\r\n$8\r\nSETRANGE\r\n$1\r\nk\r\n$10\r\n4000000000\r\n$1\r\nx\r\n")
    server = ServerProcess((), tmp_path, {}, ("sh", "-c", 'ulimit -v 3000000; exec "$@"', "sh"))

    assert server.wait() == 1, server.said
    assert server.lines[-1].endswith("There is not enough memory to load the data.")
    assert "Traceback" not in server.said


@pytest.mark.parametrize("name", ["appendonly.aof.1.incr.aof", "penstock.lock"])
def test_a_symbolic_link_is_not_written_through(tmp_path: Path, name: str) -> None:
    (tmp_path / "elsewhere").touch()
    (tmp_path / "data/appendonlydir").mkdir(parents=True)
    (tmp_path / "data/appendonlydir" / name).symlink_to(tmp_path / "elsewhere")

    assert "is a symbolic link, which is not written through" in refused(dir=tmp_path / "data")


def test_a_pipe_where_a_log_is_to_begin_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "appendonlydir").mkdir()
    os.mkfifo(tmp_path / "appendonlydir/appendonly.aof.1.incr.aof")

    assert "appendonly.aof.1.incr.aof" in refused(dir=tmp_path)


def started_from(conf: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """What a start from a configuration file said that has a mistake; the file's words come from `options`."""
    command = [sys.executable, "-m", "penstock", "serve", conf]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)


def test_a_named_pipe_as_configuration_file_stops_the_start(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "redis.conf")

    assert "it is a named pipe; to read one, use `-`" in started_from(str(tmp_path / "redis.conf")).stderr


def test_a_named_pipe_as_included_file_stops_the_start(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "inner.conf")
    (tmp_path / "redis.conf").write_text(f"include {tmp_path}/inner.conf\n")

    assert "it is a named pipe" in started_from(str(tmp_path / "redis.conf")).stderr


@pytest.mark.parametrize("directive", ["logfile", "pidfile"])
def test_a_named_pipe_as_file_to_write_stops_the_start(tmp_path: Path, directive: str) -> None:
    os.mkfifo(tmp_path / "pipe")

    said = refused(f"--{directive}", str(tmp_path / "pipe"), dir=tmp_path)
    assert f"cannot write the {directive} {tmp_path}/pipe: it is a named pipe" in said


@pytest.mark.parametrize("directive", ["logfile", "pidfile"])
def test_a_file_that_cannot_be_written_stops_the_start_in_one_sentence(tmp_path: Path, directive: str) -> None:
    said = refused(f"--{directive}", str(tmp_path / "no/file"), dir=tmp_path)

    assert said.rstrip().endswith(f"cannot write the {directive} {tmp_path}/no/file: No such file or directory")
    assert "Traceback" not in said


@pytest.mark.parametrize("loglevel", ["notice", "nothing"])
def test_why_a_server_does_not_start_is_in_its_log(tmp_path: Path, loglevel: str) -> None:
    make_log(tmp_path, b"garbage\r\n")
    logfile = tmp_path / "messages"

    said = refused("--logfile", str(logfile), "--loglevel", loglevel, dir=tmp_path)

    last = logfile.read_text().splitlines()[-1]
    assert re.match(r"\d+:M \d\d \w{3} \d{4} \d\d:\d\d:\d\d\.\d{3} # .*was expected at byte 0", last), last
    assert last in said


def test_a_message_is_lost_with_the_folder_of_the_logfile(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    log = ServerLog(settings_with(logfile=str(tmp_path / "folder/messages")), SystemClock())
    log.begin()
    (tmp_path / "folder/messages").unlink()
    (tmp_path / "folder").rmdir()

    log.notice("nobody reads this")

    assert list(tmp_path.iterdir()) == []


def test_a_pipe_of_the_shell_is_written_as_logfile(tmp_path: Path) -> None:
    with running_server("--logfile", "/dev/stdout", dir=tmp_path) as server:
        assert "Ready to accept connections" in server.said


def test_a_pipe_of_the_shell_is_read_as_configuration_file() -> None:
    assert ">>> 'nonsense'" in started_from("/dev/stdin", input="nonsense\n").stderr


# -- signals ----------------------------------------------------------------------------------------------------------


def test_a_terminal_that_is_closed_does_not_end_the_server() -> None:
    with running_server() as server:
        os.kill(server.pid, signal.SIGHUP)

        assert redis.Redis(port=server.port).ping()
        assert server.stop() == 0


# -- secrets ----------------------------------------------------------------------------------------------------------


def listed(server: ServerProcess) -> str:
    """The command line that `ps` shows to every user."""
    return Path(f"/proc/{server.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()


@pytest.mark.skipif(sys.platform != "linux", reason="the command line of a process can be changed on Linux only")
def test_the_password_is_not_in_the_list_of_processes(tmp_path: Path) -> None:
    flags = ("--requirepass", "secret", "--masterauth", "secret", "--rename-command", "FLUSHALL", "secret")
    user = ("--user", "default", ">secret", "on", "+ping")
    with running_server(*flags, *user, "--loglevel", "notice", wrapper=("env",)) as server:
        shown = listed(server)
        assert redis.Redis(port=server.port, password="secret").ping()

    assert "secret" not in shown
    assert "penstock serve --port 0 --dir" in shown
    assert shown.endswith("--loglevel notice")
