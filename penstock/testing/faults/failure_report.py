"""The part about the server in the report of a failed test."""

from typing import Final

from penstock.storage.streams.stream import Stream
from penstock.testing.embedded import Server

GROUPS_SHOWN: Final = 20
REQUESTS_SHOWN: Final = 20


def requests_text(server: Server) -> str:
    """The last requests and replies, one a line."""
    return "\n".join([str(one) for one in server.trace.exchanges[-REQUESTS_SHOWN:]]) or "none"


def groups_text(server: Server) -> str:
    """One line for each group of each stream: length, lag, pending entries, consumers."""
    lines = []
    for index, db in enumerate(server.engine.keyspace.databases):
        for key, value in db.values.items():
            if isinstance(value, Stream):
                lines += [_line(index, key, value, name) for name in value.groups]
    left_out = [f"and {len(lines) - GROUPS_SHOWN} more"] if len(lines) > GROUPS_SHOWN else []
    return "\n".join(lines[:GROUPS_SHOWN] + left_out) or "none"


def _line(index: int, key: bytes, stream: Stream, name: bytes) -> str:
    group = stream.groups[name]
    consumers = ", ".join(
        [f"{one.name.decode(errors='replace')} {one.pending}" for one in group.consumers_by_name()[:GROUPS_SHOWN]]
    )
    lag = stream.lag(group)
    return (
        f"db{index} {key.decode(errors='replace')} {name.decode(errors='replace')}: length {stream.length},"
        f" lag {'unknown' if lag is None else lag}, pending {group.pel.count} ({consumers or 'no consumers'})"
    )
