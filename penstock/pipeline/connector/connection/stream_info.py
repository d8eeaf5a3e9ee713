"""Which streams there are, and the counters of each from XINFO STREAM: one round trip for all keys of a server."""

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.errors import ReplyError
from penstock.pipeline.connector import schemas
from penstock.pipeline.connector.connection.client import Client, mapping, text_of
from penstock.pipeline.connector.connection.connection_options import Keys
from penstock.pipeline.errors import PipelineError
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId

SCAN_COUNT = 1_000
ABSENT = b"ERR no such key"
OURS = f"{schemas.MARKERS}:".encode()


@dataclass(frozen=True, slots=True)
class StreamState:
    """The counters of a stream from XINFO STREAM; an absent id is ZERO."""

    length: int
    first: StreamId
    last: StreamId  # generated, which may be deleted by now
    added: int  # ever
    max_deleted: StreamId  # by XDEL; trimming does not move it (Redis 8.6.3)

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


def refused(client: Client, key: bytes, refusal: ReplyError) -> PipelineError:
    """A server's error reply about a key, as an error for the user."""
    name = key.decode(errors="replace")
    return PipelineError(f"{client.endpoint.address}: key {name!r}: {text_of(refusal)}")
