"""Client-side caching: clients that are notified of changed keys (Redis 8.6.3, CLIENT TRACKING).

Without BCAST a connection is notified once of each key that it read; with BCAST of every change of a key that has one
of its prefixes. A message to another connection is sent at once; one to the connection that made the change
after that request's reply; those of BCAST when the turn of the event loop ends.

A connection is notified of a key if its user then has a right to the key: with BCAST the right to read it, else (the
connection has named the key itself) any right. That holds for a redirected message, too: the rights of its receiver
do not matter. Redis 8.6.3 checks no rights, Redis 8.10 does with BCAST.
"""

import random
from typing import Final, TypeAlias

from penstock.config.settings import Settings
from penstock.engine.access.users import User
from penstock.engine.pubsub.subscriptions import Outgoing
from penstock.engine.session import Session
from penstock.engine.state import RESTRICTED
from penstock.engine.table.row import Row
from penstock.engine.telemetry.client_memory import HELD_NAME
from penstock.engine.tracking.read_keys import ReadKeys
from penstock.engine.tracking.tracking_options import NO_REDIRECT, TrackingOptions
from penstock.protocol import reply

CHANNEL: Final = reply.bulk(b"__redis__:invalidate")
INVALIDATE: Final = b">2\r\n" + reply.bulk(b"invalidate")
MESSAGE: Final = b"*3\r\n" + reply.bulk(b"message") + CHANNEL
BROKEN: Final = b">2\r\n" + reply.bulk(b"tracking-redir-broken")
EVERY_KEY: Final = b""  # in place of keys: the null that stands for FLUSHALL
DROPPED_AT_ONCE: Final = 100  # keys, where there are more than tracking-table-max-keys: for each read, and each tick

Change: TypeAlias = Session | None
"""The session that changed a key last in this turn; None: a script, or the server itself."""


class Prefix:
    """A prefix of BCAST: the sessions that asked for it, and which of its keys have changed in this turn."""

    __slots__ = ("changed", "sessions")

    def __init__(self) -> None:
        self.sessions: dict[Session, None] = {}
        self.changed: dict[bytes, Change] = {}


class Tracking:
    """The connections that track keys, what they have read, and the messages that they are still to get.

    Invariants: a session is in `sessions` if and only if its `tracking` is set. `prefixes` has each prefix of a
    session of BCAST, with the session; `_lengths` counts them by length. `due` is whether a prefix has changed keys.

    A change costs O(1) without BCAST, else O(different lengths of prefixes).
    """

    __slots__ = ("_by_id", "_for_itself", "_lengths", "_settings", "due", "prefixes", "read", "sessions")

    def __init__(self, settings: Settings, chance: random.Random, by_id: dict[int, Session]) -> None:
        self._settings = settings
        self._by_id = by_id
        self.sessions: dict[Session, None] = {}
        self.read = ReadKeys(chance)
        self.prefixes: dict[bytes, Prefix] = {}
        self._lengths: dict[int, int] = {}
        self._for_itself: list[tuple[Session, bytes]] = []  # (session, keys), for after the reply to its request
        self.due = False

    @property
    def follows_changes(self) -> bool:
        """Whether a change of a key may matter to a client."""
        return len(self.sessions) > 0 or len(self.read) > 0

    # -- on and off -------------------------------------------------------------------------------------------------

    def begin(self, session: Session, options: TrackingOptions, prefixes: list[bytes]) -> None:
        """CLIENT TRACKING ON: the options replace those before, the prefixes are added to them.

        CLIENT CACHING before it counts for the request behind it (Redis 8.6.3).
        """
        before = session.tracking
        if before is not None:
            options.prefixes = before.prefixes
            options.is_chosen = before.is_chosen
        session.tracking = options
        self.sessions[session] = None
        for name in prefixes:
            prefix = self.prefixes.get(name)
            if prefix is None:
                prefix = self.prefixes[name] = Prefix()
                self._lengths[len(name)] = self._lengths.get(len(name), 0) + 1
            prefix.sessions[session] = None
        options.prefixes = sorted({*options.prefixes, *prefixes})
        options.prefix_bytes = sum([HELD_NAME + len(name) for name in options.prefixes])

    def end(self, session: Session) -> None:
        """CLIENT TRACKING OFF, RESET, or the end of the connection. Its read keys are kept until they change."""
        options = session.tracking
        if options is None:
            return
        session.choose_caching(False)
        session.tracking = None
        del self.sessions[session]
        for name in options.prefixes:
            prefix = self.prefixes[name]
            del prefix.sessions[session]
            if not prefix.sessions:
                del self.prefixes[name]
                self._lengths[len(name)] -= 1
                if not self._lengths[len(name)]:
                    del self._lengths[len(name)]

    # -- reading ----------------------------------------------------------------------------------------------------

    def note_read(self, session: Session, row: Row, request: list[bytes], outgoing: Outgoing) -> None:
        """A request was run: remember the keys that it names, if it only reads. A script's requests come one by one."""
        reader = session.asks_for or session
        options = reader.tracking
        if options is None or not options.remembers or "readonly" not in row.flags or row.runs_script:
            return
        for key in row.keys_of(request):
            self.read.add(key, reader.id)
        self.drop_excess(reader, outgoing)

    def drop_excess(self, session: Session, outgoing: Outgoing) -> None:
        """Drop random keys while there are more than tracking-table-max-keys: readers are notified as of a change.

        session: the one of the request.
        """
        most = self._settings.number("tracking-table-max-keys")
        if not most:
            return
        for _ in range(min(len(self.read) - most, DROPPED_AT_ONCE)):
            self._invalidate_readers(session, self.read.any_key(), outgoing)

    # -- changes ----------------------------------------------------------------------------------------------------

    def note_change(self, session: Session, key: bytes, outgoing: Outgoing) -> None:
        """A key has changed while a session's request was run (WATCH counts the same changes).

        For NOLOOP with BCAST the last change of a turn counts, and a script's is of no session (Redis 8.6.3).
        """
        changer = session if session.asks_for is None else None
        session = session.asks_for or session
        for length in self._lengths:
            if length <= len(key):
                prefix = self.prefixes.get(key[:length])
                if prefix is not None:
                    prefix.changed[key] = changer
                    self.due = True
        self._invalidate_readers(session, key, outgoing)

    def _invalidate_readers(self, session: Session, key: bytes, outgoing: Outgoing) -> None:
        for id in sorted(self.read.take(key)):
            reader = self._by_id.get(id)
            if reader is None or reader.tracking is None or reader.tracking.by_prefix:
                continue
            if reader.state & RESTRICTED and not reader.user.allows_key(key, False):
                continue
            if reader is not session:
                self._invalidate(reader, reply.bulks([key]), outgoing)
            elif not reader.tracking.no_loop:
                self._for_itself.append((reader, reply.bulks([key])))

    def note_flush(self, session: Session, is_first: bool, outgoing: Outgoing) -> bytes:
        """All keys of a database were deleted: notify all clients at once, and forget the keys that they read.

        The oldest connection is notified first, the session itself last (one connection may get what is for several).
        is_first: the message to the session itself precedes its reply, and is returned (Redis 8.6.3).
        """
        session = session.asks_for or session
        own = b""
        messages: Outgoing = []
        for reader in sorted(self.sessions, key=lambda reader: (reader is session, reader.id)):
            if reader is session and not is_first:
                self._for_itself.append((reader, EVERY_KEY))
            else:
                self._invalidate(reader, EVERY_KEY, messages)
        for receiver, message in messages:
            if receiver is session and is_first:
                own += message
            else:
                outgoing.append((receiver, message))
        self.read.clear()
        return own

    def note_rights(self, session: Session, is_own: bool, outgoing: Outgoing) -> None:
        """A session that tracks keys may use others from now on: its cache is no longer valid.

        is_own: by its own request; it is notified after the reply.
        """
        if is_own:
            self._for_itself.append((session, EVERY_KEY))
        else:
            self._invalidate(session, EVERY_KEY, outgoing)

    def end_request(self, outgoing: Outgoing) -> None:
        """A request is over and its reply is made: notify the session of the changes that it made itself."""
        if not self._for_itself:
            return
        messages, self._for_itself = self._for_itself, []
        for session, keys in messages:
            if session.tracking is not None:
                self._invalidate(session, keys, outgoing)

    def end_turn(self, outgoing: Outgoing) -> None:
        """Notify the clients that asked for a prefix of the keys that changed in this turn."""
        self.due = False
        for name in sorted(self.prefixes):
            prefix = self.prefixes[name]
            if not prefix.changed:
                continue
            changed, prefix.changed = prefix.changed, {}
            keys = sorted(changed)
            message = reply.bulks(keys)
            readable: dict[User, list[bytes]] = {}
            for session in prefix.sessions:
                options = session.tracking
                assert options is not None, "a client with a prefix tracks keys"
                wanted = keys
                if session.state & RESTRICTED:
                    user = session.user
                    if user not in readable:
                        readable[user] = [key for key in keys if user.allows_key(key, True)]
                    wanted = readable[user]
                if options.no_loop:
                    wanted = [key for key in wanted if changed[key] is not session]
                if wanted:
                    self._invalidate(session, message if wanted is keys else reply.bulks(wanted), outgoing)

    # -- messages ---------------------------------------------------------------------------------------------------

    def _invalidate(self, session: Session, keys: bytes, outgoing: Outgoing) -> None:
        """Send keys, an array or EVERY_KEY, to the session or to where it redirects its messages."""
        options = session.tracking
        assert options is not None, "only clients that track keys are notified"
        receiver: Session | None = session
        if options.redirect != NO_REDIRECT:
            receiver = self._by_id.get(options.redirect)
            if receiver is None:
                options.is_broken = True
                if session.resp == 3:
                    outgoing.append((session, BROKEN + reply.integer(options.redirect)))
                return
        assert receiver is not None, "a session is there itself"
        null = reply.null(session.resp == 3)  # not the receiver's
        if receiver.resp == 3:
            outgoing.append((receiver, INVALIDATE + (keys or null)))
        elif options.redirect != NO_REDIRECT and receiver.is_subscribed:
            outgoing.append((receiver, MESSAGE + (keys or null)))

    def check(self) -> None:
        """Assert the invariants."""
        self.read.check()
        assert all(session.tracking is not None for session in self.sessions), (
            "a session without tracking is not listed"
        )
        named = {(name, session) for name, prefix in self.prefixes.items() for session in prefix.sessions}
        own = {
            (name, session)
            for session in self.sessions
            for name in (session.tracking.prefixes if session.tracking is not None else ())
        }
        assert named == own, "both sides agree"
        counted: dict[int, int] = {}
        for name in self.prefixes:
            counted[len(name)] = counted.get(len(name), 0) + 1
        assert counted == self._lengths, "lengths are counted"
        assert self.due or not any(prefix.changed for prefix in self.prefixes.values())
