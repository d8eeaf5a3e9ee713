"""The first line of a script or a library: `#!lua name=mylib flags=no-writes` (Redis 8.6.3)."""

from typing import Final

from penstock.errors import ProtocolError, ReplyError
from penstock.protocol import inline

FLAGS: Final = (b"no-writes", b"allow-oom", b"allow-stale", b"no-cluster", b"allow-cross-slot-keys")  # as listed
NAME_BYTES: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def read(code: bytes) -> tuple[frozenset[bytes] | None, bytes]:
    """A script's flags, None where it has no such line, and the code for Lua, with as many lines as before."""
    if not code.startswith(b"#!"):
        return None, code
    line, newline, rest = code.partition(b"\n")
    if not newline:
        raise ReplyError(b"ERR Invalid script shebang")
    engine, *options = _words(line, b"ERR Invalid engine in script shebang")
    if engine != b"#!lua":
        raise ReplyError(b"ERR Unexpected engine in script shebang: " + engine)
    flags: set[bytes] = set()
    for option in options:
        name, equals, value = option.partition(b"=")
        if name != b"flags" or not equals:
            raise ReplyError(b"ERR Unknown lua shebang option: " + option)
        for flag in value.split(b",") if value else ():
            if flag not in FLAGS:
                raise ReplyError(b"ERR Unexpected flag in script shebang: " + flag)
            flags.add(flag)
    return frozenset(flags), newline + rest


def read_library(code: bytes) -> tuple[bytes, bytes]:
    """A library's name and the code for Lua."""
    if not code.startswith(b"#!"):
        raise ReplyError(b"ERR Missing library metadata")
    line, newline, rest = code.partition(b"\n")
    if not newline:
        raise ReplyError(b"ERR Invalid library metadata")
    engine, *options = _words(line, b"ERR Invalid library metadata")
    name: bytes | None = None
    for option in options:
        if option[:5].lower() != b"name=":
            raise ReplyError(b"ERR Invalid metadata value given: " + option)
        if name is not None:
            raise ReplyError(b"ERR Invalid metadata value, name argument was given multiple times")
        name = option[5:]
    if name is None:
        raise ReplyError(b"ERR Library name was not given")
    if not is_name(name):
        raise ReplyError(
            b"ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one"
            b" character long"
        )
    if engine[2:].lower() != b"lua":
        raise ReplyError(b"ERR Engine '%b' not found" % engine[2:])
    return name, newline + rest


def is_name(name: bytes) -> bool:
    """Whether a library or a function may be called so."""
    return bool(name) and NAME_BYTES.issuperset(name)


def _words(line: bytes, text: bytes) -> list[bytes]:
    """The line's words, which may be quoted."""
    try:
        return inline.split(line)
    except ProtocolError:
        raise ReplyError(text) from None
