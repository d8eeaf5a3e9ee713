"""Addresses of servers on the command line, and what a person is told where a server does not answer."""

import socket

import pytest

from penstock.errors import UsageError
from penstock.wire_client import WireClient, address


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("redis://", ("", "localhost", 6379, "", "", 0, None)),
        ("redis://ann:p%40ss@[::1]:7000/3", ("", "::1", 7000, "ann", "p@ss", 3, None)),
        ("redis://:pw@cache", ("", "cache", 6379, "", "pw", 0, None)),
        ("rediss://cache", ("", "cache", 6379, "", "", 0, ("", "", "", True))),
        (
            "rediss://cache:1?ssl_ca_certs=/a%20b&ssl_certfile=c&ssl_keyfile=k&ssl_cert_reqs=none",
            ("", "cache", 1, "", "", 0, ("/a b", "c", "k", False)),
        ),
        ("unix:///run/s.sock", ("/run/s.sock", "", 0, "", "", 0, None)),
    ],
)
def test_a_url_is_read(url: str, found: tuple[object, ...]) -> None:
    assert address(url) == found


def test_an_address_is_shown_without_its_password() -> None:
    assert address("redis://me:secret@cache:7000").shown == "cache:7000"


@pytest.mark.parametrize(
    "url",
    [
        "cache:6379", "http://cache", "redis://cache:x", "redis://cache:99999", "redis://cache:0", "redis://cache/one",
        "redis://cache?db=1", "redis://[::1", "unix://", "rediss://cache?db=1", "rediss://cache?ssl_cert_reqs=maybe",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused_in_a_sentence(url: str) -> None:
    with pytest.raises(UsageError, match=r"was expected|TLS"):
        address(url)


def test_a_server_that_hangs_up_is_told_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = WireClient(address(f"redis://127.0.0.1:{server.getsockname()[1]}"))
        server.accept()[0].close()

        with pytest.raises(UsageError, match=r"closed the connection|is lost"):
            client.ask(b"PING")

        client.close()
