"""Random scenes with several clients that wait for lists and sorted sets, served as by a real Redis."""

import pytest

from tests.against_redis import blocked_clients
from tests.against_redis.conftest import Reference
from tests.against_redis.queue_scenes import QueueScenes

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(4))
def test_waiting_clients_get_what_redis_gives_them(waking_reference: Reference, seed: int) -> None:
    known = waking_reference.known
    _, difference = blocked_clients.compare(waking_reference.port, known, 0, f"test {seed}", 30, QueueScenes)

    assert difference == ""


def test_a_server_process_serves_its_waiting_clients_as_redis_does(
    waking_reference: Reference, penstock_port: int
) -> None:
    known = waking_reference.known
    _, difference = blocked_clients.compare(waking_reference.port, known, penstock_port, "process", 30, QueueScenes)

    assert difference == ""
