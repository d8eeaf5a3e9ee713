"""How a server starts, or refuses to: what it finds in `dir`, and what it is told to be."""

import re
import socket
import time
from pathlib import Path

import pytest
import redis

from penstock.commands.effects import pack
from tests.reference import NoReference, reference_binary, reference_server
from tests.serverproc import ServerProcess, running_server

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


def test_nobody_is_served_while_a_damaged_log_is_loaded_and_refused(tmp_path: Path) -> None:
    make_log(tmp_path, LINES + b"garbage\r\n" + LINES[:1000])
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


@pytest.mark.parametrize("appendonly", ["yes", "no"])
def test_a_snapshot_without_a_log_is_not_passed_over(tmp_path: Path, appendonly: str) -> None:
    (tmp_path / "dump.rdb").write_bytes(b"REDIS0012")

    said = refused("--appendonly", appendonly, dir=tmp_path)
    assert f"{tmp_path}/dump.rdb is a Redis snapshot (RDB), which Penstock does not read" in said
    assert "to start empty, move the file away." in said


def test_a_snapshot_under_another_name_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "mine.rdb").write_bytes(b"REDIS0012")

    assert "mine.rdb is a Redis snapshot" in refused("--dbfilename", "mine.rdb", dir=tmp_path)


def test_a_snapshot_beside_a_log_is_none_of_our_business(tmp_path: Path) -> None:
    make_log(tmp_path, LINES[:1390])
    (tmp_path / "dump.rdb").write_bytes(b"REDIS0012")

    with running_server(dir=tmp_path) as server:
        assert redis.Redis(port=server.port).dbsize() == 10


def test_what_a_redis_saved_is_there_after_the_way_that_the_refusal_names(tmp_path: Path) -> None:
    try:
        binary = str(reference_binary())
    except NoReference as absence:
        pytest.skip(str(absence))
    with reference_server("--dir", str(tmp_path)) as port:
        redis.Redis(port=port).set("kept", "1")
        redis.Redis(port=port).save()
    said = refused(dir=tmp_path)
    flags = re.search(r"run `redis-server (--dir [^`]*)`", said)
    assert flags is not None, said
    with reference_server(*flags[1].split(), binary=Path(binary)) as port:
        client = redis.Redis(port=port)
        client.config_set("aof-use-rdb-preamble", "no")
        client.config_set("appendonly", "yes")
        while (
            client.info("persistence")["aof_rewrite_in_progress"] | client.info("persistence")["aof_rewrite_scheduled"]
        ):
            time.sleep(0.02)  # a process of its own writes the log

    with running_server(dir=tmp_path) as server:
        assert redis.Redis(port=server.port).get("kept") == b"1"


# -- the end ----------------------------------------------------------------------------------------------------------


def test_a_server_that_keeps_nothing_does_not_say_that_it_saved() -> None:
    with running_server("--appendonly", "no") as server:
        client = redis.Redis(port=server.port)
        with pytest.raises(redis.ResponseError, match="writes no RDB file, and appendonly is no"):
            client.execute_command("SHUTDOWN", "SAVE")

        assert client.ping()


def test_shutdown_save_ends_a_server_whose_log_keeps_everything(tmp_path: Path) -> None:
    with running_server(dir=tmp_path) as server:
        redis.Redis(port=server.port).set("a", "1")
        redis.Redis(port=server.port).shutdown(save=True)
        assert server.wait() == 0
    with running_server(dir=tmp_path) as server:
        assert redis.Redis(port=server.port).get("a") == b"1"


# -- what it is told to be --------------------------------------------------------------------------------------------

NOT_CARRIED_OUT = [
    (["--tls-port", "6380"], "tls-port 6380: Penstock does not speak TLS and would listen without it"),
    (["--aclfile", "users.acl"], "aclfile users.acl: Penstock reads no file of users"),
    (["--replicaof", "127.0.0.1", "6379"], "replicaof 127.0.0.1 6379: Penstock cannot be a replica"),
    (["--cluster-enabled", "yes"], "cluster-enabled yes: Penstock cannot be a node of a cluster"),
    (["--appendonly", "no", "--save", "60", "1"], "save 60 1: Penstock writes no RDB file"),
]


@pytest.mark.parametrize(("flags", "sentence"), NOT_CARRIED_OUT, ids=[flags[-2] for flags, _ in NOT_CARRIED_OUT])
def test_what_cannot_be_carried_out_stops_the_start(tmp_path: Path, flags: list[str], sentence: str) -> None:
    said = refused(*flags, dir=tmp_path)

    assert said.startswith(sentence)
    assert "Listening on" not in said
    assert list(tmp_path.iterdir()) == []


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
