"""The one user there is, `default`: whether it may log in, and with which passwords."""

import hashlib
import hmac
import secrets
from typing import Final

NAME: Final = b"default"
HASH_LENGTH: Final = 64  # of a SHA-256 in hexadecimal


def digest(password: bytes) -> str:
    """A password as it is kept: SHA-256 in hexadecimal."""
    return hashlib.sha256(password).hexdigest()


class DefaultUser:
    """The user in whose name every session acts.

    `open_to_all` (nopass) and `hashes` exclude each other. Without either nobody can log in. The directive
    requirepass is read again whenever its text changes; what ACL SETUSER did is forgotten then, as in Redis.
    """

    __slots__ = ("_required", "enabled", "hashes", "open_to_all")

    def __init__(self) -> None:
        self.enabled = True
        self.open_to_all = True
        self.hashes: list[str] = []
        self._required = ""

    def heed(self, requirepass: str) -> None:
        """Follow the directive."""
        if requirepass != self._required:
            self._required = requirepass
            self.open_to_all = not requirepass
            self.hashes = [digest(requirepass.encode(errors="surrogateescape"))] if requirepass else []

    def needs_no_login(self) -> bool:
        """Whether a new connection acts as this user at once."""
        return self.enabled and self.open_to_all

    def admits(self, password: bytes) -> bool:
        """Whether a password is right. Takes the same time whatever is wrong with it."""
        given = digest(password)
        right = False
        for kept in self.hashes:
            right |= hmac.compare_digest(given, kept)
        return self.enabled and (self.open_to_all or right)

    def flags(self) -> list[str]:
        """As ACL GETUSER shows them."""
        return ["on" if self.enabled else "off", *(["nopass"] if self.open_to_all else []), "sanitize-payload"]

    def description(self) -> str:
        """The line of ACL LIST."""
        passwords = [f"#{kept}" for kept in self.hashes]
        return " ".join(["user default", *self.flags(), *passwords, "~* &* +@all"])

    def copy(self) -> "DefaultUser":
        twin = DefaultUser()
        twin.enabled, twin.open_to_all, twin.hashes, twin._required = (
            self.enabled, self.open_to_all, list(self.hashes), self._required,
        )  # fmt: skip
        return twin


def new_password(digits: int) -> str:
    """So many hexadecimal digits that nobody can guess."""
    return secrets.token_hex((digits + 1) // 2)[:digits]
