"""The task that makes links to the master."""

import asyncio

from penstock.engine.replication.master import Master
from penstock.server.replication.master_link import LinkLost, MasterLink
from penstock.testing.faults.no_disk import NoDisk
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine


class Deaf(MasterLink):
    """A link that is lost at the moment at which its task is cancelled, so that the cancellation is lost."""

    async def _link(self, master: Master) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise LinkLost("it is closed") from None


def test_a_link_that_misses_its_end_is_not_made_again() -> None:
    async def change_roles() -> int:
        engine = make_engine()
        client = Dialogue(engine)
        link = Deaf(engine, NoDisk(), lambda line: None, lambda: None, lambda: None)
        for request in ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"):
            client(request)
            link.cron()
            for _ in range(5):
                await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert asyncio.run(change_roles()) == 1
