"""The rows of a log found as columns are those that the strict reader finds."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pyarrow
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from penstock.pipeline.aof import log_columns as log_columns_module
from penstock.pipeline.aof import log_rows
from penstock.pipeline.aof.log_columns import log_columns
from penstock.pipeline.aof.log_files import DamagedLog, LogPart
from penstock.pipeline.aof.log_splits import Split
from penstock.pipeline.connector.connection.client import packed
from tests.support.seeds import examples

SCHEMA = pyarrow.schema(
    [
        ("file", pyarrow.string()),
        ("file_seq", pyarrow.int32()),
        ("offset", pyarrow.int64()),
        ("ts", pyarrow.timestamp("us", "UTC")),
        ("db", pyarrow.int32()),
        ("command", pyarrow.string()),
        ("key", pyarrow.binary()),
        ("args", pyarrow.list_(pyarrow.binary())),
        ("in_multi", pyarrow.bool_()),
        ("split", pyarrow.int64()),
    ]
)


def line(text: str) -> bytes:
    return packed(*text.split())


UNITS = st.one_of(
    st.sampled_from(
        [
            line("XADD s 1-1 f v"),
            line("xgroup CREATE s g 0"),
            line("EVAL x 1 k"),
            line("GET"),
            line("SELECT 3"),
            line("SELECT"),
            line("select 4"),
            line("MULTI"),
            line("EXEC"),
            line("FLUSHALL"),
            line("SET * *3"),
            line("SET k #TS:1"),
            line("SET k $3"),
            b"#TS:1795264424\r\n",
            b"#TS:1795264425\r\n",
            b"#a line\n",
            b"#a line\r\n",
            b'#penstock PENSTOCK.POLICY "my jobs" RESET\r\n',
            line("exec x"),
            line("SELECT 5 x"),
            packed("SET", "k", b"\r\n"),
            packed("SET", "k", b"\r"),
            packed("SET", "k", b"\xff\n"),
            packed("SET", "k", b"*1\r\n$4\r\nPING\r\n"),
            packed("SET", b"", b""),
            packed("DEL", *["k"] * 12),
        ]
    ),
    st.lists(st.binary(max_size=8), min_size=1, max_size=5).map(lambda words: packed(*words)),
)


def rows(path: Path, size: int, schema: Any = SCHEMA) -> list[dict[str, Any]]:
    """What a task gives for a whole file, the last one of its log; "damaged" behind them if it is."""
    split = Split(LogPart(str(path), 2, size, True), 5, 0, size, 0, None, False)
    found = []
    try:
        for batch in log_rows.batches(split, schema):
            batch.validate(full=True)
            found += batch.to_pylist()
    except DamagedLog:
        found.append({"command": "damaged"})
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(150))
@example([b"#TS:1795264425\r\n", b"#TS:1795264424\r\n", packed("XADD", "s", "1-1", "f", "v")], 0, 100, 0)
@given(st.lists(UNITS, max_size=30), st.integers(0, 30), st.sampled_from([40, 100, 1 << 20]), st.sampled_from([0, 1]))
def test_columns_are_what_the_strict_reader_finds(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    units: list[bytes],
    missing: int,
    column_bytes: int,
    strict_blocks: int,
) -> None:
    text = b"".join(units)
    text = text[: max(len(text) - missing, 0)]
    (tmp_path / "log").write_bytes(text)
    with monkeypatch.context() as patched:
        patched.setattr(log_columns_module, "log_columns", lambda text, offset: None)
        expected = rows(tmp_path / "log", len(text))
        patched.undo()
        blocks = partial(log_columns_module.LogBlocks, block_bytes=column_bytes)
        patched.setattr(log_rows, "LogBlocks", blocks)
        patched.setattr(log_columns_module, "STRICT_BLOCKS", strict_blocks + 1)
        found = rows(tmp_path / "log", len(text))

    assert found == expected


@pytest.mark.parametrize("at", range(len(line("SET key value") * 3)))
def test_whatever_a_byte_becomes_no_request_is_read_wrongly(at: int, tmp_path: Path) -> None:
    text = line("SET key value") * 3
    for value in (0, 10, 13, 35, 36, 42, 48, 49, 57, 58, 255):
        altered = text[:at] + bytes([value]) + text[at + 1 :]
        found = log_columns(altered)
        if found is not None:
            offsets, words = found.words_after_name()
            names, behind, ends = found.word(0).to_pylist(), words.to_pylist(), offsets.tolist()
            packed_again = b"".join(
                packed(name, *behind[begin:end]) for name, begin, end in zip(names, ends[:-1], ends[1:], strict=True)
            )
            assert altered.startswith(packed_again)
            assert found.taken == len(packed_again)


def test_columns_may_be_text() -> None:
    found = log_columns(packed("SET", b"k\xff", "v"))
    assert found is not None
    assert log_rows._text_column(found.word(1), pyarrow.string()).to_pylist() == ["k�"]


def test_most_logs_are_read_as_columns() -> None:
    text = (line("SELECT 0") + b"#TS:1795264424\r\n" + line("MULTI") + line("XADD s 1-1 f v") + line("EXEC")) * 1000
    found = log_columns(text)

    assert found is not None
    assert (len(found), found.taken, len(found.annotations)) == (4000, len(text), 1000)
