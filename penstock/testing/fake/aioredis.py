"""The names of `fakeredis.aioredis`."""

from penstock.testing.fake.clients import FakeAsyncConnection as FakeConnection
from penstock.testing.fake.clients import FakeAsyncRedis as FakeRedis
from penstock.testing.fake.servers import FakeServer

__all__ = ["FakeConnection", "FakeRedis", "FakeServer"]
