"""DEBUG and MEMORY."""

import pytest

from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, settings_with
from tests.support.replies_beside_redis import engine_for_debugging, replies_of_both

KINDS = [
    "string", "integer", "double", "null", "array", "set", "map", "attrib", "push", "verbatim", "true", "false",
    "bignum", "foo",
]  # fmt: skip

ALIKE = {
    "unknown": [
        "DEBUG", "DEBUG FOO", "DEBUG JMAP", "DEBUG STRINGMATCH-LEN 10 a*", "DEBUG HELP x", "DEBUG SLEEP",
        "DEBUG SLEEP 0 1", "DEBUG OBJECT", "DEBUG OBJECT k fast", "DEBUG DIGEST x", "DEBUG CHANGE-REPL-ID x",
    ],
    "sleep": ["DEBUG SLEEP x", "DEBUG SLEEP -1", "DEBUG SLEEP 0.001"],
    "protocol": ["DEBUG PROTOCOL", *[f"DEBUG PROTOCOL {kind}" for kind in KINDS]],
    "accepted": [
        "DEBUG SET-ACTIVE-EXPIRE 1", "DEBUG CHANGE-REPL-ID", "DEBUG QUICKLIST-PACKED-THRESHOLD 100",
        "DEBUG QUICKLIST-PACKED-THRESHOLD x", "DEBUG QUICKLIST-PACKED-THRESHOLD 5g", "DEBUG REPLYBUFFER resizing 1",
        "DEBUG REPLYBUFFER foo 1", "DEBUG REPLYBUFFER peak-reset-time never", "DEBUG REPLYBUFFER peak-reset-time 100",
        "DEBUG REPLYBUFFER peak-reset-time x", "DEBUG LOG hi", "DEBUG DICT-RESIZING 1", "DEBUG CLIENT-EVICTION",
    ],
    "values": [
        "FLUSHALL", "SET k v", "XADD s 1-0 f v", "DEBUG OBJECT nokey", "DEBUG LISTPACK nokey", "DEBUG LISTPACK s",
        "DEBUG QUICKLIST s", "DEBUG HTSTATS-KEY nokey", "DEBUG HTSTATS-KEY s", "DEBUG SDSLEN nokey", "DEBUG SDSLEN s",
    ],
    "encodings": [
        "FLUSHALL", "RPUSH small a", "DEBUG LISTPACK small", "DEBUG QUICKLIST small", "HSET h f v", "DEBUG LISTPACK h",
        "DEBUG HTSTATS-KEY h", f"RPUSH large {'x' * 9000}", "DEBUG LISTPACK large", "DEBUG QUICKLIST large",
        "DEBUG QUICKLIST large 1", f"HSET h f {'v' * 65}", "DEBUG LISTPACK h", "SADD s 1", "DEBUG LISTPACK s",
        "DEBUG KEYSIZES-HIST-ASSERT 1", "DEBUG KEYSIZES-HIST-ASSERT x", "DEBUG REPLY-COPY-AVOIDANCE 1",
    ],
    "tables": ["FLUSHALL", "DEBUG HTSTATS 0", "DEBUG HTSTATS 0 full", "DEBUG HTSTATS x", "DEBUG HTSTATS 99"],
    "errors": ["DEBUG ERROR 'foo bar'", "DEBUG ERROR ''", "DEBUG ERROR -foo", "DEBUG ERROR"],
    "populate": [
        "FLUSHALL", "DEBUG POPULATE 3", "GET key:2", "DEBUG POPULATE 2 pre 10", "GET pre:0", "DEBUG POPULATE 1 cut 2",
        "GET cut:0", "DEBUG POPULATE x", "DEBUG POPULATE -1", "DEBUG POPULATE 1 a -1", "DEBUG POPULATE 1 a 1 1",
        "DBSIZE",
    ],
    "digests of nothing": ["FLUSHALL", "DEBUG DIGEST", "DEBUG DIGEST-VALUE nokey", "DEBUG DIGEST-VALUE"],
    "memory": [
        "MEMORY", "MEMORY FOO", "MEMORY USAGE", "MEMORY USAGE nokey", "MEMORY USAGE nokey SAMPLES",
        "MEMORY USAGE nokey SAMPLES x", "MEMORY USAGE nokey SAMPLES -1", "MEMORY USAGE nokey FOO 1",
        "MEMORY USAGE nokey SAMPLES 0 SAMPLES 1", "MEMORY STATS x", "MEMORY PURGE",
    ],
}  # fmt: skip


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("lines", ALIKE.values(), ids=ALIKE.keys())
def test_debug_and_memory_answer_what_redis_answers(reference_port: int, lines: list[str], resp: int) -> None:
    theirs, ours = replies_of_both(reference_port, lines, resp)

    assert ours == theirs


@pytest.fixture
def debugger() -> Dialogue:
    return Dialogue(engine_for_debugging())


def test_debug_is_refused_unless_it_is_allowed(dialogue: Dialogue) -> None:
    assert str(dialogue("DEBUG SLEEP 0")).startswith("ERR DEBUG command not allowed. If the enable-debug-command")


@pytest.mark.parametrize(("address", "allowed"), [("127.0.0.1:1", True), ("10.0.0.1:1", False), ("[::1]:1", True)])
def test_debug_may_be_allowed_to_local_clients_alone(address: str, allowed: bool) -> None:
    settings = settings_with(enable_debug_command="local")
    engine = make_engine(settings=settings)
    client = engine.server.connect(address)

    assert (engine.handle(client, [b"DEBUG", b"SLEEP", b"0"]) == b"+OK\r\n") is allowed


def test_sleep_stops_the_clock_of_all_clients(debugger: Dialogue) -> None:
    before = debugger.engine.clock.now_us()
    debugger("DEBUG SLEEP 1.5")

    assert debugger.engine.clock.now_us() - before == 1_500_000


def test_object_tells_how_a_value_is_kept(debugger: Dialogue) -> None:
    debugger("SET n 12", "XADD s 1-0 f v")

    assert b"refcount:1 encoding:int serializedlength:" in debugger.raw("DEBUG OBJECT n")
    assert b"refcount:1 encoding:stream serializedlength:" in debugger.raw("DEBUG OBJECT s")


def test_active_expiry_can_be_turned_off(debugger: Dialogue) -> None:
    debugger("DEBUG SET-ACTIVE-EXPIRE 0", "SET k v PX 1")
    debugger("DEBUG SLEEP 1")
    debugger.engine.tick()

    assert debugger("DBSIZE") == 1


FILL = ("SET a 1", "XADD s 1-0 f v", "XGROUP CREATE s g 0", "XREADGROUP GROUP g c STREAMS s >")


def test_the_digest_is_that_of_the_contents(debugger: Dialogue) -> None:
    one = debugger(*FILL, "DEBUG DIGEST")
    other = debugger("XACK s g 1-0", "DEBUG DIGEST")
    again = debugger("FLUSHALL", *reversed(FILL), *FILL, "DEBUG DIGEST")

    assert one == again != other


def test_reload_keeps_everything(debugger: Dialogue) -> None:
    debugger(*FILL)
    before = debugger("DEBUG DIGEST")

    assert debugger("DEBUG RELOAD") == b"OK"
    assert debugger("DEBUG DIGEST") == before


def test_populated_keys_stay_if_they_were_there(debugger: Dialogue) -> None:
    debugger("SET key:0 mine", "DEBUG POPULATE 2")

    assert debugger("MGET key:0 key:1") == [b"mine", b"value:1"]


# -- MEMORY -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [10, 100_000])
def test_usage_grows_with_the_value(dialogue: Dialogue, size: int) -> None:
    dialogue.words(b"SET", b"k", bytes(size))

    usage = dialogue("MEMORY USAGE k")

    assert isinstance(usage, int)
    assert size < usage < size * 1.1 + 400


def test_usage_of_a_stream_counts_its_entries(dialogue: Dialogue) -> None:
    dialogue("XADD s 1-0 f " + "v" * 1000, "XADD s 2-0 f " + "v" * 1000)

    assert dialogue("MEMORY USAGE s SAMPLES 0") > 2000


SINCE_8_12 = [b"overhead.hashtable.blessed"]


def test_stats_have_the_fields_of_redis(reference_port: int) -> None:
    (_, _, theirs), (_, _, ours) = replies_of_both(reference_port, ["FLUSHALL", "SET a 1", "MEMORY STATS"], 2)

    assert [name for name in names(ours) if name not in SINCE_8_12] == names(theirs)


def names(stats: bytes) -> list[bytes]:
    return [word for word in stats.split(b"\r\n") if b"." in word and word[:1].isalpha()]


def test_the_doctor_and_the_allocator_have_something_to_say(dialogue: Dialogue) -> None:
    assert isinstance(dialogue("MEMORY DOCTOR"), bytes)
    assert b"blocks in use" in dialogue.raw("MEMORY MALLOC-STATS")


def test_a_paused_cron_leaves_what_has_expired(debugger: Dialogue) -> None:
    debugger("DEBUG PAUSE-CRON 1", "SET k v PX 1")
    debugger("DEBUG SLEEP 1")
    debugger.engine.tick()
    while_paused = debugger("DBSIZE")
    debugger("DEBUG PAUSE-CRON 0")
    debugger.engine.tick()

    assert (while_paused, debugger("DBSIZE")) == (1, 0)


REFUSED_IN_SCRIPTS = "ERR This Redis command is not allowed from script"


def test_scripts_may_be_let_call_commands_about_the_server(debugger: Dialogue) -> None:
    pytest.importorskip("lupa")
    call = [b"EVAL", b"return redis.call('CONFIG', 'SET', 'maxmemory', '5000000')", b"0"]
    before = debugger.words(*call)
    debugger("DEBUG SET-DISABLE-DENY-SCRIPTS 1")
    meanwhile = debugger.words(*call)
    debugger("DEBUG SET-DISABLE-DENY-SCRIPTS 0")

    assert REFUSED_IN_SCRIPTS.encode() in before
    assert (meanwhile, debugger("CONFIG GET maxmemory")) == (b"+OK\r\n", [b"maxmemory", b"5000000"])
    assert debugger.words(*call) == before


@pytest.mark.parametrize("command", ["MULTI", "SUBSCRIBE c", "EVAL return(1) 0", "CLIENT REPLY OFF", "AUTH x"])
def test_no_script_changes_what_its_session_is(debugger: Dialogue, command: str) -> None:
    pytest.importorskip("lupa")
    words = ", ".join(f"'{word}'" for word in command.split())
    debugger("DEBUG SET-DISABLE-DENY-SCRIPTS 1")

    assert REFUSED_IN_SCRIPTS.encode() in debugger.words(b"EVAL", f"return redis.call({words})".encode(), b"0")


def test_a_log_that_is_not_there_is_not_loaded_and_nothing_is_lost(debugger: Dialogue) -> None:
    debugger("SET k v")

    assert str(debugger("DEBUG LOADAOF")) == "ERR Error trying to load the AOF files, check server logs."
    assert debugger("GET k") == b"v"
