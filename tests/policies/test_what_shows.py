"""What shows of policies: INFO, an RDB file, a server of another version."""

import pytest

from penstock.clock import ManualClock
from penstock.engine.aof.replay import Replay
from penstock.engine.rdb.rdb_saving import snapshot_of
from penstock.engine.replication.replication import Stream
from penstock.engine.state import FOLLOWING
from penstock.protocol.log_reader import whole_requests
from penstock.server.files.loading import read_snapshot
from tests.policies.conftest import PolicyDialogue, made
from tests.policies.test_leases import READ, read_ids
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, settings_with
from tests.support.keyspace_picture import KEPT, keyspace
from tests.support.memory_disk import MemoryDisk


def stats(dialogue: Dialogue) -> dict[str, str]:
    lines = dialogue("INFO stats").decode().split("\r\n")
    return dict(line.split(":") for line in lines if line.startswith("penstock_"))


def test_info_counts_what_policies_did(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s 1-0 f v", "XADD s 2-0 f v")
    assert stats(dialogue) == {}
    dialogue("XGROUP CREATE s g 0", "PENSTOCK.POLICY s GROUP g ACKWAIT 1000 DEADLETTER dead REAP 1000")
    dialogue(READ.format("a"), "PENSTOCK.CLOCK ADVANCE 1000", READ.format("b"), "XNACK s g FATAL IDS 1 1-0")
    dialogue("PENSTOCK.XNACK s g FAIL IDS 1 2-0 DELAY 90000", "PENSTOCK.POLICY dead FORWARD later")
    dialogue("PENSTOCK.POLICY s MAXLEN 1", "PENSTOCK.CLOCK ADVANCE 2000")

    assert stats(dialogue) == {
        "penstock_redelivered": "2", "penstock_dead_lettered": "1", "penstock_forwarded": "1", "penstock_trimmed": "1",
        "penstock_reaped": "2", "penstock_held": "1", "penstock_redriven": "0",
        "penstock_released": "0", "penstock_expired": "0", "penstock_copied": "0",
    }  # fmt: skip


def test_an_rdb_file_keeps_policies_floors_and_holds(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s 1-0 f v", "PENSTOCK.POLICY s MAXLEN 0 ACKED", "XGROUP CREATE s g $", "XADD s 2-0 f v")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 30000 KEY f", READ.format("a"))
    dialogue("PENSTOCK.XNACK s g FAIL IDS 1 2-0 DELAY 5000", "SELECT 3", "XADD t 1-0 f v", "PENSTOCK.POLICY t MAXLEN 9")
    disk = MemoryDisk()
    file = disk.create("dump.rdb")
    for chunk in snapshot_of(dialogue.engine.keyspace, dialogue.engine.settings, NOW_MS).chunks():
        file.write(chunk)
    engine = make_engine(ManualClock(NOW_MS))
    replay = Replay(engine.server, lambda line: None)
    replay.begin()
    for _ in replay.snapshot(disk, "dump.rdb"):
        pass
    replay.end()

    assert keyspace(engine, KEPT) == keyspace(dialogue.engine, KEPT)


@pytest.mark.parametrize(
    ("version", "policies", "line"),
    [
        ("8.6", ["s MAXLEN 9", "s GROUP g ACKWAIT 5", "t FORWARD u"], ["3 policies sleep: compat-version is 8.6"]),
        ("8.10", ["s GROUP g REAP 5"], ["1 policy sleeps: compat-version is 8.10"]),
        ("8.6", [], []),
        ("newest", ["s MAXLEN 9"], []),
    ],
    ids=["three", "one", "none", "awake"],
)
def test_a_start_tells_that_policies_sleep(
    dialogue: PolicyDialogue, version: str, policies: list[str], line: list[str]
) -> None:
    dialogue("XADD s 1-0 f v", "XADD t 1-0 f v", "XGROUP CREATE s g 0")
    dialogue(*[f"PENSTOCK.POLICY {words}" for words in policies])
    engine = make_engine(ManualClock(NOW_MS), settings=settings_with(compat_version=version))
    disk = MemoryDisk()
    file = disk.create(f"{engine.settings.text('dir')}/dump.rdb")
    for chunk in snapshot_of(dialogue.engine.keyspace, dialogue.engine.settings, NOW_MS).chunks():
        file.write(chunk)
    told: list[str] = []
    for _ in read_snapshot(engine, disk, told.append):
        pass

    assert [words for words in told if "sleep" in words] == line


def test_a_named_version_knows_nothing_of_it() -> None:
    client = made(compat_version="8.8")
    client("XADD orders 1-0 n 1", "XGROUP CREATE orders shop 0")

    assert str(client("PENSTOCK.POLICY orders MAXLEN 5")) == (
        "ERR unknown command 'PENSTOCK.POLICY', with args beginning with: 'orders' 'MAXLEN' '5' "
    )
    assert str(client("XNACK orders shop FAIL IDS 1 1-0 DELAY 5")) == "ERR Unrecognized XNACK option 'DELAY'"


def test_what_is_read_again_from_memory_has_its_policies(dialogue: PolicyDialogue) -> None:
    dialogue("CONFIG SET enable-debug-command yes", "XADD s 1-0 f v", "XGROUP CREATE s g 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 1000", READ.format("a"))
    reloading = made(enable_debug_command="yes")
    reloading.engine.keyspace.databases[0].put(b"s", dialogue.engine.keyspace.databases[0].values[b"s"])
    reloading.engine.policies.used = True
    assert reloading("DEBUG RELOAD") == b"OK"
    reloading("PENSTOCK.CLOCK ADVANCE 1000")

    assert read_ids(reloading, READ.format("b")) == ["1-0"]


def test_replicas_are_sent_what_policies_do_and_not_the_policies(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s 1-0 f v", "XADD s 2-0 f #penstock", "XGROUP CREATE s g 0")
    stream = Stream(0, 10_000)
    dialogue.engine.effects.replicate(stream)
    dialogue("PENSTOCK.POLICY s MAXLEN 1", "PENSTOCK.POLICY s GROUP g ACKWAIT 1000", READ.format("a"))
    dialogue("PENSTOCK.XNACK s g FAIL IDS 1 2-0 DELAY 5000")
    sent = whole_requests(stream.take()).requests

    assert [words[0] for words in sent if words[0] not in (b"MULTI", b"EXEC")] == [
        b"SELECT", b"XTRIM", b"XGROUP", b"XCLAIM", b"XGROUP", b"XNACK"
    ]  # fmt: skip
    assert [words[0] for words in sent].count(b"MULTI") == [words[0] for words in sent].count(b"EXEC")


def test_a_replica_leaves_policies_to_its_master_until_it_is_promoted(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s * f v", "PENSTOCK.POLICY s MAXAGE 1000")
    dialogue.engine.conditions.set(FOLLOWING, True)
    dialogue("PENSTOCK.CLOCK ADVANCE 5000")
    assert dialogue("XLEN s") == 1
    dialogue.engine.conditions.set(FOLLOWING, False)
    dialogue("PENSTOCK.CLOCK ADVANCE 0")

    assert dialogue("XLEN s") == 0


FURTHEST = 2**63 - 1  # what an integer of a reply can be; a client that gets a larger one closes its connection


@pytest.mark.parametrize(
    "request_line",
    [
        "PENSTOCK.XNACK s g FAIL IDS 1 1-0 DELAY {furthest}",
        "PENSTOCK.XNACK s g FAIL IDS 1 1-0 UNTIL {furthest}",
        "XNACK s g FAIL IDS 1 1-0",
    ],
)
def test_a_hold_without_an_end_is_shown_and_kept(dialogue: PolicyDialogue, request_line: str) -> None:
    dialogue("XADD s 1-0 f v", "XGROUP CREATE s g 0", READ.format("a"))
    dialogue(f"PENSTOCK.POLICY s GROUP g ACKWAIT 1000 BACKOFF {FURTHEST} {FURTHEST}")
    dialogue(request_line.format(furthest=FURTHEST))

    shown = dialogue("XINFO GROUPS s")[0][-1]
    assert shown[shown.index(b"next") + 1] == FURTHEST
    assert dialogue(READ.format("a")) is None
    dialogue.reloaded()
    dialogue.rewritten()
