"""Random rules of a user, and requests in the user's name, as a real Redis takes and judges them."""

import random
from contextlib import closing

import pytest

from tests.against_redis.access_requests import AccessRequests, Both, begin, differences
from tests.against_redis.conftest import Reference
from tests.support.seeds import seeds

CHANGES = 25
REQUESTS = 20


@pytest.mark.parametrize("seed", seeds(2, 20))
def test_rules_are_taken_shown_and_applied_as_in_redis(reference: Reference, seed: int) -> None:
    with closing(Both(reference.port)) as both:
        made = AccessRequests(random.Random(seed), both.engine, both.known())
        begin(both)
        found = [difference for _ in range(CHANGES) for difference in differences(both, made, REQUESTS)]

    assert "\n".join(found) == ""
