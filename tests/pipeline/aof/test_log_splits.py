"""A log's files, and the places where they may be split; no Spark."""

import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.pipeline.aof import log_splits
from penstock.pipeline.aof.log_files import DamagedLog, LogPart, bytes_of, parts_of
from penstock.pipeline.aof.log_splits import boundary, splits_of
from penstock.pipeline.connector.connection.client import packed
from penstock.pipeline.errors import OptionError, PipelineError
from penstock.protocol.log_reader import LogReader
from tests.support.seeds import examples

MANIFEST = b"file a.1.base.aof seq 1 type b\nfile a.1.incr.aof seq 1 type i\nfile a.2.incr.aof seq 2 type i\n"

# Words that invite mistakes: line ends, headers, whole requests with and without their last line end.
A_REQUEST = packed("XADD", "s", "*", "f", "v")
AWKWARD = [
    b"",
    b"\r\n",
    b"\r",
    b"$3\r\nabc",
    A_REQUEST,
    A_REQUEST[:-2],
    b"\r\n" + A_REQUEST,
    A_REQUEST * 9,
    b"#TS:1\r\n",
]
WORDS = st.one_of(st.binary(max_size=40), st.sampled_from(AWKWARD), st.sampled_from([b"XADD", b"s", b"*"]))
REQUESTS = st.lists(st.lists(WORDS, min_size=1, max_size=6), max_size=40)


def packed_all(requests):
    return b"".join(packed(*words) for words in requests)


def read(text, start=0, end=None):
    """What the reader makes of the bytes: requests with their offsets (annotations have no words)."""
    reader = LogReader(bytes_of(io.BytesIO(text)), start, len(text) if end is None else end)
    found = []
    while (block := reader.next_block()) is not None:
        found += zip(block.offsets(), block.requests, strict=True)
    if reader.is_cut_off:
        raise DamagedLog("ends within a request")
    if reader.damage:
        raise DamagedLog(reader.damage.offset)
    return found


def offsets_of(requests):
    at = 0
    for words in requests:
        yield at
        at += len(packed(*words))


@given(REQUESTS)
def test_requests_come_out_as_they_went_in_with_their_offsets(requests):
    assert read(packed_all(requests)) == list(zip(offsets_of(requests), requests, strict=True))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(40))
@given(REQUESTS, st.integers(1, 400))
def test_any_splits_give_what_one_reading_gives(monkeypatch, tmp_path, requests, split_bytes):
    # A short look behind and ahead deceives the cuts; what they may never do is to be wrong in silence.
    monkeypatch.setattr(log_splits, "LOOK_BACK", 64)
    monkeypatch.setattr(log_splits, "PROOF", 64)
    path = tmp_path / "log"
    path.write_bytes(text := packed_all(requests))
    splits = splits_of([LogPart(str(path), 1, len(text), True)], split_bytes)

    assert [split.start for split in splits[1:]] == [split.end for split in splits[:-1]]
    assert pieces_of(text, splits) in (read(text), "told")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(40))
@given(REQUESTS, st.integers(1, 400))
def test_values_shorter_than_the_look_back_deceive_no_cut(tmp_path, requests, split_bytes):
    path = tmp_path / "log"
    path.write_bytes(text := packed_all(requests))
    splits = splits_of([LogPart(str(path), 1, len(text), True)], split_bytes)

    assert pieces_of(text, splits) == read(text)


def pieces_of(text, splits):
    try:
        return [found for split in splits for found in read(text, split.start, split.end)]
    except DamagedLog:
        return "told"


def test_annotations_stand_between_requests_and_not_in_values():
    text = b"#TS:1795264424\r\n" + packed("SET", "k", b"\r\n#TS:9\r\n") + b"#TS:1795264425\r\n" + packed("DEL", "k")

    assert read(text) == [
        (0, []),
        (16, [b"SET", b"k", b"\r\n#TS:9\r\n"]),
        (51, []),
        (67, [b"DEL", b"k"]),
    ]


def test_a_value_longer_than_any_block_is_read():
    value = b"*1\r\n$4\r\nPING\r\n" * 200_000

    requests = [[b"SET", b"k", value], [b"SET", b"k", b"v"]]
    assert read(packed_all(requests)) == list(zip(offsets_of(requests), requests, strict=True))


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        pytest.param(b"PING\r\n", 0, id="an inline request"),
        pytest.param(A_REQUEST + b"\r\n", len(A_REQUEST), id="an empty line"),
        pytest.param(b"*0\r\n", 0, id="no words"),
        pytest.param(b"*1\r\n:5\r\n", 4, id="a number for a word"),
        pytest.param(b"*1\r\n$-1\r\n", 4, id="a null for a word"),
        pytest.param(b"*-1\r\n", 0, id="a null"),
        pytest.param(b"*1\r\n*1\r\n$1\r\na\r\n", 4, id="a list for a word"),
        pytest.param(b"*1\r\n$3\r\nPING\r\n", 11, id="a length too small"),
        pytest.param(b"*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n", 12, id="no line end behind a word"),
        pytest.param(b"+OK\r\n", 0, id="a reply"),
        pytest.param(bytes(100), 0, id="zeros"),
    ],
)
def test_what_is_no_request_is_told_with_its_place(text, offset):
    with pytest.raises(DamagedLog) as told:
        read(text)

    assert told.value.args == (offset,)


@pytest.mark.parametrize("missing", range(1, len(A_REQUEST)))
def test_an_end_within_a_request_is_told_wherever_it_is(missing):
    with pytest.raises(DamagedLog, match="ends within"):
        read((A_REQUEST * 2)[:-missing])


# -- cuts -------------------------------------------------------------------------------------------------------------


def test_a_cut_moves_to_the_next_request(tmp_path):
    text = A_REQUEST * 100_000
    file = io.BytesIO(text)

    assert boundary(file, len(A_REQUEST) * 50_000, len(text)) == len(A_REQUEST) * 50_000
    assert boundary(file, len(A_REQUEST) * 50_000 + 1, len(text)) == len(A_REQUEST) * 50_001


def test_a_long_value_made_of_requests_is_noticed_by_the_task_before_it(tmp_path):
    inner = A_REQUEST * 200_000  # 7 MB
    path = tmp_path / "log"
    path.write_bytes(text := packed("SET", "k", "v") + packed("SET", "k", inner) + A_REQUEST * 3)
    first, *_ = splits_of([LogPart(str(path), 1, len(text), True)], len(text) // 2)

    with pytest.raises(DamagedLog, match="ends within"):
        read(text, first.start, first.end)


def test_a_cut_within_a_torn_last_value_is_the_end_of_the_file(tmp_path):
    text = A_REQUEST * 10 + packed("SET", "k", b"x" * 2_000_000)[:1_000_000]

    assert boundary(io.BytesIO(text), 900_000, len(text)) == len(text)


# -- files ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def log(tmp_path):
    inner = tmp_path / "appendonlydir"
    inner.mkdir()
    for name in ("a.1.base.aof", "a.1.incr.aof", "a.2.incr.aof"):
        (inner / name).write_bytes(A_REQUEST)
    (inner / "a.manifest").write_bytes(MANIFEST)
    return tmp_path


@pytest.mark.parametrize("named", ["", "appendonlydir", "appendonlydir/", "appendonlydir/a.manifest"])
def test_the_manifest_says_which_files_and_in_which_order(log, named):
    parts, skipped = parts_of(str(log / named))

    assert [(part.name, part.seq, part.size, part.is_last) for part in parts] == [
        ("a.1.base.aof", 1, len(A_REQUEST), False),
        ("a.1.incr.aof", 2, len(A_REQUEST), False),
        ("a.2.incr.aof", 3, len(A_REQUEST), True),
    ]
    assert skipped == []


def test_one_file_can_be_read_alone(log):
    parts, _ = parts_of(str(log / "appendonlydir/a.1.incr.aof"))

    assert [(part.name, part.seq, part.is_last) for part in parts] == [("a.1.incr.aof", 1, True)]


def test_a_snapshot_is_skipped_with_a_word(log):
    (log / "appendonlydir/a.1.base.aof").write_bytes(b"REDIS0012 and so on")

    parts, skipped = parts_of(str(log))

    assert [part.seq for part in parts] == [2, 3]
    assert len(skipped) == 1
    assert "a.1.base.aof is an RDB snapshot and is skipped" in skipped[0]


def test_a_single_file_behind_a_snapshot_is_refused_because_half_of_it_would_be_lost(log):
    mixed = log / "appendonlydir/a.1.incr.aof"
    mixed.write_bytes(b"REDIS0012 and so on" + A_REQUEST)

    with pytest.raises(PipelineError, match="begins with an RDB snapshot"):
        parts_of(str(mixed))


def test_a_file_that_is_gone_is_named(log):
    (log / "appendonlydir/a.2.incr.aof").unlink()

    with pytest.raises(PipelineError, match=r"there is no .*a\.2\.incr\.aof"):
        parts_of(str(log))


def test_a_directory_without_a_log_and_one_with_two_are_refused(log, tmp_path_factory):
    with pytest.raises(OptionError, match="there is no log in"):
        parts_of(str(tmp_path_factory.mktemp("empty")))
    Path(log / "appendonlydir/b.manifest").write_bytes(MANIFEST)
    with pytest.raises(OptionError, match="holds several logs"):
        parts_of(str(log))


def test_a_url_needs_fsspec(log):
    with pytest.raises(PipelineError, match=r"fsspec|cannot be opened"):
        parts_of("nosuchscheme://bucket/log")
