"""Rights and policies: no user has the server change for it what it may not change itself (restricted_user.py)."""

import pytest

from tests.policies.restricted_user import RestrictedUser
from tests.support.seeds import seeds

STEPS = 250


@pytest.mark.parametrize("seed", seeds(40, 400))
def test_no_key_changes_that_the_user_may_not_write_but_by_the_administrators_policies(seed: int) -> None:
    history = RestrictedUser(seed)
    for _ in range(STEPS):
        history.step()
