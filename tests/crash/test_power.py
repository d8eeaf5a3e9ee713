"""A loss of power: what was answered and synced is there, and what is left is what once was, whole."""

import errno
from typing import Any

import pytest

from tests.crash.powered import Peer, PoweredServer
from tests.crash.scenarios import Life
from tests.support.memory_disk import MemoryDisk
from tests.support.seeds import seeds

POLICIES = ["always", "everysec"]
STEPS = 60


def live_twice(seed: Any, policy: Any, faults: Any) -> Any:
    life = Life(seed, policy, faults)
    for _ in range(2):
        life.live(STEPS)
        life.lose_power()
    return life


def live_and_recover(seed: Any, policy: Any) -> Any:
    life = Life(seed, policy, True)
    for _ in range(2):
        life.live(STEPS, ends_amid=False)
        life.recover()
    return life


@pytest.mark.parametrize("faults", [False, True], ids=["sound", "faulty"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", seeds(3, 50))
def test_a_loss_of_power_leaves_everything_certain_and_nothing_half_done(seed: int, policy: Any, faults: bool) -> None:
    assert live_twice(seed, policy, faults).answers


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", seeds(3, 50))
def test_a_disk_that_recovers_gets_everything_that_was_confirmed(seed: int, policy: Any) -> None:
    assert live_and_recover(seed, policy).answers


# -- trouble, through connections -------------------------------------------------------------------------------------

MISCONF = "MISCONF Errors writing to the AOF file: "
FULL = MISCONF + "No space left on device"
BROKEN = MISCONF + "Input/output error"


@pytest.fixture
def server() -> Any:
    return PoweredServer(MemoryDisk())


@pytest.fixture
def everysec() -> Any:
    return PoweredServer(MemoryDisk(), appendfsync="everysec")


def again(disk: Any) -> Any:
    """A client of what a restart finds after a loss of power."""
    return Peer(PoweredServer(disk.lose_power()))


def loses_connection(server: Any, line: str) -> None:
    """A client asks for a change, and loses its connection instead of a reply."""
    client = Peer(server)
    client.send(line.encode().split())
    server.loop.turn()
    assert (client.read(), client.is_closed) == ([], True)


def words(*lines: Any) -> Any:
    return [line.encode().split() for line in lines]


def shown(replies: Any) -> Any:
    return [str(reply) if isinstance(reply, Exception) else reply for reply in replies]


def test_only_clients_that_wrote_in_a_turn_lose_their_connection_when_its_write_fails(server: Any) -> None:
    writer, reader = Peer(server), Peer(server)
    server.disk.failures["write"] = [errno.ENOSPC]
    writer.send(*words("GET a", "SET a 1", "GET a"))
    reader.send(*words("GET a"))
    server.loop.turn()

    assert (writer.read(), writer.is_closed) == ([None], True)
    assert (reader.read(), reader.is_closed) == ([b"1"], False)


def test_everysec_confirms_what_was_made_when_its_write_failed_and_refuses_what_comes_behind(everysec: Any) -> None:
    writer = Peer(everysec)
    everysec.disk.failures["write"] = [errno.ENOSPC]
    assert writer.says("SET a 1") == b"OK"
    assert shown([writer.says("SET b 1")]) == [FULL]
    everysec.later(1100)
    everysec.finish_syncs()
    assert [again(everysec.disk).says(f"GET {key}") for key in "ab"] == [b"1", None]


def test_in_trouble_writers_are_refused_readers_go_on_and_ping_says_so(server: Any) -> None:
    client = Peer(server)
    client.says("SET a 1")
    server.disk.failures["write"] = [errno.EIO] * 9
    loses_connection(server, "SET a 2")

    client.send(*words("SET a 3", "PING", "GET a", "XLEN s"))
    server.loop.turn()
    assert shown(client.read()) == [BROKEN, BROKEN, b"2", 0]


def test_a_reader_that_waited_loses_its_connection_too_when_its_delivery_cannot_be_logged(server: Any) -> None:
    writer, waiting = Peer(server), Peer(server)
    writer.says("XGROUP CREATE s g 0 MKSTREAM")
    waiting.send(*words("XREADGROUP GROUP g alice BLOCK 0 STREAMS s >"))
    server.loop.turn()
    server.disk.failures["write"] = [errno.ENOSPC]
    writer.send(*words("XADD s 1-0 f v"))
    server.loop.turn()

    assert writer.read() + waiting.read() == []
    assert writer.is_closed and waiting.is_closed


def test_a_disk_that_works_again_takes_what_was_not_confirmed(server: Any) -> None:
    client = Peer(server)
    server.disk.shortest, server.disk.failures["write"] = 7, [0, errno.ENOSPC]
    loses_connection(server, "SET a 1")
    server.disk.shortest = None
    server.later(1100)

    assert client.says("SET b 2") == b"OK"
    assert [again(server.disk).says(f"GET {key}") for key in "ab"] == [b"1", b"2"]


def test_after_a_failed_sync_only_a_fresh_base_lets_writers_go_on(server: Any) -> None:
    client = Peer(server)
    client.says("SET a 1")
    server.disk.failures["sync"] = [errno.EIO]
    loses_connection(server, "SET a 2")
    server.later(1100)
    assert shown([client.says("SET a 3")]) == [BROKEN]
    assert again(server.disk).says("GET a") == b"1"

    server.finish_rewriting()
    assert client.says("SET b 1") == b"OK"
    assert [again(server.disk).says(f"GET {key}") for key in "ab"] == [b"2", b"1"]


def test_a_disk_that_refuses_the_fresh_base_is_asked_again(server: Any) -> None:
    client = Peer(server)
    server.disk.failures["sync"] = [errno.EIO]
    loses_connection(server, "SET a 1")
    server.later(100)
    server.disk.failures["create"] = [errno.ENOSPC]
    server.finish_rewriting()
    assert shown([client.says("SET a 2")]) == [BROKEN]

    server.later(3000)
    server.finish_rewriting()
    assert client.says("SET b 1") == b"OK"
    assert [again(server.disk).says(f"GET {key}") for key in "ab"] == [b"1", b"1"]


def test_a_background_sync_that_fails_refuses_writers_until_there_is_a_fresh_base(everysec: Any) -> None:
    client = Peer(everysec)
    client.says("SET a 1")
    everysec.later(1000)  # a sync begins
    everysec.later(1000)  # and takes long
    everysec.disk.failures["sync"] = [errno.EIO]
    client.send(*words("SET a 2"))
    everysec.loop.turn()
    assert client.read() == []

    everysec.finish_syncs()
    assert client.read() == [b"OK"]
    assert shown([client.says("SET a 3")]) == [BROKEN]
    everysec.finish_rewriting()
    assert client.says("SET b 1") == b"OK"
    everysec.later(1000)
    everysec.finish_syncs()
    assert [again(everysec.disk).says(f"GET {key}") for key in "ab"] == [b"2", b"1"]


def test_writers_wait_for_a_fresh_base_where_either_of_two_manifests_may_be_found(everysec: Any) -> None:
    client = Peer(everysec)
    client.says("SET a 1")
    everysec.disk.failures["sync_directory"] = [0, errno.EIO]
    client.says("BGREWRITEAOF")
    everysec.finish_syncs()

    assert shown([client.says("SET b 1")]) == [BROKEN]
    everysec.later(3000)
    everysec.finish_rewriting()
    assert client.says("SET b 2") == b"OK"
    assert Peer(PoweredServer(everysec.disk.restart())).says("GET b") == b"2"


def test_a_rewriting_that_fails_when_it_has_moved_on_begins_the_new_file_with_a_select(server: Any) -> None:
    client = Peer(server)
    client.says("SELECT 1")
    client.says("SET a 1")
    failing = {"increment-opened"}

    def reached(point: Any) -> None:
        if point in failing:
            failing.remove(point)
            raise OSError(errno.EIO, "broken")

    server.disk.on_reach = reached
    client.says("BGREWRITEAOF")
    client.says("SET b 1")

    after = again(server.disk)
    after.says("SELECT 1")
    assert [after.says(f"GET {key}") for key in "ab"] == [b"1", b"1"]


def test_one_sync_serves_fifty_connections(server: Any) -> None:
    peers = [Peer(server) for _ in range(50)]
    before = server.disk.points.count("sync")
    for number in range(20):
        for peer in peers:
            peer.send([b"XADD", b"s", b"*", b"n", b"%d" % number])
        server.loop.turn()

    assert [len(peer.read()) for peer in peers] == [20] * 50
    assert server.disk.points.count("sync") - before == 20


def test_a_sync_that_fails_during_a_rewriting_needs_another_base(server: Any) -> None:
    client = Peer(server)
    client.says("SET a 1")
    client.says("BGREWRITEAOF")
    server.disk.failures["sync"] = [errno.EIO]
    loses_connection(server, "SET b 1")

    server.finish_rewriting()
    assert shown([client.says("SET c 1")]) == [BROKEN]
    server.later(100)
    server.finish_rewriting()
    assert client.says("SET c 2") == b"OK"
    assert [again(server.disk).says(f"GET {key}") for key in "abc"] == [b"1", b"1", b"2"]


def test_part_of_a_unit_is_gone_for_good_before_anything_is_written_in_its_place(everysec: Any) -> None:
    client = Peer(everysec)
    everysec.disk.shortest, everysec.disk.failures["write"] = 20, [0, errno.ENOSPC]
    client.says("SET a 1")
    everysec.disk.shortest = None
    calls: list[Any] = []
    everysec.disk.call = calls.append
    everysec.later(1000)

    assert calls[:3] == ["truncate", "sync", "write"]
    everysec.finish_syncs()
    assert client.says("SET b 1") == b"OK"


def test_a_cut_that_cannot_be_made_safe_needs_a_fresh_base(everysec: Any) -> None:
    client = Peer(everysec)
    everysec.disk.shortest = 20
    everysec.disk.failures |= {"write": [0, errno.ENOSPC], "truncate": [errno.EIO]}
    client.says("SET a 1")
    everysec.disk.shortest = None
    everysec.disk.failures["sync"] = [errno.EIO]
    everysec.later(1000)
    assert shown([client.says("SET b 1")]) == [BROKEN]

    everysec.later(1000)
    everysec.finish_rewriting()
    assert client.says("SET b 2") == b"OK"
    assert [again(everysec.disk).says(f"GET {key}") for key in "a"] == [b"1"]


# -- a rewriting's end ------------------------------------------------------------------------------------------------


def test_requests_are_answered_while_a_thread_swaps_the_files(server: Any) -> None:
    peer = Peer(server)
    peer.says("SET a 1")
    peer.says("BGREWRITEAOF")
    server.rewriting.write()
    server.turn.look_after_log()

    assert server.threads.given, "the swap waits for its thread"
    assert peer.says("SET b 2") == b"OK"
    assert again(server.disk).says("MGET a b") == [b"1", b"2"]

    server.finish_syncs()
    assert peer.says("SET c 3") == b"OK"
    assert again(server.disk).says("MGET a b c") == [b"1", b"2", b"3"]
    assert server.durability.log.base_size > 0


def test_the_next_rewriting_waits_until_the_files_of_the_last_are_deleted(server: Any) -> None:
    peer = Peer(server)
    peer.says("BGREWRITEAOF")
    server.rewriting.write()
    server.turn.look_after_log()
    server.threads.run()  # the swap
    server.turn.look_after_log()
    peer.says("BGREWRITEAOF")
    assert server.threads.given and not server.rewriting.pid

    server.finish_syncs()
    assert server.rewriting.pid
    assert b"type h" not in server.disk.files["/tmp/appendonlydir/appendonly.aof.manifest"].seen


def test_a_swap_that_fails_in_its_thread_leaves_everything_as_it_was(server: Any) -> None:
    peer = Peer(server)
    peer.says("SET a 1")
    peer.says("BGREWRITEAOF")
    server.rewriting.write()
    server.turn.look_after_log()
    server.disk.failures["rename"] = [errno.EIO]
    server.finish_syncs()

    assert "aof_last_bgrewrite_status:err" in peer.says("INFO persistence").decode()
    assert peer.says("SET b 2") == b"OK"
    assert again(server.disk).says("MGET a b") == [b"1", b"2"]


# -- a log that begins ------------------------------------------------------------------------------------------------


def test_waitaof_and_a_served_reader_are_withheld_with_the_change_and_a_push_is_not(server: Any) -> None:
    writer, waiting, listener = Peer(server), Peer(server), Peer(server)
    listener.says("SUBSCRIBE news")
    waiting.send(*words("BLPOP list 0"))
    server.loop.turn()
    server.durability.begin_anew()
    writer.send(*words("RPUSH list a", "WAITAOF 1 0 0", "PUBLISH news b"))
    server.later(300)
    before = (writer.read(), waiting.read(), listener.read())
    server.finish_rewriting()
    server.later(200)

    assert before == ([], [], [])
    assert (writer.read(), waiting.read()) == ([1, [1, 0], 1], [[b"list", b"a"]])
    assert listener.read() == [[b"message", b"news", b"b"]]
    assert Peer(PoweredServer(server.disk.lose_power())).says("EXISTS list") == 0


def test_a_second_rewrite_is_refused_while_a_log_begins_and_one_that_is_wanted_loses_nothing(server: Any) -> None:
    writer, admin = Peer(server), Peer(server)
    server.durability.begin_anew()
    writer.send(*words("SET a 1"))
    server.later(100)
    assert "already in progress" in str(admin.says("BGREWRITEAOF"))
    admin.says("CONFIG SET aof-compat-version 8.0")  # which has one begun behind the one that runs
    server.finish_rewriting()
    assert writer.read() == [b"OK"]

    server.later(300)
    server.finish_rewriting()
    assert again(server.disk).says("GET a") == b"1"
