"""The fields of an entry that policies read: its value for KEY, the times of AT and EXPIREAT."""

from penstock.engine import arguments
from penstock.protocol import entries
from penstock.storage.deadlines import NEVER
from penstock.storage.policies.group_policy import GroupSettings
from penstock.storage.policies.stream_policies import NONE
from penstock.storage.streams.ids import StreamId


def value_of(field: bytes, entry: bytes) -> bytes | None:
    """The value of a field in an entry, the first of that name; None if there is none."""
    fields = entries.fields_of(entry)
    for at in range(0, len(fields), 2):
        if fields[at] == field:
            return fields[at + 1]
    return None


def key_value(settings: GroupSettings, entry: bytes) -> bytes | None:
    """The value of KEY's field in an entry; None without KEY, or if there is none."""
    return None if settings.key_field is None else value_of(settings.key_field, entry)


def moment_in(field: bytes, entry_id: StreamId, entry: bytes) -> int | None:
    """The moment that a field says, in unix ms: a number, or `+ms` after the entry's own id; None if it is neither."""
    word = value_of(field, entry)
    if word is None:
        return None
    if arguments.is_integer(word):
        return int(word)
    if word.startswith(b"+") and arguments.is_integer(word[1:]) and word[1:2] != b"-":
        return (entry_id >> 64) + int(word[1:])
    return None


def expires_ms(settings: GroupSettings, entry_id: StreamId, entry: bytes) -> int:
    """From when on an entry is not handed out any more, in unix ms; NEVER without EXPIRE and EXPIREAT."""
    said_ms = None if settings.expire_field is None else moment_in(settings.expire_field, entry_id, entry)
    if said_ms is not None:
        return said_ms
    return NEVER if settings.expire_ms == NONE else (entry_id >> 64) + settings.expire_ms


def size_of(entry: bytes) -> int:
    """The bytes of the names and values of an entry, as MAXBYTES counts them. O(fields)."""
    size = 0
    for word in entries.fields_of(entry):
        size += len(word)
    return size
