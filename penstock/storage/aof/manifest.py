"""The log's manifest: the files that make up the log, as text (Redis 7 and later).

One line for each file, `file <name> seq <n> type <b|h|i>`: the base, history (files to be deleted), increments. This
module turns bytes into a Manifest and back; storage/aof/log_directory.py handles the files.
"""

import re
from typing import Final

from penstock.errors import UsageError

BASE: Final = "b"
HISTORY: Final = "h"
INCREMENT: Final = "i"

LONGEST_LINE: Final = 1024  # bytes, with the line feed

_WORD: Final = re.compile(rb"""\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s"']+))(?=\s|\Z)""", re.DOTALL)
_ESCAPE: Final = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_PLAIN: Final = re.compile(r"[!#-&(-\[\]-~]+")  # ASCII without blanks, quotes and backslashes
_LETTERS: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}


class LogFile:
    """One file of the log. `kind` is BASE, HISTORY or INCREMENT."""

    __slots__ = ("kind", "name", "seq")

    def __init__(self, name: str, seq: int, kind: str) -> None:
        self.name = name
        self.seq = seq
        self.kind = kind


class Manifest:
    """The files of a log. Invariants: at most one base; the numbers of the increments ascend."""

    __slots__ = ("base", "history", "increments")

    def __init__(self) -> None:
        self.base: LogFile | None = None
        self.history: list[LogFile] = []
        self.increments: list[LogFile] = []

    def files(self) -> list[LogFile]:
        """The files that make up the log, in the order in which they are loaded."""
        return ([] if self.base is None else [self.base]) + self.increments

    def copy(self) -> "Manifest":
        """A copy with lists of its own."""
        copied = Manifest()
        copied.base = self.base
        copied.history, copied.increments = self.history[:], self.increments[:]
        return copied

    def retire(self, file: LogFile) -> None:
        """Mark a file as no longer needed: history."""
        self.history.append(LogFile(file.name, file.seq, HISTORY))


def parse(text: bytes) -> Manifest:
    """Read a manifest; UsageError, with Redis's text, if it is malformed."""
    if not text:
        raise UsageError("Found an empty AOF manifest")
    manifest = Manifest()
    *lines, rest = text.split(b"\n")
    for number, line in enumerate([*lines, rest] if rest else lines, 1):
        where = f" (line {number}: {line.strip()[:200].decode('utf-8', 'replace')})"
        if len(line) >= LONGEST_LINE or number > len(lines):  # Redis has the same error for a line without a line feed
            raise UsageError("The AOF manifest file contains too long line" + where)
        if not line.startswith(b"#"):
            _add(manifest, _file_of(line, where), where)
    return manifest


def _add(manifest: Manifest, file: LogFile, where: str) -> None:
    if file.kind == BASE:
        if manifest.base is not None:
            raise UsageError("Found duplicate base file information" + where)
        manifest.base = file
    elif file.kind == HISTORY:
        manifest.history.append(file)
    else:
        if manifest.increments and file.seq <= manifest.increments[-1].seq:
            raise UsageError("Found a non-monotonic sequence number" + where)
        manifest.increments.append(file)


def _file_of(line: bytes, where: str) -> LogFile:
    words = _words(line)
    if words is None or len(words) < 6 or len(words) % 2:
        raise UsageError("Invalid AOF manifest file format" + where)
    name, seq, kind = "", 0, ""
    for key, value in zip(words[::2], words[1::2], strict=True):
        match key.lower():
            case b"file":
                name = value.decode("utf-8", "surrogateescape")
                if "/" in name:
                    raise UsageError("File can't be a path, just a filename" + where)
            case b"seq":
                seq = int(value) if value.isdigit() and len(value) < 19 else 0
            case b"type":
                kind = value.decode("utf-8", "replace")
    if not name or not seq or not kind:
        raise UsageError("Invalid AOF manifest file format" + where)
    if kind not in (BASE, HISTORY, INCREMENT):
        raise UsageError("Unknown AOF file type" + where)
    return LogFile(name, seq, kind)


def _words(line: bytes) -> list[bytes] | None:
    """The words of a line, which may be quoted like C strings; None if the quotes are unbalanced."""
    words: list[bytes] = []
    line = line.strip()
    at = 0
    while at < len(line):
        match = _WORD.match(line, at)
        if match is None:
            return None
        double, single, plain = match.groups()
        if double is not None:
            words.append(_ESCAPE.sub(_unescaped, double))
        else:
            words.append(plain if single is None else single.replace(b"\\'", b"'"))
        at = match.end()
    return words


def _unescaped(match: re.Match[bytes]) -> bytes:
    digits, letter = match.groups()
    if digits is not None:
        return bytes([int(digits, 16)])
    return _LETTERS.get(letter, letter)


def text_of(manifest: Manifest) -> bytes:
    """A manifest as bytes: base, history, increments."""
    base = [] if manifest.base is None else [manifest.base]
    return b"".join(
        b"file %b seq %d type %b\n" % (_quoted(file.name), file.seq, file.kind.encode())
        for file in [*base, *manifest.history, *manifest.increments]
    )


def _quoted(name: str) -> bytes:
    if _PLAIN.fullmatch(name):
        return name.encode()
    quoted = b"".join(
        b"\\" + bytes([byte]) if byte in b'"\\' else bytes([byte]) if 32 <= byte < 127 else b"\\x%02x" % byte
        for byte in name.encode("utf-8", "surrogateescape")
    )
    return b'"%b"' % quoted
