"""What a test may need of the build and of the system that it runs on."""

import sys

import pytest

from penstock.engine.versions import BUILD

# Compiled code calls its functions and methods directly: another in their place would not be called.
replaces_functions = pytest.mark.skipif(BUILD != "python", reason="replaces functions that the build compiles")

two_loopbacks = pytest.mark.skipif(sys.platform == "darwin", reason="the system has one address of its own, 127.0.0.1")
