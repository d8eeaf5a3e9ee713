"""TLS: which clients are let in, with which certificates, and how they are renewed."""

import asyncio
import shutil
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

from penstock.clock import SystemClock
from penstock.config import config_file
from penstock.server.listening import tcp_socket
from penstock.server.server_log import ServerLog
from penstock.server.tls import tls_context, tls_door
from tests.support import wire
from tests.support.certificates import PASSWORD, Authority, Pair
from tests.support.reference_server import free_port
from tests.support.server_process import ServerProcess, running_server
from tests.support.transcripts import shown

PATIENCE_S = 60.0
TRIES = 20


@dataclass
class Papers:
    """An authority's certificates: of the server, of a client, of users by name; and one of another authority."""

    authority: Authority
    server: Pair
    renewed: Pair
    locked: Pair
    client: Pair
    stranger: Pair


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    folder = tmp_path_factory.mktemp("papers")
    authority = Authority(folder)
    other = Authority(folder, "other")
    return Papers(
        authority,
        authority.sign("server"),
        authority.sign("renewed"),
        authority.sign("locked", PASSWORD),
        authority.sign("client"),
        other.sign("client"),
    )


def open_tls(server: ServerProcess, papers: Papers, pair: Pair | None = None, **directives: str) -> int:
    """Have a server listen for TLS; its port. Another process may take a free port: then the next one is tried."""
    pair = pair or papers.server
    chosen = {"tls-cert-file": str(pair.certificate), "tls-key-file": str(pair.key)}
    chosen |= {"tls-ca-cert-file": str(papers.authority.file), "tls-auth-clients": "yes"}
    chosen |= {"tls-key-file-pass": "", "tls-protocols": "", "tls-auth-clients-user": "off"}
    chosen |= {name.replace("_", "-"): value for name, value in directives.items()}
    words = [word for name_and_value in chosen.items() for word in name_and_value]
    for _ in range(TRIES):
        port = free_port()
        try:
            redis.Redis(port=server.port).execute_command("CONFIG", "SET", "tls-port", port, *words)
        except redis.ResponseError as refusal:
            assert "Unable to listen on this port" in str(refusal), str(refusal)
            continue
        return port
    raise AssertionError("no port is free")


def context_of(papers: Papers, pair: Pair | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(papers.authority.file))
    if pair is not None:
        context.load_cert_chain(pair.certificate, pair.key)
    return context


@contextmanager
def linked(port: int, context: ssl.SSLContext) -> Iterator[ssl.SSLSocket]:
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE_S) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as link,
    ):
        yield link


def asked(link: socket.socket, request: bytes) -> bytes:
    """What one request is answered, in one line; empty where the connection was closed."""
    link.sendall(request)
    answer = b""
    while not answer.endswith(b"\n"):
        received = link.recv(65536)
        if not received:
            break
        answer += received
    return answer


def is_let_in(port: int, context: ssl.SSLContext) -> bool:
    try:
        with linked(port, context) as link:
            return asked(link, b"PING\r\n") == b"+PONG\r\n"
    except OSError:
        return False


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that is bound to happen."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.01)


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def server(request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    with running_server("--appendonly", "no", environment={"PENSTOCK_LOOP": request.param}) as it:
        yield it


def test_redis_py_is_served(server: ServerProcess, papers: Papers) -> None:
    port = open_tls(server, papers, tls_auth_clients="no")
    client = redis.Redis(port=port, ssl=True, ssl_ca_certs=str(papers.authority.file), socket_timeout=PATIENCE_S)

    with client.pipeline(transaction=False) as pipeline:
        for number in range(2000):
            pipeline.set(f"k{number}", "v" * 1000)
            pipeline.get(f"k{number}")
        replies = pipeline.execute()

    assert replies == [True, b"v" * 1000] * 2000
    assert client.set("large", "x" * 5_000_000)
    assert client.get("large") == b"x" * 5_000_000
    client.flushall()


def test_subscribers_and_waiting_clients_are_served(server: ServerProcess, papers: Papers) -> None:
    port = open_tls(server, papers, tls_auth_clients="no")
    plain = redis.Redis(port=server.port)
    with linked(port, context_of(papers)) as waiting, linked(port, context_of(papers)) as listening:
        assert asked(listening, b"SSUBSCRIBE c\r\n").startswith(b"*3")
        assert asked(waiting, b"CLIENT ID\r\n").startswith(b":")
        waiting.sendall(b"BLPOP queue 0\r\n")
        until(lambda: any(one["cmd"] == "blpop" for one in plain.client_list()))
        plain.rpush("queue", "job")
        plain.execute_command("SPUBLISH", "c", "news")

        assert waiting.recv(100) == b"*2\r\n$5\r\nqueue\r\n$3\r\njob\r\n"
        assert b"news" in listening.recv(100)


WHO_IS_LET_IN = [("yes", [True, False, False]), ("optional", [True, True, False]), ("no", [True, True, True])]


@pytest.mark.parametrize(("asked_for", "let_in"), WHO_IS_LET_IN)
def test_clients_need_the_certificates_that_are_asked_for(
    server: ServerProcess, papers: Papers, asked_for: str, let_in: list[bool]
) -> None:
    port = open_tls(server, papers, tls_auth_clients=asked_for)
    pairs = (papers.client, None, papers.stranger)

    assert [is_let_in(port, context_of(papers, pair)) for pair in pairs] == let_in


def test_a_refused_client_is_told_why(server: ServerProcess, papers: Papers) -> None:
    port = open_tls(server, papers, tls_auth_clients="yes")

    with (
        pytest.raises(ssl.SSLError, match="ALERT_CERTIFICATE_REQUIRED"),
        linked(port, context_of(papers)) as link,
    ):
        link.recv(1)


def test_versions_can_be_chosen(server: ServerProcess, papers: Papers) -> None:
    port = open_tls(server, papers, tls_auth_clients="no", tls_protocols="TLSv1.2")
    newest = context_of(papers)
    newest.minimum_version = ssl.TLSVersion.TLSv1_3

    assert not is_let_in(port, newest)
    with linked(port, context_of(papers)) as link:
        assert link.version() == "TLSv1.2"
    redis.Redis(port=server.port).config_set("tls-protocols", "TLSv1.3")
    assert is_let_in(port, newest)


def test_a_renewed_certificate_is_read_and_no_client_is_dropped(
    server: ServerProcess, papers: Papers, tmp_path: Path
) -> None:
    used = Pair(tmp_path / "used.crt", tmp_path / "used.key")
    shutil.copy(papers.server.certificate, used.certificate)
    shutil.copy(papers.server.key, used.key)
    port = open_tls(server, papers, used, tls_auth_clients="no")
    with linked(port, context_of(papers)) as link:
        before = link.getpeercert(binary_form=True)
        shutil.copy(papers.renewed.certificate, used.certificate)
        shutil.copy(papers.renewed.key, used.key)
        redis.Redis(port=server.port).config_set("tls-cert-file", str(used.certificate))

        assert asked(link, b"PING\r\n") == b"+PONG\r\n"
    with linked(port, context_of(papers)) as link:
        assert link.getpeercert(binary_form=True) not in (None, before)
        assert asked(link, b"PING\r\n") == b"+PONG\r\n"


def test_a_key_that_does_not_fit_changes_nothing(server: ServerProcess, papers: Papers) -> None:
    port = open_tls(server, papers, tls_auth_clients="no")
    plain = redis.Redis(port=server.port)

    with pytest.raises(redis.ResponseError, match="Unable to update TLS configuration"):
        plain.config_set("tls-key-file", str(papers.renewed.key))

    assert plain.config_get("tls-key-file") == {"tls-key-file": str(papers.server.key)}
    assert is_let_in(port, context_of(papers))
    until(lambda: f"Failed to load private key: {papers.renewed.key}" in server.said)


def test_a_locked_key_is_opened_with_its_password(server: ServerProcess, papers: Papers) -> None:
    port = open_tls(server, papers, papers.locked, tls_auth_clients="no", tls_key_file_pass=PASSWORD)

    assert is_let_in(port, context_of(papers))


def test_a_certificate_names_the_user(server: ServerProcess, papers: Papers) -> None:
    port = open_tls(server, papers, tls_auth_clients_user="CN")
    plain = redis.Redis(port=server.port)
    plain.execute_command("ACL", "LOG", "RESET")
    with linked(port, context_of(papers, papers.client)) as link:
        assert b"default" in link_reply(link, b"ACL WHOAMI\r\n")
    with wire.Connection("127.0.0.1", server.port, PATIENCE_S) as asking:
        refusals = shown(asking.ask("ACL", "LOG"))
    assert '"reason", "tls-cert", "context", "toplevel", "object", "", "username", "client"' in refusals

    plain.execute_command("ACL", "SETUSER", "client", "on", "+acl|whoami")
    with linked(port, context_of(papers, papers.client)) as link:
        assert b"client" in link_reply(link, b"ACL WHOAMI\r\n")
        assert asked(link, b"PING\r\n").startswith(b"-NOPERM")
    plain.execute_command("ACL", "DELUSER", "client")


def link_reply(link: socket.socket, request: bytes) -> bytes:
    """A bulk string, with its header."""
    link.sendall(request)
    answer = b""
    while answer.count(b"\n") < 2:
        answer += link.recv(65536)
    return answer


def test_a_client_that_speaks_no_tls_is_closed_and_said_so(server: ServerProcess, papers: Papers) -> None:
    """Of many in one second some are not told of: it may take another try."""
    port = open_tls(server, papers, tls_auth_clients="no")
    deadline = time.monotonic() + PATIENCE_S
    address, told = "none", "Error accepting a client connection: [SSL"
    while not any(told in line and f"(addr={address} laddr=" in line for line in server.said.splitlines()):
        assert time.monotonic() < deadline, server.said
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as link:
            link.sendall(b"PING\r\n" * 100)
            with suppress(ConnectionResetError):
                assert link.recv(100) == b""
            address = "{}:{}".format(*link.getsockname())
        time.sleep(0.05)
    assert is_let_in(port, context_of(papers))


def test_silent_connections_keep_no_client_out(server: ServerProcess, papers: Papers) -> None:
    """At most 128 handshakes go on at the same time: one more ends the oldest."""
    port = open_tls(server, papers, tls_auth_clients="no")
    with ExitStack() as stack:
        links = [stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S)) for _ in range(140)]

        assert is_let_in(port, context_of(papers))
        links[0].settimeout(PATIENCE_S)
        with suppress(ConnectionResetError):
            assert links[0].recv(1) == b""


def test_without_a_port_for_tls_the_clients_that_are_there_stay(server: ServerProcess, papers: Papers) -> None:
    port = open_tls(server, papers, tls_auth_clients="no")
    plain = redis.Redis(port=server.port)
    with linked(port, context_of(papers)) as link:
        assert asked(link, b"PING\r\n") == b"+PONG\r\n"
        plain.config_set("tls-port", 0)

        assert asked(link, b"PING\r\n") == b"+PONG\r\n"
    assert not is_let_in(port, context_of(papers))


def test_a_server_can_listen_for_tls_only(papers: Papers) -> None:
    flags = ["--tls-auth-clients", "no", "--tls-cert-file", str(papers.server.certificate)]
    flags += ["--tls-key-file", str(papers.server.key), "--appendonly", "no"]
    for _ in range(TRIES):
        port = free_port()
        try:
            with running_server("--tls-port", str(port), *flags) as server:
                with linked(port, context_of(papers)) as link:
                    assert asked(link, b"PING\r\n") == b"+PONG\r\n"
                client = redis.Redis(port=port, ssl=True, ssl_ca_certs=str(papers.authority.file))
                assert client.info("server")["tcp_port"] == port
                assert server.port == 0
                assert "Ready to accept connections tls" in server.said
            return
        except AssertionError as problem:
            if "Address already in use" not in str(problem):
                raise
    raise AssertionError("no port is free")


def refusal_of(flags: list[str]) -> str:
    """What is wrong with a configuration; empty if nothing is."""
    try:
        tls_context.build(config_file.start(["--tls-port", "7000", *flags]))
    except tls_context.TlsError as problem:
        return str(problem)
    return ""


def test_wrong_directives_are_refused_in_redis_s_words(papers: Papers) -> None:
    certificate, key = str(papers.server.certificate), str(papers.server.key)
    pair = ["--tls-cert-file", certificate, "--tls-key-file", key]
    trusting = [*pair, "--tls-auth-clients", "no"]
    expected = {
        "No tls-cert-file configured!": ["--tls-key-file", key],
        "No tls-key-file configured!": ["--tls-cert-file", certificate],
        "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-cluster, tls-replication or": pair,
        "Failed to load certificate: /nowhere: No such file or": ["--tls-cert-file", "/nowhere", *trusting[2:]],
        f"Failed to load private key: {papers.client.key}: KEY_VALUES_MISMATCH": [
            *pair[:2], "--tls-key-file", str(papers.client.key), "--tls-auth-clients", "no",
        ],
        f"Failed to load private key: {papers.locked.key}: ": [
            "--tls-cert-file", str(papers.locked.certificate), "--tls-key-file", str(papers.locked.key),
            "--tls-auth-clients", "no",
        ],
        "Failed to configure CA certificate(s) file/directory: ": [*pair, "--tls-ca-cert-file", "/nowhere"],
        "Failed to configure ciphers: NOPE": [*trusting, "--tls-ciphers", "NOPE"],
        "Failed to configure groups: NOPE": [*trusting, "--tls-groups", "NOPE"],
        "Failed to configure ciphersuites: NOPE": [*trusting, "--tls-ciphersuites", "NOPE"],
        "Invalid tls-protocols specified. Use a combination of 'TLSv1', ": [*trusting, "--tls-protocols", "SSLv3"],
    }  # fmt: skip

    said = {complaint: refusal_of(flags) for complaint, flags in expected.items()}

    assert {complaint: text for complaint, text in said.items() if not text.startswith(complaint)} == {}


def test_a_handshake_needs_a_group_that_both_have(papers: Papers) -> None:
    pair = ["--tls-cert-file", str(papers.server.certificate), "--tls-key-file", str(papers.server.key)]
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    theirs.check_hostname, theirs.verify_mode = False, ssl.CERT_NONE
    theirs.set_ecdh_curve("secp384r1")

    assert handshake_ends_well(theirs, [*pair, "--tls-auth-clients", "no", "--tls-groups", "secp384r1"])
    assert not handshake_ends_well(theirs, [*pair, "--tls-auth-clients", "no", "--tls-groups", "prime256v1"])


def handshake_ends_well(theirs: ssl.SSLContext, flags: list[str]) -> bool:
    """A client's handshake with a server of this configuration, in memory."""
    ours = tls_context.build(config_file.start(["--tls-port", "7000", *flags]))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [theirs.wrap_bio(to_client, to_server), ours.wrap_bio(to_server, to_client, server_side=True)]
    for side in sides * 3:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLError:
            return False
    return all(side.cipher() for side in sides)


def test_directives_without_a_port_are_not_looked_at() -> None:
    settings = config_file.start(["--tls-cert-file", "/nowhere"])

    assert settings.text("tls-cert-file") == "/nowhere"


def test_a_replica_reaches_its_master_by_tls_only(server: ServerProcess, papers: Papers) -> None:
    port = open_tls(server, papers)
    redis.Redis(port=server.port).set("copied", "yes")
    authority = ["--tls-ca-cert-file", str(papers.authority.file)]
    own = ["--tls-client-cert-file", str(papers.client.certificate), "--tls-client-key-file", str(papers.client.key)]
    with running_server("--tls-replication", "yes", *authority, *own, "--replicaof", "127.0.0.1", str(port)) as replica:
        client = redis.Redis(port=replica.port)
        until(lambda: client.info("replication")["master_link_status"] == "up")

        assert client.get("copied") == b"yes"
        with pytest.raises(redis.ResponseError, match="Unable to update TLS configuration"):
            client.config_set("tls-ca-cert-file", "")
        client.config_set("tls-ca-cert-file", str(papers.stranger.certificate))
        client.execute_command("REPLICAOF", "NO", "ONE")
        client.execute_command("REPLICAOF", "127.0.0.1", str(port))
        until(lambda: "certificate verify failed" in replica.said)


def handshakes_of(papers: Papers, *options: str) -> tls_door.TlsHandshakes:
    loop = asyncio.get_running_loop()
    settings = config_file.start([
        "--tls-port", "7000", "--tls-auth-clients", "no", "--tls-cert-file", str(papers.server.certificate),
        "--tls-key-file", str(papers.server.key), *options,
    ])  # fmt: skip
    found = tls_door.TlsHandshakes(loop, ServerLog(settings, SystemClock()), asyncio.Protocol)
    found.context = tls_context.build(settings)
    return found


async def test_a_client_that_does_not_shake_hands_is_closed(papers: Papers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_door, "HANDSHAKE_S", 0.05)
    handshakes = handshakes_of(papers, "--loglevel", "nothing")
    listener = tcp_socket("127.0.0.1", 0)
    door = tls_door.TlsDoor(asyncio.get_running_loop(), handshakes._journal, listener, handshakes)
    door.open(10)

    reader, writer = await asyncio.open_connection(*listener.getsockname())
    received = await asyncio.wait_for(reader.read(), PATIENCE_S)
    writer.close()
    door.close()

    assert received == b""


async def test_a_burst_of_connections_ends_the_oldest_and_says_so(papers: Papers, tmp_path: Path) -> None:
    log = tmp_path / "log"
    handshakes = handshakes_of(papers, "--logfile", str(log))
    pairs = [socket.socketpair() for _ in range(tls_door.MOST_HANDSHAKES + 3)]
    for ours, _ in pairs:  # none has made its first step when the last comes
        ours.setblocking(False)
        handshakes.begin(ours)
    for _ in range(3):
        await asyncio.sleep(0)

    assert [ours.fileno() == -1 for ours, _ in pairs[:5]] == [True, True, True, False, False]
    assert log.read_text().count("Error accepting a client connection: the handshake took too long, or too many") == 3

    handshakes.close()
    await asyncio.sleep(0.01)
    assert all(ours.fileno() == -1 for ours, _ in pairs)
    for _, theirs in pairs:
        theirs.close()
