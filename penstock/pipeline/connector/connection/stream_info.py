"""Which streams there are, and the counters of each from XINFO STREAM: one round trip for all keys of a server."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import compress, count
from operator import ne
from typing import Final

from penstock.errors import ReplyError
from penstock.pipeline.connector import schemas
from penstock.pipeline.connector.connection.client import Client, joined, mapping, parsed_alone, text_of
from penstock.pipeline.connector.connection.connection_options import Keys
from penstock.pipeline.errors import PipelineError
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId

SCAN_COUNT = 1_000
ABSENT = b"ERR no such key"
ABSENT_LINE: Final = b"-%b\r\n" % ABSENT
BEGINNING: Final = re.compile(rb"\*\d+\r\n\$6\r\nlength\r\n")  # of a reply to XINFO STREAM
KEPT: Final = 2_048  # bytes of a reply, on average: longer ones, which have long entries, are kept as digests
OURS = f"{schemas.MARKERS}:".encode()


@dataclass(frozen=True, slots=True)
class StreamState:
    """The counters of a stream from XINFO STREAM; an absent id is ZERO."""

    length: int
    first: StreamId
    last: StreamId  # generated, which may be deleted by now
    added: int  # ever
    max_deleted: StreamId  # by XDEL; trimming does not move it (Redis 8.6.3)

    @property
    def removed(self) -> int:
        """How many entries were ever trimmed or deleted."""
        return self.added - self.length

    @classmethod
    def of(cls, reply: object) -> "StreamState":
        fields = mapping(reply)
        first = fields[b"recorded-first-entry-id"] if fields[b"length"] else b"0-0"
        return cls(
            fields[b"length"],
            ids.parse(first),
            ids.parse(fields[b"last-generated-id"]),
            fields[b"entries-added"],
            ids.parse(fields[b"max-deleted-entry-id"]),
        )


def find_keys(client: Client, keys: Keys) -> list[bytes]:
    """The streams' keys, in order: those that are named, or those that the pattern finds now.

    The sink's marker streams are left out unless the pattern begins like them: else a query that reads `*` and writes
    to the same server would read its own markers, for ever.
    """
    if keys.pattern is None:
        return [name.encode() for name in keys.names]
    found = client.scan("MATCH", keys.pattern, "COUNT", SCAN_COUNT, "TYPE", "stream")
    if not keys.pattern.startswith(schemas.MARKERS):
        found = {key for key in found if not key.startswith(OURS)}
    return sorted(found)


def stream_states(client: Client, keys: Iterable[bytes]) -> dict[bytes, StreamState]:
    """The state of every key that exists; PipelineError for a key that is no stream."""
    keys = list(keys)
    states = {}
    for key, reply in zip(keys, client.pipeline([["XINFO", "STREAM", key] for key in keys]), strict=True):
        if isinstance(reply, ReplyError):
            if reply.text.startswith(ABSENT):
                continue
            raise refused(client, key, reply)
        states[key] = StreamState.of(reply)
    return states


class StreamLooks:
    """The states of the streams at one server. A look is one round trip, and parses what changed since the last one.

    Replies are compared as bytes: ten thousand streams in which nothing happens cost no parsing.
    """

    def __init__(self) -> None:
        self.states: dict[bytes, StreamState] = {}  # of the keys that exist
        self._keys: list[bytes] = []
        self._groups: list[tuple[list[bytes], bytes]] = []  # keys of one node, and the requests about them
        self._replies: dict[bytes, bytes] = {}

    def look(self, client: Client, keys: list[bytes]) -> set[bytes]:
        """Ask for the state of every key; the keys with another state. PipelineError for a key that is no stream."""
        changed: set[bytes] = set()
        if keys is not self._keys:
            changed = (self._replies.keys() | self.states.keys()) - set(keys)
            for key in changed:
                self._forget(key)
            self._keys = keys
        by_node = client.by_node(keys, bytes)
        if by_node != [some for some, _ in self._groups]:
            self._groups = [(some, joined(["XINFO", "STREAM", key] for key in some)) for some in by_node if some]
        for some, requests in self._groups:
            taken = self._take(some, bytes(client.framed(requests)))
            changed |= self._take_all(client, some) if taken is None else taken
        return changed

    def _take(self, keys: list[bytes], replies: bytes) -> set[bytes] | None:
        """The keys whose replies are other ones; None if it is not certain where each reply ends."""
        begin = BEGINNING.search(replies)
        beginning = b"" if begin is None else begin.group()
        found = _divided(replies, beginning, len(keys))
        if len(found) != len(keys):
            return None
        kept = found if len(replies) <= KEPT * len(keys) else [blake2b(reply).digest() for reply in found]
        known = self._replies
        changed = list(compress(count(), map(ne, kept, map(known.get, keys))))
        for number in changed:
            key, reply = keys[number], found[number]
            if reply == ABSENT_LINE:
                self.states.pop(key, None)
            else:
                whole = parsed_alone(beginning + reply)
                if not isinstance(whole, list):
                    return None
                self.states[key] = StreamState.of(whole)
            known[key] = kept[number]
        return {keys[number] for number in changed}

    def _take_all(self, client: Client, keys: list[bytes]) -> set[bytes]:
        """Ask again, and parse every reply. Some may be refusals, or have entries that look like replies."""
        states = stream_states(client, keys)
        for key in keys:
            self._forget(key)
        self.states |= states
        return set(keys)

    def _forget(self, key: bytes) -> None:
        self._replies.pop(key, None)
        self.states.pop(key, None)


def _divided(replies: bytes, beginning: bytes, wanted: int) -> list[bytes]:
    """Replies to XINFO STREAM one by one, without their common beginning, if there are as many as are wanted.

    An entry may have bytes in it that look like a reply. So a caller parses each, once: it has to be whole. If as many
    are found as were asked for, and each of them is whole, they are the replies: none begins with another whole one.
    """
    parts = replies.split(beginning) if beginning else [replies]
    if len(parts) == wanted + 1 and not parts[0]:
        return parts[1:]
    found: list[bytes] = []
    for number, part in enumerate(parts):
        end = len(part)
        while part.endswith(ABSENT_LINE, 0, end):
            end -= len(ABSENT_LINE)
        if number or end:
            found.append(part[:end])
        found += [ABSENT_LINE] * ((len(part) - end) // len(ABSENT_LINE))
    return found


def refused(client: Client, key: bytes, refusal: ReplyError) -> PipelineError:
    """A server's error reply about a key, as an error for the user."""
    name = key.decode(errors="replace")
    return PipelineError(f"{client.endpoint.address}: key {name!r}: {text_of(refusal)}")
