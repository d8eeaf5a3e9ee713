"""A log that an older Redis must load has no words that it does not know."""

import pytest

from penstock.clock import ManualClock
from penstock.engine.aof import reload
from penstock.engine.aof.persistence import REWRITE
from penstock.engine.aof.rewrite import base_lines
from penstock.protocol.log_reader import next_request
from penstock.storage.aof.append_log import AppendLog
from penstock.storage.aof.log_directory import LogDirectory
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, settings_with
from tests.support.log import UnitLog
from tests.support.memory_disk import MemoryDisk


class Logging(Dialogue):
    """A dialogue with an engine that logs for an older Redis; `logged` shows the lines of what was asked last."""

    def __init__(self, version: str) -> None:
        settings = settings_with(aof_compat_version=version)
        self.units = UnitLog()
        self.clock = ManualClock(NOW_MS)
        super().__init__(make_engine(self.clock, self.units, settings))

    def logged(self, *lines: str) -> list[str]:
        self.units.clear()
        self(*lines)
        return shown(self.units.text)

    def base(self) -> list[str]:
        return shown(b"".join(base_lines(self.engine.keyspace, self.engine.settings, NOW_MS)))


def shown(text: bytes) -> list[str]:
    """Requests as lines, without what stands between them."""
    lines = []
    at = 0
    while at < len(text):
        words, at = next_request(text, at)
        lines.append(b" ".join(words).decode())
    return [line for line in lines if line.split()[0] not in ("SELECT", "MULTI", "EXEC")]


SETUP = (
    "CONFIG SET stream-node-max-entries 3", *(f"XADD s {number}-0 f v" for number in range(1, 7)),
    "XGROUP CREATE s g 0", "XGROUP CREATE s h 0", "XREADGROUP GROUP g al STREAMS s >",
    "XREADGROUP GROUP h bo COUNT 3 STREAMS s >",
)  # fmt: skip
CLAIMED = "TIME 0 RETRYCOUNT 1 FORCE JUSTID LASTID 6-0"

CASES = {
    "released": ("8.6", "XNACK s g FAIL IDS 3 2-0 1-0 9-0", [f"XCLAIM s g released 0 2-0 1-0 {CLAIMED}"]),
    "released with counts": (
        "8.6", "XNACK s g FATAL IDS 1 2-0",
        ["XCLAIM s g released 0 2-0 TIME 0 RETRYCOUNT 9223372036854775807 FORCE JUSTID LASTID 6-0"],
    ),
    "released in the newest": ("newest", "XNACK s g FAIL IDS 1 2-0", ["XNACK s g FAIL IDS 1 2-0 RETRYCOUNT 1 FORCE"]),
    "released for 8.8": ("8.8", "XNACK s g FAIL IDS 1 2-0", ["XNACK s g FAIL IDS 1 2-0 RETRYCOUNT 1 FORCE"]),
    "idempotent": ("8.6", "XADD s IDMP p i * f v", [f"XADD s IDMP p i {NOW_MS}-0 f v"]),
    "no idempotence": ("8.4", "XADD s IDMP p i * f v", [f"XADD s {NOW_MS}-0 f v"]),
    "no idempotent settings": ("8.4", "XCFGSET s IDMP-DURATION 9", []),
    "references": ("8.2", "XADD s MAXLEN = 4 DELREF 7-0 f v", ["XADD s MAXLEN = 4 DELREF 7-0 f v"]),
    "no references": (
        "7.2", "XADD s DELREF MAXLEN ~ 4 LIMIT 0 7-0 f v",
        ["XADD s MAXLEN = 4 7-0 f v", "XACK s g 1-0 2-0 3-0", "XACK s h 1-0 2-0 3-0"],
    ),
    "a word that changes nothing": ("7.2", "XADD s KEEPREF NOMKSTREAM MAXLEN 6 7-0 f v", ["XADD s MAXLEN = 6 7-0 f v"]),
    "trimmed references": (
        "7.2", "XTRIM s MINID = 3-0 DELREF", ["XTRIM s MINID = 3-0", "XACK s g 1-0 2-0", "XACK s h 1-0 2-0"],
    ),
    "trimmed plainly": ("7.2", "XTRIM s MAXLEN ~ 3", ["XTRIM s MAXLEN = 3"]),
    "deleted": ("7.2", "XDELEX s KEEPREF IDS 2 2-0 9-0", ["XDEL s 2-0"]),
    "deleted with references": (
        "7.2", "XDELEX s DELREF IDS 2 2-0 9-0", ["XDEL s 2-0", "XACK s g 2-0 9-0", "XACK s h 2-0 9-0"],
    ),
    "acknowledged and deleted": ("7.2", "XACKDEL s g KEEPREF IDS 2 2-0 9-0", ["XACK s g 2-0", "XDEL s 2-0"]),
    "acknowledged only": ("7.2", "XACKDEL s g ACKED IDS 1 2-0", ["XACK s g 2-0"]),
}  # fmt: skip


@pytest.mark.parametrize(("version", "request_line", "lines"), CASES.values(), ids=CASES.keys())
def test_what_is_logged_for_an_older_redis(version: str, request_line: str, lines: list[str]) -> None:
    log = Logging(version)
    log(*SETUP)
    assert log.logged(request_line) == lines


def test_a_duplicate_has_no_line_where_there_is_no_idempotence() -> None:
    log = Logging("8.4")
    log("XADD s IDMP p i * f v")
    assert log.logged("XADD s IDMP p i * f v") == []


@pytest.mark.parametrize("version", ["8.8", "7.2"])
def test_an_acked_trim_that_leaves_nothing_behind_is_a_plain_one(version: str) -> None:
    log = Logging(version)
    log(*SETUP, "XACK s g 1-0 2-0 4-0", "XACK s h 1-0 2-0")
    assert log.logged("XTRIM s MAXLEN = 1 ACKED") == ["XTRIM s MINID = 2-1"]


@pytest.mark.parametrize(
    ("version", "lines"),
    [("8.8", ["XTRIM s MINID = 2-1 ACKED"]), ("7.2", ["XDEL s 2-0", "XSETID s 6-0 MAXDELETEDID 5-0"])],
)
def test_an_acked_trim_goes_around_what_is_needed(version: str, lines: list[str]) -> None:
    log = Logging(version)
    log(*SETUP, "XACK s g 2-0", "XACK s h 2-0", "XDEL s 5-0")
    assert log.logged("XTRIM s MAXLEN = 1 ACKED") == lines


def test_the_name_of_the_consumer_can_be_chosen() -> None:
    log = Logging("8.6")
    log(*SETUP, "CONFIG SET aof-compat-consumer nobody")
    assert log.logged("XNACK s g FAIL IDS 1 1-0")[0].startswith("XCLAIM s g nobody 0 1-0 TIME 0")


def test_a_released_ghost_stays_with_the_owner_that_an_older_log_knows() -> None:
    log = Logging("8.6")
    log(*SETUP, "XDEL s 1-0")
    assert log.logged("XNACK s g FAIL IDS 2 1-0 2-0") == [f"XCLAIM s g released 0 2-0 {CLAIMED}"]


def test_a_base_for_an_older_redis_has_its_words_only() -> None:
    log = Logging("8.4")
    log(*SETUP, "XADD s IDMP p i * f v", "XCFGSET s IDMP-DURATION 9", "XDEL s 1-0", "XNACK s g FAIL IDS 2 1-0 2-0")
    lines = log.base()
    assert not [line for line in lines if line.startswith(("XNACK", "XCFGSET", "XIDMPRECORD"))]
    claims = [line for line in lines if line.startswith("XCLAIM s g")]
    assert claims[0] == f"XCLAIM s g released 0 1-0 2-0 {CLAIMED}"  # before everything that has a time
    assert len(claims) == 2


def test_debug_reload_keeps_what_an_older_log_could_not() -> None:
    log = Logging("7.2")
    log("CONFIG SET enable-debug-command yes", *SETUP, "XNACK s g FAIL IDS 1 2-0", "XADD s IDMP p i * f v")
    before = log("XPENDING s g - + 10")
    reload.reload(log.engine.server, log.engine.server.context.now_ms)
    assert log("XPENDING s g - + 10") == before
    assert log("XADD s IDMP p i * f v") == f"{NOW_MS}-0".encode()


def test_a_change_asks_for_a_fresh_base() -> None:
    log = Logging("newest")
    disk = MemoryDisk()
    log.engine.persistence.log = AppendLog(LogDirectory(disk, "/data", "appendonlydir", "appendonly.aof"))
    log("CONFIG SET aof-compat-version 8.6")
    assert (log.engine.persistence.child, log.engine.persistence.wanted_rewrite) == (REWRITE, True)
    log("CONFIG SET aof-compat-version 8.8")
    assert log.engine.persistence.rewrite_scheduled


def test_without_a_log_a_change_asks_for_nothing() -> None:
    log = Logging("newest")
    log("CONFIG SET aof-compat-version 8.6")
    assert not log.engine.persistence.wanted_rewrite


# -- fields that expire ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("8.0", ["HSETEX h PXAT 1795300005000 FIELDS 1 f v"]),
        ("7.4", ["HSET h f v", "HPEXPIREAT h 1795300005000 FIELDS 1 f"]),
        ("7.2", ["HSET h f v"]),
    ],
)
def test_a_field_that_expires_is_logged_in_words_of_its_version(version: str, expected: list[str]) -> None:
    assert Logging(version).logged("HSETEX h PX 5000 FIELDS 1 f v") == expected


@pytest.mark.parametrize(
    "line",
    [
        "HPEXPIRE h 5000 FIELDS 1 f",
        "HPERSIST h FIELDS 1 g",
        "HGETEX h PX 5000 FIELDS 1 f",
        "HGETEX h PERSIST FIELDS 1 g",
    ],
)
def test_below_7_4_a_time_of_expiry_leaves_no_line(line: str) -> None:
    log = Logging("7.2")
    log("HSET h f v g w", "HPEXPIRE h 9000 FIELDS 1 g")

    assert log.logged(line) == []


def test_below_7_4_a_field_s_end_is_a_line() -> None:
    log = Logging("7.2")
    log("HSET h f v g w", "HPEXPIRE h 5000 FIELDS 1 f")
    log.clock.advance(6000)

    assert log.logged("HGET h f") == ["HDEL h f"]


def test_below_8_0_a_counted_field_keeps_its_time() -> None:
    log = Logging("7.4")
    log("HSET h f 1", "HPEXPIRE h 5000 FIELDS 1 f")

    assert log.logged("HINCRBYFLOAT h f 0.5") == ["HSET h f 1.5", "HPEXPIREAT h 1795300005000 FIELDS 1 f"]


@pytest.mark.parametrize(
    ("version", "expected"),
    [("7.4", ["HSET h f v", "HPEXPIREAT h 1795300005000 FIELDS 1 f"]), ("7.2", ["HSET h f v"])],
)
def test_a_base_has_the_times_of_fields_where_they_are_known(version: str, expected: list[str]) -> None:
    log = Logging(version)
    log("HSET h f v", "HPEXPIRE h 5000 FIELDS 1 f")

    assert log.base() == expected


def test_a_hash_restored_for_an_older_redis_is_logged_without_the_times_of_its_fields() -> None:
    log = Logging("7.0")
    log("HSET h f v", "HEXPIRE h 100 FIELDS 1 f")
    payload = log("DUMP h")
    log.units.clear()

    assert log.words(b"RESTORE", b"other", b"0", payload) == b"+OK\r\n"
    assert shown(log.units.text) == ["HSET other f v"]
