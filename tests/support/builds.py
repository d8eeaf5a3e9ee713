"""What a test may need of the build that it runs on."""

import pytest

from penstock.engine.versions import BUILD

# Compiled code calls its functions and methods directly: another in their place would not be called.
replaces_functions = pytest.mark.skipif(BUILD != "python", reason="replaces functions that the build compiles")
