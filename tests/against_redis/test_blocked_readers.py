"""Random scenes with several clients: readers are woken, failed and passed over as by a real Redis."""

import pytest

from tests.against_redis import blocked_clients
from tests.against_redis.conftest import Reference

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(4))
def test_waiting_readers_get_what_redis_gives_them(waking_reference: Reference, seed: int) -> None:
    _, difference = blocked_clients.compare(waking_reference.port, waking_reference.known, 0, f"test {seed}", 30)

    assert difference == ""


def test_a_server_process_wakes_its_readers_as_redis_does(waking_reference: Reference, penstock_port: int) -> None:
    _, difference = blocked_clients.compare(waking_reference.port, waking_reference.known, penstock_port, "process", 30)

    assert difference == ""
