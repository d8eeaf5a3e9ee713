"""Which of several endpoints has a key: by rendezvous, so that one more endpoint takes only its share of the keys.

A key's slot is its CRC32 modulo SLOTS; of a slot's weights, one for each endpoint's name, the largest wins. An endpoint
that is added takes the slots in which its weight is the largest, and no other slot moves.
"""

from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from typing import Final
from zlib import crc32

SLOTS: Final = 1024
RENDEZVOUS: Final = "rendezvous"
CRC32: Final = "crc32"  # modulo the number of endpoints: of queries that began before there was the other


def place(key: bytes, names: tuple[str, ...], placement: str) -> int:
    """The index of the endpoint that has a key."""
    return crc32(key) % len(names) if placement == CRC32 else _winners(names)[crc32(key) % SLOTS]


@cache
def _winners(names: tuple[str, ...]) -> Sequence[int]:
    """The index of the endpoint that has a slot, by slot."""
    return [max(range(len(names)), key=lambda at: _weight(slot, names[at])) for slot in range(SLOTS)]


def _weight(slot: int, name: str) -> bytes:
    return blake2b(b"%d %b" % (slot, name.encode()), digest_size=8).digest()
