"""Random libraries of functions that call, set and hide one another, with endless loops among them."""

import random
from typing import Final

NAMES: Final = ("f", "g", "h", "s", "t")
LOCALS: Final = (*NAMES, "x", "keys")
ENDLESS: Final = (
    "while true do end", "for i = 1, 1e9 do end", "repeat until false", "for k in next, {} do end",
    "while true do x = x .. x end", "while true do redis.call('PING') end", "while true do g(x) end",
    "for k, v in pairs({1}) do while true do local z = f(1) end end", "while true do keys[#keys + 1] = x end",
    "for i = 1, 1e9 do for j = 1, 2 do if i == j then break end end end",
    "repeat local q = tostring(x) .. 'y' until q == nil",
)  # fmt: skip


class RandomLibrary:
    """One library's text, made of `chance`."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._declared: list[str] = []
        body = "".join([self._top() for _ in range(chance.randrange(2, 9))])
        self.text = f"{body}\nredis.register_function('last', function({self._parameters()}) {self._body()} end)"

    def _one(self, *choices: str) -> str:
        return self._chance.choice(choices)

    def _gap(self) -> str:
        return self._one(" ", " ", "\n")

    def _parameters(self) -> str:
        return self._one("", "x", "keys", "keys, x", "s, x")

    def _value(self, depth: int = 0) -> str:
        def inner() -> str:
            return self._value(depth + 1)

        kind = self._chance.randrange(8) if depth < 3 else 0
        if kind < 2:
            return self._one(*LOCALS, "1", "'a'")
        if kind < 5:
            return f"{self._one(*LOCALS)}({inner()})"
        if kind == 5:
            return f"tostring({inner()})"
        if kind == 6:
            return f"{{{self._one(*LOCALS)} = {inner()}, {inner()}}}"
        return f"{inner()} .. {inner()}"

    def _body(self) -> str:
        name, other, endless = self._one(*LOCALS), self._one(*LOCALS), self._one(*ENDLESS)
        new = self._one(self._value(), f"function() {endless} end")
        return self._one(
            f"return {self._value()}", f"return {self._value()}", f"return {self._value()}", endless,
            f"local {name} = {self._value()} return {self._value()}", f"{name} = {new}", f"{name}, {other} = 1, {new}",
            f"if x then {name} = {self._value()} end return {self._value()}", f"function {name}() {endless} end",
        )  # fmt: skip

    def _top(self) -> str:
        function = f"({self._parameters()}){self._gap()}{self._body()} end{self._gap()}"
        name, kind = self._one(*NAMES), self._chance.randrange(10)
        if kind < 5:
            self._declared.append(name)
            if kind < 3:
                return f"local function{self._gap()}{name}{self._gap()}{function}"
            return f"local {name} ={self._gap()}" + (
                f"function{function}" if kind == 3 else f"{self._one('1', 'nil')} "
            )
        known, other = (self._one(*self._declared), self._one(*self._declared)) if self._declared else ("", "")
        if kind == 5:
            return f"do {self._top()} {self._top()} end{self._gap()}"
        if not known or kind == 6:
            return (
                f"redis.register_function('f{self._chance.randrange(99)}',{self._gap()}function{function}){self._gap()}"
            )
        if kind == 7:
            return f"{known} = function{function}"
        if kind == 8:
            return f"{known}, {other} = {other}, function{function}"
        return f"redis.register_function('g{self._chance.randrange(99)}',{self._gap()}{known}){self._gap()}"
