"""The Lua that scripts run in: LuaJIT 2.1, interpreting. The one module that knows `lupa`.

Nothing but bytes, numbers and booleans passes between the two, and whatever goes wrong here reaches a script as text.
What scripts see is made by the files in lua/: guard (bounds), tables, text, patterns, numbers, replies, sandbox.

Memory has two bounds. Above SOFT_LIMIT a watched script is stopped by its hook and a request of any script is refused.
HARD_LIMIT is the allocator's. Between them there is room for what the host hands to Lua: an allocation that failed
there would end the process, or hang it.
"""

import hashlib
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, Protocol, cast

from penstock.engine import refusals
from penstock.engine.scripting import lua_numbers, lua_values, native_json, native_message_pack
from penstock.engine.scripting.script_calls import Calls
from penstock.engine.scripting.shebang import FLAGS, is_name
from penstock.errors import ReplyError
from penstock.native.build import IS_COMPILED
from penstock.protocol import reply

if TYPE_CHECKING:
    from penstock.engine.scripting.script_source import Change

LIBRARIES: Final = ("cjson", "cmsgpack", "struct")
SOURCES: Final = Path(__file__).with_name("lua")
OURS: Final = b"=[penstock]"  # the name of our own chunks
MIB: Final = 1024 * 1024
SOFT_LIMIT = 512 * MIB  # these two are not Final: tests set them, also where this is compiled
HARD_LIMIT = 640 * MIB
RESERVE: Final = 16 * MIB  # of it, kept for small allocations
MUCH: Final = 24 * MIB  # in use after a script: its garbage is collected at once
LARGE: Final = 64 * 1024  # words and replies from this size on are weighed before they are handed over
MOST_CONVERTED: Final = 64 * 1024  # bytes that are converted at once: nothing stops that
OF_JSON: Final = 106  # j: the second byte of what is to be converted, behind a NUL; else it is MessagePack
MOST_PASSED: Final = 200  # words passed one by one; more come as one text
NO_LUAJIT: Final = (
    b"ERR This server runs no Lua scripts but the lock scripts of redis-py, because the Python package lupa on this"
    b" platform has no LuaJIT: install a build of lupa 2.8 or newer that has the module lupa.luajit21"
)
OUT_OF_MEMORY: Final = b"ERR not enough memory"
NO_ROOM: Final = reply.error(OUT_OF_MEMORY)
NULL: Final = (
    b"local null = newproxy(true) getmetatable(null).__tostring = function() return 'userdata: (nil)' end return null"
)


class Runtime(Protocol):
    """The part of lupa's LuaRuntime that is used."""

    def eval(self, code: bytes) -> Callable[..., bytes | int | float]: ...

    def execute(self, code: bytes, *words: object) -> Callable[..., object]: ...

    def table_from(self, values: dict[bytes, object]) -> object: ...

    def get_memory_used(self) -> int: ...

    def set_max_memory(self, size: int) -> None: ...

    def gccollect(self) -> None: ...


class Interface(Protocol):
    """The functions that sandbox.lua returns."""

    def __getitem__(self, name: bytes) -> Callable[..., bytes | int | None]: ...


class Coroutine(Protocol):
    """The part of lupa's coroutines that is used."""

    @property
    def send(self) -> "Callable[[object], object]": ...


class Tables(Protocol):
    """The tables that tables.lua returns."""

    def __getitem__(self, name: bytes) -> Interface: ...


def _number_of(version: str) -> int:
    """A version as scripts compare it.

    >>> hex(_number_of("8.6.3"))
    '0x80603'
    """
    major, minor, patch = map(int, version.split("."))
    return major << 16 | minor << 8 | patch


def _denied(thing: object, name: object, setting: bool) -> object:
    raise AttributeError("scripts do not look into the server")


class Machine:
    """One Lua state, with every script and function that was compiled in it.

    version: of the Redis that scripts see, "8.6.3". valkey_version: of the Valkey that they see; "" for a Redis.
    converts: MessagePack and JSON are read here (native_message_pack.py, native_json.py), where Python is compiled.
    """

    def __init__(self, server: Calls, version: str, valkey_version: str = "", converts: bool = IS_COMPILED) -> None:
        runtime, self._failure = _new_runtime()
        self._server = server
        self._runtime = runtime
        self._changes: list[Change] = []  # of the text that is compiled or loaded
        self._used = runtime.get_memory_used
        self._first_words: tuple[object, ...] = ()
        chance = lua_numbers.Chance()
        functions: dict[bytes, Callable[..., object]] = {
            b"set_resp": server.set_resp,
            b"log": server.report,
            b"killed": server.why_stop,
            b"prepare": self._prepared,
            b"spelt": _spelt,
            b"number_text": lua_numbers.word,
            b"integer_text": lua_numbers.whole,
            b"unsigned_text": lua_numbers.unsigned_text,
            b"sha1": lambda text: hashlib.sha1(text, usedforsecurity=False).hexdigest().encode(),
            b"random": chance.random,
            b"seed": chance.seed,
            b"is_flag": lambda flag: flag in FLAGS,
            b"is_name": is_name,
            b"pack_double": lua_numbers.message_number,
            b"unpack_double": lua_numbers.message_double,
            b"unpack_integer": lua_numbers.message_integer,
            b"pack_whole": lua_numbers.pack_whole,
            b"unpack_whole": lua_numbers.unpack_whole,
            b"pack_float": lua_numbers.pack_float,
            b"unpack_float": lua_numbers.unpack_float,
            b"converted": _converted,
            b"widen": lambda: runtime.set_max_memory(2 * HARD_LIMIT),
            b"narrow": lambda: runtime.set_max_memory(HARD_LIMIT),
        }
        host: dict[bytes, object] = {name: self._answering(function) for name, function in functions.items()}
        host |= {
            b"call": self._requested,
            b"first_words": self._keep_first_words,
            b"allowed": self._allowed,
            b"decode": runtime.execute(b"return require('string.buffer').decode"),
            b"null": runtime.execute(NULL),
            b"most_converted": MOST_CONVERTED if converts else 0,
            b"soft_limit": SOFT_LIMIT,
            b"ours": OURS,
            b"version": version.encode(),
            b"version_number": _number_of(version),
            b"valkey_version": valkey_version.encode(),
            b"valkey_version_number": _number_of(valkey_version or "0.0.0"),
        }
        interface = cast(Interface, self._sandbox(runtime.table_from(host)))
        self._compile = interface[b"compile"]
        self._forget = interface[b"forget"]
        self._hold = interface[b"hold"]
        self._run = interface[b"run"]
        self._place = cast("Callable[[], Coroutine]", interface[b"place"])
        self._send: Callable[[object], object] | None = None  # of the place, where it is free
        self._go_on = interface[b"go_on"]
        self._load = interface[b"load"]
        self._clear = interface[b"clear"]
        self._unhook = interface[b"unhook"]

    def _sandbox(self, host: object) -> object:
        """Run our files; what sandbox.lua gives back."""
        runtime = self._runtime
        runtime.execute(b"jit.off() jit.flush()")

        def made(name: str, *given: object) -> object:
            chunk = runtime.execute(b"return assert(loadstring(...))", (SOURCES / f"{name}.lua").read_bytes(), OURS)
            return chunk(*given)

        guard = made("guard", host)
        shared = made("tables", host, guard)
        self._shared = cast(Tables, shared)
        text = made("text", host, guard, shared, made("patterns"))
        replies = made("replies", host, guard)
        numbers = made("numbers", host, guard, shared)
        libraries: dict[bytes, object] = {}
        for name in LIBRARIES:
            library = cast("Callable[..., object]", made(name))
            libraries[name.encode()] = library(host, shared, guard)
        return made("sandbox", host, guard, shared, replies, text, numbers, runtime.table_from(libraries))

    def _tables(self) -> Interface:
        """The library table, for tests."""
        return self._shared[b"tables"]

    # -- what Lua calls: nothing is raised into it, and its allocator never fails here -----------------------------

    def _answering(self, function: Callable[..., object]) -> Callable[..., object]:
        """The function, with None for what cannot be answered."""
        used = self._used

        def answer(*words: object) -> object:
            try:
                found = function(*words)
            except Exception:
                return None
            if used() > HARD_LIMIT - RESERVE or (
                isinstance(found, bytes) and len(found) > LARGE and not self._has_room(len(found))
            ):
                return None
            return found

        return answer

    def _requested(self, *words: object) -> bytes | int:
        """redis.call: the reply as Lua takes it, also where it cannot be answered."""
        server = self._server
        if not server.in_place and self._used() > SOFT_LIMIT:  # in place nothing large is made
            return lua_values.handed(NO_ROOM)
        if self._first_words:
            words, self._first_words = self._first_words + words, ()
        return self._replied(words)

    def _keep_first_words(self, *words: object) -> None:
        """Of the next request, which has more words than one call of ours takes."""
        self._first_words = words

    def _replied(self, words: tuple[object, ...]) -> bytes | int:
        server = self._server
        try:
            found = server.call(words)
            leaves = server.must_leave
            if len(found) > LARGE and not self._has_room(lua_values.least_room(found, leaves)):
                found = NO_ROOM
            return lua_values.handed_in_the_end(found) if leaves else lua_values.handed(found)
        except Exception as failure:
            return lua_values.AS_ERROR + _trouble(failure)

    def _allowed(self, *words: object) -> bytes:
        """redis.acl_check_cmd: the text, also of why it cannot be answered."""
        if self._used() > SOFT_LIMIT:
            return OUT_OF_MEMORY
        try:
            return self._server.allowed(words)
        except Exception as failure:
            return _trouble(failure)

    def _prepared(self, code: bytes, is_script: bool) -> bytes:
        """The code for LuaJIT behind a `+`, or behind a `-` the line and what Lua 5.1 says is wrong there.

        is_script: what is compiled or loaded, to be changed as was said; else what a script compiles.
        """
        from penstock.engine.scripting import script_source  # imported late: a server without scripts starts without it

        try:
            return b"+" + script_source.prepared(code, is_script, self._changes if is_script else ())
        except script_source.Malformed as problem:
            return b"-" + problem.text

    def _has_room(self, size: int) -> bool:
        return self._used() + size < HARD_LIMIT - RESERVE

    # -- calls into Lua ---------------------------------------------------------------------------------------------

    def memory(self) -> int:
        """Bytes that Lua uses."""
        return self._used()

    def compile(self, sha: bytes, code: bytes, changes: "list[Change]") -> int | bytes:
        """Make a script ready to run, with changes of its text (quick_code.py): its number, or Lua's complaint.

        Errors in it name the SHA.
        """
        self._changes = changes
        return self._guarded(self._compile, len(code), (sha, code)) or 0

    def forget(self, number: int) -> None:
        """Forget a script or function."""
        self._forget(number)

    def run(self, number: int, resp: int, watched: bool, keys: int, words: list[bytes], size: int) -> bytes:
        """Run a script or function to its end: its reply. size: bytes of all words."""
        if len(words) > MOST_PASSED:
            trouble = self._hand_over(words)
            if trouble is not None:
                return trouble
            words = []
        return _text(self._guarded(self._run, size, (number, resp, watched, keys, *words)))

    def run_in_place(self, number: int, resp: int, steps: int, keys: int, words: list[bytes]) -> bytes | None:
        """Run a script or function in so many steps (guard.lua): its reply; None where that is not enough, go_on then.

        Its requests are what the coroutine yields: a reply is what it is resumed with. So is a text behind a NUL, to be
        converted.
        """
        if len(words) > MOST_PASSED:
            trouble = self._hand_over(words)
            if trouble is not None:
                return trouble
            words = []
        send = self._send
        if send is None:
            send = self._place().send
        self._send = None
        try:
            found = send((number, resp, steps, keys, *words))
            while True:
                if isinstance(found, tuple):
                    found = send(self._replied(found))
                elif isinstance(found, bytes) and found[0] == 0:
                    found = send(_converted(found))
                else:
                    break
        except self._failure:
            return self._failed()
        if not isinstance(found, bytes):
            return None
        self._send = send
        return found

    def go_on(self, name: bytes) -> bytes:
        """Run the rest of a script or function, watched: its reply. Errors have its name."""
        return _text(self._guarded(self._go_on, 0, (name,)))

    def load(
        self, code: bytes, changes: "list[Change]", found: Callable[[float, bytes, bool, bytes, bytes, float], int]
    ) -> bytes | None:
        """Run a library's code, with changes as in `compile`; why that failed.

        It registers its functions: number, name, described, description, flags, line. `found` gives the number.
        """
        self._changes = changes
        trouble = self._guarded(self._load, len(code), (code, self._answering(found)))
        return None if trouble is None else _text(trouble)

    def _hand_over(self, words: list[bytes]) -> bytes | None:
        """Give Lua the words of the next run as one text, for its stack is short; the reply where there is no room."""
        packed = lua_values.packed_words(words)
        trouble = self._guarded(self._hold, len(packed), (packed,))
        return None if trouble is None else _text(trouble)

    def _guarded(
        self, function: Callable[..., bytes | int | None], size: int, words: tuple[object, ...]
    ) -> bytes | int | None:
        """The result of a function of the sandbox. `size` bytes of words are passed to Lua."""
        if size > LARGE and not self._has_room(3 * size):
            self._collect()
            if not self._has_room(size):
                return NO_ROOM
        try:
            answer = function(*words)
        except self._failure:
            return self._failed()
        if not self._server.in_place and self._used() > MUCH:
            self._collect()
        return answer

    def _failed(self) -> bytes:
        """The reply of what ran out of memory amid our own Lua, or was stopped there."""
        self._collect()
        return reply.error(self._server.why_stop() or OUT_OF_MEMORY)

    def _collect(self) -> None:
        """Free all garbage, which needs memory, too, and give it back to the system."""
        self._send = None
        self._runtime.set_max_memory(2 * HARD_LIMIT)
        self._unhook()
        self._clear()
        before = self._used() + 1
        while self._used() < before:  # each time LuaJIT halves the buffer in which it makes texts
            before = self._used()
            self._runtime.gccollect()
        self._runtime.set_max_memory(HARD_LIMIT)
        self._server.give_memory_back()


def _new_runtime() -> tuple[Runtime, type[Exception]]:
    """LuaJIT, with its allocator's bound, and the exception of its errors."""
    try:
        import_module("lupa")  # an extra; mypyc's import statement would not ask sys.modules a second time
    except ImportError:
        raise ReplyError(refusals.NO_LUA) from None
    try:
        luajit21 = _import_luajit()
    except ImportError:
        raise ReplyError(NO_LUAJIT) from None
    runtime = luajit21.LuaRuntime(
        encoding=None, register_eval=False, register_builtins=False, attribute_filter=_denied,
        unpack_returned_tuples=False, max_memory=HARD_LIMIT,
    )  # fmt: skip
    return runtime, luajit21.LuaError


def _import_luajit() -> ModuleType:
    """lupa's LuaJIT, bound to its own symbols. ImportError where there is none.

    Where the program loaded another Lua for all (lupa.allow_lua_module_loading, as fakeredis does), LuaJIT would else
    call that one's functions: the process ends, or each script fails.
    """
    flags = sys.getdlopenflags()
    sys.setdlopenflags(flags | getattr(os, "RTLD_DEEPBIND", 0))  # macOS has no such flag, and needs none
    try:
        return import_module("lupa.luajit21")
    finally:
        sys.setdlopenflags(flags)


def _converted(text: bytes) -> bytes | None:
    """A text of a library, behind a NUL and what it is, as string.buffer reads it; None where Lua has to read it."""
    if text[1] == OF_JSON:
        return native_json.decoded(text, 2)
    return native_message_pack.unpacked(text, 2)


def _text(answer: bytes | int | None) -> bytes:
    """An error or a reply; empty if there is neither."""
    assert not isinstance(answer, int), "numbers are answers of Lua to Lua only"
    return answer or b""


def _trouble(failure: Exception) -> bytes:
    """Why a request could not be answered."""
    if isinstance(failure, MemoryError):
        return OUT_OF_MEMORY
    return b"ERR internal error: %b" % type(failure).__name__.encode()


def _spelt(code: bytes) -> bytes:
    """The code that a script passes to `load`, rewritten for LuaJIT."""
    from penstock.engine.scripting import script_source

    return b"+" + script_source.spelt(code)
