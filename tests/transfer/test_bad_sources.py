"""`penstock import` of a server with a snapshot of no use: it names the cause and ends, with exit code 1."""

from pathlib import Path
from typing import Final

import pytest

from tests.support.fake_master import ID, FakeMaster, Link, snapshot
from tests.support.server_process import ended

INFO: Final = b"# Replication\r\nrole:master\r\n"
WHOLE: Final = snapshot("SET k 1", "XADD s 1-0 f v")
MARK: Final = b"m" * 40


def sized(body: bytes) -> bytes:
    return b"$%d\r\n%b" % (len(body), body)


SENT: Final = {  # after +FULLRESYNC: what the source sends, and the cause that is named
    "no snapshot": (sized(b"PENSTOCK" * 20), "it is no RDB file"),
    "a damaged one": (sized(WHOLE[:-1] + bytes([WHOLE[-1] ^ 1])), "checksum"),
    "a damaged one with a mark": (b"$EOF:%b\r\n%b%b" % (MARK, WHOLE[:-1] + bytes([WHOLE[-1] ^ 1]), MARK), "checksum"),
    "one that ends early": (sized(WHOLE[:-12]), "ends"),
    "one of a later version": (sized(b"REDIS9999" + WHOLE[9:]), "9999"),
    "one with an unknown type": (sized(WHOLE[:9] + b"\xc8" + WHOLE[9:]), "the record at byte 9"),
    "an empty one": (b"$0\r\n", "it is no RDB file"),
    "a line that is no length": (b"$many\r\n", "$many"),
    "a line without an end": (b"x" * 70_000, "a line of more than 65536 bytes"),
    "an error": (b"-ERR no memory\r\n", "the master answers -ERR no memory"),
}


def named(link: Link) -> None:
    """What the import asks before it follows."""
    while link.request()[0] != "INFO":
        link.send(b"+PONG\r\n")
    link.send(b"$%d\r\n%b\r\n" % (len(INFO), INFO))


@pytest.mark.parametrize("sent", SENT)
def test_an_import_of_a_bad_snapshot_names_the_cause_and_ends(sent: str, tmp_path: Path) -> None:
    body, cause = SENT[sent]

    def copied(link: Link) -> None:
        link.until_psync([])
        link.send(b"+FULLRESYNC %b 0\r\n%b" % (ID.encode(), body))
        link.until_closed()

    with FakeMaster(named, copied) as master:
        code, said = ended("import", f"redis://127.0.0.1:{master.port}", "--dir", str(tmp_path))

    assert code == 1, said
    assert "cannot be imported" in said
    assert cause in said, said
    assert "Traceback" not in said
