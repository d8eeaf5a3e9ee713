"""How many bytes keys, databases and the whole keyspace take, by estimate."""

import sys
from itertools import islice
from typing import Final

from penstock.storage.keyspace import Database, Keyspace, Value

KEY_OVERHEAD: Final = 100  # a slot of a dict at two thirds full, the key's hash and its pointers

PACKED_OVERHEAD: Final = 22  # the head, and a share of a bucket's own bytes

EXPIRY_OVERHEAD: Final = 200  # an expiry is kept twice: by key, and in order


SAMPLED_KEYS: Final = 200  # a database is judged by so many of its keys


def memory_usage(key: bytes, value: Value) -> int:
    """Bytes that a key and its value hold, by estimate."""
    size = sys.getsizeof(value) if isinstance(value, bytes) else value.memory_usage()
    return KEY_OVERHEAD + sys.getsizeof(key) + size


def key_bytes(db: Database, key: bytes) -> int:
    """Bytes that a key of a database and its value hold, by estimate."""
    value = db.values[key]
    if isinstance(value, bytes) and key not in db.values.objects:
        return PACKED_OVERHEAD + len(key) + len(value)
    return memory_usage(key, value)


def database_bytes(db: Database) -> int:
    """Bytes of a database's keys and values: measured on some of them, and scaled up."""
    objects = db.values.objects
    sampled = [memory_usage(key, value) for key, value in islice(objects.items(), SAMPLED_KEYS)]
    of_objects = sum(sampled) * len(objects) // len(sampled) if sampled else 0
    return of_objects + db.values.packed_bytes(SAMPLED_KEYS) + len(db.expires) * EXPIRY_OVERHEAD


def dataset_bytes(keyspace: Keyspace) -> int:
    return sum([database_bytes(db) for db in keyspace.databases if len(db)])
