"""With `compat-version` set, an older server and a Valkey refuse what Penstock refuses, and answer what it answers."""

import contextlib
from typing import Any

import pytest

from tests.against_redis.run import compare
from tests.support.compared_sides import Piped, known_by
from tests.support.reference_server import NoReference, reference_binary, reference_server


def beside(kind: Any, compat_version: Any, requests: Any) -> Any:
    """The first difference to a server of that kind, which is sent also what it does not know; "" for none."""
    try:
        binary = reference_binary(kind)
    except NoReference as absence:
        pytest.skip(str(absence))
    with reference_server(binary=binary) as port, contextlib.closing(Piped(port)) as piped:
        return compare(piped, known_by(port, strict=True), 0, f"as {compat_version}", requests, compat_version)[1]


@pytest.mark.parametrize(("kind", "version"), [("valkey", "valkey-9.1"), ("redis", "8.6")])
def test_what_the_named_server_does_not_have_is_refused_as_there(kind: str, version: str) -> None:
    assert beside(kind, version, 4000) == ""


@pytest.mark.slow
def test_fifty_thousand_requests_are_answered_as_by_valkey() -> None:
    assert beside("valkey", "valkey-9.1", 50_000) == ""
