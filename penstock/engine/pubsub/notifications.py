"""Keyspace notifications: what happens to keys, published to subscribers.

Published twice, as `notify-keyspace-events` wants: on `__keyspace@0__:key` the event, on `__keyevent@0__:event` the key
(https://redis.io/docs/latest/develop/pubsub/keyspace-notifications/).
"""

from typing import Final

from penstock.config.settings import Settings
from penstock.engine.pubsub.subscriptions import Outgoing, Subscriptions

BY_KEY: Final = "K"
BY_EVENT: Final = "E"


def wanted(settings: Settings) -> str:
    """The letters of the classes that are published, with K and E; none where neither K nor E is set."""
    letters = settings.text("notify-keyspace-events")
    return letters if BY_KEY in letters or BY_EVENT in letters else ""


def publish(
    subscriptions: Subscriptions, letters: str, db_index: int, name: bytes, key: bytes, outgoing: Outgoing
) -> None:
    """Publish one event by key, then by event, as far as `letters` have K and E."""
    if not subscriptions.channels and not subscriptions.patterns:
        return
    if BY_KEY in letters:
        subscriptions.publish(b"__keyspace@%d__:%b" % (db_index, key), name, outgoing)
    if BY_EVENT in letters:
        subscriptions.publish(b"__keyevent@%d__:%b" % (db_index, name), key, outgoing)
