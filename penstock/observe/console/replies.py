"""Reading the server's replies."""

from typing import Any

import hiredis

from penstock.wire_client import info_fields


class RefusedByServer(Exception):
    """The server answered with an error."""


def checked(reply: Any) -> Any:
    """The reply, or RefusedByServer."""
    if isinstance(reply, hiredis.ReplyError):
        raise RefusedByServer(str(reply))
    return reply


def fields_of(reply: Any) -> dict[bytes, Any]:
    """A flat array of names and values as a dict. RefusedByServer."""
    flat = checked(reply)
    return dict(zip(flat[::2], flat[1::2], strict=True))


def info_of(reply: Any) -> dict[str, str]:
    """INFO's fields. RefusedByServer."""
    return info_fields(checked(reply))
