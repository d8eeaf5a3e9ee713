"""The words that the log may have: those of the oldest Redis that must load it (`aof-compat-version`).

A change that has no such words is written as its result, as far as possible: docs/log.md says what is lost.
"""

from typing import Final

from penstock.config.settings import Settings

NEWEST: Final = (99, 0)


class AofCompat:
    """Which words the log may have, by the compat version.

    releases: XNACK (8.8); without it a released entry belongs to `consumer`, delivered at time 0.
    idempotence: IDMP, XCFGSET and XIDMPRECORD (8.6.2). references: KEEPREF, DELREF, ACKED, XDELEX, XACKDEL (8.2).
    has_8_12: SPEXPIREAT, SPERSIST, SADDEX, BLESS, BITCONVERT (8.12); without it they are private lines.
    field_setting: HSETEX (8.0). field_expiry: HPEXPIREAT, HPERSIST (7.4); without them a field's end is its HDEL.
    """

    __slots__ = ("consumer", "field_expiry", "field_setting", "has_8_12", "idempotence", "references", "releases")

    def __init__(self, version: tuple[int, int] = NEWEST, consumer: bytes = b"") -> None:
        self.has_8_12 = version >= (8, 12)
        self.releases = version >= (8, 8)
        self.idempotence = version >= (8, 6)
        self.references = version >= (8, 2)
        self.field_setting = version >= (8, 0)
        self.field_expiry = version >= (7, 4)
        self.consumer = consumer

    def within(self, other: "AofCompat") -> "AofCompat":
        """The words that both have."""
        both = AofCompat(NEWEST, self.consumer)
        both.has_8_12 = self.has_8_12 and other.has_8_12
        both.releases = self.releases and other.releases
        both.idempotence = self.idempotence and other.idempotence
        both.references = self.references and other.references
        both.field_setting = self.field_setting and other.field_setting
        both.field_expiry = self.field_expiry and other.field_expiry
        return both

    def equals(self, other: "AofCompat") -> bool:
        """Whether both have the same words."""
        return self.words() == other.words()

    def words(self) -> tuple[bool, ...]:
        """All of it, in a fixed order."""
        known = (self.has_8_12, self.releases, self.idempotence, self.references)
        return (*known, self.field_setting, self.field_expiry)


def of(settings: Settings) -> AofCompat:
    """The words that the settings allow."""
    name = settings.text("aof-compat-version")
    return AofCompat(NEWEST if name == "newest" else version_of(name), consumer_of(settings))


def within_words(settings: Settings, words: AofCompat) -> AofCompat:
    """The words that the settings allow and all replicas know."""
    return of(settings).within(words)


def version_of(name: str) -> tuple[int, int]:
    """A version as a directive has it: "7.2"."""
    major, _, minor = name.partition(".")
    return int(major), int(minor)


def consumer_of(settings: Settings) -> bytes:
    """The consumer that owns released entries where there is no XNACK."""
    return settings.text("aof-compat-consumer").encode(errors="surrogateescape")
