"""Keyspace notifications: what happens to keys, published to subscribers.

Published twice, as `notify-keyspace-events` wants: on `__keyspace@0__:key` the event, on `__keyevent@0__:event` the key
(https://redis.io/docs/latest/develop/pubsub/keyspace-notifications/).

Events of fields and members are also published with these, in up to four ways (Redis 8.8,
https://redis.io/docs/latest/develop/pubsub/subkeyspace-notifications/; the forms are those that redis-py 8.1 reads).
"""

from collections.abc import Sequence
from typing import Final

from penstock.config.settings import Settings
from penstock.engine.clients import Clients
from penstock.engine.conditions import Conditions
from penstock.engine.pubsub.subscriptions import Subscriptions
from penstock.engine.state import NOTIFYING

BY_KEY: Final = "K"
BY_EVENT: Final = "E"
PARTS_BY_KEY: Final = "S"
PARTS_BY_EVENT: Final = "T"
BY_PART: Final = "I"
PARTS_BY_EVENT_AND_KEY: Final = "V"
OF_PARTS: Final = frozenset([PARTS_BY_KEY, PARTS_BY_EVENT, BY_PART, PARTS_BY_EVENT_AND_KEY])
WAYS: Final = OF_PARTS | {BY_KEY, BY_EVENT}


def wanted(settings: Settings) -> str:
    """The letters of the classes and ways that are published; none where no way is set."""
    letters = settings.text("notify-keyspace-events")
    return "" if WAYS.isdisjoint(letters) else letters


class KeyEvents:
    """letters: of the classes and ways of events that are published now; empty: none. of_parts: also with parts."""

    __slots__ = ("_clients", "_conditions", "_settings", "_subscriptions", "letters", "of_parts")

    def __init__(
        self, settings: Settings, subscriptions: Subscriptions, clients: Clients, conditions: Conditions
    ) -> None:
        self._settings = settings
        self._subscriptions = subscriptions
        self._clients = clients
        self._conditions = conditions
        self.letters = ""
        self.of_parts = False
        settings.watch("notify-keyspace-events", self._follow_settings)
        self._follow_settings()

    def _follow_settings(self) -> None:
        self.choose(wanted(self._settings))

    def choose(self, letters: str) -> None:
        """Publish the events of these letters from now on."""
        self.letters = letters
        self.of_parts = not OF_PARTS.isdisjoint(letters)
        self._conditions.set(NOTIFYING, letters != "")

    def publish(self, db_index: int, kind: str, name: bytes, key: bytes) -> None:
        """Publish an event of a class (a letter), if the class is wanted: by key, then by event."""
        subscriptions, letters, outgoing = self._subscriptions, self.letters, self._clients.outgoing
        if kind not in letters or (not subscriptions.channels and not subscriptions.patterns):
            return
        if BY_KEY in letters:
            subscriptions.publish(b"__keyspace@%d__:%b" % (db_index, key), name, outgoing)
        if BY_EVENT in letters:
            subscriptions.publish(b"__keyevent@%d__:%b" % (db_index, name), key, outgoing)

    def publish_parts(self, db_index: int, kind: str, name: bytes, key: bytes, parts: Sequence[bytes]) -> None:
        """Publish an event with the changed parts of the key's value; without parts nothing is published."""
        subscriptions, letters, outgoing = self._subscriptions, self.letters, self._clients.outgoing
        if not parts or kind not in letters or (not subscriptions.channels and not subscriptions.patterns):
            return
        listed = b",".join([b"%d:%b" % (len(part), part) for part in parts])
        if PARTS_BY_KEY in letters:
            subscriptions.publish(b"__subkeyspace@%d__:%b" % (db_index, key), b"%b|%b" % (name, listed), outgoing)
        if PARTS_BY_EVENT in letters:
            payload = b"%d:%b|%b" % (len(key), key, listed)
            subscriptions.publish(b"__subkeyevent@%d__:%b" % (db_index, name), payload, outgoing)
        if BY_PART in letters and b"\n" not in key:  # else the end of the key in the channel's name is not clear
            for part in parts:
                subscriptions.publish(b"__subkeyspaceitem@%d__:%b\n%b" % (db_index, key, part), name, outgoing)
        if PARTS_BY_EVENT_AND_KEY in letters:
            subscriptions.publish(b"__subkeyspaceevent@%d__:%b|%b" % (db_index, name, key), listed, outgoing)
