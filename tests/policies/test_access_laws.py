"""Rights and policies: no user has the server change for it what it may not change itself (restricted_user.py)."""

import pytest

from tests.policies.restricted_user import check_history
from tests.support.seeds import seeds


@pytest.mark.parametrize("seed", seeds(3, 60))
def test_no_key_changes_that_the_user_may_not_write_but_by_the_administrators_policies(seed: int) -> None:
    check_history(seed)
