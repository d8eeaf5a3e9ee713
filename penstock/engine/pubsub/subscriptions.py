"""Subscribers of channels and patterns, and messages as bytes."""

import zlib
from typing import Final

from penstock.engine.matching.globs import Glob
from penstock.engine.session import Session
from penstock.engine.telemetry.client_memory import HELD_NAME
from penstock.protocol import reply

MESSAGE: Final = reply.bulk(b"message")
PATTERN_MESSAGE: Final = reply.bulk(b"pmessage")
SHARD_MESSAGE: Final = reply.bulk(b"smessage")
SHARD_LEFT: Final = reply.bulk(b"sunsubscribe")

# A client may subscribe to thousands of patterns in one request. Each is compiled after so many messages, and few at
# the same one.
MESSAGES: Final = 100
SPREAD: Final = 4096

Listeners = dict[Session, None]  # in the order in which they subscribed: that of delivery
Outgoing = list[tuple[Session, bytes]]


class Subscriptions:
    """Every session's subscriptions, found by channel and by pattern.

    Invariant: a session stands in `channels[c]` if and only if c stands in `session.channels`; likewise `patterns`
    and `shard_channels`. No name without subscribers is kept. `_globs` has the patterns made ready.
    """

    __slots__ = ("_globs", "channels", "patterns", "shard_channels")

    def __init__(self) -> None:
        self.channels: dict[bytes, Listeners] = {}
        self.patterns: dict[bytes, Listeners] = {}
        self.shard_channels: dict[bytes, Listeners] = {}
        self._globs: dict[bytes, Glob] = {}

    # -- subscribing ------------------------------------------------------------------------------------------------

    def subscribe(self, session: Session, channel: bytes) -> None:
        _count(session, session.channels, channel)
        self.channels.setdefault(channel, {})[session] = None
        session.channels = _with(session.channels, channel)
        session.note_subscriptions()

    def subscribe_pattern(self, session: Session, pattern: bytes) -> None:
        if pattern not in self.patterns:
            self.patterns[pattern] = {}
            self._globs[pattern] = Glob(pattern, compile_after=MESSAGES + zlib.crc32(pattern) % SPREAD)
        _count(session, session.patterns, pattern)
        self.patterns[pattern][session] = None
        session.patterns = _with(session.patterns, pattern)
        session.note_subscriptions()

    def subscribe_shard(self, session: Session, channel: bytes) -> None:
        _count(session, session.shard_channels, channel)
        self.shard_channels.setdefault(channel, {})[session] = None
        session.shard_channels = _with(session.shard_channels, channel)
        session.note_subscriptions()

    def unsubscribe(self, session: Session, channel: bytes) -> None:
        if channel in session.channels:
            del session.channels[channel]
            session.note_subscriptions()
            _leave(self.channels, channel, session)

    def unsubscribe_pattern(self, session: Session, pattern: bytes) -> None:
        if pattern in session.patterns:
            del session.patterns[pattern]
            session.note_subscriptions()
            _leave(self.patterns, pattern, session)
            if pattern not in self.patterns:
                del self._globs[pattern]

    def unsubscribe_shard(self, session: Session, channel: bytes) -> None:
        if channel in session.shard_channels:
            del session.shard_channels[channel]
            session.note_subscriptions()
            _leave(self.shard_channels, channel, session)

    def close_shard_channel(self, channel: bytes, outgoing: Outgoing) -> None:
        """This node does not serve a shard channel any more: each subscriber gets the reply of an SUNSUBSCRIBE."""
        for session in list(self.shard_channels[channel]):
            self.unsubscribe_shard(session, channel)
            farewell = b"3\r\n" + SHARD_LEFT + reply.bulk(channel) + reply.integer(len(session.shard_channels))
            outgoing.append((session, (b">" if session.resp == 3 else b"*") + farewell))

    def forget(self, session: Session) -> None:
        """A session is reset or gone: nothing is sent to it any more."""
        if not session.is_subscribed:
            return
        for channel in list(session.channels):
            self.unsubscribe(session, channel)
        for pattern in list(session.patterns):
            self.unsubscribe_pattern(session, pattern)
        for channel in list(session.shard_channels):
            self.unsubscribe_shard(session, channel)

    def globs(self) -> list[Glob]:
        """The patterns made ready."""
        return list(self._globs.values())

    def check(self, sessions: list[Session]) -> None:
        """Assert the invariant for all the sessions there are."""
        for listeners, names in (
            (self.channels, {session: session.channels for session in sessions}),
            (self.patterns, {session: session.patterns for session in sessions}),
            (self.shard_channels, {session: session.shard_channels for session in sessions}),
        ):
            there = {(name, session) for name, those in listeners.items() for session in those}
            assert there == {(name, session) for session, own in names.items() for name in own}, "both sides agree"
            assert all(listeners.values()), "no name without a listener"
        assert self._globs.keys() == self.patterns.keys(), "a glob for each pattern"

    # -- publishing -------------------------------------------------------------------------------------------------

    def publish(self, channel: bytes, payload: bytes, outgoing: Outgoing) -> int:
        """Add the message to `outgoing` for each listener of the channel, then for each of every pattern it fits.

        The number of messages: a session that listens in three ways gets three.
        """
        sent = 0
        body = b""
        listeners = self.channels.get(channel)
        if listeners is not None:
            body = reply.bulk(channel) + reply.bulk(payload)
            sent += _send(listeners, b"3\r\n" + MESSAGE + body, outgoing)
        for pattern, listeners in self.patterns.items():
            if self._globs[pattern].matches(channel):
                body = body or reply.bulk(channel) + reply.bulk(payload)
                sent += _send(listeners, b"4\r\n" + PATTERN_MESSAGE + reply.bulk(pattern) + body, outgoing)
        return sent

    def publish_to_shard(self, channel: bytes, payload: bytes, outgoing: Outgoing) -> int:
        """As `publish`, to the listeners of the shard's channel; patterns do not count."""
        listeners = self.shard_channels.get(channel)
        if listeners is None:
            return 0
        return _send(listeners, b"3\r\n" + SHARD_MESSAGE + reply.bulk(channel) + reply.bulk(payload), outgoing)


def _with(names: dict[bytes, None], name: bytes) -> dict[bytes, None]:
    """A session's names with one more. Those of a session that had none are a new dict (session.NO_NAMES)."""
    if not names:
        return {name: None}
    names[name] = None
    return names


def _count(session: Session, own: dict[bytes, None], name: bytes) -> None:
    """A session is about to listen to a name, perhaps one that it listens to already."""
    if name not in own:
        session.subscribed_bytes += len(name) + HELD_NAME


def _leave(listeners: dict[bytes, Listeners], name: bytes, session: Session) -> None:
    session.subscribed_bytes -= len(name) + HELD_NAME
    del listeners[name][session]
    if not listeners[name]:
        del listeners[name]


def _send(listeners: Listeners, message: bytes, outgoing: Outgoing) -> int:
    """Address a message, given without its first byte, to each listener: a push in RESP3, an array in RESP2."""
    push, array = b">" + message, b"*" + message
    outgoing += [(session, push if session.resp == 3 else array) for session in listeners]
    return len(listeners)
