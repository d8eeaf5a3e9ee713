"""fakeredis's names for clients of redis-py."""

import redis
import redis.asyncio

from penstock.testing.connections.redis_py import DEFAULTS, AsyncEmbeddedConnection, EmbeddedConnection
from penstock.testing.fake.fake_client import FakeClient, FakeLink


class FakeConnection(FakeLink, EmbeddedConnection):
    """A blocking client's connection."""

    defaults = DEFAULTS


class FakeAsyncConnection(FakeLink, AsyncEmbeddedConnection):
    """The same for asyncio."""

    defaults = DEFAULTS


class FakeRedis(FakeClient, redis.Redis):
    """A blocking client."""

    library = redis.Redis
    connection_class = FakeConnection


class FakeAsyncRedis(FakeClient, redis.asyncio.Redis):  # type: ignore[misc]  # redis-py's types disagree
    """FakeRedis for asyncio."""

    library = redis.asyncio.Redis
    connection_class = FakeAsyncConnection


FakeStrictRedis = FakeRedis
FakeRedisConnection = FakeConnection
FakeAsyncRedisConnection = FakeAsyncConnection
