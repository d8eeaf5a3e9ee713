"""redis-py's client-side cache: two clients with a cache each, beside one without; what they are told, as by Redis."""

import contextlib
import random
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pytest
import redis
from redis.cache import CacheConfig

from tests.against_redis.conftest import Reference
from tests.support.seeds import seeds

Asked: TypeAlias = Callable[[Any], Any]

ROUNDS: Final = 500
CACHED: Final = 12  # keys in a cache: fewer than there are


class Client(redis.Redis):
    """A client with a cache, which keeps what it is told."""

    def __init__(self, port: int) -> None:
        super().__init__(port=port, protocol=3, decode_responses=True, cache_config=CacheConfig(max_size=CACHED))
        self.told: list[tuple[bytes, ...] | None] = []
        cache = self.get_cache()
        assert cache is not None, "a client that was given a cache has one"
        forget, flush = cache.delete_by_redis_keys, cache.flush

        def forget_and_tell(keys: list[bytes]) -> Any:
            self.told.append(tuple(keys))
            return forget(keys)

        def flush_and_tell() -> Any:
            self.told.append(None)
            return flush()

        cache.delete_by_redis_keys = forget_and_tell  # type: ignore[method-assign, assignment]  # calls the cache's own
        cache.flush = flush_and_tell  # type: ignore[method-assign]  # as well


def reading(chance: random.Random) -> Asked:
    key, other, fields, items = (f"{kind}{chance.randrange(6)}" for kind in "kkhl")
    asked: list[Asked] = [
        lambda client: client.get(key),
        lambda client: client.mget(key, other),
        lambda client: client.hgetall(fields),
        lambda client: client.hget(fields, "f"),
        lambda client: client.lrange(items, 0, -1),
        lambda client: client.exists(key, fields),
    ]
    return chance.choice(asked)


def writing(chance: random.Random, value: str) -> Asked:
    key, other, fields, items = (f"{kind}{chance.randrange(6)}" for kind in "kkhl")
    seconds = chance.choice((0, 1000))
    asked: list[Asked] = [
        lambda client: client.set(key, value),
        lambda client: client.set(key, value, ex=1000),
        lambda client: client.mset({key: value, other: value}),
        lambda client: client.append(key, "1"),
        lambda client: client.copy(key, other, replace=True),
        lambda client: client.rename(key, other),
        lambda client: client.delete(key, fields),
        lambda client: client.expire(key, seconds),
        lambda client: client.hset(fields, "f", value),
        lambda client: client.hdel(fields, "f"),
        lambda client: client.rpush(items, value),
        lambda client: client.ltrim(items, -3, -1),
        lambda client: client.pipeline().set(key, value).hset(fields, "f", value).get(key).execute(),
    ]
    return (lambda client: client.flushdb()) if chance.random() < 0.01 else chance.choice(asked)


def course(port: int, seed: int, rounds: int) -> list[list[tuple[bytes, ...] | None]]:
    """What each client was told; every read is compared with that of a client without a cache."""
    chance = random.Random(seed)
    clients = [Client(port) for _ in "ab"]
    with contextlib.closing(redis.Redis(port=port, protocol=3, decode_responses=True)) as plain:
        plain.flushall()
        for number in range(rounds):
            client = chance.choice(clients)
            if chance.random() < 0.7:
                asked = reading(chance)
                assert asked(client) == asked(plain), number
            else:
                with contextlib.suppress(redis.ResponseError):
                    writing(chance, str(number))(client)
                for each in clients:
                    each.ping()  # what it is told stands before this reply
    told = [list(client.told) for client in clients]  # what closing does to the caches is redis-py's own
    for client in clients:
        client.close()
    return told


@pytest.mark.parametrize("seed", seeds(1, 4))
def test_no_read_is_stale_and_caches_are_told_what_redis_tells(
    reference: Reference, penstock_port: int, seed: int
) -> None:
    rounds = ROUNDS if seed < 1 else ROUNDS * 10
    told = course(penstock_port, seed, rounds)

    assert told == course(reference.port, seed, rounds)
    assert all(len(each) > rounds // 20 for each in told)
