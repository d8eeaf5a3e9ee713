"""A client of a cluster: requests go to the node that has their key's slot, and follow slots that move.

Of Redis Cluster's specification: CLUSTER SLOTS tells which node has a slot; MOVED says that another node has it for
good, ASK that this key is at another node already, while its slot is on the move; TRYAGAIN and CLUSTERDOWN are for the
moment.
None of these requests was executed, so each may be sent again, also one that writes.
(https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/)

redis-py's client of a cluster parses every reply, and knows no replies that stay bytes and no requests that are bytes
already: the decoder and the sink need both, and are several times as fast with them.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from itertools import count
from typing import Any, Final, TypeVar

from penstock.engine.cluster.hash_slots import SLOTS, slot_of
from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import (
    CLUSTER,
    DEMOTED,
    NO_REPLY_YET,
    NOT_READY,
    SERVER,
    Access,
    Answer,
    Client,
    Endpoint,
    NotReady,
    Reply,
    Request,
    Unserved,
    Word,
    now_s,
    packed,
    parsed,
    pause_s,
)
from penstock.pipeline.errors import BrokenWrite, PipelineError, ServerGone

MOVED, ASK = b"MOVED", b"ASK"
LATER: Final = (b"TRYAGAIN", b"CLUSTERDOWN", *NOT_READY, *DEMOTED)
ELSEWHERE: Final = (MOVED, ASK, *LATER)  # error replies to requests that were not executed
ROUNDS: Final = 8  # of following MOVED, before a pause
SCANS: Final = 2  # of all nodes: a key whose slot moves may be missed by one
POLL_S: Final = 0.05  # between looks for new entries: a request that blocks may have keys of one slot only

# Where the key stands in a request of this connector; others have it as their first argument.
WITHOUT_KEY: Final = ("MULTI", "DISCARD", "EXEC", "TIME", "PUBLISH", "PUBSUB", "COMMAND", "PING", "INFO", "CONFIG")
AFTER_A_SUBCOMMAND: Final = ("XINFO", "XGROUP", "MEMORY")
OF_MANY: Final = ("XREAD", "XREADGROUP")  # keys behind STREAMS, and as many ids

Item = TypeVar("Item")
Address = tuple[str, int]


def connect(endpoint: Endpoint, access: Access) -> Client:
    """A client of a server or of a cluster, which connects when it is first needed."""
    return ClusterClient(endpoint, access) if endpoint.kind == CLUSTER else Client(endpoint, access)


class Nodes:
    """The nodes of one cluster: a connection to each, and which one has which slot."""

    def __init__(self, endpoint: Endpoint, access: Access) -> None:
        self._endpoint = endpoint
        self._access = access
        self._clients: dict[Address, Client] = {}
        self._owners: list[Address | None] = []  # by slot; empty: not known

    def look(self) -> None:
        """Ask for the slots, unless they are known; OSError if no node answers."""
        if self._owners:
            return
        trouble: Exception = NotReady("no node answers")
        for address in dict.fromkeys((*self._clients, *self._endpoint.addresses)):
            node = self.client(address)
            try:
                node._connect()
                self._take(address[0], node.call("CLUSTER", "SLOTS"))
                return
            except ReplyError as refusal:
                text = refusal.text.decode(errors="replace")
                raise PipelineError(f"{node.endpoint.address} is no node of a cluster: {text}") from None
            except (OSError, NotReady, ServerGone) as failure:
                trouble = failure
        raise Unserved(str(trouble)) from trouble

    def _take(self, host: str, ranges: Reply) -> None:
        """`host` is where the node is that answers, and that may not know its own address."""
        owners: list[Address | None] = [None] * SLOTS
        for first, last, master, *_ in ranges:
            address = (master[0].decode() if master[0] else host, int(master[1]))
            owners[first : last + 1] = [address] * (last + 1 - first)
        self._owners = owners

    def client(self, address: Address) -> Client:
        if address not in self._clients:
            place = Endpoint(self._endpoint.name, *address, kind=SERVER)
            self._clients[address] = Client(place, self._access)
        return self._clients[address]

    def of(self, slot: int) -> Client:
        """The node that has a slot, connected. Unserved if that cannot be."""
        self.look()
        address = self._owners[slot]
        if address is None:
            raise Unserved(f"no node has the slot {slot}")
        return _connected(self.client(address))

    def first_slots(self) -> list[int]:
        """The first slot of each node."""
        self.look()
        return sorted(self._owners.index(address) for address in set(self._owners) if address is not None)

    def have_moved(self) -> bool:
        """Whether slots are elsewhere than was known."""
        known, self._owners = self._owners, []
        self.look()
        return self._owners != known

    def all(self) -> list[Client]:
        """The nodes that have slots."""
        self.look()
        return [self.client(address) for address in dict.fromkeys(self._owners) if address is not None]

    def target(self, refusal: ReplyError, node: Client) -> tuple[int, Address]:
        """The slot and the node that MOVED or ASK names; without a host, it is the one of the node that says so."""
        _, slot, place = refusal.text.split()[:3]
        host, _, port = place.decode().rpartition(":")
        return int(slot), (host or node.endpoint.host, int(port))

    def learn(self, refusal: ReplyError, node: Client) -> None:
        slot, address = self.target(refusal, node)
        self._owners[slot] = address

    def close(self) -> None:
        """Drop the connections, and what is known of the slots."""
        for client in self._clients.values():
            client.close()
        self._owners = []


class _Part:
    """A request with one key, which is a whole request or a part of one; the reply to it."""

    __slots__ = ("number", "payload", "reply", "slot")

    def __init__(self, number: int, slot: int, words: Request) -> None:
        self.number = number
        self.slot = slot
        self.payload = packed(*words)
        self.reply: Reply = NO_REPLY_YET


class ClusterClient(Client):
    """A client of all nodes of a cluster.

    `at` gives one for a slot. That one sends everything to the node of its slot, which is for transactions and for
    requests that are bytes already; it waits while the slot is on the move, and does not ask elsewhere.
    """

    def __init__(self, endpoint: Endpoint, access: Access, nodes: Nodes | None = None, slot: int | None = None) -> None:
        super().__init__(endpoint, access)
        self._nodes = nodes or Nodes(endpoint, _at_once(access))
        self._slot = slot
        self._waits = True
        self._listener: Client | None = None
        self.shares = True
        self.tag = "" if slot is None else slot_tag(slot)

    def at(self, slot: int) -> "ClusterClient":
        """A client for one slot, with the same connections."""
        return ClusterClient(self.endpoint, self.access, self._nodes, slot)

    def at_key(self, key: str) -> Client:
        return self.at(slot_of(key.encode()))

    def nodes(self) -> list[Client]:
        return [self.at(slot) for slot in self._with_retries(self._nodes.first_slots, True)]

    def have_moved(self) -> bool:
        return self._with_retries(self._nodes.have_moved, True)

    def __reduce__(self) -> Any:
        return ClusterClient, (self.endpoint, self.access, None, self._slot)

    def close(self) -> None:
        self._nodes.close()
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _connect(self) -> None:
        self._nodes.look()

    def by_node(self, found: Iterable[Item], key_of: Callable[[Item], bytes]) -> list[list[Item]]:
        """The items, grouped by the node that has their keys now."""
        groups: dict[Client, list[Item]] = {}

        def group() -> None:
            groups.clear()
            for one in found:
                groups.setdefault(self._nodes.of(slot_of(key_of(one))), []).append(one)

        found = list(found)
        self._with_retries(group, True)
        return list(groups.values())

    # -- asking -------------------------------------------------------------------------------------------------------

    def call(self, *words: Word, retry: bool = True, wait_s: float = 0.0) -> Reply:
        """As a client's; a request that blocks is sent again and again."""
        if not wait_s:
            return super().call(*words, retry=retry)
        block = words.index("BLOCK")
        words = words[:block] + words[block + 2 :]
        end_s = now_s() + wait_s
        while (reply := super().call(*words, retry=retry)) is None and self._waits and now_s() < end_s:
            pause_s(POLL_S)
        self._waits = True
        return reply

    def unblock(self, by: Client) -> bool:
        self._waits = False
        return True

    def pipeline(self, requests: Iterable[Request], *, retry: bool = True, wait_s: float = 0.0) -> list[Reply]:
        """As a client's; one round trip for each node. Those to different nodes are in no order.

        A transaction is to have keys of one slot. If that moves, the requests in it are executed one by one, or some
        are not: the reply of EXEC is a refusal then, and what was not executed has the reply QUEUED.
        """
        requests, slot = list(requests), None
        parts: list[_Part] = []
        for number, words in enumerate(requests):
            if words[0] == "MULTI":
                slot = self._slot_of(requests[number + 1])
            parts += self._parts(number, words) if slot is None else [_Part(number, slot, words)]
            if words[0] == "EXEC":
                slot = None
        self._with_retries(lambda: self._ask(parts, wait_s), retry)
        replies: list[Reply] = []
        for part in parts:
            if part.number == len(replies):
                replies.append(part.reply)
            else:  # of a request with several keys
                replies[-1] = _together(replies[-1], part.reply)
        return replies

    def exchange(self, payload: bytes, count: int, *, retry: bool, wait_s: float = 0.0) -> list[Reply]:
        """As a client's, at one slot. Without `retry`, ServerGone if the slot moved meanwhile.

        Else those requests that were refused because of that are sent again: the others have been executed.
        """
        replies = super().exchange(payload, count, retry=retry, wait_s=wait_s)
        refused = [number for number, reply in enumerate(replies) if _is_elsewhere(reply)]
        if not refused:
            return replies
        words = parsed(payload)
        if not retry:
            self._settle([words[number] for number in refused])
            text = replies[refused[0]].text.decode(errors="replace")
            raise BrokenWrite(f"{self.endpoint.address}: the slot has moved amid a write: {text}")
        for number, reply in zip(refused, self.pipeline([words[number] for number in refused]), strict=True):
            replies[number] = reply
        return replies

    def framed(self, payload: bytes, *limits: Any) -> Any:
        """As a client's, for requests with keys at the same node, as far as is known."""
        first = _first_request(payload)
        slot = self._slot_of(first)

        def once() -> Any:
            for _ in range(ROUNDS):
                node = self._nodes.of(slot)
                replies = _unbroken(node.framed, payload, *limits)
                if not replies.startswith(b"-"):
                    return replies
                refusal = parsed(replies[: replies.index(b"\r\n") + 2])[0]
                if not _is_elsewhere(refusal):
                    return replies
                if refusal.text.startswith(ASK):
                    target = self._nodes.client(self._nodes.target(refusal, node)[1])
                    asking = packed("ASKING") + payload
                    return _unbroken(target.framed, asking, *limits)[len(b"+OK\r\n") :]
                self._follow(refusal, node)
            raise Unserved("slots move from node to node")

        replies = self._with_retries(once, True)
        is_lone = len(packed(*first)) == len(payload)
        if is_lone or not any(b"\r\n-%b" % one in replies for one in ELSEWHERE):
            return replies
        return self._one_by_one(payload, replies, limits)

    def send_ahead(self, payload: bytes) -> None:
        slot = self._slot_of(_first_request(payload))
        try:
            self._nodes.of(slot).send_ahead(payload)
        except (OSError, NotReady):
            self.close()  # `framed` will see to it

    def scan(self, *words: Word) -> set[bytes]:
        def once() -> set[bytes]:
            nodes = self._nodes.all()
            found: set[bytes] = set()
            for _ in range(SCANS if len(nodes) > 1 else 1):
                for node in nodes:
                    found |= _unbroken(node.scan, *words)
            return found

        return self._with_retries(once, True)

    def messages(self, channel: str) -> list[bytes]:
        """As a client's: a message that is published at one node is known at all of them."""
        try:
            if self._listener is None:
                node = self._with_retries(lambda: self._nodes.all()[0], True)
                self._listener = Client(node.endpoint, node.access)
            return self._listener.messages(channel)
        except ServerGone:
            self.close()
            return []

    # -- nodes --------------------------------------------------------------------------------------------------------

    def _parts(self, number: int, words: Request) -> list[_Part]:
        """A request, by key: while a slot is on the move, one with keys at both nodes is refused (TRYAGAIN)."""
        if self._slot is not None or words[0] not in OF_MANY:
            return [_Part(number, self._slot_of(words), words)]
        begin = words.index("STREAMS") + 1
        many = (len(words) - begin) // 2
        keys, after = words[begin : begin + many], words[begin + many :]
        return [
            _Part(number, slot_of(_bytes(key)), [*words[:begin], key, entry_id])
            for key, entry_id in zip(keys, after, strict=True)
        ]

    def _slot_of(self, words: Request) -> int:
        if self._slot is not None:
            return self._slot
        name = words[0].decode() if isinstance(words[0], bytes) else words[0]
        if name in WITHOUT_KEY:
            return 0
        key = words[2 if name in AFTER_A_SUBCOMMAND else words.index("STREAMS") + 1 if name in OF_MANY else 1]
        return slot_of(_bytes(key))

    def _ask(self, parts: list[_Part], wait_s: float) -> None:
        """Ask for the replies that are not there yet. OSError or NotReady if not all of them could be had."""
        for _ in range(ROUNDS):
            by_node: dict[Client, list[_Part]] = {}
            for part in parts:
                if part.reply is NO_REPLY_YET:
                    by_node.setdefault(self._nodes.of(part.slot), []).append(part)
            if not by_node:
                return
            moves: list[tuple[ReplyError, Client]] = []
            for node, some in by_node.items():
                replies = node._exchange_once(b"".join([part.payload for part in some]), len(some), wait_s)
                for part, reply in zip(some, replies, strict=True):
                    if _is_elsewhere(reply):
                        moves.append((reply, node))
                        if reply.text.startswith(ASK) and self._slot is None:
                            part.reply = self._at_target(reply, node, part)
                    else:
                        part.reply = reply
            for refusal, node in moves:
                if not refusal.text.startswith(ASK) or self._slot is not None:
                    self._follow(refusal, node)
        raise Unserved("slots move from node to node")

    def _at_target(self, refusal: ReplyError, node: Client, part: _Part) -> Reply:
        """The reply of the node that ASK names; NO_REPLY_YET if the key is not there either."""
        target = _connected(self._nodes.client(self._nodes.target(refusal, node)[1]))
        _, reply = target._exchange_once(packed("ASKING") + part.payload, 2, 0.0)
        return NO_REPLY_YET if _is_elsewhere(reply) else reply

    def _follow(self, refusal: ReplyError, node: Client) -> None:
        """Note where a slot has moved to; Unserved if that is not known yet."""
        if not refusal.text.startswith(MOVED):
            raise Unserved(refusal.text.decode(errors="replace"))
        self._nodes.learn(refusal, node)

    def _exchange_once(self, payload: bytes, count: int, wait_s: float) -> list[Reply]:
        assert self._slot is not None, "requests that are bytes are sent to one slot"
        return self._nodes.of(self._slot)._exchange_once(payload, count, wait_s)

    def _settle(self, refused: list[Request]) -> None:
        """Wait until the slot is where its keys are."""
        keys = {words[1] for words in refused if len(words) > 1}
        self.pipeline([["TYPE", key] for key in keys])
        if not keys:
            pause_s(POLL_S)
            self._nodes.close()

    def _one_by_one(self, payload: bytes, replies: Any, limits: tuple[Any, ...]) -> Any:
        """The replies; if one says that a slot has moved, send each request again by itself."""
        if not any(map(_is_elsewhere, parsed(replies))):
            return replies  # it is in an entry
        return b"".join([self.framed(packed(*words), *limits) for words in parsed(payload)])


def _at_once(access: Access) -> Access:
    """For a node's own client: the client of the cluster tries again, maybe at another node."""
    return replace(access, retry_s=0.0)


def _connected(node: Client) -> Client:
    """The node's client, ready to be asked. Unserved if it cannot be reached: nothing was sent."""
    try:
        node._connect()
    except (OSError, NotReady) as failure:
        raise Unserved(f"{node.endpoint.address}: {failure}") from failure
    return node


def _unbroken(ask: Callable[..., Answer], *words: Any) -> Answer:
    """The reply by a node's own client, which does not retry; Unserved if it fails, so that the caller may retry."""
    try:
        return ask(*words)
    except ServerGone as gone:
        raise Unserved(str(gone)) from gone


def _is_elsewhere(reply: Reply) -> bool:
    return isinstance(reply, ReplyError) and reply.text.startswith(ELSEWHERE)


def _together(one: Reply, other: Reply) -> Reply:
    """Two replies to XREAD or XREADGROUP with different keys as one."""
    for reply in (one, other):
        if isinstance(reply, ReplyError):
            return reply
    return one if other is None else other if one is None else one + other


def _first_request(payload: bytes) -> list[bytes]:
    ends = payload.index(b"\r\n", 0)
    words = []
    at = ends + 2
    for _ in range(int(payload[1:ends])):
        ends = payload.index(b"\r\n", at)
        size = int(payload[at + 1 : ends])
        words.append(payload[ends + 2 : ends + 2 + size])
        at = ends + 2 + size + 2
    return words


def _bytes(word: Word) -> bytes:
    return word if isinstance(word, bytes) else str(word).encode()


def slots_of(keys: Iterable[bytes]) -> list[int]:
    return [slot_of(key) for key in keys]


def slot_tag(slot: int) -> str:
    """A hash tag and a colon: a key that contains it is in the slot."""
    return f"{{{_tags()[slot]}}}:"


@cache
def _tags() -> list[str]:
    """For each slot a text that is in it."""
    found: dict[int, str] = {}
    for number in count():
        text = f"{number:x}"
        found.setdefault(slot_of(text.encode()), text)
        if len(found) == SLOTS:
            break
    return [found[slot] for slot in range(SLOTS)]
