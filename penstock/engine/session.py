"""A session: what the engine knows of one client."""

from typing import TYPE_CHECKING, Final

from penstock.engine.table.command_table import Row

if TYPE_CHECKING:
    from penstock.engine.blocking import BlockedRequest
    from penstock.engine.table.command_table import Row


class Session:
    """One client's state, whatever carries its bytes. The server fills in what only it can know.

    A session whose `blocked` is set waits for its reply: no further request of it may be handled.
    """

    __slots__ = (
        "address",
        "args_memory",
        "authenticated",
        "blocked",
        "channels",
        "closed",
        "closing",
        "connected_ms",
        "db_index",
        "descriptor",
        "handled",
        "id",
        "input_bytes",
        "is_ordinary",
        "is_queueing",
        "is_silent",
        "last_command",
        "last_ms",
        "library_name",
        "library_version",
        "local_address",
        "monitors",
        "name",
        "no_evict",
        "no_touch",
        "output_bytes",
        "patterns",
        "privileged",
        "query_buffer",
        "queue",
        "queue_failed",
        "read_args",
        "read_words",
        "reads",
        "reply_skip",
        "resp",
        "shard_channels",
        "unix_socket",
        "user",
        "waiting_output",
        "watch_broken",
        "watched",
    )  # fmt: skip

    def __init__(self, id: int, address: str = "", local_address: str = "", now_ms: int = 0) -> None:
        self.id = id
        self.address = address
        self.local_address = local_address
        self.unix_socket = False
        self.connected_ms = now_ms
        self.last_ms = now_ms
        self.name = b""
        self.library_name = b""
        self.library_version = b""
        self.user = b"default"
        self.authenticated = True
        self.privileged = False  # the log's replay: no replies, looser checks (Redis 8.6.3)
        self.resp = 2
        self.db_index = 0
        # transactions
        self.queue: list[tuple[Row, list[bytes]]] | None = None  # requests queued since MULTI
        self.queue_failed = False
        self.watched: set[tuple[int, bytes]] = set()  # (database number, key)
        self.watch_broken = False
        # waiting
        self.blocked: BlockedRequest | None = None
        self.read_args: list[bytes] = []  # its last XREADGROUP, and what that asks for
        self.read_words: object = None
        # pub/sub
        self.channels: dict[bytes, None] = {}
        self.patterns: dict[bytes, None] = {}
        self.shard_channels: dict[bytes, None] = {}
        self.monitors = False
        # CLIENT REPLY, KILL, NO-EVICT, NO-TOUCH
        self.is_silent = False  # CLIENT REPLY OFF
        self.reply_skip = 0  # replies to leave out: SKIP sets 2, one for itself and one for the next
        self.closing = False  # close once what is written has been sent
        self.is_ordinary = False  # as heed_mode found it, after the last request that may have changed it
        self.is_queueing = False  # likewise
        self.closed = False  # the connection is gone
        self.no_evict = False
        self.no_touch = False
        # statistics for CLIENT LIST
        self.last_command = ""
        self.handled = 0
        self.input_bytes = 0
        self.output_bytes = 0
        self.query_buffer = 0  # bytes received and not handled yet
        self.waiting_output = 0  # bytes written that the peer has not taken
        self.args_memory = 0
        self.reads = 0  # times that bytes came
        self.descriptor = -1  # the socket's number

    def heed_mode(self) -> None:
        """See whether this is a session that asks and is answered, and nothing else: most are, all the time.

        Its requests are run where it is ordinary, and kept for EXEC where it is queueing.
        """
        asks = (
            self.authenticated and not (self.reply_skip or self.is_silent or self.monitors) and not self.is_subscribed
        )
        self.is_ordinary = asks and self.queue is None
        self.is_queueing = asks and self.queue is not None

    @property
    def resp3(self) -> bool:
        return self.resp == 3

    @property
    def is_subscribed(self) -> bool:
        return bool(self.channels or self.patterns or self.shard_channels)


NOBODY: Final = Session(0)  # in whose name the engine itself acts: expiry
