"""Real processes on a file system that is full, and while a log begins."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.loaders import Link, linked
from tests.crash.rounds import recovered
from tests.support.server_process import running_server

SIZE = "4m"
BALLAST_BYTES = 2 << 20
VALUE = b"v" * 5000
LONG_BASE = {"PENSTOCK_FAULT": "base-written:sleep3000ms"}
AMID = b"penstock_aof_base_written:0"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few MiB, of which a file `ballast` takes the half."""
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    if mount is None or unmount is None or os.geteuid() != 0:
        pytest.skip("only root may mount")
    if subprocess.run([mount, "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", tmp_path], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        (tmp_path / "ballast").write_bytes(bytes(BALLAST_BYTES))
        yield tmp_path
    finally:
        subprocess.run([unmount, "--lazy", tmp_path], check=True)


def added_until_refused(link: Link) -> int:
    """How many entries were confirmed before one was refused."""
    count = 0
    while not isinstance(link.ask(b"XADD", b"s", b"*", b"f", VALUE), Exception):
        count += 1
    return count


def confirmed(port: int, *words: bytes) -> bool:
    """Whether a change is confirmed, not refused, and its connection not closed."""
    with linked(port) as link:
        try:
            return not isinstance(link.ask(*words), Exception)
        except ConnectionError:
            return False


def info(link: Link) -> bytes:
    text = link.ask(b"INFO", b"persistence")
    assert isinstance(text, bytes)
    return text


@pytest.mark.parametrize("policy", ["always", "everysec"])
def test_what_a_full_disk_refuses_is_not_there_and_what_it_confirmed_is(small_disk: Path, policy: str) -> None:
    flags = ("--appendonly", "yes", "--appendfsync", policy)
    with running_server(*flags, dir=small_disk) as server, linked(server.port) as link:
        count = added_until_refused(link)
        assert (link.ask(b"XLEN", b"s"), b"aof_last_write_status:err" in info(link)) == (count, True)
        server.kill()
    with running_server(*flags, dir=small_disk) as server, linked(server.port) as link:
        assert link.ask(b"XLEN", b"s") == count > 100
        assert str(link.ask(b"SET", b"refused", b"1")).startswith("MISCONF")
        (small_disk / "ballast").unlink()
        assert recovered(link)
        assert link.ask(b"SET", b"served", b"1") == b"OK"
        assert server.stop() == 0
        assert "can be written again" in server.said and "may be lost" not in server.said
    log = small_disk / "appendonlydir" / "appendonly.aof.1.incr.aof"
    assert log.stat().st_blocks * 512 - log.stat().st_size < os.sysconf("SC_PAGE_SIZE")


def test_a_log_that_begins_on_a_full_disk_confirms_nothing_until_it_has_room(small_disk: Path) -> None:
    flags = ("--appendonly", "no", "--appendfsync", "always", "--enable-debug-command", "yes")
    with running_server(*flags, dir=small_disk) as server, linked(server.port) as link:
        link.ask(b"DEBUG", b"POPULATE", b"8", b"k", b"300000")
        assert link.ask(b"CONFIG", b"SET", b"appendonly", b"yes") == b"OK"
        assert not confirmed(server.port, b"SET", b"a", b"1")
        assert str(link.ask(b"SET", b"refused", b"1")).startswith("MISCONF")
        assert AMID in info(link) and b"aof_last_bgrewrite_status:err" in info(link)

        (small_disk / "ballast").unlink()
        assert recovered(link)
        assert link.ask(b"SET", b"served", b"1") == b"OK"
        server.kill()
    with running_server("--appendonly", "yes", dir=small_disk) as server, linked(server.port) as link:
        assert (link.ask(b"GET", b"served"), link.ask(b"GET", b"refused")) == (b"1", None)


def test_a_log_that_begins_withholds_replies_and_keeps_the_server_from_ending(tmp_path: Path) -> None:
    flags = ("--appendonly", "no", "--appendfsync", "always", "--save", "", "--enable-debug-command", "yes")
    with running_server(*flags, dir=tmp_path, environment=LONG_BASE) as server, linked(server.port) as link:
        link.ask(b"DEBUG", b"POPULATE", b"1000")
        link.ask(b"CONFIG", b"SET", b"appendonly", b"yes")
        with linked(server.port) as writer:
            writer.send([[b"SET", b"a", b"1"], [b"GET", b"a"]])
            os.kill(server.pid, signal.SIGTERM)
            refusal = link.ask(b"SHUTDOWN")
            assert link.ask(b"GET", b"key:1") == b"value:1"
            assert AMID in info(link), "the base took too short"
            assert str(refusal).startswith("ERR Errors trying to SHUTDOWN")
            assert (writer.reply(), writer.reply()) == (b"OK", b"1")
            assert AMID not in info(link)
        assert server.said.count("so the server goes on") == 2
        assert server.stop() == 0
    with running_server("--appendonly", "yes", dir=tmp_path) as server, linked(server.port) as link:
        assert (link.ask(b"DBSIZE"), link.ask(b"GET", b"a")) == (1001, b"1")
