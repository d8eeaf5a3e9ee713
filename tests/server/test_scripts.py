"""Scripts over the network: redis-py's own locks and scripts, and a script that does not end."""

import contextlib
import ctypes
import os
import resource
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.no_retry import NO_RETRY
from tests.support.server_process import ServerProcess, running_server

pytest.importorskip("lupa")


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with running_server("--busy-reply-threshold", "50") as process:
        yield process


@pytest.fixture
def client(server: ServerProcess) -> Iterator[redis.Redis]:
    with redis.Redis(port=server.port, socket_timeout=120) as one:
        yield one


def test_redis_py_takes_extends_and_releases_its_lock(client: redis.Redis) -> None:
    with client.lock("lock", timeout=5) as lock:
        assert lock.extend(10)
        assert lock.reacquire()
        assert client.pttl("lock") > 4000

    assert client.exists("lock") == 0


def test_redis_py_registers_a_script(client: redis.Redis) -> None:
    add = client.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")

    assert [add(["count"], [3]), add(["count"], [4])] == [3, 7]


def test_an_endless_script_is_killed_by_a_client_that_connects_meanwhile(
    server: ServerProcess, client: redis.Redis
) -> None:
    said: list[str] = []
    asking = threading.Thread(target=lambda: said.append(refusal(client.eval, "while true do end", 0)))
    asking.start()
    with redis.Redis(port=server.port, retry=NO_RETRY) as other:
        while refusal(other.ping) == "":
            pass
        assert other.script_kill()
    asking.join(20)

    assert said[0].startswith("Script killed by user with SCRIPT KILL...")
    assert client.ping()


def refusal(ask: Callable[..., object], *words: object) -> str:
    """What the server refused it with; empty where it did not."""
    try:
        ask(*words)
    except redis.ResponseError as refused:
        return str(refused)
    return ""


BAD_LIBRARIES = [
    pytest.param(b"#!lua name=a\nwhile true do end", "FUNCTION LOAD timeout", id="without end", marks=pytest.mark.slow),
    pytest.param(b"#!lua name=a\n\x1bLJ\x02\x08\x00", "unexpected symbol near 'char(27)'", id="of compiled code"),
]


@pytest.mark.parametrize(("code", "complaint"), BAD_LIBRARIES)
def test_a_bad_library_in_the_log_is_left_out_and_the_server_starts(tmp_path: Path, code: Any, complaint: Any) -> None:
    words = [b"FUNCTION", b"LOAD", code]
    folder = tmp_path / "appendonlydir"
    folder.mkdir()
    lines = b"*3\r\n" + b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in words])
    (folder / "appendonly.aof.1.incr.aof").write_bytes(lines)
    (folder / "appendonly.aof.manifest").write_text("file appendonly.aof.1.incr.aof seq 1 type i\n")

    with running_server("--appendonly", "yes", dir=tmp_path) as process:
        assert complaint in process.said


@pytest.mark.parametrize("ending", ["SIGTERM", "SHUTDOWN NOSAVE"])
@pytest.mark.parametrize("in_transaction", [False, True], ids=["alone", "in EXEC"])
def test_a_server_busy_with_a_script_is_ended(ending: str, in_transaction: bool) -> None:
    with running_server("--busy-reply-threshold", "50") as process:
        threading.Thread(target=ask_for_ever, args=(process.port, in_transaction), daemon=True).start()
        with redis.Redis(port=process.port, retry=NO_RETRY) as other:
            while refusal(other.ping) == "":
                pass
            if ending == "SIGTERM":
                os.kill(process.pid, signal.SIGTERM)
            else:
                with contextlib.suppress(redis.ConnectionError):
                    other.shutdown(nosave=True)
        process.wait()

        assert not process.is_alive


def test_sigterm_waits_for_a_script_where_the_saved_file_alone_has_the_data(tmp_path: Path) -> None:
    flags = ("--appendonly", "no", "--save", "3600", "1", "--busy-reply-threshold", "50")
    with running_server(*flags, dir=tmp_path) as process, redis.Redis(port=process.port, retry=NO_RETRY) as other:
        other.set("k", "v")
        asking = threading.Thread(target=lambda: refusal(redis.Redis(port=process.port).eval, "while true do end", 0))
        asking.start()
        while refusal(other.ping) == "":
            pass
        os.kill(process.pid, signal.SIGTERM)
        process.wait_until_said("SIGTERM")
        assert process.is_alive
        other.script_kill()
        assert process.wait() == 0
        asking.join(20)

    with running_server(*flags, dir=tmp_path) as again, redis.Redis(port=again.port) as client:
        assert client.get("k") == b"v"


def ask_for_ever(port: int, in_transaction: bool) -> None:
    with contextlib.suppress(redis.RedisError), redis.Redis(port=port, retry=NO_RETRY) as asking:
        pipeline = asking.pipeline(transaction=in_transaction)
        pipeline.eval("while true do pcall(function() while true do end end) end", 0)
        pipeline.execute()


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="not glibc")
def test_what_a_script_used_goes_back_to_the_system(server: ServerProcess) -> None:
    too_big = pytest.raises(redis.ResponseError, match="not enough memory")
    with redis.Redis(port=server.port, socket_timeout=60) as client, too_big:
        client.eval("local t = {} for i = 1, 1e9 do t[#t + 1] = {} end", 0)

    status = Path(f"/proc/{server.pid}/status").read_text()
    resident_kb = int(status.partition("VmRSS:")[2].split()[0])
    assert resident_kb < 250_000


# -- limits of the system ----------------------------------------------------------------------------------------------

LASTS = "collectgarbage() return 'done'"  # collecting leaves the place: it needs the thread
MEMORY_EATERS = {
    "tables": "local t = {} for i = 1, 1e9 do t[#t + 1] = {} end",
    "a text": "return #string.rep('x', 500000000)",
    "texts without a loop": "local s = ('x'):rep(5e7) return table.concat({s, s, s, s})",
    "a reply": "return string.rep('x', 200000000)",
    "a request": "return redis.call('SET', 'a', string.rep('x', 200000000))",
    "a loop that catches": "while true do pcall(function() local s = 'x' while true do s = s .. s end end) end",
}
OTHER_USER = ("setpriv", "--reuid=60001", "--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--")
ONE_THREAD = (
    sys.executable,
    "-c",
    "import os, resource, sys; resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)); os.execv(sys.argv[1], sys.argv[1:])",
)
limits_of_another_process = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of another process")


def address_space(server: ServerProcess) -> int:
    """Bytes that the process has mapped."""
    pages = Path(f"/proc/{server.pid}/statm").read_text().split()[0]
    return int(pages) * resource.getpagesize()


@contextlib.contextmanager
def lowered(server: ServerProcess, limit: int, most: int) -> Iterator[None]:
    """A limit of the process lowered for a while, as `ulimit -S` does."""
    before = resource.prlimit(server.pid, limit)
    resource.prlimit(server.pid, limit, (most, before[1]))
    try:
        yield
    finally:
        resource.prlimit(server.pid, limit, before)


@limits_of_another_process
def test_a_server_that_may_map_no_stack_says_so_and_runs_scripts_once_it_may() -> None:
    with running_server() as process, redis.Redis(port=process.port, retry=NO_RETRY) as client:
        assert client.eval("return 1", 0) == 1
        with lowered(process, resource.RLIMIT_AS, address_space(process) + 5 * 2**20):
            refused = [refusal(client.eval, LASTS, 0) for _ in range(3)]
            assert client.ping()

        assert refused == ["the server could not start a thread for the script"] * 3
        assert client.eval(LASTS, 0) == b"done"


@pytest.mark.skipif(os.getuid() == 0 and shutil.which("setpriv") is None, reason="root is under no such limit")
def test_a_server_with_a_user_that_may_start_no_thread_says_so_and_serves_on() -> None:
    wrapper = (*(OTHER_USER if os.getuid() == 0 else ()), *ONE_THREAD)
    with (
        running_server("--appendonly", "no", wrapper=wrapper) as process,
        redis.Redis(port=process.port, retry=NO_RETRY) as client,
    ):
        refused = [refusal(client.eval, LASTS, 0) for _ in range(3)]

        assert refused == ["the server could not start a thread for the script"] * 3
        assert client.eval("return 1", 0) == 1


@limits_of_another_process
@pytest.mark.parametrize("code", MEMORY_EATERS.values(), ids=MEMORY_EATERS.keys())
def test_a_script_that_gets_no_memory_from_the_system_leaves_the_server_able_to_serve(code: Any) -> None:
    with running_server("--busy-reply-threshold", "50") as process:
        with redis.Redis(port=process.port, retry=NO_RETRY) as first:
            assert first.eval(LASTS, 0) == b"done"  # its thread is there
        asking = threading.Thread(target=ask_once, args=(process.port, code), daemon=True)
        with (
            lowered(process, resource.RLIMIT_AS, address_space(process) + 100 * 2**20),
            redis.Redis(port=process.port, retry=NO_RETRY) as other,
        ):
            asking.start()
            while asking.is_alive():
                if "BUSY" in refusal(other.ping):
                    refusal(other.script_kill)
                asking.join(0.05)

            assert other.ping()
            assert other.eval(LASTS, 0) == b"done"


def ask_once(port: int, code: str) -> None:
    """Ask a script; its answer does not matter."""
    with contextlib.suppress(redis.RedisError), redis.Redis(port=port, retry=NO_RETRY) as asking:
        asking.eval(code, 0)
