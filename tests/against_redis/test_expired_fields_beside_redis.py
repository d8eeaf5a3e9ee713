"""Hashes with expired fields that nothing has removed yet: random dialogues, answered and told as by a real Redis.

RESTORE keeps expired fields, so a dialogue begins with them and nothing waits. Redis's active expiry is off.
"""

from random import Random
from typing import Final

import pytest

from penstock.engine.rdb import rdb_values
from penstock.storage.rdb import dump_payload
from penstock.storage.types.hashes import Hash
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.effects_beside_redis import RedisSide, Step, steps_of_engine, words_of
from tests.support.engines import loaded_engine, make_engine, settings_with
from tests.support.keyspace_picture import keyspace
from tests.support.log import UnitLog
from tests.support.same_result import Difference, assert_same
from tests.support.seeds import seeds

FIELDS: Final = ("a", "b", "c")
PAST_MS: Final = 1_600_000_000_000
FAR: Final = "4102444800"
FAR_MS: Final = 4_102_445_000_000
LONG: Final = b"x" * 65  # a value that makes a hash a large one
UNORDERED: Final = ("HGETALL", "HKEYS", "HVALS", "HSCAN", "HRANDFIELD", "SORT")
RESTORING: Final = "RESTORE"

ONE_FIELD: Final = (
    "HSETNX h {f} 5", "HINCRBY h {f} 2", "HINCRBYFLOAT h {f} 0.5", "HGET h {f}", "HSTRLEN h {f}", "HEXISTS h {f}",
    "SORT l BY *->{f} ALPHA GET *->{f}", "SORT l ALPHA GET *->{f} STORE d",
)  # fmt: skip
FIELD_LISTS: Final = ("HDEL h {fs}", "HMGET h {fs}")
COUNTED: Final = (
    "HGETDEL h FIELDS {n} {fs}", "HGETEX h FIELDS {n} {fs}", "HGETEX h PERSIST FIELDS {n} {fs}",
    "HGETEX h EXAT {far} FIELDS {n} {fs}", "HGETEX h PXAT 1 FIELDS {n} {fs}",
    "HEXPIRETIME h FIELDS {n} {fs}", "HPERSIST h FIELDS {n} {fs}", "HEXPIREAT h {far} FIELDS {n} {fs}",
    "HEXPIREAT h {far} {condition} FIELDS {n} {fs}", "HEXPIREAT h 1 FIELDS {n} {fs}",
)  # fmt: skip
SETTING: Final = (
    "HSET h {pairs}", "HSETEX h FIELDS {n} {pairs}", "HSETEX h {existence} FIELDS {n} {pairs}",
    "HSETEX h {existence} EXAT {far} FIELDS {n} {pairs}", "HSETEX h {existence} KEEPTTL FIELDS {n} {pairs}",
    "HSETEX h KEEPTTL FIELDS {n} {pairs}", "HSETEX h PXAT 1 FIELDS {n} {pairs}",
)  # fmt: skip
WHOLE: Final = (
    "HLEN h", "HGETALL h", "HKEYS h", "HVALS h", "HSCAN h 0 COUNT 5000", "HSCAN h 0 COUNT 5000 NOVALUES",
    "HRANDFIELD h 5000", "EXISTS h", "TYPE h", "OBJECT ENCODING h", "COPY h g REPLACE", "RENAME h g",
    "RENAME g h", "HLEN g", "HGETALL g", "EXPIRETIME g",
)  # fmt: skip
LOOKS: Final = ("HLEN h", "EXPIRETIME h", "HGETALL h")  # after each request


def restoring(chance: Random) -> str:
    """A RESTORE of a hash of which some fields have expired, sometimes all, in one of Redis's two encodings."""
    made = Hash()
    for field in chance.sample(FIELDS, chance.randint(1, 3)):
        made.put(field.encode(), b"%d" % chance.randrange(9))
        when_ms = chance.choice([0, PAST_MS, PAST_MS + 1, PAST_MS + 2, FAR_MS])
        if when_ms:
            made.expire_at(field.encode(), when_ms)
    if chance.random() < 0.3:
        made.put(b"long", LONG)
    payload = dump_payload.payload_of(made, rdb_values.writer_of_payloads(settings_with(), made))
    text = "".join(f"\\x{byte:02x}" for byte in payload)
    return f"{RESTORING} h 0 '{text}' REPLACE"


def request(chance: Random) -> str:
    fields = chance.sample(FIELDS, chance.randint(1, 3))
    form = chance.choice(chance.choice([ONE_FIELD, FIELD_LISTS, COUNTED, SETTING, SETTING, WHOLE]))
    return form.format(
        f=fields[0],
        fs=" ".join(fields),
        n=len(fields),
        pairs=" ".join(f"{field} {chance.randrange(9)}" for field in fields),
        far=FAR,
        condition=chance.choice(["NX", "XX", "GT", "LT"]),
        existence=chance.choice(["FNX", "FXX"]),
    )


def dialogue(seed: int) -> list[str]:
    chance = Random(seed)
    lines = ["RPUSH l h"]
    for _ in range(12):
        lines.append(restoring(chance))
        if chance.random() < 0.5:
            lines.append(f"EXPIREAT h {FAR}")
        for _ in range(chance.randint(1, 4)):
            lines += [request(chance), *LOOKS]
    return lines


def comparable(step: Step) -> tuple[list[str] | str, list[str]]:
    """The reply and the events. Redis keeps the fields of a small hash in the order of their times.

    Where HMGET removes the only field, Redis 8.6.3 removes the key without an event (docs/differences.md).
    """
    is_unordered = step.request.startswith(UNORDERED)
    events = [] if step.request.startswith("HMGET") else step.events
    return sorted(step.reply) if is_unordered else step.reply, events


@pytest.mark.parametrize("seed", seeds(3, 60))
def test_fields_that_have_expired_and_still_lie_there_are_treated_as_by_redis(
    logging_redis: RedisSide, seed: int
) -> None:
    def compare(lines: list[str]) -> Difference | None:
        for count, (one, other) in enumerate(zip(logging_redis.play(lines), steps_of_engine(lines), strict=True), 1):
            if comparable(one) != comparable(other):
                return Difference("step", one._asdict(), other._asdict(), count)
        return None

    assert_same(dialogue(seed), compare, ("Redis", "Penstock"), str)


@pytest.mark.parametrize("seed", seeds(5, 60))
def test_the_log_of_such_a_dialogue_gives_the_same_hashes_back(seed: int) -> None:
    log = UnitLog()
    said = Dialogue(make_engine(log=log))

    for line in dialogue(seed):
        said.words(*words_of(line))

    assert keyspace(loaded_engine([log.text], NOW_MS)) == keyspace(said.engine)
