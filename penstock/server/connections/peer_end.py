"""Whether a connection's peer has ended it, asked of the system: the event loop may not have read that yet."""

import select
from typing import Final

# Linux reports POLLRDHUP as soon as the peer has closed its side (FIN, shutdown), also if bytes of it are not read yet
# (poll(2)). Other systems report POLLHUP with POLLIN at the end of the bytes.
ASKED_FOR: Final[int] = getattr(select, "POLLRDHUP", select.POLLIN)
ENDED: Final[int] = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR | select.POLLNVAL


def has_ended(descriptor: int) -> bool:
    """Whether the peer of a socket has closed, reset or half-closed the connection. One call of the system, no wait."""
    asked = select.poll()
    asked.register(descriptor, ASKED_FOR)
    return any(events & ENDED for _, events in asked.poll(0))
