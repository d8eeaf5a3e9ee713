"""The middle and the tail of many measurements."""


def percentiles(ages_s: list[float]) -> tuple[float, float, float]:
    """The 50th, 99th and 99.9th in ms."""
    ordered = sorted(ages_s)
    p50, p99, p999 = (1000 * ordered[min(len(ordered) - 1, int(len(ordered) * part))] for part in (0.5, 0.99, 0.999))
    return p50, p99, p999
