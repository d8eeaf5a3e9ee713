"""ACL LOG: refused clients, and why."""

from collections import deque
from itertools import islice
from typing import Final

from penstock.config.settings import Settings
from penstock.engine.session import Session
from penstock.engine.telemetry import client_line
from penstock.protocol import reply

SAME_WITHIN_MS: Final = 60_000  # a repetition so soon is counted with the first one
LOOKED_AT: Final = 10  # of the newest entries, for a repetition


class Refusal:
    """One line: a login or a request that was refused.

    reason: auth, command, key, channel, tls-cert. context: toplevel, multi, lua. subject: what was not allowed.
    """

    __slots__ = ("client", "context", "count", "created_ms", "id", "reason", "subject", "updated_ms", "user")

    def __init__(
        self, id: int, reason: bytes, context: bytes, subject: bytes, user: bytes, client: bytes, now_ms: int
    ) -> None:
        self.id = id
        self.count = 1
        self.reason = reason
        self.context = context
        self.subject = subject
        self.user = user
        self.client = client
        self.created_ms = now_ms
        self.updated_ms = now_ms

    def is_like(self, reason: bytes, context: bytes, subject: bytes, user: bytes, now_ms: int) -> bool:
        """Whether a further refusal only repeats this one."""
        if now_ms - self.updated_ms > SAME_WITHIN_MS:
            return False
        return (self.reason, self.context, self.subject, self.user) == (reason, context, subject, user)

    def as_reply(self, now_ms: int, resp3: bool, hidden: frozenset[bytes]) -> bytes:
        """As ACL LOG shows it; `hidden` fields of the client's description are left out."""
        client = self.client
        if hidden:
            client = b" ".join([part for part in client.split(b" ") if part.partition(b"=")[0] not in hidden])
        age = repr((now_ms - self.updated_ms) / 1000).removesuffix(".0")
        return reply.fields(
            [
                (b"count", reply.integer(self.count)),
                (b"reason", reply.bulk(self.reason)),
                (b"context", reply.bulk(self.context)),
                (b"object", reply.bulk(self.subject)),
                (b"username", reply.bulk(self.user)),
                (b"age-seconds", reply.double(age.encode(), resp3)),
                (b"client-info", reply.bulk(client)),
                (b"entry-id", reply.integer(self.id)),
                (b"timestamp-created", reply.integer(self.created_ms)),
                (b"timestamp-last-updated", reply.integer(self.updated_ms)),
            ],
            resp3,
        )


class AccessLog:
    """Refusals, newest first; at most acllog-max-len."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.refusals: deque[Refusal] = deque()
        self._next_id = 0
        settings.watch("acllog-max-len", self._shorten)

    def note(self, session: Session, reason: bytes, context: bytes, subject: bytes, user: bytes, now_ms: int) -> None:
        """A session's login as `user`, or a request of its user, was refused."""
        client = client_line.line(session, now_ms).encode(errors="surrogateescape")
        for old in islice(self.refusals, LOOKED_AT):
            if old.is_like(reason, context, subject, user, now_ms):
                old.count += 1
                old.client = client
                old.updated_ms = now_ms
                self.refusals.remove(old)
                self.refusals.appendleft(old)
                return
        self.refusals.appendleft(Refusal(self._next_id, reason, context, subject, user, client, now_ms))
        self._next_id += 1
        self._shorten()

    def _shorten(self) -> None:
        while len(self.refusals) > self._settings.number("acllog-max-len"):
            self.refusals.pop()
