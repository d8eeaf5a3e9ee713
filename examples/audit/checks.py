"""What an audit looks at, in its order: the checks of journals against a log, and which of them must find nothing.

An entry is lost if a producer was told of its id and the log has no such XADD, or if it left its group's pending list
(or never entered it) without a worker that says it was processed. What need not be zero is told, not judged: work that
is done again after a redelivery is what at-least-once means.
"""

from dataclasses import dataclass
from typing import Final

ENTRIES: Final = "entries"
PROCESSED: Final = "processed"
DELIVERED_AGAIN: Final = "delivered_again"
GIVEN_BACK: Final = "given_back"
PROCESSED_AGAIN: Final = "processed_again"
NOT_IN_LOG: Final = "not_in_log"
NEVER_PROCESSED: Final = "never_processed"
SENT_TWICE: Final = "sent_twice"
OUT_OF_ORDER: Final = "out_of_order"
PROCESSED_TWICE: Final = "processed_twice"
AFTER_ACK_BY_LOG: Final = "after_ack_by_log"
AFTER_ACK_BY_JOURNALS: Final = "after_ack_by_journals"
ACKED_ONLY: Final = "acked_only"
LEFT_PENDING: Final = "left_pending"


@dataclass(frozen=True, slots=True)
class Check:
    key: str
    name: str
    must_be_zero: bool


CHECKS: Final = (
    Check(ENTRIES, "entries in the log", False),
    Check(PROCESSED, "processed", False),
    Check(DELIVERED_AGAIN, "delivered again", False),
    Check(GIVEN_BACK, "given back (XNACK)", False),
    Check(PROCESSED_AGAIN, "processed again", False),
    Check(NOT_IN_LOG, "lost: a producer was told, the log has none", True),
    Check(NEVER_PROCESSED, "lost: not pending, and never processed", True),
    Check(SENT_TWICE, "sent twice", True),
    Check(OUT_OF_ORDER, "out of order: a producer's later entry has a lower id", True),
    Check(PROCESSED_TWICE, "processed twice without a redelivery", True),
    Check(AFTER_ACK_BY_LOG, "delivered after its acknowledgement, by the log", True),
    Check(AFTER_ACK_BY_JOURNALS, "delivered after its acknowledgement, by the journals", True),
    Check(ACKED_ONLY, "acknowledged and never processed", True),
    Check(LEFT_PENDING, "left pending", True),
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
