"""A user's rules, as ACL SETUSER, `user` lines and the ACL file give them, applied one by one (Redis 8.6.3)."""

from collections.abc import Sequence
from typing import Final

from penstock.engine.access import users
from penstock.engine.access.allowed_databases import PREFIX, AllowedDatabases
from penstock.engine.access.command_catalog import CommandCatalog
from penstock.engine.access.rule_error import RuleError
from penstock.engine.access.selector import SYNTAX, Selector, has_spaces
from penstock.engine.access.users import User

USELESS_PATTERN: Final = (
    b"Adding a pattern after the * pattern (or the '%b' flag) is not valid and does not have any effect."
    b" Try '%b' to start with an empty list of %b"
)
USELESS_KEYS: Final = USELESS_PATTERN % (b"allkeys", b"resetkeys", b"patterns")
USELESS_CHANNELS: Final = USELESS_PATTERN % (b"allchannels", b"resetchannels", b"channels")
NO_SUCH_PASSWORD: Final = b"The password you are trying to remove from the user does not exist"
BAD_HASH: Final = b"The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"


class Unmatched(Exception):
    """A parenthesis is not closed. `beginning` is the word that opens it."""

    def __init__(self, beginning: bytes) -> None:
        super().__init__(beginning)
        self.beginning = beginning


class UserRules:
    """Makes users of one server, and changes them.

    all_channels: what a new user, and one that is reset, may listen to (acl-pubsub-default). databases: how many the
    server has. is_valkey: rules may name databases, as in Valkey 9.1.
    """

    __slots__ = ("_catalog", "_every_database", "_is_valkey", "all_channels")

    def __init__(self, catalog: CommandCatalog, databases: int, is_valkey: bool) -> None:
        self._catalog = catalog
        self._every_database = AllowedDatabases(databases)
        self._is_valkey = is_valkey
        self.all_channels = False

    def new_user(self, name: bytes) -> User:
        """A user without any right, which cannot log in."""
        return User(name, [self._new_selector()])

    def first_default(self) -> User:
        """The user `default` of a server without users in its settings: everything is allowed, without a password."""
        user = self.new_user(users.DEFAULT)
        for rule in (b"on", b"nopass", b"~*", b"&*", b"+@all"):
            self.apply(user, rule)
        return user

    def _new_selector(self) -> Selector:
        selector = Selector(self._catalog, self._every_database)
        if self.all_channels:
            selector.allow_all_channels()
        return selector

    def apply(self, user: User, rule: bytes) -> None:
        """Change a user by one word, which may be a selector in parentheses; RuleError if it is wrong."""
        if len(rule) == 0:
            return
        word, sign, rest = rule.lower(), rule[:1], rule[1:]
        if word in (b"on", b"off"):
            user.enabled = word == b"on"
        elif word == b"nopass":
            user.open_to_all, user.hashes = True, []
        elif word == b"resetpass":
            user.open_to_all, user.hashes = False, []
        elif word in (b"sanitize-payload", b"skip-sanitize-payload"):
            user.sanitizes = word == b"sanitize-payload"
        elif sign in (b">", b"#"):
            kept = users.digest(rest) if sign == b">" else _hash(rest)
            user.open_to_all = False
            if kept not in user.hashes:
                user.hashes.append(kept)
        elif sign in (b"<", b"!"):
            kept = users.digest(rest) if sign == b"<" else _hash(rest)
            if kept not in user.hashes:
                raise RuleError(NO_SUCH_PASSWORD)
            user.hashes.remove(kept)
        elif sign == b"(" and rule.endswith(b")"):
            user.selectors.append(self._selector(rule[1:-1]))
        elif word == b"clearselectors":
            del user.selectors[1:]
        elif word == b"reset":
            fresh = self.new_user(user.name)
            user.enabled, user.open_to_all, user.hashes = False, False, []
            user.sanitizes, user.selectors = True, fresh.selectors
        else:
            self._apply_to_selector(user.selectors[0], rule)

    def _selector(self, text: bytes) -> Selector:
        selector = self._new_selector()
        for rule in text.split(b" "):
            self._apply_to_selector(selector, rule)
        return selector

    def _apply_to_selector(self, selector: Selector, rule: bytes) -> None:
        if not (self._is_valkey and _apply_to_databases(selector, rule)):
            apply_to_selector(selector, rule)


def _apply_to_databases(selector: Selector, rule: bytes) -> bool:
    """Change a selector by one word about databases; whether it is one. RuleError if it is wrong."""
    word = rule.lower()
    if word == b"alldbs":
        selector.databases = selector.databases.all()
    elif word == b"resetdbs":
        selector.databases = selector.databases.none()
    elif word.startswith(PREFIX):
        selector.databases = selector.databases.named_by(rule)
    else:
        return False
    return True


def apply_to_selector(selector: Selector, rule: bytes) -> None:
    """Change a selector by one word about keys, channels or commands; RuleError if it is wrong."""
    if len(rule) == 0:
        return
    word, sign, rest = rule.lower(), rule[:1], rule[1:]
    if word in (b"allkeys", b"~*"):
        selector.allow_all_keys()
    elif word == b"resetkeys":
        selector.forget_keys()
    elif word in (b"allchannels", b"&*"):
        selector.allow_all_channels()
    elif word == b"resetchannels":
        selector.forget_channels()
    elif word in (b"allcommands", b"+@all"):
        selector.allow_all_commands()
    elif word in (b"nocommands", b"-@all"):
        selector.forget_commands()
    elif sign in (b"~", b"%"):
        _add_keys(selector, rule)
    elif sign == b"&":
        if selector.all_channels:
            raise RuleError(USELESS_CHANNELS)
        if has_spaces(rest):
            raise RuleError(SYNTAX)
        selector.add_channels(rest)
    elif sign in (b"+", b"-"):
        name = rest.lower().decode(errors="surrogateescape")
        if name.startswith("@"):
            selector.change_category(name[1:], sign == b"+")
        else:
            selector.change_command(name, sign == b"+")
    else:
        raise RuleError(SYNTAX)


def _add_keys(selector: Selector, rule: bytes) -> None:
    """~pattern, %R~pattern, %W~pattern, %RW~pattern; `%R` alone is for the empty pattern, as in Redis 8.6.3."""
    if selector.all_keys:
        raise RuleError(USELESS_KEYS)
    rights, pattern = b"RW", rule[1:]
    if rule.startswith(b"%"):
        rights, _, pattern = rule[1:].partition(b"~")
        rights = rights.upper()
        if rights not in (b"R", b"W", b"RW", b"WR"):
            raise RuleError(SYNTAX)
    if has_spaces(pattern):
        raise RuleError(SYNTAX)
    selector.add_keys(pattern, b"R" in rights, b"W" in rights)


def _hash(text: bytes) -> str:
    if len(text) != users.HASH_LENGTH or text.strip(b"0123456789abcdef"):
        raise RuleError(BAD_HASH)
    return text.decode()


def with_selectors(rules: Sequence[bytes]) -> list[bytes]:
    """The rules, each selector as one word: `(+get` and `~a)` become `(+get ~a)`. Unmatched if one does not end."""
    merged: list[bytes] = []
    opened: list[bytes] = []
    for rule in rules:
        if opened or (rule.startswith(b"(") and not rule.endswith(b")")):
            opened.append(rule)
            if rule.endswith(b")"):
                merged.append(b" ".join(opened))
                opened = []
        else:
            merged.append(rule)
    if opened:
        raise Unmatched(opened[0])
    return merged
