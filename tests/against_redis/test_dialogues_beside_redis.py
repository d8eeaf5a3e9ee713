"""Seeded random dialogues of several clients: each is sent what a real Redis sends it."""

from collections.abc import Iterator

import pytest

from tests.against_redis.conftest import Reference
from tests.against_redis.dialogues import compare
from tests.against_redis.talkers import Cluster, Hindered, Tracking
from tests.support.compared_sides import known_by
from tests.support.reference_server import NoReference, reference_cluster
from tests.support.seeds import seeds


@pytest.fixture(scope="module")
def cluster_port() -> Iterator[int]:
    try:
        with reference_cluster() as port:
            yield port
    except NoReference as absence:
        pytest.skip(str(absence))


@pytest.mark.parametrize("seed", seeds(1, 4))
def test_clients_that_track_keys_are_told_what_redis_tells(reference: Reference, seed: int) -> None:
    _, difference = compare(reference.port, reference.known, f"tracking {seed}", 3000, Tracking)

    assert difference == ""


@pytest.mark.parametrize("seed", seeds(1, 4))
def test_a_server_refuses_for_its_state_what_redis_refuses(reference: Reference, seed: int) -> None:
    _, difference = compare(reference.port, reference.known, f"hindered {seed}", 3000, Hindered)

    assert difference == ""


@pytest.mark.parametrize("seed", seeds(1, 4))
def test_clients_of_a_cluster_of_one_are_answered_as_by_redis(cluster_port: int, seed: int) -> None:
    _, difference = compare(cluster_port, known_by(cluster_port), f"cluster {seed}", 3000, Cluster)

    assert difference == ""
