"""fakeredis's server at a TCP address: an embedded one."""

import threading

from penstock.testing.fake.servers import PatchedTimeServer, Version, compat_version_of


class TcpFakeServer:
    """An embedded server at a TCP address, from its constructor to `server_close`: port 0 takes a free one.

    server_address: its host and port. The calls are those of socketserver's servers.
    """

    def __init__(
        self,
        server_address: tuple[str, int],
        bind_and_activate: bool = True,
        server_type: str = "redis",
        server_version: Version | None = None,
    ) -> None:
        host, port = server_address
        compat = compat_version_of(server_version, server_type)
        self.embedded = PatchedTimeServer(bind=host, port=port, compat_version=compat, protected_mode=False).start()
        self.server_address = host, int(self.embedded.url.rpartition(":")[2])
        self._ended = threading.Event()

    def serve_forever(self, poll_interval: float = 0.5) -> None:
        """Wait for `shutdown`: a thread of the server serves."""
        self._ended.wait()

    def shutdown(self) -> None:
        """End `serve_forever`."""
        self._ended.set()

    def server_close(self) -> None:
        """Close the socket, and the clients' connections."""
        self._ended.set()
        self.embedded.close()

    def __enter__(self) -> "TcpFakeServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.server_close()
