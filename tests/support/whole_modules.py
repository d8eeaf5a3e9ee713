"""How pytest-xdist's workers share the tests: a worker runs all of a module, or all of an `xdist_group`."""

from xdist.scheduler import LoadGroupScheduling

from tests.support import seeds


class WholeModules(LoadGroupScheduling):
    """A fixture of a module is made once, and not by each worker.

    The scheduler looks through all that it has given out at each test that ends, and there are thirty times as many
    tests as modules. The slow tests of a module may take minutes: in their run, workers share the functions.
    """

    def _split_scope(self, nodeid: str) -> str:
        scope: str = super()._split_scope(nodeid)
        if scope != nodeid:
            return scope
        return nodeid.partition("::")[0] if seeds.marks_run == seeds.QUICK_RUN else nodeid.partition("[")[0]
