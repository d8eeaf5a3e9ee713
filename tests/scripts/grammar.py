"""Random scripts in Lua 5.1 and random libraries of functions, from a seed: nearly all are valid, all of them end.

What differs by nature is not made: the order of pairs over hash keys, addresses in texts, clocks, chance without a
seed.
"""

# ruff: noqa: E501  (scripts as they are written)
from collections.abc import Callable
from typing import Final

from tests.scripts import vocabulary
from tests.scripts.expressions import DEEPEST, Expressions

SHOW: Final = (
    "local function show(v, d) d = d or 0 local t = type(v) "
    "if t == 'number' then return v ~= v and 'nan' or string.format('%.17g', v) end "
    "if t == 'string' then return '<' .. string.gsub(v, '[^%w%p ]', function(c) return '\\\\' .. string.byte(c) end) .. '>' end "
    "if t ~= 'table' then return t == 'boolean' and tostring(v) or t end "
    "if d > 5 then return '{...}' end local out = {} "
    "for k, x in next, v do out[#out + 1] = show(k, d + 1) .. '=' .. show(x, d + 1) end "
    "table.sort(out) return '{' .. table.concat(out, ',') .. '}' end "
    "local function all(...) local out = {} for i = 1, select('#', ...) do out[i] = show((select(i, ...))) end "
    "return table.concat(out, ' ') end"
)


class Grammar(Expressions):
    """A script or a library, one seed each: `Grammar(random.Random(seed)).script()` is its statements, a text each."""

    # -- whole scripts ------------------------------------------------------------------------------------------------

    def script(self) -> list[str]:
        """The statements of a script; some return what they found as a text, some as it is."""
        if self._happens(0.04):
            return [self._of(vocabulary.BROKEN), *(self.statement(1) for _ in range(self._chance.randrange(2)))]
        self._shows = self._happens(0.75)
        statements = [SHOW] if self._shows else []
        if self._happens(0.1):
            statements.append("redis.setresp(3)")
        statements += [self.statement(0) for _ in range(self._chance.choice((1, 1, 2, 2, 3, 4, 6)))]
        if self._happens(0.02):
            statements.append(self._of(vocabulary.BROKEN))
        statements.append(f"return {self.shown()}")
        return statements

    def library(self, name: str) -> list[str]:
        """The lines of a library of up to three functions named f, g and h."""
        self._in_library = True
        self._shows = True
        statements = [f"#!lua name={name}\n{SHOW}"]
        statements += [self._local(DEEPEST - 1) for _ in range(self._chance.randrange(2))]
        if self._happens(0.03):
            statements.append(self.statement(1))
        for function in "fgh"[: self._chance.choice((1, 1, 2, 3))]:
            statements.append(self._registration(function))
        if self._happens(0.02):
            statements.append(self._of(vocabulary.BROKEN))
        return statements

    def _registration(self, name: str) -> str:
        kept = dict(self._kinds)
        self._kinds |= {"keys": "T", "args": "T"}
        body = self._block(1, self._chance.choice((1, 2, 3))) + f" return {self.shown()}"
        self._kinds = kept
        callback = f"function(keys, args) {body} end"
        shape = self._chance.random()
        if shape < 0.75:
            return f"redis.register_function('{name}', {callback})"
        if shape < 0.96:
            flags = self._of(
                ("{}",) * 6
                + ("{'no-writes'}",) * 3
                + ("{'allow-stale', 'no-writes'}", "{'nosuch'}", "{1}", "'no-writes'")
            )
            described = self._of(("", "description='d', ", "description=7, "))
            return f"redis.register_function{{function_name='{name}', callback={callback}, {described}flags={flags}}}"
        return self._of(
            (
                f"redis.register_function({self.expression('V', 2)}, {callback})",
                f"redis.register_function('{name}', {self.expression('V', 2)})",
                f"redis.register_function{{function_name='{name}'}}",
                f"redis.register_function{{callback={callback}}}",
                f"redis.register_function('{name}', {callback}, {{}})",
                f"redis.register_function{{function_name='{name}', callback={callback}, other=1}}",
                "redis.register_function()",
                f"redis.register_function('{name}-', {callback})",
            )
        )

    def shown(self) -> str:
        """What a script returns in the end."""
        if self._shows and self._happens(0.9):
            several = [self.expression("V", 1) for _ in range(self._chance.choice((1, 2, 3)))]
            return f"all({', '.join([*self._some_locals(), *several])})"
        wanted = self._chance.choice("NSTTVR")
        return self._reply() if wanted == "R" else self.expression(wanted, 1)

    def _reply(self) -> str:
        """A table that Redis turns into a reply of its own kind."""
        make: str = self._of(
            (
                "{{ok={S}}}", "{{err={S}}}", "{{double={N}}}", "{{map={{a={V}}}}}", "{{set={{m=true}}}}", "{{big_number={S}}}",
                "{{verbatim_string={{string={S}, format='txt'}}}}", "{{err={S}, source='x', line=1}}", "{{1, {V}, nil, 4}}",
                "{{{V}, {{{V}, {{{V}}}}}}}", "redis.error_reply({S})", "redis.status_reply({S})", "{{true, false, {V}}}",
                "{{map={{{V}}}}}", "{{set={V}}}", "setmetatable({{}}, {{__index={{1, 2}}}})", "{{ok={V}}}", "{{err={V}}}",
                "{{double={V}}}", "{{attribute={V}}}", "{{{V}, {{err='in side'}}, {{double={N}}}}}", "cjson.null", "nil, 1", "",
            )
        )  # fmt: skip
        return make.format(S=self.expression("S", 2), N=self.expression("N", 2), V=self.expression("V", 2))

    # -- statements ---------------------------------------------------------------------------------------------------

    def statement(self, depth: int) -> str:
        """One statement; what it declares may be used after it."""
        if depth >= DEEPEST:
            return self._local(depth)
        makers: tuple[tuple[int, Callable[[int], str]], ...] = (
            (10, self._local), (4, self._assignment), (3, self._condition), (3, self._numeric_for), (3, self._each),
            (2, self._while), (2, self._repeat), (5, self._function), (5, self._protected), (2, self._raised),
            (3, self._coroutine), (6, self._request), (4, self._table_work), (3, self._metatable), (2, self._varargs),
            (2, self._closures), (2, self._gmatch), (1, self._loaded), (1, self._do), (1, self._global), (2, self._call),
            (1, self._random), (1, self._early), (1, self._deep), (1, self._sorted),
        )  # fmt: skip
        make = self._chance.choices([one for _, one in makers], [weight for weight, _ in makers])[0]
        return make(depth)

    def _block(self, depth: int, count: int = 0) -> str:
        """Statements with locals that are forgotten after it."""
        kept = dict(self._kinds)
        made = [self.statement(depth + 1) for _ in range(count or self._chance.choice((1, 1, 2)))]
        self._kinds = kept
        return self._of((" ", "\n", " ; ")).join(made)

    def _local(self, depth: int) -> str:
        kind = self._chance.choice("NNSSTLV")
        if self._happens(0.15):
            first, second = self._fresh(), self._fresh()
            text = f"local {first}, {second} = {self._called(depth + 1)}"
            self._kinds |= {first: "V", second: "V"}
            return text
        value = self.expression(kind, depth + 1)
        name = self._fresh()
        self._kinds[name] = kind
        return f"local {name} = {value}"

    def _assignment(self, depth: int) -> str:
        name = self._local_of("V") or "nosuch"
        if self._kinds.get(name) in ("T", "L"):
            return (
                f"{name}[{self.expression(self._chance.choice('ISN'), depth + 1)}] = {self.expression('V', depth + 1)}"
            )
        if self._happens(0.2) and len(self._kinds) > 1:
            other = self._local_of(self._kinds.get(name, "V"))
            return f"{name}, {other} = {other}, {name}"
        return f"{name} = {self.expression(self._kinds.get(name, 'V'), depth + 1)}"

    def _condition(self, depth: int) -> str:
        text = f"if {self.expression('O', depth + 1)} then {self._block(depth)}"
        if self._happens(0.3):
            text += f" elseif {self.expression('O', depth + 1)} then {self._block(depth)}"
        if self._happens(0.5):
            text += f" else {self._block(depth)}"
        return text + " end"

    def _loop(self, depth: int, **kinds: str) -> str:
        kept, was = dict(self._kinds), self._in_loop
        self._kinds |= kinds
        self._in_loop = True
        text = self._block(depth)
        self._kinds, self._in_loop = kept, was
        return text + (f" if {self.expression('O', 3)} then break end" if self._happens(0.2) else "")

    def _numeric_for(self, depth: int) -> str:
        name = self._fresh()
        bounds = self._of(
            (
                "1, 3",
                "3, 1, -1",
                "1, 0",
                "0, 1, 0.25",
                "1, #ARGV",
                "-1, 1",
                "5, 1",
                "1, '2'",
                *(("1, nil", "1, {}", "1, 2, 'x'") if self._wrong else ()),
            )
        )
        return f"for {name} = {bounds} do {self._loop(depth, **{name: 'N'})} end"

    def _each(self, depth: int) -> str:
        place, held = self._fresh(), self._fresh()
        walked = self._expression_L(depth + 1)  # of its own: a loop that lets it grow would not end
        how = f"pairs({{{self.expression('V', 3)}}})" if self._happens(0.3) else f"ipairs({walked})"
        return f"for {place}, {held} in {how} do {self._loop(depth, **{place: 'N', held: 'V'})} end"

    def _while(self, depth: int) -> str:
        name = self._fresh()
        return f"local {name} = 0 while {name} < {self._of(('1', '2', '3'))} do {name} = {name} + 1 {self._loop(depth)} end"

    def _repeat(self, depth: int) -> str:
        name = self._fresh()
        ends = self._of(("1", "2", "3"))
        return f"local {name} = 0 repeat {name} = {name} + 1 {self._loop(depth)} until {name} >= {ends}"

    def _function(self, depth: int) -> str:
        name, one, two = self._fresh(), self._fresh(), self._fresh()
        kept, was = dict(self._kinds), self._in_loop
        self._kinds |= {one: "V", two: "V"}
        self._in_loop = False
        body = self._block(depth)
        answer = self._of((f"return {self.expression('V', depth + 1)}", f"return {one}, {two}", "", "return"))
        if self._happens(0.15):
            answer = f"if type({one}) == 'number' and {one} > 0 then return {name}({one} - 1, {two}) end return {two}"
        self._kinds, self._in_loop = kept, was
        self._kinds[name] = "F"
        return f"local function {name}({one}, {two}) {body} {answer} end"

    def _protected(self, depth: int) -> str:
        done, found = self._fresh(), self._fresh()
        was, self._in_loop = self._in_loop, False
        body = f"{self._block(depth)} {self._raise() if self._happens(0.4) else ''} return {self.expression('V', depth + 1)}"
        self._in_loop = was
        if self._happens(0.4):
            handler = self._of(("function(e) return e end", "function(e) return {e} end", "function(e) error(e) end", "type",
                "tostring" if self._happens(0.1) else "type", "function(e) return type(e) == 'table' and e.err or e end", "5"))  # fmt: skip
            text = f"local {done}, {found} = xpcall(function() {body} end, {handler})"
        else:
            text = f"local {done}, {found} = pcall(function(...) {body} end, {self.expression('V', depth + 2)})"
        self._kinds |= {done: "O", found: "V"}
        return text

    def _raise(self) -> str:
        return self._of(
            (
                f"error({self.expression('V', 3)})", f"error({self.expression('S', 3)}, {self._of(('0', '1', '2', '3'))})",
                f"error({{err={self.expression('S', 3)}}})", "error()", "error(nil)", f"error({{code={self.expression('N', 3)}}})",
                "error(redis.error_reply('MY error'))", f"redis.call({self._words()})", "error(true)", "local nothing nothing()",
                f"error({self.expression('N', 3)})", "local none = nil; none.x = 1", "error(setmetatable({}, {__index={err='E x'}}))",
                "error({err={}})", "error({err='ERR a', source='s', line=3})", "error(function() end)", "error('a\\nb')",
            )
        )  # fmt: skip

    def _raised(self, depth: int) -> str:
        return f"if {self.expression('O', depth + 1)} then {self._raise()} end"

    def _coroutine(self, depth: int) -> str:
        thread, got, more = self._fresh(), self._fresh(), self._fresh()
        was, self._in_loop = self._in_loop, False
        body = self._block(depth, 1)
        self._in_loop = was
        yielded = self.expression("V", depth + 2)
        ends = self._raise() if self._happens(0.2) else f"return {self.expression('V', depth + 2)}"
        self._kinds |= {got: "V", more: "V"}
        if self._happens(0.4):
            return (
                f"local {thread} = coroutine.wrap(function(...) {body} coroutine.yield({yielded}, ...) {ends} end) "
                f"local {got} = {thread}({self.expression('V', 3)}) local {more} = {self._of((thread + '()', thread, '1'))}"
            )
        return (
            f"local {thread} = coroutine.create(function(a) {body} local b = coroutine.yield({yielded}, a) {ends} end) "
            f"local _, {got} = coroutine.resume({thread}, {self.expression('V', 3)}) "
            f"local {more} = {{coroutine.resume({thread}, 1), coroutine.status({thread}), coroutine.resume({thread})}}"
        )

    def _words(self) -> str:
        return (
            self._of(vocabulary.COMMANDS)
            .replace("{V}", self.expression(self._chance.choice("SSNNV"), 3))
            .replace("{N}", self.expression("N", 3))
            .replace("{D}", self._of(vocabulary.PROTOCOLS))
        )

    def _request(self, depth: int) -> str:
        asked = f"redis.{self._of(('call', 'call', 'pcall'))}({self._words()})"
        if self._happens(0.3):
            return asked
        name = self._fresh()
        self._kinds[name] = "V"
        return f"local {name} = {asked}"

    def _table_work(self, depth: int) -> str:
        name = self._fresh()
        text = f"local {name} = {self.expression('L', depth + 1)} "
        self._kinds[name] = "L"
        for _ in range(self._chance.choice((1, 2))):
            text += self._of(
                (
                    f"table.insert({name}, {self.expression('V', depth + 2)}) ",
                    f"table.insert({name}, 1, {self.expression('S', depth + 2)}) ",
                    f"table.remove({name}) ", f"table.remove({name}, 1) ", f"{name}[#{name} + 1] = {self.expression('V', depth + 2)} ",
                    f"{name}.n = {self.expression('V', depth + 2)} ", f"{name}[{self.expression('N', depth + 2)}] = 1 ",
                    f"{name}[1] = nil ", f"rawset({name}, 'r', 1) ",
                )
            )  # fmt: skip
        return text

    def _sorted(self, depth: int) -> str:
        name = self._fresh()
        self._kinds[name] = "L"
        order = self._of(("", "", ", function(a, b) return a > b end", ", function(a, b) return tostring(a) < tostring(b) end", ", 5",
            ", function(a, b) error('in sort') end", ", function() return true end" if self._happens(0.1) else ""))  # fmt: skip
        return f"local {name} = {self._of(('{3, 1, 2}', '{5, 4, 4, 1, 9, -1}', self._words_list(), self.expression('L', 3)))} table.sort({name}{order})"

    def _words_list(self) -> str:
        return "{" + ", ".join(self._of(vocabulary.STRINGS) for _ in range(4)) + "}"

    def _metatable(self, depth: int) -> str:
        name = self._fresh()
        self._kinds[name] = "T"
        event = self._of(("__index", "__newindex", "__call", "__add", "__concat", "__eq", "__lt", "__le", "__len", "__unm", "__tostring",
            "__metatable", "__mod", "__pow", "__div", "__sub", "__mul", "__pairs", "__gc", "__mode"))  # fmt: skip
        handler = self._of((f"function(a, b, c) return {self.expression('V', depth + 2)} end", "function(a, b) return b end",
            "function(...) return select('#', ...) end", "{x=1}", "5", "function() error('in metamethod') end"))  # fmt: skip
        use = self._of(("{n}.missing", "{n} + 1", "1 .. {n}", "{n} == {n}", "{n} < {n}", "{n} <= {{}}", "#{n}", "-{n}", "{n}(1, 2)", "{n} % 2", "2 ^ {n}",
            "getmetatable({n})", "{n}.a.b", "rawget({n}, 'a')", "{n} / {n}", "{n} .. 'x'", "setmetatable({n}, nil)", "next({n})", "{n}:method(1)"))  # fmt: skip
        found = self._fresh()
        text = f"local {name} = setmetatable({{}}, {{{event}={handler}}}) local {found} = {use.format(n=name)}"
        self._kinds[found] = "V"
        return text

    def _varargs(self, depth: int) -> str:
        name = self._fresh()
        self._kinds[name] = "V"
        inner = self._of(
            (
                "select('#', ...)",
                "select(2, ...)",
                "{...}",
                "(...)",
                "..., 1",
                "unpack({...})",
                "select(-1, ...)",
                "#{...}",
                "arg",
            )
        )
        given = ", ".join(self.expression("V", depth + 2) for _ in range(self._chance.randrange(4)))
        return f"local {name} = {{(function(...) return {inner} end)({given})}}"

    def _closures(self, depth: int) -> str:
        maker, one, two = self._fresh(), self._fresh(), self._fresh()
        self._kinds |= {one: "V", two: "V"}
        start = self.expression("N", depth + 2)
        return (
            f"local {maker} = (function() local held = {start} return function(by) held = held + (by or 1) return held end end)() "
            f"local {one} = {maker}() local {two} = {maker}({self.expression('N', depth + 2)})"
        )

    def _gmatch(self, depth: int) -> str:
        name, word = self._fresh(), self._fresh()
        subject, pattern = self.expression("S", depth + 2), self._of(vocabulary.PATTERNS)
        self._kinds[name] = "L"
        return f"local {name} = {{}} for {word}, b in string.gmatch({subject}, {pattern}) do {name}[#{name} + 1] = {word} if #{name} > 5 then break end end"

    def _loaded(self, depth: int) -> str:
        name, problem = self._fresh(), self._fresh()
        kept = self._kinds
        self._kinds = {}
        code = (
            self._of(vocabulary.BROKEN)
            if self._happens(0.3)
            else self._block(2, 1) + f" return {self.expression('V', 3)}"
        )
        self._kinds = kept
        if "]=====]" in code:
            code = "return 1"
        self._kinds |= {problem: "V"}
        named = self._of(("", "", ", 'chunk'", ", '@chunk'", ", '=chunk'"))
        run = f" if {name} then {problem} = {{pcall({name})}} end"
        return f"local {name}, {problem} = loadstring([=====[{code}]=====]{named}){run}"

    def _do(self, depth: int) -> str:
        return f"do {self._block(depth)} end"

    def _global(self, depth: int) -> str:
        refused = self._of(
            (
                "undefined = 1", "local seen = undefined", "string.upper = 1", "redis.x = 1", "_G.x = 1", "rawset(_G, 'x', 1)", "KEYS[3] = 'new'",
                "KEYS = 1", "setmetatable(_G, {})", "getmetatable('').__index = 1", "local seen = rawget(_G, 'nothing')", "local seen = redis.nothing",
                "table.insert(math, 1)", "cjson.encode = nil", "function undefined() end", "string.x = string.x", "_G = 1", "pcall = 1", "math.pi = 3",
                "local n = #_G", "local n = getmetatable(_G)", "setfenv(1, {})", "getmetatable(string).__newindex = nil", "table.sort(redis)",
            )
        )  # fmt: skip
        if self._happens(0.3):
            return refused
        done, found = self._fresh(), self._fresh()
        self._kinds[found] = "V"
        return f"local {done}, {found} = pcall(function() {refused} end)"

    def _call(self, depth: int) -> str:
        return self._called(depth)

    def _random(self, depth: int) -> str:
        name = self._fresh()
        self._kinds[name] = "L"
        return (
            f"math.randomseed({self._of(('0', '1', '42', '-7', '1.5', '2^31'))}) "
            f"local {name} = {{math.random(), math.random(10), math.random({self._of(('1', '-5', '3'))}, {self._of(('5', '7', '2'))})}}"
        )

    def _early(self, depth: int) -> str:
        if self._in_loop and self._happens(0.5):
            return "do break end"
        return f"do return {self.shown()} end"

    def _deep(self, depth: int) -> str:
        name = self._fresh()
        self._kinds[name] = "V"
        much = self._of(("5", "50", "150"))
        return self._of(
            (
                f"local {name} = {{}} for i = 1, {much} do {name} = {{{name}}} end",
                f"local function f{name}(n) if n > 0 then return 1 + f{name}(n - 1) end return 0 end local {name} = f{name}({much})",
                f"local {name} = cjson.encode(cjson.decode(string.rep('[', {much}) .. string.rep(']', {much})))",
                f"local {name} = {'(' * 20}{self.expression('N', 3)}{')' * 20}",
                f"local {name} = {'{' * 15}{self.expression('N', 3)}{'}' * 15}",
                f"local {name} = {'not ' * 12}{self.expression('V', 3)}",
                f"local {name} = {'-' * 1}{'(-' * 9}{self.expression('N', 3)}{')' * 9}",
            )
        )
