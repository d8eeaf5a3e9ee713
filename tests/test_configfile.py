"""redis.conf and flags, as redis-server takes them; and CONFIG REWRITE's side of it."""

import errno
import os
import re
from pathlib import Path
from stat import S_ISDIR

import pytest

from penstock.config import config_file, quoting, whole_file
from penstock.config.settings import DIRECTIVES, Settings
from penstock.errors import UsageError
from tests.support.reference_server import NoReference, reference_binary

QUOTED = [
    (rb'save "60 1"', [b"save", b"60 1"]),
    (rb'a "x\x41\n\"\\" b', [b"a", b'xA\n"\\', b"b"]),
    (rb"a 'it\'s \n'", [b"a", rb"it's \n"]),
    (rb'requirepass ""', [b"requirepass", b""]),
    (b" \t hz\t10 \r\n", [b"hz", b"10"]),
    (rb'"abc', None),
    (rb'"a"b', None),
    (rb"'a", None),
    (b"", []),
]
WRONG_FILES = [
    ("port 0\nfoo bar\n", 2, "foo bar", "Bad directive or wrong number of arguments"),
    ("\n  hz  abc\n", 2, "hz  abc", "argument couldn't be parsed into an integer"),
    ("hz 10 # often\n", 1, "hz 10 # often", "wrong number of arguments"),
    ("hz\n", 1, "hz", "wrong number of arguments"),
    ("# one\nsave 60\n", 2, "save 60", "Invalid save parameters"),
    ('requirepass "abc\n', 1, 'requirepass "abc', "Unbalanced quotes in configuration line"),
    ("appendfilename a/b\n", 1, "appendfilename a/b", "appendfilename can't be a path, just a filename"),
    ("dir /no/such/place\n", 1, "dir /no/such/place", "No such file or directory"),
    (
        "loadmodule /x.so\n",
        1,
        "loadmodule /x.so",
        "Penstock cannot load modules: they are written for Redis's own process",
    ),
]
WRONG_FLAGS = [
    (["--port", "0", "--foo"], "--foo", "Bad directive or wrong number of arguments"),
    (["--hz"], "--hz", "wrong number of arguments"),
    (["--port", "0", "bar"], "--port 0 bar", "wrong number of arguments"),
    (["--appendonly", "no extra"], "--appendonly 'no extra'", "argument must be 'yes' or 'no'"),
    (["--requirepass", "--hz", "0"], "--requirepass --hz 0", "wrong number of arguments"),
]


def started(text: str, *flags: str) -> Settings:
    return config_file.start(["-", *flags], text)


def mistake(*arguments: str, text: str = "") -> list[str]:
    with pytest.raises(UsageError) as caught:
        config_file.start(arguments, text)
    return str(caught.value).split("\n")


@pytest.mark.parametrize(("line", "words"), QUOTED)
def test_a_line_is_split_as_in_redis(line: bytes, words: list[bytes] | None) -> None:
    assert quoting.split(line) == words


def test_what_is_quoted_comes_back() -> None:
    every_byte = bytes(range(256))

    assert quoting.split(quoting.quoted(every_byte).encode()) == [every_byte]


@pytest.mark.parametrize(("text", "number", "shown", "why"), WRONG_FILES)
def test_a_mistake_in_a_file_is_told_by_its_line(text: str, number: int, shown: str, why: str) -> None:
    assert mistake("-", text=text) == [
        "*** FATAL CONFIG FILE ERROR ***",
        f"Reading the configuration file, at line {number} (standard input)",
        f">>> '{shown}'",
        why,
    ]


@pytest.mark.parametrize(("flags", "shown", "why"), WRONG_FLAGS)
def test_a_mistake_in_a_flag_is_told_by_what_was_typed(flags: list[str], shown: str, why: str) -> None:
    assert mistake(*flags)[1:] == [
        "Reading the command line",
        f">>> '{shown}'",
        why,
    ]


def test_a_missing_file_is_told_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "none.conf"

    assert mistake(str(path)) == [f"Fatal error, can't open config file '{path}': No such file or directory"]


def test_a_path_with_a_zero_byte_names_no_file(tmp_path: Path) -> None:
    assert mistake("-", text="include a\0b")[0].startswith("Fatal error, can't open config file")
    assert mistake("-", text='logfile "a\\x00b"')[-1] == "argument can't contain a zero byte"


def test_of_a_huge_line_the_beginning_is_shown() -> None:
    assert mistake("-", text="port " + "1" * 1_000_000)[2] == f">>> 'port {'1' * 995}...'"


def test_flags_win_over_the_file_and_later_ones_over_earlier() -> None:
    settings = started("port 1\ntimeout 2\n", "--port", "3", "--port", "4")

    assert (settings.number("port"), settings.number("timeout")) == (4, 2)


def test_a_flag_may_have_several_values() -> None:
    settings = config_file.start(["--save", "60", "1", "--bind", "127.0.0.1", "::1", "--loglevel", "warning"])

    assert settings.canonical("save") == "60 1"
    assert settings.words("bind") == ["127.0.0.1", "::1"]
    assert settings.text("loglevel") == "warning"


def test_save_points_add_up_and_an_empty_one_forgets_them() -> None:
    assert started("save 60 1\n", "--save", "30 2").canonical("save") == "60 1 30 2"
    assert started("save 60 1\n", "--save", "", "--save", "20", "3").canonical("save") == "20 3"


def test_a_whole_line_may_be_one_flag() -> None:
    assert config_file.start(["--port 7000"]).number("port") == 7000


def test_a_value_may_begin_with_dashes() -> None:
    assert config_file.start(["--requirepass", "--secret", "--port", "1"]).text("requirepass") == "--secret"


def test_a_value_keeps_bytes_that_are_no_text() -> None:
    settings = started('requirepass "\\xff\\x00"\n')

    assert settings.text("requirepass").encode(errors="surrogateescape") == b"\xff\0"


def test_lines_of_other_systems_are_read() -> None:
    assert started("port 7\r\n\r\n \t# a comment\r\nhz 20").number("hz") == 20


def test_included_files_stand_in_their_place(tmp_path: Path) -> None:
    (tmp_path / "1.inc").write_text("port 1\ntimeout 1\n")
    (tmp_path / "2.inc").write_text("port 2\n")

    settings = started(f"hz 20\ninclude {tmp_path}/*.inc\ntimeout 3\ninclude {tmp_path}/*.none\n")

    assert (settings.number("port"), settings.number("timeout"), settings.number("hz")) == (2, 3, 20)


def test_a_mistake_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    path = tmp_path / "inner.conf"
    path.write_text("\nhz x\n")

    assert mistake("-", text=f"include {path}\n")[1] == f"Reading the configuration file, at line 2 ({path})"


def test_files_that_include_each_other_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    path.write_text(f"include {path}\n")

    assert mistake(str(path))[-1] == "include goes deeper than 16 files"


def test_renamed_commands_and_users_are_handed_on() -> None:
    settings = started('rename-command DEBUG ""\nuser alice on >secret ~* +@all\n')

    assert settings.renamed == [("DEBUG", "")]
    assert settings.users == [["alice", "on", ">secret", "~*", "+@all"]]


def test_directives_that_redis_itself_forgot_are_read_over() -> None:
    assert started("io-threads-do-reads yes\n").warnings == []


def test_a_directive_without_effect_brings_one_line_of_warning() -> None:
    assert started("rdb-del-sync-files yes\nsave 60 1\ndisable-thp yes\n").warnings == [
        "accepted and without effect here: rdb-del-sync-files, disable-thp"
    ]


def test_a_start_without_the_log_is_warned_of() -> None:
    assert [line.split(",")[0] for line in started("appendonly no\n").warnings] == ["appendonly is no"]
    assert started("appendonly no\nsave 60 1\n").warnings == []
    assert Settings().warnings == []


def test_a_start_into_the_background_is_warned_of() -> None:
    assert [line.split(":")[0] for line in started("daemonize yes\n").warnings] == ["daemonize is yes"]


# -- CONFIG REWRITE ------------------------------------------------------------------------------------------------

BEFORE = """\
# my comment
port 7000

   hz    20
maxmemory 100mb
# another
maxmemory 200mb
save 60 1
save 30 2
requirepass "a b"
user alice on
"""


def test_a_rewrite_without_a_change_keeps_every_byte() -> None:
    assert config_file.rewritten(BEFORE, started(BEFORE)) == BEFORE


def test_a_rewrite_replaces_what_changed_and_adds_what_is_new() -> None:
    settings = started(BEFORE, "--loglevel", "warning")
    settings.set_pairs([("hz", "10"), ("maxmemory", "1024"), ("save", "20 3 10 4"), ("proto-max-bulk-len", "2mb")])
    settings.set_pairs([("requirepass", 'x"\\y'), ("client-output-buffer-limit", "pubsub 1kb 3000 4")])

    assert (
        config_file.rewritten(BEFORE, settings)
        == """\
# my comment
port 7000

hz 10
maxmemory 1kb
# another
save 20 3
save 10 4
requirepass "x\\"\\\\y"
user alice on

# Generated by CONFIG REWRITE
proto-max-bulk-len 2mb
client-output-buffer-limit normal 0 0 0
client-output-buffer-limit slave 256mb 64mb 60
client-output-buffer-limit pubsub 1kb 3000 4
loglevel warning
"""
    )


def test_a_start_from_a_rewritten_file_has_the_same_settings() -> None:
    settings = started(BEFORE)
    settings.set_pairs([("save", ""), ("notify-keyspace-events", "KEAmn"), ("bind", ""), ("timeout", "9")])

    again = started(config_file.rewritten(BEFORE, settings))

    assert {name: again.text(name) for name in DIRECTIVES} == {name: settings.text(name) for name in DIRECTIVES}


@pytest.mark.parametrize("name", ["replicaof", "slaveof"])
def test_a_server_that_leads_again_names_no_master_in_its_file(name: str) -> None:
    settings = started(f"port 7000\n{name} 10.0.0.1 6379\ntimeout 5\n")
    settings.note("replicaof", "")

    assert config_file.rewritten(f"port 7000\n{name} 10.0.0.1 6379\ntimeout 5\n", settings) == "port 7000\ntimeout 5\n"


def test_a_second_rewrite_adds_no_second_heading() -> None:
    settings = started(BEFORE)
    settings.set_pairs([("timeout", "9")])
    once = config_file.rewritten(BEFORE, settings)
    settings.set_pairs([("tcp-keepalive", "9")])

    assert config_file.rewritten(once, settings).count(config_file.GENERATED) == 1


def test_a_change_wins_over_an_included_file(tmp_path: Path) -> None:
    included = tmp_path / "inner.conf"
    included.write_text("timeout 5\n")
    text = f"timeout 1\ninclude {included}\n"
    settings = started(text)
    settings.set_pairs([("timeout", "9")])

    assert started(config_file.rewritten(text, settings)).number("timeout") == 9


def test_a_rewrite_replaces_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "redis.conf"
    path.write_text("hz 20\n")
    path.chmod(0o640)
    settings = config_file.start([str(path)])
    settings.set_pairs([("hz", "30")])

    config_file.rewrite(settings)

    assert path.read_text() == "hz 30\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [inside.name for inside in tmp_path.iterdir()] == ["redis.conf"]


def test_a_file_that_is_replaced_is_safe_from_a_power_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "users.acl"
    path.write_text("old")
    synced: list[tuple[bool, str]] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append((S_ISDIR(os.fstat(fd).st_mode), path.read_text())))

    whole_file.replace(path, b"new", 0o600)

    assert synced == [(False, "old"), (True, "new")]


@pytest.mark.parametrize("before", [None, "old"])
def test_a_file_whose_last_sync_fails_is_what_it_was_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    """What was refused is not there after a restart: nodes.conf, cluster.map, ACL SAVE, CONFIG REWRITE."""
    path = tmp_path / "nodes.conf"
    if before is not None:
        path.write_text(before)
        path.chmod(0o640)

    def sync(_: str) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(whole_file, "sync_directory", sync)
    with pytest.raises(OSError, match="Input/output error"):
        whole_file.replace(path, b"new", 0o600)

    assert [one.read_text() for one in tmp_path.iterdir()] == ([] if before is None else [before])
    assert before is None or path.stat().st_mode & 0o777 == 0o640


def test_a_directive_of_former_times_gets_no_other_s_name() -> None:
    with pytest.raises(UsageError, match=r"Bad directive or wrong number of arguments$"):
        config_file.start(["--vm-enabled", "no"])


VALKEY_CONF = """\
rdb-version-check strict
dual-channel-replication-enabled no
commandlog-execution-slower-than 500
commandlog-slow-execution-max-len 7
commandlog-request-larger-than 1048576
commandlog-large-request-max-len 128
commandlog-reply-larger-than 1048576
commandlog-large-reply-max-len 128
primaryauth secret
"""


def test_what_a_valkey_conf_has_besides_is_followed_or_named_in_a_warning() -> None:
    settings = started(VALKEY_CONF)

    assert (settings.number("slowlog-log-slower-than"), settings.number("slowlog-max-len")) == (500, 7)
    assert settings.text("masterauth") == "secret"
    (warning,) = settings.warnings
    assert "dual-channel-replication-enabled" in warning
    assert "commandlog-execution" not in warning


def test_a_directive_of_valkey_that_would_have_an_effect_is_refused() -> None:
    with pytest.raises(UsageError, match="set rdb-version-check strict"):
        started("rdb-version-check relaxed\n")


@pytest.mark.parametrize("kind", ["redis", "valkey"])
def test_the_file_that_is_shipped_with_a_server_is_taken(kind: str, tmp_path: Path) -> None:
    try:
        shipped = reference_binary(kind).parent.parent / "etc" / kind / f"{kind}.conf"
    except NoReference as absence:
        pytest.skip(str(absence))
    if not shipped.exists():
        pytest.skip(f"no {kind}.conf beside the server")

    assert started(re.sub("(?m)^dir .*", f"dir {tmp_path}", shipped.read_text())).warnings


def test_a_directive_that_is_mistyped_gets_the_nearest_name() -> None:
    with pytest.raises(UsageError, match=r"Bad directive or wrong number of arguments\nDid you mean appendfsync\?"):
        config_file.start(["--apendfsync", "always"])
