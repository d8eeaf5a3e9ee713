"""How many keys of each type there are, here and there."""

from penstock.storage.keyspace import Keyspace, type_name
from penstock.transfer.remote import Remote

SCAN_COUNT = b"1000"


def of_keyspace(keyspace: Keyspace) -> dict[str, int]:
    """O(keys)."""
    counts: dict[str, int] = {}
    for db in keyspace.databases:
        for value in db.values.values():
            name = type_name(value).decode()
            counts[name] = counts.get(name, 0) + 1
    return counts


def of_server(remote: Remote) -> dict[str, int]:
    """By SCAN of every database, and TYPE of every key. What is written meanwhile may be counted or not."""
    counts: dict[str, int] = {}
    for name in remote.info("keyspace"):
        remote.ask(b"SELECT", name.removeprefix("db").encode())
        seen: set[bytes] = set()
        cursor = b"0"
        while True:
            answer = remote.ask(b"SCAN", cursor, b"COUNT", SCAN_COUNT)
            assert isinstance(answer, list), "SCAN answers with a cursor and keys"
            cursor, keys = answer
            fresh = [key for key in keys if key not in seen]
            seen.update(fresh)
            for kind in remote.ask_all([[b"TYPE", key] for key in fresh]):
                type_ = kind.decode() if isinstance(kind, bytes) else str(kind)
                if type_ != "none":
                    counts[type_] = counts.get(type_, 0) + 1
            if cursor == b"0":
                break
    return counts


def table(here: dict[str, int], there: dict[str, int]) -> list[str]:
    """Lines for a person: every type with both numbers.

    >>> table({"hash": 2}, {"hash": 2, "stream": 1})
    ['hash          2 here          2 there', 'stream        0 here          1 there  (differs)']
    """
    lines = []
    for name in sorted(here.keys() | there.keys()):
        ours, theirs = here.get(name, 0), there.get(name, 0)
        differs = "" if ours == theirs else "  (differs)"
        lines.append(f"{name:<6} {ours:>8} here {theirs:>10} there{differs}")
    return lines
