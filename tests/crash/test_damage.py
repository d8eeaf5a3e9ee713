"""A log that was cut or altered: loaded up to the damage with a warning, or refused with file and offset."""

import random
import re
from enum import Enum, auto
from functools import cache
from typing import Any, NamedTuple

import pytest

from penstock.commands import registry
from penstock.errors import UsageError
from tests.crash.picture import picture
from tests.crash.powered import PoweredServer
from tests.crash.requests import Requests
from tests.support.dialogue import Dialogue, decoded
from tests.support.memory_disk import MemoryDisk
from tests.support.seeds import seeds

FILE = "/tmp/appendonlydir/appendonly.aof.1.incr.aof"
PREFIX = "p:"
TAIL = 4096
SMALL = 1500  # bytes
HEADER = re.compile(rb"[*$]\d+\r\n")
WHERE = re.compile(r"appendonly\.aof\.1\.incr\.aof\b.*\bbyte \d+")


class Log(NamedTuple):
    """A log of one file: its bytes, and after each unit how many they are and what there is."""

    text: bytes
    sizes: list[int]
    pictures: list[object]


def picture_of(server: PoweredServer) -> object:
    client = Dialogue(server.engine)
    return picture(lambda *words: decoded(client.words(*words)), PREFIX)


def made(seed: int, least: int) -> Log:
    """A log of random requests, of `least` bytes at least."""
    disk = MemoryDisk()
    server = PoweredServer(disk)
    client = Dialogue(server.engine)
    requests = Requests(random.Random(seed), PREFIX)
    sizes, pictures = [0], [picture_of(server)]
    batch = requests.opening()
    while sizes[-1] < least:
        for request in batch:
            client.words(*request)
            server.turn.end()
            if disk.size(FILE) > sizes[-1]:
                sizes.append(disk.size(FILE))
                pictures.append(picture_of(server))
        batch = [request for request in requests.batch() if len(b"".join(request)) < 500]
    return Log(bytes(disk.files[FILE].seen), sizes, pictures)


def started(text: bytes, base: MemoryDisk) -> PoweredServer:
    """A server with that log."""
    disk = base.restart()
    disk.files = dict(disk.files)
    disk.files[FILE] = type(base.files[FILE])()
    disk.files[FILE].seen = bytearray(text)
    return PoweredServer(disk)


@pytest.fixture(scope="module")
def disk() -> Any:
    """A directory with a log that is empty."""
    disk = MemoryDisk()
    PoweredServer(disk)
    return disk


@pytest.fixture(scope="module")
def long_log() -> Any:
    return made(1, TAIL + 1000)


@pytest.fixture(scope="module")
def small_log() -> Any:
    return made(2, SMALL)


def check_cut(log: Log, size: int, disk: MemoryDisk) -> None:
    """What is loaded of a log's first bytes is its last whole unit's picture, and what was cut off is told."""
    server = started(log.text[:size], disk)
    whole = max(number for number, end in enumerate(log.sizes) if end <= size)
    assert picture_of(server) == log.pictures[whole], size
    # What is kept may be more than whole units by a SELECT, which changes nothing.
    kept = len(server.disk.files[FILE].seen)
    assert log.sizes[whole] <= kept <= size
    told = [line for line in server.said if "Warning" in line]
    assert bool(told) == (kept < size), size
    assert all(WHERE.search(line) for line in told), told


def check_altered(log: Log, place: int, value: int, disk: MemoryDisk) -> None:
    """What a start makes of an altered byte: it refuses, or tells that it cuts off or ignores something, and where.

    Nothing is said only where the byte is of a word that may be another word as well: an argument, or the name of a
    command that is another command's with one byte changed. Without checksums no log can tell, Redis's neither.
    """
    altered = log.text[:place] + bytes([value]) + log.text[place + 1 :]
    try:
        server = started(altered, disk)
    except UsageError as refusal:
        assert WHERE.search(str(refusal)), (place, value, refusal)
        return
    told = [line for line in server.said if "Warning" in line]
    assert all(WHERE.search(line) for line in told), told
    part = parts(log.text)[place]
    if any("cut off" in line for line in told):
        assert part is Part.STRUCTURE, (place, value)
        assert picture_of(server) in log.pictures, (place, value)
    elif not told and part is Part.NAME:
        assert name_at(altered, place) in registry.table(), (place, value, name_at(altered, place))
    elif not told:
        assert part is Part.ARGUMENT, (place, value, log.text[max(0, place - 20) : place + 20])


class Part(Enum):
    """What a byte of a log belongs to."""

    STRUCTURE = auto()  # a header or a line's end
    NAME = auto()  # of a command
    ARGUMENT = auto()


@cache
def parts(text: bytes) -> list[Part]:
    """For each byte of a log what it belongs to."""
    found: list[Part] = []
    kind = Part.NAME
    while len(found) < len(text):
        header = HEADER.match(text, len(found))
        assert header is not None
        found += [Part.STRUCTURE] * len(header[0])
        if header[0].startswith(b"*"):
            kind = Part.NAME
        else:
            found += [kind] * int(header[0][1:-2]) + [Part.STRUCTURE] * 2
            kind = Part.ARGUMENT
    return found


def name_at(text: bytes, place: int) -> bytes:
    """The word that a byte is of, in upper case; a word has no line end in it."""
    return text[text.rindex(b"\n", 0, place) + 1 : text.index(b"\r", place)].upper()


@pytest.mark.parametrize("first", seeds(2, 8))
def test_a_log_that_is_cut_anywhere_loads_up_to_there_for_some_places(long_log: Any, disk: Any, first: int) -> None:
    size = len(long_log.text)
    for cut in range(size - TAIL + first * 5, size, 61):
        check_cut(long_log, cut, disk)


@pytest.mark.slow
def test_a_log_that_is_cut_at_every_byte_of_its_last_4_kib_loads_up_to_there(long_log: Any, disk: Any) -> None:
    size = len(long_log.text)
    for cut in range(size - TAIL, size + 1):
        check_cut(long_log, cut, disk)


@pytest.mark.parametrize("first", seeds(1, 4))
def test_an_altered_byte_is_noticed_unless_it_makes_another_valid_word_for_some_places(
    small_log: Any, disk: Any, first: int
) -> None:
    chance = random.Random(first)
    for place in range(first, len(small_log.text), 11):
        check_altered(small_log, place, small_log.text[place] ^ 1 << chance.randrange(8), disk)


@pytest.mark.slow
def test_an_altered_byte_is_noticed_unless_it_makes_another_valid_word_at_every_place(
    small_log: Any, disk: Any
) -> None:
    """Two values, and one that begins a reply of another kind; tests/commands/test_logreader.py has all of them."""
    chance = random.Random(7)
    for place, byte in enumerate(small_log.text):
        others = {byte ^ 1 << chance.randrange(8), chance.randrange(256), chance.choice(b"*$=~%>#+-:_,(!|")}
        for value in others - {byte}:
            check_altered(small_log, place, value, disk)
