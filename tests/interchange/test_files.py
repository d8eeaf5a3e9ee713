"""A real Redis loads what Penstock writes, and Penstock what a real Redis writes: the same is kept then."""

import random
import shutil
import time
from pathlib import Path

import pytest

from tests.interchange.pictures import (
    RELEASED,
    Ours,
    Theirs,
    ours,
    picture,
    requests,
    theirs,
    without_deleted_pending,
)
from tests.support.compared_sides import known_by
from tests.support.reference_knowledge import Known
from tests.support.reference_server import NoReference
from tests.support.seeds import seeds

LENGTH = 300  # requests of one state
HOUR_MS = 3_600_000
SEEDS = seeds(2, 6)


@pytest.fixture(scope="module")
def known(reference_port: int) -> Known:
    return known_by(reference_port)


def tell(server: Ours, seed: int, known: Known, releases: bool = False) -> None:
    """A random story. Our clock is behind, so that it can be turned."""
    chance = random.Random(seed)
    for request in requests(seed, LENGTH, known, releases):
        server.ask(*request)
        server.clock.advance(chance.choice((0, 0, 1, 40)))


def until_rewritten(server: Theirs) -> None:
    while b"aof_rewrite_in_progress:1" in server.info("persistence"):
        time.sleep(0.02)  # a process of its own writes the base


@pytest.mark.parametrize("seed", SEEDS)
def test_redis_loads_a_live_log(tmp_path: Path, known: Known, seed: int) -> None:
    with ours(tmp_path / "ours", HOUR_MS) as server:
        tell(server, seed, known)
        shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
        mine = picture(server.ask)
    with theirs(tmp_path / "theirs") as redis:
        assert picture(redis.ask) == mine


@pytest.mark.parametrize(("rdb_base", "kind"), [("no", "aof"), ("yes", "rdb")])
@pytest.mark.parametrize("seed", SEEDS)
def test_redis_loads_a_rewritten_base(tmp_path: Path, known: Known, seed: int, rdb_base: str, kind: str) -> None:
    with ours(tmp_path / "ours", HOUR_MS, aof_use_rdb_preamble=rdb_base) as server:
        tell(server, seed, known)
        server.save()
        assert (tmp_path / f"ours/appendonlydir/appendonly.aof.2.base.{kind}").exists()
        shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
        mine = picture(server.ask)
    with theirs(tmp_path / "theirs") as redis:
        assert picture(redis.ask) == mine


@pytest.mark.parametrize("seed", SEEDS)
def test_an_older_redis_loads_released_entries_from_a_live_log(tmp_path: Path, known: Known, seed: int) -> None:
    with ours(tmp_path / "ours", HOUR_MS, aof_compat_version="8.6") as server:
        tell(server, seed, known, releases=True)
        shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
        mine = without_deleted_pending(picture(server.ask, RELEASED))
    with theirs(tmp_path / "theirs") as redis:
        assert without_deleted_pending(picture(redis.ask, RELEASED)) == mine


@pytest.mark.parametrize("rdb_base", ["no", "yes"])
@pytest.mark.parametrize("seed", SEEDS)
def test_an_older_redis_loads_released_entries_from_a_base(
    tmp_path: Path, known: Known, seed: int, rdb_base: str
) -> None:
    """No RDB file that it reads has released entries: the base has requests."""
    with ours(tmp_path / "ours", HOUR_MS, aof_compat_version="8.6", aof_use_rdb_preamble=rdb_base) as server:
        tell(server, seed, known, releases=True)
        server.save()
        shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
        mine = picture(server.ask, RELEASED)
    with theirs(tmp_path / "theirs") as redis:
        assert picture(redis.ask, RELEASED) == mine


@pytest.mark.parametrize("seed", SEEDS)
def test_we_load_a_log_of_redis(tmp_path: Path, known: Known, seed: int) -> None:
    """Every other one with a base that Redis rewrote. What Redis has is what it finds in its own log."""
    story = requests(seed, LENGTH, known, releases=False)
    with theirs(tmp_path / "theirs") as redis:
        redis.tell(story[: LENGTH // 2])
        if seed % 2:
            redis.ask("BGREWRITEAOF")
        redis.tell(story[LENGTH // 2 :])
        until_rewritten(redis)
        redis.ask("DEBUG", "LOADAOF")
        shutil.copytree(tmp_path / "theirs", tmp_path / "ours")
        kept = picture(redis.ask)
    with ours(tmp_path / "ours") as server:
        assert picture(server.ask) == kept


def test_an_older_redis_refuses_lines_that_it_does_not_know(tmp_path: Path, known: Known) -> None:
    if known.command("XNACK"):
        pytest.skip("the reference knows XNACK")
    with ours(tmp_path) as server:
        server.lines("XADD s 1-0 f v", "XGROUP CREATE s g 0", "XNACK s g FAIL IDS 1 1-0 FORCE")
    with pytest.raises(NoReference), theirs(tmp_path):
        pass


def test_a_changed_version_takes_effect_with_a_fresh_base(tmp_path: Path, known: Known) -> None:
    with ours(tmp_path) as server:
        server.lines("XADD s 1-0 f v", "XGROUP CREATE s g 0", "XNACK s g FAIL IDS 1 1-0 FORCE")
        server.lines("CONFIG SET aof-compat-version 8.6")
        server.until_rewritten()
    with theirs(tmp_path) as redis:
        assert redis.ask("XPENDING", "s", "g") == [1, b"1-0", b"1-0", [[RELEASED, b"1"]]]


def test_redis_has_ghosts_counts_and_times_as_they_were(tmp_path: Path, known: Known) -> None:
    with ours(tmp_path / "ours", HOUR_MS) as server:
        server.lines(
            *(f"XADD s {number}-0 f v" for number in range(1, 9)), "XGROUP CREATE s g 0", "XGROUP CREATE s h 0",
            "XREADGROUP GROUP g alice COUNT 3 STREAMS s >", "XREADGROUP GROUP g bob STREAMS s >",
            "XREADGROUP GROUP h carol STREAMS s >", "XCLAIM s g bob 0 2-0 RETRYCOUNT 9223372036854775807 TIME 5",
            "XCLAIM s g alice 0 7-0 TIME 5 JUSTID", "XDEL s 1-0 5-0 8-0", "XTRIM s MAXLEN 4",
            "XGROUP CREATECONSUMER s g idle", "XSETID s 100-7 ENTRIESADDED 5000", "XGROUP SETID s h 6 ENTRIESREAD 6",
            "PEXPIREAT s 9000000000001", "SELECT 9", "XADD t 1-0 f v", "XGROUP CREATE t g 0",
            "XREADGROUP GROUP g a STREAMS t >", "XTRIM t MAXLEN 0", "XSETID t 0-0 ENTRIESADDED 0", "SELECT 0",
        )  # fmt: skip
        server.save()
        shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
        mine = picture(server.ask)
    with theirs(tmp_path / "theirs") as redis:
        assert redis.ask("XPENDING", "s", "g", "-", "+", "1", "alice")[0][0] == b"1-0"
        assert picture(redis.ask) == mine


def test_duplicates_are_known_after_the_other_loaded_the_log(tmp_path: Path, known: Known) -> None:
    if not known.since(8, 6):
        pytest.skip("the reference has no idempotent producers")
    add = ["XADD", "s", "IDMP", "p", "one", "*", "f", "v"]
    with ours(tmp_path / "ours") as server:
        first = server.ask(*add)
        server.lines("XADD s IDMP p two * f v")
        server.save()
        server.lines("XADD s IDMPAUTO q * f v", "XADD t 1-0 f v", "XCFGSET t IDMP-DURATION 9")
        shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
    with theirs(tmp_path / "theirs") as redis:
        assert redis.ask(*add) == first
        second = redis.ask("XADD", "s", "IDMP", "p", "three", "*", "f", "v")
    with ours(tmp_path / "theirs") as server:
        assert [server.ask(*add), server.ask("XADD", "s", "IDMP", "p", "three", "*", "f", "v")] == [first, second]
        assert server.ask("XLEN", "s") == 4
