"""Compiled chunks of Lua 5.1, changed so that errors keep their line.

`return redis.call(...)` is a tail call: what we put there is a Lua function, which takes its caller's place on the
stack. In Redis it is a C function, which does not. So tail calls of fields (`redis.call`, `cjson.decode`), and all of
a chunk's own, become ordinary calls; those of a function's own functions stay what they are.
"""

from typing import Final

HEADER_BYTES: Final = 12
INSTRUCTION_BYTES: Final = 4
TAIL_CALL: Final = 29  # opcodes
CALL: Final = 28
GET_TABLE: Final = 6
LOADS: Final = frozenset((0, 1, 2, 3, 4, 5, 6, 10, 11, 28, 36))  # that put something into the register they name
NUMBER: Final = 3  # kinds of constants
STRING: Final = 4


def with_ordinary_calls(chunk: bytes) -> bytes:
    """The chunk, as string.dump made it on this machine, with fewer tail calls."""
    code = bytearray(chunk)
    _change(code, HEADER_BYTES, chunk[8], True)
    return bytes(code)


def _number(code: bytearray, at: int, size: int) -> int:
    return int.from_bytes(code[at : at + size], "little")


def _change(code: bytearray, at: int, word: int, is_outermost: bool) -> int:
    """Change the function at an offset, and those inside it; where it ends. `word` is the size of a size."""
    at += word + _number(code, at, word)  # the source's name
    at += 4 + 4 + 4  # lines, and four counts of a byte each
    count = _number(code, at, 4)
    first = at + 4
    at = first + INSTRUCTION_BYTES * count
    for place in range(first, at, INSTRUCTION_BYTES):
        if code[place] & 0x3F == TAIL_CALL and (is_outermost or _calls_field(code, first, place)):
            code[place] = code[place] & 0xC0 | CALL
    constants = _number(code, at, 4)
    at += 4
    for _ in range(constants):
        kind = code[at]
        at += 1
        if kind == NUMBER:
            at += 8
        elif kind == STRING:
            at += word + _number(code, at, word)
        else:
            at += kind  # nil has no byte, a boolean one
    functions = _number(code, at, 4)
    at += 4
    for _ in range(functions):
        at = _change(code, at, word, False)
    at += 4 + 4 * _number(code, at, 4)  # lines of the instructions
    for names_a_range in (True, False):  # local variables, upvalues
        names = _number(code, at, 4)
        at += 4
        for _ in range(names):
            at += word + _number(code, at, word) + (8 if names_a_range else 0)
    return at


def _calls_field(code: bytearray, first: int, place: int) -> bool:
    """Whether what is called was just read from a table."""
    register = _number(code, place, 4) >> 6 & 0xFF
    for before in range(place - INSTRUCTION_BYTES, first - 1, -INSTRUCTION_BYTES):
        instruction = _number(code, before, 4)
        if instruction >> 6 & 0xFF == register and instruction & 0x3F in LOADS:
            return instruction & 0x3F == GET_TABLE
    return False
