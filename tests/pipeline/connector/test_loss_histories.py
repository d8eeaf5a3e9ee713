"""Whatever happens to a stream while a query reads it, no entry is missing in silence (the model: loss_history.py).

`python -m tests.pipeline.connector.test_loss_histories 0 3000` runs 21,000 histories: each number in each way.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from penstock.pipeline.connector.source import offsets
from tests.pipeline.connector.loss_history import BACK, CERTAIN, DELETE, ENDS, GOES_ON, HARMLESS, TRIM, History
from tests.support.seeds import run_seeds, seeds

A_SEED = 25  # histories
ONCE_SILENT = [473, 18292, 401_026, 800_035]  # each lost entries in silence in one of the ways

WAYS: Final[dict[str, Callable[[int], History]]] = {
    f"{mode}, {when}": partial(History, shared=mode == "shared", amid=when != "between steps", bursts=when == "bursts")
    for mode in ("cursor", "shared")
    for when in ("between steps", "between requests", "bursts")
}


def judge(way: Callable[[int], History], number: int) -> None:
    history = way(number).run()
    assert verdict(history) is None, (number, verdict(history), history.steps, history.warned, history.error)


def judge_with_base(number: int) -> None:
    """Offsets have a base, as those of hundreds of streams."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offsets, "PLAIN", 0)
        judge(WAYS["cursor, between steps"], number)


@pytest.mark.parametrize("seed", seeds(1, 8))
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_no_entry_is_missing_in_silence_and_none_is_told_of_that_was_read(
    seed: int, way: Callable[[int], History]
) -> None:
    for number in range(seed * A_SEED, (seed + 1) * A_SEED):
        judge(way, number)


@pytest.mark.parametrize("seed", seeds(1, 4))
def test_no_entry_is_missing_in_silence_where_offsets_have_a_base(seed: int) -> None:
    for number in range(seed * A_SEED, (seed + 1) * A_SEED):
        judge_with_base(number)


@pytest.mark.parametrize("number", ONCE_SILENT)
def test_what_once_was_missing_in_silence_is_told_of(number: int) -> None:
    for way in WAYS.values():
        judge(way, number)


def verdict(history: History) -> str | None:
    """What is wrong with what a query has told; None if nothing is."""
    acts = history.acts - {HARMLESS}
    if history.lost and not history.is_told:
        counted = history.lost & history.announced  # no reply differs if the others were never added
        # A worker that reads an entry that is taken then, and a worker that comes past an entry that was taken before,
        # leave the same entries-read, last-delivered-id and max-deleted-entry-id.
        cannot_be_known = not counted or (history.has_others and counted <= history.deleted | history.passed)
        cannot_be_known |= BACK in acts and history.is_balanced
        cannot_be_known |= history.forgot and history.on_loss == CERTAIN and counted <= history.deleted
        return None if cannot_be_known else f"{len(history.lost)} entries are missing in silence"
    if history.is_told and not acts:
        return "a loss was told of, and nothing was taken"
    if BACK in acts or (DELETE in acts and history.has_others):
        return None
    if history.error is not None and not history.lost and not history.is_estimated:
        return "the query ended, and nothing was lost"
    if history.error is not None and history.on_loss == GOES_ON:
        return "the query ended, and was told to go on"
    if history.error is not None and history.on_loss == CERTAIN and acts == {DELETE}:
        return "the query ended for a deletion"
    if acts | history.past <= {TRIM, HARMLESS} and set(history.counted) - {"trimmed", "uncounted"}:
        return "trims were told of as something else"
    if history.passed:
        return None
    if history.on_loss == ENDS and history.lost and history.error is None:
        return "the query went on"
    if history.error is not None or history.is_estimated or "restart" in history.steps:
        return None  # a driver that dies takes with it what the tasks of its newest batch missed
    missing = sum(history.counted.values())
    if missing != len(history.lost):
        return f"{missing} were counted, and {len(history.lost)} are missing"
    return None


if __name__ == "__main__":
    for name, way in WAYS.items():
        run_seeds(partial(judge, way), name)
    run_seeds(judge_with_base, "with a base")
