"""Every difference between random scripts here and in Redis that is known, one line each with its reason."""

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """Matches where each given pattern is found: in the requests' text, in Redis's reply and in ours."""

    reason: str
    requests: str = ""
    theirs: str = ""
    ours: str = ""

    def explains(self, requests: str, theirs: bytes, ours: bytes) -> bool:
        return bool(
            re.search(self.requests, requests)
            and re.search(self.theirs.encode(), theirs)
            and re.search(self.ours.encode(), ours)
        )


KNOWN: Final[tuple[KnownDifference, ...]] = (
    KnownDifference(
        "addresses of functions, tables and threads",
        "",
        *["(function|table|thread|userdata)(: |:\\s?builtin: ?)(0x|#?[0-9a-f]+)"] * 2,
    ),
)


def reason_of(requests: str, theirs: bytes, ours: bytes) -> str:
    """Why the two may differ here; empty where they may not."""
    return next((known.reason for known in KNOWN if known.explains(requests, theirs, ours)), "")
