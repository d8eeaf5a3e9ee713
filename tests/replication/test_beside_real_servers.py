"""Masters and replicas of three kinds, as processes: nothing is lost, nothing doubled, whatever happens to the link."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

import penstock
from tests.support.reference_server import NoReference, reference_binary, reference_server
from tests.support.server_process import ServerProcess, running_server
from tests.support.wire import Array, Bulk, Connection, Error, Integer, Simple

pytestmark = pytest.mark.slow

PATIENCE_S = 60.0
OWN = ("penstock", "embedded")
KINDS = (*OWN, "redis", "valkey")
PAIRS = [(master, replica) for master in KINDS for replica in KINDS if master in OWN or replica in OWN]


@contextmanager
def server(kind: str) -> Iterator[int]:
    """A server of a kind on a free port."""
    if kind == "penstock":
        with running_server("--repl-diskless-sync-delay", "0", "--appendonly", "yes", "--appendfsync", "no") as own:
            yield own.port
        return
    if kind == "embedded":
        with penstock.Server() as embedded:
            yield int(embedded.url.rpartition(":")[2])
        return
    with real_server(kind) as port:
        yield port


@contextmanager
def real_server(kind: str) -> Iterator[int]:
    """A Redis or a Valkey on a free port; its replicas get their copy at once; the test is skipped without one."""
    try:
        binary = reference_binary(kind)
    except NoReference as why:
        pytest.skip(str(why))
    with reference_server("--repl-diskless-sync-delay", "0", binary=binary) as port:
        yield port


class Client(Connection):
    """A client of one server."""

    def __init__(self, port: int) -> None:
        super().__init__("127.0.0.1", port, PATIENCE_S)
        self.port = port

    def info(self) -> dict[str, str]:
        told = self.ask("INFO", "replication")
        if not isinstance(told, Bulk):
            return {}
        return dict(line.split(":", 1) for line in told.text.decode().split("\r\n") if ":" in line)

    def follow(self, master: "Client") -> None:
        assert self.ask("REPLICAOF", "127.0.0.1", str(master.port)) == Simple(b"OK")
        self.until_up()

    def until_up(self) -> None:
        until(lambda: self.info().get("master_link_status") == "up", self.info)


def until(holds: Callable[[], bool], shown: Callable[[], object]) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, shown()
        time.sleep(0.02)


@pytest.fixture(params=PAIRS, ids=["-".join(pair) for pair in PAIRS])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[Client, Client]]:
    """A master and a replica that follows it."""
    master_kind, replica_kind = request.param
    with ExitStack() as stack:
        master, replica = (Client(stack.enter_context(server(kind))) for kind in (master_kind, replica_kind))
        with master, replica:
            yield master, replica


def caught_up(master: Client, replica: Client) -> None:
    master.ask("SET", "last", "1")
    assert master.ask("WAIT", "1", str(int(PATIENCE_S * 1000))) == Integer(1)


def everything(client: Client) -> dict[bytes, object]:
    """Every key of database 0 with what reads it."""
    readers = {
        b"string": ("GET",), b"list": ("LRANGE", "0", "-1"), b"set": ("SMEMBERS",), b"hash": ("HGETALL",),
        b"zset": ("ZRANGE", "0", "-1", "WITHSCORES"), b"stream": ("XRANGE", "-", "+"),
    }  # fmt: skip
    found: dict[bytes, object] = {}
    keys = client.ask("KEYS", "*")
    for key in keys.elements:  # type: ignore[union-attr]  # an array
        kind = client.ask("TYPE", key.text).text  # type: ignore[union-attr]
        name, *rest = readers[kind]
        value = client.ask(name, key.text, *rest)  # type: ignore[union-attr]
        if kind in (b"set", b"hash"):
            value = sorted(repr(one) for one in value.elements)  # type: ignore[union-attr, assignment]
        found[key.text] = value, client.ask("PEXPIRETIME", key.text)  # type: ignore[union-attr]
    return found


def write(client: Client, chance: random.Random, count: int) -> None:
    """Random changes of every type."""
    requests = []
    for number in range(count):
        key = f"k{chance.randrange(20)}"
        requests.append(
            chance.choice((
                ("SET", f"s{key}", str(number)), ("INCR", "counter"), ("APPEND", f"a{key}", "x"),
                ("RPUSH", f"l{key}", str(number)), ("LPOP", f"l{key}"), ("SADD", f"set{key}", str(number)),
                ("SPOP", f"set{key}"), ("HSET", f"h{key}", f"f{number % 7}", str(number)), ("DEL", f"s{key}"),
                ("HINCRBYFLOAT", f"hf{key}", "f", "0.5"), ("ZADD", f"z{key}", str(number), f"m{number % 9}"),
                ("XADD", f"x{key}", "MAXLEN", "~", "50", "*", "n", str(number)), ("EXPIRE", f"s{key}", "1000"),
                ("EVAL", "redis.call('INCR', KEYS[1]) redis.call('INCR', KEYS[2])", "2", "e1", "e2"),
            ))
        )  # fmt: skip
    for request in requests:
        client.send(*request)
    for request in requests:
        assert not isinstance(client.reply(), Error), request


def test_a_replica_has_everything_under_load_though_its_link_is_cut_ten_times(pair: tuple[Client, Client]) -> None:
    master, replica = pair
    chance = random.Random(1)
    write(master, chance, 2000)
    replica.follow(master)
    for _ in range(10):
        write(master, chance, 300)
        master.ask("CLIENT", "KILL", "TYPE", "replica")
        write(master, chance, 300)
    replica.until_up()
    caught_up(master, replica)

    assert everything(replica) == everything(master)
    stats = master.ask("INFO", "stats")
    assert isinstance(stats, Bulk) and b"sync_full:1\r" in stats.text


def test_a_promoted_replica_has_everything_and_the_old_master_may_follow_it(pair: tuple[Client, Client]) -> None:
    master, replica = pair
    chance = random.Random(2)
    replica.follow(master)
    write(master, chance, 500)
    caught_up(master, replica)
    assert replica.ask("REPLICAOF", "NO", "ONE") == Simple(b"OK")
    write(replica, chance, 500)
    master.follow(replica)
    write(replica, chance, 500)
    caught_up(replica, master)

    assert everything(replica) == everything(master)


def test_times_of_hash_fields_arrive(pair: tuple[Client, Client]) -> None:
    master, replica = pair
    master.ask("HSET", "h", "f", "v", "g", "w")
    master.ask("HPEXPIREAT", "h", "4102444800000", "FIELDS", "1", "f")
    replica.follow(master)
    caught_up(master, replica)

    times = replica.ask("HPEXPIRETIME", "h", "FIELDS", "2", "f", "g")
    assert times == Array((Integer(4_102_444_800_000), Integer(-1)))


NEW_TYPES = [
    "SADDEX members PXAT 4102444800000 MEMBERS 2 a b", "SADD members c", "BLESS SET members NO-EVICT",
    "ZADD scores 1 a 2 b 3 c", "ZMOVE scores moved MIN COUNT 2", "RPUSH items 1 2 3 4",
    "LMOVEM items taken LEFT RIGHT COUNT 2 BULK", "INCREX counter BYINT 5 UBOUND 3 SATURATE",
    "SPEXPIREAT members 1 MEMBERS 1 b",
]  # fmt: skip


@pytest.fixture(params=["redis", "valkey"])
def older(request: pytest.FixtureRequest) -> Iterator[tuple[ServerProcess, Client, Client]]:
    """A server of ours, its client, and that of a Redis or a Valkey that is to be its replica."""
    with running_server("--repl-diskless-sync-delay", "0") as own, real_server(request.param) as port:
        master, replica = Client(own.port), Client(port)
        with master, replica:
            yield own, master, replica


def test_an_older_replica_has_new_types_as_far_as_it_holds_them(older: tuple[ServerProcess, Client, Client]) -> None:
    _, master, replica = older
    for line in NEW_TYPES:
        assert not isinstance(master.ask(*line.split()), Error), line

    replica.follow(master)
    caught_up(master, replica)
    assert everything(replica) == everything(master)

    master.ask("FLUSHALL")
    for line in NEW_TYPES:
        master.ask(*line.split())
    caught_up(master, replica)
    assert everything(replica) == everything(master)


def test_an_older_replica_is_refused_where_there_are_arrays(older: tuple[ServerProcess, Client, Client]) -> None:
    own, master, replica = older
    replica.follow(master)
    master.ask("ARSET", "array", "0", "x")

    own.wait_until_said("is closed: there are arrays, which a Redis before 8.8 cannot hold")
    own.wait_until_said("The snapshot for replicas failed: there are arrays")
    assert replica.info()["master_link_status"] == "down"

    master.ask("DEL", "array")
    replica.until_up()
    caught_up(master, replica)
    assert everything(replica) == everything(master)
