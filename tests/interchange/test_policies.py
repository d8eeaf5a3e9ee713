"""A real Redis, and a Valkey, load a log with policies: it skips what only Penstock reads, and keeps all else."""

import random
import shutil
from pathlib import Path

import pytest

from tests.interchange.pictures import RELEASED, Ask, Ours, ours, theirs, value, without_deleted_pending
from tests.support.reference_server import NoReference, reference_binary
from tests.support.seeds import seeds

HOUR_MS = 3_600_000
POLICIES = (
    "MAXLEN 6 ACKED", "MAXLEN 0 ACKED", "MAXLEN 9 DELREF", "GROUP g ACKWAIT 500 MAXDELIVER 2 DEADLETTER dead",
    "GROUP g BACKOFF 200 900", "GROUP h ACKWAIT 700 KEY k", "GROUP h REAP 3000", "GROUP g RESET",
    "GROUP g RATE 3 900", "GROUP h RATE 2 60000", "GROUP h ACKWAIT 700 INFLIGHT 2", "GROUP h PAUSE +700",
    "GROUP g EXPIRE 1500", "GROUP h EXPIRE 900 DEADLETTER dead",
    "GROUP g ACKWAIT 900 PRIORITY p LOOKAHEAD 4", "GROUP h ACKWAIT 800 KEY k PARALLEL 2 FAIR YES PRIORITY p",
    "MAXBYTES 90", "MAXLEN 2 ACKED IDLEGROUP 1500", "GROUP g EXPIREAT at", "GROUP g ACKWAIT 600 ONDISCONNECT RELEASE",
)  # fmt: skip


def tell(server: Ours, seed: int) -> None:
    """A random story of a stream with policies."""
    chance = random.Random(seed)
    server.lines("XADD s 1-1 k x", "XGROUP CREATE s g 0", "XGROUP CREATE s h 0", "XADD later 1-1 k 0")
    server.lines("XADD skipped 1-1 k x", "PENSTOCK.POLICY skipped MAXLEN 0 ACKED", "XGROUP CREATE skipped g $")
    server.lines("XADD skipped 2-1 k x", "XREADGROUP GROUP g a STREAMS skipped >", "XACK skipped g 2-1")
    server.lines("PENSTOCK.POLICY later FORWARD s AFTER 1500", "PENSTOCK.POLICY s GROUP g RATE 3 900")
    server.lines("XREADGROUP GROUP g a STREAMS s >")  # the log has a line of RATED
    for _ in range(120):
        group, consumer = chance.choice("gh"), chance.choice("abc")
        request = chance.choice(
            (
                f"XADD s * k {chance.choice('xyz')} p {chance.randint(0, 9)}",
                f"XADD s * k {chance.choice('xyz')} at +{chance.randint(0, 900)}",
                f"XADD cron * k {chance.choice('xyz')} every {chance.randint(1, 3)}000",
                f"PENSTOCK.POLICY cron FORWARD s EVERY every MISSED {chance.choice(('ONCE', 'ALL', 'SKIP'))}",
                f"PENSTOCK.REDRIVE dead s COUNT 3{chance.choice(('', ' NEW'))}",
                f"PENSTOCK.DELCONSUMER s {group} {consumer} {chance.choice(('IFEMPTY', 'RELEASE'))}",
                f"XAUTOCLAIM s {group} {consumer} 300 0 COUNT 2",
                f"XCLAIM s {group} {consumer} 0 {oldest(server, group)}{chance.choice(('', ' JUSTID'))}",
                "leave",
                f"XADD later * k {chance.choice('xyz')}",
                f"XREADGROUP GROUP {group} {consumer} COUNT 2 STREAMS s >",
                f"XACK s {group} {oldest(server, group)}",
                f"PENSTOCK.XNACK s {group} FAIL IDS 1 {oldest(server, group)} DELAY 800",
                f"XNACK s {group} {chance.choice(('FAIL', 'FATAL'))} IDS 1 {oldest(server, group)}",
                f"XGROUP DELCONSUMER s {group} {consumer}",
                f"PENSTOCK.POLICY s {chance.choice(POLICIES)}",
            )
        )
        if request == "leave":
            leave(server)
        else:
            server.ask(*request.split())
        server.clock.advance(chance.choice((0, 1, 100, 600)))
        server.engine.tick()
        server.durability.end_of_turn(lambda trouble: None)


def leave(server: Ours) -> None:
    """The connection ends on which the consumers read; another one goes on."""
    server.engine.server.disconnect(server.session)
    server.session = server.engine.server.connect()
    server.ask("HELLO", "3")


def oldest(server: Ours, group: str) -> str:
    pending = server.ask("XPENDING", "s", group, "-", "+", "1")
    return pending[0][0].decode() if pending else "1-1"


def seen(ask: Ask) -> dict[object, object]:
    shown: dict[object, object] = {}
    for key in ("s", "dead", "later", "skipped", "cron"):
        stream = value(ask, key, RELEASED) if ask("EXISTS", key) else None
        if isinstance(stream, dict):
            shown[key] = (None, {name: field for name, field in stream.items() if not name.startswith(b"idmp")})
    return without_deleted_pending(shown)


def as_valkey(shown: dict[object, object]) -> dict[object, object]:
    """Without the lag, in which it counts entries that were trimmed before they were read."""
    for stream in shown.values():
        assert isinstance(stream, tuple)
        for group in stream[1][b"groups"]:
            del group[b"lag"]
    return shown


def binary_of(kind: str) -> Path:
    try:
        return reference_binary(kind)
    except NoReference as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("kind", ["redis", "valkey"])
@pytest.mark.parametrize("rewritten", [False, True], ids=["log", "base"])
@pytest.mark.parametrize("seed", seeds(1, 12))
def test_a_log_with_policies_is_loaded(tmp_path: Path, kind: str, rewritten: bool, seed: int) -> None:
    compat = {"redis": "8.6", "valkey": "7.2"}[kind]
    with ours(tmp_path / "ours", HOUR_MS, aof_compat_version=compat) as server:
        tell(server, seed)
        if rewritten:
            server.save()
        shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
        mine = seen(server.ask)
    assert rewritten or any(b" RATED " in file.read_bytes() for file in tmp_path.glob("theirs/*/*.aof"))
    with theirs(tmp_path / "theirs", binary_of(kind)) as other:
        kept = seen(other.ask)
    if kind == "valkey":
        mine, kept = as_valkey(mine), as_valkey(kept)
    assert kept == mine
