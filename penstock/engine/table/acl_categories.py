"""The ACL categories of a command: they follow from its group and flags, but for what its declaration adds."""

from typing import Final

from penstock.engine.table.row import Row

CATEGORIES: Final = (  # in the order in which COMMAND INFO gives them (Redis 8.6.3)
    "keyspace", "pubsub", "read", "write", "bitmap", "geo", "hash", "hyperloglog", "admin", "set", "sortedset", "list",
    "stream", "string", "fast", "slow", "blocking", "dangerous", "connection", "scripting", "transaction",
    "array",  # since 8.8
)  # fmt: skip

_OF_GROUP: Final[dict[str, str]] = {
    "array": "array",
    "bitmap": "bitmap",
    "connection": "connection",
    "generic": "keyspace",
    "geo": "geo",
    "hash": "hash",
    "hyperloglog": "hyperloglog",
    "list": "list",
    "scripting": "scripting",
    "set": "set",
    "sorted-set": "sortedset",
    "stream": "stream",
    "string": "string",
    "transactions": "transaction",
}

_OF_FLAG: Final[dict[str, str]] = {
    "admin": "admin",
    "blocking": "blocking",
    "pubsub": "pubsub",
    "readonly": "read",
    "write": "write",
}


def categories(row: Row) -> list[str]:
    """Without the @, in Redis's order. A container belongs to no group: it only is slow."""
    found = {"fast" if row.fast else "slow"}
    for flag in row.flags:
        if flag in _OF_FLAG:
            found.add(_OF_FLAG[flag])
    if "admin" in found:
        found.add("dangerous")
    if not row.is_container and row.group in _OF_GROUP:
        found.add(_OF_GROUP[row.group])
    if "scripting" in found:
        found.discard("read")  # EVAL_RO and the like are not in @read
    for word in row.declared.acl.split():
        if word.startswith("-"):
            found.discard(word[1:])
        else:
            found.add(word)
    return [category for category in CATEGORIES if category in found]
