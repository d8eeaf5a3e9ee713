"""What may stand in the log: the words that the oldest Redis that must load it knows (`aof-compat-version`).

What it has no words for is written as what it came to, as far as that goes: docs/log.md says what is lost.
"""

from typing import Final

from penstock.config.settings import Settings

NEWEST: Final = (99, 0)


class Dialect:
    """Which words the log has.

    releases: XNACK (8.8); without it a released entry belongs to `consumer`, delivered at time 0.
    idempotence: IDMP, XCFGSET and XIDMPRECORD (8.6.2). references: KEEPREF, DELREF, ACKED, XDELEX, XACKDEL (8.2).
    field_setting: HSETEX (8.0). field_expiry: HPEXPIREAT, HPERSIST (7.4); without them a field's end is its HDEL.
    """

    __slots__ = ("consumer", "field_expiry", "field_setting", "idempotence", "references", "releases")

    def __init__(self, version: tuple[int, int] = NEWEST, consumer: bytes = b"") -> None:
        self.releases = version >= (8, 8)
        self.idempotence = version >= (8, 6)
        self.references = version >= (8, 2)
        self.field_setting = version >= (8, 0)
        self.field_expiry = version >= (7, 4)
        self.consumer = consumer


def of(settings: Settings) -> Dialect:
    """The dialect that the settings ask for."""
    name = settings.text("aof-compat-version")
    consumer = settings.text("aof-compat-consumer").encode(errors="surrogateescape")
    if name == "newest":
        return Dialect(consumer=consumer)
    major, _, minor = name.partition(".")
    return Dialect((int(major), int(minor)), consumer)
