"""Errors in an RDB file or a payload."""

from typing import Final

LONGEST_NAME: Final = 100  # bytes of a key that are shown


class BadRdb(Exception):
    """Bytes that are no RDB; the text says to a person what was found. Nothing was changed when it is raised."""


class EmptyValue(BadRdb):
    """A collection of nothing: a file's reader leaves its key out, RESTORE refuses it."""


def shown(key: bytes) -> str:
    """A key's name for a person, cut if it is long."""
    more = "..." if len(key) > LONGEST_NAME else ""
    return repr(key[:LONGEST_NAME].decode("utf-8", "backslashreplace")) + more


def in_key(key: bytes, db_index: int) -> str:
    return f"the key {shown(key)} in database {db_index}"


def correction(key: bytes, db_index: int, corrections: list[str]) -> str:
    """A sentence about a correction in a value, without a full stop."""
    return f"{in_key(key, db_index)} was corrected: {'; '.join(corrections)}"
