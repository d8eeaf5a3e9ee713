"""Producers' idempotent ids: the structure, and when they expire."""

import time

from penstock.clock import ManualClock
from penstock.storage.streams.idempotence import Producers
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue

IIDS = 200_000


def test_an_iid_beyond_the_most_that_are_kept_costs_as_much_as_one_below() -> None:
    """A walk over the places of removed iids was 50 times as long: up to 200,000 steps for each iid."""
    kept = Producers(3600, IIDS)

    began_s = time.process_time()
    for number in range(IIDS):
        kept.record(b"p", b"%d" % number, number)
    below_s = time.process_time() - began_s
    for number in range(IIDS, 2 * IIDS):
        kept.record(b"p", b"%d" % number, number)
    beyond_s = time.process_time() - began_s - below_s

    assert list(kept.pids[b"p"]) == [b"%d" % number for number in range(IIDS, 2 * IIDS)]
    assert beyond_s < 5 * below_s + 1


def test_an_iid_that_expired_is_recorded_for_another_entry(dialogue: Dialogue, clock: ManualClock) -> None:
    dialogue("XADD s * f v", "XCFGSET s IDMP-DURATION 1", "XIDMPRECORD s p i 1795300000000-0")
    clock.advance(1100)
    dialogue("XADD s * f v")

    assert dialogue("XIDMPRECORD s p i 1795300001100-0") == b"OK"
    assert dialogue("XADD s IDMP p i * f v") == b"%d-0" % (NOW_MS + 1100)
