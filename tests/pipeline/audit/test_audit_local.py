"""The judge of producers, workers and a server, on journals and logs in which something went wrong."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from examples.audit import audit_local
from examples.audit.__main__ import main
from examples.audit.checks import CHECKS
from penstock.pipeline.aof.log_files import DamagedLog
from penstock.pipeline.connector.connection.client import packed

PRODUCER = ("sent 1-0 0", "lost ConnectionError", "found 2-0 1", "sent 3-0 2")
WORKER = ("processed 1-0 0 1 new 10", "processed 2-0 1 1 new 10", "acked 1-0 20", "acked 2-0 20")
RESCUER = ("processed 3-0 2 2 claim 30", "acked 3-0 40")
LOG = (
    "XGROUP CREATE s g 0",
    "XADD s 1-0 serial 0",
    "XADD s NOMKSTREAM MAXLEN ~ 9 LIMIT 5 IDMP p 7 2-0 serial 1 serial 9",
    "XADD other 9-0 serial 0",
    "XADD s 3-0 serial 2",
    "XCLAIM s g w 0 1-0 2-0 3-0 TIME 1000 RETRYCOUNT 1 FORCE JUSTID LASTID 3-0",
    "XCLAIM s other w 0 1-0 TIME 1000 RETRYCOUNT 1 FORCE JUSTID LASTID 3-0",
    "XNACK s g FAIL IDS 1 3-0 RETRYCOUNT 1 FORCE",
    "XCLAIM s g r 0 3-0 TIME 2000 RETRYCOUNT 2 FORCE JUSTID LASTID 3-0",
    "XACK s g 1-0 2-0",
    "XACKDEL s g KEEPREF IDS 1 3-0",
)


@dataclass(frozen=True)
class Case:
    """A run, and what a judge must find in it: the faults."""

    name: str
    faults: dict[str, int] = field(default_factory=dict)
    producer: tuple[str, ...] = PRODUCER
    worker: tuple[str, ...] = WORKER
    more_log: tuple[str, ...] = ()
    torn: str = ""

    def journals(self) -> dict[str, str]:
        said = {"producer": self.producer, "worker": self.worker, "rescuer": RESCUER}
        return {name: "".join(line + "\n" for line in lines) + self.torn for name, lines in said.items()}

    def log(self) -> list[list[bytes]]:
        return [line.encode().split() for line in LOG + self.more_log]


CASES = (
    Case("nothing went wrong"),
    Case("a line was cut off by a death", torn="processed 9-0 9 1 new 1"),
    Case(
        "an entry is not in the log",
        {"lost: a producer was told, the log has none": 1},
        producer=(*PRODUCER, "sent 4-0 3"),
    ),
    Case(
        "one was done twice, one not at all",
        {
            "lost: not pending, and never processed": 1,
            "processed twice without a redelivery": 1,
            "acknowledged and never processed": 1,
        },
        worker=("processed 1-0 0 1 new 10", "processed 1-0 0 1 new 11", "acked 1-0 20"),
    ),
    Case(
        "entries were sent twice and out of order",
        {
            "out of order: a producer's later entry has a lower id": 1,
            "lost: not pending, and never processed": 2,
            "sent twice": 1,
        },
        producer=("sent 2-0 1", "sent 1-0 0", "sent 3-0 2"),
        more_log=("XADD s 4-0 serial 2", "XADD s 5-0 serial 3"),
    ),
    Case(
        "an acknowledged entry came back",
        {
            "delivered after its acknowledgement, by the log": 1,
            "delivered after its acknowledgement, by the journals": 1,
            "left pending": 1,
        },
        worker=(*WORKER, "processed 2-0 1 2 claim 21"),
        more_log=("XCLAIM s g r 0 2-0 TIME 3000 RETRYCOUNT 2 FORCE JUSTID LASTID 3-0",),
    ),
)

# Each fault at least once, for a judge that takes long to ask.
EVERYTHING = Case(
    "all of these at once",
    {
        "lost: a producer was told, the log has none": 1,
        "lost: not pending, and never processed": 3,
        "sent twice": 1,
        "out of order: a producer's later entry has a lower id": 1,
        "processed twice without a redelivery": 1,
        "delivered after its acknowledgement, by the log": 1,
        "delivered after its acknowledgement, by the journals": 2,
        "acknowledged and never processed": 1,
        "left pending": 1,
    },
    producer=("sent 2-0 1", "sent 1-0 0", "sent 3-0 2", "sent 9-0 7"),
    worker=("processed 1-0 0 1 new 10", "processed 1-0 0 1 new 11", "acked 1-0 9"),
    more_log=(
        "XADD s 4-0 serial 2",
        "XADD s 5-0 serial 3",
        "XCLAIM s g r 0 1-0 TIME 3000 RETRYCOUNT 2 FORCE JUSTID LASTID 3-0",
    ),
    torn="processed 9-0 9 1 new 1",
)


@pytest.mark.parametrize("case", (*CASES, EVERYTHING), ids=lambda case: case.name)
def test_a_judge_finds_these_faults_and_no_others(case: Case, tmp_path: Path) -> None:
    for name, said in case.journals().items():
        (tmp_path / f"{name}.journal").write_text(said)

    found = audit_local.check(case.log(), audit_local.journals_in(tmp_path), b"s", b"g")

    assert {one.check.name: one.entries for one in found if one.is_a_fault} == case.faults


@pytest.mark.parametrize(("case", "code"), [(CASES[0], 0), (EVERYTHING, 2)], ids=["clean", "faults"])
def test_the_command_shows_every_check_and_its_exit_code_says_whether_all_is_well(
    case: Case, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, said in case.journals().items():
        (tmp_path / f"{name}.journal").write_text(said)
    (tmp_path / "log").write_bytes(b"".join(packed(*line) for line in case.log()))
    words = ["--log", str(tmp_path / "log"), "--journals", str(tmp_path), "--stream", "s", "--group", "g"]

    assert main(words) == code
    shown = capsys.readouterr().out.splitlines()
    assert [line.rsplit("  must", 1)[0].rstrip().rsplit(None, 1)[0] for line in shown] == [
        check.name for check in CHECKS
    ]


def test_the_command_names_a_log_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = str(tmp_path / "nowhere")

    assert main(["--log", log, "--journals", str(tmp_path), "--stream", "s", "--group", "g"]) == 1
    assert capsys.readouterr().err.startswith(f"audit: there is no {log}")


def test_what_is_no_fault_is_told(tmp_path: Path) -> None:
    (tmp_path / "rescuer.journal").write_text("".join(line + "\n" for line in RESCUER))

    found = audit_local.check(CASES[0].log(), audit_local.journals_in(tmp_path), b"s", b"g")

    assert [(one.check.name, one.entries, one.example) for one in found if not one.check.must_be_zero] == [
        ("entries in the log", 3, "1-0"),
        ("processed", 1, "3-0"),
        ("delivered again", 1, "3-0"),
        ("given back (XNACK)", 1, "3-0"),
        ("processed again", 0, None),
    ]


def test_a_log_s_files_are_read_in_order_and_a_torn_end_is_left_out(tmp_path: Path) -> None:
    lines = [packed(*line) for line in CASES[0].log()]
    (tmp_path / "a.manifest").write_text("file b seq 1 type i\nfile a seq 2 type i\n")
    (tmp_path / "b").write_bytes(b"".join(lines[:4]))
    (tmp_path / "a").write_bytes(b"#TS:1700000000\r\n" + b"".join(lines[4:]) + lines[1][:-3])

    assert list(audit_local.requests(str(tmp_path))) == CASES[0].log()


def test_a_file_that_ends_amid_a_line_and_is_not_the_last_stops_the_judge(tmp_path: Path) -> None:
    (tmp_path / "a.manifest").write_text("file b seq 1 type i\nfile a seq 2 type i\n")
    (tmp_path / "b").write_bytes(packed(b"XADD", b"s", b"1-0", b"f", b"v")[:-3])
    (tmp_path / "a").write_bytes(b"")

    with pytest.raises(DamagedLog, match="b ends within a request, and is not the log's last file"):
        list(audit_local.requests(str(tmp_path)))
