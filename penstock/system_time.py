"""The machine's time as a number. Compiled, a reading makes no Python object. Only clock.py and the engine use it."""

from librt.time import time


def now_us() -> int:
    """Unix time in microseconds."""
    return int(time() * 1_000_000)
