"""What producers, workers and the director share: names of keys, a connection, and what losing it looks like."""

from typing import Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

STREAM: Final = "flights"
GROUP: Final = "desk"

RECONNECT_S: Final = 0.25

LOST = (redis.ConnectionError, redis.TimeoutError)


def connect(port: int, name: str) -> redis.Redis:
    """A client that connects at its first request, and again at the first one after a loss.

    The library's own retries are off: a pipeline that it sends again is a flight sent twice.
    """
    return redis.Redis(
        port=port,
        client_name=name,
        decode_responses=True,
        retry=Retry(NoBackoff(), 0),
        socket_timeout=20,
    )
