"""A long log is loaded in slices: clients are told so in between, and INFO says how far it is."""

import errno
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.clock import ManualClock
from penstock.engine.effects import pack
from penstock.errors import UsageError
from penstock.native.build import IS_COMPILED
from penstock.server.turns.log_writer import AofWriter
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, settings_with
from tests.support.memory_disk import MemoryDisk
from tests.support.memory_disk import MemoryNode as Node
from tests.support.server_process import ServerProcess
from tests.support.wire import Bulk, Connection, Error, Simple, Value

DIRECTORY = "/tmp/appendonlydir"  # in memory
LINES = [pack((b"SET", b"key%d" % number, b"v" * 100)) for number in range(10_000)]
REFUSED = "LOADING Redis is loading the dataset in memory"


class Loading:
    """A server half-way through its log."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.disk.files[f"{DIRECTORY}/last"] = Node()
        self.disk.files[f"{DIRECTORY}/last"].seen = bytearray(b"".join(LINES))
        self.disk.files[f"{DIRECTORY}/appendonly.aof.manifest"] = Node()
        self.disk.files[f"{DIRECTORY}/appendonly.aof.manifest"].seen = bytearray(b"file last seq 1 type i\n")
        settings = settings_with(dir="/tmp")
        self.clock = ManualClock(NOW_MS)
        self.engine = make_engine(self.clock, settings=settings)
        self.said: list[str] = []
        self.durability = AofWriter(settings, self.engine, self.said.append, self.disk)
        self.steps: Any = self.durability.loading()
        self.client = Dialogue(self.engine)

    def step(self, later_ms: int = 0) -> tuple[int, int]:
        self.clock.advance(later_ms)
        return next(self.steps)

    def info(self, section: str = "persistence") -> dict[bytes, bytes]:
        text = self.client(f"INFO {section}")
        assert isinstance(text, bytes)
        return dict(line.split(b":") for line in text.split(b"\r\n") if b":" in line)

    def damage(self) -> None:
        """The rest of the log, from here on, is no log."""
        self.disk.files[f"{DIRECTORY}/last"].seen[-100:] = b"garbage" * 20


@pytest.fixture
def loading() -> Loading:
    half_way = Loading()
    half_way.step()
    return half_way


@pytest.mark.parametrize(
    "request_line", ["PING", "GET key1", "SET a 1", "XLEN s", "XADD s * f v", "KEYS *", "BGREWRITEAOF"]
)
def test_clients_are_told_that_the_log_is_loaded(loading: Loading, request_line: str) -> None:
    assert str(loading.client(request_line)) == REFUSED


@pytest.mark.parametrize("subcommand", ["RELOAD", "LOADAOF", "POPULATE 10"])
def test_debug_does_not_put_keys_among_those_that_are_loaded(loading: Loading, subcommand: str) -> None:
    loading.engine.settings.read_line(["enable-debug-command", "yes"], set())

    assert str(loading.client(f"DEBUG {subcommand}")) == REFUSED


@pytest.mark.parametrize("request_line", ["HELLO", "ECHO x", "SELECT 1", "CLIENT ID", "CONFIG GET dir", "LASTSAVE"])
def test_what_needs_no_keys_is_answered_meanwhile(loading: Loading, request_line: str) -> None:
    assert not isinstance(loading.client(request_line), Exception)


def test_no_client_is_served_after_a_load_that_was_refused(loading: Loading) -> None:
    loading.damage()
    with pytest.raises(UsageError, match="are whole, the rest"):
        list(loading.steps)

    assert str(loading.client("SET a 1")) == REFUSED


def test_no_client_is_served_after_a_log_that_cannot_be_opened_for_writing(loading: Loading) -> None:
    loading.disk.failures["open"] = [errno.EROFS]
    with pytest.raises(UsageError):
        list(loading.steps)

    assert str(loading.client("SET a 1")) == REFUSED


def test_no_client_is_served_after_a_load_that_a_signal_broke_off(loading: Loading) -> None:
    loading.steps.close()

    assert str(loading.client("SET a 1")) == REFUSED


def test_a_log_that_was_switched_off_while_it_was_loaded_is_closed(loading: Loading) -> None:
    loading.client("CONFIG SET appendonly no")
    list(loading.steps)

    assert loading.durability.log is None
    assert loading.client("SET a 1") == b"OK"


def test_info_tells_how_far_it_is(loading: Loading) -> None:
    loading.step(later_ms=3000)
    fields = loading.info()
    total, done = int(fields[b"loading_total_bytes"]), int(fields[b"loading_loaded_bytes"])
    assert (fields[b"loading"], total) == (b"1", sum(map(len, LINES)))
    assert 0 < done < total
    assert float(fields[b"loading_loaded_perc"]) == pytest.approx(100 * done / total, abs=0.01)
    assert int(fields[b"loading_eta_seconds"]) == 3 * (total - done) // done
    assert int(fields[b"loading_start_time"]) == 1_795_300_000


def test_a_long_loading_says_how_far_and_how_fast_it_is(loading: Loading) -> None:
    loading.step(later_ms=2500)
    loading.step()
    assert loading.said == [next(line for line in loading.said if line.startswith("Loading the log: "))]
    assert "requests and" in loading.said[0]


def test_everything_is_there_afterwards(loading: Loading) -> None:
    for _ in loading.steps:
        pass
    assert loading.client("DBSIZE") == len(LINES)
    assert loading.client("PING") == b"PONG"
    assert b"loading_total_bytes" not in loading.info()
    assert loading.said[-1].startswith("DB loaded from append only file: ")
    assert loading.said[-1].endswith(f", {len(LINES)} keys from {len(LINES)} requests of the log")


def test_requests_in_between_do_not_disturb_the_loading(loading: Loading) -> None:
    for _ in loading.steps:
        loading.client("SELECT 3", "GET key1", "HELLO 3")
    assert loading.client("SELECT 0", "DBSIZE") == len(LINES)


# -- a real process ---------------------------------------------------------------------------------------------------


def pings_while_loading(server: ServerProcess) -> list[Value]:
    """What PING, asked again and again from the moment the server listens, was answered; last is what ends it."""
    deadline = time.monotonic() + 30
    while not server.port:
        assert time.monotonic() < deadline and server.is_alive, server.said
        time.sleep(0.005)  # another process starts
    answers: list[Value] = []
    with Connection("127.0.0.1", server.port) as client:
        while not answers or isinstance(answers[-1], Error):
            answers.append(client.ask("PING"))
            info = client.ask("INFO", "persistence")
            assert isinstance(info, Bulk)
            assert (b"loading_loaded_perc:" in info.text) == (b"loading:1" in info.text)
    return answers


def test_a_server_answers_while_it_loads(tmp_path: Path) -> None:
    (tmp_path / "appendonlydir").mkdir()
    times = 100 if IS_COMPILED else 10  # that build loads ten times as fast, before a client asks
    (tmp_path / "appendonlydir/last").write_bytes(b"".join(LINES) * times)
    (tmp_path / "appendonlydir/appendonly.aof.manifest").write_bytes(b"file last seq 1 type i\n")
    server = ServerProcess((), tmp_path, {})
    try:
        *refused, last = pings_while_loading(server)
        assert set(refused) == {Error(REFUSED.encode())}
        assert last == Simple(b"PONG")
    finally:
        server.stop()


def test_a_server_can_be_stopped_while_it_loads(tmp_path: Path) -> None:
    (tmp_path / "appendonlydir").mkdir()
    whole = b"".join(LINES) * 20
    (tmp_path / "appendonlydir/last").write_bytes(whole)
    (tmp_path / "appendonlydir/appendonly.aof.manifest").write_bytes(b"file last seq 1 type i\n")
    server = ServerProcess((), tmp_path, {})
    while not server.port and server.is_alive:
        time.sleep(0.005)  # another process starts
    assert server.stop() == 0
    assert "Ready to accept" not in server.said
    assert (tmp_path / "appendonlydir/last").read_bytes() == whole
