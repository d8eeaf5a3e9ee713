"""Fixtures for the comparisons: a reference of the module's own, and a Penstock process beside it."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.compared_sides import Piped, known_by
from tests.support.reference_knowledge import Known
from tests.support.reference_server import NoReference, reference_server
from tests.support.server_process import running_server


@dataclass(frozen=True, slots=True)
class Reference:
    """A real Redis: where it listens, what it knows, and a connection to it."""

    port: int
    known: Known
    piped: Piped


@pytest.fixture(scope="session")
def reference() -> Iterator[Reference]:
    try:
        with reference_server() as port, contextlib.closing(Piped(port)) as piped:
            yield Reference(port, known_by(port), piped)
    except NoReference as absence:
        pytest.skip(str(absence))


@pytest.fixture(autouse=True)
def fresh_connection(request: pytest.FixtureRequest) -> None:
    """The connection is every test's: an earlier one may have left it in another database, or in RESP3."""
    if "reference" in request.fixturenames:
        piped = request.getfixturevalue("reference").piped
        piped.send([[b"RESET"]])
        piped.answer()


@pytest.fixture(scope="session")
def waking_reference(reference: Reference) -> Reference:
    """A reference with blocked readers that are served by the rules of today."""
    if not reference.known.since(7, 4):
        pytest.skip(f"Redis {reference.known.version} serves blocked readers by older rules than 7.4's")
    return reference


@pytest.fixture(scope="module")
def penstock_port() -> Iterator[int]:
    """The port of a Penstock process without a log."""
    with running_server("--appendonly", "no") as server:
        yield server.port
