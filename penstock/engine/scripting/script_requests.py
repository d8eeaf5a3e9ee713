"""The engine, as the requests of scripts meet it."""

from penstock.engine.cluster.hash_slots import slot_of
from penstock.engine.cluster.slot_rules import NO_SLOT
from penstock.engine.context import Context
from penstock.engine.memory import recency
from penstock.engine.replication.replication import READ_ONLY
from penstock.engine.scripting.script_calls import OwnRequests
from penstock.engine.server_state import ServerState
from penstock.engine.session import Session
from penstock.engine.state import FOLLOWING, NEEDS_REPLICAS
from penstock.engine.table.row import Row
from penstock.errors import ReplyError


class ScriptRequests(OwnRequests):
    """Runs requests in a context beside the engine's own, which notes the use of keys where that one does."""

    _context: Context  # there from the first `begin` on

    def __init__(self, server: ServerState) -> None:
        self._server = server
        self._beside: Context | None = None  # the engine's context, beside which the script's was made
        self._slot = NO_SLOT  # in a cluster: of the keys so far, where all must be in one
        self._is_bound = False

    def begin(self, session: Session, now_us: int) -> None:
        server = self._server
        if self._beside is not server.context:
            self._beside = server.context
            self._context = recency.beside(server, session)
            self._context.waits = False
            self._context.in_script = True
        self._context.begin(session, now_us)
        self._context.dirty = 0

    def now_us(self) -> int:
        return self._server.runner.now_us()

    def monotonic_us(self) -> int:
        return self._server.clock.monotonic_us()

    def named_row(self, request: list[bytes]) -> Row:
        return self._server.commands.named(request)

    def trouble(self) -> bytes | None:
        server = self._server
        if server.conditions.trouble is not None:
            return server.conditions.trouble
        try:
            if server.conditions.bits & NEEDS_REPLICAS:
                server.replication.admit_write()
            if server.conditions.bits & FOLLOWING and server.settings.yes("replica-read-only"):
                return READ_ONLY
        except ReplyError as refusal:
            return refusal.text
        return None

    def memory_is_short(self) -> bool:
        return self._server.memory.refuses()

    def refusal(self, caller: Session, row: Row, request: list[bytes]) -> bytes | None:
        return self._server.access.refusal_in_script(caller, row, request, self._context.db_index)

    def run(self, row: Row, request: list[bytes]) -> bytes:
        server = self._server
        return server.runner.run(self._context, row, request, server.runner.now_us())

    def ended_us(self) -> int:
        return self._server.runner.ended_us

    def reject(self, row: Row | None, text: bytes) -> None:
        self._server.statistics.reject(row, text)

    def bind_slot(self, key: bytes | None, is_bound: bool) -> None:
        self._is_bound = is_bound
        self._slot = slot_of(key) if is_bound and key is not None else NO_SLOT

    def slot_refusal(self, row: Row, request: list[bytes]) -> bytes:
        cluster = self._server.cluster
        if cluster is None:
            return b""
        caller, now_ms = self._context.session, self._context.now_ms
        refusal = cluster.refusal_in_script(caller.asks_for or caller, row, request, self._slot, now_ms)
        if not refusal and self._is_bound and self._slot == NO_SLOT:
            slots = cluster.slots(row, request)
            if slots:
                self._slot = slots[0]
        return refusal

    def set_resp3(self, holds: bool) -> None:
        if self._beside is not None:
            self._context.resp3 = holds

    def changes(self) -> int:
        return 0 if self._beside is None else self._context.dirty

    def take_changes(self) -> int:
        taken = self._context.dirty
        self._context.dirty = 0
        return taken
