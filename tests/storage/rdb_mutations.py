"""Payloads that were altered at random: bits, bytes, lengths, cuts, splices; the checksum says that none was computed.

By hand: `python -m tests.storage.rdb_mutations --count 100000`.
"""

import argparse
import random
import tracemalloc
from typing import Final

from penstock.clock import ManualClock
from penstock.commands.keys import digests
from penstock.commands.registry import new_engine
from penstock.config.settings import Settings
from tests.interchange.rdb_states import States
from tests.storage.rdb_golden import OF_REDIS, OLD, ONLY_READ, REFUSED_BODIES, STREAM, unspaced
from tests.support.dialogue import Dialogue

NOW_MS: Final = 1_795_300_000_000
VERSIONS: Final = ("5.0", "7.0", "7.2", "8.6", "8.8")
OK: Final = b"+OK\r\n"
BAD: Final = b"-ERR Bad data format\r\n"
WRONG: Final = b"-ERR DUMP payload version or checksum are wrong\r\n"
LENGTHS: Final = (
    b"\x00",
    b"\x3f",
    b"\x40\x00",
    b"\x7f\xff",
    b"\x80\xff\xff\xff\xff",
    b"\x81" + b"\xff" * 8,
    b"\xff" * 4,
)
LOOKED_AT: Final = {
    "stream": ("XINFO STREAM r FULL COUNT 0", "XRANGE r - +", "XADD r * f v", "XTRIM r MAXLEN 1"),
    "hash": ("HGETALL r", "HSET r f v", "HRANDFIELD r"),
    "list": ("LRANGE r 0 -1", "LPOP r"),
    "set": ("SMEMBERS r", "SADD r x"),
    "array": ("ARGREP r - + MATCH x WITHVALUES", "ARINSERT r x"),
    "zset": ("ZRANGE r 0 -1 WITHSCORES", "ZADD r 5 x"),
    "string": ("GET r", "APPEND r x"),
}
MOST_TIMES: Final = 10  # of memory, for each byte of a payload that is refused
SLACK_BYTES: Final = 64 * 1024  # that Python's own objects may take beside


def new_dialogue() -> Dialogue:
    return Dialogue(new_engine(Settings(), ManualClock(NOW_MS), random.Random(1)))


def originals() -> list[bytes]:
    """Payloads of every type and form, old and new, without their checksums."""
    found = [unspaced(text)[:-8] for _, text in (OF_REDIS | ONLY_READ).values()]
    found += [unspaced(text) for _, text in OLD.values()]
    found += [unspaced(text) + b"\x0d\x00" for text in REFUSED_BODIES.values()]
    found += [bytes.fromhex(STREAM)[:-8]] * 20
    said = new_dialogue()
    for seed in range(3):
        for request in States(seed).requests(20):
            said.words(*[word.encode() for word in request])
    said("XADD z 1-0 f v", "XGROUP CREATE z g 0", "XREADGROUP GROUP g c STREAMS z >", "XNACK z g FAIL IDS 1 1-0")
    for version in VERSIONS:
        said(f"CONFIG SET rdb-compat-version {version}")
        for database in "0123":
            said(f"SELECT {database}")
            for key in said.engine.keyspace.databases[int(database)].values:
                answer = said.words(b"DUMP", key)
                payload = answer.partition(b"\r\n")[2][:-10]
                if len(payload) < 6000:
                    found.append(payload)
    return found


def mutated(payload: bytes, chance: random.Random) -> bytes:
    made = bytearray(payload)
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        if not made:
            break
        at = chance.randrange(len(made))
        how = chance.randrange(7)
        if how == 0:
            made[at] ^= 1 << chance.randrange(8)
        elif how == 1:
            made[at] = chance.randrange(256)
        elif how == 2:
            made[at : at + 1] = chance.choice(LENGTHS)
        elif how == 3:
            del made[at : at + chance.choice((1, 1, 2, 8, 100))]
        elif how == 4:
            made[at:at] = made[chance.randrange(len(made)) :][: chance.choice((1, 4, 30))]
        elif how == 5:
            made[at] = (made[at] + chance.choice((1, -1))) & 255
        else:
            del made[at:-2]
    return bytes(made) + bytes(8)


class Attack:
    """One engine that is given altered payloads. `worst`: the most memory that a refused one took, a byte of it."""

    def __init__(self, seed: int, measures: bool) -> None:
        self.chance = random.Random(seed)
        self.said = new_dialogue()
        self.originals = originals()
        self.measures = measures
        self.taken = self.refused = 0
        self.worst = 0.0

    def run(self, count: int) -> None:
        for _ in range(count):
            self.one(mutated(self.chance.choice(self.originals), self.chance))

    def one(self, payload: bytes) -> None:
        said = self.said
        said("SET r before")
        if self.measures:
            tracemalloc.start()
        answer = said.words(b"RESTORE", b"r", b"0", payload, b"REPLACE")
        if self.measures:
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            if answer != OK:
                self.worst = max(self.worst, (most - SLACK_BYTES) / len(payload))
        if answer == OK:
            self.taken += 1
            self.look()
            return
        assert answer in (BAD, WRONG), (answer, payload.hex())
        self.refused += 1
        assert said("GET r") == b"before", payload.hex()

    def look(self) -> None:
        """What was taken holds its invariants, is dumped to the same, and can be used."""
        said = self.said
        db = said.engine.keyspace.databases[0]
        value = db.values[b"r"]
        db.check()
        check = getattr(value, "check", None)
        if check is not None:
            check()
        answer = said.words(b"DUMP", b"r")
        if answer.startswith(b"$-1"):
            return  # all fields had expired
        payload = answer.partition(b"\r\n")[2][:-2]
        assert said.words(b"RESTORE", b"s", b"0", payload, b"REPLACE") == OK
        assert digests.of_value(db.values[b"s"]) == digests.of_value(value)
        kind = said("TYPE r")
        assert isinstance(kind, bytes | str)
        for line in LOOKED_AT[kind.decode() if isinstance(kind, bytes) else kind]:
            said(line)
        db.check()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--measures", action="store_true", help="count the memory, too: five times slower")
    words = parser.parse_args()
    attack = Attack(words.seed, words.measures)
    attack.run(words.count)
    print(f"{words.count}: {attack.taken} taken, {attack.refused} refused, {attack.worst:.1f} bytes a byte")  # noqa: T201


if __name__ == "__main__":
    main()
