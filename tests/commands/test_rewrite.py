"""A rewritten base gives the same picture as what it was made from."""

from typing import Any

import pytest

from penstock.clock import ManualClock
from penstock.engine.aof.replay import Replay
from penstock.engine.aof.rewrite import base_lines
from penstock.engine.aof.rewrite_progress import PACKED_BYTES, Progress, unpacked
from penstock.engine.engine import Engine
from penstock.storage.streams.pending.delivery_walk import in_time_order
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, value_of


def rewritten(engine: Engine) -> tuple[Engine, list[Any]]:
    """An engine that loaded the base of another, and what its loader said."""
    again = make_engine()
    said: list[Any] = []
    replay = Replay(again.server, said.append)
    replay.begin()
    replay.lines(base_lines(engine.keyspace, engine.settings, NOW_MS))
    replay.end()
    return again, said


def picture(engine: Engine, key: str = "s") -> tuple[Any, ...]:
    """What is shown of a stream and its groups, but for seen and active times, iids counters and node counts."""
    ask = Dialogue(engine)
    stream = value_of(engine, key.encode())
    groups = {
        group.name: [
            ask(f"XPENDING {key} {group.name.decode()} - + 1000"),
            [(block.id_at(slot), block.counts[slot]) for block, slot in group.pel.order.in_nack_zone()],
            [
                (block.id_at(slot), block.times[slot], block.counts[slot])
                for block, slot in in_time_order(group.pel.order)
            ],
            [(consumer.name, consumer.pending) for consumer in group.consumers_by_name()],
            sorted(group.pel.by_id.rewound),
        ]
        for group in stream.groups_by_name()
    }
    counters = (stream.length, stream.last_id, stream.first_id, stream.max_deleted_id, stream.entries_added)
    producers = stream.producers
    idempotence = (
        producers.duration_s,
        producers.max_size,
        {pid: iids for pid, iids in producers.pids.items() if iids},
    )
    return ask(f"XRANGE {key} - +"), ask(f"XINFO GROUPS {key}"), groups, counters, idempotence


ADDED = [f"XADD s {number}-0 f v{number}" for number in range(1, 9)]
READ = [
    "XGROUP CREATE s g 0",
    "XREADGROUP GROUP g alice COUNT 3 STREAMS s >",
    "XREADGROUP GROUP g bob COUNT 3 STREAMS s >",
]

STORIES = {
    "empty": ["XGROUP CREATE s g $ MKSTREAM"],
    "emptied": ["XADD s 5-0 f v", "XDEL s 5-0"],
    "entries": ADDED,
    "pending": [*ADDED, *READ],
    "acknowledged": [*ADDED, *READ, "XACK s g 2-0 4-0"],
    "released": [
        *ADDED, *READ, "XNACK s g FAIL IDS 2 5-0 1-0", "XNACK s g FATAL IDS 1 3-0", "XNACK s g SILENT IDS 1 2-0",
    ],
    "idle consumers": [*ADDED, *READ, "XGROUP CREATECONSUMER s g zoe", "XGROUP CREATECONSUMER s g adam"],
    "claimed with other times": [
        *ADDED, *READ, "XCLAIM s g carol 0 5-0 TIME 1000 RETRYCOUNT 9", "XCLAIM s g carol 0 1-0 TIME 2000 JUSTID",
        "XCLAIM s g alice 0 4-0 IDLE 100000", "XREADGROUP GROUP g bob STREAMS s 0",
    ],
    "deleted pending entries below": [*ADDED, *READ, "XTRIM s MAXLEN 4"],
    "deleted pending entries between": [*ADDED, *READ, "XDEL s 2-0 5-0 6-0"],
    "deleted pending entries only": [*ADDED, *READ, "XTRIM s MAXLEN 0"],
    "deleted pending entries of none": [*ADDED, *READ, "XDEL s 2-0", "XNACK s g FAIL IDS 2 2-0 1-0", "XTRIM s MINID 2"],
    "strays": [*ADDED, *READ, "XNACK s g FAIL IDS 1 6-0", "XTRIM s MAXLEN 0", "XSETID s 3-0"],
    "strays above entries": [*ADDED, *READ, "XTRIM s MAXLEN 0", "XSETID s 2-0", "XADD s 3-0 f new", "XADD s 4-0 f new"],
    "groups": [
        *ADDED, *READ, "XGROUP CREATE s early 0", "XGROUP CREATE s late $", "XGROUP SETID s early 3 ENTRIESREAD 3",
    ],
    "unknown entries-read": [*ADDED, "XDEL s 4-0", "XGROUP CREATE s g 2-0", "XGROUP SETID s g 3-0"],
    "counters": [*ADDED, "XSETID s 100-7 ENTRIESADDED 5000 MAXDELETEDID 99-0"],
    "idempotence": [
        "XGROUP CREATE s g $ MKSTREAM", "XCFGSET s IDMP-DURATION 86400 IDMP-MAXSIZE 7", "XADD s IDMP p one * f v",
        "XADD s IDMP p two * f v", "XADD s IDMP q one * f v", "XTRIM s MAXLEN 2",
    ],
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_a_stream_is_the_same_after_a_rewrite(dialogue: Dialogue, story: list[str]) -> None:
    dialogue(*story)
    again, said = rewritten(dialogue.engine)

    assert said == []
    assert picture(again) == picture(dialogue.engine)
    value_of(again, b"s").check()


def test_strings_expiries_and_databases_survive(dialogue: Dialogue) -> None:
    dialogue("SET a 1", "PEXPIRE a 5000", "SELECT 9", "SET b 2", "XADD s 1-0 f v", "PEXPIRE s 7000")
    again, _ = rewritten(dialogue.engine)

    ask = Dialogue(again)
    assert [ask("PTTL a"), ask("SELECT 9"), ask("GET b"), ask("PTTL s"), ask("XLEN s")] == [5000, b"OK", b"2", 7000, 1]


def test_what_is_overdue_and_not_removed_yet_is_there_until_it_is(dialogue: Dialogue, clock: ManualClock) -> None:
    dialogue("SET overdue 1 PX 10", "SET kept 1")
    dialogue.engine.conditions.active_expiry = False
    clock.advance(11)
    again, _ = rewritten(dialogue.engine)

    ask = Dialogue(again)  # by a clock that is behind
    assert [ask("MGET overdue kept"), ask("PTTL overdue")] == [[b"1", b"1"], 10]


def test_equal_neighbours_share_a_line(dialogue: Dialogue) -> None:
    dialogue(*ADDED, *READ, "XNACK s g FAIL IDS 2 1-0 2-0")
    lines = b"".join(base_lines(dialogue.engine.keyspace, dialogue.engine.settings, NOW_MS))
    assert (lines.count(b"XCLAIM"), lines.count(b"XNACK")) == (2, 1)


def test_a_line_names_a_thousand_ids_at_the_most(dialogue: Dialogue) -> None:
    dialogue("XGROUP CREATE s g 0 MKSTREAM", *[f"XADD s {number}-0 f v" for number in range(1, 2502)])
    dialogue("XREADGROUP GROUP g alice COUNT 2501 STREAMS s >")
    base = b"".join(base_lines(dialogue.engine.keyspace, dialogue.engine.settings, NOW_MS))
    claims = [part.split(b"TIME")[0] for part in base.split(b"XCLAIM")[1:]]
    assert [claim.count(b"-0\r\n") for claim in claims] == [1000, 1000, 501]


def test_chunks_hold_whole_requests(dialogue: Dialogue) -> None:
    value = b"v" * 1000
    for number in range(300):
        dialogue.words(b"XADD", b"s", b"%d-0" % (number + 1), b"f", value)
    chunks = list(base_lines(dialogue.engine.keyspace, dialogue.engine.settings, NOW_MS))
    assert len(chunks) > 3
    assert all(chunk.startswith(b"*") and chunk.endswith(b"\r\n") for chunk in chunks)


def test_a_base_begins_with_its_time_where_that_is_wanted(dialogue: Dialogue) -> None:
    dialogue.engine.settings.set_pairs([("aof-timestamp-enabled", "yes")])
    dialogue("SET a 1")
    chunks = list(base_lines(dialogue.engine.keyspace, dialogue.engine.settings, NOW_MS))
    assert chunks[0].startswith(b"#TS:1795300000\r\n*2\r\n")


def test_the_lines_are_counted_while_they_are_made(dialogue: Dialogue) -> None:
    dialogue(
        "SET a 1", "XADD s 1-0 f v", "XADD s 2-0 f v", "XADD s 3-0 f v", "XGROUP CREATE s g 0", "SELECT 1", "SET b 2"
    )
    dialogue("SELECT 0", "XREADGROUP GROUP g alice COUNT 2 STREAMS s >", "XNACK s g FAIL IDS 1 1-0", "XDEL s 2-0")
    keyspace, progress = dialogue.engine.keyspace, Progress()
    progress.expect(keyspace)
    assert (progress.keys_total, progress.steps_total, progress.share) == (3, 2 + 2 + 2, 0)

    list(base_lines(keyspace, dialogue.engine.settings, NOW_MS, progress=progress))
    assert (progress.keys, progress.steps, progress.share) == (3, 6, 1)


def test_progress_survives_a_pipe() -> None:
    progress = Progress()
    progress.keys, progress.keys_total, progress.steps, progress.steps_total = 1, 2, 3, 1 << 40
    progress.written, progress.copied = 5, 6
    report = progress.packed()
    assert len(report) == PACKED_BYTES
    assert unpacked(report).packed() == report
