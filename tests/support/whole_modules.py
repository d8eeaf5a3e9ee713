"""How pytest-xdist's workers share the tests: whole modules, single functions, or all that needs Spark."""

import functools
import re
from typing import Final

from xdist.scheduler import LoadScopeScheduling

from tests.support import seeds
from tests.support.source_trees import ROOT

_TAKES_SPARK: Final = re.compile(r"^def test_\w+\([^)]*\bspark\b", re.MULTILINE)


class WholeModules(LoadScopeScheduling):
    """In the quick run a worker takes a whole module: its fixtures are made once, and not by each worker.

    The scheduler looks through all that it has given out at each test that ends, and there are thirty times as many
    tests as modules. The slow tests of a module may take minutes: in their run, workers share the functions; but two
    take all modules with tests that use Spark, the connector's and the others, since a session is a JVM. The mark
    `xdist_group` is not asked: pytest-xdist 3.8 writes it into names that pytest 9.2 does not read.
    """

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        if seeds.marks_run == seeds.QUICK_RUN:
            return module
        if takes_spark(module):
            return "spark connector" if "/connector/" in module else "spark"
        return nodeid.partition("[")[0]


@functools.cache
def takes_spark(module: str) -> bool:
    """Whether tests of the module, a path below the root, use the pipeline's Spark session."""
    return module.startswith("tests/pipeline/") and _TAKES_SPARK.search((ROOT / module).read_text()) is not None
