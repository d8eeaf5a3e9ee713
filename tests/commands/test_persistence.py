"""BGREWRITEAOF, the commands that save nothing, their numbers in INFO, and DEBUG RELOAD."""

import pytest

from penstock.commands.server.info_sections import fields_of
from tests.support.dialogue import NO_REPLY, Dialogue

FIELDS = (
    "loading async_loading current_cow_peak current_cow_size current_cow_size_age current_fork_perc"
    " current_save_keys_processed current_save_keys_total rdb_changes_since_last_save rdb_bgsave_in_progress"
    " rdb_last_save_time rdb_last_bgsave_status rdb_last_bgsave_time_sec rdb_current_bgsave_time_sec rdb_saves"
    " rdb_saves_consecutive_failures rdb_last_cow_size rdb_last_load_keys_expired rdb_last_load_keys_loaded aof_enabled"
    " aof_rewrite_in_progress aof_rewrite_scheduled aof_last_rewrite_time_sec aof_current_rewrite_time_sec"
    " aof_last_bgrewrite_status aof_rewrites aof_rewrites_consecutive_failures aof_last_write_status aof_last_cow_size"
    " module_fork_in_progress module_fork_last_cow_size backup_in_progress"
)


def test_the_fields_stand_in_rediss_order(dialogue: Dialogue) -> None:
    assert [name for name, _ in fields_of(dialogue.engine.persistence.info())] == FIELDS.split()


def test_loading_has_fields_of_its_own(dialogue: Dialogue) -> None:
    state = dialogue.engine.persistence
    dialogue.engine.conditions.loading = True
    state.loading_total, state.loading_done = 400, 100
    assert dict(fields_of(state.info()))["loading_loaded_perc"] == "25.00"


def test_lastsave_is_the_start_at_first(dialogue: Dialogue) -> None:
    assert dialogue("LASTSAVE") == 1_795_300_000


def test_a_rewrite_that_starts_is_answered_as_redis_does(dialogue: Dialogue) -> None:
    assert dialogue("BGREWRITEAOF") == b"Background append only file rewriting started"
    assert dialogue.engine.persistence.wanted_rewrite


def test_a_second_rewrite_is_refused_as_redis_does(dialogue: Dialogue) -> None:
    refusal = "ERR Background append only file rewriting already in progress"
    assert str(dialogue("BGREWRITEAOF", "BGREWRITEAOF")) == refusal


@pytest.mark.parametrize("line", ["SAVE", "BGSAVE"])
def test_an_engine_that_no_server_saves_says_that_nothing_was_saved(dialogue: Dialogue, line: str) -> None:
    assert str(dialogue("SET a 1", line)) == "ERR"
    assert dialogue("LASTSAVE") == 1_795_300_000


def test_a_save_is_scheduled_behind_a_rewrite(dialogue: Dialogue) -> None:
    refusal = (
        "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule a"
        " BGSAVE whenever possible."
    )
    assert str(dialogue("BGREWRITEAOF", "BGSAVE")) == refusal
    assert dialogue("BGSAVE SCHEDULE") == b"Background saving scheduled"


@pytest.mark.parametrize("line", ["BGSAVE NOW", "BGSAVE SCHEDULE SCHEDULE"])
def test_what_is_no_bgsave_is_refused_as_redis_does(dialogue: Dialogue, line: str) -> None:
    assert str(dialogue(line)) == "ERR syntax error"


def test_info_tells_of_no_save_as_a_redis_that_never_saved(dialogue: Dialogue) -> None:
    state = dialogue.engine.persistence
    dialogue("SET a 1", "BGREWRITEAOF")
    dialogue.engine.clock.sleep(5)
    state.ended(worked=True)

    assert dialogue("LASTSAVE") == 1_795_300_000
    told = dict(fields_of(state.info()))
    assert [told["rdb_saves"], told["rdb_last_bgsave_status"], told["rdb_last_save_time"]] == ["0", "ok", "1795300000"]


def test_reload_keeps_keys_and_groups(dialogue: Dialogue) -> None:
    dialogue.engine.settings.read_line(["enable-debug-command", "yes"], set())
    dialogue("SET a 1", "XADD s 1-0 f v", "XADD s 2-0 f v", "XGROUP CREATE s g 0")
    dialogue("XREADGROUP GROUP g alice STREAMS s >", "XDEL s 1-0", "XNACK s g FAIL IDS 1 2-0")
    before = dialogue("XPENDING s g - + 10")

    assert dialogue("DEBUG RELOAD") == b"OK"
    assert dialogue("XPENDING s g - + 10") == before
    assert dialogue("GET a") == b"1"


def test_a_blocked_reader_outlives_a_reload(dialogue: Dialogue) -> None:
    dialogue.engine.settings.read_line(["enable-debug-command", "yes"], set())
    reader = dialogue.another()
    dialogue("XGROUP CREATE s g 0 MKSTREAM")
    assert reader("XREADGROUP GROUP g alice BLOCK 0 STREAMS s >") is NO_REPLY

    dialogue("DEBUG RELOAD")
    assert reader.arrived() == []
    dialogue("XADD s 1-0 f v")
    assert reader.arrived() == [[[b"s", [[b"1-0", [b"f", b"v"]]]]]]


def test_a_watched_key_counts_as_changed_by_a_reload(dialogue: Dialogue) -> None:
    dialogue.engine.settings.read_line(["enable-debug-command", "yes"], set())
    dialogue("SET a 1", "WATCH a")
    dialogue.another()("DEBUG RELOAD")
    assert dialogue("MULTI", "GET a", "EXEC") is None


def test_inside_exec_no_child_is_started_as_in_redis(dialogue: Dialogue) -> None:
    replies = dialogue("MULTI", "BGSAVE", "BGSAVE SCHEDULE", "BGREWRITEAOF", "BGREWRITEAOF", "EXEC")

    save, rewrite = b"Background saving scheduled", b"Background append only file rewriting scheduled"
    assert replies == [save, save, rewrite, rewrite]
