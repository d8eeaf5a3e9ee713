"""Detects entries that were trimmed before a query read them, and streams that were deleted or went back."""

from dataclasses import dataclass

from penstock.pipeline.connector.connection.stream_info import StreamState
from penstock.pipeline.connector.source.offsets import Position
from penstock.storage.streams import ids


@dataclass(frozen=True, slots=True)
class Loss:
    """A sentence for the user, and the position from which a query with failOnDataLoss=false goes on."""

    text: str
    resume_at: Position


def find_loss(place: Position, state: StreamState) -> Loss | None:
    """What was lost after a position, from the stream's counters; None if nothing was, or it cannot be known.

    Entries deleted by XDEL are not a loss. Where some were, the number of trimmed entries cannot be computed.
    """
    if state.last < place.id or (place.added is not None and state.added < place.added):
        beginning = Position(ids.ZERO, 0 if state.max_deleted < state.first and state.added == state.length else None)
        return Loss(
            f"the stream went backwards: {ids.text(place.id).decode()} was read, and its last id is "
            f"{ids.text(state.last).decode()} ({state.added} entries ever): it was deleted and made anew, or the "
            "server has lost its end",
            beginning,
        )
    if place.added is None or state.max_deleted > place.id:
        return None
    if state.length and state.first <= place.id:
        return None
    missing = state.added - place.added - state.length
    if missing <= 0:
        return None
    first = ids.text(state.first).decode() if state.length else "none"
    return Loss(
        f"{missing} entries were trimmed before they were read: those after {ids.text(place.id).decode()}, and the "
        f"first that is left is {first}",
        Position(place.id, place.added + missing, place.cuts),
    )
