"""MIGRATE: keys go to another server, here another engine."""

import socket

import pytest

from penstock.clock import ManualClock
from penstock.config.settings import Settings
from penstock.engine.waiting.migrating import TargetError
from penstock.server.replication.targets import Target, Targets
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine
from tests.support.log import UnitLog
from tests.support.reference_server import NoReference, reference_server
from tests.support.server_process import running_server
from tests.support.wire import Bulk, Connection, Error, Integer, Simple

TO = "MIGRATE there 7000"


class OtherEngine:
    """A target: takes what it is sent, or fails after so many requests."""

    def __init__(self) -> None:
        self.ask_it = Dialogue(make_engine(ManualClock(NOW_MS)))
        self.logins: list[list[bytes]] = []
        self.refusal = b""
        self.fails_after = -1

    def ask(
        self, host: str, port: str, timeout_ms: int, db_index: int, login: list[bytes], requests: list[list[bytes]]
    ) -> list[bytes]:
        assert (host, port) == ("there", "7000")
        self.logins.append(login)
        if self.refusal:
            return [self.refusal] * len(requests)
        self.ask_it(f"SELECT {db_index}")
        answers: list[bytes] = []
        for request in requests:
            if len(answers) == self.fails_after:
                raise TargetError("reading", answers, is_late=True)
            answers.append(self.ask_it.words(*request).rstrip(b"\r\n"))
        return answers


@pytest.fixture
def target() -> OtherEngine:
    return OtherEngine()


@pytest.fixture
def log() -> UnitLog:
    return UnitLog()


@pytest.fixture
def here(target: OtherEngine, log: UnitLog) -> Dialogue:
    engine = make_engine(ManualClock(NOW_MS), log)
    engine.waiting.migrator = target
    return Dialogue(engine)


def test_a_key_goes_with_its_time_and_is_logged_as_deleted(here: Dialogue, target: OtherEngine, log: UnitLog) -> None:
    here("XADD s 1-0 f v", "XGROUP CREATE s g 0", "PEXPIRE s 5000")
    log.clear()

    assert here(f"{TO} s 3 100") == b"OK"
    assert here("EXISTS s") == 0
    assert log.text.endswith(b"*2\r\n$3\r\nDEL\r\n$1\r\ns\r\n")
    assert target.ask_it("SELECT 3", "XLEN s") == 1
    assert target.ask_it("PTTL s") == 5000
    assert target.logins == [[]]


def test_several_keys_go_at_once_and_missing_ones_are_passed_over(here: Dialogue, target: OtherEngine) -> None:
    here("SET a 1", "SET b 2")

    assert here(f'{TO} "" 0 100 KEYS a nosuch b') == b"OK"
    assert target.ask_it("MGET a b") == [b"1", b"2"]
    assert here(f'{TO} "" 0 100 KEYS a b') == b"NOKEY"


def test_copy_leaves_the_key_and_replace_overwrites_it_there(here: Dialogue, target: OtherEngine) -> None:
    here("SET a 1")
    target.ask_it("SET a old")

    text = "ERR Target instance replied with error: BUSYKEY Target key name already exists."
    assert str(here(f"{TO} a 0 100 COPY")) == text
    assert here(f"{TO} a 0 100 COPY REPLACE") == b"OK"
    assert here("GET a") == target.ask_it("GET a") == b"1"


def test_a_key_that_was_refused_stays_and_the_others_go(here: Dialogue, target: OtherEngine) -> None:
    here("SET a 1", "SET b 2", "SET c 3")
    target.ask_it("SET b old")

    assert str(here(f'{TO} "" 0 100 KEYS a b c')).startswith("ERR Target instance replied with error: BUSYKEY")
    assert here("KEYS *") == [b"b"]


def test_what_the_target_did_not_confirm_stays(here: Dialogue, target: OtherEngine) -> None:
    here("SET a 1", "SET b 2")
    target.fails_after = 1

    assert str(here(f'{TO} "" 0 100 KEYS a b')) == "IOERR error or timeout reading to target instance"
    assert here("KEYS *") == [b"b"]


def test_the_password_is_sent_first(here: Dialogue, target: OtherEngine) -> None:
    here("SET a 1")
    target.refusal = b"-WRONGPASS no"

    assert str(here(f"{TO} a 0 100 AUTH pw")) == "ERR Target instance replied with error: WRONGPASS no"
    assert str(here(f"{TO} a 0 100 AUTH2 me pw")) == "ERR Target instance replied with error: WRONGPASS no"
    assert target.logins == [[b"AUTH", b"pw"], [b"AUTH", b"me", b"pw"]]
    assert here("GET a") == b"1"


@pytest.mark.parametrize(
    ("rest", "text"),
    [
        ("k x 100", "ERR value is not an integer or out of range"),
        ("k 0 x", "ERR value is not an integer or out of range"),
        ("k 0 100 AUTH", "ERR syntax error"),
        ("k 0 100 AUTH2 a", "ERR syntax error"),
        ("k 0 100 FOO", "ERR syntax error"),
        ("k 0 100 KEYS a", "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string"),
    ],
)
def test_refusals(here: Dialogue, rest: str, text: str) -> None:
    assert str(here(f"{TO} {rest}")) == text


def test_a_target_that_cannot_be_reached_is_told_of(here: Dialogue) -> None:
    here.engine.waiting.migrator = None
    here("SET a 1")

    assert str(here(f"{TO} a 0 100")) == "IOERR error or timeout writing to target instance"


class SlowLink(socket.socket):
    """Carries a megabyte a second; like a socket's, its `sendall` fails if all of it takes longer than the timeout."""

    carried = 0

    def sendall(self, data: "memoryview[int]", flags: int = 0) -> None:  # type: ignore[override]  # no other is sent
        if len(data) / 1_000_000 > (self.gettimeout() or 0.0):
            raise TimeoutError
        self.carried += len(data)

    def recv(self, size: int, flags: int = 0) -> bytes:
        return b"+OK\r\n" * 2


def test_the_timeout_is_for_each_piece_of_what_is_sent_as_in_redis() -> None:
    targets = Targets(ManualClock(NOW_MS), Settings())
    with SlowLink() as link:
        targets._targets["there", "7000", False] = Target(link)

        assert targets.ask("there", "7000", 1000, 0, [], [[b"RESTORE", b"k", bytes(5_000_000)]]) == [b"+OK"]
        assert link.carried > 5_000_000


class TricklingLink(socket.socket):
    """Takes everything at once, and answers with a few bytes at a time."""

    def __init__(self, clock: ManualClock, answer: bytes, bytes_a_look: int, ms_a_look: int) -> None:
        super().__init__()
        self.clock, self.answer, self.bytes_a_look, self.ms_a_look = clock, answer, bytes_a_look, ms_a_look

    def sendall(self, data: "memoryview[int]", flags: int = 0) -> None:  # type: ignore[override]  # no other is sent
        pass

    def recv(self, size: int, flags: int = 0) -> bytes:
        self.clock.advance(self.ms_a_look)
        piece, self.answer = self.answer[: self.bytes_a_look], self.answer[self.bytes_a_look :]
        assert piece, "the reply was waited for to its end"
        return piece


TRICKLES = {  # the reply, how many bytes come at once, how many ms pass before; whether it is taken
    "a byte in 900 ms": (b"+" + b"x" * 1000, 1, 900, False),
    "a line without an end": (b"+" + b"x" * 2**20, 16 * 1024, 1, False),
    "lines that take 900 ms each": (b"+OK\r\n" * 3, 5, 900, True),
    "lines that come as one": (b"+OK\r\n" * 3, 15, 900, True),
}


@pytest.mark.parametrize("trickle", TRICKLES)
def test_each_line_of_the_targets_reply_comes_in_time_or_the_keys_stay(trickle: str) -> None:
    answer, bytes_a_look, ms_a_look, is_taken = TRICKLES[trickle]
    clock = ManualClock(NOW_MS)
    engine = make_engine(clock)
    engine.waiting.migrator = targets = Targets(clock, Settings())
    here = Dialogue(engine)
    here("SET a 1", "SET b 2")
    with TricklingLink(clock, answer, bytes_a_look, ms_a_look) as link:
        targets._targets["there", "7000", False] = Target(link)
        reply = here(f'{TO} "" 0 1000 KEYS a b')

    assert str(reply) == ("b'OK'" if is_taken else "IOERR error or timeout reading to target instance")
    assert here("EXISTS a b") == (0 if is_taken else 2)


@pytest.mark.slow
def test_keys_go_to_a_real_redis_and_back() -> None:
    try:
        with (
            reference_server("--requirepass", "pw") as redis_port,
            running_server() as server,
            Connection("127.0.0.1", server.port, 60.0) as ours,
            Connection("127.0.0.1", redis_port, 60.0) as theirs,
        ):
            theirs.ask("AUTH", "pw")
            back = ("MIGRATE", "127.0.0.1", str(server.port), "k", "0", "5000")
            there = ("MIGRATE", "127.0.0.1", str(redis_port), "k", "1", "5000")
            ours.ask("HSET", "k", "round", "none")
            refusal = b"ERR Target instance replied with error: NOAUTH Authentication required."
            assert ours.ask(*there) == Error(refusal)  # later the kept connection has logged in, as in Redis
            for round_ in range(3):
                ours.ask("HSET", "k", "round", str(round_))
                assert ours.ask(*there, "AUTH", "pw") == Simple(b"OK")
                assert ours.ask("EXISTS", "k") == Integer(0)
                theirs.ask("SELECT", "1")
                assert theirs.ask("HGET", "k", "round") == Bulk(b"%d" % round_)
                assert theirs.ask(*back) == Simple(b"OK")
    except NoReference as why:
        pytest.skip(str(why))
