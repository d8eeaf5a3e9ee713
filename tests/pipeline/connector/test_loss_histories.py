"""Whatever happens to a stream while a query reads it, no entry is missing in silence (the model: loss_history.py)."""

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from penstock.pipeline.connector.source import offsets
from tests.pipeline.connector.loss_history import BACK, CERTAIN, DELETE, ENDS, GOES_ON, HARMLESS, TRIM, History
from tests.support.seeds import seeds

A_SEED = 25  # histories


@pytest.mark.parametrize("seed", seeds(1, 60))
@pytest.mark.parametrize("shared", [False, True], ids=["cursor", "shared"])
def test_no_entry_is_missing_in_silence_and_none_is_told_of_that_was_read(seed: int, shared: bool) -> None:
    for number in range(seed * A_SEED, (seed + 1) * A_SEED):
        history = History(number, shared).run()
        assert verdict(history) is None, (number, verdict(history), history.steps, history.warned, history.error)


@pytest.mark.parametrize("seed", seeds(1, 60))
@pytest.mark.parametrize("shared", [False, True], ids=["cursor", "shared"])
@pytest.mark.parametrize("bursts", [False, True], ids=["one by one", "bursts"])
def test_what_happens_between_two_requests_of_a_query_is_told_of_as_what_it_is(
    seed: int, shared: bool, bursts: bool
) -> None:
    for number in range(seed * A_SEED, (seed + 1) * A_SEED):
        history = History(number, shared, amid=True, bursts=bursts).run()
        assert verdict(history) is None, (number, verdict(history), history.steps, history.warned, history.error)


@pytest.mark.parametrize("seed", seeds(1, 24))
def test_no_entry_is_missing_in_silence_where_offsets_have_a_base(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets, "PLAIN", 0)
    for number in range(seed * A_SEED, (seed + 1) * A_SEED):
        history = History(number, False).run()
        assert verdict(history) is None, (number, verdict(history), history.steps, history.warned, history.error)


def test_a_group_that_went_back_with_its_server_tells_of_entries_that_only_the_lost_end_had() -> None:
    assert verdict(History(18292, True).run()) is None


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
