"""INFO, beside a real Redis where there is one."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.clock import ManualClock
from penstock.commands.server.info_sections import human
from penstock.engine.engine import Engine
from penstock.engine.telemetry import decimals
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.replies_beside_redis import engine_for_debugging, replies_of_both

OURS = {"penstock_version", "penstock_build", "python_version"}
SINCE_8_8 = {
    "slowlog_commands_count", "slowlog_commands_time_ms_sum", "slowlog_commands_time_ms_max",
    "total_client_processing_events", "eventloop_cycles_with_clients_processing", "commands_per_parse_batch_sum",
    "commands_per_parse_batch_cnt", "commands_per_parse_batch_avg", "hash_templates", "hash_template_keys",
    "blessed_keys", "used_memory_hash_templates", "backup_in_progress",
}  # fmt: skip
COUNTED = re.compile(r"cmdstat_|errorstat_|latency_percentiles|module$|db\d")


def lines(info: bytes) -> list[str]:
    """Titles and the names of fields, in order."""
    text = info.decode().partition("\r\n")[2]
    return [line if line.startswith("#") else line.partition(":")[0] for line in text.split("\r\n") if line]


def values(info: bytes) -> dict[str, str]:
    found: dict[str, str] = dict(re.findall(r"(\S+?):(.*)\r\n", info.decode()))
    return found


@pytest.mark.parametrize("section", ["", "default", "all", "everything"])
def test_sections_and_fields_are_those_of_redis_in_its_order(reference_port: int, section: str) -> None:
    (theirs,), (ours,) = replies_of_both(reference_port, [f"INFO {section}"], 2)

    here = [name for name in lines(ours) if not COUNTED.match(name) and name not in OURS | SINCE_8_8]
    assert here == [name for name in lines(theirs) if not COUNTED.match(name)]


@pytest.mark.parametrize("resp", [2, 3])
def test_the_small_sections_are_those_of_redis_byte_by_byte(reference_port: int, resp: int) -> None:
    asked = [
        "FLUSHALL", "INFO keyspace", "SET a 1", "SET b ''", "SET c abc", "XADD s 1-0 f v", "INFO keyspace",
        "INFO keysizes", "INFO nosuch", "INFO cluster", "INFO CLUSTER keyspace nosuch cluster", "INFO hotkeys",
        "CONFIG RESETSTAT", "NOSUCH", "GET", "XADD a 1-0 f v", "INFO errorstats",
    ]  # fmt: skip
    theirs, ours = replies_of_both(reference_port, asked, resp)

    assert ours == theirs


def test_sizes_of_values_are_told_by_type(dialogue: Dialogue) -> None:
    dialogue("SET empty ''", "SETRANGE text 2047 x", "RPUSH l a b c", "HSET h f v", "SADD s a b", "ZADD z 1 a")
    dialogue("XADD x 1-0 f v", "COPY l l2", "COPY l l DB 2", "RPUSH l2 d")

    assert values(dialogue.raw("INFO keysizes")) == {
        "db0_distrib_strings_sizes": "0=1,2K=1",
        "db0_distrib_lists_items": "2=1,4=1",
        "db0_distrib_sets_items": "2=1",
        "db0_distrib_zsets_items": "1=1",
        "db0_distrib_hashes_items": "1=1",
        "db2_distrib_lists_items": "2=1",
    }


def test_sizes_follow_long_strings_that_are_changed_in_place(dialogue: Dialogue) -> None:
    dialogue("SETRANGE appended 39999 x", "SETRANGE set 39999 x", "SETRANGE bits 39999 x", "SETRANGE fields 39999 x")
    assert values(dialogue.raw("INFO keysizes")) == {"db0_distrib_strings_sizes": "32K=4"}

    dialogue("APPEND appended " + "y" * 30_000, "SETRANGE set 140000 x", "SETBIT bits 2400000 1")
    dialogue("BITFIELD fields SET u8 4800000 1")

    assert values(dialogue.raw("INFO keysizes")) == {"db0_distrib_strings_sizes": "64K=1,128K=1,256K=1,512K=1"}


def test_sizes_of_many_keys_are_told(dialogue: Dialogue) -> None:
    dialogue(*("MSET " + " ".join(f"{first}:{at} {'x' * (1 + at % 4)}" for at in range(1000)) for first in range(30)))

    assert values(dialogue.raw("INFO keysizes")) == {"db0_distrib_strings_sizes": "1=7500,2=15000,4=7500"}


def test_the_memory_of_many_clients_is_told_by_some_of_them(engine: Engine) -> None:
    sessions = [engine.server.connect(f"127.0.0.1:{number}", "127.0.0.1:2") for number in range(2000)]
    for session in sessions:
        engine.handle(session, [b"CLIENT", b"SETNAME", b"x" * 50])

    told = values(engine.handle(sessions[0], [b"INFO", b"memory"]))

    assert 2000 * 50 <= int(told["mem_clients_normal"]) < 2000 * 60


def test_versions_are_told(dialogue: Dialogue) -> None:
    told = values(dialogue.raw("INFO server"))

    assert told["redis_version"] == "8.12.0"
    assert told.keys() >= OURS
    assert re.fullmatch("[0-9a-f]{40}", told["run_id"])


def test_the_server_knows_how_long_it_runs(dialogue: Dialogue, clock: ManualClock) -> None:
    clock.advance(2 * 86_400_000)

    told = values(dialogue.raw("INFO server"))

    assert (told["uptime_in_seconds"], told["uptime_in_days"]) == ("172800", "2")


def test_listeners_are_told(engine: Engine, dialogue: Dialogue) -> None:
    assert values(dialogue.raw("INFO server"))["listener0"] == "name=tcp,bind=127.0.0.1,port=6379"


def test_clients_that_wait_or_watch_are_counted(dialogue: Dialogue) -> None:
    dialogue.another()("XREAD BLOCK 10 STREAMS a b $ $")
    dialogue.another()("WATCH k l")

    told = values(dialogue.raw("INFO clients"))

    assert told["connected_clients"] == "3"
    assert (told["blocked_clients"], told["clients_in_timeout_table"], told["total_blocking_keys"]) == ("1", "1", "2")
    assert (told["watching_clients"], told["total_watched_keys"]) == ("1", "2")


def test_the_time_of_the_most_memory_is_that_of_the_reading_that_found_it(engine: Engine, dialogue: Dialogue) -> None:
    engine.memory.reading = lambda: (1, 1000)
    dialogue("INFO memory")
    engine.memory.reading = lambda: (1, 900)
    clock = engine.clock
    assert isinstance(clock, ManualClock)
    clock.advance(5000)

    assert f"used_memory_peak_time:{NOW_MS // 1000}\r\n".encode() in dialogue.raw("INFO memory")


def test_memory_is_measured(dialogue: Dialogue) -> None:
    before = int(values(dialogue.raw("INFO memory"))["used_memory_dataset"])
    dialogue.words(b"SET", b"k", bytes(1_000_000))

    told = values(dialogue.raw("INFO memory"))

    assert int(told["used_memory_dataset"]) - before > 1_000_000
    assert 0 < int(told["used_memory_rss"]) <= int(told["total_system_memory"])


def test_a_command_has_its_line(dialogue: Dialogue) -> None:
    dialogue("XADD s 1-0 f v", "XADD s 1-0 f v", "XADD s", "CLIENT", "XINFO STREAM nokey")

    told = values(dialogue.raw("INFO commandstats"))

    assert told["cmdstat_xadd"] == "calls=2,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=1"
    assert told["cmdstat_client"] == "calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0"
    assert told["cmdstat_xinfo|stream"] == "calls=1,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=1"


def test_a_command_inside_a_transaction_counts_once_and_so_does_exec(dialogue: Dialogue) -> None:
    dialogue("MULTI", "PING", "EXEC")

    assert values(dialogue.raw("INFO stats"))["total_commands_processed"] == "3"


def test_times_have_their_percentiles() -> None:
    dialogue = Dialogue(engine_for_debugging())
    dialogue("DEBUG SLEEP 0.000003")

    told = values(dialogue.raw("INFO latencystats"))

    assert told["latency_percentiles_usec_debug"] == "p50=3.007,p99=3.007,p99.9=3.007"


def test_rates_are_means_of_samples(dialogue: Dialogue, clock: ManualClock, engine: Engine) -> None:
    dialogue("PING", "PING", "PING", "PING")
    clock.advance(100)
    engine.tick()

    assert values(dialogue.raw("INFO stats"))["instantaneous_ops_per_sec"] == "40"


def test_resetstat_begins_anew(dialogue: Dialogue) -> None:
    dialogue("GET a", "NOSUCH", "CONFIG RESETSTAT")

    told = values(dialogue.raw("INFO everything"))

    assert (told["keyspace_misses"], told["total_error_replies"]) == ("0", "0")
    assert "cmdstat_get" not in told


def test_the_mean_time_to_live_is_told(dialogue: Dialogue) -> None:
    dialogue("SET a 1 PX 1000", "SET b 1 PX 3000")

    assert values(dialogue.raw("INFO keyspace"))["db0"] == "keys=2,expires=2,avg_ttl=2000,subexpiry=0"


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0B"),
        (200, "200B"),
        (1024, "1.00K"),
        (831_376, "811.89K"),
        (14_909_440, "14.22M"),
        (25_276_514_304, "23.54G"),
    ],
)
def test_sizes_are_written_for_people_as_redis_writes_them(count: int, shown: str) -> None:
    assert human(count) == shown


LARGE = " ".join(f"m{number}" for number in range(200))


@pytest.mark.parametrize(
    ("lines", "freed"),
    [
        (["SET k v", "UNLINK k"], 0),
        ([f"SADD k {LARGE}", "UNLINK k"], 1),
        ([f"SADD k {LARGE}", "DEL k"], 0),
        (["CONFIG SET lazyfree-lazy-user-del yes", f"SADD k {LARGE}", "DEL k"], 1),
        ([f"SADD k {LARGE.replace('m', '')}", "UNLINK k"], 0),
        ([f"HSET k {LARGE}", "UNLINK k"], 0),
        ([f"RPUSH k {LARGE}", "UNLINK k"], 0),
        ([f"RPUSH k {'x' * 600_000}", "UNLINK k"], 1),
        (["MSET a 1 b 2", "SELECT 1", "SET c 3", "FLUSHDB", "FLUSHALL SYNC"], 3),
    ],
)
def test_what_redis_frees_in_a_thread_is_counted(dialogue: Dialogue, lines: list[str], freed: int) -> None:
    dialogue(*lines)

    assert f"lazyfreed_objects:{freed}\r\n".encode() in dialogue("INFO memory")


@given(st.floats(0, allow_nan=False) | st.floats(0, 10**6) | st.integers(0, 10**9).map(lambda number: number / 1000))
@example(0.125)
@example(0.005)
@example(1e10)
@example(float("inf"))
def test_decimals_are_those_of_format(number: float) -> None:
    assert decimals.two_decimals(number) == format(number, ".2f")
    assert decimals.six_decimals(number) == format(number, ".6f")
