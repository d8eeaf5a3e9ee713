"""ACL LOG: who was refused, and why."""

from collections import deque
from typing import Final

from penstock.config.settings import Settings
from penstock.engine.session import Session
from penstock.engine.telemetry import client_line
from penstock.protocol import reply

SAME_WITHIN_MS: Final = 60_000  # a repetition so soon is counted with the first one


class Refusal:
    """One line: a login that failed."""

    __slots__ = ("client", "context", "count", "created_ms", "id", "subject", "updated_ms", "user")

    def __init__(self, id: int, context: bytes, subject: bytes, user: bytes, client: bytes, now_ms: int) -> None:
        self.id = id
        self.count = 1
        self.context = context
        self.subject = subject  # the command, as typed
        self.user = user
        self.client = client
        self.created_ms = now_ms
        self.updated_ms = now_ms

    def as_reply(self, now_ms: int, resp3: bool) -> bytes:
        age = repr((now_ms - self.updated_ms) / 1000).removesuffix(".0")
        return reply.fields(
            [
                (b"count", reply.integer(self.count)),
                (b"reason", reply.bulk(b"auth")),
                (b"context", reply.bulk(self.context)),
                (b"object", reply.bulk(self.subject)),
                (b"username", reply.bulk(self.user)),
                (b"age-seconds", reply.double(age.encode(), resp3)),
                (b"client-info", reply.bulk(self.client)),
                (b"entry-id", reply.integer(self.id)),
                (b"timestamp-created", reply.integer(self.created_ms)),
                (b"timestamp-last-updated", reply.integer(self.updated_ms)),
            ],
            resp3,
        )


class AccessLog:
    """Refusals, newest first."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.refusals: deque[Refusal] = deque()
        self._next_id = 0

    def note_login(self, session: Session, subject: bytes, in_exec: bool, user: bytes, now_ms: int) -> None:
        """A login as `user` failed, by a command as typed, which EXEC ran or a client sent."""
        context = b"multi" if in_exec else b"toplevel"
        client = client_line.line(session, now_ms).encode(errors="surrogateescape")
        for old in self.refusals:
            same = (old.context, old.subject, old.user) == (context, subject, user)
            if same and now_ms - old.updated_ms <= SAME_WITHIN_MS:
                old.count += 1
                old.client = client
                old.updated_ms = now_ms
                self.refusals.remove(old)
                self.refusals.appendleft(old)
                return
        self.refusals.appendleft(Refusal(self._next_id, context, subject, user, client, now_ms))
        self._next_id += 1
        while len(self.refusals) > self._settings.number("acllog-max-len"):
            self.refusals.pop()
