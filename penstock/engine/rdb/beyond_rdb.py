"""Data that no known RDB format can hold: written as requests, in a field of the file that a Redis skips.

Redis 8.12 has formats for them, but no such file was available, and a guessed format is not written.
"""

from typing import Final

from penstock.engine.aof import rewrite_values
from penstock.protocol import reply
from penstock.storage.keyspace import Keyspace
from penstock.storage.types.sets import Set

AUX_FIELD: Final = b"penstock-requests"


def of_keyspace(keyspace: Keyspace) -> bytes:
    """The requests that add it to what the file has; empty if there is none. O(keys that have such things)."""
    parts: list[bytes] = []
    for index, db in enumerate(keyspace.databases):
        lines = [rewrite_values.blessing_line(key, is_known=True) for key in db.blessed]
        for key in db.parts_due.times:
            value = db.values[key]
            if isinstance(value, Set):
                lines += rewrite_values.member_time_lines(key, value, is_known=True)
        if lines:
            parts += [reply.bulks([b"SELECT", b"%d" % index]), *lines]
    return b"".join(parts)
