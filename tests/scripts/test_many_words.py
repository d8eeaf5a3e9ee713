"""Requests of scripts with up to as many words as Lua can unpack, and replies as long, as in Redis (8.6.3)."""

import random

import pytest

from tests.support.effects_beside_redis import RedisSide, assert_as_redis
from tests.support.seeds import seeds

pytest.importorskip("lupa")

BOUNDARIES = (1, 6, 3998, 3999, 4000, 4001, 7994, 7995, 7996, 7997, 7998, 7999, 8000)
MOST = 7999


def dialogue_of(count: int, chance: random.Random) -> list[str]:
    """Push so many words and read them again; by call and pcall, in a script that begins in place or is watched."""
    step = chance.randint(1, 9)
    fill = f"local t = {{}} for i = 1, {count - 2} do t[i] = i * {step} end "
    watched = "loadstring('return 1')() "
    read = "return redis.call('LRANGE', 'l', 0, -1)"
    return [
        f"EVAL \"{fill} return redis.call('RPUSH', 'l', unpack(t))\" 0",
        f'EVAL "{read}" 0',
        f"EVAL \"{watched}{fill} return redis.pcall('RPUSH', 'l', unpack(t))\" 0",
        f'EVAL "{watched}{read}" 0',
        f"EVAL \"{fill} return {{pcall(redis.call, 'SADD', 's', unpack(t))}}\" 0",
        f'EVAL "{fill} return t" 0',
    ]


@pytest.mark.parametrize("count", BOUNDARIES)
def test_a_request_of_a_script_may_have_as_many_words_as_in_redis(logging_redis: RedisSide, count: int) -> None:
    assert_as_redis(logging_redis, dialogue_of(count, random.Random(count)))


@pytest.mark.parametrize("seed", seeds(quick=5, full=25))
def test_a_script_with_any_number_of_words_is_answered_as_in_redis(logging_redis: RedisSide, seed: int) -> None:
    chance = random.Random(seed)

    assert_as_redis(logging_redis, dialogue_of(chance.randint(500, MOST), chance))
