"""fakeredis's names over embedded servers: a suite changes its import, and keeps the rest.

from penstock.testing import fake as fakeredis
"""

from penstock.testing.fake import aioredis
from penstock.testing.fake.clients import (
    FakeAsyncConnection,
    FakeAsyncRedis,
    FakeConnection,
    FakeRedis,
    FakeServer,
    FakeStrictRedis,
)
from penstock.testing.fake.tcp_server import TcpFakeServer

__all__ = [
    "FakeAsyncConnection",
    "FakeAsyncRedis",
    "FakeConnection",
    "FakeRedis",
    "FakeServer",
    "FakeStrictRedis",
    "TcpFakeServer",
    "aioredis",
]
