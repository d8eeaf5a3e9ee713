"""A naive model of what rules of a user allow: it keeps no index, shares no code and decides rule by rule."""

import fnmatch
from typing import Final

COMMANDS: Final[dict[str, tuple[set[str], dict[int, str], tuple[int, ...]]]] = {
    # name: categories, key flags by position, positions of channels
    "get": ({"read", "string", "fast"}, {1: "R"}, ()),
    "set": ({"write", "string", "slow"}, {1: "W"}, ()),
    "incr": ({"write", "string", "fast"}, {1: "RW"}, ()),
    "exists": ({"keyspace", "read", "fast"}, {1: ""}, ()),
    "lmove": ({"write", "list", "slow"}, {1: "RW", 2: "W"}, ()),
    "publish": ({"pubsub", "fast"}, {}, (1,)),
    "dbsize": ({"keyspace", "read", "fast"}, {}, ()),
    "xinfo|stream": ({"read", "stream", "slow"}, {2: "R"}, ()),
}
REQUESTS: Final = {
    "get": "get {0}", "set": "set {0} v", "incr": "incr {0}", "exists": "exists {0}",
    "lmove": "lmove {0} {1} left left", "publish": "publish {0} x", "dbsize": "dbsize",
    "xinfo|stream": "xinfo stream {0}",
}  # fmt: skip
KEY_NAMES: Final = ["a", "ab", "b", "b1", "c"]
PATTERNS: Final = ["a", "a*", "ab", "b?", "*", "c"]
COMMAND_WORDS: Final = [*COMMANDS, "xinfo", "@read", "@write", "@fast", "@string", "@pubsub", "@all"]


def fits(text: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(text, pattern)


def allows_command(rules: list[str], name: str) -> bool:
    """The last rule that speaks of a command decides."""
    allowed = False
    for rule in rules:
        what = rule[1:]
        categories = COMMANDS[name][0]
        speaks = what in (name, name.partition("|")[0]) or what == "@all" or what[1:] in categories
        if rule[0] in "+-" and speaks:
            allowed = rule[0] == "+"
    return allowed


def key_rights(rules: list[str]) -> dict[str, str]:
    """Patterns, and what they allow: the rights of equal patterns add up."""
    rights: dict[str, str] = {}
    for rule in rules:
        if rule[0] in "~%":
            kind, _, pattern = rule.partition("~")
            rights[pattern] = rights.get(pattern, "") + (kind[1:] or "RW")
    return rights


def allows(rules: list[str], name: str, words: list[str]) -> bool:
    _, keys, channels = COMMANDS[name]
    return (
        allows_command(rules, name)
        and all(
            any(fits(words[at], pattern) and set(wanted) <= set(has) for pattern, has in key_rights(rules).items())
            for at, wanted in keys.items()
        )
        and all(any(fits(words[at], rule[1:]) for rule in rules if rule[0] == "&") for at in channels)
    )


def without_useless(rules: list[str]) -> list[str]:
    """Without patterns behind those for everything, which SETUSER refuses."""
    kept: list[str] = []
    for rule in rules:
        if not ((rule[0] in "~%" and "~*" in kept) or (rule[0] == "&" and "&*" in kept)):
            kept.append(rule)
    return kept


def in_parentheses(rules: list[str]) -> bytes:
    return f"({' '.join(rules)})".encode()
