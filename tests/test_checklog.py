"""`penstock check-log`: what it finds, what it cuts, and its exit codes."""

import io
from pathlib import Path

import pytest

from penstock import check_log, subcommands
from penstock.check_log import DAMAGED, FINE, UNUSABLE
from penstock.clock import ManualClock
from penstock.engine.effects import pack
from penstock.storage.aof.disk import SystemDisk


def lines(*texts: str) -> bytes:
    return b"".join(pack(tuple(text.encode().split(b" "))) for text in texts)


BASE = lines("SELECT 0", "SET a 1")
UNIT = lines("MULTI", "SET c 3", "INCR c", "EXEC")
LAST = lines("SELECT 0", "XADD s 1-0 f v") + UNIT
BASE_NAME, LAST_NAME = "appendonly.aof.1.base.aof", "appendonly.aof.1.incr.aof"


class Checked:
    """A log's directory with files of the given bytes, and what a check of it came to."""

    def __init__(self, root: Path, last: bytes = LAST, base: bytes = BASE) -> None:
        self.root = root
        self.directory = root / "appendonlydir"
        self.directory.mkdir()
        self.base, self.last = self.directory / BASE_NAME, self.directory / LAST_NAME
        self.base.write_bytes(base)
        self.last.write_bytes(last)
        manifest = f"file {BASE_NAME} seq 1 type b\nfile {LAST_NAME} seq 1 type i\n"
        (self.directory / "appendonly.aof.manifest").write_text(manifest)
        self.out = self.errors = ""

    def check(self, *flags: str, path: Path | None = None) -> int:
        out, errors = io.StringIO(), io.StringIO()
        words = subcommands.parser().parse_args(["check-log", *flags, str(path or self.root)])
        code = check_log.run(words, out, errors, ManualClock())
        self.out, self.errors = out.getvalue(), errors.getvalue()
        return code

    def beside(self) -> list[str]:
        """Names and contents of what was cut off."""
        return sorted(path.name for path in self.directory.iterdir() if ".cut-" in path.name)


def test_a_whole_log_is_fine(tmp_path: Path) -> None:
    log = Checked(tmp_path)
    assert log.check() == FINE
    assert log.out.splitlines() == [
        f"{log.base} (base): 2 requests in 2 units, {len(BASE)} bytes, whole",
        f"{log.last} (increment): 4 requests in 3 units, {len(LAST)} bytes, whole",
    ]


@pytest.mark.parametrize("inside", ["", "appendonlydir", "appendonlydir/appendonly.aof.manifest"])
def test_a_log_is_found_by_its_directory_or_its_manifest(tmp_path: Path, inside: str) -> None:
    log = Checked(tmp_path)
    assert log.check(path=tmp_path / inside) == FINE
    assert len(log.out.splitlines()) == 2


def test_one_file_is_checked_alone(tmp_path: Path) -> None:
    log = Checked(tmp_path)
    assert log.check(path=log.last) == FINE
    assert log.out == f"{log.last} (one file): 4 requests in 3 units, {len(LAST)} bytes, whole\n"


def test_an_old_log_of_one_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old/appendonly.aof").write_bytes(BASE)
    log = Checked(tmp_path)
    assert log.check(path=tmp_path / "old") == FINE


def test_damage_is_shown_with_its_place_and_what_was_expected(tmp_path: Path) -> None:
    log = Checked(tmp_path, last=LAST + b"garbage" + LAST)
    assert log.check() == DAMAGED
    assert f"whole up to byte {len(LAST)}, then damaged" in log.out
    assert f"a request (`*` and the number of its words) was expected at byte {len(LAST)}" in log.out
    marked = log.out.splitlines()[[line.strip() for line in log.out.splitlines()].index("^^") - 1]
    assert marked.split()[0] == f"{len(LAST) // 16 * 16:08x}"


@pytest.mark.parametrize("length", range(len(LAST) - len(UNIT) + 1, len(LAST)))
def test_a_torn_multi_goes_whole(tmp_path: Path, length: int) -> None:
    log = Checked(tmp_path, last=LAST[:length])
    assert log.check() == DAMAGED
    assert log.last.read_bytes() == LAST[:length]

    assert log.check("--fix") == FINE
    assert log.last.read_bytes() == LAST[: len(LAST) - len(UNIT)]
    assert log.check() == FINE


def test_what_was_cut_off_is_kept_beside(tmp_path: Path) -> None:
    log = Checked(tmp_path, last=LAST + b"garbage")
    assert log.check("--fix") == FINE
    assert log.last.read_bytes() == LAST
    assert log.beside() == [f"{LAST_NAME}.cut-{len(LAST)}"]
    assert (log.directory / log.beside()[0]).read_bytes() == b"garbage"

    log.last.write_bytes(LAST + b"again")
    assert log.check("--fix") == FINE
    assert log.beside() == [f"{LAST_NAME}.cut-{len(LAST)}", f"{LAST_NAME}.cut-{len(LAST)}-2"]


def test_only_the_last_file_is_cut(tmp_path: Path) -> None:
    log = Checked(tmp_path, base=BASE[:-1])
    assert log.check("--fix") == DAMAGED
    assert "not the log's last file" in log.out
    assert log.base.read_bytes() == BASE[:-1]
    assert log.beside() == []


def test_zeros_at_the_end_are_a_torn_tail(tmp_path: Path) -> None:
    log = Checked(tmp_path, last=LAST + bytes(5000))
    assert log.check("--fix") == FINE
    assert "then torn" in log.out
    assert log.last.read_bytes() == LAST


def test_an_unknown_command_cannot_be_mended(tmp_path: Path) -> None:
    log = Checked(tmp_path, last=LAST + lines("FLY away"))
    assert log.check("--fix") == UNUSABLE
    assert f"no command has the name 'FLY' (the request at byte {len(LAST)})" in log.out
    assert log.last.read_bytes() == LAST + lines("FLY away")


@pytest.mark.parametrize("before", [LAST, b""], ids=["behind others", "at once"])
def test_damage_within_the_last_request_is_no_torn_tail(tmp_path: Path, before: bytes) -> None:
    log = Checked(tmp_path, last=before + b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$x\r\njunk")
    assert log.check() == DAMAGED
    assert f"whole up to byte {len(before)}, then damaged" in log.out
    assert f"a word (`$` and its length) was expected at byte {len(before) + 20}" in log.out


def test_a_multi_within_a_multi_is_damage_and_what_is_before_the_first_can_be_kept(tmp_path: Path) -> None:
    log = Checked(tmp_path, last=LAST + UNIT[: -len(lines("EXEC"))] + UNIT)
    assert log.check() == DAMAGED
    second = len(LAST) + len(UNIT) - len(lines("EXEC"))
    assert f"whole up to byte {len(LAST)}, then damaged" in log.out
    assert f"the EXEC of the MULTI at byte {len(LAST)} was expected before byte {second}" in log.out

    assert log.check("--fix") == FINE
    assert log.last.read_bytes() == LAST


def test_an_exec_without_a_multi_is_damage(tmp_path: Path) -> None:
    log = Checked(tmp_path, last=LAST + lines("EXEC") + LAST)
    assert log.check() == DAMAGED
    assert f"the EXEC at byte {len(LAST)} has no MULTI before it" in log.out

    assert log.check("--fix") == FINE
    assert log.last.read_bytes() == LAST


SNAPSHOT = (
    b"REDIS0013\xfa\x09redis-ver\x058.6.3\xfe\x00\x00\x01a\x01b\xfc"
    + bytes(7)
    + b"\x01\x01\x01l\x01\x01x\xff"
    + bytes(8)
)


def test_a_base_that_is_an_rdb_file_is_looked_through(tmp_path: Path) -> None:
    log = Checked(tmp_path, base=SNAPSHOT)
    assert log.check() == FINE
    assert log.out.splitlines()[:2] == [
        f"{log.base} (base): an RDB file of version 13 by Redis 8.6.3: 2 keys (1 list, 1 string), whole",
        "  1 keys have a time of expiry",
    ]


def test_requests_behind_an_rdb_file_are_looked_through_too(tmp_path: Path) -> None:
    """As in a log of before Redis 7."""
    log = Checked(tmp_path, base=SNAPSHOT + BASE)
    assert log.check() == FINE
    assert f"{log.base} (base): 2 requests in 2 units, {len(SNAPSHOT + BASE)} bytes, whole" in log.out


def test_an_rdb_file_alone_is_looked_through(tmp_path: Path) -> None:
    log = Checked(tmp_path)
    path = tmp_path / "dump.rdb"
    path.write_bytes(SNAPSHOT)
    assert log.check(path=path) == FINE
    assert "2 keys" in log.out


def test_a_damaged_rdb_file_is_unusable(tmp_path: Path) -> None:
    log = Checked(tmp_path, base=SNAPSHOT[:-12])
    assert log.check() == UNUSABLE
    assert "the key 'l' in database 0: it ends too early" in log.out
    assert "a start is refused, and nothing here can mend it" in log.out


def test_a_missing_file_is_unusable(tmp_path: Path) -> None:
    log = Checked(tmp_path)
    log.base.unlink()
    assert log.check() == UNUSABLE
    assert f"{log.base} is missing" in log.errors


@pytest.mark.parametrize("text", ["", "file x seq 1 type q\n", "nonsense\n"])
def test_a_broken_manifest_is_unusable(tmp_path: Path, text: str) -> None:
    log = Checked(tmp_path)
    (log.directory / "appendonly.aof.manifest").write_text(text)
    assert log.check() == UNUSABLE
    assert log.errors


def test_no_log_at_all_is_unusable(tmp_path: Path) -> None:
    log = Checked(tmp_path)
    (tmp_path / "empty").mkdir()
    assert log.check(path=tmp_path / "empty") == UNUSABLE
    assert log.check(path=tmp_path / "nowhere") == UNUSABLE


def test_nothing_is_cut_while_a_server_has_the_log(tmp_path: Path) -> None:
    log = Checked(tmp_path, last=LAST + b"garbage")
    lock = SystemDisk().lock(str(log.directory / "penstock.lock"))
    assert lock is not None
    assert log.check("--fix") == UNUSABLE
    lock.close()
    assert log.last.read_bytes() == LAST + b"garbage"


STAMPED = b"#TS:100\r\n" + lines("SET a 1") + b"#TS:200\r\n" + lines("SET a 2") + b"#TS:300\r\n" + lines("SET a 3")


@pytest.mark.parametrize(
    ("seconds", "left"),
    [("50", 0), ("100", STAMPED.index(b"#TS:200")), ("250", STAMPED.index(b"#TS:300")), ("300", len(STAMPED))],
)
def test_a_log_with_timestamps_is_cut_back_to_a_time(tmp_path: Path, seconds: str, left: int) -> None:
    log = Checked(tmp_path, last=STAMPED)
    assert log.check("--truncate-to-timestamp", seconds) == FINE
    assert log.last.read_bytes() == STAMPED[:left]


def test_a_time_before_the_last_file_cannot_be_cut_back_to(tmp_path: Path) -> None:
    log = Checked(tmp_path, base=STAMPED, last=STAMPED)
    assert log.check("--truncate-to-timestamp", "250") == UNUSABLE
    assert "not the log's last file" in log.errors
    assert (log.base.read_bytes(), log.last.read_bytes()) == (STAMPED, STAMPED)


def test_requests_larger_than_a_block_are_counted(tmp_path: Path) -> None:
    large = pack((b"SET", b"k", b"v\r\n*1\r\n" * 50_000))
    log = Checked(tmp_path, last=large * 3)
    assert log.check() == FINE
    assert "3 requests in 3 units" in log.out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class SlowClock(ManualClock):
    """Each reading takes a second."""

    def now_us(self) -> int:
        self.advance(1000)
        return super().now_us()


@pytest.mark.parametrize(
    ("errors", "begins", "most"),
    [(Terminal, "\r", 30), (io.StringIO, f"{LAST_NAME}: [", 6)],
    ids=["a terminal: a line that is written over", "a file: a line every five seconds"],
)
def test_a_long_file_shows_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, errors: type[io.StringIO], begins: str, most: int
) -> None:
    monkeypatch.setattr(check_log, "LONG_BYTES", 1000)
    Checked(tmp_path, last=lines("SET a 1") * 50_000)
    shown = errors()
    words = subcommands.parser().parse_args(["check-log", str(tmp_path)])

    assert check_log.run(words, io.StringIO(), shown, SlowClock()) == FINE

    text = shown.getvalue()
    assert text.startswith(begins)
    assert text.endswith("\n")
    assert 2 < text.count(" MB") <= most
    assert ("\r" in text) == shown.isatty()


def test_a_short_file_shows_no_progress(tmp_path: Path) -> None:
    log = Checked(tmp_path, last=lines("SET a 1") * 50_000)

    assert (log.check(), log.errors) == (FINE, "")
