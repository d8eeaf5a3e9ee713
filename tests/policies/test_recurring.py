"""EVERY: an entry is copied at each of its times, and stays."""

import datetime
import random

import pytest

from penstock.clock import ManualClock, MovableClock
from penstock.engine.aof.rewrite import base_lines
from penstock.storage.deadlines import NEVER
from penstock.storage.policies import recurrence
from tests.policies.conftest import PolicyDialogue, made
from tests.policies.test_policy_log import Told
from tests.policies.test_policy_log import told as told
from tests.policies.test_retention import ids_of, refused
from tests.support.clock import NOW_MS
from tests.support.engines import loaded_engine
from tests.support.log import UnitLog
from tests.support.seeds import seeds

MINUTE = 60_000
PAUSE = "CLIENT PAUSE 100000000 WRITE"
CRON_WORDS = (
    ("*", "*/7", "5", "10,40", "0-20/5", "59"),
    ("*", "*/5", "3", "0-6", "22,23"),
    ("*", "1", "31", "*/10", "28-31"),
    ("*", "2", "1,7", "*/4"),
    ("*", "0", "7", "1-5", "*/3", "5-7"),
)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("EVERY every", "ERR EVERY needs FORWARD"),
        ("FORWARD jobs MISSED ALL", "ERR MISSED needs EVERY"),
        ("AT at EVERY every MISSED ALL", "ERR AT and AFTER need FORWARD"),
        ("FORWARD jobs EVERY every MISSED some", "ERR MISSED must be ONCE, ALL or SKIP"),
        ("FORWARD jobs EVERY", "ERR syntax error"),
        ("FORWARD jobs EVERY a EVERY b", "ERR EVERY specified multiple times"),
        ("FORWARDED 5 1-0", "ERR syntax error"),
        ("GROUP ops EVERY every", "ERR EVERY is a policy of streams, not of groups"),
    ],
)
def test_schedules_refuse(dialogue: PolicyDialogue, options: str, text: str) -> None:
    dialogue("XADD cron 1-0 every 60000", "XGROUP CREATE cron ops 0")

    assert refused(dialogue(f"PENSTOCK.POLICY cron {options}")) == text


def dues(dialogue: PolicyDialogue) -> list[tuple[int, str]]:
    """Time and entry of each copy, in order, in minutes from the start."""
    copies = [entry[1][-5:] for entry in dialogue("XRANGE jobs - +")]
    return [((int(copy[4]) - NOW_MS) // MINUTE, copy[2].decode()) for copy in copies]


def restarted(dialogue: PolicyDialogue, now_ms: int, from_base: bool = False) -> PolicyDialogue:
    """A client of an engine that loaded the log, or a new base file, at another time, and has done what was due."""
    log = UnitLog()
    former, former_ms = dialogue.engine, dialogue.engine.clock.now_us() // 1000
    lines = base_lines(former.keyspace, former.settings, former_ms) if from_base else dialogue._log.units
    log.units = list(lines)
    clock = MovableClock(ManualClock(now_ms))
    clock.stop_at(now_ms)
    engine = loaded_engine(log.units, clock=clock)
    engine.effects.log = log
    again = PolicyDialogue(engine, log)
    again("PENSTOCK.CLOCK ADVANCE 0")
    return again


def test_an_entry_is_copied_at_each_time_and_stays_and_the_rest_moves_once(dialogue: PolicyDialogue) -> None:
    dialogue(
        "XADD cron * job ping every 60000", "XADD cron * job once", "PENSTOCK.POLICY cron FORWARD jobs EVERY every"
    )
    dialogue("PENSTOCK.CLOCK ADVANCE 0")
    dialogue.since()

    dialogue("PENSTOCK.CLOCK ADVANCE 60000")

    assert dialogue.since() == [
        f"XADD jobs {NOW_MS + MINUTE}-0 job ping every 60000 _stream cron _id {NOW_MS}-0 _due {NOW_MS + MINUTE} ; "
        f"PENSTOCK.POLICY cron FORWARDED {NOW_MS + MINUTE} {NOW_MS}-0"
    ]
    assert ids_of(dialogue, "cron") == [f"{NOW_MS}-0"]
    assert dialogue("XINFO STREAM cron")[-1][-6:] == [b"every", b"every", b"missed", b"once", b"copied", 1]
    assert "penstock_copied:1\r\n" in dialogue("INFO stats").decode()
    dialogue.reloaded()
    dialogue.rewritten()


def test_a_series_begins_when_at_or_after_say_and_behind_the_id(dialogue: PolicyDialogue) -> None:
    dialogue("XADD cron 1-0 every 120000 at 60000", f"XADD cron * every 60000 at {NOW_MS + 3 * MINUTE}")
    dialogue("PENSTOCK.POLICY cron FORWARD jobs EVERY every AT at", "PENSTOCK.CLOCK ADVANCE 240000")

    first = [int(copy[1][-1]) % (2 * MINUTE) for copy in dialogue("XRANGE jobs - +") if copy[1][-3] == b"1-0"]
    assert first == [MINUTE, MINUTE]
    assert [due for due, entry in dues(dialogue) if entry == f"{NOW_MS}-0"] == [3, 4]


def test_a_deleted_entry_recurs_no_more(dialogue: PolicyDialogue) -> None:
    dialogue("XADD cron * every 60000", "PENSTOCK.POLICY cron FORWARD jobs EVERY every", "PENSTOCK.CLOCK ADVANCE 60000")
    dialogue(f"XDEL cron {NOW_MS}-0", "PENSTOCK.CLOCK ADVANCE 600000")

    assert [due for due, _ in dues(dialogue)] == [1]


@pytest.mark.parametrize(
    ("missed", "expected"), [("ONCE", [1, 7]), ("ALL", [1, 2, 3, 4, 5, 6, 7]), ("SKIP", [1, 7]), ("NONE", [1, 7])]
)
def test_what_was_missed_by_a_restart_is_made_up_for_as_missed_says(
    dialogue: PolicyDialogue, missed: str, expected: list[int]
) -> None:
    dialogue("XADD cron * every 60000", f"PENSTOCK.POLICY cron FORWARD jobs EVERY every MISSED {missed}")
    dialogue("PENSTOCK.CLOCK ADVANCE 60000")

    again = restarted(dialogue, NOW_MS + 7 * MINUTE + 20_000)

    assert [due for due, _ in dues(again)] == expected
    assert [due for due, _ in dues(restarted(again, NOW_MS + 7 * MINUTE + 20_000))] == expected


@pytest.mark.parametrize("from_base", [False, True], ids=["log", "base"])
def test_a_restart_keeps_the_schedules_and_the_span_of_rate(dialogue: PolicyDialogue, from_base: bool) -> None:
    """Of a stream with entries that recur and that a group reads (dialogue 10 of the specification)."""
    read = "XREADGROUP GROUP ops o1 COUNT 1 STREAMS cron >"
    dialogue("XADD cron * job ping every 60000", "PENSTOCK.POLICY cron FORWARD jobs EVERY every")
    dialogue("XGROUP CREATE cron ops 0", "PENSTOCK.POLICY cron GROUP ops RATE 1 3600000")
    assert dialogue(read)[0][1][0][0].decode() == f"{NOW_MS}-0"
    assert dialogue("PENSTOCK.CLOCK ADVANCE 60000", "XLEN jobs") == 1

    dialogue = restarted(dialogue, NOW_MS + 500_000, from_base)
    assert dialogue("XRANGE jobs 1795300060001 +") == [copy_of_ping(b"1795300500000-0", b"1795300480000")]
    assert dialogue("PENSTOCK.POLICY cron MISSED ALL", "PENSTOCK.CLOCK ADVANCE 1", "XLEN jobs") == 2
    dialogue = restarted(dialogue, NOW_MS + 630_000, from_base)
    assert dialogue("XLEN jobs") == 4
    assert dialogue("XRANGE jobs 1795300600001 +") == [
        copy_of_ping(b"1795300630000-0", b"1795300540000"),
        copy_of_ping(b"1795300630000-1", b"1795300600000"),
    ]

    assert dialogue("XADD cron * job once").decode() == "1795300630000-0"
    assert dialogue(read) is None
    field = dialogue("XINFO GROUPS cron")[0][13]
    assert dict(zip(field[::2], field[1::2], strict=True))[b"rated"] == 1
    assert dialogue("PENSTOCK.CLOCK ADVANCE 2969999", read) is None
    assert dialogue("PENSTOCK.POLICY cron FORWARD NONE EVERY NONE MISSED NONE", "XADD cron * job twice") is not None
    assert dialogue("PENSTOCK.CLOCK ADVANCE 1", read)[0][1][0][1] == [b"job", b"twice"]


def copy_of_ping(copy_id: bytes, due: bytes) -> list[object]:
    fields = [b"job", b"ping", b"every", b"60000", b"_stream", b"cron", b"_id", b"%d-0" % NOW_MS, b"_due", due]
    return [copy_id, fields]


def test_skip_makes_up_for_nothing_that_is_more_than_a_minute_late(dialogue: PolicyDialogue) -> None:
    dialogue("XADD cron * every 300000", "PENSTOCK.POLICY cron FORWARD jobs EVERY every MISSED SKIP")

    again = restarted(dialogue, NOW_MS + 7 * MINUTE)
    again("PENSTOCK.CLOCK ADVANCE 600000")

    assert [due for due, _ in dues(again)] == [10, 15]


def test_all_makes_up_for_the_latest_thousand(dialogue: PolicyDialogue) -> None:
    dialogue("XADD cron * every 60000", "PENSTOCK.POLICY cron FORWARD jobs EVERY every MISSED ALL")

    again = restarted(dialogue, NOW_MS + 5000 * MINUTE)
    again("PENSTOCK.CLOCK ADVANCE 1000")

    assert [due for due, _ in dues(again)] == list(range(4001, 5001))


def test_what_is_no_series_is_told_and_stays(dialogue: PolicyDialogue, told: Told) -> None:
    dialogue("XADD cron 1-0 every soon", "XADD cron 2-0 every 999", "XADD cron 3-0 every 60000")
    dialogue.words(b"XADD", b"cron", b"4-0", b"every", b"0 0 31 2 *")

    dialogue("PENSTOCK.POLICY cron FORWARD jobs EVERY every", "PENSTOCK.CLOCK ADVANCE 1000")

    assert "3 entries have no valid every: 1-0, 2-0, 4-0" in str(told)
    assert ids_of(dialogue, "cron") == ["1-0", "2-0", "3-0", "4-0"]


def test_a_copy_of_the_stream_goes_on_from_the_same_time(dialogue: PolicyDialogue) -> None:
    dialogue("XADD cron * every 60000", "PENSTOCK.POLICY cron FORWARD jobs EVERY every", "PENSTOCK.CLOCK ADVANCE 60000")
    dialogue("COPY cron twin", "RENAME cron tab", "PENSTOCK.CLOCK ADVANCE 60000")

    copies = [entry[1][3:] for entry in dialogue("XRANGE jobs - +")]

    assert [(copy[0], int(copy[4]) - NOW_MS) for copy in copies] == [
        (b"cron", MINUTE),
        (b"tab", 2 * MINUTE),
        (b"twin", 2 * MINUTE),
    ]
    dialogue.reloaded()
    dialogue.rewritten()


# -- laws -------------------------------------------------------------------------------------------------------------


def naive_set(word: str, least: int, most: int) -> set[int]:
    found: set[int] = set()
    for part in word.split(","):
        span, _, step = part.partition("/")
        first, _, last = (f"{least}-{most}" if span == "*" else span).partition("-")
        found |= set(range(int(first), int(last or first) + 1, int(step or 1)))
    return found


def naive_fits(words: list[str], moment: datetime.datetime) -> bool:
    sets = [naive_set(word, *bounds) for word, bounds in zip(words, recurrence.BOUNDS, strict=True)]
    is_day, is_weekday = moment.day in sets[2], bool({moment.isoweekday() % 7, moment.isoweekday()} & sets[4])
    either = words[2][0] != "*" and words[4][0] != "*"
    fits_day = is_day or is_weekday if either else is_day and is_weekday
    return fits_day and moment.month in sets[3] and moment.hour in sets[1] and moment.minute in sets[0]


@pytest.mark.parametrize("seed", seeds(4, 60))
def test_a_cron_s_times_are_those_that_a_look_at_each_minute_finds(seed: int) -> None:
    chance = random.Random(seed)
    words = [chance.choice(choices) for choices in CRON_WORDS]
    start_ms = (1_700_000_000_000 + chance.randrange(10**11)) // MINUTE * MINUTE
    minutes = [start_ms + at * MINUTE for at in range(5000)]
    expected = [ms for ms in minutes if naive_fits(words, datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC))]
    series = recurrence.read(" ".join(words).encode(), 0)
    assert series is not None

    assert found_in(series, minutes[0], minutes[-1]) == expected


@pytest.mark.parametrize(
    "word", ["0 0 31 * *", "0 0 30 2,4 *", "0 0 29 2 *", "0 0 */28 2 *", "0 0 29 2 */7", "0 0 31 */2 5", "0 0 31 4 1-3"]
)  # fmt: skip
def test_a_cron_s_days_of_eight_years_are_those_that_a_look_at_each_day_finds(word: str) -> None:
    first = datetime.datetime(2096, 3, 1, tzinfo=datetime.UTC)
    days = [first + datetime.timedelta(at) for at in range(8 * 365 + 2)]
    expected = [int(day.timestamp() * 1000) for day in days if naive_fits(word.split(), day)]
    first_ms, last_ms = (int(day.timestamp() * 1000) for day in (days[0], days[-1]))
    series = recurrence.read(word.encode(), 0)
    assert series is not None

    assert found_in(series, first_ms, last_ms) == expected


def found_in(series: recurrence.Recurrence, first_ms: int, last_ms: int) -> list[int]:
    """The series' moments from one to another; backwards they must be the same."""
    found, ms = [], series.first_from(first_ms)
    while ms <= last_ms:
        found.append(ms)
        ms = series.first_from(ms + 1)
    backwards, ms = [], series.last_until(last_ms)
    while ms >= first_ms:
        backwards.append(ms)
        ms = series.last_until(ms - 1)
    assert backwards == found[::-1]
    return found


@pytest.mark.parametrize(
    "word", ["", "999", "31536000001", "-5", "* * * *", "60 * * * *", "* * 0 * *", "*/0 * * * *", "5/2 * * * *",
             "5-1 * * * *", "1,, * * * *", "* * * * 8", "a * * * *", "* * * jan *", "1- * * * *", "* * * * * *"],
)  # fmt: skip
def test_what_is_neither_ms_nor_five_cron_words_is_no_series(word: str) -> None:
    assert recurrence.read(word.encode(), 0) is None


def test_a_cron_may_wait_eight_years_and_a_day_that_never_comes_is_never() -> None:
    leap, never = recurrence.read(b"0 0 29 2 *", 0), recurrence.read(b"0 0 30 2 *", 0)
    assert leap is not None and never is not None
    after_2096 = int(datetime.datetime(2096, 3, 1, tzinfo=datetime.UTC).timestamp() * 1000)

    assert leap.first_from(after_2096) == int(datetime.datetime(2104, 2, 29, tzinfo=datetime.UTC).timestamp() * 1000)
    assert never.first_from(0) == NEVER
    assert never.last_until(NOW_MS) < 0


class NaiveSchedules:
    """Every time of every entry, in order; what was copied, by the rules in the plainest form."""

    def __init__(self, missed: str, periods: list[int]) -> None:
        self._missed = missed
        self._periods = periods  # in minutes; entry i has the id NOW_MS-i
        self._position = (0, len(periods) - 1)
        self.copies: list[tuple[int, int]] = []

    def act(self, now: int) -> None:
        """At a minute: of what has become due, copy what MISSED says."""
        wanted = []
        for index, period in enumerate(self._periods):
            due = [at for at in range(period, now + 1, period) if (at, index) > self._position]
            if self._missed == "ONCE":
                due = due[-1:]
            elif self._missed == "SKIP":
                due = [at for at in due[-1:] if now - at <= 1]
            wanted += [(at, index) for at in due]
        self.copies += sorted(wanted)
        self._position = max([self._position, *wanted])


@pytest.mark.parametrize("seed", seeds(10, 60))
def test_copies_are_those_of_a_naive_model_whatever_stops_the_server(seed: int) -> None:
    chance = random.Random(seed)
    missed, periods = (
        chance.choice(["ONCE", "ALL", "SKIP"]),
        [chance.randint(1, 9) for _ in range(chance.randint(1, 4))],
    )
    model = NaiveSchedules(missed, periods)
    dialogue = made()
    dialogue(*[f"XADD cron {NOW_MS}-{index} every {period * MINUTE}" for index, period in enumerate(periods)])
    dialogue(f"PENSTOCK.POLICY cron FORWARD jobs EVERY every MISSED {missed}")
    now = 0
    for _ in range(8):
        minutes = chance.randint(1, 30)
        how = chance.randrange(3)
        if how == 0:
            dialogue(f"PENSTOCK.CLOCK ADVANCE {minutes * MINUTE}")
            for at in range(now + 1, now + minutes + 1):
                model.act(at)
        elif how == 1:
            dialogue(PAUSE, f"PENSTOCK.CLOCK ADVANCE {minutes * MINUTE}", "CLIENT UNPAUSE", "PENSTOCK.CLOCK ADVANCE 0")
            model.act(now + minutes)
        now += minutes
        if how == 2:
            dialogue.rewritten()
            dialogue = restarted(dialogue, NOW_MS + now * MINUTE)
            model.act(now)

    assert dues(dialogue) == [(at, f"{NOW_MS}-{index}") for at, index in model.copies]
