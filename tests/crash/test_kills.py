"""SIGKILL, and calls that fail, at random and at every named moment of a real server's log."""

import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.crash.policy_rounds import PolicyRounds
from tests.crash.rounds import END_S, Rounds

pytestmark = pytest.mark.slow

KILLS = [("always", 20), ("everysec", 6), ("no", 6)]

CRASHES = [
    # Writing and syncing
    "write:kill@1", "write:kill@40", "written:kill@1", "written:kill@40",
    "sync:kill@1", "sync:kill@40", "synced:kill@1", "synced:kill@40",
    # The manifest of a first start, and those at the beginning, the end and after the end of a rewriting
    "manifest-written:kill@1", "manifest-synced:kill@1", "manifest-renamed:kill@1",
    "manifest-written:kill@2", "manifest-synced:kill@2", "manifest-renamed:kill@2",
    "manifest-written:kill@3", "manifest-synced:kill@3", "manifest-renamed:kill@3",
    "manifest-written:kill@4", "manifest-synced:kill@4", "manifest-renamed:kill@4",
    # Rewriting
    "increment-created:kill", "increment-opened:kill", "base-started:kill", "base-written:kill", "base-synced:kill",
    "base-renamed:kill", "base-in-force:kill", "history-removed:kill",
    "increment-opened:kill@3", "base-written:kill@2", "base-renamed:kill@2", "history-removed:kill@2",
    # On the way out of trouble
    "sync:eio@40,base-written:kill", "sync:eio@40,manifest-renamed:kill@2", "sync:eio@40,base-in-force:kill",
    "sync:eio@40-,base-started:kill@2", "write:kill@24,write:enospc@20-",
]  # fmt: skip

TROUBLES = [
    "write:eio@20", "write:enospc@20-23", "written:eio@20", "sync:eio@20", "synced:eio@20",
    "sync:eio@20,base-renamed:eio@1", "sync:eio@20,manifest-renamed:eio@2", "sync:eio@20,base-synced:eio@1",
    "sync:eio@20,manifest-written:enospc@2-3", "sync:eio@20,base-in-force:eio", "sync:eio@20,base-started:die@1",
    "manifest-renamed:eio@2",
]  # fmt: skip

FAILED_REWRITINGS = [
    "increment-created:eio@1", "increment-opened:eio@1", "base-started:die@1", "base-written:enospc@1",
    "base-synced:eio@1", "base-renamed:eio@1", "base-in-force:eio@1", "manifest-written:enospc@2",
    "manifest-synced:eio@2", "manifest-synced:eio@3", "manifest-renamed:eio@3", "manifest-renamed:eio@4",
    "history-removed:eio@1",
]  # fmt: skip


RDB_BASE = [fault for fault in CRASHES if fault.startswith(("increment", "base", "history"))]


@pytest.mark.parametrize(("policy", "kills"), KILLS)
def test_random_kills_lose_nothing_that_was_answered(tmp_path: Path, policy: Any, kills: Any) -> None:
    rounds = Rounds(tmp_path, random.Random(policy), policy)
    for _ in range(kills):
        rounds.round()
    rounds.last_check()
    assert rounds.requests > 0


def test_kills_lose_and_double_nothing_that_policies_move(tmp_path: Path) -> None:
    rounds = PolicyRounds(tmp_path, random.Random(1))
    for _ in range(12):
        rounds.round()
    assert rounds.done
    assert rounds.dead


@pytest.mark.parametrize("fault", CRASHES)
def test_a_kill_loses_nothing_at(tmp_path: Path, fault: Any) -> None:
    rounds = Rounds(tmp_path, random.Random(fault), "always")
    assert rounds.crash_at(fault)
    rounds.last_check()


@pytest.mark.parametrize("fault", RDB_BASE)
def test_a_kill_loses_nothing_where_the_base_is_an_rdb_file_at(tmp_path: Path, fault: str) -> None:
    rounds = Rounds(tmp_path, random.Random(fault), "always", rdb_base="yes")
    assert rounds.crash_at(fault)
    rounds.last_check()


def test_random_kills_lose_nothing_where_the_base_is_an_rdb_file(tmp_path: Path) -> None:
    rounds = Rounds(tmp_path, random.Random(3), "always", rdb_base="yes")
    for _ in range(10):
        rounds.round()
    with rounds.served() as link:
        link.ask(b"BGREWRITEAOF")
        while not list(tmp_path.glob("appendonlydir/*.base.rdb")):
            time.sleep(0.02)  # a process of its own writes it
    rounds.last_check()


@pytest.mark.parametrize("point", ["write", "written", "sync", "synced", "base-renamed", "manifest-renamed"])
@pytest.mark.parametrize("policy", ["everysec", "no"])
def test_a_kill_loses_nothing_with_other_policies_at(tmp_path: Path, policy: str, point: str) -> None:
    rounds = Rounds(tmp_path, random.Random(point), policy)
    assert rounds.crash_at(f"{point}:kill@2")
    rounds.last_check()


def test_a_kill_while_an_old_log_is_moved_in_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "appendonly.aof").write_bytes(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n")
    rounds = Rounds(tmp_path, random.Random(1), "always")
    assert rounds.crash_at("adopted:kill")
    with rounds.served() as link:
        assert link.ask(b"GET", b"a") == b"1"


@pytest.mark.parametrize("fault", TROUBLES)
def test_writers_are_refused_until_a_server_got_over(tmp_path: Path, fault: Any) -> None:
    rounds = Rounds(tmp_path, random.Random(fault), "always")
    assert rounds.suffer(fault, END_S) == (True, True)
    rounds.last_check()


@pytest.mark.parametrize("rdb_base", ["no", "yes"])
@pytest.mark.parametrize("fault", FAILED_REWRITINGS)
def test_a_rewriting_that_fails_costs_nothing_at(tmp_path: Path, fault: Any, rdb_base: str) -> None:
    rounds = Rounds(tmp_path, random.Random(fault), "always", rdb_base)
    assert rounds.suffer(fault, 1.5) == (False, True)
    rounds.last_check()
