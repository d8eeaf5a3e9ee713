"""Pages of limited size: how many entries to ask for is known from what the last page weighed.

No command limits a reply by its bytes. So the first page is short, and one that is too long, because long entries
follow short ones, is not received to its end, but requested again with fewer entries.
"""

from collections.abc import Sequence
from typing import Final

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, Request, TooLong, joined
from penstock.pipeline.connector.connection.stream_info import refused
from penstock.pipeline.connector.source.entry_pages import Page, decode

MOST_REQUESTS: Final = 500  # in one round trip
FIRST: Final = 4  # entries of the first page
ENTRY: Final = b"\r\n*2\r\n$"  # what an entry begins with, behind another one


class PageRequests:
    """Asks one server for pages of at most `most` entries and `fetch_bytes`, unless a single entry has more.

    `entries` is how many the next page may have, `mean_bytes` what those of the last one have; each page changes them.
    """

    def __init__(self, client: Client, most: int, fetch_bytes: int) -> None:
        self._client = client
        self._most = most
        self._bytes = fetch_bytes
        self._usual = fetch_bytes // 2  # entries differ, and their columns take as much again
        self.entries = min(FIRST, most)
        self.mean_bytes = 0

    def page(self, requests: Sequence[Request], key: bytes) -> Page | None:
        """The entries that these requests (XRANGE) reply; None if they are too long: `entries` is less then.

        A page of one entry is never too long. PipelineError for a refusal, with the key.
        """
        try:
            replies = self._client.framed(joined(requests), self._bytes if self.entries > 1 else None)
        except TooLong as reason:
            (received,) = reason.args
            fitting = self._usual * received.count(ENTRY) // len(received)
            self.entries = max(min(fitting, self.entries // 2), 1)
            return None
        try:
            page = decode(replies, len(requests))
        except ReplyError as refusal:
            raise refused(self._client, key, refusal) from None
        if len(page):
            self.mean_bytes = max(len(replies) // len(page), 1)
            self.entries = max(min(self._usual // self.mean_bytes, self._most), 1)
        return page

    def ask_ahead(self, requests: Sequence[Request]) -> None:
        """Send the requests of the next page, which must be these, so that the server works on them meanwhile."""
        self._client.send_ahead(joined(requests))
