"""Scripts, functions and transactions that take long: what others are told meanwhile, and how they end."""

import pytest

from penstock.clock import ManualClock
from tests.support.clock import NOW_MS
from tests.support.dialogue import NO_REPLY, Dialogue
from tests.support.late_script import Late, script
from tests.support.log import UnitLog

pytest.importorskip("lupa")


@pytest.fixture
def late(log: UnitLog) -> Late:
    return Late(log)


def test_others_are_refused_and_the_script_is_killed(late: Late) -> None:
    script(late.caller, "while true do pcall(function() while true do end end) end")

    assert str(late.other("PING")).startswith("BUSY Redis is busy running a script. You can only call SCRIPT KILL")
    assert str(late.other("FUNCTION KILL")).startswith("BUSY")
    assert late.other("MULTI", "DISCARD") == b"OK"
    assert late.other("SCRIPT KILL") == b"OK"
    late.finish()
    (answer,) = late.caller.arrived()
    assert str(answer).startswith("ERR Script killed by user with SCRIPT KILL... script: ")
    assert late.other("PING") == b"PONG"


def test_what_follows_a_multi_sent_while_the_server_was_busy_is_queued(late: Late) -> None:
    script(late.caller, "while true do end")

    assert late.other("MULTI") == b"OK"
    late.other.another()("SCRIPT KILL")
    late.finish()

    assert late.other("SET a 1") == b"QUEUED"
    assert late.other.another()("EXISTS a") == 0
    assert late.other("EXEC") == [b"OK"]


def test_a_discard_sent_while_the_server_was_busy_ends_the_transaction(late: Late) -> None:
    late.other("MULTI", "SET a 1")
    script(late.caller, "while true do end")

    assert late.other("DISCARD") == b"OK"
    late.other.another()("SCRIPT KILL")
    late.finish()

    assert late.other("GET a") is None
    assert str(late.other("EXEC")) == "ERR EXEC without MULTI"


def test_a_function_that_runs_is_shown_with_its_words_whatever_a_user_may_read(late: Late) -> None:
    code = b"#!lua name=lib\nredis.register_function('f', function() while true do end end)"
    late.caller.words(b"FUNCTION", b"LOAD", code)
    late.caller("ACL SETUSER u on nopass ~foo:* +@all", "ACL SETUSER v on nopass ~foo:* +@all -function")
    shown, hidden = late.other.another(), late.other.another()
    shown("AUTH u x")
    hidden("AUTH v x")

    late.caller("FCALL f 1 topsecret:1 hidden")

    assert shown("FUNCTION STATS")[1][3] == [b"FCALL", b"f", b"1", b"topsecret:1", b"hidden"]
    assert str(hidden("FUNCTION STATS")).startswith("NOPERM")
    assert late.other("FUNCTION KILL") == b"OK"
    late.finish()


def test_a_script_that_has_written_goes_on_to_its_end_and_is_one_unit(late: Late, log: UnitLog) -> None:
    script(late.caller, "redis.call('SET', 'a', '1') for i = 1, 1e7 do end redis.call('INCR', 'a') return 'done'")

    assert str(late.other("SCRIPT KILL")).startswith("UNKILLABLE")
    assert log.units == []
    late.finish()
    assert late.caller.arrived() == [b"done"]
    assert len(log.units) == 1
    assert late.other("GET a") == b"2"


def test_no_key_is_evicted_amid_the_changes_of_a_script(log: UnitLog) -> None:
    clock, used = ManualClock(NOW_MS), [0]
    late = Late(log, clock)
    late.engine.memory.reading = lambda: (used[0], used[0])
    late.caller("MSET a 1 b 2", "CONFIG SET maxmemory 1000000 maxmemory-policy allkeys-random")
    log.clear()
    script(late.caller, "redis.call('SET', 'c', '1') for i = 1, 1e7 do end redis.call('SET', 'd', '1')")
    used[0] = 2_000_000
    clock.advance(1000)

    assert str(late.other("GET a")).startswith("BUSY")
    assert log.units == []
    late.finish()
    assert log.units[0].count(b"SET\r\n") == 2


def test_a_client_that_leaves_while_the_server_is_busy_is_forgotten_afterwards(late: Late) -> None:
    gone = late.other.another()
    gone("WATCH a", "SUBSCRIBE c")
    script(late.caller, "while true do end")

    late.engine.server.disconnect(gone.session)
    late.engine.tick()
    late.other("SCRIPT KILL")
    late.finish()

    assert gone.session.id not in late.engine.clients.sessions
    assert late.engine.clients.watchers == {}


def test_a_function_is_killed_by_function_kill(late: Late) -> None:
    late.caller.words(
        b"FUNCTION", b"LOAD", b"#!lua name=l\nredis.register_function('f', function() while true do end end)"
    )
    late.caller("FCALL f 0")

    assert "FUNCTION KILL" in str(late.other("SCRIPT KILL"))
    assert late.other("FUNCTION STATS")[1][:4] == [b"name", b"f", b"command", [b"FCALL", b"f", b"0"]]
    assert late.other("FUNCTION KILL") == b"OK"
    late.finish()


def test_a_transaction_goes_on_when_its_script_is_over_and_is_one_unit(late: Late, log: UnitLog) -> None:
    waiting = late.caller.another()
    waiting("BLPOP l 0")
    late.caller("MULTI", "SET a 1", "RPUSH l x")
    script(late.caller, "while true do end")
    late.caller("INCR a")

    assert late.caller("EXEC") == NO_REPLY
    assert str(late.other("GET a")).startswith("BUSY")
    assert log.units == []
    assert late.other("SCRIPT KILL") == b"OK"
    late.finish()

    ((*first, killed, last),) = late.caller.arrived()
    assert (first, last) == ([b"OK", 1], 2)
    assert "Script killed by user" in str(killed)
    assert waiting.arrived() == [[b"l", b"x"]]
    assert [unit.count(b"MULTI") for unit in log.units] == [1, 0]


def test_of_a_transaction_each_script_may_take_long(late: Late) -> None:
    late.caller("MULTI")
    script(late.caller, "while true do end")
    script(late.caller, "while true do local again end")
    late.caller("SET a 1", "EXEC")

    for _ in range(2):
        late.over.clear()
        assert late.other("SCRIPT KILL") == b"OK"
        late.finish()

    ((*killed, last),) = late.caller.arrived()
    assert [("killed" in str(answer)) for answer in killed] == [True, True]
    assert last == b"OK"
    assert late.other("GET a") == b"1"


def test_a_transaction_goes_on_though_its_client_has_left(late: Late, log: UnitLog) -> None:
    gone = late.other.another()
    gone("MULTI", "SET a 1")
    script(gone, "while true do end")
    gone("INCR a", "EXEC")

    late.engine.server.disconnect(gone.session)
    late.other("SCRIPT KILL")
    late.finish()

    assert late.other("GET a") == b"2"
    assert len(log.units) == 1
    assert gone.session.id not in late.engine.clients.sessions


def test_a_transaction_goes_by_the_time_at_which_it_began(late: Late) -> None:
    late.caller("MULTI", "SET before 1 PX 60000")
    script(late.caller, "while true do end")
    late.caller("SET after 1 PX 60000", "EXEC")

    late.other("SCRIPT KILL")
    late.finish()

    assert late.other("PEXPIRETIME before") == late.other("PEXPIRETIME after")


def test_a_late_transaction_is_counted_shown_and_noted_like_any_other(late: Late) -> None:
    monitor = late.other.another()
    late.other("CONFIG SET slowlog-log-slower-than 20000")
    monitor("MONITOR")
    late.caller("MULTI")
    script(late.caller, "while true do end")
    late.caller("PING", "EXEC")
    late.other("SCRIPT KILL")
    late.finish()

    counted = late.engine.statistics.rows
    assert [(counted[name].calls, counted[name].failed) for name in ("EVAL", "EXEC", "PING")] == [
        (1, 1),
        (1, 0),
        (1, 0),
    ]
    assert late.caller.session.handled == 5
    assert [entry[3][0] for entry in late.other("SLOWLOG GET")] == [b"EVAL"]
    shown = [line.split(b'"')[1] for line in monitor.arrived()]
    assert shown == [b"MULTI", b"EVAL", b"SCRIPT", b"PING", b"EXEC"]


def test_exec_while_another_s_script_runs_gives_the_transaction_up(late: Late) -> None:
    late.other("WATCH a", "MULTI", "SET a 1")
    script(late.caller, "while true do end")

    assert str(late.other("EXEC")).startswith("EXECABORT Transaction discarded because of: BUSY")
    late.other("SCRIPT KILL")
    late.finish()

    assert str(late.other("EXEC")) == "ERR EXEC without MULTI"
    assert late.engine.clients.watchers == {}


def test_what_is_refused_meanwhile_is_counted_by_its_command(late: Late) -> None:
    script(late.caller, "while true do end")
    late.other("GET a", "SCRIPT KILL")
    late.finish()

    assert late.engine.statistics.rows["GET"].rejected == 1


def test_time_passes_once_a_script_has_made_the_server_busy(late: Late) -> None:
    script(
        late.caller, "local first = redis.call('TIME')[2] repeat until redis.call('TIME')[2] ~= first return 'later'"
    )
    late.finish()

    assert late.caller.arrived() == [b"later"]


def test_nothing_is_killed_where_nothing_runs(dialogue: Dialogue) -> None:
    assert str(dialogue("SCRIPT KILL")) == "NOTBUSY No scripts in execution right now."
