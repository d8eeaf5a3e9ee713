"""The streams and groups of any Redis-compatible server, asked for by its commands."""

from typing import Any, Final, NamedTuple

import hiredis

from penstock.errors import UsageError
from penstock.wire_client import WireClient, info_fields

MOST_STREAMS: Final = 200
SCANNED: Final = b"1000"  # keys a SCAN
SCANS: Final = 20  # of a survey


class GroupState(NamedTuple):
    """One group. `lag` is None where the server does not know it; `oldest_idle_ms` where nothing is pending."""

    stream: str
    name: str
    consumers: int
    pending: int
    lag: int | None
    oldest_idle_ms: int | None


class StreamState(NamedTuple):
    """One stream; `added` counts the entries that were ever added."""

    name: str
    length: int
    added: int


class Survey(NamedTuple):
    """INFO's fields, streams by name, and their groups."""

    fields: dict[str, str]
    streams: list[StreamState]
    groups: list[GroupState]


def take(client: WireClient) -> Survey:
    """Ask a server; at most MOST_STREAMS streams are asked for. UsageError where it refuses."""
    info = client.ask(b"INFO")
    if not isinstance(info, bytes):
        raise UsageError(str(info))
    streams: list[StreamState] = []
    groups: list[GroupState] = []
    for key in sorted(_keys(client))[:MOST_STREAMS]:
        fields = _fields(client.ask(b"XINFO", b"STREAM", key))
        if fields:
            name = _text(key)
            streams.append(StreamState(name, fields[b"length"], fields.get(b"entries-added", fields[b"length"])))
            groups += _groups(client, key)
    return Survey(info_fields(info), streams, groups)


def _keys(client: WireClient) -> set[bytes]:
    """The streams' names, as far as SCANS calls of SCAN meet them.

    A Penstock with many keys puts them in order first: meanwhile the cursor stays where it is.
    """
    found: set[bytes] = set()
    cursor, calls = b"0", 0
    while calls < SCANS:
        before = cursor
        reply = client.ask(b"SCAN", cursor, b"COUNT", SCANNED, b"TYPE", b"stream")
        if not isinstance(reply, list):
            raise UsageError(str(reply))
        cursor = reply[0]
        found.update(reply[1])
        if cursor == b"0":
            break
        calls += cursor != before
    return found


def _groups(client: WireClient, key: bytes) -> list[GroupState]:
    listed = client.ask(b"XINFO", b"GROUPS", key)
    groups = []
    for one in listed if isinstance(listed, list) else ():
        fields = _fields(one)
        idle_ms = _oldest_idle_ms(client, key, fields[b"name"]) if fields[b"pending"] else None
        groups.append(
            GroupState(
                _text(key),
                _text(fields[b"name"]),
                fields[b"consumers"],
                fields[b"pending"],
                fields.get(b"lag"),
                idle_ms,
            )
        )
    return groups


def _oldest_idle_ms(client: WireClient, key: bytes, group: bytes) -> int | None:
    """The idle time of the pending entry with the smallest id."""
    found = client.ask(b"XPENDING", key, group, b"-", b"+", b"1")
    return int(found[0][2]) if isinstance(found, list) and found else None


def _fields(reply: Any) -> dict[bytes, Any]:
    """A flat array of names and values as a dict; empty for an error (the stream is gone)."""
    if isinstance(reply, hiredis.ReplyError) or not isinstance(reply, list):
        return {}
    return dict(zip(reply[::2], reply[1::2], strict=True))


def _text(name: bytes) -> str:
    return name.decode(errors="backslashreplace")
