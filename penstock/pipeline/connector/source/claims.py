"""Takes over what other consumers of a group left: entries held for longer than claimMinIdle, or released (XNACK)."""

import warnings
from typing import Final

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, Reply, Request, mapping
from penstock.pipeline.connector.connection.stream_info import refused
from penstock.pipeline.connector.source.offsets import StreamOf

PENDING_PAGE: Final = 1_000
CLAIM_PAGES: Final = 10  # looked through in one trigger; the next one goes on from there
NO_GROUP: Final = b"NOGROUP"
POLICY: Final = b"penstock-policy"  # of a group, in XINFO
FATAL: Final = 2**63 - 1  # the delivery count of an entry that XNACK has declared fatal (Redis 8.8)


class Claims:
    """How far the pending lists of a group were looked through."""

    def __init__(self, group: str, min_idle_ms: int) -> None:
        self._group = group
        self._min_idle_ms = min_idle_ms
        self._claimed_up_to: dict[StreamOf, bytes] = {}
        self._by_policy: set[StreamOf] = set()  # it was warned that their policy delivers again
        self.deleted: dict[StreamOf, list[bytes]] = {}  # pending entries that were not there; the caller empties it

    def claim(self, client: Client, keys: list[bytes], consumer: str, count: int) -> dict[StreamOf, list[bytes]]:
        """Claim entries for a consumer, at most `count` of each stream; their ids.

        Fatal entries are left alone, which is why XAUTOCLAIM is not used. XPENDING's IDLE filter would skip entries
        without an owner: their idle time is -1. XCLAIM without JUSTID counts as a delivery, and leaves out the ids of
        deleted entries.
        Where a policy of Penstock delivers again (ACKWAIT), nothing is claimed; while a group holds entries back, none
        without an owner is: XPENDING does not tell which ones are held, and XCLAIM takes them before their time.
        PipelineError for a refusal; a group that is gone is reported by the next read.
        """
        least_ms, us = self._min_idle_ms, consumer.encode()
        found: dict[StreamOf, list[bytes]] = {}
        for _ in range(CLAIM_PAGES):
            places = [self._claimed_up_to.get((client.endpoint.name, key), b"-") for key in keys]
            looks: list[Request] = []
            for key, at in zip(keys, places, strict=True):
                looks += [["XINFO", "GROUPS", key], ["XPENDING", key, self._group, at, "+", PENDING_PAGE]]
            replies = client.pipeline(looks)
            more = []
            claims: list[tuple[bytes, list[bytes]]] = []
            for key, groups, page in zip(keys, replies[::2], replies[1::2], strict=True):
                if isinstance(page, ReplyError):
                    if not page.text.startswith(NO_GROUP):
                        raise refused(client, key, page)
                    continue
                stream = (client.endpoint.name, key)
                policy = self._policy(groups)
                if policy.get(b"ackwait") is not None:
                    self._leave_to_policy(stream)
                    continue
                if len(page) == PENDING_PAGE:
                    self._claimed_up_to[stream] = b"(" + page[-1][0]
                    more.append(key)
                else:
                    self._claimed_up_to.pop(stream, None)
                holds = policy.get(b"held", 0) > 0
                ready = [
                    entry_id
                    for entry_id, owner, idle_ms, deliveries in page
                    if deliveries != FATAL and (owner != us and idle_ms >= least_ms if owner else not holds)
                ]
                ready = ready[: count - len(found.get(stream, ()))]
                if ready:
                    claims.append((key, ready))
            replies = client.pipeline(
                [["XCLAIM", key, self._group, us, least_ms, *ready] for key, ready in claims], retry=False
            )
            for (key, ready), reply in zip(claims, replies, strict=True):
                if isinstance(reply, ReplyError):
                    if not reply.text.startswith(NO_GROUP):
                        raise refused(client, key, reply)
                    continue
                claimed = [entry[0] for entry in reply if entry]
                found.setdefault((client.endpoint.name, key), []).extend(claimed)
                self._look_for_deleted(client, key, sorted(set(ready) - set(claimed)))
            keys = more
            if not keys:
                break
        return found

    def _look_for_deleted(self, client: Client, key: bytes, unclaimed: list[bytes]) -> None:
        """Note the entries that XCLAIM has taken off the pending list because they are not in the stream."""
        looks = client.pipeline([["XRANGE", key, entry_id, entry_id] for entry_id in unclaimed])
        deleted = [entry_id for entry_id, entries in zip(unclaimed, looks, strict=True) if entries == []]
        if deleted:
            self.deleted.setdefault((client.endpoint.name, key), []).extend(deleted)

    def _policy(self, groups: Reply) -> dict[bytes, Reply]:
        """What XINFO GROUPS says of our group's policy and holds; empty if it has none."""
        rows = [] if isinstance(groups, ReplyError) else map(mapping, groups)
        row: dict[bytes, Reply] = next((row for row in rows if row[b"name"] == self._group.encode()), {})
        return mapping(row.get(POLICY, []))

    def _leave_to_policy(self, stream: StreamOf) -> None:
        if stream not in self._by_policy:
            self._by_policy.add(stream)
            warnings.warn(
                f"stream {stream[1].decode(errors='replace')!r}: the policy of group {self._group!r} delivers again "
                "(ACKWAIT), so claimMinIdle claims nothing there",
                stacklevel=2,
            )
