"""Lines of the log that only Penstock reads: they are requests, and as safe against damage as any other."""

import pytest

from penstock.engine.aof.aof_check import DAMAGED, TORN, WHOLE, Inspection
from penstock.errors import UsageError
from penstock.protocol import private_lines
from penstock.protocol.log_reader import whole_requests
from penstock.protocol.reply import bulks
from tests.support.engines import loaded_engine
from tests.support.memory_disk import MemoryDisk

SET = bulks([b"SET", b"k", b"v\r\n#penstock is no comment\r\n"])
POLICY = private_lines.packed([b"PENSTOCK.POLICY", b"s", b"MAXLEN", b"7"])
LONG = private_lines.packed([b"PENSTOCK.POLICY", b'"\\ ' * 900, b"RESET"])


def test_they_stand_anywhere_between_requests_and_other_comments() -> None:
    text = POLICY + SET + b"#TS:1700000000\r\n" + LONG + SET + SET + POLICY
    block = whole_requests(text, 1000)

    assert [request[:1] for request in block.requests] == [
        [b"PENSTOCK.POLICY"], [b"SET"], [], [b"PENSTOCK.POLICY"], [b"SET"], [b"SET"], [b"PENSTOCK.POLICY"]
    ]  # fmt: skip
    assert block.requests[3][1] == b'"\\ ' * 900
    places = [0, len(POLICY), len(POLICY + SET), len(POLICY + SET) + 16]
    assert block.offsets()[:4] == [1000 + place for place in places]
    assert block.taken == len(text)


@pytest.mark.parametrize("name", ["POLICY", "LONG"])
def test_a_line_that_is_cut_at_any_byte_is_torn(name: str) -> None:
    line = {"POLICY": POLICY, "LONG": LONG}[name]
    for length in range(len(line)):
        block = whole_requests(SET + line[:length])
        assert (block.requests, block.taken, block.damage) == ([[b"SET", b"k", SET[25:-2]]], len(SET), None)


@pytest.mark.parametrize(
    ("line", "state"),
    [
        (POLICY, WHOLE),
        (b"# anything else\r\n", WHOLE),
        (POLICY[:-1], TORN),
        (b'#penstock PENSTOCK.POLICY "s\r\n', DAMAGED),
        (b"#penstock \r\n", DAMAGED),
        (b"#penstock PENSTOCK.POLICY s \\\r\n*1\r\n$4\r\nPING\r\n", DAMAGED),
        (b"#penstock PENSTOCK.P\0\0\0\0\0\0\0\0 MAXLEN 7\r\n", DAMAGED),
        (LONG[:-9] + b"\0\0" + LONG[-7:], DAMAGED),
        (b"#TS:17000\0\0\0\0\0\0\0\0\0\0\0\0k\r\n", DAMAGED),
    ],
)
def test_check_log_finds_what_is_wrong_with_a_line(line: bytes, state: str) -> None:
    disk = MemoryDisk()
    disk.create("log").write(SET + line)
    names = frozenset([b"SET", b"PENSTOCK.POLICY"])
    found = Inspection(disk, "log", names).run(lambda done: None)

    assert found.state == state
    assert found.whole == len(SET) + (len(line) if state == WHOLE else 0)


def test_a_line_that_names_no_command_stops_the_start() -> None:
    with pytest.raises(UsageError, match=r"unknown command 'PENSTOCK\.FUTURE'"):
        loaded_engine([private_lines.packed([b"PENSTOCK.FUTURE", b"s"])])
