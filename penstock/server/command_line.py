"""Removes passwords from the command line that every user of the machine can see (ps).

Linux shows the copy in the process's own memory, and lets the process overwrite it. So no restart and no library are
needed; the password is visible only while the interpreter starts. (Redis sets a process title instead.)
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from penstock.config.directives import SECRETS

HIDDEN: Final = b"***"  # short: the words must fit into the memory of the originals
LINES_TO_HIDE: Final = frozenset({b"user", b"rename-command"})  # all words of these directives are hidden
_BEGIN: Final = 48 - 3  # field of /proc/self/stat, counted behind the name's bracket: address of the first word
_END: Final = 49 - 3


def hide_secrets(arguments: Sequence[str]) -> bool:
    """Hide secrets in this process's command line, which has these arguments; False if that is impossible.

    True also if there are no secrets.
    """
    given = [os.fsencode(word) for word in arguments]
    if without_secrets(given) == given:
        return True
    try:
        hidden = without_secrets(Path("/proc/self/cmdline").read_bytes().split(b"\0")[:-1])
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        begin, end = int(fields[_BEGIN]), int(fields[_END])
        shown = b"".join([word + b"\0" for word in hidden])[: end - begin - 1]
        with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
            memory.seek(begin)
            memory.write(shown.ljust(end - begin, b"\0"))
    except (OSError, ValueError, IndexError):
        return False
    return True


def without_secrets(words: Sequence[bytes]) -> list[bytes]:
    """The words of a command line with the values of secret directives hidden.

    >>> without_secrets([b"serve", b"--requirepass", b"x", b"--port", b"1"])
    [b'serve', b'--requirepass', b'***', b'--port', b'1']
    """
    shown: list[bytes] = []
    hides_one = hides_all = False
    for word in words:
        if hides_one:
            shown.append(HIDDEN)
            hides_one = False
        elif word.startswith(b"--") and len(word) > 2:
            flag, blank, value = word.partition(b" ")  # a directive and its value may be one word
            name = flag[2:].lower()
            is_secret = name in SECRETS
            hides_all = name in LINES_TO_HIDE
            hides_one = is_secret and not value
            shown.append(flag + blank + HIDDEN if value and (is_secret or hides_all) else word)
        else:
            shown.append(HIDDEN if hides_all else word)
    return shown
