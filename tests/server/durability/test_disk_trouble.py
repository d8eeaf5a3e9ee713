"""A disk that is full, stalls, fails or forgets, and threads that cannot be started."""

import errno
from collections.abc import Callable
from typing import Any

import pytest

from penstock.engine.replication import role
from penstock.engine.replication.stream_applier import StreamApplier
from penstock.storage.aof.append_log import LEAST_ROOM
from tests.server.durability.servers import INCREMENT, LARGE, MISCONF, Server
from tests.support.memory_disk import OUT_OF_MEMORY, MemoryDisk


@pytest.mark.parametrize("call", ["write", "sync"])
def test_always_does_not_confirm_a_change_with_a_failed_call(server: Server, call: str) -> None:
    server.disk.failures[call] = [errno.EIO]
    server.turn("SET a 1")
    assert server.turns == ["unknown"]


def test_everysec_confirms_a_change_with_a_failed_write_and_writes_it_later(everysec: Server) -> None:
    everysec.disk.failures["write"] = [errno.EIO]
    everysec.turn("SET a 1")
    assert everysec.turns == ["sent"]
    assert str(everysec.turn("SET b 1")).startswith("MISCONF")
    assert any("confirmed, and kept in memory until they can be written" in line for line in everysec.said)

    everysec.later(1000)
    assert everysec.turn("SET b 2") == b"OK"
    assert everysec.again().client("MGET a b") == [b"1", b"2"]


def test_in_trouble_writers_are_refused_and_readers_go_on(server: Server) -> None:
    server.disk.failures["write"] = [errno.ENOSPC]
    server.turn("SET a 1")

    assert str(server.turn("SET b 1")) == (MISCONF + b"No space left on device").decode()
    assert str(server.turn("PING")).startswith("MISCONF")
    assert server.turn("GET a") == b"1"
    assert server.turns[1:] == ["sent", "sent", "sent"]
    assert "aof_last_write_status:err\r\n" in server.engine.persistence.info()


def test_a_full_disk_that_is_emptied_ends_the_trouble(server: Server) -> None:
    server.disk.room = 0
    server.fill("a")
    assert str(server.turn("SET b 1")).encode() == MISCONF + b"No space left on device"
    server.disk.room = None
    server.later(1000)

    assert server.turn("SET b 2") == b"OK"
    again = server.again(power=True)
    assert [again.client("GET a"), again.client("GET b")] == [LARGE, b"2"]


def test_a_replica_on_a_full_disk_keeps_a_part_of_its_masters_stream_only(everysec: Server) -> None:
    log = everysec.durability.log
    assert log is not None
    everysec.durability.most_kept = 5000
    everysec.disk.room, everysec.disk.reserves = 0, False
    role.follow(everysec.engine.server, "127.0.0.1", 7001)
    applier = StreamApplier(everysec.engine, 0, everysec.said.append)
    kept = []
    for number in range(300):
        applier.apply([[b"SET", b"k", b"%10000d" % number]])
        everysec.turn()
        everysec.later(1000)
        everysec.rewriting.write()
        everysec.threads.run()
        kept.append(log.buffered)
    assert 5000 < max(kept) < 1_000_000  # a change a second, and a base is begun once a minute at least

    everysec.disk.room = None
    everysec.later(60_000)
    everysec.finish_rewriting()
    assert everysec.again(power=True).client("GET k") == b"%10000d" % 299


def test_a_full_disk_is_known_before_a_change_is_made(server: Server) -> None:
    server.disk.room = 0
    server.fill("a")
    assert str(server.turn("SET b 1")).encode() == MISCONF + b"No space left on device"

    assert server.turns == ["sent"] * 4
    assert server.turn("GET b") is None
    assert server.again(power=True).client("EXISTS a b") == 1


def test_room_is_reserved_rarely_and_given_back_at_the_end(server: Server) -> None:
    calls = server.disk.points.count("reserve")
    for _ in range(100):
        server.turn("SET a 1")
    assert server.disk.points.count("reserve") == calls
    node = server.disk.files[INCREMENT]
    assert node.taken > len(node.seen)

    server.durability.close()
    assert node.taken == len(node.seen)


def test_room_is_reserved_for_the_file_that_a_rewrite_begins_and_given_back_behind_the_old_one(server: Server) -> None:
    server.turn("SET a 1")
    old = server.disk.files[INCREMENT]
    server.turn("BGREWRITEAOF")
    assert old.taken == len(old.seen)
    assert server.disk.files[INCREMENT.replace(".1.", ".2.")].taken == LEAST_ROOM


def test_a_rewrite_makes_room_on_a_full_disk(server: Server) -> None:
    server.fill("a")
    server.fill("a")
    server.disk.room = 0
    server.fill("a")
    assert str(server.turn("SET b 1")).startswith("MISCONF")
    server.turn("BGREWRITEAOF")
    server.finish_rewriting()
    server.later(1000)

    assert server.turn("SET b 2") == b"OK"
    assert server.again(power=True).client("MGET a b") == [LARGE, b"2"]


def test_a_file_system_that_reserves_nothing_is_told_once_and_refuses_what_comes_behind_the_full_disk() -> None:
    disk = MemoryDisk()
    disk.reserves = False
    server = Server(disk, appendfsync="everysec")
    server.turn("BGREWRITEAOF")
    server.finish_rewriting()
    server.disk.room = 0
    assert server.turn("SET a 1") == b"OK"
    assert str(server.turn("SET b 1")).startswith("MISCONF")
    assert len([line for line in server.said if "cannot reserve room" in line]) == 1


def test_a_sync_that_failed_is_over_with_a_fresh_base_only(server: Server) -> None:
    server.disk.failures["sync"] = [errno.EIO]
    server.turn("SET a 1")
    assert str(server.turn("SET b 1")).startswith("MISCONF")
    server.finish_rewriting()
    assert server.turn("SET b 2") == b"OK"

    again = server.again(power=True)
    assert [again.client("GET a"), again.client("GET b")] == [b"1", b"2"]


def test_a_background_sync_that_fails_refuses_writers(everysec: Server) -> None:
    everysec.turn("SET a 1")
    everysec.disk.failures["sync"] = [errno.EIO]
    everysec.later(1000)
    everysec.threads.run()
    everysec.durability.cron()
    assert str(everysec.turn("SET b 1")).startswith("MISCONF")


def test_writers_are_refused_while_no_thread_can_be_started_to_sync(everysec: Server) -> None:
    everysec.turn("SET a 1")
    everysec.threads.refusal = RuntimeError("can't start new thread")
    everysec.later(1000)

    assert str(everysec.turn("SET b 1")).encode() == MISCONF + b"can't start new thread"
    assert everysec.turn("GET a") == b"1"


@pytest.mark.parametrize("refusal", [RuntimeError("can't start new thread"), MemoryError()])
def test_writers_are_served_again_once_a_sync_has_worked(everysec: Server, refusal: MemoryError | RuntimeError) -> None:
    everysec.turn("SET a 1")
    everysec.threads.refusal = refusal
    everysec.later(1000)
    everysec.later(1000)
    everysec.threads.refusal = None
    everysec.later(1000)
    assert str(everysec.turn("SET b 1")).startswith("MISCONF")

    everysec.threads.run()
    everysec.durability.cron()
    assert everysec.turn("SET b 2") == b"OK"
    assert everysec.again(power=True).client("GET a") == b"1"


def out_of_memory(wanted: str) -> Callable[..., Any]:
    def reach(point: str) -> None:
        if point == wanted:
            raise MemoryError

    return reach


def test_a_thread_that_runs_out_of_memory_before_it_syncs_is_tried_again(everysec: Server) -> None:
    everysec.turn("SET a 1")
    everysec.disk.on_reach = out_of_memory("sync")
    everysec.later(1000)
    everysec.threads.run()
    everysec.durability.cron()
    assert str(everysec.turn("SET b 1")).encode() == MISCONF + b"Cannot allocate memory"

    everysec.disk.on_reach = None
    everysec.later(1000)
    everysec.threads.run()
    everysec.durability.cron()
    assert everysec.turn("SET b 2") == b"OK"
    assert everysec.again(power=True).client("GET a") == b"1"


def test_a_sync_with_an_unknown_end_is_not_trusted(everysec: Server) -> None:
    everysec.turn("SET a 1")
    everysec.disk.failures["sync"] = [OUT_OF_MEMORY]
    everysec.later(1000)
    everysec.threads.run()
    everysec.durability.cron()
    assert str(everysec.turn("SET b 1")).startswith("MISCONF")
    assert everysec.durability.log is not None and everysec.durability.log.writes_held

    everysec.finish_rewriting()
    assert everysec.turn("SET b 2") == b"OK"


def test_files_are_swapped_although_no_thread_can_be_started(server: Server) -> None:
    server.turn("SET a 1", "SET a 2", "BGREWRITEAOF")
    server.threads.refusal = RuntimeError("can't start new thread")
    server.finish_rewriting()

    assert "aof_rewrites:1\r\n" in server.engine.persistence.info()
    assert server.again(power=True).client("GET a") == b"2"
