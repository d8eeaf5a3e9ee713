"""The metrics of a streaming source in the query's progress, beside the ends of its streams.

Spark has no metrics of Python sources, but keeps what `reportLatestOffset` returns as text: `sources[].latestOffset`.
"""

from collections.abc import Iterable
from typing import Final

from penstock.pipeline.connector.connection.stream_info import StreamState
from penstock.pipeline.connector.source import rate_limit
from penstock.pipeline.connector.source.offsets import Places, Position, StreamOf
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId

METRICS: Final = "metrics"  # the member of the reported offset
STREAMS: Final = "streams"
STREAMS_MISSING: Final = "streamsMissing"  # streams that the query names and no server has, now
ENTRIES_BEHIND: Final = "entriesBehind"
MS_BEHIND: Final = "msBehind"
ENTRIES_MISSING: Final = "entriesMissing"  # entries that could not be read, since the query began
MISSING_BY_CAUSE: Final = "entriesMissingByCause"
REDELIVERED: Final = "redelivered"  # entries taken that were delivered before, since this driver started

NOWHERE: Final = Position(ids.ZERO, 0)


def behind(planned: Places, states: dict[StreamOf, StreamState], ahead: Iterable[StreamOf]) -> dict[str, int]:
    """How far the newest batch's end is behind the streams' ends: entries in all, and milliseconds at most.

    `ahead`: the streams that were ahead of it when it was planned. No other one is.
    """
    entries, ms = 0, 0
    for stream in ahead:
        place, state = planned.get(stream) or NOWHERE, states[stream]
        entries += rate_limit.backlog(place, state)
        if state.length:
            ms = max(ms, ms_between(max(place.id, state.first), state.last))
    return {STREAMS: len(states), ENTRIES_BEHIND: entries, MS_BEHIND: ms}


def ms_between(earlier: StreamId, later: StreamId) -> int:
    """Milliseconds from one id to another; 0 if it is not later."""
    return max((later >> 64) - (earlier >> 64), 0)
