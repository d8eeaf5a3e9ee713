"""Directives that are taken and ignored: none with a value that protects a server, or says where and what it is."""

import pytest

from penstock.config import config_file, harmless_values
from penstock.config.directive_types import (
    BadValue,
    Choice,
    Integers,
    IpAddress,
    Memory,
    Number,
    YesNo,
)
from penstock.config.harmless_values import IGNORED
from penstock.config.ignored_directives import ACCEPTED
from penstock.config.settings import DIRECTIVES, Settings
from penstock.errors import ReplyError, UsageError

BOUND = [name for name, ignored in IGNORED.items() if ignored.harmless]
FREE = [name for name, ignored in IGNORED.items() if not ignored.harmless]
HARMFUL = {  # one value for each directive that may not be ignored at all of them
    "socket-mark-id": "1",
    "syslog-enabled": "yes",
    "oom-score-adj": "relative",
    "server-cpulist": "0-3",
    "bio-cpulist": "1",
    "aof-rewrite-cpulist": "1",
    "bgsave-cpulist": "1",
    "cluster-announce-client-ipv4": "10.0.0.1",
    "cluster-announce-client-ipv6": "::1",
    "cluster-announce-client-port": "1",
    "cluster-announce-client-tls-port": "1",
    "cluster-config-save-behavior": "best-effort",
    "cluster-databases": "2",
    "extended-redis-compatibility": "yes",
    "hash-seed": "x",
    "log-format": "json",
    "log-timestamp-format": "iso8601",
    "mptcp": "yes",
    "repl-mptcp": "yes",
    "rdb-version-check": "relaxed",
    "rdma-bind": "10.0.0.1",
    "rdma-port": "1",
    "tls-auto-reload-interval": "60",
    "unixsocketgroup": "redis",
}


def line(name: str, value: str) -> str:
    return f"{name} {value or chr(34) * 2}\n"


def started(*lines: str) -> Settings:
    return config_file.start(["-"], "".join(lines))


def values(name: str) -> list[str]:
    """Values that a directive may have: all of a few, some of many."""
    kind = DIRECTIVES[name].kind
    if isinstance(kind, IpAddress):
        return [HARMFUL[name], ""]
    if isinstance(kind, Choice):
        return kind.names
    if isinstance(kind, YesNo):
        return ["yes", "no"]
    if isinstance(kind, Number):
        return [str(kind.low), str(kind.high)]
    if isinstance(kind, Memory):
        return ["1gb"]
    if isinstance(kind, Integers):
        return ["1 2 3"]
    return ["text", '""']


def test_every_ignored_directive_has_a_line_and_no_other() -> None:
    assert set(IGNORED) == {row.name for row in ACCEPTED}


def test_every_line_says_why_and_what_to_do_instead() -> None:
    assert [name for name, ignored in IGNORED.items() if not ignored.why.endswith(".")] == []
    assert [name for name in BOUND if not IGNORED[name].instead.startswith("Penstock ")] == []
    assert set(HARMFUL) == set(BOUND)


def test_every_default_is_harmless() -> None:
    assert harmless_values.problem(IGNORED, Settings().text) == ("", "")


@pytest.mark.parametrize("name", BOUND)
def test_a_harmless_value_starts(name: str) -> None:
    for value in IGNORED[name].harmless:
        assert started(line(name, value)).text(name) == value


@pytest.mark.parametrize("name", FREE)
def test_a_directive_of_which_every_value_is_harmless_starts_with_any(name: str) -> None:
    for value in values(name):
        assert started(line(name, value)).harmful() == ""


@pytest.mark.parametrize(("name", "value"), HARMFUL.items())
def test_a_value_that_may_not_be_ignored_stops_the_start_in_one_sentence(name: str, value: str) -> None:
    with pytest.raises(UsageError) as refusal:
        started("appendonly no\n", line(name, value))
    assert str(refusal.value) == f"{name} {value}: {IGNORED[name].instead}."


@pytest.mark.parametrize("name", BOUND)
def test_every_value_is_harmless_or_refused(name: str) -> None:
    for value in values(name):
        settings = Settings()
        settings.read_line(["appendonly", "no"], set())
        settings.read_line([name, *value.replace('""', " ").split(" ")], set()) if value != '""' else None
        assert bool(settings.harmful()) == (settings.text(name) not in IGNORED[name].harmless)


@pytest.mark.parametrize("name", [name for name in BOUND if not DIRECTIVES[name].immutable])
def test_config_set_refuses_it_too_and_changes_nothing(name: str) -> None:
    settings = started("appendonly no\n", "compat-version valkey-9.1\n")
    with pytest.raises(ReplyError) as refusal:
        settings.set_pairs([("timeout", "7"), (name, HARMFUL[name])])

    text = f"ERR CONFIG SET failed (possibly related to argument '{name}') - {IGNORED[name].instead}"
    assert refusal.value.text.decode() == text
    assert (settings.text(name), settings.number("timeout")) == (DIRECTIVES[name].default, 0)


def test_a_later_line_takes_a_harmful_one_back() -> None:
    assert started("replicaof 10.0.0.1 6379\n", "replicaof no one\n").text("replicaof") == ""


def test_an_older_name_is_the_same_directive() -> None:
    assert started("slaveof 10.0.0.1 6379\n").text("replicaof") == "10.0.0.1 6379"


def test_a_module_is_refused() -> None:
    with pytest.raises(UsageError, match="Penstock cannot load modules"):
        started("loadmodule /usr/lib/redisearch.so\n")


def test_a_value_that_is_none_is_told_as_ever() -> None:
    with pytest.raises(BadValue):
        Settings().read_line(["cluster-enabled", "maybe"], set())
