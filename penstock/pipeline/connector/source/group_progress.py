"""`groupMode=cursor`: publishes a query's progress as a consumer group's last-delivered id, so that XINFO shows lag."""

import warnings

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, Request, mapping, text_of
from penstock.pipeline.connector.source.offsets import Position
from penstock.pipeline.errors import PipelineError
from penstock.storage.streams import ids


def refuse_shared_group(client: Client, group: str, keys: list[bytes]) -> None:
    """PipelineError if the group has consumers or pending entries: moving it would make its consumers miss entries."""
    for key, reply in zip(keys, client.pipeline([["XINFO", "GROUPS", key] for key in keys]), strict=True):
        for pairs in () if isinstance(reply, ReplyError) else reply:
            one = mapping(pairs)
            if one[b"name"] == group.encode() and (one[b"consumers"] or one[b"pending"]):
                raise PipelineError(
                    f"{client.endpoint.address}: group {group!r} of stream {key.decode(errors='replace')!r} has "
                    f"{one[b'consumers']} consumers and {one[b'pending']} pending entries: as a cursor it needs to be "
                    "this query's own (groupMode=shared takes part in it; groupForce=true moves it all the same)"
                )


def publish(client: Client, group: str, places: dict[bytes, Position]) -> None:
    """Set each stream's group to a position, creating it if needed. Failures are warnings: nothing depends on it."""
    try:
        replies = client.pipeline([_move("SETID", key, group, place) for key, place in places.items()])
        absent = [
            (key, place)
            for (key, place), reply in zip(places.items(), replies, strict=True)
            if isinstance(reply, ReplyError) and reply.text.startswith(b"NOGROUP")
        ]
        replies += client.pipeline([_move("CREATE", key, group, place) for key, place in absent])
        for key, reply in zip((*places, *(key for key, _ in absent)), replies, strict=True):
            if isinstance(reply, ReplyError) and not reply.text.startswith((b"NOGROUP", b"ERR The XGROUP subcommand")):
                where = f"{client.endpoint.address}: stream {key.decode(errors='replace')!r}"
                warnings.warn(f"{where}: group {group!r} was not moved: {text_of(reply)}", stacklevel=2)
    except PipelineError as failure:
        warnings.warn(f"group {group!r} was not moved: {failure}", stacklevel=2)


def _move(subcommand: str, key: bytes, group: str, place: Position) -> Request:
    read: list[str | int] = [] if place.added is None else ["ENTRIESREAD", place.added]
    return ["XGROUP", subcommand, key, group, ids.text(place.id), *read]
