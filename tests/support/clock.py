"""The time at which tests begin, as unix milliseconds."""

NOW_MS = 1_795_300_000_000
