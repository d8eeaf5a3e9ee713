"""The memory that a client uses in the server, as CLIENT LIST shows it and maxmemory-clients limits it."""

from typing import Final

from penstock.engine.session import Session

HELD_NAME: Final = 100  # bytes for a channel, a watched key or another name that is kept, beside its letters


def memory_of(session: Session) -> int:
    """Bytes of its requests that wait, of its transaction, its unsent replies, and the names that it gave. O(1)."""
    return (
        session.args_memory
        + session.query_buffer
        + session.waiting_output
        + session.queued_bytes
        + session.subscribed_bytes
        + session.watched_bytes
        + session.fieldset_bytes
        + (0 if session.tracking is None else session.tracking.prefix_bytes)
        + len(session.name)
        + len(session.library_name)
        + len(session.library_version)
    )
