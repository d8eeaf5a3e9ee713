"""Takes over what other consumers of a group left: entries held for longer than claimMinIdle, or released (XNACK)."""

from typing import Final

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, Request
from penstock.pipeline.connector.source.offsets import StreamOf

PENDING_PAGE: Final = 1_000
CLAIM_PAGES: Final = 10  # looked through in one trigger; the next one goes on from there
FATAL: Final = 2**63 - 1  # the delivery count of an entry that XNACK has declared fatal (Redis 8.8)


class Claims:
    """How far the pending lists of a group were looked through."""

    def __init__(self, group: str, min_idle_ms: int) -> None:
        self._group = group
        self._min_idle_ms = min_idle_ms
        self._claimed_up_to: dict[StreamOf, bytes] = {}

    def claim(self, client: Client, keys: list[bytes], consumer: str, count: int) -> dict[StreamOf, list[bytes]]:
        """Claim entries for a consumer, at most `count` of each stream; their ids.

        Fatal entries are left alone, which is why XAUTOCLAIM is not used. XPENDING's IDLE filter would skip entries
        without an owner: their idle time is -1. XCLAIM without JUSTID counts as a delivery, and leaves out the ids of
        deleted entries.
        """
        least_ms, us = self._min_idle_ms, consumer.encode()
        found: dict[StreamOf, list[bytes]] = {}
        for _ in range(CLAIM_PAGES):
            places = [self._claimed_up_to.get((client.endpoint.name, key), b"-") for key in keys]
            pages = client.pipeline(
                [["XPENDING", key, self._group, at, "+", PENDING_PAGE] for key, at in zip(keys, places, strict=True)]
            )
            more = []
            claims: list[tuple[bytes, Request]] = []
            for key, page in zip(keys, pages, strict=True):
                if isinstance(page, ReplyError):
                    continue
                stream = (client.endpoint.name, key)
                if len(page) == PENDING_PAGE:
                    self._claimed_up_to[stream] = b"(" + page[-1][0]
                    more.append(key)
                else:
                    self._claimed_up_to.pop(stream, None)
                ready = [
                    row[0] for row in page if row[3] != FATAL and (not row[1] or (row[1] != us and row[2] >= least_ms))
                ]
                ready = ready[: count - len(found.get(stream, ()))]
                if ready:
                    claims.append((key, ["XCLAIM", key, self._group, us, least_ms, *ready]))
            replies = client.pipeline([words for _, words in claims], retry=False)
            for (key, _), reply in zip(claims, replies, strict=True):
                if isinstance(reply, ReplyError):
                    continue
                found.setdefault((client.endpoint.name, key), []).extend(entry[0] for entry in reply if entry)
            keys = more
            if not keys:
                break
        return found
