"""The scripts that a server keeps, and the one that runs.

A script or function that counts its steps begins in place (quick_code.py, quick_functions.py, guard.lua). What takes
more than two milliseconds of it, and any other, is given to the runner that the server hands in (script_runner.py),
which runs it in a thread; the engine waits for it, so that no two threads are at the keyspace. After
busy-reply-threshold the session is blocked and the server is *busy*: it refuses all requests with BUSY until the script
is over or killed. So it is inside EXEC, too.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from penstock.engine import refusals
from penstock.engine.context import BLOCKED, Context
from penstock.engine.replication.replication import MASTER_DOWN
from penstock.engine.scripting import lock_scripts, shebang
from penstock.engine.scripting.function_libraries import Function, Libraries
from penstock.engine.scripting.script_calls import Calls, OwnRequests
from penstock.engine.scripting.script_runner import ScriptRunner
from penstock.engine.session import QueuedRequests, Session
from penstock.engine.state import FOLLOWING, NEEDS_REPLICAS, RESTRICTED
from penstock.engine.table.row import RUNS_DIGEST, RUNS_FUNCTION, Row
from penstock.engine.waiting.blocked_request import BlockedRequest
from penstock.errors import ReplyError
from penstock.protocol import reply

if TYPE_CHECKING:
    from penstock.engine.scripting.lua_machine import Machine
    from penstock.engine.server_state import ServerState

MOST_EVALUATED: Final = 500  # scripts known by EVAL alone; the one used longest ago goes (Redis 8.6.3)
BUSY: Final = b"BUSY Redis is busy running a script. You can only call %b or SHUTDOWN NOSAVE."
NOT_BUSY: Final = b"NOTBUSY No scripts in execution right now."
UNKILLABLE: Final = (
    b"UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script"
    b" termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
)
WRITES_ON_REPLICA: Final = b"READONLY Can not run script with write flag on readonly replica"
NOT_STALE: Final = (
    b"MASTERDOWN Link with MASTER is down, replica-serve-stale-data is set to 'no' and 'allow-stale' flag is not set on"
    b" the script."
)
WRITES_IN_RO: Final = b"ERR Can not execute a script with write flag using *_ro command."


class Script:
    """A script that is compiled. `flags` are the shebang's, None without one; loaded: by SCRIPT LOAD, for good.

    number: Lua's, 0 without Lua. is_lock: whether it is a lock script of redis-py. steps: the most it may take in
    place, and the most bytes of words that it may be given there; 0 where it only runs in the thread.
    """

    __slots__ = ("code", "flags", "is_lock", "loaded", "number", "steps")

    def __init__(
        self, code: bytes, number: int, steps: int, flags: frozenset[bytes] | None, loaded: bool, is_lock: bool
    ) -> None:
        self.code = code
        self.number = number
        self.is_lock = is_lock
        self.flags = flags
        self.loaded = loaded
        self.steps = steps


class Transaction:
    """An EXEC with a long script: its request, its time, the queued requests, and the replies so far."""

    __slots__ = ("answers", "args", "now_us", "queue", "row")

    def __init__(self, row: Row, args: list[bytes], now_us: int, queue: QueuedRequests, answers: list[bytes]) -> None:
        self.row = row
        self.args = args
        self.now_us = now_us
        self.queue = queue
        self.answers = answers


class Running:
    """The running script: the session's request, since when it runs, and whether it is a function.

    transaction: the EXEC that it is part of, if it takes long.
    """

    __slots__ = ("args", "began_us", "blocked", "is_function", "name", "transaction")

    def __init__(self, name: bytes, args: list[bytes], began_us: int, is_function: bool) -> None:
        self.name = name
        self.args = args
        self.began_us = began_us
        self.is_function = is_function
        self.blocked: BlockedRequest | None = None
        self.transaction: Transaction | None = None


class Scripts:
    """Scripts by their SHA-1, the libraries of functions, and what is running.

    memory: bytes that Lua uses; a simulated process has another function, because LuaJIT takes other numbers each time.
    `runner` runs scripts that may take long, and has the caller of the engine call `Engine.finish_script` when one is
    over that took longer; without it they run in place.
    """

    def __init__(self, server: "ServerState", requests: OwnRequests) -> None:
        self._server = server
        self._machine: Machine | None = None
        self._lua_is_there: bool | None = None  # None: it was not looked for yet
        self._runner: ScriptRunner | None = None
        self.memory: Callable[[], int] = self._lua_bytes
        self.calls = Calls(requests, server.compatibility.is_valkey)
        self.libraries = Libraries(self.machine, self.calls, server.keyspace.libraries)
        self.cached: dict[bytes, Script] = {}
        self._evaluated: OrderedDict[bytes, None] = OrderedDict()  # of `cached`, those that may go, oldest first
        self.evicted = 0
        self.running: Running | None = None
        self.disconnected: list[Session] = []  # disconnected while the server was busy

    def use(self, runner: ScriptRunner) -> None:
        """Have what may take long run by a runner from here on."""
        self._runner = runner
        self.calls.lock = runner.lock

    def machine(self) -> "Machine":
        """Lua, begun when it is first asked for; refused where it is not installed."""
        if self._machine is None:
            from penstock.engine.scripting import lua_machine  # imported late: most servers run no scripts

            seen = self._server.compatibility
            self._machine = lua_machine.Machine(self.calls, seen.redis_version, seen.version if seen.is_valkey else "")
        return self._machine

    def _has_lua(self) -> bool:
        if self._lua_is_there is None:
            self._lua_is_there = self._machine is not None or find_spec("lupa") is not None
        return self._lua_is_there

    def _lua_bytes(self) -> int:
        return 0 if self._machine is None else self._machine.memory()

    # -- the cache --------------------------------------------------------------------------------------------------

    def add(self, code: bytes, loaded: bool) -> bytes:
        """Compile and keep a script; returns its SHA-1. ReplyError if the code is no valid script."""
        sha = hashlib.sha1(code, usedforsecurity=False).hexdigest().encode()
        script = self.cached.get(sha)
        if script is not None:
            if loaded and not script.loaded:
                script.loaded = True
                self._evaluated.pop(sha, None)
            return sha
        flags, body = shebang.read(code)
        is_lock = lock_scripts.is_lock_script(sha)
        if is_lock and not self._has_lua():
            self.cached[sha] = Script(code, 0, 0, None, True, True)
            return sha
        from penstock.engine.scripting import quick_code  # imported late: compiling its expressions takes 2 ms

        steps, changes = quick_code.judged(body)
        number = self.machine().compile(sha, body, changes)
        if isinstance(number, bytes):
            raise ReplyError(b"ERR Error compiling script (new function): " + number)
        self.cached[sha] = Script(code, number, steps, flags, loaded, is_lock)
        if not loaded:
            self._evaluated[sha] = None
            if len(self._evaluated) > MOST_EVALUATED:
                oldest, _ = self._evaluated.popitem(last=False)
                self.machine().forget(self.cached.pop(oldest).number)
                self.evicted += 1
        return sha

    def flush(self) -> None:
        if self._machine is not None:
            for script in self.cached.values():
                self._machine.forget(script.number)
        self.cached.clear()
        self._evaluated.clear()

    def flags_of(self, row: Row, name: bytes) -> frozenset[bytes] | None:
        """The flags of the script or function that EVAL and its relatives name; None if it is not known."""
        if row.runs_script == RUNS_FUNCTION:
            function = self.libraries.functions.get(name.lower())
            return None if function is None else function.flags
        if row.runs_script == RUNS_DIGEST:
            script = self.cached.get(name.lower())
            return None if script is None else script.flags
        try:
            return shebang.read(name)[0]
        except ReplyError:
            return None

    # -- running ----------------------------------------------------------------------------------------------------

    def run(self, ctx: Context, sha: bytes, script: Script, keys: int, words: list[bytes], read_only: bool) -> bytes:
        """The reply of a script that is kept."""
        if not script.loaded:
            self._evaluated.move_to_end(sha)
        read_only = self._admit(script.flags, read_only)
        if self._server.cluster is not None:
            self._look_at_cluster(script.flags, words[:keys])
        if script.is_lock:
            plain = not read_only and self._server.conditions.trouble is None and not ctx.session.state & RESTRICTED
            if not self._has_lua() or (plain and lock_scripts.succeeds(ctx.db, sha, keys, words)):
                self.calls.begin(ctx.session, ctx.db_index, ctx.now_us, read_only)
                given = words[:1] + words[keys:] if keys else []
                ended = lock_scripts.run(self.calls, sha, given)
                return self._ended(ctx, b"!" + ended[1:] if ended.startswith(b"-") else ended)
        return self._start(ctx, script.number, script.steps, sha, False, keys, words, read_only)

    def call(self, ctx: Context, function: Function, keys: int, words: list[bytes], read_only: bool) -> bytes:
        """The reply of a function of a library."""
        read_only = self._admit(function.flags, read_only)
        if self._server.cluster is not None:
            self._look_at_cluster(function.flags, words[:keys])
        return self._start(ctx, function.number, function.steps, function.name, True, keys, words, read_only)

    def _start(
        self,
        ctx: Context,
        number: int,
        most_steps: int,
        name: bytes,
        is_function: bool,
        keys: int,
        words: list[bytes],
        read_only: bool,
    ) -> bytes:
        """Run the script or function with a number in Lua, in place or in the thread; returns its reply."""
        machine = self._machine or self.machine()
        resp = 3 if ctx.resp3 else 2
        self.calls.begin(ctx.session, ctx.db_index, ctx.now_us, read_only)
        size = size_of(words)
        steps = most_steps - size  # work on long arguments takes longer
        if steps <= 0:
            return self._watch(ctx, name, is_function, partial(machine.run, number, resp, True, keys, words, size))
        self.calls.in_place = True
        answer = machine.run_in_place(number, resp, steps, keys, words)
        if answer is not None:
            return self._ended(ctx, answer)
        self.calls.in_place = False  # what took more steps than it may in place
        return self._watch(ctx, name, is_function, partial(machine.go_on, name))

    def _admit(self, flags: frozenset[bytes] | None, read_only: bool) -> bool:
        """Whether a script may only read. Refused for the server's state is what the gate has let pass, inside EXEC."""
        server = self._server
        if server.conditions.bits & FOLLOWING:
            self._look_at_master(flags)
        else:
            self.calls.is_stale = False
        if flags is not None:
            read_only = may_only_read(flags, read_only)
            if not read_only and server.conditions.bits & NEEDS_REPLICAS:
                server.replication.admit_write()
        self._look_at_memory(flags)
        return read_only

    def _look_at_master(self, flags: frozenset[bytes] | None) -> None:
        """On a stale replica a script needs a flag, and its requests must be such as are served there (Redis 8.6.3)."""
        self.calls.is_stale = self._server.replication.is_stale()
        if self.calls.is_stale and (flags is None or b"allow-stale" not in flags):
            raise ReplyError(MASTER_DOWN if flags is None else NOT_STALE)
        if flags is not None and b"no-writes" not in flags and self._server.settings.yes("replica-read-only"):
            raise ReplyError(WRITES_ON_REPLICA)

    def _look_at_memory(self, flags: frozenset[bytes] | None) -> None:
        """Above maxmemory a script with flags that neither forbid writing nor allow that is refused (Redis 8.6.3)."""
        self.calls.may_exceed = flags is not None and b"allow-oom" in flags
        if flags is None or self.calls.may_exceed or b"no-writes" in flags:
            return
        if self._server.memory.refuses():
            raise refusals.out_of_memory()

    def _look_at_cluster(self, flags: frozenset[bytes] | None, keys: list[bytes]) -> None:
        if flags is not None and b"no-cluster" in flags:
            raise ReplyError(b"ERR Can not run script on cluster, 'no-cluster' flag is set.")
        self.calls.bind_slot(flags, keys)

    def _watch(self, ctx: Context, name: bytes, is_function: bool, job: Callable[[], bytes]) -> bytes:
        """Run what may last. Where it could not be killed, it is stopped when the server would be busy."""
        running = Running(name, ctx.args, ctx.clock.monotonic_us(), is_function)
        threshold_ms = ctx.settings.number("busy-reply-threshold")
        runner = self._runner
        if runner is None or ctx.session.privileged or threshold_ms <= 0:
            self.calls.stop_at_us = running.began_us + threshold_ms * 1000 if threshold_ms > 0 else 0
            return self._ended(ctx, job())
        self.running = running
        answer = runner.run(job, threshold_ms / 1000)
        if answer is not None:
            self.running = None
            return self._ended(ctx, answer)
        assert ctx.row is not None, "the engine names the row that it runs"
        session = ctx.session
        running.blocked = session.blocked = BlockedRequest(
            session, ctx.row, ctx.args, ctx.db_index, [], 0, reply.NO_REPLY
        )
        running.blocked.is_running = True
        self._server.conditions.busy = True
        return BLOCKED

    def hold(self, ctx: Context, queue: QueuedRequests, answers: list[bytes]) -> None:
        """The running script is part of this EXEC, which continues after it."""
        assert self.running is not None and ctx.row is not None, "a script takes long"
        self.running.transaction = Transaction(ctx.row, ctx.args, ctx.now_us, queue, answers)

    def _ended(self, ctx: Context, answer: bytes) -> bytes:
        ctx.dirty += self.calls.take_dirty()
        refusal = error_of(answer)
        if refusal is not None:
            raise refusal
        return answer

    # -- while the server is busy -----------------------------------------------------------------------------------

    def busy_text(self) -> bytes:
        assert self.running is not None, "the server is busy with a script"
        return BUSY % (b"FUNCTION KILL" if self.running.is_function else b"SCRIPT KILL")

    def kill(self, is_function: bool) -> bytes:
        """Stop the running script (SCRIPT KILL) or function (FUNCTION KILL)."""
        if self.running is None:
            raise ReplyError(NOT_BUSY)
        if self.calls.wrote:
            raise ReplyError(UNKILLABLE)
        if self.running.is_function is not is_function:
            raise ReplyError(self.busy_text())
        self.calls.killed = True
        return reply.OK

    def take_late(self) -> tuple[Running, bytes]:
        """The script that has ended, and its reply; the server is not busy any more."""
        running = self.running
        assert running is not None and running.blocked is not None, "a late script has blocked its session"
        assert self._runner is not None, "a late script has a runner"
        self.running = None
        return running, self._runner.late


def size_of(words: list[bytes]) -> int:
    """Their bytes."""
    size = 0
    for word in words:
        size += len(word)
    return size


def error_of(answer: bytes) -> ReplyError | None:
    """The error that a script ended with, None if it ended well: `!` begins one that a request has counted already."""
    kind = answer[0] if answer else 0
    if kind == 45 or kind == 33:  # - or !
        return ReplyError(answer[1:-2], kind == 33)
    return None


def may_only_read(flags: frozenset[bytes] | None, read_only: bool) -> bool:
    """Whether a script must not write: by its flags, or by the command that runs it, which then needs the flag."""
    if flags is None:
        return read_only
    if read_only and b"no-writes" not in flags:
        raise ReplyError(WRITES_IN_RO)
    return b"no-writes" in flags
