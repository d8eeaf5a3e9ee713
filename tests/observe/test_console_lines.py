"""What the console's command line lets through is answered once, and leaves the connection as it was."""

import random

import pytest

from penstock.engine.session import Session
from penstock.observe.console.actions import OF_THE_CONNECTION
from tests.support.dialogue import decoded_all
from tests.support.seeds import seeds
from tests.support.table_engine import APART, prepared
from tests.support.table_requests import TableRequests, rows_by_name

REQUESTS = 2  # of each command
LET_THROUGH = [
    row
    for name, row in rows_by_name().items()
    if OF_THE_CONNECTION.isdisjoint((name.encode(), name.partition("|")[0].encode())) and name not in APART
]


def picture(session: Session) -> tuple[object, ...]:
    """What other pages of the same session would notice."""
    return (
        session.db_index, session.resp, session.user.name, session.name, session.library_name, session.library_version,
        session.is_silent, session.reply_skip, session.queued, session.watched, session.tracking, session.monitors,
        session.is_replica, session.is_subscribed, session.reads_replicas, session.no_evict, session.no_touch,
        session.redirects,
    )  # fmt: skip


@pytest.mark.parametrize("seed", seeds(1, 8))
def test_a_command_that_is_let_through_is_answered_once_and_changes_no_connection(seed: int) -> None:
    requests = TableRequests(random.Random(seed))
    for row in LET_THROUGH:
        for words in [requests.valid(row) for _ in range(REQUESTS)]:
            engine, session = prepared()
            before = picture(session)
            lines = [[b"MULTI"], words, [b"EXEC"]] if "blocking" in row.flags else [words]
            answers = [engine.handle(session, line) for line in lines]
            pushed = [answer for receiver, answer in engine.clients.outgoing if receiver is session]

            assert len(decoded_all(b"".join([*answers, *pushed]))) == len(lines), words
            assert picture(session) == before, words
