"""The requests of a running script: redis.call and its relatives.

A request of a script runs like any other, in a session and a context of the script's own: in RESP2 until it asks for
RESP3, in the caller's database, never waiting.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Final, cast

from penstock.engine import refusals
from penstock.engine.scripting import lua_numbers
from penstock.engine.scripting.script_runner import Lock
from penstock.engine.session import Endpoints, Session
from penstock.engine.state import RESTRICTED
from penstock.engine.table.row import Row
from penstock.errors import ReplyError
from penstock.protocol import reply

NO_WORDS: Final = b"ERR Please specify at least one argument for this redis lib call"
BAD_WORD: Final = b"ERR Lua redis lib command arguments must be strings or integers"
UNKNOWN: Final = b"ERR Unknown Redis command called from script"
WRONG_COUNT: Final = b"ERR Wrong number of args calling Redis command from script"
NOT_ALLOWED: Final = b"ERR This Redis command is not allowed from script"
UNKNOWN_ASKED: Final = b"ERR Invalid command passed to redis.acl_check_cmd()"
COUNT_ASKED: Final = b"ERR Wrong number of args for redis.acl_check_cmd()"
STALE: Final = b"ERR Can not execute the command on a stale replica"
READ_ONLY: Final = b"ERR Write commands are not allowed from read-only scripts."
KILLED: Final = b"ERR Script killed by user with SCRIPT KILL..."
LOAD_TIMEOUT: Final = b"ERR FUNCTION LOAD timeout"
SERVER: Final = "server"  # a group of commands: they change no session
DENIED: Final = b"denied"
IN_VALKEY: Final = {  # the same in its words (Valkey 9.1.2)
    NO_WORDS: b"ERR Please specify at least one argument for this call",
    BAD_WORD: b"ERR Command arguments must be strings or integers",
    UNKNOWN: b"ERR Unknown command called from script",
    WRONG_COUNT: b"ERR Wrong number of args calling command from script",
    NOT_ALLOWED: b"ERR This Valkey command is not allowed from script",
    UNKNOWN_ASKED: b"ERR Invalid command passed to server.acl_check_cmd()",
    COUNT_ASKED: b"ERR Wrong number of args for server.acl_check_cmd()",
}
LONGEST_IN_PLACE_US: Final = 10_000  # the steps of a request are not counted


class OwnRequests:
    """How a script's requests are run: in a context of the script's own (script_requests.py)."""

    def begin(self, session: Session, now_us: int) -> None:
        """A script begins; its requests run in a session."""
        raise NotImplementedError

    def now_us(self) -> int:
        """The time, in unix us."""
        raise NotImplementedError

    def monotonic_us(self) -> int:
        """As the clock's."""
        raise NotImplementedError

    def named_row(self, request: list[bytes]) -> Row:
        """The row that a request names, whatever its arity, else a refusal."""
        raise NotImplementedError

    def trouble(self) -> bytes | None:
        """Why writers are refused; None while the log works."""
        raise NotImplementedError

    def memory_is_short(self) -> bool:
        """Whether nothing may be written that needs memory."""
        raise NotImplementedError

    def refusal(self, caller: Session, row: Row, request: list[bytes]) -> bytes | None:
        """Why the user of the script's caller may not run a request; None if the user may."""
        raise NotImplementedError

    def reject(self, row: Row | None, text: bytes) -> None:
        """Count a request that is refused."""
        raise NotImplementedError

    def bind_slot(self, key: bytes | None, is_bound: bool) -> None:
        """In a cluster: the script has this first key; whether all its requests must be in one slot."""
        raise NotImplementedError

    def slot_refusal(self, row: Row, request: list[bytes]) -> bytes:
        """In a cluster: why a request's keys may not be used; empty if they may."""
        raise NotImplementedError

    def run(self, row: Row, request: list[bytes]) -> bytes:
        """Run a request; its reply."""
        raise NotImplementedError

    def ended_us(self) -> int:
        """When the last request was over, in unix us."""
        raise NotImplementedError

    def set_resp3(self, holds: bool) -> None:
        """The protocol of the replies from here on."""
        raise NotImplementedError

    def changes(self) -> int:
        """Changes since `begin` that were not taken."""
        raise NotImplementedError

    def take_changes(self) -> int:
        """As `changes`; from here on they are counted elsewhere."""
        raise NotImplementedError


class Calls:
    """The server, as one script at a time sees it.

    lock: held while a request of the script runs (script_runner.py), unless it runs `in_place`: nothing else runs then
    until the script is over. give_back: has the C library give free memory back to the system. is_valkey: scripts see
    Valkey, not Redis.
    """

    def __init__(self, requests: OwnRequests, is_valkey: bool = False) -> None:
        self._requests = requests
        self._is_valkey = is_valkey
        self._session = Session(0, Endpoints("lua", ""))
        self._caller = self._session
        self._read_only = False
        self.lock: Lock = nullcontext()
        self.in_place = False
        self._leave_at_us = 0
        self.killed = False
        self.wrote = False
        self.may_exceed = False  # maxmemory: the script has the flag allow-oom
        self.allows_noscript = False  # DEBUG SET-DISABLE-DENY-SCRIPTS: commands about the server, too
        self.is_stale = False  # the server is a replica that has lost its master
        self._stop_text = KILLED
        self.stop_at_us = 0  # monotonic: when a script that cannot be killed is stopped; 0: never
        self.give_back: Callable[[], None] | None = None
        self.server_log: Callable[[int, str], None] | None = None  # takes what scripts log, by level

    def begin(self, caller: Session, db_index: int, now_us: int, read_only: bool) -> None:
        """A script begins, on behalf of a caller's request."""
        session = self._session
        session.resp = 2
        session.forget_fieldsets()
        session.db_index = db_index
        session.set_user(caller.user)
        self._caller = caller
        session.no_touch, session.imports = caller.no_touch, caller.imports
        session.asks_for = caller
        self._requests.begin(session, now_us)
        self._read_only = read_only
        self._leave_at_us = self._requests.now_us() + LONGEST_IN_PLACE_US
        self.killed = self.wrote = self.in_place = False
        self.stop_at_us = 0
        self._stop_text = KILLED

    @property
    def must_leave(self) -> bool:
        """Whether the script has run too long in place, now that a request of its own is over."""
        return self.in_place and self._requests.ended_us() > self._leave_at_us

    @property
    def dirty(self) -> int:
        """Changes that a script has made which has not ended."""
        return self._requests.changes()

    def take_dirty(self) -> int:
        """The changes of a script that has ended."""
        return self._requests.take_changes()

    def begin_load(self, limit_ms: int) -> None:
        """The code of a library begins to run, which must be over after so long."""
        self.killed = self.wrote = self.in_place = False
        self.stop_at_us = self._requests.monotonic_us() + limit_ms * 1000
        self._stop_text = LOAD_TIMEOUT

    def why_stop(self) -> bytes | None:
        """Asked by the watched script itself, every now and then: the error to end with."""
        if self.stop_at_us and not self.wrote and self._requests.monotonic_us() >= self.stop_at_us:
            self.killed = True
        return self._stop_text if self.killed else None

    def call(self, words: tuple[object, ...]) -> bytes:
        """The reply to a request, an error too."""
        request = _request(words)
        if isinstance(request, bytes):
            return reply.error(self._said(request))
        if self.in_place:
            return self._run(request)
        with self.lock:
            return self._run(request)

    def _run(self, request: list[bytes]) -> bytes:
        requests = self._requests
        row: Row | None = None
        try:
            row = requests.named_row(request)
            refusal = self._refusal(row, request)
        except ReplyError:
            refusal = UNKNOWN
        if row is None or refusal:
            refusal = self._said(refusal)
            requests.reject(row, refusal)
            return reply.error(refusal)
        if row.write:
            self.wrote = True
        self._caller.called += 1
        return requests.run(row, request)

    def _said(self, refusal: bytes) -> bytes:
        """A refusal in the words of the server that scripts see."""
        return IN_VALKEY.get(refusal, refusal) if self._is_valkey else refusal

    def _refusal(self, row: Row, request: list[bytes]) -> bytes:
        """Why a request must not be run; empty where it may be."""
        requests = self._requests
        if row.is_container or not row.fits(len(request)):
            return WRONG_COUNT
        if "noscript" in row.flags and not (self.allows_noscript and row.group == SERVER and not row.no_multi):
            return NOT_ALLOWED
        if self.is_stale and "stale" not in row.flags:
            return STALE
        if self._session.state & RESTRICTED:
            refusal = requests.refusal(self._caller, row, request)
            if refusal is not None:
                return refusal
        if row.write or row.spreads:
            if self._read_only:
                return READ_ONLY
            trouble = requests.trouble() if row.write else None
            if trouble is not None:
                return trouble
            # A script that has begun to write is not stopped half-way (Redis 8.6.3).
            if row.denyoom and not self.wrote and not self.may_exceed and requests.memory_is_short():
                return refusals.out_of_memory().text
        return requests.slot_refusal(row, request)

    def bind_slot(self, flags: frozenset[bytes] | None, keys: list[bytes]) -> None:
        """In a cluster: a script with a shebang must stay in the slot of its keys, unless its flags allow others."""
        is_bound = flags is not None and b"allow-cross-slot-keys" not in flags
        self._requests.bind_slot(keys[0] if keys else None, is_bound)

    def allowed(self, words: tuple[object, ...]) -> bytes:
        """redis.acl_check_cmd: empty if the caller's user may run a command, else DENIED, or why it cannot be asked."""
        request = _request(words)
        if isinstance(request, bytes):
            return self._said(request)
        try:
            row = self._requests.named_row(request)
        except ReplyError:
            return self._said(UNKNOWN_ASKED)
        if row.is_container or not row.fits(len(request)):
            return self._said(COUNT_ASKED)
        session = self._session
        if session.state & RESTRICTED and session.user.denial(row, request, session.db_index) is not None:
            return DENIED
        return b""

    def set_resp(self, version: float) -> None:
        self._session.resp = int(version)
        self._requests.set_resp3(version == 3)

    def report(self, level: float, text: bytes) -> None:
        if self.server_log is not None:
            self.server_log(int(level), text.decode("utf-8", "backslashreplace"))

    def give_memory_back(self) -> None:
        """Much of what a script used is free again."""
        if self.give_back is not None:
            self.give_back()


def _request(words: tuple[object, ...]) -> list[bytes] | bytes:
    """The words as a request, or the text of a refusal."""
    if not words:
        return NO_WORDS
    request = cast(list[bytes], list(words))  # most are texts
    for place, word in enumerate(words):
        if not isinstance(word, bytes):
            if isinstance(word, bool) or not isinstance(word, (int, float)):
                return BAD_WORD
            request[place] = lua_numbers.word(word)
    return request
