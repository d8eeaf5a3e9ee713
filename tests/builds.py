"""What a test may need of the build that it runs on."""

import pytest

from penstock.engine.versions import BUILD

# Compiled code calls its functions and methods directly: nothing can be put in their place.
puts_in_place = pytest.mark.skipif(BUILD == "compiled", reason="puts functions in place of those that are compiled")
