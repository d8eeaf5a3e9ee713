"""Random requests about scripts: what others make, asked through redis.call, and what Lua makes of the replies."""

from tests.against_redis.makers.lists import Lists
from tests.against_redis.makers.shared import Maker, Row
from tests.against_redis.makers.strings import Strings
from tests.support.random_words import Request

BODIES = (
    "return redis.call(unpack(ARGV))",
    "return redis.pcall(unpack(ARGV))",
    "local ok, found = pcall(redis.call, unpack(ARGV)) return {ok, found}",
    "redis.setresp(3) return redis.call(unpack(ARGV))",
    "redis.setresp(3) return {redis.pcall(unpack(ARGV)), true, false}",
    "local t = {} for i = 1, #ARGV do t[i] = #ARGV[i] end return t",
    "local found = redis.call(unpack(ARGV)) return {type(found), found}",
    "return cjson.encode(ARGV)",
    "return cmsgpack.unpack(cmsgpack.pack(ARGV))",
    "return cjson.decode(cjson.encode({a = ARGV, b = {1.5, true, cjson.null}})).a",
    "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])",
    "redis.call('RPUSH', KEYS[1], unpack(ARGV)) return redis.call('LRANGE', KEYS[1], 0, -1)",
    "redis.call('SET', KEYS[1], 1) redis.call('INCR', KEYS[1]) return redis.call('NOPE')",
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0",
    "return redis.call('TYPE', KEYS[1]).ok .. ':' .. #KEYS",
    "return {KEYS, ARGV, tonumber(ARGV[1]), nil, 5}",
    "error(ARGV[1])",
    "error({err = ARGV[1]})",
    "return {err = ARGV[1]}",
    "return redis.error_reply(ARGV[1])",
    "return redis.status_reply(ARGV[1])",
    "return {double = tonumber(ARGV[1]) or 0.5}",
    "return struct.pack('>I2s', #ARGV, ARGV[1] or '')",
    "return undefined",
    "undefined = 1",
    "return 1 +",
)


class Scripts(Maker):
    """EVAL of a few bodies with another maker's request as its arguments."""

    kind = "lists"

    def rows(self) -> list[Row]:
        self._others = [make for maker in (Lists, Strings) for _, name, make in maker(self.chance, self.known).rows()]
        return [(10, "EVAL", self.script), (2, "EVAL_RO", self.read_only), (2, "SCRIPT", self.cached)]

    def script(self) -> Request:
        keys = self.some(self.key, 2)
        return ["EVAL", self.of(*BODIES), str(len(keys)), *keys, *self._words()]

    def read_only(self) -> Request:
        return ["EVAL_RO", *self.script()[1:]]

    def cached(self) -> Request:
        return ["SCRIPT", "LOAD", self.of(*BODIES)]

    def _words(self) -> Request:
        if not hasattr(self, "_others"):
            self.rows()
        words = self.chance.choice(self._others)() if self.chance.random() < 0.8 else self.some(self.value, 4)
        return [word for word in words if word.upper() != "IDX"]  # a map, without an order in Lua
