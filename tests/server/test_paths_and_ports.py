"""What a path or a port of the command line may be instead of what is due: each ends in one sentence."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from _pytest.mark import ParameterSet

from tests.support.certificates import Authority
from tests.support.scraping import free_port
from tests.support.server_process import ended, running_server

UNREACHABLE: Final = "redis://127.0.0.1:1"
TOO_LONG: Final = "x" * 120  # for the path of a unix socket

# Words of the command line, and what the last line says. {here} has `file`, `folder`, no `missing`; `kept` is a folder
# with a file as appendonlydir and a folder as dump.rdb. {taken} is a port in use, {free} one that is not.
CASES: Final = [
    ("import {source} --dir {here}/missing", "There is no directory {here}/missing: make it first"),
    ("import {source} --dir {here}/file", "{here}/file is no directory: name an empty one"),
    ("import {source} --dir /proc/self", "/proc/self cannot be written: "),
    ("import {source} --dir {here}/kept", "{here}/kept has data already (appendonlydir): import into an"),
    ("export {here}/missing/x.rdb {source}", "{here}/missing/x.rdb cannot be written: No such file or directory"),
    ("export {here}/file/x.rdb {source}", "{here}/file/x.rdb cannot be written: Not a directory"),
    ("export /proc/x.rdb {source}", "/proc/x.rdb cannot be written: "),
    ("export {here}/folder {source}", "{here}/folder exists already (--replace writes over it)"),
    ("export --replace {here}/folder {source}", "{here}/folder cannot be written: Is a directory"),
    ("export {here}/x.rdb " + UNREACHABLE, "127.0.0.1:1 cannot be reached: Connection refused"),
    ("check-log {here}/missing", "There is no {here}/missing."),
    ("check-log {here}/folder", "There is no log in {here}/folder."),
    ("check-log {here}/kept", "cannot use {here}/kept/dump.rdb: is no regular file"),
    ("doctor unix://{here}/missing", "{here}/missing cannot be reached: No such file or directory"),
    ("doctor unix://{here}/folder", "{here}/folder cannot be reached: Connection refused"),
    ("doctor redis://127.0.0.1:99999", "redis://127.0.0.1:99999: redis://"),
    ("top --once " + UNREACHABLE, "127.0.0.1:1 cannot be reached: Connection refused"),
    ("top --once redis://127.0.0.1:x", "redis://127.0.0.1:x: redis://"),
    ("seed {here}/missing {source}", "{here}/missing: No such file or directory"),
    ("seed {here}/folder {source}", "{here}/folder: Is a directory"),
    ("seed {here}/file unix://{here}/missing", "{here}/missing cannot be reached: No such file or directory"),
    ("install-redis-server {here}/missing", "cannot write {here}/missing/redis-server: No such file or directory"),
    ("install-redis-server {here}/file", "cannot write {here}/file/redis-server: Not a directory"),
    ("install-redis-server /proc/self", "cannot write /proc/self/redis-server: "),
    ("pipeline run {here}/missing", "penstock pipeline: {here}/missing cannot be read: No such file or directory"),
    ("pipeline run {here}/folder", "penstock pipeline: {here}/folder cannot be read: Is a directory"),
    ("pipeline lag --endpoint 127.0.0.1:99999", "penstock pipeline: endpoint '127.0.0.1:99999' is to be host:port"),
    ("serve {here}/missing", "Fatal error, can't open config file '{here}/missing': No such file or directory"),
    ("serve {here}/folder", "Fatal error, can't open config file '{here}/folder': Is a directory"),
    ("serve --include {here}/folder", "Fatal error, can't open config file '{here}/folder': Is a directory"),
    ("serve --port 99999", "argument must be between 0 and 65535 inclusive"),
]  # fmt: skip

SERVED: Final = [  # flags behind --dir
    ("--port {free} --console-port {free}", "(port): Address already in use; console-port is {free}, too: give one"),
    ("--port {free} --metrics-port {free}", "(port): Address already in use; metrics-port is {free}, too: give one"),
    ("--port {free} --tls-port {free} {papers}", "(tls-port): Address already in use; port is {free}, too: give one"),
    ("--port 0 --tls-port {free} --metrics-port {free} {papers}", "metrics-port is {free}, too: give one"),
    ("--metrics-port {free} --console-port {free}", "(console-port): Address already in use; metrics-port is {free}"),
    ("--console-port {taken}", "(console-port): Address already in use; stop what listens there, or"),
    ("--metrics-port {taken}", "(metrics-port): Address already in use; stop what listens there, or"),
    ("--port {taken}", "cannot listen on 127.0.0.1:{taken} (port): Address already in use; stop what listens there"),
    ("--tls-port {taken} {papers}", "(tls-port): Address already in use; stop what listens there, or"),
    ("--port {free} --bind 127.0.0.1 127.0.0.1", "Address already in use; bind has it twice: name it once"),
    ("--bind 999.1.1.1", "cannot listen on 999.1.1.1:0 (port): Name or service not known"),
    ("--console-port {free} --console-bind 999.1.1.1", "cannot listen on 999.1.1.1:{free} (console-port): Name or"),
    ("--metrics-port {free} --metrics-bind 999.1.1.1", "cannot listen on 999.1.1.1:{free} (metrics-port): Name or"),
    ("--unixsocket {here}/missing/x", "cannot listen on {here}/missing/x: No such file or directory"),
    ("--unixsocket {here}/file/x", "cannot listen on {here}/file/x: Not a directory"),
    ("--unixsocket {here}/folder", "cannot listen on {here}/folder: there is something that is no socket"),
    ("--unixsocket {here}/" + TOO_LONG, "AF_UNIX path too long"),
    ("--aclfile {here}/missing", "Error loading ACLs, opening file '{here}/missing': No such file or directory"),
    ("--aclfile {here}/folder", "Error loading ACLs, opening file '{here}/folder': Is a directory"),
    ("--pidfile {here}/missing/x", "cannot write the pidfile {here}/missing/x: No such file or directory"),
    ("--pidfile {here}/folder", "cannot write the pidfile {here}/folder: Is a directory"),
    ("--pidfile /proc/x", "cannot write the pidfile /proc/x: "),
    ("--logfile {here}/file/x", "cannot write the logfile {here}/file/x: Not a directory"),
    ("--logfile {here}/folder", "cannot write the logfile {here}/folder: Is a directory"),
    ("--cluster-enabled yes --cluster-config-file {here}/missing/x", "cannot keep {here}/missing/x: No such file or"),
    ("--cluster-enabled yes --cluster-config-file {here}/folder", "cannot keep {here}/folder: Is a directory"),
    ("--tls-port {free} {papers} --tls-cert-file {here}/missing", "Failed to configure TLS"),
    ("--tls-port {free} {papers} --tls-key-file {here}/folder", "Failed to configure TLS"),
    ("--tls-port {free} {papers} --tls-auth-clients yes --tls-ca-cert-file {here}/missing", "Failed to configure TLS"),
    ("--tls-port {free} {papers} --tls-dh-params-file {here}/folder", "Failed to configure TLS"),
    ("--dbfilename a/b", "dbfilename can't be a path, just a filename"),
    ("--appendfilename a/b", "appendfilename can't be a path, just a filename"),
    ("--appenddirname a/b", "appenddirname can't be a path, just a dirname"),
    ("--dir {here}/kept", "cannot use {here}/kept/appendonlydir/penstock.lock: Not a directory"),
    ("--dir {here}/kept --appendonly no", "cannot use {here}/kept/dump.rdb: is no regular file"),
    ("--dir /proc/self", "cannot use /proc/"),
]  # fmt: skip


def cases(rows: list[tuple[str, str]]) -> Iterator[ParameterSet]:
    """Of the rows the first two are quick: a process takes most of a second."""
    for at, row in enumerate(rows):
        yield pytest.param(*row, id=row[0], marks=[pytest.mark.slow] if at > 1 else [])


@pytest.fixture(scope="module")
def source() -> Iterator[str]:
    with running_server() as server:
        yield f"redis://127.0.0.1:{server.port}"


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory, source: str) -> Iterator[dict[str, object]]:
    """What the words of the cases name."""
    here = tmp_path_factory.mktemp("here")
    (here / "file").write_text("PING\n")
    (here / "folder").mkdir()
    (here / "kept" / "dump.rdb").mkdir(parents=True)
    (here / "kept" / "appendonlydir").touch()
    pair = Authority(tmp_path_factory.mktemp("papers")).sign("server")
    papers = f"--tls-cert-file {pair.certificate} --tls-key-file {pair.key} --tls-auth-clients no"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield {"here": here, "papers": papers, "source": source, "taken": taken.getsockname()[1], "free": free_port()}


def ends_in(sentence: str, words: str, given: dict[str, object]) -> None:
    code, said = ended(*words.format(**given).split())

    assert code in (1, 2)
    assert sentence.format(**given) in said.splitlines()[-1]
    assert "Traceback" not in said and "[Errno" not in said


@pytest.mark.parametrize(("words", "sentence"), list(cases(CASES)))
def test_a_path_or_a_port_that_is_of_no_use_ends_a_command_in_a_sentence(
    words: str, sentence: str, given: dict[str, object]
) -> None:
    ends_in(sentence, words, given)


@pytest.mark.parametrize(("flags", "sentence"), list(cases(SERVED)))
def test_a_path_or_a_port_that_is_of_no_use_stops_the_start_in_a_sentence(
    flags: str, sentence: str, given: dict[str, object], tmp_path: Path
) -> None:
    ends_in(sentence, f"serve --port 0 --dir {tmp_path} {flags}", given)
