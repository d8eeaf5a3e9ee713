"""What one connection does with bytes, whatever the network does to them."""

import tracemalloc
from typing import Any

import pytest

from penstock.server.connections.connection import MOST_UNSENT, REQUESTS_A_TURN, address_of
from tests.support.fake_server import FakeServer
from tests.support.whole_server import WholeServer

PIPELINE = b"PING\r\n*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n*1\r\n$4\r\nPING\r\nECHO 'a b'\r\n"
ANSWERS = b"+PONG\r\n$2\r\nhi\r\n+PONG\r\n$3\r\na b\r\n"
BIG = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$700000\r\n" + b"x" * 700_000 + b"\r\n"


def bulk(text: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(text), text)


# -- requests ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", range(1, len(PIPELINE)))
def test_a_pipeline_cut_anywhere_gets_the_same_answers(fake_server: FakeServer, at: int) -> None:
    client = fake_server.connect()

    assert client.says(PIPELINE[:at]) + client.says(PIPELINE[at:]) == ANSWERS


def test_a_pipeline_that_comes_byte_by_byte_gets_the_same_answers(fake_server: FakeServer) -> None:
    client = fake_server.connect()

    assert b"".join(client.says(bytes([byte])) for byte in PIPELINE) == ANSWERS


def test_a_thousand_requests_are_answered_in_order(fake_server: FakeServer) -> None:
    numbers = [b"%d" % number for number in range(1000)]

    answers = fake_server.connect().says(b"".join([b"ECHO %b\r\n" % number for number in numbers]))

    assert answers == b"".join([bulk(number) for number in numbers])


def test_a_long_request_that_was_handled_is_not_kept(fake_server: FakeServer) -> None:
    client, other = fake_server.connect(), fake_server.connect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        client.sends(b"*2\r\n$4\r\nECHO\r\n$300000\r\n" + b"x" * 150_000)
        client.sends(b"x" * 150_000 + b"\r\n")
        fake_server.loop.turn()
        assert len(client.received()) == 300_011
        client.transport.written.clear()
        other.says(b"PING\r\n")  # the engine keeps the words of its last request

        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()


def test_the_answers_of_a_turn_are_written_at_once(fake_server: FakeServer) -> None:
    client = fake_server.connect()
    client.sends(PIPELINE)
    fake_server.loop.turn()

    assert client.transport.written == [ANSWERS]


def test_a_long_pipeline_lets_others_in_between(fake_server: FakeServer) -> None:
    greedy, modest = fake_server.connect(), fake_server.connect()
    greedy.sends(b"PING\r\n" * (REQUESTS_A_TURN + 1))
    modest.sends(b"PING\r\n")
    handled_at_first = greedy.session.handled
    fake_server.loop.turn_once()

    assert (handled_at_first, modest.received()) == (REQUESTS_A_TURN, b"+PONG\r\n")


def test_a_pipeline_of_slow_requests_lets_others_in_between(fake_server: FakeServer) -> None:
    fake_server.engine.settings.read_line(["enable-debug-command", "yes"], set())
    greedy, modest = fake_server.connect(), fake_server.connect()
    greedy.sends(b"DEBUG SLEEP 0.004\r\n" * 7)
    modest.sends(b"PING\r\n")
    handled_at_first = greedy.session.handled
    fake_server.loop.turn_once()

    assert (handled_at_first, greedy.session.handled, modest.received()) == (3, 6, b"+PONG\r\n")
    assert greedy.says(b"PING\r\n") == b"+OK\r\n" * 7 + b"+PONG\r\n"


def test_slow_requests_of_which_each_takes_a_whole_turn_are_answered_in_order(fake_server: FakeServer) -> None:
    fake_server.engine.settings.read_line(["enable-debug-command", "yes"], set())

    assert fake_server.connect().says(b"DEBUG SLEEP 0.1\r\nECHO a\r\nDEBUG SLEEP 0.1\r\nECHO b\r\n") == (
        b"+OK\r\n$1\r\na\r\n+OK\r\n$1\r\nb\r\n"
    )


def test_a_long_pipeline_is_answered_to_its_end(fake_server: FakeServer) -> None:
    assert fake_server.connect().says(b"PING\r\n" * 5000) == b"+PONG\r\n" * 5000


def test_no_more_is_read_of_a_long_pipeline_than_is_handled(fake_server: FakeServer) -> None:
    client = fake_server.connect()
    client.sends(b"PING\r\n" * (REQUESTS_A_TURN + 1))
    read_meanwhile = client.transport.reads
    fake_server.loop.turn()

    assert (read_meanwhile, client.transport.reads) == (False, True)


def test_the_end_of_a_blocked_client_is_seen_behind_a_long_pipeline(fake_server: FakeServer) -> None:
    client = fake_server.connect()
    client.says(b"PING\r\n" * REQUESTS_A_TURN + b"XREAD BLOCK 0 STREAMS s $\r\n" + b"PING\r\n" * 5000)

    assert client.transport.reads


def test_a_client_that_reads_nothing_may_still_send(fake_server: FakeServer) -> None:
    client = fake_server.connect(slow=True)
    client.says(BIG + b"GET k\r\n" * 100)

    assert client.transport.reads


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b'ECHO "a\r\n', b"-ERR Protocol error: unbalanced quotes in request\r\n"),
        (b"*1\r\n!\r\n", b"-ERR Protocol error: expected '$', got '!'\r\n"),
        (b"*x\r\n", b"-ERR Protocol error: invalid multibulk length\r\n"),
        (b"*1\r\n$-5\r\n", b"-ERR Protocol error: invalid bulk length\r\n"),
        (b"POST / HTTP/1.1\r\n", b""),
        (b"Host: here\r\n", b""),
    ],
    ids=["quotes", "no bulk", "count", "length", "post", "host"],
)
def test_what_is_no_request_ends_the_connection_after_what_came_before_it(
    fake_server: FakeServer, sent: bytes, answer: bytes
) -> None:
    client = fake_server.connect()

    assert client.says(b"PING\r\n" + sent + b"PING\r\n") == b"+PONG\r\n" + answer
    assert client.transport.closed


def test_before_the_password_only_short_requests_are_read() -> None:
    client = FakeServer(requirepass="secret").connect()

    assert client.says(b"*11\r\n") == b"-ERR Protocol error: unauthenticated multibulk length\r\n"


def test_a_pipeline_may_log_in_and_then_be_long() -> None:
    client = FakeServer(requirepass="secret").connect()

    assert client.says(b"AUTH secret\r\n*12\r\n$3\r\nDEL\r\n" + b"$1\r\nk\r\n" * 11) == b"+OK\r\n:0\r\n"


def test_a_client_without_login_is_closed_over_sixteen_kilobytes_of_replies() -> None:
    fake_server = FakeServer(requirepass="secret")
    modest, greedy = fake_server.connect(), fake_server.connect()

    modest.says(b"PING\r\n" * 450)
    greedy.says(b"PING\r\n" * 487)  # Redis 8.6.3: of 450 refusals at once it is not closed, of 487 it is

    assert (modest.transport.aborted, greedy.transport.aborted) == (False, True)


def test_a_new_limit_on_words_holds_for_connections_that_are_there(fake_server: FakeServer) -> None:
    client = fake_server.connect()
    client.says(b"CONFIG SET proto-max-bulk-len 1048576\r\n")

    assert client.says(b"*1\r\n$1048577\r\n") == b"-ERR Protocol error: invalid bulk length\r\n"


# -- closing ----------------------------------------------------------------------------------------------------------


def test_quit_is_answered_and_nothing_after_it(fake_server: FakeServer) -> None:
    client = fake_server.connect()

    assert client.says(b"PING\r\nQUIT\r\nPING\r\n") == b"+PONG\r\n+OK\r\n"
    assert client.transport.closed


def test_a_client_that_sends_no_more_gets_its_answers(fake_server: FakeServer) -> None:
    client = fake_server.connect()
    client.sends(b"PING\r\n")
    client.connection.eof_received()
    fake_server.loop.turn()

    assert (client.received(), client.transport.closed) == (b"+PONG\r\n", True)


def test_a_client_that_sends_no_more_gets_the_answers_of_a_long_pipeline(fake_server: FakeServer) -> None:
    client = fake_server.connect()
    client.sends(b"PING\r\n" * 3000)
    client.connection.eof_received()
    fake_server.loop.turn()

    assert (client.received(), client.transport.closed) == (b"+PONG\r\n" * 3000, True)


def test_a_slow_client_that_sends_no_more_gets_everything_in_the_end(fake_server: FakeServer) -> None:
    client = fake_server.connect(slow=True)
    client.sends(BIG + b"GET k\r\n" * 6)
    client.connection.eof_received()
    for _ in range(6):
        fake_server.loop.turn()
        client.transport.take()

    assert (client.received().count(b"$700000\r\n"), client.transport.closed) == (6, True)


ENDS = {  # the last request, and whether the client ends its side behind it
    "a half-closed client": (b"GET k\r\n", True),
    "QUIT": (b"GET k\r\nQUIT\r\n", False),
    "bytes that are no request": (b"GET k\r\n*x\r\n", False),
    "a blocked client that is half-closed": (b"GET k\r\nBLPOP list 0\r\n", True),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_client_that_ends_and_does_not_read_is_a_client_until_it_has_everything(end: str) -> None:
    fake_server = FakeServer(client_output_buffer_limit="normal 2000000 0 0")
    requests, is_half_closed = ENDS[end]
    client, other = fake_server.connect(slow=True), fake_server.connect()
    client.sends(BIG + requests)
    fake_server.loop.turn()
    if is_half_closed:
        client.connection.eof_received()
    fake_server.loop.turn()

    assert fake_server.turn.connections.get(client.connection.session.id) is client.connection
    assert not client.transport.closed
    assert other.says(b"RPUSH list a\r\nLLEN list\r\n") == b":1\r\n:1\r\n"
    assert other.says(b"CLIENT LIST\r\n").count(b"id=") == 2
    client.transport.take()
    fake_server.loop.turn()
    assert client.transport.closed
    assert not client.transport.aborted


@pytest.mark.parametrize("end", ENDS)
def test_a_client_that_ends_and_takes_none_of_its_replies_for_a_minute_is_closed(end: str) -> None:
    server = WholeServer()
    requests, is_half_closed = ENDS[end]
    client = server.connect(slow=True)
    client.says(BIG + requests)
    if is_half_closed:
        client.connection.eof_received()
    server.passes(59_000)
    client.transport.unsent -= 1
    server.passes(59_000)
    is_there = not client.transport.closed
    server.passes(2_000)

    assert (is_there, client.transport.aborted) == (True, True)


def test_a_client_that_has_not_ended_may_take_its_time() -> None:
    server = WholeServer()
    client = server.connect(slow=True)
    client.says(BIG + b"GET k\r\n")
    server.passes(200_000)

    assert not client.transport.closed


def test_a_subscriber_that_has_ended_is_told_nothing_more(fake_server: FakeServer) -> None:
    client, other = fake_server.connect(slow=True), fake_server.connect()
    client.says(b"SUBSCRIBE c\r\n")
    client.connection.eof_received()
    unsent = client.transport.unsent
    other.says(b"PUBLISH c news\r\n")

    assert (client.transport.unsent, client.transport.closed) == (unsent, False)
    client.transport.take()
    fake_server.loop.turn()
    assert client.transport.closed


def test_half_a_request_and_then_the_end_closes(fake_server: FakeServer) -> None:
    client = fake_server.connect()
    client.says(b"*2\r\n$4\r\nECHO\r\n")
    client.connection.eof_received()

    assert client.transport.closed


def test_a_killed_client_is_gone_at_once(fake_server: FakeServer) -> None:
    victim, killer = fake_server.connect(), fake_server.connect()
    number = victim.session.id

    assert killer.says(b"CLIENT KILL ID %d\r\n" % number) == b":1\r\n"
    assert victim.transport.aborted
    assert number not in fake_server.engine.clients.sessions


def test_a_client_that_kills_itself_hears_of_it_first(fake_server: FakeServer) -> None:
    client = fake_server.connect()

    assert client.says(b"CLIENT KILL ID %d SKIPME no\r\nPING\r\n" % client.session.id) == b":1\r\n"
    assert client.transport.closed


def test_a_bug_costs_only_the_connection_that_met_it(fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    unlucky, other = fake_server.connect(), fake_server.connect()
    with monkeypatch.context() as patch:
        patch.setattr(fake_server.engine.clock, "now_us", lambda: 1 // 0)
        unlucky.says(b"PING\r\n")

    assert unlucky.transport.aborted
    assert other.says(b"PING\r\n") == b"+PONG\r\n"


# -- replies turned off -----------------------------------------------------------------------------------------------


def test_replies_that_are_off_are_not_sent(fake_server: FakeServer) -> None:
    assert fake_server.connect().says(b"CLIENT REPLY OFF\r\nPING\r\nCLIENT REPLY ON\r\nPING\r\n") == b"+OK\r\n+PONG\r\n"


def test_one_reply_can_be_skipped(fake_server: FakeServer) -> None:
    assert fake_server.connect().says(b"CLIENT REPLY SKIP\r\nPING\r\nECHO a\r\n") == b"$1\r\na\r\n"


# -- waiting ----------------------------------------------------------------------------------------------------------


def test_a_blocked_reader_is_served_by_another_client(fake_server: FakeServer) -> None:
    reader, writer = fake_server.connect(), fake_server.connect()
    reader.says(b"XREAD BLOCK 0 STREAMS s $\r\n")

    assert writer.says(b"XADD s 1-0 f v\r\n") == b"$3\r\n1-0\r\n"
    assert reader.received() == b"*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"


def test_what_follows_a_blocked_request_waits_for_it(fake_server: FakeServer) -> None:
    reader, writer = fake_server.connect(), fake_server.connect()

    assert reader.says(b"PING\r\nXREAD BLOCK 0 STREAMS s $\r\nECHO after\r\n") == b"+PONG\r\n"
    assert reader.says(b"ECHO later\r\n") == b""
    writer.says(b"XADD s 1-0 f v\r\n")
    assert reader.received().endswith(b"$1\r\nv\r\n$5\r\nafter\r\n$5\r\nlater\r\n")


def test_a_blocked_reader_hears_when_its_time_is_up(fake_server: FakeServer) -> None:
    reader = fake_server.connect()
    reader.says(b"XREAD BLOCK 250 STREAMS s $\r\nPING\r\n")
    fake_server.loop.pass_ms(249)
    early = reader.received()
    fake_server.loop.pass_ms(1)

    assert (early, reader.received()) == (b"", b"*-1\r\n+PONG\r\n")


def test_a_blocked_reader_that_has_gone_takes_nothing(fake_server: FakeServer) -> None:
    reader, other = fake_server.connect(), fake_server.connect()
    other.says(b"XGROUP CREATE s g $ MKSTREAM\r\n")
    reader.says(b"XREADGROUP GROUP g gone BLOCK 0 STREAMS s >\r\n")
    reader.connection.eof_received()
    other.says(b"XADD s 1-0 f v\r\n")

    assert reader.transport.closed
    assert other.says(b"XPENDING s g\r\n").startswith(b"*4\r\n:0\r\n")


def test_a_blocked_reader_with_a_broken_connection_is_forgotten(fake_server: FakeServer) -> None:
    reader = fake_server.connect()
    reader.says(b"XREAD BLOCK 0 STREAMS s $\r\n")
    reader.connection.connection_lost(ConnectionResetError())

    assert len(fake_server.engine.blocking) == 0


def test_a_blocked_client_may_not_send_without_end(fake_server: FakeServer) -> None:
    client = fake_server.connect()
    client.says(b"CONFIG SET client-query-buffer-limit 1048576\r\nXREAD BLOCK 0 STREAMS s $\r\n")
    client.says(b"PING\r\n" * 200_000)

    assert client.transport.aborted
    assert fake_server.engine.statistics.query_buffer_disconnections == 1


# -- slow readers -----------------------------------------------------------------------------------------------------


def test_a_client_that_reads_nothing_is_held(fake_server: FakeServer) -> None:
    client = fake_server.connect(slow=True)
    client.says(BIG + b"GET k\r\n" * 100)

    assert client.transport.unsent < 3 * MOST_UNSENT
    assert client.session.waiting_output == client.transport.unsent


def test_a_held_client_goes_on_when_it_reads(fake_server: FakeServer) -> None:
    client = fake_server.connect(slow=True)
    client.sends(BIG + b"GET k\r\n" * 20)
    fake_server.loop.turn()
    client.transport.slow = False
    client.transport.take()
    fake_server.loop.turn()

    assert client.received().count(b"$700000\r\n") == 20
    assert client.session.waiting_output == 0


def test_a_client_beyond_the_hard_output_limit_is_closed() -> None:
    fake_server = FakeServer(client_output_buffer_limit="normal 1000000 0 0")
    client = fake_server.connect(slow=True)
    client.says(BIG + b"GET k\r\n" * 3)

    assert client.transport.aborted
    assert fake_server.engine.statistics.output_buffer_disconnections == 1


def test_a_client_beyond_the_soft_output_limit_is_closed_after_a_while() -> None:
    fake_server = FakeServer(client_output_buffer_limit="normal 0 500000 2")
    client = fake_server.connect(slow=True)
    client.says(BIG + b"GET k\r\n")
    fake_server.loop.pass_ms(1500)
    client.connection.check_output()
    early = client.transport.aborted
    fake_server.loop.pass_ms(1000)
    client.connection.check_output()

    assert (early, client.transport.aborted) == (False, True)


# -- numbers ----------------------------------------------------------------------------------------------------------


def test_both_ends_of_a_connection_can_be_seen(fake_server: FakeServer) -> None:
    fields = fake_server.connect().says(b"CLIENT INFO\r\n").split()

    assert {b"addr=127.0.0.1:50000", b"laddr=127.0.0.1:6379", b"fd=-1", b"flags=N"} <= set(fields)


def test_a_client_of_the_unix_socket_has_the_address_of_the_server(fake_server: FakeServer) -> None:
    client = fake_server.connect(peer="", local="/run/penstock.sock")

    assert {b"addr=/run/penstock.sock:0", b"laddr=/run/penstock.sock:0", b"flags=U"} <= set(
        client.says(b"CLIENT INFO\r\n").split()
    )


def test_the_addresses_of_a_client_are_made_when_they_are_asked_for() -> None:
    fake_server = FakeServer(protected_mode="no")
    looking, other = fake_server.connect(), fake_server.connect(peer=("127.0.0.1", 50001))
    other.says(b"PING\r\n")
    unasked = list(other.transport.asked)
    looking.says(b"CLIENT LIST\r\nCLIENT LIST\r\nCLIENT KILL 127.0.0.1:9\r\n")

    assert (unasked, other.transport.asked) == ([], ["peername", "sockname", "socket"])


def test_a_client_that_left_a_busy_server_has_its_address_until_the_script_is_over(fake_server: FakeServer) -> None:
    client = fake_server.connect()
    fake_server.engine.conditions.busy = True
    client.connection.connection_lost(None)
    client.transport.forget()

    assert client.session.address == "127.0.0.1:50000"


def test_a_client_that_leaves_nothing_to_do_takes_no_turn(fake_server: FakeServer) -> None:
    client = fake_server.connect()
    client.says(b"PING\r\n")
    turns = fake_server.log_writer.turns
    client.connection.connection_lost(None)
    fake_server.loop.turn()

    assert fake_server.log_writer.turns == turns


def test_a_client_that_leaves_while_others_wait_ends_a_turn(fake_server: FakeServer) -> None:
    client, waiting = fake_server.connect(), fake_server.connect()
    waiting.says(b"BLPOP l 0\r\n")
    turns = fake_server.log_writer.turns
    client.connection.connection_lost(None)
    fake_server.loop.turn()

    assert fake_server.log_writer.turns == turns + 1


def test_what_a_client_names_is_its_own(fake_server: FakeServer) -> None:
    one, other = fake_server.connect(), fake_server.connect()
    one.says(b"HELLO 3\r\nWATCH k\r\nHIMPORT PREPARE fields f\r\nSUBSCRIBE c\r\nPSUBSCRIBE p*\r\nSSUBSCRIBE s\r\n")
    seen = fake_server.connect().session

    for session in (other.session, seen):
        assert not any((session.watched, session.watched_stale, session.fieldsets))
        assert not any((session.channels, session.patterns, session.shard_channels))
    one.says(b"RESET\r\n")
    assert one.says(b"UNSUBSCRIBE\r\n") == b"*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n"


def test_what_came_and_went_is_counted(fake_server: FakeServer) -> None:
    client = fake_server.connect()
    client.says(b"PING\r\n")
    client.says(b"PING\r\n*1\r\n")
    session, statistics = client.session, fake_server.engine.statistics

    assert (session.reads, session.input_bytes, session.output_bytes) == (2, 16, 14)
    assert (statistics.reads, statistics.input_bytes, statistics.output_bytes, statistics.writes) == (2, 16, 14, 2)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (("127.0.0.1", 6379), "127.0.0.1:6379"),
        (("::1", 6379, 0, 0), "[::1]:6379"),
        ("/run/penstock.sock", "/run/penstock.sock:0"),
        (None, ":0"),
    ],
    ids=["IPv4", "IPv6", "unix", "unnamed"],
)
def test_a_socket_is_named_as_redis_names_it(name: str | tuple[Any, ...] | None, shown: str) -> None:
    assert address_of(name) == shown
