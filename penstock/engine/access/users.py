"""A user: whether and with which passwords a client may log in, and what is allowed then."""

import hashlib
import hmac
import secrets
from typing import Final

from penstock.engine.access.command_catalog import CommandCatalog
from penstock.engine.access.selector import Denial, Selector
from penstock.engine.table.row import Row

DEFAULT: Final = b"default"
HASH_LENGTH: Final = 64  # of a SHA-256 in hexadecimal
MOST_KNOWN: Final = 512  # requests that a user remembers as allowed,
MOST_KNOWN_WORDS: Final = 24  # each of so many words and
MOST_KNOWN_BYTES: Final = 512  # bytes at most


def digest(password: bytes) -> str:
    """A password as it is kept: SHA-256 in hexadecimal."""
    return hashlib.sha256(password).hexdigest()


class User:
    """One user. It is changed only before sessions have it: a change makes a copy, `seal` ends it.

    `open_to_all` (nopass) and `hashes` exclude each other. Without either, no client can log in. selectors: the root
    selector, then those in parentheses; none for the user of the server's own sessions, which is not restricted.
    is_restricted: some request could be refused. `_anyhow`: names of the rows that are allowed whatever their
    arguments are. `_known`: requests that are allowed, of rows with keys that must be looked for (XREADGROUP), by their
    words; `_last` is the one that was asked for last. A worker repeats such a request all day. They are requests in
    the database `_known_in`, where the user `_is_bound`: a selector does not allow every database.
    """

    __slots__ = (
        "_anyhow", "_is_bound", "_known", "_known_in", "_last", "enabled", "hashes", "is_restricted", "name",
        "open_to_all", "sanitizes", "selectors",
    )  # fmt: skip

    def __init__(self, name: bytes, selectors: list[Selector]) -> None:
        self.name = name
        self.enabled = False
        self.open_to_all = False
        self.hashes: list[str] = []
        self.sanitizes = True
        self.selectors = selectors
        self.is_restricted = False
        self._anyhow: frozenset[str] = frozenset()
        self._known: dict[tuple[bytes, ...], Row] = {}
        self._last: list[bytes] = []
        self._known_in = 0
        self._is_bound = False

    def copy(self) -> "User":
        copied = User(self.name, [selector.copy() for selector in self.selectors])
        copied.enabled, copied.open_to_all, copied.hashes = self.enabled, self.open_to_all, list(self.hashes)
        copied.sanitizes = self.sanitizes
        return copied

    # -- logging in -------------------------------------------------------------------------------------------------

    def needs_no_login(self) -> bool:
        """Whether a new connection may act as this user at once."""
        return self.enabled and self.open_to_all

    def admits(self, password: bytes) -> bool:
        """Whether a password is right. The comparison takes the same time wherever the hashes differ."""
        given = digest(password)
        right = False
        for kept in self.hashes:
            right |= hmac.compare_digest(given, kept)
        return self.enabled and (self.open_to_all or right)

    # -- rights -----------------------------------------------------------------------------------------------------

    def seal(self, catalog: CommandCatalog) -> None:
        """Compute what is asked for each request. O(commands * selectors); O(1) if everything is allowed."""
        self._known, self._last = {}, []
        self._is_bound = any(selector.databases.numbers is not None for selector in self.selectors)
        self.is_restricted = not any(selector.allows_everything for selector in self.selectors)
        if not self.is_restricted:
            self._anyhow = catalog.names
            return
        allowed = [row.name for row in catalog.every if any(selector.allows_anyhow(row) for selector in self.selectors)]
        self._anyhow = frozenset(allowed)

    def allows_anyhow(self, row: Row) -> bool:
        """Whether a command is allowed whatever its arguments are. O(1)."""
        return row.name in self._anyhow or row.no_auth

    def denial(self, row: Row, request: list[bytes], db_index: int) -> Denial | None:
        """Why a request in a database is refused; None if it is allowed.

        O(selectors * keys * patterns), O(1) for most commands.
        """
        if row.name in self._anyhow or row.no_auth:
            return None
        if not row.keys_move:
            return self._worst(row, request, db_index)
        if self._is_bound and db_index != self._known_in:
            self._known, self._last, self._known_in = {}, [], db_index
        if request == self._last:
            return None
        words = tuple(request) if len(request) <= MOST_KNOWN_WORDS else ()
        denial = None if self._known.get(words) is row else self._worst(row, request, db_index)
        if denial is None and words and sum(map(len, words)) <= MOST_KNOWN_BYTES:
            self._last = request
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[words] = row
        return denial

    def _worst(self, row: Row, request: list[bytes], db_index: int) -> Denial | None:
        worst: Denial | None = None
        for selector in self.selectors:
            found = selector.denial(row, request, db_index)
            if found is None:
                return None
            if worst is None or found.outranks(worst):
                worst = found
        return worst

    def reads_every_key(self, row: Row, request: list[bytes], db_index: int) -> bool:
        """Whether a selector allows a request, and to read any key: SORT with BY or GET needs both (Redis 8.6.3)."""
        return not self.is_restricted or any(
            selector.reads_every_key() and selector.denial(row, request, db_index) is None
            for selector in self.selectors
        )

    def allows_key(self, key: bytes, reads: bool) -> bool:
        """Whether some selector allows anything with a key; reads: to read its value. O(selectors * patterns)."""
        return not self.is_restricted or any(selector.allows_key(key, reads, False) for selector in self.selectors)

    def key_rules(self) -> list[tuple[bytes, bytes]]:
        """The rules about keys and databases of each selector."""
        return [(selector.key_text(), selector.databases.text()) for selector in self.selectors]

    def refused_link(
        self, row: Row, request: list[bytes], db_index: int, key: bytes, targets: list[bytes]
    ) -> bytes | None:
        """The key that keeps a request from leading entries from a key to targets; None if the user may do that.

        One selector must allow the request, to read and change the key, and to change the targets. O(selectors * keys
        * patterns).
        """
        refused = key
        for selector in self.selectors:
            if selector.denial(row, request, db_index) is None:
                found = selector.refused_link(key, targets)
                if found is None:
                    return None
                refused = found
        return refused

    def allows_channel(self, channel: bytes, is_pattern: bool) -> bool:
        """Whether a subscription may stay."""
        return any(selector.allows_channel(channel, is_pattern) for selector in self.selectors)

    # -- showing ----------------------------------------------------------------------------------------------------

    def flags(self, is_valkey: bool) -> list[bytes]:
        """As ACL GETUSER shows them; Valkey takes the rules about payloads, and does not show them (9.1.2)."""
        payloads = [] if is_valkey else [b"sanitize-payload" if self.sanitizes else b"skip-sanitize-payload"]
        return [b"on" if self.enabled else b"off", *([b"nopass"] if self.open_to_all else []), *payloads]

    def description(self, is_valkey: bool) -> bytes:
        """The user as a line of ACL LIST, of the ACL file and of redis.conf."""
        root, *others = self.selectors
        passwords = [b"#" + kept.encode() for kept in self.hashes]
        selectors = [b"(" + selector.text() + b")" for selector in others]
        return b" ".join([b"user", self.name, *self.flags(is_valkey), *passwords, root.text(), *selectors])


UNRESTRICTED: Final = User(DEFAULT, [])  # of sessions that are no client's


def new_password(digits: int) -> str:
    """So many random hexadecimal digits."""
    return secrets.token_hex((digits + 1) // 2)[:digits]
