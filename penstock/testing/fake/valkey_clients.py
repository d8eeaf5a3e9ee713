"""fakeredis's names for clients of valkey-py, which is needed for these only."""

from typing import Any, Final

import valkey
import valkey.asyncio
from valkey.exceptions import ConnectionError as ValkeyConnectionError

from penstock.testing.connections.embedded_connections import AsyncEmbedded, BlockingEmbedded
from penstock.testing.fake.fake_client import FakeClient, FakeLink

DEFAULTS: Final[dict[str, Any]] = {"socket_timeout": None}  # as of redis-py's


class FakeValkeyConnection(FakeLink, BlockingEmbedded, valkey.Connection):
    """A blocking client's connection."""

    closed_error = ValkeyConnectionError
    defaults = DEFAULTS
    served = "valkey"


class FakeAsyncValkeyConnection(FakeLink, AsyncEmbedded, valkey.asyncio.Connection):
    """The same for asyncio."""

    defaults = DEFAULTS
    served = "valkey"


class FakeValkey(FakeClient, valkey.Valkey):
    """A blocking client of a server that passes for Valkey."""

    library = valkey.Valkey
    connection_class = FakeValkeyConnection


class FakeAsyncValkey(FakeClient, valkey.asyncio.Valkey):
    """FakeValkey for asyncio."""

    library = valkey.asyncio.Valkey
    connection_class = FakeAsyncValkeyConnection


FakeStrictValkey = FakeValkey
