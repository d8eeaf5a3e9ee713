"""Scripts as packages send them: a queue's job, a rate limiter, and what else they do between two requests."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Final

from bench.servers import Request

ITEMS: Final = 100  # of the list that is read
QUEUE: Final = b"""
local id = redis.call('INCR', KEYS[1] .. ':id')
local job = KEYS[1] .. ':' .. id
redis.call('HSET', job, 'name', 'mail', 'data', ARGV[1], 'at', ARGV[2], 'delay', 0, 'priority', 0)
redis.call('LPUSH', KEYS[1] .. ':wait', id)
redis.call('XADD', KEYS[1] .. ':events', 'MAXLEN', '~', 1000, '*', 'event', 'waiting', 'id', id)
local taken = redis.call('RPOPLPUSH', KEYS[1] .. ':wait', KEYS[1] .. ':active')
redis.call('HSET', KEYS[1] .. ':' .. taken, 'begun', ARGV[2])
redis.call('LREM', KEYS[1] .. ':active', 1, taken)
redis.call('DEL', KEYS[1] .. ':' .. taken)
return taken
"""
LIMITER: Final = b"""
local now, window, most = tonumber(ARGV[2]), 1000, 50
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
local count = redis.call('ZCARD', KEYS[1])
if count >= most then
  return {0, count}
end
redis.call('ZADD', KEYS[1], now, ARGV[2])
redis.call('PEXPIRE', KEYS[1], window)
return {1, count + 1}
"""
LIST: Final = b"""
local items, size = redis.call('LRANGE', KEYS[1], 0, -1), 0
for _, item in ipairs(items) do
  size = size + #item
end
return {size, items[1], items[#items]}
"""
WORDS: Final = b"""
local count, longest = 0, ''
for word in string.gmatch(ARGV[1], '%a+') do
  count = count + 1
  if #word > #longest then
    longest = word
  end
end
return {count, longest}
"""
JSON: Final = b"""
local job = cjson.decode(ARGV[3])
job.attempts = job.attempts + 1
redis.call('SET', KEYS[1], cjson.encode(job.options))
return {job.name, job.attempts, #job.data.tags}
"""
LOOP: Final = b"""
local sum = 0
for number = 1, 500 do
  sum = (sum + number * 7) % 1000
end
return sum
"""
TEXT: Final = b"the quick brown fox jumps over the lazy dog and then over another one"
JOB: Final = (
    b'{"id":123456,"name":"mail","data":{"to":"someone@example.org","subject":"hello","tags":["a","b","c"]},'
    b'"attempts":3,"options":{"delay":0}}'
)

# name -> the script
SCRIPTS: Final[dict[str, bytes]] = {
    "queue": QUEUE, "limiter": LIMITER, "list": LIST, "words": WORDS, "json": JSON, "loop": LOOP,
}  # fmt: skip


def calls_of(code: bytes, key_of: Callable[[int], bytes]) -> Callable[[int], Request]:
    """A request that runs a script, from its number."""
    sha = hashlib.sha1(code, usedforsecurity=False).hexdigest().encode()
    return lambda number: (b"EVALSHA", sha, b"1", key_of(number), TEXT, b"%d" % (1_700_000_000_000 + number), JOB)


def loaded(code: bytes, keys: list[bytes]) -> Callable[[int], Iterator[Request]]:
    """What a script needs to be there."""

    def prepare(_: int) -> Iterator[Request]:
        yield b"SCRIPT", b"LOAD", code
        if code is LIST:
            for key in keys:
                yield b"RPUSH", key, *[b"item:%d" % number for number in range(ITEMS)]

    return prepare
