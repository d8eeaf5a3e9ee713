"""`penstock top` beside many streams of which three are stuck: at 80x24, by keys, in a real terminal."""

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
from collections.abc import Iterator
from io import StringIO

import pytest
from rich.console import Console

import penstock
from penstock.observe import stream_survey
from penstock.observe.stream_survey import GroupState, Survey
from penstock.observe.top_screen import Screen
from penstock.wire_client import WireClient, address

STREAMS = 2_000
PATIENCE_S = 60.0
STUCK = ["s0333", "s1999", "s1500"]  # the oldest pending entry first


@pytest.fixture(scope="module")
def server() -> Iterator[penstock.Server]:
    with penstock.Server() as embedded:
        client = embedded.client()
        pipe = client.pipeline(transaction=False)
        for number in range(STREAMS):
            pipe.xadd(f"s{number:04}", {"f": "v"})
            pipe.xgroup_create(f"s{number:04}", "workers", "$")
        pipe.execute()
        for key in STUCK:
            client.xgroup_create(key, "stuck", "0")
            client.xreadgroup("stuck", "alice", {key: ">"})
            embedded.clock.advance(hours=1)
        yield embedded


@pytest.fixture(scope="module")
def survey(server: penstock.Server) -> Survey:
    return stream_survey.take(WireClient(address(server.url)))


def lines_of(screen: Screen, survey: Survey) -> list[str]:
    console = Console(file=StringIO(), width=80, height=24)
    console.print(screen.picture(survey, None, 0, 24))
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]  # it is a StringIO


def pressed(screen: Screen, keys: str) -> Screen:
    for key in keys:
        screen.press(key)
    return screen


def test_the_groups_that_are_stuck_are_on_a_screen_of_24_lines(survey: Survey) -> None:
    lines = lines_of(Screen("redis://h"), survey)

    assert len(lines) == 24
    assert [line.split()[0] for line in lines[3:6]] == STUCK
    assert lines[1].startswith(f"1 to 20 of {STREAMS + 3} groups, 3 stuck, in {STREAMS} streams, by trouble")


def test_the_last_line_of_80_columns_says_how_top_ends(survey: Survey) -> None:
    assert lines_of(Screen("redis://localhost"), survey)[-1].endswith("q ends")


def test_the_screen_is_filtered_by_a_part_of_a_name_and_says_what_it_leaves_out(survey: Survey) -> None:
    lines = lines_of(pressed(Screen("redis://h"), "/99\rn"), survey)

    assert lines[1].startswith(f"1 to 20 of 39 groups (of {STREAMS + 3}), 3 stuck")
    assert [line.split()[0] for line in lines[3:6]] == ["s0099", "s0199", "s0299"]


def test_only_groups_with_pending_entries_are_shown_where_that_is_chosen(survey: Survey) -> None:
    lines = lines_of(pressed(Screen("redis://h"), "a"), survey)

    assert lines[1].startswith(f"1 to 3 of 3 groups (of {STREAMS + 3})")
    assert len(lines) == 7


def test_the_screen_scrolls_to_the_last_group_and_no_further(survey: Survey) -> None:
    screen = pressed(Screen("redis://h"), "n")
    lines_of(screen, survey)
    for _ in range(STREAMS):
        screen.press("pagedown")
    lines = lines_of(screen, survey)
    screen.press("home")

    assert lines[22].split()[:2] == ["s1999", "workers"]
    assert lines_of(screen, survey)[3].split()[0] == "s0000"


GROUPS = [
    GroupState(b"a", b"g", 1, 1, 5, 70_000),
    GroupState(b"b", b"g", 1, 7, 0, 60_001, dead_letters=2),
    GroupState(b"c", b"g", 1, 3, 9, 90_000),
]
ORDERS = [("t", "c a b"), ("o", "c a b"), ("l", "c a b"), ("p", "b c a"), ("d", "b a c"), ("n", "a b c")]


@pytest.mark.parametrize(("key", "order"), ORDERS)
def test_a_key_sorts_the_groups(key: str, order: str) -> None:
    lines = lines_of(pressed(Screen("redis://h"), key), Survey({}, [], GROUPS, 3, 3, True))

    assert [line.split()[0] for line in lines[3:6]] == order.split()


def test_limits_are_shown_where_a_group_has_some() -> None:
    groups = [*GROUPS[:2], GROUPS[2]._replace(limits="paused, 4 of 5 in flight", is_paused=True)]
    lines = lines_of(Screen("redis://h"), Survey({}, [], groups, 3, 3, True))

    assert "limits" in lines[2]
    assert "paused, 4" in lines[3]
    assert not any("limits" in line for line in lines_of(Screen("redis://h"), Survey({}, [], GROUPS, 3, 3, True)))


def test_a_lag_that_grows_from_look_to_look_comes_before_one_that_does_not() -> None:
    with penstock.Server() as server:
        client, wire, watch = server.client(), WireClient(address(server.url)), stream_survey.Watch()
        for key, count in (("much", 9), ("grows", 1)):
            for _ in range(count):
                client.xadd(key, {"f": "v"})
            client.xgroup_create(key, "g", "0")
        first = stream_survey.take(wire, watch).groups
        client.xadd("grows", {"f": "v"})
        second = stream_survey.take(wire, watch).groups

    assert [one.key for one in first] == [b"much", b"grows"]
    assert [one.key for one in second] == [b"grows", b"much"]


def test_a_stream_that_is_deleted_is_not_shown_any_more() -> None:
    with penstock.Server() as server:
        client, wire, watch = server.client(), WireClient(address(server.url)), stream_survey.Watch()
        client.xgroup_create("s", "g", "0", mkstream=True)
        stream_survey.take(wire, watch)
        client.delete("s")
        survey = stream_survey.take(wire, watch)

    assert (survey.groups, survey.streams, survey.keys) == ([], [], 0)


def test_a_later_look_asks_for_the_urgent_streams_and_some_others(server: penstock.Server) -> None:
    watch, wire = stream_survey.Watch(), WireClient(address(server.url))
    stream_survey.take(wire, watch)
    due = watch.due(stream_survey.ASKED)

    assert {name.encode() for name in STUCK} <= set(due)
    assert len(due) <= stream_survey.ASKED + stream_survey.WATCHED


def read_until(fd: int, pattern: bytes) -> None:
    """Read what a terminal shows until it matches. One read may end anywhere in a line."""
    shown = b""
    while not re.search(pattern, shown, re.DOTALL) and select.select([fd], [], [], PATIENCE_S)[0]:
        shown += os.read(fd, 65536)
    assert re.search(pattern, shown, re.DOTALL), shown


def test_a_terminal_shows_what_is_stuck_and_q_ends_it(server: penstock.Server) -> None:
    url = server.url  # before the fork: the server opens its port when it is first asked for it
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.execv(sys.executable, [sys.executable, "-m", "penstock", "top", url])
    read_until(fd, STUCK[0].encode())
    os.write(fd, b"ao\x1b[B")
    read_until(fd, b"1 to 3 of 3 groups.*by oldest")
    os.write(fd, b"q")
    read_until(fd, rb"\x1b\[\?1049l")

    assert os.waitpid(pid, 0)[1] == 0
