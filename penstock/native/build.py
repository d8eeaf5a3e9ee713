"""Which build answers: where compiled and interpreted code need different algorithms, IS_COMPILED chooses."""

from typing import Final

IS_COMPILED: Final[bool] = __file__.endswith((".so", ".pyd"))  # whether this module was loaded as a compiled one
