"""TIME, ROLE, LOLWUT, WAIT, WAITAOF, SHUTDOWN, and the containers' HELP."""

import pytest

from penstock.clock import ManualClock
from penstock.commands.common.help import help_reply
from penstock.engine.engine import Engine
from penstock.storage.aof.append_log import AppendLog
from penstock.storage.aof.log_directory import LogDirectory
from tests.support.dialogue import NO_REPLY, Dialogue
from tests.support.memory_disk import MemoryDisk
from tests.support.replies_beside_redis import replies_of_both

ALIKE = {
    "role": ["ROLE", "ROLE x", "TIME x"],
    "wait": [
        "WAIT 0 0", "WAIT 0 10", "WAIT 1 1", "WAIT x 10", "WAIT 1 x", "WAIT 1 -1", "WAIT -1 0", "WAIT 1 1.5", "WAIT 1",
        "WAIT 99999999999999999999 0", "WAIT 1 9223372036854775807",
    ],
    "waitaof": [
        "WAITAOF 0 0 0", "WAITAOF 1 0 0", "WAITAOF 2 0 0", "WAITAOF -1 0 0", "WAITAOF 0 x 10", "WAITAOF x x x",
        "WAITAOF 0 0 x", "WAITAOF 0 0 -1", "WAITAOF 0 -1 0", "WAITAOF 1 x x",
    ],
    "in a transaction": ["MULTI", "WAIT 1 0", "WAITAOF 0 1 0", "EXEC", "MULTI", "SHUTDOWN ABORT", "EXEC"],
    "shutdown": [
        "SHUTDOWN FOO", "SHUTDOWN SAVE NOSAVE", "SHUTDOWN ABORT", "SHUTDOWN ABORT NOW", "SHUTDOWN ABORT ABORT",
        "SHUTDOWN NOW ABORT",
    ],
    "lolwut": ["LOLWUT VERSION x"],
}  # fmt: skip
TIMED = {"WAIT 1 1"}  # answered when the time is up: compared elsewhere


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("lines", ALIKE.values(), ids=ALIKE.keys())
def test_the_server_answers_what_redis_answers(reference_port: int, lines: list[str], resp: int) -> None:
    theirs, ours = replies_of_both(reference_port, [line for line in lines if line not in TIMED], resp)

    assert ours == theirs


def test_time_is_the_clocks(dialogue: Dialogue, clock: ManualClock) -> None:
    clock.set_ms(1_795_300_000_123)

    assert dialogue("TIME") == [b"1795300000", b"123000"]


def test_lolwut_ends_with_the_version(dialogue: Dialogue) -> None:
    assert dialogue.raw("LOLWUT").endswith(b"Redis ver. 8.12.0\n\r\n")


# -- WAIT, WAITAOF ----------------------------------------------------------------------------------------------------


def test_wait_waits_its_time_for_replicas_that_there_are_not(
    dialogue: Dialogue, engine: Engine, clock: ManualClock
) -> None:
    assert dialogue("WAIT 1 100") == NO_REPLY
    clock.advance(100)
    engine.tick()

    assert dialogue.arrived() == [0]


@pytest.fixture
def log(engine: Engine) -> AppendLog:
    kept = AppendLog(LogDirectory(MemoryDisk(), "root", "dir", "appendonly.aof"))
    kept.start()
    engine.persistence.log = kept
    engine.effects.use(kept)
    return kept


def test_waitaof_answers_when_the_log_has_been_synced(dialogue: Dialogue, engine: Engine, log: AppendLog) -> None:
    dialogue("SET k v")

    assert dialogue("WAITAOF 1 0 0") == NO_REPLY
    log.write()
    log.sync()
    engine.tick()
    assert dialogue.arrived() == [[1, 0]]


def test_waitaof_does_not_wait_for_what_came_later(dialogue: Dialogue, engine: Engine, log: AppendLog) -> None:
    dialogue("SET k v", "WAITAOF 1 0 0")
    log.write()
    log.sync()
    dialogue.another()("SET k w")
    engine.tick()

    assert dialogue.arrived() == [[1, 0]]


def test_waitaof_answers_at_once_where_all_is_safe(dialogue: Dialogue, log: AppendLog) -> None:
    assert dialogue("WAITAOF 1 0 0") == [1, 0]


def test_waitaof_for_replicas_tells_at_its_end_what_is_safe_here(
    dialogue: Dialogue, engine: Engine, log: AppendLog, clock: ManualClock
) -> None:
    dialogue("SET k v", "WAITAOF 1 1 100")
    log.write()
    log.sync()
    engine.tick()
    clock.advance(100)
    engine.tick()

    assert dialogue.arrived() == [[1, 0]]


# -- SHUTDOWN ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["SHUTDOWN", "SHUTDOWN NOSAVE", "shutdown save now force"])
def test_shutdown_is_asked_of_the_server_and_says_nothing(dialogue: Dialogue, engine: Engine, line: str) -> None:
    assert dialogue(line) == NO_REPLY
    assert engine.persistence.wanted_shutdown


# -- HELP -------------------------------------------------------------------------------------------------------------


def test_help_is_laid_out_as_redis_lays_it_out() -> None:
    assert help_reply("THING", [("GET <key>", "Give it.\nNow.")]) == (
        b"*6\r\n+THING <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n+GET <key>\r\n+    Give it.\r\n"
        b"+    Now.\r\n+HELP\r\n+    Print this help.\r\n"
    )


@pytest.mark.parametrize("container", ["ACL", "CLIENT", "LATENCY", "MEMORY", "SLOWLOG"])
def test_every_container_explains_each_of_its_subcommands(dialogue: Dialogue, engine: Engine, container: str) -> None:
    told = dialogue(f"{container} HELP")

    assert isinstance(told, list)
    words = {line.split(b" ")[0] for line in told}
    assert engine.commands.rows[container.encode()].subcommands.keys() <= words
