"""One turn for all connections: log, then reply; one timer; the end."""

from penstock.protocol.reply import bulks as packed
from penstock.server.cron import close_idle
from penstock.server.turns.turn import LOOKS_EVERY, TURNS_ALONE
from tests.support.fake_server import FakeServer


def test_no_client_is_answered_before_the_log_is_safe(fake_server: FakeServer) -> None:
    one, other = fake_server.connect(), fake_server.connect()
    fake_server.log_writer.holds = True
    answers_before = (one.says(b"XADD s 1-0 f v\r\n"), other.says(b"PING\r\n"))
    fake_server.log_writer.sync()

    assert answers_before == (b"", b"")
    assert (one.received(), other.received()) == (b"$3\r\n1-0\r\n", b"+PONG\r\n")


def test_clients_of_one_turn_share_one_write_of_the_log(fake_server: FakeServer) -> None:
    clients = [fake_server.connect() for _ in range(10)]
    turns_before = fake_server.log_writer.turns
    for client in clients:
        client.sends(b"XADD s * f v\r\n")
    fake_server.loop.turn()

    assert fake_server.log_writer.turns - turns_before == 1


def test_turns_with_one_clients_requests_end_at_once_after_a_while(fake_server: FakeServer) -> None:
    fake_server.keeps_a_log()
    clients = [fake_server.connect(), fake_server.connect()]
    for number in range(TURNS_ALONE):
        clients[number % 2].says(packed([b"XADD", b"s", b"*", b"f", b"v"]))
        clients[number % 2].received()
    turns_before = fake_server.log_writer.turns
    for number, client in enumerate(clients, 1):
        client.sends(packed([b"XADD", b"s", b"9999999999999-%d" % number, b"f", b"v"]))

        assert client.received() == b"$15\r\n9999999999999-%d\r\n" % number
        assert fake_server.log_writer.turns - turns_before == number


def test_a_client_that_sends_alone_is_looked_at_again_and_shares_turns_once_others_send(
    fake_server: FakeServer,
) -> None:
    fake_server.keeps_a_log()
    one, other = fake_server.connect(), fake_server.connect()
    for _ in range(LOOKS_EVERY):
        one.says(packed([b"XADD", b"s", b"*", b"f", b"v"]))
        one.received()
    for at in (1, 3):  # the turn that looks, and the one behind it
        turns_before = fake_server.log_writer.turns
        for client in (one, other):
            client.sends(packed([b"INCR", b"counter"]))

        assert (one.received(), other.received()) == (b"", b"")
        fake_server.loop.turn()
        assert (one.received(), other.received()) == (b":%d\r\n" % at, b":%d\r\n" % (at + 1))
        assert fake_server.log_writer.turns - turns_before == 1


def test_a_reader_that_is_woken_does_not_keep_the_turn_from_ending_at_once(fake_server: FakeServer) -> None:
    writer, reader = fake_server.connect(), fake_server.connect()
    reader.says(b"XREAD BLOCK 0 STREAMS s $\r\n")
    for _ in range(TURNS_ALONE):
        writer.says(b"SET key value\r\n")
    writer.received()
    writer.sends(b"XADD s 1-0 f v\r\n")

    assert writer.received() == b"$3\r\n1-0\r\n"
    assert reader.received() == b"*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"


def test_what_is_handed_out_behind_a_turn_is_sent(fake_server: FakeServer) -> None:
    """WAITAOF waits for the sync, of which the server learns when no client's turn is on its way."""
    client = fake_server.connect()
    fake_server.engine.clients.outgoing.append((client.connection.session, b"*2\r\n:1\r\n:0\r\n"))
    fake_server.turn.look_after_log()
    fake_server.loop.turn()

    assert client.received() == b"*2\r\n:1\r\n:0\r\n"


def test_a_turn_that_ends_at_once_waits_for_its_log(fake_server: FakeServer) -> None:
    fake_server.keeps_a_log()
    client = fake_server.connect()
    for number in range(1, TURNS_ALONE + 2):
        client.says(packed([b"XADD", b"s", b"%d-0" % number, b"f", b"v"]))
    client.received()
    fake_server.log_writer.holds = True
    client.sends(packed([b"XADD", b"s", b"100-0", b"f", b"v"]))
    before = client.received()
    fake_server.log_writer.sync()

    assert (before, client.received()) == (b"", b"$5\r\n100-0\r\n")


def test_held_turns_are_answered_in_order(fake_server: FakeServer) -> None:
    client = fake_server.connect()
    fake_server.log_writer.holds = True
    client.says(b"ECHO 1\r\n")
    client.says(b"ECHO 2\r\n")
    fake_server.log_writer.sync()

    assert client.received() == b"$1\r\n1\r\n$1\r\n2\r\n"


def test_quit_is_answered_although_the_log_holds_it_back(fake_server: FakeServer) -> None:
    client = fake_server.connect()
    fake_server.log_writer.holds = True
    client.says(b"QUIT\r\n")
    closed_early = client.transport.closed
    fake_server.log_writer.sync()

    assert (closed_early, client.received(), client.transport.closed) == (False, b"+OK\r\n", True)


def test_a_client_that_has_gone_meanwhile_is_not_written_to(fake_server: FakeServer) -> None:
    client = fake_server.connect()
    fake_server.log_writer.holds = True
    client.says(b"PING\r\n")
    client.connection.connection_lost(None)
    fake_server.log_writer.sync()

    assert client.received() == b""


def test_a_change_that_could_not_be_logged_is_not_confirmed(fake_server: FakeServer) -> None:
    client = fake_server.connect()
    fake_server.keeps_a_log()
    fake_server.log_writer.is_kept = False

    assert client.says(b"PING\r\nXADD s 1-0 f v\r\nXLEN s\r\n") == b"+PONG\r\n"
    assert client.transport.closed


def test_clients_without_changes_are_answered_although_others_changes_may_not_be_logged(
    fake_server: FakeServer,
) -> None:
    fake_server.keeps_a_log()
    writer, reader = fake_server.connect(), fake_server.connect()
    fake_server.log_writer.is_kept = False
    writer.sends(b"XADD s 1-0 f v\r\n")

    assert reader.says(b"PING\r\n") == b"+PONG\r\n"
    assert (writer.transport.closed, reader.transport.closed) == (True, False)


def test_a_read_of_an_overdue_key_is_answered_although_its_removal_may_not_be_logged(fake_server: FakeServer) -> None:
    fake_server.keeps_a_log()
    client = fake_server.connect()
    client.says(b"SET k v PX 10\r\n")
    client.received()
    fake_server.log_writer.is_kept = False
    fake_server.clock.advance(11)

    assert client.says(b"GET k\r\n") == b"$-1\r\n"


def test_replies_behind_a_withheld_one_wait_and_other_clients_are_answered(fake_server: FakeServer) -> None:
    fake_server.keeps_a_log()
    log, writer, reader = fake_server.log_writer, fake_server.connect(), fake_server.connect()
    log.holds = log.reads_go = True
    writer.sends(b"PING\r\nSET k 1\r\n")
    before = (reader.says(b"GET k\r\n"), writer.says(b"GET k\r\n"), reader.says(b"PING\r\n"))
    log.sync()

    assert before == (b"$1\r\n1\r\n", b"", b"+PONG\r\n")
    assert writer.received() == b"+PONG\r\n+OK\r\n$1\r\n1\r\n"


def test_what_follows_a_withheld_reply_stays_behind_it_where_its_own_turn_waits_for_nothing(
    fake_server: FakeServer,
) -> None:
    fake_server.keeps_a_log()
    log, writer = fake_server.log_writer, fake_server.connect()
    log.holds = log.reads_go = True
    writer.says(b"SET k 1\r\n")
    log.holds = False

    assert writer.says(b"GET k\r\n") == b""
    log.sync()
    assert writer.received() == b"+OK\r\n$1\r\n1\r\n"


def test_what_the_turn_that_goes_on_owes_is_sent_behind_what_was_withheld(fake_server: FakeServer) -> None:
    fake_server.keeps_a_log()
    log, writer = fake_server.log_writer, fake_server.connect()
    log.holds = log.reads_go = True
    writer.says(b"SET k 1\r\n")
    writer.sends(b"GET k\r\n")
    log.holds = False
    log.sync()
    before = writer.received()
    fake_server.loop.turn()

    assert (before, writer.received()) == (b"", b"+OK\r\n$1\r\n1\r\n")


def test_what_a_client_asks_behind_a_withheld_reply_is_bounded(fake_server: FakeServer) -> None:
    fake_server.keeps_a_log()
    log, writer = fake_server.log_writer, fake_server.connect()
    writer.says(b"SETRANGE k 99999 v\r\n")
    writer.received()
    log.holds = log.reads_go = True
    writer.says(b"SET other 1\r\n" + b"GET k\r\n" * 1000)
    withheld = writer.connection.reply_bytes
    handled = writer.session.handled
    log.holds = log.reads_go = False
    log.sync()
    fake_server.loop.turn()

    assert 2**20 < withheld < 2**20 + 200_000
    assert handled < 20
    assert writer.received().count(b"$100000") == 1000


def test_a_withheld_client_is_closed_where_its_output_limit_says_so() -> None:
    server = FakeServer(client_output_buffer_limit="normal 50000 0 0")
    server.keeps_a_log()
    writer = server.connect()
    writer.says(b"SET k " + b"v" * 30_000 + b"\r\n")
    server.log_writer.holds = server.log_writer.reads_go = True
    writer.says(b"SET other 1\r\nGET k\r\n")
    early = writer.transport.aborted
    writer.says(b"GET k\r\n")

    assert (early, writer.transport.aborted) == (False, True)


def test_a_withheld_client_that_leaves_is_forgotten(fake_server: FakeServer) -> None:
    fake_server.keeps_a_log()
    log, writer = fake_server.log_writer, fake_server.connect()
    log.holds = log.reads_go = True
    writer.says(b"SET k 1\r\n")
    writer.connection.connection_lost(None)

    assert not fake_server.turn.withheld


def test_a_delivery_that_could_not_be_logged_is_not_made(fake_server: FakeServer) -> None:
    reader, writer = fake_server.connect(), fake_server.connect()
    fake_server.keeps_a_log()
    writer.says(b"XGROUP CREATE s g $ MKSTREAM\r\n")
    reader.says(b"XREADGROUP GROUP g alice BLOCK 0 STREAMS s >\r\n")
    fake_server.log_writer.is_kept = False
    writer.says(b"XADD s 1-0 f v\r\n")

    assert (reader.received(), reader.transport.closed) == (b"", True)


def test_blocked_readers_need_one_timer(fake_server: FakeServer) -> None:
    for _ in range(100):
        fake_server.connect().says(b"XREAD BLOCK 5000 STREAMS s $\r\n")

    assert len([timer for timer in fake_server.loop.timers if not timer.cancelled]) == 1


def test_readers_that_wait_for_ever_need_no_timer(fake_server: FakeServer) -> None:
    fake_server.connect().says(b"XREAD BLOCK 0 STREAMS s $\r\n")

    assert fake_server.loop.timers == []


def test_an_earlier_deadline_moves_the_timer(fake_server: FakeServer) -> None:
    patient, hasty = fake_server.connect(), fake_server.connect()
    patient.says(b"XREAD BLOCK 5000 STREAMS s $\r\n")
    hasty.says(b"XREAD BLOCK 100 STREAMS s $\r\n")
    fake_server.loop.pass_ms(100)

    assert (hasty.received(), patient.received()) == (b"*-1\r\n", b"")
    fake_server.loop.pass_ms(4900)
    assert patient.received() == b"*-1\r\n"


def test_paused_requests_run_when_the_pause_is_over(fake_server: FakeServer) -> None:
    client, other = fake_server.connect(), fake_server.connect()
    other.says(b"CLIENT PAUSE 500 ALL\r\n")

    assert client.says(b"PING\r\nECHO a\r\n") == b""
    fake_server.loop.pass_ms(501)
    assert client.received() == b"+PONG\r\n$1\r\na\r\n"


def test_shutdown_stops_the_server_and_is_not_answered(fake_server: FakeServer) -> None:
    client, other = fake_server.connect(), fake_server.connect()

    assert client.says(b"PING\r\nSHUTDOWN NOSAVE\r\nPING\r\n") == b"+PONG\r\n"
    assert other.says(b"PING\r\n") == b""
    assert fake_server.stops == ["stop"]


def test_the_end_answers_what_was_read_and_then_closes_the_log(fake_server: FakeServer) -> None:
    client = fake_server.connect()
    client.sends(b"PING\r\n" * 2500)
    fake_server.turn.close()

    assert client.received() == b"+PONG\r\n" * 2500
    assert fake_server.log_writer.closed


def test_the_end_lets_out_what_the_log_held_back(fake_server: FakeServer) -> None:
    client = fake_server.connect()
    fake_server.log_writer.holds = True
    client.says(b"XADD s 1-0 f v\r\n")
    fake_server.turn.close()

    assert client.received() == b"$3\r\n1-0\r\n"


def test_nothing_reaches_the_log_after_the_end(fake_server: FakeServer) -> None:
    client = fake_server.connect()
    fake_server.turn.close()
    turns = fake_server.log_writer.turns
    client.connection.connection_lost(None)
    fake_server.loop.turn()

    assert fake_server.log_writer.turns == turns


def test_an_idle_client_is_closed_and_a_waiting_one_is_not() -> None:
    fake_server = FakeServer(timeout="10")
    idle, waiting = fake_server.connect(), fake_server.connect()
    waiting.says(b"XREAD BLOCK 0 STREAMS s $\r\n")
    fake_server.loop.pass_ms(11_500)
    close_idle(fake_server.turn, 10)

    assert (idle.transport.closed, waiting.transport.closed) == (True, False)
