"""What an audit looks at, in its order: the checks of journals against a log, and which of them must find nothing.

An entry is lost if a producer was told of its id and the log has no such XADD, or if it left its group's pending list
(or never entered it) without a worker that says it was processed. What need not be zero is told, not judged: work that
is done again after a redelivery is what at-least-once means.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    must_be_zero: bool


CHECKS: Final = (
    Check("entries in the log", False),
    Check("processed", False),
    Check("delivered again", False),
    Check("given back (XNACK)", False),
    Check("processed again", False),
    Check("lost: a producer was told, the log has none", True),
    Check("lost: not pending, and never processed", True),
    Check("sent twice", True),
    Check("out of order: a producer's later entry has a lower id", True),
    Check("processed twice without a redelivery", True),
    Check("delivered after its acknowledgement, by the log", True),
    Check("delivered after its acknowledgement, by the journals", True),
    Check("acknowledged and never processed", True),
    Check("left pending", True),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """How many entries a check has found, and the id of one; None where there is none."""

    check: Check
    entries: int
    example: str | None

    @property
    def is_a_fault(self) -> bool:
        return self.check.must_be_zero and self.entries > 0
