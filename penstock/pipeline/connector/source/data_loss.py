"""What a stream has lost since a query was there: entries trimmed away unread, or the stream itself."""

from dataclasses import dataclass

from penstock.pipeline.connector.connection.stream_info import StreamState
from penstock.pipeline.connector.source.offsets import Position
from penstock.storage import ids


@dataclass(frozen=True, slots=True)
class Loss:
    """One sentence, and the place from which to go on if nobody minds."""

    text: str
    resume_at: Position


def find_loss(place: Position, state: StreamState) -> Loss | None:
    """What was lost between a place and a stream's present; None if nothing was, as far as can be told.

    Entries that were deleted one by one (XDEL) are no loss; where some were, nobody can tell how many were trimmed.
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
