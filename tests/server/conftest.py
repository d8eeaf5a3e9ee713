"""Fixtures for the server floor."""

import pytest

from tests.server.fakes import Hall


@pytest.fixture
def hall() -> Hall:
    """A server with the default settings and no network."""
    return Hall()
