"""Which requests and replies have many bytes: COMMANDLOG's large-request and large-reply (Valkey 9.1.2)."""

from typing import Final

from penstock.config.settings import Settings
from penstock.engine.conditions import Conditions
from penstock.engine.session import Session
from penstock.engine.state import REPLIES_WITHHELD, WEIGHED
from penstock.engine.table.known_commands import KnownCommands
from penstock.engine.table.row import Row
from penstock.engine.telemetry.request_log import RequestLog
from penstock.native.resp_sizes import request_bytes
from penstock.protocol.request_batch import RequestBatch

_NEVER: Final = 2**63


class LargeRequests:
    """The two logs, and what goes into them.

    Invariant: the server's bit WEIGHED is set where one of the thresholds is in force. Only a server that passes for
    Valkey has them: in others the bit is never set, and nothing is asked.
    """

    __slots__ = ("_conditions", "_from_reply", "_from_request", "_settings", "replies", "requests")

    def __init__(self, settings: Settings, conditions: Conditions, commands: KnownCommands) -> None:
        self._settings = settings
        self._conditions = conditions
        self.requests = RequestLog(settings, commands, "commandlog-large-request-max-len")
        self.replies = RequestLog(settings, commands, "commandlog-large-reply-max-len")
        self._from_request = self._from_reply = _NEVER  # bytes

    def follow_settings(self) -> None:
        """Use the thresholds from here on, and when CONFIG SET changes them."""
        self._settings.watch("commandlog-request-larger-than", self._set_thresholds)
        self._settings.watch("commandlog-reply-larger-than", self._set_thresholds)
        self._set_thresholds()

    def _set_thresholds(self) -> None:
        self._from_request = self._threshold("commandlog-request-larger-than")
        self._from_reply = self._threshold("commandlog-reply-larger-than")
        self._conditions.set(WEIGHED, min(self._from_request, self._from_reply) != _NEVER)

    def _threshold(self, name: str) -> int:
        number = self._settings.number(name)
        return number if number >= 0 else _NEVER

    def note(self, session: Session, now_us: int, row: Row, request: list[bytes], reply_bytes: int) -> None:
        """A request was answered. What a script asks counts with its reply only."""
        if "skip_slowlog" in row.flags:
            return
        if session.state & REPLIES_WITHHELD:
            reply_bytes = 0
        if reply_bytes >= self._from_reply:
            self.replies.add(session, row, request, now_us, reply_bytes)
        size = request_bytes(request) if session.asks_for is None else 0
        if size >= self._from_request:
            self.requests.add(session, row, request, now_us, size)

    def note_together(self, session: Session, now_us: int, row: Row, batch: RequestBatch, answers: list[bytes]) -> None:
        """The first requests of a batch were answered together."""
        if batch.most_bytes() >= self._from_request or max(map(len, answers)) >= self._from_reply:
            for at, answer in enumerate(answers):
                self.note(session, now_us, row, batch.request(at), len(answer))
