"""Scripts over the network: redis-py's own locks and scripts, and a script that does not end."""

import contextlib
import ctypes
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serverproc import ServerProcess, running_server

redis = pytest.importorskip("redis")
pytest.importorskip("lupa")


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with running_server("--busy-reply-threshold", "50") as process:
        yield process


@pytest.fixture
def client(server: ServerProcess) -> Iterator[object]:
    with redis.Redis(port=server.port) as one:
        yield one


def test_redis_py_takes_extends_and_releases_its_lock(client):
    with client.lock("lock", timeout=5) as lock:
        assert lock.extend(10)
        assert lock.reacquire()
        assert client.pttl("lock") > 4000

    assert client.exists("lock") == 0


def test_redis_py_registers_a_script(client):
    add = client.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")

    assert [add(["count"], [3]), add(["count"], [4])] == [3, 7]


def test_an_endless_script_is_killed_by_somebody_who_connects_meanwhile(server, client):
    said: list[str] = []
    asking = threading.Thread(target=lambda: said.append(refusal(client.eval, "while true do end", 0)))
    asking.start()
    with redis.Redis(port=server.port, retry=None) as other:
        while refusal(other.ping) == "":
            pass
        assert other.script_kill()
    asking.join(20)

    assert said[0].startswith("Script killed by user with SCRIPT KILL...")
    assert client.ping()


def refusal(ask: object, *words: object) -> str:
    """What the server refused it with; empty where it did not."""
    try:
        ask(*words)
    except redis.ResponseError as refused:
        return str(refused)
    return ""


def test_a_library_without_end_in_the_log_is_left_out_and_the_server_starts(tmp_path):
    words = [b"FUNCTION", b"LOAD", b"#!lua name=a\nwhile true do end"]
    folder = tmp_path / "appendonlydir"
    folder.mkdir()
    lines = b"*3\r\n" + b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in words])
    (folder / "appendonly.aof.1.incr.aof").write_bytes(lines)
    (folder / "appendonly.aof.manifest").write_text("file appendonly.aof.1.incr.aof seq 1 type i\n")

    with running_server("--appendonly", "yes", dir=tmp_path) as process:
        assert "FUNCTION LOAD timeout" in process.said


@pytest.mark.parametrize("ending", ["SIGTERM", "SHUTDOWN NOSAVE"])
@pytest.mark.parametrize("in_transaction", [False, True], ids=["alone", "in EXEC"])
def test_a_server_busy_with_a_script_is_ended(ending, in_transaction):
    with running_server("--busy-reply-threshold", "50") as process:
        threading.Thread(target=ask_for_ever, args=(process.port, in_transaction), daemon=True).start()
        with redis.Redis(port=process.port, retry=None) as other:
            while refusal(other.ping) == "":
                pass
            if ending == "SIGTERM":
                os.kill(process.pid, signal.SIGTERM)
            else:
                with contextlib.suppress(redis.ConnectionError):
                    other.shutdown(nosave=True)
        process.wait()

        assert not process.is_alive


def ask_for_ever(port: int, in_transaction: bool) -> None:
    with contextlib.suppress(redis.RedisError), redis.Redis(port=port, retry=None) as asking:
        pipeline = asking.pipeline(transaction=in_transaction)
        pipeline.eval("while true do pcall(function() while true do end end) end", 0)
        pipeline.execute()


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="not glibc")
def test_what_a_script_used_goes_back_to_the_system(server):
    too_big = pytest.raises(redis.ResponseError, match="not enough memory")
    with redis.Redis(port=server.port, socket_timeout=60) as client, too_big:
        client.eval("local t = {} for i = 1, 1e9 do t[#t + 1] = {} end", 0)

    status = Path(f"/proc/{server.pid}/status").read_text()
    resident_kb = int(status.partition("VmRSS:")[2].split()[0])
    assert resident_kb < 250_000
