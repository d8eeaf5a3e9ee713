"""The refusals that many commands share, in Redis's words (Redis 8.6.3).

Each is a function, so that each refusal is a fresh exception.
"""

from typing import Final

from penstock.errors import ReplyError

SYNTAX: Final = b"ERR syntax error"
NO_LUA: Final = (
    b"ERR This server runs no Lua scripts but the lock scripts of redis-py, because the Python package lupa is not"
    b" installed: it is the extra `lua` of penstock-server (pip install '.[lua]' in a clone)"
)


def wrong_type() -> ReplyError:
    return ReplyError(b"WRONGTYPE Operation against a key holding the wrong kind of value")


def syntax() -> ReplyError:
    return ReplyError(SYNTAX)


def not_an_integer() -> ReplyError:
    return ReplyError(b"ERR value is not an integer or out of range")


def no_such_key() -> ReplyError:
    return ReplyError(b"ERR no such key")


def bad_id() -> ReplyError:
    return ReplyError(b"ERR Invalid stream ID specified as stream command argument")


def arity(label: bytes) -> ReplyError:
    """`label` is the row's: b"xgroup|create"."""
    return ReplyError(b"ERR wrong number of arguments for '%b' command" % label)


def unknown_or_wrong(word: bytes, container: bytes) -> ReplyError:
    return ReplyError(
        b"ERR unknown subcommand or wrong number of arguments for '%b'. Try %b HELP."
        % (c_string(word)[:128], container.upper())
    )


def unknown_subcommand(word: bytes, container: bytes) -> ReplyError:
    return ReplyError(b"ERR unknown subcommand '%b'. Try %b HELP." % (c_string(word)[:128], container.upper()))


def c_string(text: bytes) -> bytes:
    """As Redis interpolates names: cut at the first NUL byte."""
    return text.partition(b"\0")[0] if 0 in text else text


def no_group(key: bytes, group: bytes) -> ReplyError:
    return ReplyError(b"NOGROUP No such key '%b' or consumer group '%b'" % (c_string(key), c_string(group)))


def no_group_at(key: bytes, group: bytes) -> ReplyError:
    """As XGROUP and XINFO say it."""
    return ReplyError(b"NOGROUP No such consumer group '%b' for key name '%b'" % (c_string(group), c_string(key)))


def loading() -> ReplyError:
    """The log is being loaded, and the request needs the keys."""
    return ReplyError(b"LOADING Redis is loading the dataset in memory")


def out_of_memory() -> ReplyError:
    """More than maxmemory is used, and a request needs more (Redis 8.6.3)."""
    return ReplyError(b"OOM command not allowed when used memory > 'maxmemory'.")
