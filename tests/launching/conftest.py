"""What the tests of `penstock cluster` have in common: clusters that the tests of a module share."""

from collections.abc import Iterator

import pytest

import penstock


@pytest.fixture(scope="module")
def cluster() -> Iterator[penstock.Cluster]:
    """Three nodes."""
    with penstock.Cluster(nodes=3) as found:
        yield found


@pytest.fixture(scope="module")
def replicated() -> Iterator[penstock.Cluster]:
    """Two nodes, and a replica of each."""
    with penstock.Cluster(nodes=2, replicas=1) as found:
        yield found
