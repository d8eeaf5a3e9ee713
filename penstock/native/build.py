"""Which build answers: where compiled and interpreted code need different algorithms, IS_COMPILED chooses."""

from typing import Final


def is_library(file: str) -> bool:
    """Whether a module that was loaded from this file is compiled."""
    return file.endswith((".so", ".pyd"))


IS_COMPILED: Final[bool] = is_library(__file__)
