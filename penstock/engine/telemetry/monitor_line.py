"""A request as MONITOR shows it."""

from typing import Final

from penstock.engine.session import Session
from penstock.engine.table.known_commands import KnownCommands
from penstock.engine.table.row import Row
from penstock.engine.telemetry.redaction import redacted
from penstock.protocol import reply

_ESCAPES: Final = {0x22: '\\"', 0x5C: "\\\\", 0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x07: "\\a", 0x08: "\\b"}


_SHOWN: Final = tuple(
    _ESCAPES.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}") for byte in range(256)
)


def is_shown(row: Row) -> bool:
    """Commands for administrators are kept from MONITOR."""
    return "admin" not in row.flags


def quoted(word: bytes) -> str:
    """A word between double quotes, what cannot be printed as an escape."""
    return '"' + "".join([_SHOWN[byte] for byte in word]) + '"'


def line(
    commands: KnownCommands, session: Session, db_index: int, row: Row, request: list[bytes], now_us: int
) -> bytes:
    """The reply that a monitor gets: `+1795300000.123456 [0 127.0.0.1:55732] "set" "a" "1"`."""
    seconds, micros = divmod(now_us, 1_000_000)
    address = f"unix:{session.address}" if session.unix_socket else session.address
    shown = " ".join([quoted(word) for word in redacted(commands, row, request)])
    return reply.simple(f"{seconds}.{micros:06d} [{db_index} {address}] {shown}".encode())
