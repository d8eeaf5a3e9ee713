"""Whatever happens to a server and a checkpoint, no row is doubled or lost in silence (the model: sink_history.py).

`python -m tests.pipeline.connector.test_sink_histories 0 2000` runs so many histories.
"""

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from tests.pipeline.connector.sink_history import SinkHistory
from tests.support.seeds import run_seeds, seeds

A_SEED = 20  # histories


def judge(number: int) -> None:
    history = SinkHistory(number).run()
    assert verdict(history) is None, (number, verdict(history), history.steps, history.losses, history.refusals)


@pytest.mark.parametrize("seed", seeds(1, 10))
def test_no_row_is_doubled_or_lost_in_silence(seed: int) -> None:
    for number in range(seed * A_SEED, (seed + 1) * A_SEED):
        judge(number)


def verdict(history: SinkHistory) -> str | None:
    """What is wrong with what the query has written and told; None if nothing is."""
    rows, committed = history.rows, history.committed
    is_told_of_doubled = any("the stream holds some twice" in text for text in history.refusals)
    if max(rows.values(), default=1) > 1 and not is_told_of_doubled:
        return "a row is doubled in silence"
    if committed - rows and not history.losses:
        return "rows are missing in silence"
    if history.losses and not history.went_back:
        return "a loss was told of, and the server never went back"
    if history.refusals and not (history.went_back or history.was_restored):
        return "a batch was refused, and nothing had happened"
    if not history.went_back and not history.was_restored and rows != committed:
        return "the stream has other rows than those that were committed"
    return None


if __name__ == "__main__":
    run_seeds(judge)
