"""`penstock top`, `penstock doctor` and `penstock serve --check`."""

import sys
import tomllib
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

import penstock
from penstock import cli
from penstock.observe import doctor, stream_survey
from penstock.observe.top_screen import Screen
from penstock.wire_client import WireClient, address

ROOT = Path(__file__).parents[2]


@pytest.fixture
def server() -> Iterator[penstock.Server]:
    with penstock.Server() as embedded:
        client = embedded.client()
        client.xadd("orders", {"f": "v"})
        client.xadd("orders", {"f": "v"})
        client.xgroup_create("orders", "workers", "0")
        client.xreadgroup("workers", "alice", {"orders": ">"}, count=1)
        yield embedded


@pytest.fixture(params=["penstock", "redis"])
def url(request: pytest.FixtureRequest) -> str:
    """The same streams on this server, and on a real Redis if there is one."""
    if request.param == "penstock":
        embedded: penstock.Server = request.getfixturevalue("server")
        return embedded.url
    reference = f"redis://127.0.0.1:{request.getfixturevalue('reference_port')}"
    client = WireClient(address(reference))
    client.ask(b"FLUSHALL")
    client.ask(b"XADD", b"orders", b"*", b"f", b"v")
    client.ask(b"XADD", b"orders", b"*", b"f", b"v")
    client.ask(b"XGROUP", b"CREATE", b"orders", b"workers", b"0")
    client.ask(b"XREADGROUP", b"GROUP", b"workers", b"alice", b"COUNT", b"1", b"STREAMS", b"orders", b">")
    client.close()
    return reference


# -- top --------------------------------------------------------------------------------------------------------------


def test_streams_and_groups_are_seen_on_any_server(url: str) -> None:
    survey = stream_survey.take(WireClient(address(url)))

    (group,) = survey.groups
    assert survey.streams == [(b"orders", 2, 2)]
    assert group[:5] == (b"orders", b"workers", 1, 1, 1)
    assert group.oldest_idle_ms is not None


class Putting(WireClient):
    """A server that puts its keys in order for fifty calls of SCAN, and then has a stream on each page."""

    def __init__(self) -> None:
        self.calls = 0

    def ask(self, *words: bytes) -> object:
        self.calls += 1
        return [b"1", []] if self.calls <= 50 else [b"%d" % self.calls, [b"stream:%d" % self.calls]]


def test_streams_are_looked_for_until_a_server_has_its_keys_in_order() -> None:
    client, watch = Putting(), stream_survey.Watch()
    stream_survey.scan(client, watch)

    assert len(watch.keys) == stream_survey.SCANS - 1
    assert client.calls == 50 + stream_survey.SCANS - 1


def test_one_picture_is_printed(server: penstock.Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.clock.advance(minutes=30)

    assert cli.main(["top", "--once", server.url]) == 0

    printed = capsys.readouterr().out
    assert "workers" in printed
    assert "30 min" in printed
    assert server.url.rpartition("@")[2] in printed


def test_rates_are_of_the_time_between_two_looks(server: penstock.Server) -> None:
    from rich.console import Console

    client = WireClient(address(server.url))
    before = stream_survey.take(client)
    for _ in range(10):
        server.client().xadd("orders", {"f": "v"})
    console = Console(file=StringIO(), width=100)
    screen = Screen("redis://:secret@h")
    screen.press("s")
    console.print(screen.picture(stream_survey.take(client), before, 2.0, 24))

    printed = console.file.getvalue()  # type: ignore[attr-defined]  # it is a StringIO
    assert "5.0" in printed
    assert "secret" not in printed


def test_a_name_with_markup_is_shown_as_it_is(server: penstock.Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.client().xadd("[red]x", {"f": "v"})

    cli.main(["top", "--once", server.url])

    assert "[red]x" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "code"), [(["top", "--once"], 1), (["doctor"], 2)], ids=["top", "doctor"])
def test_a_server_that_is_not_there_is_one_line(
    words: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*words, "redis://127.0.0.1:1"]) == code

    assert capsys.readouterr().err.count("\n") == 1


def test_a_missing_password_is_told(server: penstock.Server, capsys: pytest.CaptureFixture[str]) -> None:
    url = server.url  # has none
    server.client().config_set("requirepass", "secret")

    assert cli.main(["top", "--once", url]) == 1
    assert "NOAUTH" in capsys.readouterr().err
    assert cli.main(["top", "--once", server.url]) == 0


def test_without_rich_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)

    assert cli.main(["top"]) == 1
    assert "install the extra `top`" in capsys.readouterr().err


# -- doctor -----------------------------------------------------------------------------------------------------------


def test_the_doctor_says_what_is_wrong_with_a_server(
    server: penstock.Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.client().config_set("slowlog-log-slower-than", 0)
    server.client().get("slow")

    assert cli.main(["doctor", "--between", "0", server.url]) == 1

    printed = capsys.readouterr().out
    assert "maxmemory is not set" in printed
    assert "GET slow" in printed


def test_the_doctor_knows_a_real_redis(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["doctor", "--between", "0", url])

    assert "speaks as Redis" in capsys.readouterr().out


def test_the_doctor_looks_at_the_installation(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["doctor"])

    printed = capsys.readouterr().out
    assert "open files" in printed
    assert "extras" in printed


def test_the_doctor_names_each_extra_that_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    cli.main(["doctor"])

    assert {name for name, _ in doctor.EXTRAS} == extras.keys() - {"tools", "plot"}
    assert "console, lua, metrics" in capsys.readouterr().out


# -- serve --check ----------------------------------------------------------------------------------------------------


def test_a_file_is_checked_without_a_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "redis.conf").write_text("port 7000\nappendfsync always\n")

    assert cli.main(["serve", "--check", str(tmp_path / "redis.conf"), "--dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "The settings are right.\n"


def test_a_wrong_line_is_named_by_a_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "redis.conf").write_text("port 7000\nappendfsync sometimes\n")

    assert cli.main(["serve", "--check", str(tmp_path / "redis.conf")]) == 1
    assert ">>> 'appendfsync sometimes'" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["user joe on +nosuch", "aclfile nowhere.acl", "tls-port 7000"])
def test_check_reads_what_the_settings_name(tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str) -> None:
    (tmp_path / "redis.conf").write_text(f"dir {tmp_path}\n{line}\n")

    assert cli.main(["serve", "--check", str(tmp_path / "redis.conf")]) == 1
    assert "right" not in capsys.readouterr().out
