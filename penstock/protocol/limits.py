"""What one client's requests may cost before they are refused."""

from typing import Final

MIB: Final = 1024 * 1024

UNAUTHENTICATED_MAX_COUNT: Final = 10
UNAUTHENTICATED_MAX_BULK: Final = 16384

BLOCK: Final = 65536  # bytes that are read at a time: hiredis moves what it has not read yet at every request


class Limits:
    """Bounds that a reader obeys from its next word on; the connection that owns them changes them as it goes.

    `authenticated` False (a password is set and was not given yet): at most 10 words of at most 16384 bytes.
    max_bulk_len: bytes in a word (proto-max-bulk-len).  max_count: words in a request.
    query_buffer_limit: bytes that may wait unread (client-query-buffer-limit).
    at_a_glance: bytes that may come at once and be read without heeding any other limit, for none can be exceeded.
    """

    __slots__ = ("at_a_glance", "authenticated", "max_bulk_len", "max_count", "query_buffer_limit")

    def __init__(
        self,
        authenticated: bool = True,
        max_bulk_len: int = 512 * MIB,
        max_count: int = 2147483647,
        query_buffer_limit: int = 1024 * MIB,
    ) -> None:
        self.authenticated = authenticated
        self.max_bulk_len = max_bulk_len
        self.max_count = max_count
        self.query_buffer_limit = query_buffer_limit
        self.at_a_glance = 0
        self.weigh()

    def weigh(self) -> None:
        """To be called when others were set: find at_a_glance anew."""
        self.at_a_glance = 0
        if self.authenticated and self.max_bulk_len >= BLOCK and self.max_count >= BLOCK:
            self.at_a_glance = min(BLOCK, self.query_buffer_limit)
