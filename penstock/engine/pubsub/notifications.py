"""Keyspace notifications: what happens to keys, published to subscribers.

Published twice, as `notify-keyspace-events` wants: on `__keyspace@0__:key` the event, on `__keyevent@0__:event` the key
(https://redis.io/docs/latest/develop/pubsub/keyspace-notifications/).
"""

from typing import Final

from penstock.config.settings import Settings
from penstock.engine.clients import Clients
from penstock.engine.conditions import Conditions
from penstock.engine.pubsub.subscriptions import Subscriptions
from penstock.engine.state import NOTIFYING

BY_KEY: Final = "K"
BY_EVENT: Final = "E"


def wanted(settings: Settings) -> str:
    """The letters of the classes that are published, with K and E; none where neither K nor E is set."""
    letters = settings.text("notify-keyspace-events")
    return letters if BY_KEY in letters or BY_EVENT in letters else ""


class KeyEvents:
    """letters: of the classes of events that are published now, with K and E; empty: none."""

    __slots__ = ("_clients", "_conditions", "_settings", "_subscriptions", "letters")

    def __init__(
        self, settings: Settings, subscriptions: Subscriptions, clients: Clients, conditions: Conditions
    ) -> None:
        self._settings = settings
        self._subscriptions = subscriptions
        self._clients = clients
        self._conditions = conditions
        self.letters = ""
        settings.watch("notify-keyspace-events", self._follow_settings)
        self._follow_settings()

    def _follow_settings(self) -> None:
        self.choose(wanted(self._settings))

    def choose(self, letters: str) -> None:
        """Publish the events of these letters from now on."""
        self.letters = letters
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
