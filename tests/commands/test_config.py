"""CONFIG, beside a real Redis where there is one."""

import shlex
from pathlib import Path

import pytest
import redis

from penstock.config import config_file
from penstock.config.settings import DIRECTIVES, Settings
from penstock.engine.engine import Engine
from tests.support.dialogue import Dialogue, decoded
from tests.support.engines import make_engine, settings_with

ALIKE = [
    "CONFIG",
    "CONFIG FOO",
    "CONFIG GET",
    "CONFIG SET foo",
    "CONFIG SET foo bar",
    "CONFIG SET foo bar baz",
    "CONFIG SET hz 10 hz 11",
    "CONFIG SET timeout 5 TIMEOUT 6",
    "CONFIG SET timeout abc foo 1",
    "CONFIG SET databases 3 foo 1",
    "CONFIG SET timeout abc databases 3",
    "CONFIG SET dir /",
    "CONFIG SET hz ''",
    "CONFIG SET maxmemory 1.5gb",
    "CONFIG SET maxmemory-policy foo",
    "CONFIG SET list-max-ziplist-size 5000000000",
    "CONFIG SET shutdown-on-sigterm foo",
    "CONFIG SET latency-tracking-info-percentiles '50 a 101'",
    "CONFIG SET latency-tracking-info-percentiles '50 101'",
    "CONFIG SET stream-node-max-bytes -1",
    "CONFIG SET bind 'a b c d e f g h i j k l m n o p q'",
    "CONFIG RESETSTAT foo",
    "CONFIG REWRITE foo",
    "CONFIG REWRITE",
    "CONFIG GET h[z] HZ hz",
    "CONFIG GET HZ",
    "CONFIG GET NOSUCH*",
    "CONFIG GET rdb-key*",
    "CONFIG GET rdb-key-save-delay",
    "CONFIG GET slave-priority",
    "CONFIG GET append[df]*",
]
OTHER_DEFAULTS = {
    "bind",  # the loopback address alone
    "appendonly", "aof-use-rdb-preamble", "save",  # the log is all there is
}  # fmt: skip
OF_THE_RUN = {"dir", "port", "enable-debug-command"}  # set at the start of the reference


@pytest.mark.parametrize("line", ALIKE)
def test_config_answers_what_redis_answers(dialogue: Dialogue, reference_port: int, line: str) -> None:
    assert said(dialogue(line)) == said(asked(reference_port, line))


def asked(port: int, line: str) -> object:
    """The reference's answer to a line of words; an error is returned."""
    connection = redis.Connection(port=port, protocol=2)
    connection.send_command(*shlex.split(line))
    try:
        return connection.read_response()
    except redis.ResponseError as refusal:
        return refusal
    finally:
        connection.disconnect()


def said(answer: object) -> object:
    """An answer made comparable: an error's text without its code (redis-py cuts it), a list without its order."""
    if isinstance(answer, Exception):
        return str(answer).removeprefix("ERR ")
    return sorted(answer) if isinstance(answer, list) else answer


def test_every_directive_of_redis_is_there_with_its_default(dialogue: Dialogue, reference_port: int) -> None:
    with redis.Redis(port=reference_port, decode_responses=True) as reference:
        theirs = reference.config_get("*")
    ours = shown(dialogue("CONFIG GET *"))
    skipped = OTHER_DEFAULTS | OF_THE_RUN

    assert theirs.keys() - ours.keys() == set()
    assert {name: ours[name] for name in theirs.keys() - skipped} == {
        name: value for name, value in theirs.items() if name not in skipped
    }


def shown(answer: object) -> dict[str, str]:
    assert isinstance(answer, list)
    words = [word.decode() for word in answer]
    return dict(zip(words[::2], words[1::2], strict=True))


def test_a_change_is_shown(dialogue: Dialogue) -> None:
    assert dialogue("CONFIG SET maxmemory 1KB timeout 7") == b"OK"

    assert shown(dialogue("CONFIG GET maxmemory timeout")) == {"maxmemory": "1024", "timeout": "7"}


def test_resp3_gets_a_map(dialogue: Dialogue) -> None:
    dialogue.session.resp = 3

    assert dialogue.raw("CONFIG GET hz") == b"%1\r\n$2\r\nhz\r\n$2\r\n10\r\n"


def test_bytes_that_are_no_text_are_kept(dialogue: Dialogue) -> None:
    dialogue.words(b"CONFIG", b"SET", b"requirepass", b"\xff\x00")

    assert decoded(dialogue.words(b"CONFIG", b"GET", b"requirepass")) == [b"requirepass", b"\xff\x00"]


@pytest.mark.parametrize(("allowed", "answer"), [("yes", b"OK"), ("local", b"OK")])
def test_protected_directives_need_leave(allowed: str, answer: bytes) -> None:
    dialogue = served(config_file.start(["--enable-protected-configs", allowed]))

    assert dialogue("CONFIG SET dir /") == answer


def test_leave_for_local_clients_is_for_no_others() -> None:
    dialogue = served(config_file.start(["--enable-protected-configs", "local"]))
    dialogue.session = dialogue.engine.server.connect("192.0.2.1:4000")

    assert "can't set protected config" in str(dialogue("CONFIG SET dir /"))


def served(settings: Settings) -> Dialogue:
    return Dialogue(make_engine(settings=settings))


def test_resetstat_zeroes_the_counters(dialogue: Dialogue, engine: Engine) -> None:
    dialogue("PING", "FOO")

    assert dialogue("CONFIG RESETSTAT") == b"OK"
    assert engine.statistics.errors == {}


def test_rewrite_writes_the_file_of_the_start(tmp_path: Path) -> None:
    path = tmp_path / "redis.conf"
    path.write_text("# mine\nhz 20\n")
    dialogue = served(config_file.start([str(path)]))

    assert dialogue("CONFIG SET hz 30 timeout 5", "CONFIG REWRITE") == b"OK"
    assert path.read_text() == "# mine\nhz 30\n\n# Generated by CONFIG REWRITE\ntimeout 5\n"


def test_a_rewrite_that_fails_says_why(tmp_path: Path) -> None:
    path = tmp_path / "gone" / "redis.conf"
    path.parent.mkdir()
    path.write_text("hz 20\n")
    dialogue = served(config_file.start([str(path)]))
    path.unlink()
    path.parent.rmdir()

    assert str(dialogue("CONFIG REWRITE")) == "ERR Rewriting config file: No such file or directory"


def test_help_names_every_subcommand(dialogue: Dialogue, engine: Engine) -> None:
    answer = dialogue("CONFIG HELP")

    assert isinstance(answer, list)
    assert {line.split()[0] for line in answer[1:] if not line.startswith(b" ")} == engine.commands.rows[
        b"CONFIG"
    ].subcommands.keys()


@pytest.mark.parametrize("name", sorted(name for name, row in DIRECTIVES.items() if row.immutable))
def test_an_immutable_directive_stays(name: str) -> None:
    dialogue = Dialogue(make_engine(settings=settings_with(compat_version="valkey-9.1")))  # which has them all

    assert "can't set immutable config" in str(dialogue(f"CONFIG SET {name} x"))
