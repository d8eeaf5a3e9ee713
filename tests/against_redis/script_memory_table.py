"""Scripts and functions above maxmemory: their replies must be those of a real Redis."""

# ruff: noqa: E501  (scripts as they were asked)
from typing import Final

_SET = "return redis.call('set','k','v')"
_MEMORY_LIBRARY = (
    "#!lua name=lib\n"
    "redis.register_function('w',function() return redis.call('set','k','v') end)\n"
    "redis.register_function{function_name='a',callback=function() return redis.call('set','k','v') end,flags={'allow-oom'}}\n"
    "redis.register_function{function_name='r',callback=function() return redis.call('get','k') end,flags={'no-writes'}}"
)
_ABOVE = (
    _SET,
    "return redis.call('get','k')",
    "return redis.pcall('set','k','v')",
    "redis.call('del','x') return redis.call('set','k','w')",
    "redis.call('del','nosuch') redis.call('set','a','b') redis.call('set','b','c') return 2",
    "redis.call('expire','k','100') return redis.call('append','k','1')",
    "redis.call('publish','c','m') return redis.call('set','k','2')",
    "redis.pcall('del') return redis.call('set','k','2')",
    "redis.pcall('hdel','k','f') return redis.call('set','k','2')",
    "redis.pcall('set','k','1') redis.call('del','x') return redis.call('set','k','2')",
    "redis.call('lpush','l','1') return redis.call('lpop','l')",
    "#!lua\nreturn redis.call('get','k')",
    "#!lua flags=no-writes\nreturn redis.call('get','k')",
    "#!lua flags=no-writes\nreturn redis.call('set','k','v')",
    "#!lua flags=allow-oom\nreturn redis.call('set','k','v')",
    "#!lua flags=allow-oom,no-writes\nreturn redis.call('get','k')",
)

# above maxmemory, where what needs memory is refused
MEMORY: Final[tuple[tuple[str, ...], ...]] = (
    ("FUNCTION", "LOAD", _MEMORY_LIBRARY),
    ("SET", "k", "old"),
    ("SET", "x", "1"),
    ("CONFIG", "SET", "maxmemory", "100"),
    *[(name, code, "0") for code in _ABOVE for name in ("EVAL", "EVAL_RO")],
    ("FUNCTION", "LOAD", "REPLACE", _MEMORY_LIBRARY),
    ("FCALL", "w", "0"),
    ("FCALL", "a", "0"),
    ("FCALL", "r", "0"),
    ("FCALL_RO", "r", "0"),
    ("FCALL_RO", "w", "0"),
    ("FCALL_RO", "a", "0"),
    ("SCRIPT", "LOAD", "return 1"),
    ("MULTI",),
    ("EVAL", _SET, "0"),
    ("EVAL", "return redis.call('get','k')", "0"),
    ("EXEC",),
    ("GET", "k"),
    ("CONFIG", "SET", "maxmemory", "0"),
    ("EVAL", _SET, "0"),
)
