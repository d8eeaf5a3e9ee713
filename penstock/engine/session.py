"""A session: what the engine knows of one client."""

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.engine import state
from penstock.engine.access.users import UNRESTRICTED, User
from penstock.engine.table.row import Row
from penstock.engine.tracking.tracking_options import TrackingOptions
from penstock.protocol.request_batch import NO_WORDS, RequestBatch, one

if TYPE_CHECKING:
    from penstock.engine.replication.replica import Replica
    from penstock.engine.waiting.blocked_request import BlockedRequest

QueuedRequests: TypeAlias = list[tuple[Row, RequestBatch]]
NO_TRANSACTION: Final = -1
NO_DESCRIPTOR: Final = -1

# What most sessions never have. They share these, which are never changed: the first one is added to a new one.
NO_NAMES: Final[dict[bytes, None]] = {}
NO_FIELDSETS: Final[dict[bytes, list[bytes]]] = {}
NO_READERS: Final[OrderedDict[tuple[int, bytes, bytes, bytes], None]] = OrderedDict()
NO_PLACES: Final[set[tuple[int, bytes]]] = set()


class Endpoints:
    """The addresses of a connection, as CLIENT LIST shows it; descriptor: the socket's number."""

    __slots__ = ("address", "descriptor", "is_unix_socket", "local_address")

    def __init__(
        self, address: str, local_address: str, is_unix_socket: bool = False, descriptor: int = NO_DESCRIPTOR
    ) -> None:
        self.address = address
        self.local_address = local_address
        self.is_unix_socket = is_unix_socket
        self.descriptor = descriptor


class Link:
    """The connection of a session, as the engine knows it."""

    __slots__ = ()

    def endpoints(self) -> Endpoints:
        """The addresses of both ends. Made once, when they are asked for: that takes longer than a PING."""
        raise NotImplementedError

    def has_peer(self) -> bool:
        """Whether the client is still connected, as far as the system knows.

        Costs a system call: used only before a blocked client gets data.
        """
        raise NotImplementedError


class Kept:
    """Parsed options of a session's last request, kept by its command for the next request with the same."""

    __slots__ = ()


class Session:
    """One client's state, whatever carries its bytes. The server fills in what only it can know.

    A session with `blocked` set waits for its reply: no further request of it may be handled.
    """

    __slots__ = (
        "_authenticated", "_endpoints", "_is_silent", "_monitors", "_queue", "_queued_db_index", "_reply_skip",
        "add_head", "add_words", "args_memory", "asks_for", "blocked", "called", "channels", "closed", "closing",
        "connected_ms", "db_index", "fieldset_bytes", "fieldsets", "handled", "id", "imports", "input_bytes",
        "is_master", "last_command", "last_ms", "library_name", "library_version", "line_heads", "link", "name",
        "no_evict", "no_touch", "output_bytes", "patterns", "privileged", "query_buffer", "queue_failed",
        "queued_bytes", "read_args", "read_words", "reads", "reads_as", "reads_replicas", "redirects", "replica",
        "resp", "shard_channels", "state", "subscribed_bytes", "tracking", "user", "waiting_output", "watch_broken",
        "watched", "watched_bytes", "watched_stale",
    )  # fmt: skip

    def __init__(self, id: int, endpoints: Endpoints | None = None, now_ms: int = 0) -> None:
        self.id = id
        self._endpoints = endpoints  # None: not asked for yet
        self.link: Link | None = None  # None: nothing carries it, or not any more
        self.connected_ms = now_ms
        self.last_ms = now_ms
        self.name = b""
        self.library_name = b""
        self.library_version = b""
        self.user: User = UNRESTRICTED
        self.state = 0  # bits of state.py: why a request may not simply be run
        self._authenticated = True
        self.privileged = False  # the log's replay: no replies, looser checks (Redis 8.6.3)
        self.asks_for: Session | None = None  # of a script's session: the one that asked for the script
        self.resp = 2
        self.db_index = 0
        # transactions
        self._queue: QueuedRequests | None = None
        self._queued_db_index = 0
        self.queue_failed = False
        self.queued_bytes = 0  # of the words of the queued requests
        self.watched = NO_PLACES  # (database number, key)
        self.watched_stale = NO_PLACES  # of `watched`: expired when SWAPDB put them there
        self.watched_bytes = 0  # that `watched` takes
        self.watch_broken = False
        # waiting
        self.blocked: BlockedRequest | None = None
        self.read_args = NO_WORDS  # its last XREADGROUP, and what that asks for
        self.read_words: Kept | None = None
        self.add_head = NO_WORDS  # likewise of its last XADD with options
        self.add_words: Kept | None = None
        self.reads_as = NO_READERS  # database, key, group, consumer, to release their entries at its end (ONDISCONNECT)
        self.line_heads: Kept | None = None  # beginnings of lines of the log (group_effects.py)
        self.fieldsets = NO_FIELDSETS  # names of fields by name, for HIMPORT
        self.fieldset_bytes = 0  # that `fieldsets` takes
        # pub/sub
        self.channels = NO_NAMES
        self.patterns = NO_NAMES
        self.shard_channels = NO_NAMES
        self.subscribed_bytes = 0  # that the three take
        self._monitors = False
        self.tracking: TrackingOptions | None = None  # None: off
        self.replica: Replica | None = None  # once it has said something of itself (REPLCONF, PSYNC)
        # CLIENT REPLY, KILL, NO-EVICT, NO-TOUCH
        self._is_silent = False
        self._reply_skip = 0
        self.closing = False  # close when all written replies have been sent
        self.closed = False  # the connection is closed
        self.no_evict = False
        self.no_touch = False
        self.imports = False  # CLIENT IMPORT-SOURCE (Valkey)
        self.reads_replicas = False  # READONLY
        self.redirects = False  # CLIENT CAPA redirect (Valkey)
        # statistics for CLIENT LIST
        self.last_command = ""
        self.handled = 0
        self.called = 0  # requests of its scripts
        self.is_master = False  # the link to the master that this server follows
        self.input_bytes = 0
        self.output_bytes = 0
        self.query_buffer = 0  # bytes received and not handled yet
        self.waiting_output = 0  # bytes written that the peer has not taken
        self.args_memory = 0
        self.reads = 0  # times that bytes came

    @property
    def endpoints(self) -> Endpoints:
        """The addresses of its connection, or of the former one, if they were asked for while it was there."""
        if self._endpoints is not None:
            return self._endpoints
        link = self.link
        if link is None:
            return NOWHERE
        self._endpoints = found = link.endpoints()
        return found

    def keep_endpoints(self) -> None:
        """Ask for the endpoints now: the link will not know them any more when it is lost."""
        self._endpoints = self.endpoints

    def has_client(self) -> bool:
        """Whether the client is there to take a reply (`Link.has_peer`); True where nothing carries the session."""
        link = self.link
        return link is None or link.has_peer()

    @property
    def address(self) -> str:
        """Where the client is, as Redis shows it; of a unix socket the path."""
        return self.endpoints.address

    @property
    def local_address(self) -> str:
        """Where it has connected to."""
        return self.endpoints.local_address

    @property
    def unix_socket(self) -> bool:
        """Whether it has come through a unix socket."""
        return self.endpoints.is_unix_socket

    def set_state(self, bit: int, holds: bool) -> None:
        """A reason why a request may not simply be run begins or ends to hold."""
        self.state = self.state | bit if holds else self.state & ~bit

    def set_user(self, user: User) -> None:
        """Its requests are those of a user from now on."""
        self.user = user
        self.set_state(state.RESTRICTED, user.is_restricted)

    @property
    def authenticated(self) -> bool:
        return self._authenticated

    @authenticated.setter
    def authenticated(self, holds: bool) -> None:
        self._authenticated = holds
        self.set_state(state.NOT_AUTHENTICATED, not holds)

    @property
    def queue(self) -> QueuedRequests | None:
        """The requests queued since MULTI; None outside of a transaction."""
        return self._queue

    @queue.setter
    def queue(self, queue: QueuedRequests | None) -> None:
        self._queue = queue
        self._queued_db_index = self.db_index
        self.queued_bytes = 0
        self.set_state(state.IN_MULTI, queue is not None)

    @property
    def next_db_index(self) -> int:
        """The database of its next request: in a transaction that will be run, the one that its requests select."""
        return self.db_index if self._queue is None or self.queue_failed else self._queued_db_index

    def queue_selects(self, db_index: int) -> None:
        """A queued request selects a database that exists."""
        self._queued_db_index = db_index

    @property
    def queued(self) -> int:
        """How many requests are queued since MULTI; -1 outside of a transaction, as CLIENT LIST has it."""
        return NO_TRANSACTION if self._queue is None else sum([batch.count for _, batch in self._queue])

    def enqueue(self, row: Row, batch: RequestBatch) -> None:
        """Requests of an open transaction wait for EXEC."""
        assert self._queue is not None, "a transaction is open"
        if batch.count == 1:  # the reader may use that one again
            batch = one(batch.prefix)
        self._queue.append((row, batch))
        self.queued_bytes += batch.word_bytes()

    def forget_fieldsets(self) -> None:
        """No fields are prepared for HIMPORT any more."""
        self.fieldsets = NO_FIELDSETS
        self.fieldset_bytes = 0

    @property
    def monitors(self) -> bool:
        """Whether it is shown every request (MONITOR)."""
        return self._monitors

    @monitors.setter
    def monitors(self, holds: bool) -> None:
        self._monitors = holds
        self.set_state(state.MONITORS, holds)

    @property
    def is_silent(self) -> bool:
        """CLIENT REPLY OFF."""
        return self._is_silent

    @is_silent.setter
    def is_silent(self, holds: bool) -> None:
        self._is_silent = holds
        self.set_state(state.REPLIES_WITHHELD, holds or self._reply_skip > 0)

    @property
    def reply_skip(self) -> int:
        """Replies to leave out: CLIENT REPLY SKIP sets 2, one for itself and one for the next."""
        return self._reply_skip

    @reply_skip.setter
    def reply_skip(self, count: int) -> None:
        self._reply_skip = count
        self.set_state(state.REPLIES_WITHHELD, self._is_silent or count > 0)

    def choose_caching(self, is_chosen: bool) -> None:
        """CLIENT CACHING counts for the next request, or that request is over."""
        if self.tracking is not None:
            self.tracking.is_chosen = is_chosen
        self.set_state(state.CACHING_CHOSEN, is_chosen and self.tracking is not None)

    def end_asking(self) -> None:
        """A request is over: ASKING holds for the next one, or the transaction that it begins (Redis 8.6.3)."""
        if self.queue is None and self.last_command != "asking":
            self.set_state(state.ASKED, False)

    @property
    def is_replica(self) -> bool:
        """Whether it has asked for the replication stream, or a snapshot."""
        return self.state & state.REPLICA != 0

    def note_replica(self) -> None:
        """It has asked for the replication stream, or a snapshot."""
        self.set_state(state.REPLICA, True)

    def note_subscriptions(self) -> None:
        """Its channels or patterns have changed."""
        self.set_state(state.SUBSCRIBED, self.is_subscribed)

    @property
    def resp3(self) -> bool:
        return self.resp == 3

    @property
    def is_subscribed(self) -> bool:
        return bool(self.channels or self.patterns or self.shard_channels)


NOWHERE: Final = Endpoints("", "")
NO_CLIENT: Final = Session(0)  # in the name of this one the engine itself acts: expiry
