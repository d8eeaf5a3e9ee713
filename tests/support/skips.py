"""What a run says at its end of the tests that it skipped."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

COMMAND = re.compile(r"run `([^`]+)`")
REASONS_SHOWN = 8


def skip_lines(reasons: Iterable[str]) -> Iterator[str]:
    """How many tests were skipped, for which reasons, and the command that fetches what is missing; none: no line.

    A reason that knows its command has it as "run `COMMAND`".
    """
    counts = Counter(reason.removeprefix("Skipped: ") for reason in reasons)
    if not counts:
        return
    yield f"{counts.total()} skipped:"
    for reason, count in counts.most_common(REASONS_SHOWN):
        yield f"  {count:5} {reason}"
    if len(counts) > REASONS_SHOWN:
        yield f"        and {len(counts) - REASONS_SHOWN} more reasons (pytest -rs)"
    commands = sorted({found[1] for reason in counts if (found := COMMAND.search(reason))})
    if commands:
        yield f"  to run more of them: {' && '.join(commands)}"
