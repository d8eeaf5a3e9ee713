"""Dialogues written down, held with an engine, with servers over TCP in both protocols, and with a real Redis."""

import shlex
from collections.abc import Iterator
from contextlib import closing

import pytest

from penstock.clock import ManualClock, MovableClock
from penstock.protocol.limits import Limits
from penstock.protocol.request_reader import RequestReader
from tests.support.clock import NOW_MS
from tests.support.engines import make_engine
from tests.support.log import UnitLog
from tests.support.reference_server import NoReference, reference_cluster, reference_version
from tests.support.server_process import running_server
from tests.support.transcript_clients import EngineClients, ServerClients, settings_for
from tests.support.transcript_replay import differences
from tests.support.transcripts import FOLDER, names, read

NAMES = [name for name in names() if not read(name).in_cluster]
IN_CLUSTER = [name for name in names() if read(name).in_cluster]


@pytest.fixture(scope="module")
def penstock_port() -> Iterator[int]:
    with running_server(
        "--appendonly", "no", "--enable-debug-command", "yes", "--penstock-test-clock", "yes"
    ) as server:
        yield server.port


@pytest.fixture(scope="module")
def penstock_cluster_port() -> Iterator[int]:
    with running_server("--appendonly", "no", "--enable-debug-command", "yes", "--cluster-enabled", "yes") as server:
        yield server.port


@pytest.fixture(scope="module")
def reference_cluster_port() -> Iterator[int]:
    try:
        with reference_cluster() as port:
            yield port
    except NoReference as absence:
        pytest.skip(str(absence))


def over_tcp(port: int, name: str, resp: int) -> str:
    """What a server answers otherwise than written down."""
    transcript = read(name)
    with closing(ServerClients(port, resp, transcript.clients)) as clients:
        return "\n".join(differences(transcript, clients, resp))


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("name", [*NAMES, *IN_CLUSTER])
def test_an_engine_replies_as_written_down(name: str, resp: int) -> None:
    clock = MovableClock(ManualClock(NOW_MS))
    clients = EngineClients(make_engine(clock, settings=settings_for(read(name))), resp)
    with closing(clients):
        assert "\n".join(differences(read(name), clients, resp, NOW_MS)) == ""


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_a_server_replies_over_tcp_as_written_down(penstock_port: int, name: str, resp: int) -> None:
    assert over_tcp(penstock_port, name, resp) == ""


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("name", IN_CLUSTER)
def test_a_node_of_a_cluster_replies_as_written_down(penstock_cluster_port: int, name: str, resp: int) -> None:
    assert over_tcp(penstock_cluster_port, name, resp) == ""


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("name", IN_CLUSTER)
def test_a_node_of_redis_replies_as_written_down(reference_cluster_port: int, name: str, resp: int) -> None:
    assert over_tcp(reference_cluster_port, name, resp) == ""


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_redis_replies_as_written_down(reference_port: int, name: str, resp: int) -> None:
    version = reference_version(reference_port)
    if version < read(name).since:
        pytest.skip(f"Redis {version} does not know these commands")
    assert over_tcp(reference_port, name, resp) == ""


def test_there_are_thirty_topics_or_more() -> None:
    assert len(NAMES) >= 30


def test_the_log_is_as_written_down() -> None:
    log = UnitLog()
    engine = make_engine(log=log)
    session = engine.server.connect()
    asked = ""
    for line in lines_of_the_log():
        if line.startswith("> "):
            asked = line
            log.units.clear()
            engine.handle(session, [word.encode() for word in shlex.split(asked[2:])])
        else:
            assert (asked, " ; ".join(_requests(b"".join(log.units))) or "(nothing)") == (asked, line)


def _requests(unit: bytes) -> list[str]:
    reader = RequestReader(Limits())
    reader.feed(unit)
    requests = []
    while batches := reader.take(1):
        (request,) = [batch.request(at) for batch in batches for at in range(batch.count)]
        if request[0] not in (b"MULTI", b"EXEC", b"SELECT"):
            requests.append(b" ".join(request).decode())
    return requests


def lines_of_the_log() -> list[str]:
    text = (FOLDER / "propagation.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]
