"""The files of a log, in the order in which a server loads them.

A path is a log's directory (or its parent), its manifest, or one file. A URL (`://`) is opened by fsspec, which must be
installed; any other path is local, and on a cluster every executor must be able to read it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from penstock.errors import UsageError
from penstock.pipeline.errors import OptionError, PipelineError
from penstock.protocol.log_reader import Bytes
from penstock.storage.aof import manifest as manifests

SNAPSHOT_MAGIC: Final = b"REDIS"
MANIFEST: Final = ".manifest"
UNFINISHED: Final = "temp-"  # what a server is still writing


class DamagedLog(PipelineError):
    """A file of the log cannot be read as requests; the text names file, offset and what would help."""


@dataclass(frozen=True, slots=True)
class LogPart:
    """One file of a log: its number in the order (from 1), and its size in bytes when the read was planned.

    `is_last`: the server may still be writing this file; only its end may be incomplete. `increment`: the number that
    the manifest gives an increment, by which it is known after a rewrite; 0 for any other file.
    """

    path: str
    seq: int
    size: int
    is_last: bool
    increment: int = 0

    @property
    def name(self) -> str:
        return self.path.rstrip("/").rpartition("/")[2]


def parts_of(path: str) -> tuple[list[LogPart], list[str]]:
    """The log's files, and a warning for each that is left out.

    A base file in RDB form is left out: it has the state at the last rewrite, not the commands that led to it.
    """
    manifest = _manifest_of(path)
    named: list[tuple[str, bool, int]]  # path, is a base, number of an increment
    if manifest is None:
        named = [(path, False, 0)]
    else:
        above = manifest.rpartition("/")[0]
        try:
            with opened(manifest) as file:
                files = manifests.parse(file.read()).files()
        except UsageError as refusal:
            raise PipelineError(f"{manifest}: {refusal}") from None
        named = []
        for one in files:
            is_base = one.kind == manifests.BASE
            named.append((f"{above}/{one.name}" if above else one.name, is_base, 0 if is_base else one.seq))
    parts, warnings = [], []
    for seq, (name, is_base, increment) in enumerate(named, 1):
        with opened(name) as file:
            magic = file.read(len(SNAPSHOT_MAGIC))
            size = file.seek(0, os.SEEK_END)
        if magic == SNAPSHOT_MAGIC:
            if not is_base:
                raise PipelineError(
                    f"{name} begins with an RDB snapshot, which is not read: make the server write its base as "
                    "requests (CONFIG SET aof-use-rdb-preamble no, then BGREWRITEAOF)"
                )
            warnings.append(f"{name} is an RDB snapshot and is skipped: the table holds what was logged after it")
            continue
        parts.append(LogPart(name, seq, size, seq == len(named), increment))
    return parts, warnings


def _manifest_of(path: str) -> str | None:
    """The manifest that `path` is or leads to; None where it is one file of a log."""
    if path.endswith(MANIFEST):
        return path
    if not _is_directory(path):
        return None
    path = path.rstrip("/")
    found = _manifests_in(path)
    if not found:
        found = [below for inner in _directories_in(path) for below in _manifests_in(inner)]
    if len(found) == 1:
        return found[0]
    if found:
        raise OptionError(f"{path} holds several logs: {', '.join(found)}. Name one of them.")
    raise OptionError(f"there is no log in {path}: no file there is called *{MANIFEST}")


def _manifests_in(directory: str) -> list[str]:
    return [
        f"{directory}/{name}"
        for name in _names_in(directory)
        if name.endswith(MANIFEST) and not name.startswith(UNFINISHED)
    ]


# -- where the bytes are ----------------------------------------------------------------------------------------------


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """The file, for reading from any place. PipelineError where it is gone: a rewrite removes what it replaces."""
    try:
        if "://" in path:
            file = cast(BinaryIO, _fsspec(path).open(path, "rb"))
        else:
            file = Path(path).open("rb")  # noqa: SIM115 - closed by the `with` below
    except FileNotFoundError:
        raise PipelineError(f"there is no {path}; if the server has rewritten its log meanwhile, read again") from None
    with file:
        yield file


def bytes_of(file: BinaryIO) -> Bytes:
    """An open file's bytes by offset, as the log's reader takes them."""

    def read(offset: int, most: int) -> bytes:
        file.seek(offset)
        return file.read(most)

    return read


def size_of(path: str) -> int | None:
    """A file's bytes; None if it is gone."""
    try:
        with opened(path) as file:
            return file.seek(0, os.SEEK_END)
    except PipelineError:
        return None


def _is_directory(path: str) -> bool:
    if "://" in path:
        return bool(_fsspec(path).isdir(path))
    return Path(path).is_dir()


def _names_in(directory: str) -> list[str]:
    if "://" in directory:
        found = _fsspec(directory).ls(directory, detail=False)
        return sorted(name.rstrip("/").rpartition("/")[2] for name in found)
    return sorted(path.name for path in Path(directory).iterdir())


def _directories_in(directory: str) -> list[str]:
    return [inner for name in _names_in(directory) if _is_directory(inner := f"{directory}/{name}")]


def _fsspec(path: str) -> Any:
    """The file system of a URL. OptionError where nothing here can open it."""
    if find_spec("fsspec") is None:
        raise OptionError(f"{path} needs the package fsspec, which is not installed: pip install fsspec")
    try:
        return import_module("fsspec.core").url_to_fs(path)[0]
    except (ImportError, ValueError) as failure:
        raise OptionError(f"{path} cannot be opened: {failure}") from None
