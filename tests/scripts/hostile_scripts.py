"""Scripts that try to kill, hang, fill or change the server they run in, from a seed."""

# ruff: noqa: E501  (scripts as they are written)
import random
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from tests.scripts.bytecode import dumps, mutated
from tests.scripts.grammar import Grammar
from tests.scripts.hostile_vocabulary import (
    ATTACKS,
    CALLBACKS,
    CHUNK_NAMES,
    ENDLESS,
    EXTREMES,
    FUNCTIONS,
    LOOP_BODIES,
    PATTERN_PIECES,
    REGRESSIONS,
    SHARED,
    WATCHED_VALUES,
)  # fmt: skip

T = TypeVar("T")

Request = list[bytes]


class HostileScripts:
    """Requests from one seed; `kind` names the maker of the last."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.kind = ""

    def requests(self) -> list[Request]:
        """What one client sends: mostly one EVAL."""
        makers: tuple[tuple[int, Callable[[], bytes | str]], ...] = (
            (30, self.extreme_call), (14, self.recursion), (8, self.pattern), (2, self.memory), (3, self.endless), (10, self.bytecode),
            (5, self.chunk_name), (12, self.shared_tables), (10, self.host_values), (10, self.error_objects), (6, self.regression), (12, self.mutated_regression),
            (6, self.mutated_grammar), (4, self.garbage_collector), (4, self.nested_source),
        )  # fmt: skip
        make = self._chance.choices([one for _, one in makers], [weight for weight, _ in makers])[0]
        self.kind = make.__name__
        made = make()
        code = made if isinstance(made, bytes) else made.encode("utf-8", "surrogateescape")
        words = [b"0", self._of((b"a", b"", b"\x1bLua", b"x" * 1000)), self._of(dumps())]
        shape = self._chance.random()
        if shape < 0.8:
            return [[b"EVAL", code, *words]]
        if shape < 0.84:
            return [[b"MULTI"], [b"EVAL", code, *words], [b"EXEC"]]
        if shape < 0.87:
            return [[b"SCRIPT", b"LOAD", code], [b"EVAL_RO", code, *words]]
        if shape < 0.9:
            return [[b"FUNCTION", b"LOAD", b"REPLACE", b"#!lua name=hostile\n" + code]]
        if shape < 0.92 and self.kind == "bytecode":
            return [[b"FUNCTION", b"RESTORE", mutated(b"\xf5\xc3\x40\x80#!lua name=x\n" + code, self._chance)]]
        library = b"#!lua name=hostile\nredis.register_function('hostile', function(KEYS, ARGV)\n" + code + b"\nend)"
        return [[b"FUNCTION", b"LOAD", b"REPLACE", library], [b"FCALL", b"hostile", *words]]

    def extreme_call(self) -> str:
        calls = []
        for _ in range(self._chance.choice((1, 1, 2, 4))):
            given = ", ".join(self._of(EXTREMES) for _ in range(self._chance.choice((0, 1, 1, 2, 2, 3, 3, 4))))
            name = self._of(FUNCTIONS)
            calls.append(f"pcall({name}{', ' if given else ''}{given})" if self._happens(0.7) else f"{name}({given})")
        if self._happens(0.5):
            return WATCHED_VALUES + " ".join(f"leaked(pcall(function() return {call} end))" for call in calls)
        return " ".join(f"local r = {call}" for call in calls) + self._of(
            (" return r", "", " return {r, r}", " return tostring(r)")
        )

    def recursion(self) -> str:
        first, second = self._of(CALLBACKS), self._of(CALLBACKS)
        inner = self._of(("return {c}", "local r = {c} return r", "pcall(function() return {c} end)", "local r = {{{c}}} return 1", "n = n + 1 if n < {m} then return {c} end return ''"))  # fmt: skip

        def body(callback: str, other: str) -> str:
            call = callback.format(f=other)
            if call.startswith("for "):
                return call
            return inner.format(c=call, m=self._of(("150", "190", "210", "1000", "20000", "1000000")))

        return f"local n = 0 local f, g f = function(...) {body(first, 'g')} end g = function(...) {body(second, 'f')} end {self._of(('return f()', 'return pcall(f)', 'f() return n', 'return coroutine.wrap(f)()'))}"

    def pattern(self) -> str:
        size, much = self._of(("10", "1000", "50000", "300000")), self._of(("2", "5", "20", "33", "500", "20000"))
        piece = self._of(PATTERN_PIECES)
        pattern = f"('{piece}'):rep({much}) .. '{self._of(PATTERN_PIECES)}'"
        if self._happens(0.4):
            pattern = "'" + "".join(self._of(PATTERN_PIECES) for _ in range(self._chance.randrange(1, 9))) + "'"
        subject = f"('{self._of(('a', 'ab', '(', '()', 'a b', ' '))}'):rep({size})"
        call = self._of(("string.find(s, p)", "string.match(s, p)", "string.gsub(s, p, '%1')", "string.gsub(s, p, 'yy')", "string.find(s, p, -5)", "string.gsub(s, p, {})", "(function() for a in string.gmatch(s, p) do end end)()"))  # fmt: skip
        return f"local s, p = {subject}, {pattern} return {self._of(('pcall(function() return {c} end)', '{c}')).format(c=call)}"

    def memory(self) -> str:
        grow: str = self._of(
            (
                "local s = 'x' for i = 1, 40 do s = s .. s end", "local t = {} for i = 1, 1e9 do t[i] = i end", "local t = {} for i = 1, 1e9 do t[i] = {} end", "local t = {} while true do t = {t} end",
                "string.rep('x', 1e9)", "string.rep('x', 2^31)", "string.rep(string.rep('x', 1e6), 1e6)", "local t = {} for i = 1, 1000 do t[i] = string.rep('x', 1e6) .. i end", "local t = {} while true do t[#t + 1] = function() return t end end",
                "local t = {} while true do t[#t + 1] = coroutine.create(function() end) end", "local t = {} while true do local c = coroutine.wrap(function() coroutine.yield() end) c() t[#t + 1] = c end",
                "local t = {} for i = 1, 1e9 do t['k' .. i] = i end", "string.gsub(string.rep('x', 1e6), 'x', string.rep('y', 1e6))", "string.format(string.rep('%99s', 1000000), unpack({}, 1, 200))",
                "local s = string.rep('x', 1e8) local t = {} for i = 1, 20 do t[i] = s end return #table.concat(t)", "local t = {} for i = 1, 100 do t[i] = cjson.encode(string.rep('\\0', 1e6)) end", "local t = {} for i = 1, 1e9 do t[-i] = i end",
                "local s = {} for i = 1, 1e7 do s[i] = 'a=a ' end loadstring(table.concat(s))", "local p = {} while true do p[#p + 1] = loadstring('return {1,2,3,4,5,6,7,8,9}') end", "return string.rep('x', 6e8)", "return {string.rep('x', 2e8), string.rep('x', 2e8)}",
            )
        )  # fmt: skip
        frame = self._of(("{g}", "{g}", "collectgarbage('stop') {g}", "for i = 1, 3 do pcall(function() {g} end) end", "collectgarbage('setpause', 1000000) {g}", "collectgarbage('setstepmul', 0) {g}", "coroutine.wrap(function() {g} end)()"))  # fmt: skip
        return frame.replace("{g}", f"do {grow} end")

    def endless(self) -> str:
        name = self._of(CHUNK_NAMES)
        loop = self._of(ENDLESS).format(b=self._of(LOOP_BODIES), n=name)
        return self._of(("{l}", "{l}", "pcall(function() {l} end)", "coroutine.wrap(function() {l} end)()", "xpcall(function() {l} end, function() {l} end)", "loadstring([==[{l}]==], '" + name + "')()", "local t = setmetatable({}, {__index=function() {l} end}) return t.x", "collectgarbage('stop') {l}")).replace("{l}", loop)  # fmt: skip

    def bytecode(self) -> bytes | str:
        dump = mutated(self._of(dumps()), self._chance) if self._happens(0.9) else self._of(dumps())
        how = self._chance.random()
        if how < 0.35:
            return dump
        text = "".join(f"\\{byte:03d}" for byte in dump)
        name = self._of(CHUNK_NAMES)
        return self._of(
            (
                f"return loadstring('{text}')()", f"return loadstring('{text}', '{name}')()", f"local d = '{text}' return load(function() local x = d d = nil return x end)()",
                f"local i, d = 0, '{text}' return load(function() i = i + 1 return d:sub(i, i) end)()", "return loadstring(ARGV[2])()", f"return load('{text}')()", f"return loadstring('{text}', 'x', 'b')()",
                "return loadstring(string.dump(function(...) return ... end))(1)", "return string.dump(print)", f"return pcall(loadstring('{text}'))", f"setfenv(loadstring('{text}'), {{}})()", f"return loadstring(' {text}')()",
                f"return loadstring('#\\n{text}')()", f"return load(function(x) return '{text}' end)",
            )
        )  # fmt: skip

    def chunk_name(self) -> str:
        name = self._of(
            (
                *(f"'{one}'" for one in CHUNK_NAMES),
                "string.rep('n', 100000)",
                "string.rep('\\n', 1000)",
                "{}",
                "nil",
                "5",
            )
        )
        code = self._of(
            (
                "error('x')",
                "local x = nil + 1",
                "return nosuch",
                "x y",
                "error('x', 2)",
                "redis.call('NOSUCH')",
                "return loadstring('error(1)', '=penstock')()",
                "return string.rep()",
                "error({err='E'})",
            )
        )
        return f"local f, e = loadstring([[{code}]], {name}) if not f then return e end return {self._of(('f()', '{pcall(f)}', 'coroutine.wrap(f)()', 'select(2, pcall(f))', 'xpcall(f, tostring)'))}"

    def shared_tables(self) -> str:
        parts = []
        for _ in range(self._chance.choice((1, 1, 2, 3))):
            attack = f"local t = {self._of(SHARED)} {self._of(ATTACKS)}"
            parts.append(f"pcall(function() {attack} end)" if self._happens(0.7) else f"do {attack} end")
        return " ".join(parts) + " return 'done'"

    def host_values(self) -> str:
        name = self._of(("redis.log", "redis.call", "redis.pcall", "redis.sha1hex", "redis.setresp", "redis.acl_check_cmd", "redis.error_reply", "redis.status_reply", "redis.set_repl", "redis.debug", "redis.breakpoint",
            "redis.register_function", "math.random", "math.randomseed", "bit.tobit", "bit.tohex", "cmsgpack.pack", "cmsgpack.unpack", "struct.pack", "struct.unpack", "cjson.encode", "cjson.decode", "tostring", "tonumber",
            "__redis__err__handler", "redis.replicate_commands", "os.clock", "bit.rol", "bit.arshift"))  # fmt: skip
        given = ", ".join(self._of(EXTREMES) for _ in range(self._chance.choice((1, 2, 2, 3))))
        probe = self._of(("", " local m = type(e) ~= 'string' and getmetatable(e) if m then for k in pairs(m) do m[k] = error end m.__call = function() return '+pwned\\r\\n' end m.__index = error end",
            " pcall(function() return e.__class__ end) pcall(function() return e() end) pcall(function() e.x = 1 end)", " pcall(function() for k, v in pairs(e) do leaked(v) end end)"))  # fmt: skip
        return f"{WATCHED_VALUES} local ok, e = pcall({name}, {given}) leaked(e){probe} local ok, e = xpcall(function() return {name}({given}) end, function(m) leaked(m) return m end) leaked(e) return 'done'"

    def error_objects(self) -> str:
        value = self._of(EXTREMES)
        raised = self._of(("error({v})", "error({v}, 2)", "return {v}", "return {{err={v}}}", "return {{ok={v}}}", "error({{err={v}}})", "return redis.error_reply({v})", "return redis.status_reply({v})", "return {{map={v}}}", "return {{set={v}}}",
            "return {{double={v}}}", "return {{big_number={v}}}", "return {{verbatim_string={v}}}", "return {{verbatim_string={{string={v}, format={v}}}}}", "error({{err='x', source={v}, line={v}}})", "assert(false, {v})", "return {{map={{[1]={v}, x={v}}}}}",
            "redis.call({v})", "redis.call('ECHO', {v})", "error({{err=setmetatable({{}}, {{__tostring=error}})}})", "return setmetatable({{}}, {{__index=function(t, k) return {v} end}})", "coroutine.wrap(function() error({v}) end)()"))  # fmt: skip
        text = raised.format(v=value)
        return self._of(("{t}", "local ok, e = pcall(function() {t} end) error(e)", "local ok, e = pcall(function() {t} end) return e", "local ok, e = pcall(function() {t} end) return redis.error_reply(e)", "table.sort({2, 1}, function() {t} end)",
            "string.gsub('a', 'a', function() {t} end)", "xpcall(function() {t} end, function(e) error(e) end)", "local c = coroutine.create(function() {t} end) return {coroutine.resume(c)}", "redis.setresp(3) {t}", "load(function() {t} end)",
            "tostring(setmetatable({}, {__tostring=function() {t} end}))", "return xpcall(function() {t} end, redis.error_reply)")).replace("{t}", text)  # fmt: skip

    def regression(self) -> str:
        return self._of(REGRESSIONS)

    def mutated_regression(self) -> str:
        return self._mutated_source(self._of(REGRESSIONS))

    def mutated_grammar(self) -> str:
        return self._mutated_source("\n".join(Grammar(self._chance).script()))

    def _mutated_source(self, text: str) -> str:
        tokens = re.findall(r"\w+|\s+|[^\w\s]", text)
        for _ in range(self._chance.choice((1, 1, 2, 3, 8))):
            at = self._chance.randrange(len(tokens)) if tokens else 0
            change = self._chance.randrange(6)
            if change == 0:
                del tokens[at : at + 1]
            elif change == 1:
                tokens[at:at] = tokens[at : at + self._chance.randrange(1, 6)]
            elif change == 2:
                numbers = [place for place, token in enumerate(tokens) if token.isdigit()]
                if numbers:
                    tokens[self._chance.choice(numbers)] = self._of(EXTREMES)
            elif change == 3:
                other = self._chance.randrange(len(tokens) or 1)
                tokens[at : at + 1] = tokens[other : other + 1]
            elif change == 4:
                tokens.insert(
                    at,
                    " "
                    + self._of((*EXTREMES, *FUNCTIONS, "\0", "\x1b", "]]", "[[", "--", "(", "}", "end", "\xff"))
                    + " ",
                )
            elif at + 1 < len(tokens):
                tokens[at], tokens[at + 1] = tokens[at + 1], tokens[at]
        return "".join(tokens)

    def garbage_collector(self) -> str:
        option, number = (
            self._of(("collect", "stop", "restart", "count", "step", "setpause", "setstepmul", "isrunning", "x")),
            self._of(EXTREMES),
        )
        work = self._of(
            (
                "local t = {} for i = 1, 20000 do t[i] = {i} end",
                "for i = 1, 200 do string.rep('x', 10000 + i) end",
                "local t = setmetatable({}, {__mode='kv', __gc=error}) for i = 1, 1000 do t[{}] = {} end",
                "newproxy(true)",
            )
        )
        return f"pcall(collectgarbage, '{option}', {number}) pcall(function() {work} end) pcall(collectgarbage, '{self._of(('step', 'stop', 'collect'))}', {self._of(EXTREMES)}) return collectgarbage('count') > 0"

    def nested_source(self) -> str:
        much = self._of(("100", "190", "250", "5000", "100000"))
        opened, closed = self._of((("(", ")"), ("{", "}"), ("not ", ""), ("-", ""), ("function() return ", " end"), ("f(", ")"), ("a[", "]"), ("1 .. ", ""), ("1 ^ ", ""), ("#", ""), ("a.b", ""), ("f{", "}"), ("[=[", "]=]"), ("(1)+", "")))  # fmt: skip
        opened2, closed2 = self._of(
            (
                ("do ", " end"),
                ("if x then ", " end"),
                ("while x do ", " end"),
                ("local a ", ""),
                ("local function f() ", " end "),
                ("for i=1,2 do ", " end"),
                ("repeat ", " until x"),
                (";", ""),
                ("a=1 ", ""),
                ("local a,", "b"),
                ("elseif x then ", ""),
            )
        )
        source = f"'return ' .. string.rep('{opened}', {much}) .. '1' .. string.rep('{closed}', {much})"
        if self._happens(0.4):
            source = f"string.rep('{opened2}', {much}) .. string.rep('{closed2}', {much})"
        return f"local f, e = loadstring({source}) if f then return {self._of(('pcall(f)', 'f()', '1'))} end return e"

    def _happens(self, probability: float) -> bool:
        return self._chance.random() < probability

    def _of(self, choices: Sequence[T]) -> T:
        return self._chance.choice(choices)
