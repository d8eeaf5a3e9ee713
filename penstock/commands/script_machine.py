"""The Lua 5.1 that scripts run in. The one module that knows `lupa`; it stays Python where the rest is compiled.

Nothing but bytes, numbers and booleans passes between the two; no script ever holds a Python object that it can look
into. What scripts see is made by lua/sandbox.lua.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol, cast

from penstock.commands import script_bytecode, script_numbers
from penstock.errors import ReplyError
from penstock.protocol import reply

LIBRARIES: Final = ("cjson", "cmsgpack", "struct", "bit")
SOURCES: Final = Path(__file__).with_name("lua")
MOST_MEMORY: Final = 512 * 1024 * 1024
MOST_PASSED: Final = 200  # words passed one by one; more come as one text
NO_LUA: Final = (
    b"ERR This server runs no Lua scripts but the lock scripts of redis-py, because the Python package lupa is not"
    b" installed: pip install 'penstock[lua]'"
)
FLAGS: Final = frozenset((b"no-writes", b"allow-oom", b"allow-stale", b"no-cluster", b"allow-cross-slot-keys"))
NAME_BYTES: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
NULL: Final = (
    b"local null = newproxy(true) getmetatable(null).__tostring = function() return 'userdata: (nil)' end return null"
)


class Server(Protocol):
    """What a running script may ask for (script_calls.py)."""

    def call(self, *words: object) -> bytes: ...

    def allowed(self, *words: object) -> bytes: ...

    def set_resp(self, version: float) -> None: ...

    def tell(self, level: float, text: bytes) -> None: ...

    def is_killed(self) -> bool: ...


class Interface(Protocol):
    """What sandbox.lua gives back."""

    def __getitem__(self, name: bytes) -> Callable[..., bytes | None]: ...


def is_name(name: bytes) -> bool:
    """Whether a library or a function may be called so."""
    return bool(name) and NAME_BYTES.issuperset(name)


def _denied(thing: object, name: object, setting: bool) -> object:
    raise AttributeError("scripts do not look into the server")


class Machine:
    """One Lua state, with every script and function that was compiled in it.

    version: of the Redis that scripts are told of, "8.6.3".
    """

    def __init__(self, server: Server, version: str) -> None:
        try:
            from lupa import lua51  # an extra
        except ImportError:
            raise ReplyError(NO_LUA) from None
        self._failure: type[Exception] = lua51.LuaError
        runtime = lua51.LuaRuntime(
            encoding=None, register_eval=False, register_builtins=False, attribute_filter=_denied,
            unpack_returned_tuples=False,
        )  # fmt: skip
        self._memory: Callable[[], bytes | int | float] = runtime.eval(b"function() return collectgarbage('count') end")
        chance = script_numbers.Chance()
        major, minor, patch = map(int, version.split("."))
        host = runtime.table_from(
            {
                b"call": server.call,
                b"allowed": server.allowed,
                b"set_resp": server.set_resp,
                b"log": server.tell,
                b"killed": server.is_killed,
                b"number_text": script_numbers.word,
                b"integer_text": script_numbers.whole,
                b"sha1": lambda text: hashlib.sha1(text, usedforsecurity=False).hexdigest().encode(),
                b"untail": script_bytecode.with_ordinary_calls,
                b"random": chance.random,
                b"seed": chance.seed,
                b"is_flag": lambda flag: flag in FLAGS,
                b"is_name": is_name,
                b"bits": script_numbers.bits,
                b"hex": script_numbers.hexadecimal,
                b"pack_double": script_numbers.message_number,
                b"unpack_double": script_numbers.message_double,
                b"unpack_integer": script_numbers.message_integer,
                b"pack_whole": script_numbers.pack_whole,
                b"unpack_whole": script_numbers.unpack_whole,
                b"pack_float": script_numbers.pack_float,
                b"unpack_float": script_numbers.unpack_float,
                b"null": runtime.execute(NULL),
                b"memory_limit": MOST_MEMORY,
                b"version": version.encode(),
                b"version_number": major << 16 | minor << 8 | patch,
            }
        )
        libraries = runtime.table_from({name.encode(): self._chunk(runtime, name) for name in LIBRARIES})
        made = runtime.execute(b"return loadstring(...)", (SOURCES / "sandbox.lua").read_bytes(), b"=penstock")
        interface = cast(Interface, made(host, libraries))
        self._compile = interface[b"compile"]
        self._forget = interface[b"forget"]
        self._run = interface[b"run"]
        self._load = interface[b"load"]
        self._drop = interface[b"drop"]
        self._call = interface[b"call"]

    def _chunk(self, runtime: object, name: str) -> object:
        load = cast("Callable[..., Callable[[], object]]", getattr(runtime, "execute"))  # noqa: B009  (untyped)
        return load(b"return loadstring(...)", (SOURCES / f"{name}.lua").read_bytes(), b"=penstock")()

    def memory(self) -> int:
        """Bytes that Lua uses."""
        return int(float(self._memory()) * 1024)

    def compile(self, sha: bytes, code: bytes) -> bytes | None:
        """Make a script ready to run; Lua's complaint where it is none."""
        return self._compile(sha, code)

    def forget(self, sha: bytes) -> None:
        self._forget(sha)

    def run(self, sha: bytes, resp: int, watched: bool, keys: int, words: list[bytes]) -> bytes:
        """Run a script to its end: its reply."""
        packed, passed = _passed(words)
        try:
            return self._run(sha, resp, watched, keys, packed, *passed) or b""
        except self._failure as failure:  # out of memory amid our own Lua
            return reply.error(b"ERR %b" % str(failure).encode())

    def call(self, key: bytes, name: bytes, resp: int, watched: bool, keys: int, words: list[bytes]) -> bytes:
        """Run a function of a library to its end: its reply."""
        packed, passed = _passed(words)
        try:
            return self._call(key, name, resp, watched, keys, packed, *passed) or b""
        except self._failure as failure:
            return reply.error(b"ERR %b" % str(failure).encode())

    def load(self, code: bytes, found: Callable[[bytes, bool, bytes, bytes], bytes]) -> bytes | None:
        """Run a library's code, which registers its functions; why that failed."""
        return self._load(code, found)

    def drop(self, key: bytes) -> None:
        self._drop(key)


def _passed(words: list[bytes]) -> tuple[bytes | None, list[bytes]]:
    """Lua's stack is short: many words go as one text."""
    if len(words) <= MOST_PASSED:
        return None, words
    return b"*%d\r\n%b" % (len(words), b"".join([b"$%d\r\n%b\r\n" % (len(text), text) for text in words])), []
