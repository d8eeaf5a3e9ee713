"""Altered payloads and files, in this process: each is taken, or refused in one sentence (UsageError, an error reply).

Payloads of RESTORE, RDB files, the log's files, its manifest, configuration files and the file of a cluster's node.
"""

import random
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from penstock.config import config_file, node_file
from penstock.config.settings import Settings
from penstock.engine.cluster.node import Node
from penstock.engine.rdb import rdb_saving
from penstock.engine.rdb.rdb_loading import RdbLoading
from penstock.errors import UsageError
from penstock.server.files import loading
from penstock.storage.aof.disk import SystemDisk
from tests.fuzz.hostile_requests import HostileRequests, packed
from tests.fuzz.judge import Failure
from tests.fuzz.limit import Found, Limit
from tests.interchange.rdb_states import States
from tests.storage.rdb_mutations import Attack, new_dialogue
from tests.storage.rdb_mutations import mutated as mutated_payload
from tests.support.engines import make_engine

LOADED: Final = "loaded"
LONGEST_REFUSAL: Final = 2000
CONFIG: Final = b"""# a comment
port 7000
include other.conf
save 60 1 300 10
user alice on >secret ~k* +@read
client-output-buffer-limit normal 0 0 0
rename-command KEYS ""
requirepass "a b\\x00"
maxmemory 100mb
notify-keyspace-events KEA
aclfile users.acl
dir .
"""
MANIFEST: Final = (
    b"file appendonly.aof.1.base.aof seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n"
    b'file "appendonly.aof.2.incr.aof" seq 2 type i\nfile appendonly.aof.0.incr.aof seq 9 type h\n'
)
NODE: Final = (
    b"0123456789012345678901234567890123456789 127.0.0.1:7000@17000 myself,master - 0 0 0 connected 0-16383\n"
    b"vars currentEpoch 0 lastVoteEpoch 0\n"
)
USERS: Final = b"user default on nopass ~* &* +@all\nuser bob on >x %R~a* (+get ~b) -@dangerous\n"
TOKENS: Final = (
    b"include *", b"include x.conf", b"include " + b"../" * 300, b"file ../x seq 1 type b", b"seq 0", b"type x",
    b'"' * 100, b"\\x", b"\x00", b"\n", b"\r\n", b" " * 5000, b"A" * 5000, b"-1", b"99999999999999999999", b"\xff\xfe",
    b"user x " + b"(" * 50, b"save", b"0-99999", b"$9999999999\r\n", b"*-5\r\n", b"REDIS0012", b"\xfa\x00",
    b"file /etc/passwd seq 3 type i\n",
)  # fmt: skip


def altered(content: bytes, chance: random.Random) -> bytes:
    """With bits, bytes and pieces changed, cut, doubled, or tokens put between."""
    made = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(len(made) + 1)
        how = chance.randrange(6)
        if how == 0:
            made[at:at] = chance.choice(TOKENS)
        elif how == 1:
            made[at : at + 1] = bytes([chance.randrange(256)])
        elif how == 2:
            del made[at : at + chance.choice((1, 3, 20))]
        elif how == 3:
            made[at:at] = made[chance.randrange(len(made) + 1) :][: chance.choice((1, 10, 60))]
        elif how == 4:
            del made[at:]
        else:
            made[at:at] = b"%d" % chance.choice((-1, 0, 1, 2**31, 2**63, 2**64, 10**30))
    return bytes(made)


# -- what reads each kind of file -------------------------------------------------------------------------------------


def read_config(folder: Path, content: bytes) -> None:
    path = folder / "fuzzed.conf"
    path.write_bytes(content)
    (folder / "other.conf").write_bytes(b"include fuzzed.conf\n" if b"loop" in content else b"port 1\n")
    settings = config_file.start([str(path)])
    config_file.rewritten(content.decode(errors="surrogateescape"), settings)


def read_manifest(folder: Path, content: bytes) -> None:
    (folder / "appendonlydir").mkdir(exist_ok=True)
    (folder / "appendonlydir/appendonly.aof.manifest").write_bytes(content)
    for name in ("1.base", "1.incr", "2.incr"):
        (folder / f"appendonlydir/appendonly.aof.{name}.aof").write_bytes(b"")
    load_directory(folder)


def read_log(folder: Path, content: bytes) -> None:
    (folder / "appendonlydir").mkdir(exist_ok=True)
    (folder / "appendonlydir/appendonly.aof.manifest").write_bytes(b"file a seq 1 type b\nfile b seq 1 type i\n")
    (folder / "appendonlydir/a").write_bytes(b"")
    (folder / "appendonlydir/b").write_bytes(content)
    load_directory(folder)


def load_directory(folder: Path) -> None:
    engine = make_engine()
    engine.settings.read_line(["dir", str(folder)], set())
    log = loading.opened(engine.settings, SystemDisk())
    try:
        for _ in loading.read_into(engine, log, lambda line: None):
            pass
    finally:
        log.directory.close()
    for db in engine.keyspace.databases:
        db.check()


def read_snapshot(folder: Path, content: bytes) -> None:
    path = folder / "dump.rdb"
    path.write_bytes(content)
    engine = new_dialogue().engine
    for _ in RdbLoading(engine.server, SystemDisk(), str(path), lambda line: None).run():
        pass
    for db in engine.keyspace.databases:
        db.check()


def read_node(folder: Path, content: bytes) -> None:
    path = folder / "nodes.conf"
    path.write_bytes(content)
    text = node_file.read(path)
    if text is None:
        return
    try:
        Node(Settings(), random.Random(1)).read(text)
    except (ValueError, IndexError) as problem:  # what keep_node makes a sentence of
        raise UsageError(str(problem)) from None


def read_users(folder: Path, content: bytes) -> None:
    (folder / "users.acl").write_bytes(content)
    settings = Settings()
    settings.read_line(["aclfile", str(folder / "users.acl")], set())
    make_engine(settings=settings)


READERS: Final[dict[str, Callable[[Path, bytes], None]]] = {
    "config": read_config, "manifest": read_manifest, "log": read_log, "snapshot": read_snapshot, "node": read_node,
    "users": read_users,
}  # fmt: skip


# -- the fuzzers ------------------------------------------------------------------------------------------------------


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Failure after so much of a processor's time in here. Only in the main thread."""

    def end(number: int, frame: FrameType | None) -> None:
        raise Failure(f"it takes longer than {seconds} s")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def verdict(kind: str, content: bytes, seconds: float) -> str:
    """How a file of a kind fails what reads it; empty if it is taken or refused in a sentence."""
    with tempfile.TemporaryDirectory(prefix="penstock-fuzz-") as folder:
        try:
            with at_most(seconds):
                READERS[kind](Path(folder), content)
        except UsageError as refusal:
            return "" if 0 < len(str(refusal)) < LONGEST_REFUSAL + len(folder) else f"a refusal of {len(str(refusal))}"
        except Exception:
            return traceback.format_exc()[-1500:]
    return ""


def original(kind: str, chance: random.Random) -> bytes:
    """A whole file of a kind."""
    if kind == "snapshot":
        said = new_dialogue()
        for request in States(chance.randrange(50)).requests(5):
            said.words(*[word.encode() for word in request])
        settings, now_ms = said.engine.settings, said.engine.clock.now_us() // 1000
        return b"".join(rdb_saving.snapshot_of(said.engine.keyspace, settings, now_ms).chunks())[:-8]
    if kind == "log":
        return packed([[b"SELECT", b"0"], *HostileRequests(chance).requests(12)])
    return {"config": CONFIG, "manifest": MANIFEST, "node": NODE, "users": USERS}[kind]


def attack_files(seed: str, limit: Limit, seconds: float) -> Iterator[Found]:
    """Altered files of every kind, in turn."""
    kinds = list(READERS)
    while limit.more():
        chance = random.Random(f"{seed}/{limit.done}")
        kind = kinds[limit.done % len(kinds)]
        content = original(kind, chance)
        content = altered(content, chance) + (bytes(8) if kind == "snapshot" else b"")
        problem = verdict(kind, content, seconds)
        if problem:
            yield Found(f"files ({kind})", f"{seed}/{limit.done}", problem, content)


def attack_payloads(seed: str, limit: Limit, seconds: float) -> Iterator[Found]:
    """Altered payloads of RESTORE, in one engine."""
    attacker = Attack(0, measures=False)
    while limit.more():
        chance = random.Random(f"{seed}/{limit.done}")
        payload = mutated_payload(chance.choice(attacker.originals), chance)
        try:
            with at_most(seconds):
                attacker.one(payload)
        except Exception:
            yield Found("payloads", f"{seed}/{limit.done}", traceback.format_exc()[-1500:], payload)
            attacker = Attack(0, measures=False)
