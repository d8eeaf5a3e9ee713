"""Fixtures for the log's tests."""

import pytest

from tests.server.durability.servers import Server


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def everysec() -> Server:
    return Server(appendfsync="everysec")
