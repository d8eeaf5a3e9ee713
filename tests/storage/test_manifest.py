"""The manifest as text, in both directions, and every way in which it may be wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import UsageError
from penstock.storage.aof import manifest as manifests
from penstock.storage.aof.manifest import BASE, INCREMENT, LogFile, Manifest

FRESH = b"file appendonly.aof.1.base.aof seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n"


def test_what_redis_writes_is_read() -> None:
    manifest = manifests.parse(
        b"file appendonly.aof.2.base.aof seq 2 type b\n"
        b"file appendonly.aof.1.incr.aof seq 1 type h\n"
        b"file appendonly.aof.2.incr.aof seq 2 type i startoffset 0 endoffset 17\n"
    )

    assert [(file.name, file.seq) for file in manifest.files()] == [
        ("appendonly.aof.2.base.aof", 2),
        ("appendonly.aof.2.incr.aof", 2),
    ]
    assert [file.name for file in manifest.history] == ["appendonly.aof.1.incr.aof"]


def test_a_manifest_survives_the_way_there_and_back() -> None:
    assert manifests.text_of(manifests.parse(FRESH)) == FRESH


def test_the_base_comes_first_wherever_it_stood() -> None:
    text = b"file i seq 3 type i\nfile b seq 1 type b\n"
    assert manifests.text_of(manifests.parse(text)) == b"file b seq 1 type b\nfile i seq 3 type i\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"# said by somebody\nfile a seq 1 type b\n", id="comment"),
        pytest.param(b"FILE a SEQ 1 TYPE b\n", id="upper case"),
        pytest.param(b'type b seq 1 file "a"\r\n', id="another order, quoted, CRLF"),
        pytest.param(b"file a seq 1 type b fur ther\n", id="unknown pair"),
    ],
)
def test_forms_that_redis_takes_are_taken(text: bytes) -> None:
    assert manifests.text_of(manifests.parse(text)) == b"file a seq 1 type b\n"


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (b"", "Found an empty AOF manifest"),
        (b"\nfile a seq 1 type b\n", "Invalid AOF manifest file format"),
        (b"file a seq 1 type b\n\n", "Invalid AOF manifest file format"),
        (b"file a seq 1\n", "Invalid AOF manifest file format"),
        (b"file a seq 1 type b x\n", "Invalid AOF manifest file format"),
        (b"file a seq 0 type b\n", "Invalid AOF manifest file format"),
        (b"file a seq one type b\n", "Invalid AOF manifest file format"),
        (b'file "a seq 1 type b\n', "Invalid AOF manifest file format"),
        (b'file "" seq 1 type b\n', "Invalid AOF manifest file format"),
        (b"file a seq 2 type i\nfile b seq 2 type i\n", "Found a non-monotonic sequence number"),
        (b"file a seq 1 type b\nfile b seq 2 type b\n", "Found duplicate base file information"),
        (b"file a seq 1 type q\n", "Unknown AOF file type"),
        (b"file ../a seq 1 type b\n", "File can't be a path, just a filename"),
        (b"file " + b"a" * 1024 + b" seq 1 type b\n", "The AOF manifest file contains too long line"),
        (b"file a seq 1 type b", "The AOF manifest file contains too long line"),
    ],
)
def test_what_is_no_manifest_is_refused_in_rediss_words(text: bytes, refusal: str) -> None:
    with pytest.raises(UsageError) as refused:
        manifests.parse(text)
    assert str(refused.value).startswith(refusal)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/"), min_size=1, max_size=60))
def test_any_file_name_survives(name: str) -> None:
    manifest = Manifest()
    manifest.base = LogFile(name, 7, BASE)
    manifest.increments.append(LogFile("plain", 1, INCREMENT))

    again = manifests.parse(manifests.text_of(manifest))

    assert again.base is not None
    assert again.base.name == name
