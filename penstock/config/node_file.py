"""Reads and replaces a small file as a whole (nodes.conf)."""

from pathlib import Path

from penstock.config import whole_file


def read(path: Path) -> str | None:
    """The file's text; None where there is no file, or an empty one. OSError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape") or None
    except FileNotFoundError:
        return None


def replace(path: Path, text: str) -> None:
    """Write the file anew, so that a crash leaves the old one or the new one. OSError if that fails."""
    whole_file.replace(path, text.encode(errors="surrogateescape"), 0o644)
