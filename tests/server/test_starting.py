"""How a server starts, or refuses to: what it finds in `dir`, and what it is told to be."""

import socket
from pathlib import Path

from penstock.commands.effects import pack
from tests.serverproc import ServerProcess

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
