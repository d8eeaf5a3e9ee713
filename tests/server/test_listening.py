"""Which clients are let in, and through which sockets."""

import asyncio
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from penstock.clock import ManualClock
from penstock.config.settings import Settings
from penstock.errors import UsageError
from penstock.server.connections import admission
from penstock.server.connections.limits import OutputLimits, raise_file_limit
from penstock.server.listening import KEEPALIVE_IDLE, Doors, remove_stale, tcp_sockets, unix_socket
from penstock.server.run import open_to_others
from penstock.server.server_log import ServerLog
from tests.support.builds import two_loopbacks
from tests.support.clock import NOW_MS
from tests.support.engines import make_engine, settings_with
from tests.support.fake_server import FakeServer
from tests.support.reference_server import free_port


def bound(settings: Settings) -> list[socket.socket]:
    return tcp_sockets(settings, "port", settings.number("port"), ServerLog(settings, ManualClock(NOW_MS)))


# -- admission --------------------------------------------------------------------------------------------------------


def test_one_client_too_many_is_told_so() -> None:
    fake_server = FakeServer(maxclients="2")
    fake_server.connect()
    fake_server.connect()
    third = fake_server.connect()

    assert third.received() == b"-ERR max number of clients reached\r\n"
    assert third.transport.closed
    assert fake_server.engine.statistics.rejected_connections == 1


def test_a_client_that_was_not_let_in_is_not_heard() -> None:
    fake_server = FakeServer(maxclients="1")
    fake_server.connect()
    second = fake_server.connect()
    second.received()

    assert second.says(b"PING\r\n") == b""


def test_one_may_come_when_another_has_gone() -> None:
    fake_server = FakeServer(maxclients="1")
    fake_server.connect().connection.connection_lost(None)

    assert fake_server.connect().says(b"PING\r\n") == b"+PONG\r\n"


def test_without_a_password_no_client_comes_in_from_elsewhere(fake_server: FakeServer) -> None:
    stranger = fake_server.connect(peer=("192.0.2.7", 40000))

    assert stranger.received().startswith(b"-DENIED Redis is running in protected mode because ")
    assert stranger.transport.closed


@pytest.mark.parametrize(
    "peer",
    [("127.0.0.1", 1), ("127.8.8.8", 1), ("::1", 1, 0, 0), ("::ffff:127.0.0.1", 1, 0, 0), ""],
    ids=["IPv4", "another of this host", "IPv6", "mapped", "unix"],
)
def test_this_machine_is_always_let_in(fake_server: FakeServer, peer: str | tuple[Any, ...]) -> None:
    assert fake_server.connect(peer=peer).says(b"PING\r\n") == b"+PONG\r\n"


def test_with_a_password_strangers_may_ask_for_it() -> None:
    stranger = FakeServer(requirepass="secret").connect(peer=("192.0.2.7", 40000))

    assert stranger.says(b"PING\r\nAUTH secret\r\nPING\r\n") == (
        b"-NOAUTH Authentication required.\r\n+OK\r\n+PONG\r\n"
    )


def test_which_clients_the_server_lets_in_follows_the_settings(fake_server: FakeServer) -> None:
    fake_server.settings.set_pairs([("protected-mode", "no"), ("maxclients", "1")])

    assert fake_server.connect(peer=("192.0.2.7", 40000)).says(b"PING\r\n") == b"+PONG\r\n"
    assert fake_server.connect().received() == b"-ERR max number of clients reached\r\n"


def test_without_protected_mode_every_client_is_let_in() -> None:
    assert FakeServer(protected_mode="no").connect(peer=("192.0.2.7", 40000)).says(b"PING\r\n") == b"+PONG\r\n"


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True),
        ("127.255.0.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("192.0.2.7", False),
        ("12.7.0.1", False),
        ("::2", False),
        ("::1:1", False),
        ("::ffff:192.0.2.7", False),
        ("fe80::1%eth0", False),
        ("1::ffff:127", False),
        ("::ffff:0:127.0.0.1", False),
    ],
)
def test_loopback_is_told_from_elsewhere(host: str, own: bool) -> None:
    assert admission.is_loopback(host) is own


# -- TCP --------------------------------------------------------------------------------------------------------------


@two_loopbacks
def test_several_addresses_share_a_free_port() -> None:
    sockets = bound(settings_with(port="0", bind="127.0.0.1 127.0.0.2"))
    names = [each.getsockname() for each in sockets]
    for each in sockets:
        each.close()

    assert [host for host, _ in names] == ["127.0.0.1", "127.0.0.2"]
    assert names[0][1] == names[1][1] > 0


def probes_of(link: socket.socket) -> tuple[int, int, int] | None:
    """After how many silent seconds a peer is probed, how many seconds apart, how often; None: never."""
    if not link.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE):
        return None
    options = (KEEPALIVE_IDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
    return tuple(link.getsockopt(socket.IPPROTO_TCP, option) for option in options)  # type: ignore[return-value]


def accepted(listener: socket.socket) -> socket.socket:
    """The server's side of a new connection."""
    with socket.create_connection(listener.getsockname()[:2]):
        listener.setblocking(True)
        return listener.accept()[0]


@pytest.mark.parametrize(
    ("setting", "probes"),
    [("300", (300, 100, 3)), ("2", (2, 1, 3)), ("2147483647", (32767, 10922, 3)), ("0", None)],
    ids=["usual", "soon", "more than the system takes", "never"],
)
def test_a_silent_peer_of_a_connection_is_probed(setting: str, probes: tuple[int, int, int] | None) -> None:
    (listener,) = bound(settings_with(port="0", bind="127.0.0.1", tcp_keepalive=setting))
    with listener:
        listener.listen()
        with accepted(listener) as link:
            assert probes_of(link) == probes


async def test_config_set_says_how_peers_of_new_connections_are_probed() -> None:
    settings = settings_with(port="0", bind="127.0.0.1")
    doors = Doors(settings, ServerLog(settings, ManualClock(NOW_MS)), asyncio.get_running_loop())
    doors.bind()
    (listener,) = doors._listeners()
    with listener:
        listener.listen()
        for setting, probes in (("60", (60, 20, 3)), ("40000", (32767, 10922, 3))):
            settings.set_pairs([("tcp-keepalive", setting)])
            with accepted(listener) as link:
                assert probes_of(link) == probes
        settings.set_pairs([("tcp-keepalive", "0")])
        with accepted(listener) as link:
            assert probes_of(link) is None


async def test_a_client_that_sees_that_the_port_was_set_may_connect_at_once() -> None:
    settings = settings_with(port="0", bind="127.0.0.1")
    doors = Doors(settings, ServerLog(settings, ManualClock(NOW_MS)), asyncio.get_running_loop())
    doors.bind()
    await doors.open(asyncio.Protocol, asyncio.Protocol)
    settings.set_pairs([("port", str(free_port()))])
    socket.create_connection(doors._listeners()[0].getsockname()[:2]).close()
    await asyncio.gather(*doors._moves)
    doors.close()


def test_an_address_that_may_be_missing_is_no_error() -> None:
    sockets = bound(settings_with(port="0", bind="127.0.0.1 -192.0.2.254"))
    for each in sockets:
        each.close()

    assert len(sockets) == 1


def test_an_address_that_is_not_ours_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"cannot listen on 192\.0\.2\.254:"):
        bound(settings_with(port="0", bind="127.0.0.1 192.0.2.254"))


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.socket() as owner:
        owner.bind(("127.0.0.1", 0))
        owner.listen()
        with pytest.raises(UsageError, match="Address already in use"):
            bound(settings_with(port=str(owner.getsockname()[1])))


# -- unix -------------------------------------------------------------------------------------------------------------


def test_a_unix_socket_has_the_permissions_that_were_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    unix_socket(str(path), 0o700).close()

    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_the_socket_of_a_dead_server_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    unix_socket(str(path), 0).close()
    remove_stale(str(path))

    assert not path.exists()


def test_the_socket_of_a_living_server_stays(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    with socket.socket(socket.AF_UNIX) as owner:
        owner.bind(str(path))
        owner.listen()
        with pytest.raises(UsageError, match="another process does"):
            unix_socket(str(path), 0)

    assert path.exists()


def test_an_empty_file_in_the_way_of_a_unix_socket_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    path.touch()
    unix_socket(str(path), 0).close()

    assert path.is_socket()


def test_a_file_in_the_way_of_a_unix_socket_stays(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    path.write_text("precious")
    with pytest.raises(UsageError, match="no socket"):
        unix_socket(str(path), 0)

    assert path.read_text() == "precious"


# -- limits -----------------------------------------------------------------------------------------------------------


def test_output_limits_follow_the_setting(fake_server: FakeServer) -> None:
    limits = OutputLimits(fake_server.settings)
    session = fake_server.connect().session
    before = limits.of(session)
    fake_server.settings.set_pairs([("client-output-buffer-limit", "normal 10mb 1mb 7")])

    assert (before, limits.of(session)) == ((0, 0, 0), (10 * 2**20, 2**20, 7))


def test_subscribers_have_limits_of_their_own(fake_server: FakeServer) -> None:
    session = fake_server.connect().session
    fake_server.engine.server.subscriptions.subscribe(session, b"news")

    assert OutputLimits(fake_server.settings).of(session) == (32 * 2**20, 8 * 2**20, 60)


def test_few_clients_need_no_more_files() -> None:
    assert raise_file_limit(1) == 1


# -- what is said -----------------------------------------------------------------------------------------------------


def test_a_line_for_people_has_the_form_of_redis(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = settings_with(loglevel="verbose")
    server_log = ServerLog(settings, ManualClock(NOW_MS))
    server_log.verbose("Accepted 127.0.0.1:50000")
    server_log.debug("too quiet")

    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert said.split(":M ")[1].split(" ", 3)[1:3] == ["Nov", "2026"]
    assert said.endswith(".000 - Accepted 127.0.0.1:50000\n")


def test_how_much_is_said_follows_the_setting(capsys: pytest.CaptureFixture[str]) -> None:
    fake_server = FakeServer()
    leaving = fake_server.connect()
    fake_server.settings.set_pairs([("loglevel", "verbose")])
    leaving.connection.connection_lost(None)
    fake_server.connect(peer=("127.0.0.1", 50001))
    fake_server.settings.set_pairs([("loglevel", "notice")])
    fake_server.connect()

    said = [line.split(" - ")[1] for line in capsys.readouterr().out.splitlines()]
    assert said == ["Client closed connection 127.0.0.1:50000", "Accepted 127.0.0.1:50001"]


def test_what_is_said_can_go_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "server.log"
    settings = Settings()
    settings.read_line(["logfile", str(path)], set())
    ServerLog(settings, ManualClock(NOW_MS)).warning("careful")

    assert path.read_text().endswith(".000 # careful\n")
    assert capsys.readouterr().out == ""


OPEN = [
    pytest.param({"bind": "*", "protected-mode": "no"}, True, id="all interfaces"),
    pytest.param({"bind": "192.0.2.7", "protected-mode": "no"}, True, id="another interface"),
    pytest.param({"bind": "*", "protected-mode": "no", "requirepass": "x"}, False, id="a password"),
    pytest.param({"bind": "*"}, False, id="protected mode"),
    pytest.param({"bind": "-::1", "protected-mode": "no"}, False, id="this machine"),
    pytest.param({"bind": "*", "protected-mode": "no", "port": "0"}, False, id="no port"),
]


@pytest.mark.parametrize(("directives", "is_open"), OPEN)
def test_a_start_warns_where_other_machines_need_no_password(directives: dict[str, str], is_open: bool) -> None:
    engine = make_engine(settings=settings_with(**directives))

    assert ("no password is required" in open_to_others(engine)) == is_open
