"""The address of a server on the command line: redis://[[user][:password]@]host[:port]."""

from urllib.parse import unquote, urlsplit

from penstock.errors import UsageError

USUAL_PORT = 6379


class Address:
    """Where a server is, and who asks. Empty user and password: nobody in particular."""

    __slots__ = ("host", "password", "port", "user")

    def __init__(self, text: str) -> None:
        """UsageError where the text is no such address.

        >>> Address("redis://me:pw@[::1]:7000").host, Address("redis://cache").port
        ('::1', 6379)
        """
        parts = urlsplit(text)
        if parts.scheme == "rediss":
            raise UsageError(f"{text}: TLS is not spoken here; put a TLS proxy before the server")
        try:
            port = parts.port
        except ValueError:
            port = 0
        is_whole = parts.path in ("", "/") and not parts.query and not parts.fragment
        if parts.scheme != "redis" or not parts.hostname or port == 0 or not is_whole:
            raise UsageError(f"{text}: redis://[[user][:password]@]host[:port] was expected")
        self.host = parts.hostname
        self.port = port or USUAL_PORT
        self.user = unquote(parts.username or "")
        self.password = unquote(parts.password or "")

    @property
    def shown(self) -> str:
        """Without a password."""
        return f"{self.host}:{self.port}"

    def login(self) -> list[bytes]:
        """AUTH and its words; nothing where there is no password."""
        if not self.password:
            return []
        names = [name.encode() for name in (self.user, self.password) if name]
        return [b"AUTH", *names]
