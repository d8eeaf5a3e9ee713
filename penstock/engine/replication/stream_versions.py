"""Which words the replication stream may have: those that every replica knows.

A replica that does not know a command skips it in silence (Redis 8.6.3), so none is sent. Redis does not tell its
version: what it offers and `rdb-compat-version` say what it is at least.
"""

from typing import Final

from penstock.engine.aof.aof_compat import NEWEST, AofCompat

Version = tuple[int, int]

OLDEST: Final[Version] = (0, 0)
OF_RDB_CHANNEL: Final[Version] = (8, 0)  # the first Redis that offers rdb-channel-repl
FIRST_WITH_FIELD_TIMES: Final[Version] = (7, 4)
FIRST_VALKEY_WITH_FIELDS: Final[Version] = (9, 0)  # that has HPEXPIREAT and HSETEX


class ReplicaKind:
    """The commands that a replica knows: Redis's up to a version; of Valkey, its own version too."""

    __slots__ = ("valkey", "version")

    def __init__(self, version: Version, valkey: Version = OLDEST) -> None:
        self.version = version
        self.valkey = valkey

    def compat(self, at_least: Version, consumer: bytes) -> AofCompat:
        """at_least: the version of every replica, as the operator says."""
        compat = AofCompat(max(self.version, at_least), consumer)
        if self.valkey >= FIRST_VALKEY_WITH_FIELDS:
            compat.field_expiry = compat.field_setting = True
        return compat


def offered(kind: ReplicaKind, capability: bytes) -> ReplicaKind:
    """The kind of a replica that has named a capability (REPLCONF capa)."""
    if capability == b"penstock":
        return ReplicaKind(NEWEST)
    if capability == b"rdb-channel-repl":
        return ReplicaKind(max(kind.version, OF_RDB_CHANNEL), kind.valkey)
    return kind


def named(kind: ReplicaKind, text: bytes) -> ReplicaKind:
    """REPLCONF version, which Valkey sends.

    >>> named(ReplicaKind(OLDEST), b"9.1.2").valkey
    (9, 1)
    """
    numbers = text.split(b".")
    if len(numbers) < 2 or not (numbers[0].isdigit() and numbers[1].isdigit()):
        return kind
    return ReplicaKind(kind.version, (int(numbers[0]), int(numbers[1])))
