"""Notices two queries that read a group as one consumer: each would take, and acknowledge, what the other has to do.

The server cannot tell them apart by their requests. So a driver subscribes to a channel that is named by the group and
the consumer; PUBSUB NUMSUB says how many do, at each node of a cluster for itself. A driver that dies is not among them
any more; if its machine died, it is among them until the server notices: twice tcp-keepalive (Redis 8.6, redis.conf).
"""

import warnings
from typing import Final

from penstock.errors import ReplyError
from penstock.pipeline.connector import schemas
from penstock.pipeline.connector.connection.client import Client, now_s, pause_s, text_of
from penstock.pipeline.connector.connection.connection_pool import Connections
from penstock.pipeline.errors import PipelineError

LOOK_EVERY_S: Final = 10.0
PAUSE_S: Final = 0.2


class SoleConsumer:
    """A query's name in a group, at each of its servers."""

    def __init__(self, group: str, consumer: str, patience_s: float) -> None:
        """`patience_s`: how long another one is waited for, which may be the connection of a driver that died."""
        self._consumer = consumer
        self._group = group
        self._channel = f"{schemas.MARKERS}:consumer:{group}:{consumer}"
        self._patience_s = patience_s
        self._due_s: float | None = None
        self._may_look = True

    def check(self, connections: Connections) -> None:
        """PipelineError if another query reads as this consumer. A round trip or two, every LOOK_EVERY_S."""
        if not self._may_look or (self._due_s is not None and now_s() < self._due_s):
            return
        own = 0 if self._due_s is None else 1
        try:
            for name, client in connections.asking.items():
                self._await(client, own)
                connections.named[name].messages(self._channel)
                self._await(client, 1)
        except ReplyError as refusal:
            self._may_look = False
            warnings.warn(
                f"it cannot be seen whether another query reads group {self._group!r} as {self._consumer!r}, which "
                f"would lose entries: {text_of(refusal)}",
                stacklevel=2,
            )
        self._due_s = now_s() + LOOK_EVERY_S

    def _await(self, client: Client, most: int) -> None:
        """Wait until at most so many queries have the name."""
        end_s = now_s() + self._patience_s
        while sum(node.call("PUBSUB", "NUMSUB", self._channel)[1] for node in client.nodes()) > most:
            if now_s() >= end_s:
                raise PipelineError(
                    f"{client.endpoint.address}: another query reads group {self._group!r} as {self._consumer!r}: both "
                    "would take and acknowledge what the other has to do. Give each its own 'consumer', or none. "
                    "(If a driver's machine has died, its connection has the name for up to twice the server's "
                    "tcp-keepalive, 600 s by default. CLIENT LIST TYPE pubsub shows its address; CLIENT KILL ends it)"
                )
            pause_s(PAUSE_S)
