"""Seeded random requests about hashes and sets, answered, kept and logged as a real Redis does."""

from typing import Any

import pytest

from tests.against_redis.conftest import Reference
from tests.against_redis.makers.anything import Anything
from tests.against_redis.makers.hashes import Hashes
from tests.against_redis.makers.sets import Sets
from tests.against_redis.typed import compare_types


@pytest.mark.parametrize("maker", [Hashes, Sets])
def test_requests_about_hashes_and_sets_are_answered_as_by_redis(reference: Reference, maker: Any) -> None:
    makers = (Anything, maker)
    _, difference = compare_types(reference.piped, reference.known, maker.kind, 4000, makers)

    assert difference == ""
