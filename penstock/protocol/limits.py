"""Limits of one client's requests."""

from typing import Final

MIB: Final = 1024 * 1024

UNAUTHENTICATED_MAX_COUNT: Final = 10
UNAUTHENTICATED_MAX_BULK: Final = 16384

BLOCK: Final = 65536  # bytes that are parsed at a time


class Limits:
    """Limits that a reader applies from its next word on, also where they have changed since it was given them.

    `authenticated` False (the password has not been given yet): at most 10 words of at most 16384 bytes.
    max_bulk_len: bytes in a word (proto-max-bulk-len).  max_count: words in a request.
    query_buffer_limit: bytes that may be unread (client-query-buffer-limit).
    at_a_glance: bytes that can be parsed without a check of the other limits, because so few cannot exceed them.
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
        """Compute at_a_glance; to be called after a change of the others."""
        self.at_a_glance = 0
        if self.authenticated and self.max_bulk_len >= BLOCK and self.max_count >= BLOCK:
            self.at_a_glance = min(BLOCK, self.query_buffer_limit)
