"""rdb-key-save-delay and key-load-delay: waits by which tests make saving and loading last."""

from collections.abc import Callable, Iterator
from typing import Final

from penstock.config.settings import Settings
from penstock.engine.aof.rewrite_progress import Progress

MICROSECONDS: Final = 1_000_000


def wait_s(settings: Settings, name: str, keys: int) -> float:
    """How long to wait for so many keys. A negative setting: a microsecond for each so many of them."""
    each_us = settings.number(name)
    return (keys * each_us if each_us >= 0 else keys / -each_us) / MICROSECONDS


def delayed(
    chunks: Iterator[bytes], progress: Progress, settings: Settings, sleep: Callable[[float], None]
) -> Iterator[bytes]:
    """The chunks of a file that is saved; where it is set, before each a wait for its keys, which `progress` counts."""
    keys = 0
    for chunk in chunks:
        if progress.keys > keys and settings.number("rdb-key-save-delay"):
            sleep(wait_s(settings, "rdb-key-save-delay", progress.keys - keys))
            keys = progress.keys
        yield chunk
