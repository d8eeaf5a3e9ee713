"""Loading a log: whole units and nothing else, wherever it was torn or damaged."""

from typing import Any

import pytest

from penstock.engine.aof.replay import Replay, load
from penstock.engine.effects import pack
from penstock.errors import UsageError
from penstock.protocol.log_reader import BLOCK_BYTES
from penstock.storage.aof.append_log import AppendLog
from penstock.storage.aof.log_directory import LogDirectory
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, settings_with
from tests.support.memory_disk import MemoryDisk, MemoryNode

BASE = "/data/appendonlydir/base"
LAST = "/data/appendonlydir/last"


def lines(*texts: str) -> bytes:
    """Requests in RESP, from lines of words."""
    return b"".join(pack(tuple(text.encode().split(b" "))) for text in texts)


class Loaded:
    """An engine after it loaded files of the given bytes: what it has, what was said, what is left of the last."""

    def __init__(
        self, last: bytes, base: bytes = b"", mends: bool = True, most_garbage: int = 0, skips: str = "no"
    ) -> None:
        self.disk = MemoryDisk()
        for path, text in ((BASE, base), (LAST, last)):
            self.disk.files[path] = MemoryNode()
            self.disk.files[path].seen = bytearray(text)
        manifest = MemoryNode()
        manifest.seen = bytearray(b"file base seq 1 type b\nfile last seq 1 type i\n")
        self.disk.files["/data/appendonlydir/appendonly.aof.manifest"] = manifest
        self.log = AppendLog(LogDirectory(self.disk, "/data", "appendonlydir", "appendonly.aof"))
        self.log.directory.open()
        self.engine = make_engine(settings=settings_with(aof_skip_unknown=skips))
        self.said: list[Any] = []
        self.replay = Replay(self.engine.server, self.said.append)
        self.replay.begin()
        self.steps = list(load(self.replay, self.log, mends, most_garbage))
        self.replay.end()

    def strings(self, database: int = 0) -> dict[bytes, Any]:
        return dict(self.engine.keyspace.databases[database].values.items())

    @property
    def left(self) -> bytes:
        return bytes(self.disk.files[LAST].seen)


SMALL = [
    lines("SELECT 0", "SET a 1"),
    lines("SET b two"),
    lines("MULTI", "SET c 3", "INCR c", "EXEC"),
    lines("INCR a"),
]
STATES = [{}, {b"a": b"1"}, {b"b": b"two"}, {b"c": b"4"}, {b"a": b"2"}]
WHOLE = b"".join(SMALL)
BOUNDARIES = [sum(map(len, SMALL[:count])) for count in range(len(SMALL) + 1)]


def state_after(count: int) -> dict[Any, Any]:
    state: dict[Any, Any] = {}
    for part in STATES[: count + 1]:
        state |= part
    return state


def test_a_log_gives_its_keys_back() -> None:
    loaded = Loaded(WHOLE)
    assert loaded.strings() == {b"a": b"2", b"b": b"two", b"c": b"4"}
    assert loaded.said == []
    assert loaded.replay.applied == 6


def test_base_and_increments_each_begin_in_database_0() -> None:
    loaded = Loaded(lines("SET last 1"), base=lines("SELECT 3", "SET base 1"))
    assert loaded.strings(3) == {b"base": b"1"}
    assert loaded.strings(0) == {b"last": b"1"}


def test_a_tail_torn_at_any_byte_goes_back_to_the_last_whole_unit() -> None:
    for length in range(len(WHOLE) + 1):
        whole = [boundary for boundary in BOUNDARIES if boundary <= length]
        loaded = Loaded(WHOLE[:length])

        assert loaded.strings() == state_after(len(whole) - 1) or length == len(lines("SELECT 0")), length
        assert len(loaded.left) in (whole[-1], len(lines("SELECT 0"))), length
        assert WHOLE.startswith(loaded.left), length
        assert bool(loaded.said) == (len(loaded.left) != length), length


def test_a_torn_tail_is_refused_where_it_may_not_be_cut() -> None:
    for length in [length for length in range(len(WHOLE)) if length not in BOUNDARIES][23:]:
        with pytest.raises(UsageError, match=r"/last: .* first \d+ bytes are whole.*aof-load-truncated"):
            Loaded(WHOLE[:length], mends=False)


def test_only_the_last_file_may_be_torn() -> None:
    with pytest.raises(UsageError, match=r"/base: .* not the log's last file"):
        Loaded(WHOLE, base=WHOLE[:-1])


def test_a_wrong_byte_anywhere_is_seen_or_is_only_a_value() -> None:
    for at in range(len(WHOLE)):
        damaged = WHOLE[:at] + bytes([WHOLE[at] ^ 0x15]) + WHOLE[at + 1 :]
        try:
            loaded = Loaded(damaged)
        except UsageError as refusal:
            assert "byte" in str(refusal), at
        else:
            assert loaded.said or loaded.left == damaged, at


def test_damage_names_file_and_offset_and_what_was_expected() -> None:
    first = lines("SET a 1")
    with pytest.raises(UsageError) as refused:
        Loaded(first + b"+OK\r\n" + lines("SET b 2"))
    assert str(refused.value).startswith(
        f"{LAST}: a request (`*` and the number of its words) was expected at byte {len(first)}"
    )


def test_a_damaged_tail_may_be_cut_if_it_is_small_enough() -> None:
    loaded = Loaded(WHOLE + b"garbage", most_garbage=7)
    assert loaded.left == WHOLE
    with pytest.raises(UsageError, match="aof-load-corrupt-tail-max-size"):
        Loaded(WHOLE + b"garbage!", most_garbage=7)


def test_zeros_after_a_power_failure_are_a_torn_tail() -> None:
    assert Loaded(WHOLE + bytes(100)).left == WHOLE
    assert Loaded(WHOLE + b"*3\r\n$3\r\nSE" + bytes(100)).left == WHOLE


def test_annotations_are_passed_over() -> None:
    loaded = Loaded(b"#TS:1795300000\r\n" + SMALL[0] + b"#TS:1795300001\r\n" + SMALL[1])
    assert loaded.strings() == {b"a": b"1", b"b": b"two"}


def test_an_unknown_command_is_fatal_with_its_place() -> None:
    first = lines("SET a 1")
    with pytest.raises(UsageError, match=rf"/last: ERR unknown command 'FLY'.*\(the request at byte {len(first)}\)"):
        Loaded(first + lines("FLY away", "SET b 2"))


def test_unknown_commands_are_left_out_and_counted_where_that_is_allowed() -> None:
    transaction = lines("MULTI", "FLY in", "SET c 3", "SWIM", "EXEC")
    loaded = Loaded(lines("SET a 1", "FLY away", "SWIM") + transaction + lines("XGROUP FLY s", "SET b 2"), skips="yes")

    assert loaded.strings() == {b"a": b"1", b"b": b"2", b"c": b"3"}
    assert loaded.replay.skipped == {"FLY": 2, "SWIM": 2, "XGROUP": 1}
    with pytest.raises(UsageError, match="wrong number of arguments"):
        Loaded(lines("SET a"), skips="yes")


def test_what_is_told_of_a_line_stands_on_one_line() -> None:
    with pytest.raises(UsageError, match=r"^[^\n]*unknown command 'FLY AWAY'[^\n]*\(the request at byte 0\)[^\n]*$"):
        Loaded(pack((b"FLY\nAWAY",)) + lines("SET b 2"))
    said = Loaded(pack((b"INCRBY", b"a\r\nb", b"x\ny")) + lines("SET b 2")).said
    assert [line.splitlines() for line in said] == [[line] for line in said]
    assert len(said) == 1


def test_a_refused_line_is_told_of_and_ignored() -> None:
    loaded = Loaded(lines("SET a x", "INCR a", "SET b 2"))
    assert loaded.strings() == {b"a": b"x", b"b": b"2"}
    assert loaded.said == [
        f"Warning: {LAST}: the request at byte {len(lines('SET a x'))} was refused and is ignored: INCR a ...:"
        " ERR value is not an integer or out of range"
    ]


def test_a_refused_line_within_a_multi_is_told_with_its_own_place() -> None:
    before = lines("SET a x") + b"#TS:1795300000\r\n" + lines("MULTI", "SET b 2") + b"#TS:1795300001\r\n"
    loaded = Loaded(before + lines("INCR a", "EXEC", "SET c 3"))
    assert loaded.strings() == {b"a": b"x", b"b": b"2", b"c": b"3"}
    assert [f"{LAST}: the request at byte {len(before)} was refused" in line for line in loaded.said] == [True]


def test_a_refused_line_far_behind_in_a_file_is_told_with_its_place() -> None:
    before = lines(*(f"SET k{number} {'v' * 50}" for number in range(5000)))
    loaded = Loaded(before + lines("INCR k0", "SET c 3"))
    assert [f"{LAST}: the request at byte {len(before)} was refused" in line for line in loaded.said] == [True]


BEFORE = lines("SET a 1")
MULTI = len(BEFORE)  # its offset


@pytest.mark.parametrize(
    ("damaged", "said"),
    [
        (
            lines("MULTI", "SET b 2", "MULTI", "SET c 3", "EXEC"),
            f"the EXEC of the MULTI at byte {MULTI} was expected before byte {MULTI + len(lines('MULTI', 'SET b 2'))}",
        ),
        (lines("EXEC", "SET b 2"), f"the EXEC at byte {MULTI} has no MULTI before it"),
        (lines("MULTI", "EXEC", "EXEC"), f"the EXEC at byte {MULTI + len(lines('MULTI', 'EXEC'))} has no MULTI"),
        (
            lines("MULTI", "SET b 2", "EXEB", "SET c 3"),
            rf"unknown command 'EXEB'.*\(the request at byte {MULTI + len(lines('MULTI', 'SET b 2'))}\)",
        ),
        (
            lines("MULTI", "EXEB", "MULTI", "SET c 3", "EXEC"),
            rf"unknown command 'EXEB'.*\(the request at byte {MULTI + len(lines('MULTI'))}\)",
        ),
        (lines("MULTI", "SET b", "EXEC"), rf"wrong number.*\(the request at byte {MULTI + len(lines('MULTI'))}\)"),
        (lines("MULTI", "SET b 2", "EXEC now"), rf"wrong number.*byte {MULTI + len(lines('MULTI', 'SET b 2'))}\)"),
        (lines("MULTI now", "SET b 2", "EXEC"), rf"wrong number.*\(the request at byte {MULTI}\)"),
    ],
    ids=[
        "multi in multi",
        "exec",
        "exec twice",
        "exec lost",
        "exec lost, another",
        "line",
        "exec of two",
        "multi of two",
    ],
)
def test_a_multi_and_an_exec_that_do_not_match_are_fatal_with_their_place(damaged: bytes, said: str) -> None:
    with pytest.raises(UsageError, match=rf"^{LAST}: .*{said}"):
        Loaded(BEFORE + damaged, most_garbage=1000)


def test_values_of_any_kind_and_size_survive() -> None:
    values = [
        b"",
        b"\r\n*3\r\n$3\r\nSET\r\n",
        b"\n#TS:1\r\n",
        bytes(range(256)),
        b"x" * (3 * BLOCK_BYTES),
        b"*" * 70_000,
    ]
    text = b"".join(pack((b"SET", b"k%d" % number, value)) for number, value in enumerate(values))
    loaded = Loaded(text + lines("SET last 1"))
    assert list(loaded.strings().values()) == [*values, b"1"]


def test_a_multi_longer_than_a_block_is_run_whole_or_not_at_all() -> None:
    before = lines("SET before 1")
    unit = lines("MULTI", *(f"SET k{number} {'v' * 50}" for number in range(3000)), "EXEC")

    assert len(Loaded(before + unit).strings()) == 3001
    torn = Loaded(before + unit[:-1])
    assert torn.strings() == {b"before": b"1"}
    assert torn.left == before


def test_progress_reaches_the_end() -> None:
    text = lines(*(f"SET k{number} v" for number in range(10_000)))
    loaded = Loaded(text, base=WHOLE)
    total = len(text) + len(WHOLE)
    assert loaded.steps[-1] == (total, total)
    assert len(loaded.steps) > 3


def test_a_log_of_streams_gives_the_same_picture(dialogue: Dialogue) -> None:
    units: list[Any] = []
    dialogue.engine.effects.log = type("Units", (), {"append": staticmethod(units.append)})()
    dialogue(
        "XADD s 1-0 f v", "XADD s 2-0 f v", "XADD s 3-0 f v", "XGROUP CREATE s g 0", "SELECT 1", "SET a 1", "SELECT 0",
        "XREADGROUP GROUP g alice COUNT 2 STREAMS s >", "XNACK s g FAIL IDS 1 1-0", "XDEL s 2-0",
        "XREADGROUP GROUP g bob STREAMS s >", "XADD s MAXLEN ~ 1 * f v", "XACK s g 3-0",
    )  # fmt: skip
    from tests.support.dialogue import Dialogue

    again = Dialogue(Loaded(b"".join(units)).engine)

    assert again("XPENDING s g - + 10") == dialogue("XPENDING s g - + 10")
    assert again("XINFO GROUPS s") == dialogue("XINFO GROUPS s")
    assert again("XINFO STREAM s") == dialogue("XINFO STREAM s")


# -- lines that no server writes (looked at beside Redis 8.6.3) -------------------------------------------------------


@pytest.mark.parametrize("words", ["SHUTDOWN", "SHUTDOWN NOSAVE", "SHUTDOWN NOW", "SHUTDOWN SAVE FORCE"])
def test_a_shutdown_in_the_log_does_not_end_the_server(words: str) -> None:
    loaded = Loaded(lines("SET a 1", words, "SET b 2"))

    assert not loaded.engine.persistence.wanted_shutdown
    assert loaded.strings() == {b"a": b"1", b"b": b"2"}
    assert "SHUTDOWN without NOW or ABORT isn't allowed for DENY BLOCKING client" in loaded.said[0]


@pytest.mark.parametrize("words", ["SUBSCRIBE x", "PSUBSCRIBE x", "SSUBSCRIBE x", "MONITOR", "DISCARD", "AUTH x"])
def test_what_is_refused_in_a_log_is_ignored_with_a_warning(words: str) -> None:
    loaded = Loaded(lines("SET a 1", words, "SET b 2"))

    assert loaded.strings() == {b"a": b"1", b"b": b"2"}
    assert [loaded.replay.refused, loaded.engine.clients.monitors, loaded.engine.clients.outgoing] == [1, set(), []]


@pytest.mark.parametrize(
    "words", ["BLPOP l 0", "XREAD BLOCK 0 STREAMS s $", "WAIT 1 0", "QUIT", "RESET", "WATCH a", "HELLO 3", "GET a"]
)
def test_what_would_wait_or_ask_in_a_log_does_nothing(words: str) -> None:
    loaded = Loaded(lines("SET a 1", words, "SET b 2"))

    assert loaded.strings() == {b"a": b"1", b"b": b"2"}
    assert [loaded.replay.refused, loaded.engine.blocking.by_key, loaded.engine.clients.outgoing] == [0, {}, []]


def test_config_set_in_a_log_is_carried_out() -> None:
    assert Loaded(lines("SET a 1", "CONFIG SET timeout 77")).engine.settings.number("timeout") == 77
