"""The versions that clients see, and which build answers them."""

from typing import Final

from penstock.native.build import IS_COMPILED

REDIS_VERSION: Final = "8.10.0"  # the newest Redis whose stream commands are complete here
PENSTOCK_VERSION: Final = "0.1.0"
BUILD: Final[str] = "compiled" if IS_COMPILED else "python"
