"""What Prometheus is told of a server."""

import asyncio
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import redis
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from penstock.clock import ManualClock
from penstock.engine.engine import Engine
from penstock.engine.telemetry.stream_counts import KnownStreams, StreamCounts
from penstock.errors import UsageError
from penstock.observe import companions, snapshot, stream_text
from penstock.observe.metrics_server import (
    PAUSE_S,
    STEPS_A_TURN,
    Scraper,
    ServerCollector,
    SnapshotReader,
)
from penstock.observe.snapshot import STREAMS_A_STEP, Snapshot
from tests.support.deployments import replicate, until
from tests.support.dialogue import Dialogue
from tests.support.engines import settings_with
from tests.support.fake_server import FakeLoop
from tests.support.scraping import Values, scraped, serving_metrics, values_of
from tests.support.server_process import ServerProcess, running_server


def taken_of(engine: Engine) -> Snapshot:
    taken = Snapshot()
    for _ in snapshot.take(engine, taken):
        pass
    return taken


def metrics_of(engine: Engine) -> Values:
    taken = taken_of(engine)
    registry = CollectorRegistry()
    registry.register(ServerCollector(taken))
    return values_of(generate_latest(registry).decode() + "".join(stream_text.pieces(taken)))


def test_the_text_is_what_prometheus_client_writes(dialogue: Dialogue, engine: Engine) -> None:
    dialogue.words(b"XADD", b'a\xff"\n\\', b"1-0", b"f", b"v")
    dialogue(
        "XADD t 1795354034082-0 f v",
        "XADD s 18446744073709551615-5 f v",
        "XGROUP CREATE s g\\ 0",
        "XREADGROUP GROUP g\\ c STREAMS s >",
    )
    written = "".join(stream_text.pieces(taken_of(engine)))

    class Again(Collector):
        def collect(self) -> Iterable[Metric]:
            return text_string_to_metric_families(written)

    registry = CollectorRegistry()
    registry.register(Again())
    theirs = generate_latest(registry).decode()
    assert values_of(theirs) == values_of(written)
    assert [line.rsplit(" ", 1)[0] for line in theirs.splitlines()] == [
        line.rsplit(" ", 1)[0] for line in written.splitlines()
    ]


def test_streams_groups_and_consumers_have_redis_exporters_names(
    dialogue: Dialogue, engine: Engine, clock: ManualClock
) -> None:
    dialogue("XADD s 5-1 f v", "XADD s 6-0 f v", "XADD s 7-0 f v", "XGROUP CREATE s g 0")
    dialogue("XREADGROUP GROUP g alice COUNT 2 STREAMS s >")
    clock.advance(1500)

    told = metrics_of(engine)

    assert told["redis_stream_length", "db0", "s"] == 3
    assert told["redis_stream_groups", "db0", "s"] == 1
    assert told["redis_stream_last_generated_id", "db0", "s"] == 7
    assert told["redis_stream_group_messages_pending", "db0", "g", "s"] == 2
    assert told["redis_stream_group_consumers", "db0", "g", "s"] == 1
    assert told["redis_stream_group_last_delivered_id", "db0", "g", "s"] == 6
    assert told["redis_stream_group_lag", "db0", "g", "s"] == 1
    assert told["redis_stream_group_consumer_messages_pending", "alice", "db0", "g", "s"] == 2
    assert told["redis_stream_group_consumer_idle_seconds", "alice", "db0", "g", "s"] == 1.5


def test_a_pending_entry_grows_old_until_it_is_delivered_again(
    dialogue: Dialogue, engine: Engine, clock: ManualClock
) -> None:
    dialogue("XADD s 1-0 f v", "XGROUP CREATE s g 0", "XREADGROUP GROUP g alice STREAMS s >")
    clock.advance(60_000)
    before = metrics_of(engine)

    dialogue("XCLAIM s g bob 0 1-0")
    after = metrics_of(engine)

    oldest = ("penstock_stream_group_oldest_pending_seconds", "db0", "g", "s")
    redeliveries = ("penstock_stream_group_redeliveries_total", "db0", "g", "s")
    assert (before[oldest], before[redeliveries]) == (60, 0)
    assert (after[oldest], after[redeliveries]) == (0, 1)


def test_dead_letters_of_a_group_are_counted(dialogue: Dialogue, engine: Engine) -> None:
    dialogue("XADD s 1-0 f v", "XGROUP CREATE s g 0", "PENSTOCK.POLICY s GROUP g DEADLETTER dead")
    dialogue("XREADGROUP GROUP g alice STREAMS s >")
    name = ("penstock_stream_group_dead_letters_total", "db0", "g", "s")
    before = metrics_of(engine)[name]

    dialogue("XNACK s g FATAL IDS 1 1-0")

    assert (before, metrics_of(engine)[name]) == (0, 1)


def test_a_name_that_is_not_utf_8_is_shown_with_its_bytes(dialogue: Dialogue, engine: Engine) -> None:
    dialogue.words(b"XADD", b'a\xff"\n', b"1-0", b"f", b"v")

    assert metrics_of(engine)["redis_stream_length", "db0", 'a\\xff"\n'] == 1


def test_only_streams_that_match_the_pattern_are_shown(dialogue: Dialogue, engine: Engine) -> None:
    dialogue("XADD orders:1 1-0 f v", "XADD mails 1-0 f v", "CONFIG SET metrics-streams orders:*")

    assert [name for name in metrics_of(engine) if name[0] == "redis_stream_length"] == [
        ("redis_stream_length", "db0", "orders:1")
    ]


@pytest.mark.parametrize("pattern", ["*", "s?"])
def test_streams_over_the_limit_are_counted_only(dialogue: Dialogue, engine: Engine, pattern: str) -> None:
    dialogue("CONFIG SET metrics-max-streams 2", f"CONFIG SET metrics-streams {pattern}")
    dialogue("XADD s3 1-0 f v", "XADD s1 1-0 f v", "XADD s2 1-0 f v", "SELECT 1", "XADD s4 1-0 f v")

    told = metrics_of(engine)

    assert [name[1:] for name in told if name[0] == "redis_stream_length"] == [("db0", "s3"), ("db0", "s1")]
    assert told["penstock_metrics_left_out", "streams"] == 2


def test_groups_and_consumers_are_bounded_too(dialogue: Dialogue, engine: Engine) -> None:
    dialogue("CONFIG SET metrics-max-streams 1", "XADD s 1-0 f v")
    dialogue(*[f"XGROUP CREATE s g{at} 0" for at in range(6)])
    dialogue(*[f"XGROUP CREATECONSUMER s g0 c{at}" for at in range(7)])

    told = metrics_of(engine)

    assert len([name for name in told if name[0] == "redis_stream_group_lag"]) == 4
    assert told["penstock_metrics_left_out", "groups"] == 2
    assert told["penstock_metrics_left_out", "consumers"] == 3


def test_a_stream_is_no_longer_shown_once_its_key_is_something_else(dialogue: Dialogue, engine: Engine) -> None:
    dialogue("XADD s 1-0 f v", "XADD t 1-0 f v", "XADD u 1-0 f v", "SET s x", "DEL t", "RENAME u w")

    assert [name for name in metrics_of(engine) if name[0] == "redis_stream_length"] == [
        ("redis_stream_length", "db0", "w")
    ]


def test_commands_and_errors_are_counted(dialogue: Dialogue, engine: Engine) -> None:
    dialogue("SET k v", "GET k", "GET k", "XADD k 1-0 f v", "NOPE")

    told = metrics_of(engine)

    assert told["redis_commands_total", "get"] == 2
    assert told["redis_commands_failed_calls_total", "xadd"] == 1
    assert told["redis_latency_percentiles_usec_count", "get"] == 2
    assert told["redis_errors_total", "ERR"] == 1
    assert told["redis_errors_total", "WRONGTYPE"] == 1
    assert told["redis_db_keys", "db0"] == 1


def test_a_scrape_is_neither_a_command_nor_a_client(engine: Engine) -> None:
    metrics_of(engine)

    assert metrics_of(engine)["redis_commands_processed_total",] == 0


def test_clients_are_answered_while_many_streams_are_read(
    dialogue: Dialogue, engine: Engine, clock: ManualClock
) -> None:
    for at in range(450):
        dialogue(f"XADD s{at} 1-0 f v")
    loop = FakeLoop(clock)
    reader = SnapshotReader(engine, loop)  # type: ignore[arg-type] # as much of a loop as it needs
    turns = 1
    reader.read()
    while not reader.taken.done():
        turns += 1
        loop.pass_ms(int(PAUSE_S * 1000))

    assert turns > 450 // (STREAMS_A_STEP * STEPS_A_TURN)
    assert len(reader.taken.result().tuples.streams) == 450


def test_streams_that_are_deleted_while_they_are_read_are_left_out(dialogue: Dialogue, engine: Engine) -> None:
    dialogue(*[f"XADD s{at} 1-0 f v" for at in range(100)])
    taken = Snapshot()
    steps = snapshot.take(engine, taken)
    while not taken.tuples.streams:
        next(steps)

    dialogue("DEL s50", "FLUSHDB ASYNC")
    for _ in steps:
        assert len(taken.tuples.streams) == STREAMS_A_STEP

    assert [StreamCounts._make(one).key for one in taken.tuples.streams] == [
        b"s%d" % at for at in range(STREAMS_A_STEP)
    ]


def memory_after(engine: Engine, known: KnownStreams) -> int:
    """What a scrape says of the memory of the only stream, after one that said so much."""
    taken = Snapshot(known)
    for _ in snapshot.take(engine, taken):
        pass
    return StreamCounts._make(taken.tuples.streams[0]).memory


def test_the_memory_of_a_stream_that_stays_as_it_was_is_not_estimated_again(dialogue: Dialogue, engine: Engine) -> None:
    dialogue("XADD s 1-0 f v", "XGROUP CREATE s g 0", "XREADGROUP GROUP g alice STREAMS s >")
    known = taken_of(engine).tuples.by_key()
    estimate = memory_after(engine, {})
    known[0][b"s"] = StreamCounts._make(known[0][b"s"])._replace(memory=7)

    assert memory_after(engine, known) == 7
    assert estimate > 7


@pytest.mark.parametrize(
    "change",
    [
        "XADD s 2-0 f v",
        "XDEL s 1-0",
        "XSETID s 9-0",
        "XACK s g 1-0",
        "XGROUP CREATECONSUMER s g bob",
        "XGROUP DESTROY s g",
        "DEL s|XADD s 1-0 f v|XADD s 1-1 f v",
    ],
)
def test_the_memory_of_a_stream_that_changed_is_estimated_again(
    change: str, dialogue: Dialogue, engine: Engine
) -> None:
    dialogue("XADD s 1-0 f v", "XGROUP CREATE s g 0", "XREADGROUP GROUP g alice STREAMS s >")
    known = taken_of(engine).tuples.by_key()
    known[0][b"s"] = StreamCounts._make(known[0][b"s"])._replace(memory=7)
    dialogue(*change.split("|"))

    assert memory_after(engine, known) == memory_after(engine, {})


def test_while_a_script_has_the_keyspace_the_scrape_waits(engine: Engine, clock: ManualClock) -> None:
    loop = FakeLoop(clock)
    reader = SnapshotReader(engine, loop)  # type: ignore[arg-type] # as much of a loop as it needs
    engine.conditions.busy = True
    reader.read()
    loop.pass_ms(1000)
    waited = not reader.taken.done()
    engine.conditions.busy = False

    for _ in range(100):
        loop.pass_ms(60)

    assert waited and reader.taken.done()


async def test_a_server_that_has_ended_is_not_up(engine: Engine) -> None:
    loop = asyncio.new_event_loop()
    loop.close()

    assert values_of((await Scraper(engine, loop).text()).decode())["redis_up",] == 0


# -- over HTTP --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[ServerProcess, int]]:
    with ExitStack() as stack:
        yield serving_metrics(stack)


def test_a_running_server_is_scraped(server: tuple[ServerProcess, int]) -> None:
    process, port = server
    client = redis.Redis(port=process.port)
    client.xadd("s", {"f": "v"})

    told = values_of(scraped(port))

    assert told["redis_up",] == 1
    assert told["redis_stream_length", "db0", "s"] == 1
    assert told["redis_connected_clients",] == 1
    assert told["process_resident_memory_bytes",] > 0


def test_several_scrapes_at_once_are_all_answered(server: tuple[ServerProcess, int]) -> None:
    with ThreadPoolExecutor(4) as pool:
        assert all(values_of(text)["redis_up",] == 1 for text in pool.map(scraped, [server[1]] * 4))


def test_a_server_ends_while_nothing_was_scraped_and_while_something_is() -> None:
    with ExitStack() as stack:
        process, port = serving_metrics(stack)
        with socket.create_connection(("127.0.0.1", port), timeout=60) as half:
            half.sendall(b"GET /metrics HTTP/1.1\r\n")
            assert process.stop() == 0


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, ExitStack() as stack:
        taken_port = str(taken.getsockname()[1])
        with pytest.raises(AssertionError, match="metrics-port"):
            stack.enter_context(running_server("--metrics-port", taken_port))


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.delitem(sys.modules, "penstock.observe.metrics_server")

    with pytest.raises(UsageError, match="metrics-port needs the package prometheus_client: install the extra"):
        companions.wanted(settings_with(metrics_port="9121"))


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_has_nothing_against_names_of_our_own(server: tuple[ServerProcess, int]) -> None:
    redis.Redis(port=server[0].port).xadd("s", {"f": "v"})

    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=scraped(server[1]), capture_output=True, text=True, timeout=60
    )

    assert "error" not in checked.stderr
    assert [line for line in checked.stderr.splitlines() if line.startswith("penstock_")] == []


def test_a_master_shows_how_many_replicas_its_writers_need_and_have() -> None:
    with ExitStack() as stack:
        master, port = serving_metrics(stack, "--min-replicas-to-write", "2", "--repl-diskless-sync-delay", "0")
        before = values_of(scraped(port))
        replica = stack.enter_context(running_server())
        with redis.Redis(port=replica.port) as client:
            replicate(client, master.port)
        with redis.Redis(port=master.port) as client:
            until(lambda: client.info("replication")["min_slaves_good_slaves"] == 1, "the replica does not follow")
        after = values_of(scraped(port))

    needed, good = ("penstock_replicas_needed",), ("penstock_replicas_good",)
    assert [(one[needed], one[good]) for one in (before, after)] == [(2, 0), (2, 1)]
