"""The versions that clients are told."""

from typing import Final

REDIS_VERSION: Final = "8.10.0"  # the newest Redis whose stream commands are complete here
PENSTOCK_VERSION: Final = "0.1.0"
BUILD: Final = "python"  # the pure source; a compiled wheel says so in its own build step
