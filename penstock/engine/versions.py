"""The versions that clients see, and which build answers them."""

from typing import Final

from penstock.native.build import IS_COMPILED, is_library

REDIS_VERSION: Final = "8.12.0"  # the newest Redis with all of its stream commands here
PENSTOCK_VERSION: Final = "0.1.0"
# This module is compiled in the whole build only: that distinguishes it from the core.
_OF_LIBRARY: Final[str] = "compiled" if is_library(__file__) else "core"
BUILD: Final[str] = _OF_LIBRARY if IS_COMPILED else "python"
