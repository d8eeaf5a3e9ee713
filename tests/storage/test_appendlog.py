"""The log's files: how they are found, written, synced, rewritten, on a disk that fails and forgets."""

import copy
import errno
import os
import random
from pathlib import Path

import pytest

from penstock.errors import UsageError
from penstock.storage.aof.append_log import LEAST_ROOM, TURNS_OF_ROOM, AppendLog
from penstock.storage.aof.disk import SystemDisk, SystemFile
from penstock.storage.aof.log_directory import MANIFEST_WRITTEN, LogDirectory, write_all
from tests.support.memory_disk import MemoryDisk, MemoryNode

ROOT = "/data"
DIRECTORY = "/data/appendonlydir"
MANIFEST = DIRECTORY + "/appendonly.aof.manifest"
FIRST = DIRECTORY + "/appendonly.aof.1.incr.aof"


def opened(disk: SystemDisk | MemoryDisk, root: str = ROOT) -> AppendLog:
    """The log of a directory, before anything is loaded."""
    log = AppendLog(LogDirectory(disk, root, "appendonlydir", "appendonly.aof"))
    log.directory.open()
    return log


def started(disk: SystemDisk | MemoryDisk, root: str = ROOT) -> AppendLog:
    log = opened(disk, root)
    log.start()
    return log


def content(log: AppendLog) -> bytes:
    """The bytes of all files that make up the log."""
    directory = log.directory
    paths = [directory.path_of(file) for file in directory.manifest.files()]
    return b"".join(directory.disk.read(path, 0, directory.disk.size(path)) for path in paths)


def put(disk: MemoryDisk, path: str, text: bytes) -> None:
    node = disk.files[path] = disk.safe_files[path] = MemoryNode()
    node.seen, node.safe = bytearray(text), text


def write_base(log: AppendLog, lines: bytes) -> None:
    """What the child of a rewrite does."""
    file = log.directory.disk.create(log.directory.temporary_base(1))
    write_all(file, lines)
    file.sync()
    file.close()


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


@pytest.fixture
def log(disk: MemoryDisk) -> AppendLog:
    return started(disk)


# -- the start --------------------------------------------------------------------------------------------------------


def test_a_fresh_log_has_the_files_that_redis_makes(tmp_path: Path) -> None:
    started(SystemDisk(), str(tmp_path)).close()

    names = sorted(path.name for path in (tmp_path / "appendonlydir").iterdir())
    assert names == [
        "appendonly.aof.1.base.aof",
        "appendonly.aof.1.incr.aof",
        "appendonly.aof.manifest",
        "penstock.lock",
    ]


def test_a_log_goes_on_where_it_ended(disk: MemoryDisk) -> None:
    first = started(disk)
    first.append(b"one ")
    first.write()

    second = started(disk.restart())
    second.append(b"two")
    second.write()

    assert content(second) == b"one two"
    assert second.total_size == 7


def test_what_a_killed_process_wrote_is_safe_once_the_next_one_has_loaded_it(disk: MemoryDisk) -> None:
    first = started(disk)
    first.append(b"one")
    first.write()

    second = disk.restart()
    started(second)

    assert content(started(second.lose_power())) == b"one"


def test_a_log_that_cannot_be_read_at_the_start_is_free_for_the_next_try(disk: MemoryDisk) -> None:
    started(disk).close()
    disk.failures["read"] = [errno.EIO]
    with pytest.raises(OSError, match="Input/output error"):
        opened(disk)

    opened(disk).close()


def test_two_servers_cannot_have_one_log(tmp_path: Path) -> None:
    log = started(SystemDisk(), str(tmp_path))
    with pytest.raises(UsageError, match="Another server is using the log in"):
        opened(SystemDisk(), str(tmp_path))
    log.close()
    opened(SystemDisk(), str(tmp_path)).close()


def test_a_listed_file_that_is_missing_stops_the_start(disk: MemoryDisk) -> None:
    started(disk).close()
    disk.remove(FIRST)
    with pytest.raises(UsageError, match=r"incr.aof is missing"):
        opened(disk)


def test_missing_history_is_harmless(disk: MemoryDisk) -> None:
    put(disk, MANIFEST, b"file gone seq 1 type h\nfile there seq 2 type b\n")
    put(disk, DIRECTORY + "/there", b"")
    assert [file.name for file in opened(disk).directory.manifest.files()] == ["there"]


@pytest.mark.parametrize(
    "name", ["appendonly.aof.1.base.aof", "appendonly.aof.7.incr.aof", "appendonly.aof.1.base.rdb"]
)
def test_data_without_a_manifest_is_refused_rather_than_forgotten(disk: MemoryDisk, name: str) -> None:
    put(disk, f"{DIRECTORY}/{name}", b"data")
    with pytest.raises(UsageError, match=f"{name} but no appendonly.aof.manifest"):
        opened(disk)


def test_what_a_crash_at_the_first_start_left_is_no_data(disk: MemoryDisk) -> None:
    put(disk, FIRST, b"")
    assert content(started(disk)) == b""


def test_a_damaged_manifest_names_its_path(disk: MemoryDisk) -> None:
    put(disk, MANIFEST, b"nonsense\n")
    with pytest.raises(UsageError, match=f"{MANIFEST}: Invalid AOF manifest file format"):
        opened(disk)


def with_snapshot(disk: MemoryDisk) -> LogDirectory:
    directory = LogDirectory(disk, "/data", "appendonlydir", "appendonly.aof", "dump.rdb")
    directory.open()
    return directory


def test_a_log_begins_with_a_copy_of_the_snapshot(disk: MemoryDisk) -> None:
    put(disk, "/data/dump.rdb", b"REDIS0011...")
    directory = with_snapshot(disk)
    assert directory.finds_snapshot()
    for _ in directory.adopt_snapshot():
        pass
    log = AppendLog(directory)
    log.start()
    log.close()

    directory = with_snapshot(disk.restart())

    assert not directory.finds_snapshot()
    assert disk.files[MANIFEST].seen.startswith(b"file appendonly.aof.1.base.rdb seq 1 type b\n")
    assert disk.files[DIRECTORY + "/appendonly.aof.1.base.rdb"].seen == b"REDIS0011..."


def test_a_snapshot_is_found_again_after_a_crash_while_it_is_copied(disk: MemoryDisk) -> None:
    put(disk, "/data/dump.rdb", b"REDIS0011...")
    directory = with_snapshot(disk)
    for _ in directory.adopt_snapshot():
        pass  # and no further

    assert with_snapshot(disk.restart()).finds_snapshot()


def test_an_old_single_file_log_is_moved_in(disk: MemoryDisk) -> None:
    put(disk, "/data/appendonly.aof", b"old ")
    log = started(disk)
    log.append(b"new")
    log.write()

    assert content(log) == b"old new"
    assert not disk.exists("/data/appendonly.aof")
    assert disk.files[MANIFEST].seen.startswith(b"file appendonly.aof seq 1 type b\n")


def test_an_old_log_is_safe_from_a_crash_while_it_is_moved_in(disk: MemoryDisk) -> None:
    put(disk, "/data/appendonly.aof", b"old")
    opened(disk)  # and no further

    assert content(started(disk.restart())) == b"old"


def test_leftovers_of_a_rewrite_are_removed(disk: MemoryDisk) -> None:
    started(disk).close()
    put(disk, DIRECTORY + "/temp-rewriteaof-bg-17.aof", b"half a base")
    opened(disk)
    assert not disk.exists(DIRECTORY + "/temp-rewriteaof-bg-17.aof")


# -- writing ----------------------------------------------------------------------------------------------------------


def test_a_turn_is_one_write(disk: MemoryDisk, log: AppendLog) -> None:
    log.append(b"one ")
    log.append(b"two")
    log.write()

    assert disk.points.count("write") == 1
    assert (log.appended, log.written, log.synced, log.buffered) == (2, 2, 0, 0)


def test_short_writes_are_continued(disk: MemoryDisk, log: AppendLog) -> None:
    disk.shortest = 3
    log.append(b"a long unit")
    log.write()
    assert content(log) == b"a long unit"


def test_a_full_disk_cuts_the_file_back_to_whole_units(disk: MemoryDisk, log: AppendLog) -> None:
    disk.room = 9
    log.append(b"first ")
    log.append(b"second")

    with pytest.raises(OSError, match="No space left"):
        log.write()

    assert content(log) == b"first "
    assert (log.written, log.buffered) == (1, 6)


def test_what_could_not_be_written_is_written_later(disk: MemoryDisk, log: AppendLog) -> None:
    disk.room = 9
    log.append(b"first ")
    log.append(b"second")
    with pytest.raises(OSError, match="No space left"):
        log.write()
    disk.room = None
    log.write()
    assert content(log) == b"first second"


def test_a_cut_that_fails_is_made_before_the_next_write(disk: MemoryDisk, log: AppendLog) -> None:
    disk.room = 3
    disk.failures["truncate"] = [errno.EIO]
    log.append(b"unit")
    with pytest.raises(OSError, match="No space left"):
        log.write()
    assert content(log) == b"uni"

    disk.room = None
    log.write()
    assert content(log) == b"unit"


def test_what_was_synced_survives_a_loss_of_power(disk: MemoryDisk, log: AppendLog) -> None:
    log.append(b"safe ")
    log.write()
    log.sync()
    log.append(b"unsafe")
    log.write()

    assert log.synced == 1
    assert content(started(disk.lose_power())) == b"safe "


@pytest.mark.parametrize("seed", range(50))
def test_a_loss_of_power_never_takes_what_was_synced(disk: MemoryDisk, log: AppendLog, seed: int) -> None:
    log.append(b"safe ")
    log.write()
    log.sync()
    log.append(b"unsafe")
    log.write()

    assert content(opened(disk.lose_power(random.Random(seed)))).startswith(b"safe ")


# -- rewriting --------------------------------------------------------------------------------------------------------


def rewritten(log: AppendLog, base: bytes = b"base ") -> None:
    """Rewrite a log, with one unit arriving meanwhile."""
    log.begin_rewrite()
    log.append(b"meanwhile")
    log.write()
    write_base(log, base)
    log.finish_rewrite(log.directory.temporary_base(1))


def test_a_rewrite_replaces_what_came_before_it(disk: MemoryDisk, log: AppendLog) -> None:
    log.append(b"before")
    log.write()
    rewritten(log)

    assert content(log) == b"base meanwhile"
    assert [file.name for file in log.directory.manifest.files()] == [
        "appendonly.aof.2.base.aof",
        "appendonly.aof.2.incr.aof",
    ]
    assert (log.base_size, log.total_size, log.grown_from) == (5, 14, 14)


def test_history_is_deleted_and_forgotten(disk: MemoryDisk, log: AppendLog) -> None:
    rewritten(log)
    log.directory.remove_history()

    assert [name for name in disk.names(DIRECTORY) if ".1." in name] == []
    assert b"type h" not in disk.files[MANIFEST].seen


def test_an_abandoned_rewrite_keeps_everything(disk: MemoryDisk, log: AppendLog) -> None:
    log.append(b"before ")
    log.begin_rewrite()
    log.append(b"after")
    log.write()
    log.abandon_rewrite()

    assert content(started(disk.restart())) == b"before after"


@pytest.mark.parametrize("call", ["rename", "sync_directory", "create"])
def test_a_rewrite_that_cannot_begin_changes_nothing(disk: MemoryDisk, log: AppendLog, call: str) -> None:
    log.append(b"before ")
    disk.failures[call] = [errno.EIO]
    with pytest.raises(OSError, match="Input/output error"):
        log.begin_rewrite()
    log.append(b"after")
    log.write()

    assert content(log) == content(started(disk.restart())) == b"before after"


@pytest.mark.parametrize(
    "point",
    [
        "increment-created", "manifest-written", "manifest-synced", "manifest-renamed", "increment-opened",
        "base-renamed", "base-in-force", "history-removed",
    ],
)  # fmt: skip
@pytest.mark.parametrize("seed", [None, 1, 2, 3, 4, 5])
def test_a_loss_of_power_at_any_moment_of_a_rewrite_leaves_a_loadable_log(
    disk: MemoryDisk, log: AppendLog, point: str, seed: int | None
) -> None:
    disks = []
    chance = random.Random(seed) if seed else None
    log.append(b"before ")
    log.write()
    log.sync()
    disk.on_reach = lambda reached: disks.append(disk.lose_power(chance)) if reached == point else None

    log.begin_rewrite()
    write_base(log, b"before ")
    log.finish_rewrite(log.directory.temporary_base(1))
    log.directory.remove_history()

    assert disks
    assert {content(started(after)) for after in disks} == {b"before "}


def test_a_base_that_no_manifest_names_is_not_left_on_a_full_disk(disk: MemoryDisk, log: AppendLog) -> None:
    log.begin_rewrite()
    write_base(log, b"base")
    disk.failures["create"] = [errno.ENOSPC]
    with pytest.raises(OSError, match="No space left"):
        log.finish_rewrite(log.directory.temporary_base(1))

    assert [name for name in disk.names(DIRECTORY) if "base" in name] == ["appendonly.aof.1.base.aof"]


def killed(disk: MemoryDisk) -> MemoryDisk:
    """What the next process would find if this one were killed now; it goes on."""
    left = copy.deepcopy(disk)
    left.on_reach = None
    return left.restart()


@pytest.mark.parametrize("point", ["base-renamed", "manifest-written", "manifest-synced", "manifest-renamed"])
def test_no_base_takes_the_place_of_one_that_an_uncertain_manifest_names(
    disk: MemoryDisk, log: AppendLog, point: str
) -> None:
    log.append(b"before ")
    log.begin_rewrite()
    log.append(b"meanwhile ")
    log.write()
    write_base(log, b"before ")
    disk.failures["sync_directory"] = [0, errno.EIO]
    with pytest.raises(OSError, match="Input/output error"):
        log.finish_rewrite(log.directory.temporary_base(1))
    disk.failures["rename"] = [errno.EIO]
    with pytest.raises(OSError, match="Input/output error"):
        log.begin_rewrite()
    disks = []
    disk.on_reach = lambda reached: disks.append(killed(disk)) if reached == point else None

    log.begin_rewrite()
    write_base(log, b"before meanwhile ")
    log.finish_rewrite(log.directory.temporary_base(1))

    assert [content(started(after)) for after in disks] == [b"before meanwhile "]


# -- after a sync that failed -----------------------------------------------------------------------------------------


def test_only_a_fresh_base_ends_a_sync_that_failed(disk: MemoryDisk, log: AppendLog) -> None:
    log.append(b"perhaps lost")
    log.write()
    disk.failures["sync"] = [errno.EIO]
    with pytest.raises(OSError, match="Input/output error"):
        log.sync()
    log.hold()
    log.append(b"in the base ")
    log.write()
    log.begin_rewrite()
    log.append(b"after it")
    write_base(log, b"base ")
    log.finish_rewrite(log.directory.temporary_base(1))
    log.write()
    log.sync()

    assert content(started(disk.lose_power())) == b"base after it"
    assert log.synced == log.appended == 3


def test_a_sync_that_failed_is_known_to_the_next_process_until_there_is_a_base(
    disk: MemoryDisk, log: AppendLog
) -> None:
    log.hold()
    left = disk.restart()
    after = started(left)
    was_held = after.writes_held
    after.begin_rewrite()
    write_base(after, b"base ")
    after.finish_rewrite(after.directory.temporary_base(1))
    last = started(left.restart())

    assert was_held
    assert not last.writes_held


def test_a_start_whose_sync_fails_is_known_to_the_next_one(disk: MemoryDisk, log: AppendLog) -> None:
    after = disk.restart()
    after.failures["sync"] = [errno.EIO]
    with pytest.raises(OSError, match="Input/output error"):
        started(after)

    assert started(after.restart()).writes_held


def test_held_units_outlive_a_rewrite_that_fails(disk: MemoryDisk, log: AppendLog) -> None:
    log.hold()
    log.append(b"one ")
    log.begin_rewrite()
    log.append(b"two")
    log.abandon_rewrite()
    log.begin_rewrite()
    write_base(log, b"one two ")
    log.finish_rewrite(log.directory.temporary_base(1))
    log.append(b"three")
    log.write()

    assert content(log) == b"one two three"


class PowerLoss(Exception):
    """The disk is not written to any more."""


@pytest.mark.parametrize("seed", range(20))
def test_units_that_were_set_aside_follow_no_other_base_than_theirs(seed: int, disk: MemoryDisk) -> None:
    log = opened(disk)
    log.append(b"a")
    log.begin_rewrite()
    log.append(b"b")
    log.set_aside()
    write_base(log, b"a")
    disk.failures["sync_directory"] = [0, errno.EIO]  # either manifest may be found after a loss of power
    with pytest.raises(OSError, match="Input/output error"):
        log.finish_rewrite(log.directory.temporary_base(1))
    log.abandon_rewrite()
    log.begin_rewrite()
    log.append(b"c")
    log.set_aside()
    write_base(log, b"ab")

    def lose_power(point: str) -> None:
        if point == MANIFEST_WRITTEN:
            raise PowerLoss

    disk.on_reach = lose_power
    with pytest.raises(PowerLoss):
        log.finish_rewrite(log.directory.temporary_base(1))

    assert content(opened(disk.lose_power(random.Random(seed)))) in (b"a", b"ab")


# -- room -------------------------------------------------------------------------------------------------------------


def test_room_is_kept_behind_a_file_of_the_same_size_and_given_back_with_a_cut(tmp_path: Path) -> None:
    disk, path = SystemDisk(), str(tmp_path / "log")
    file = disk.create(path)
    write_all(file, b"abc")
    if not file.reserve(3, LEAST_ROOM):
        pytest.skip("this file system reserves no room")
    during = Path(path).stat()
    file.truncate(3)
    after = Path(path).stat()

    assert (during.st_size, during.st_blocks * 512 >= LEAST_ROOM) == (3, True)
    assert (after.st_size, after.st_blocks * 512 < LEAST_ROOM) == (3, True)
    assert Path(path).read_bytes() == b"abc"


def test_what_cannot_reserve_room_says_so() -> None:
    reading, writing = os.pipe()
    assert SystemFile(writing).reserve(0, LEAST_ROOM) is False
    os.close(reading)
    os.close(writing)


def test_more_room_is_reserved_for_long_files_and_large_turns(log: AppendLog, disk: MemoryDisk) -> None:
    log.reserve(0)
    assert disk.files[FIRST].taken == LEAST_ROOM
    log.append(b"u" * LEAST_ROOM)
    log.write()
    assert log.needs_room
    log.reserve(LEAST_ROOM)
    assert disk.files[FIRST].taken == LEAST_ROOM + TURNS_OF_ROOM * LEAST_ROOM
    assert not log.needs_room


def test_a_disk_with_too_little_room_keeps_what_it_has_for_others(log: AppendLog, disk: MemoryDisk) -> None:
    disk.room = LEAST_ROOM - 1
    with pytest.raises(OSError, match="No space left"):
        log.reserve(0)
    assert (disk.room, log.needs_room) == (LEAST_ROOM - 1, True)


def test_units_that_a_base_in_the_making_has_are_not_kept_in_memory(disk: MemoryDisk) -> None:
    log = opened(disk)
    log.append(b"old")
    log.begin_rewrite()
    assert log.buffered == 0
    log.append(b"new")
    log.abandon_rewrite()
    log.begin_rewrite()
    log.append(b"newest")
    write_base(log, b"oldnew")
    log.finish_rewrite(log.directory.temporary_base(1))
    log.write()

    assert content(log) == b"oldnewnewest"
    assert (log.appended, log.written, log.lacks_base) == (3, 3, False)
