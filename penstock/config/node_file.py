"""Reads and replaces a small file as a whole (nodes.conf)."""

import os
import tempfile
from pathlib import Path


def read(path: Path) -> str | None:
    """The file's text; None where there is no file, or an empty one. OSError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape") or None
    except FileNotFoundError:
        return None


def replace(path: Path, text: str) -> None:
    """Write the file anew, so that a crash leaves the old one or the new one. OSError if that fails."""
    with tempfile.NamedTemporaryFile("wb", dir=path.parent, prefix=path.name + ".", delete=False) as temporary:
        try:
            temporary.write(text.encode(errors="surrogateescape"))
            temporary.flush()
            os.fsync(temporary.fileno())
            Path(temporary.name).chmod(0o644)
            Path(temporary.name).replace(path)
        except OSError:
            Path(temporary.name).unlink()
            raise
