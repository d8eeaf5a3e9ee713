"""Limits, order, times and ONDISCONNECT of a group go where its stream goes; a replica leaves them to its master."""

import pytest

from penstock.engine.engine import Engine
from penstock.engine.replication.replication import Stream
from penstock.engine.state import FOLLOWING
from penstock.protocol.log_reader import whole_requests
from tests.policies.conftest import PolicyDialogue
from tests.policies.test_leases import READ, read_ids
from tests.support.agreement import Replica
from tests.support.clock import NOW_MS
from tests.support.engines import settings_with, value_of
from tests.support.keyspace_picture import KEPT, stream_picture

ALL = (
    "ACKWAIT 30000 KEY k PARALLEL 2 FAIR YES PRIORITY p AGING 1000 LOOKAHEAD 50 PAUSE +900000 RATE 9 60000 INFLIGHT 5 "
    "EXPIRE 90000000 EXPIREAT at ONDISCONNECT RELEASE"
)


@pytest.fixture
def jobs(dialogue: PolicyDialogue) -> PolicyDialogue:
    """A group with every option; two entries are with a worker and counted for RATE, one waits."""
    dialogue("XADD s 1795299999999-1 k x", "XADD s 1795299999999-2 k x p 9", "XADD s 1795299999999-3 k y p 9")
    dialogue("XGROUP CREATE s g 0", f"PENSTOCK.POLICY s GROUP g {ALL.replace('PAUSE +900000 ', '')}")
    dialogue("XREADGROUP GROUP g a COUNT 2 STREAMS s >", "PENSTOCK.POLICY s GROUP g PAUSE +900000")
    return dialogue


def shown(dialogue: PolicyDialogue) -> dict[bytes, object]:
    field = dialogue("XINFO GROUPS s")[0][13]
    return dict(zip(field[::2], field[1::2], strict=True))


@pytest.mark.parametrize(
    "lines",
    [["COPY s t", "DEL s", "RENAME t s"], ["RENAME s t", "RENAME t s"], ["MOVE s 1", "SELECT 1"], ["SWAPDB 0 1"]],
    ids=["copy", "rename", "move", "swapdb"],
)
def test_all_options_and_the_span_of_rate_go_with_the_stream(jobs: PolicyDialogue, lines: list[str]) -> None:
    before = shown(jobs)
    assert [before[name] for name in (b"rated", b"owned", b"waiting", b"pause")] == [2, 2, 1, NOW_MS + 900_000]
    jobs(*lines, *["SELECT 1"] * (lines == ["SWAPDB 0 1"]))

    assert shown(jobs) == before
    jobs.reloaded()


def test_a_log_a_base_and_an_rdb_file_keep_all_options(jobs: PolicyDialogue) -> None:
    before = shown(jobs)
    again = PolicyDialogue(jobs.reloaded(), jobs._log)
    rewritten = PolicyDialogue(jobs.rewritten(), jobs._log)

    assert shown(again) == shown(rewritten) == before


def test_a_replica_is_sent_requests_of_redis_only(jobs: PolicyDialogue) -> None:
    stream = Stream(0, 10_000)
    jobs.engine.effects.replicate(stream)
    jobs("PENSTOCK.POLICY s GROUP g PAUSE NONE", "XADD s * k z p 9", READ.format("b"))
    jobs("PENSTOCK.CLOCK ADVANCE 95000000", READ.format("b"))
    sent = [words[0] for words in whole_requests(stream.take()).requests]

    assert set(sent) - {b"MULTI", b"EXEC", b"SELECT"} == {b"XADD", b"XGROUP", b"XCLAIM", b"XACK"}


def test_a_replica_shows_no_pause_that_is_over(jobs: PolicyDialogue) -> None:
    jobs.engine.conditions.set(FOLLOWING, True)
    jobs("PENSTOCK.CLOCK ADVANCE 899999")
    assert shown(jobs)[b"pause"] == NOW_MS + 900_000
    jobs("PENSTOCK.CLOCK ADVANCE 1")

    assert shown(jobs)[b"pause"] is None
    jobs.rewritten()


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (["PENSTOCK.POLICY s MAXBYTES 13", "XADD s 4-0 n 1234567890123456", "XADD s 5-0 n 1"], "5-0"),
        (["PENSTOCK.POLICY s MAXBYTES 13 DELREF", "XADD s 4-0 n 12345"], "3-0 4-0"),
        (["PENSTOCK.POLICY s MAXLEN 1 MAXBYTES 6 ACKED IDLEGROUP 1000", "XACK s g 2-0 3-0",
          "PENSTOCK.CLOCK ADVANCE 999", READ.format("a"), "PENSTOCK.CLOCK ADVANCE 1"], "1-0"),
    ],
    ids=["bytes", "bytes, delref", "idle group"],
)  # fmt: skip
def test_a_replica_has_what_bytes_and_idle_groups_leave(dialogue: PolicyDialogue, lines: list[str], left: str) -> None:
    stream = Stream(0, 100_000)
    dialogue.engine.effects.replicate(stream)
    dialogue("XADD s 1-0 n 12345", "XADD s 2-0 n 12345", "XADD s 3-0 n 12345", "XGROUP CREATE s h 0")
    dialogue("XGROUP CREATE s g 0", READ.format("a"), *lines)
    replica = Replica(settings_with())
    replica.apply(stream.take())

    assert [entry[0].decode() for entry in dialogue("XRANGE s - +")] == left.split()
    assert replica_picture(dialogue.engine) == replica_picture(replica.engine)


def replica_picture(engine: Engine) -> dict[str, object]:
    """What a stream holds but for its policies, of which a replica's master sends the effects only."""
    return stream_picture(value_of(engine, b"s"), KEPT) | {"policies": []}


def test_a_promoted_replica_counts_all_groups_as_just_read(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s 1-0 n 1", "XGROUP CREATE s h 0", "XGROUP CREATE s g 0", READ.format("a"), "XACK s g 1-0")
    dialogue("PENSTOCK.POLICY s MAXLEN 0 ACKED IDLEGROUP 1000", "PENSTOCK.CLOCK ADVANCE 900")
    dialogue.engine.conditions.set(FOLLOWING, True)
    dialogue("PENSTOCK.CLOCK ADVANCE 5000")
    dialogue.engine.conditions.set(FOLLOWING, False)
    dialogue("PENSTOCK.CLOCK ADVANCE 900", READ.format("a"), "PENSTOCK.CLOCK ADVANCE 99")
    assert dialogue("XLEN s") == 1
    dialogue("PENSTOCK.CLOCK ADVANCE 1")

    assert dialogue("XLEN s") == 0


def test_a_replica_lets_nothing_expire_until_it_is_promoted(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s * n 1", "XGROUP CREATE s g 0", "PENSTOCK.POLICY s GROUP g EXPIRE 1000 DEADLETTER dead")
    dialogue.engine.conditions.set(FOLLOWING, True)
    dialogue("PENSTOCK.CLOCK ADVANCE 5000")
    assert dialogue("XLEN dead") == 0
    dialogue.engine.conditions.set(FOLLOWING, False)
    dialogue("PENSTOCK.CLOCK ADVANCE 0")

    assert dialogue("XLEN dead") == 1


@pytest.mark.parametrize("options", ["KEY k", "KEY k PRIORITY p", "KEY k FAIR YES"])
def test_a_promoted_replica_has_nothing_wait_for_what_its_master_deleted(
    dialogue: PolicyDialogue, options: str
) -> None:
    dialogue(*[f"XADD s {at}-0 k {value}" for at, value in enumerate("zxx", 1)], "XGROUP CREATE s g 0")
    dialogue(f"PENSTOCK.POLICY s GROUP g ACKWAIT 900000 {options}", READ.format("a"), "XINFO GROUPS s")
    dialogue.session.privileged = True  # as the link to a master: policies are not asked
    dialogue("XDEL s 2-0")
    dialogue.session.privileged = False
    dialogue.engine.conditions.set(FOLLOWING, True)
    dialogue("PENSTOCK.CLOCK ADVANCE 1")
    dialogue.engine.conditions.set(FOLLOWING, False)
    dialogue("PENSTOCK.CLOCK ADVANCE 0")

    assert read_ids(dialogue, READ.format("b")) == ["3-0"]


def test_a_promoted_replica_chooses_among_what_its_master_passed_over(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s 1-0 p 0", "XADD s 2-0 p 9", "XADD s 3-0 p 9", "XGROUP CREATE s g 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 900000 PRIORITY p", "XREADGROUP GROUP g a COUNT 1 STREAMS s >")
    dialogue.session.privileged = True  # as the link to a master: policies are not asked
    dialogue("XNACK s g SILENT IDS 1 2-0", "XADD s 4-0 p 9")
    dialogue.session.privileged = False
    dialogue.engine.conditions.set(FOLLOWING, True)
    dialogue("PENSTOCK.CLOCK ADVANCE 1")
    dialogue.engine.conditions.set(FOLLOWING, False)
    dialogue("PENSTOCK.CLOCK ADVANCE 0")

    assert read_ids(dialogue, READ.format("b")) == ["2-0", "3-0", "4-0", "1-0"]
