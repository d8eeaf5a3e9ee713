"""fakeredis's names over embedded servers: a suite changes its import, and keeps the rest.

from penstock.testing import fake as fakeredis
"""

from importlib import import_module
from typing import Any

from penstock.testing.fake import aioredis
from penstock.testing.fake.clients import (
    FakeAsyncConnection,
    FakeAsyncRedis,
    FakeAsyncRedisConnection,
    FakeConnection,
    FakeRedis,
    FakeRedisConnection,
    FakeStrictRedis,
)
from penstock.testing.fake.servers import FakeServer
from penstock.testing.fake.tcp_server import TcpFakeServer

__all__ = [
    "FakeAsyncConnection",
    "FakeAsyncRedis",
    "FakeAsyncRedisConnection",
    "FakeConnection",
    "FakeRedis",
    "FakeRedisConnection",
    "FakeServer",
    "FakeStrictRedis",
    "TcpFakeServer",
    "aioredis",
]


def __getattr__(name: str) -> Any:
    """The names of valkey_clients, which needs valkey-py."""
    if "Valkey" not in name:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.valkey_clients"), name)
