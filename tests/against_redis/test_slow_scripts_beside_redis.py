"""Scripts that take long: what others are answered meanwhile, and the caller in the end, as by a real Redis."""

import contextlib
from typing import Any

import pytest

from tests.against_redis.conftest import Reference
from tests.support.compared_sides import Piped

pytest.importorskip("lupa")

FUNCTION = "#!lua name=l\nredis.register_function('f', function() while true do end end)"
BEFORE = (
    ("FLUSHALL",), ("FUNCTION", "FLUSH"), ("FUNCTION", "LOAD", FUNCTION),
    ("CONFIG", "SET", "busy-reply-threshold", "50"), ("CONFIG", "RESETSTAT"),
)  # fmt: skip
ENDLESS = ("EVAL", "while true do end", "0")
ENDLESS_FUNCTION = ("FCALL", "f", "0")
WRITES = (
    "EVAL",
    "redis.call('SET', 'a', 'begun') local began = redis.call('TIME')[1] "
    "repeat until redis.call('TIME')[1] - began > 1 return redis.call('GET', 'a')",
    "0",
)
MEANWHILE = (
    ("GET", "a"), ("NOSUCH",), ("GET",), ("EXEC",), ("WATCH", "a"), ("MULTI",), ("GET", "a"), ("EXEC",), ("DISCARD",),
    ("MULTI",), ("SCRIPT", "KILL", "x"), ("DISCARD",),
)  # fmt: skip
AFTER = (("GET", "a"), ("EXISTS", "b"), ("INFO", "errorstats"))
MULTI, EXEC = ("MULTI",), ("EXEC",)
SCRIPT, IS_FUNCTION = ("FUNCTION", "SCRIPT"), ("SCRIPT", "FUNCTION")  # what is told to KILL: first the wrong one
CASES = {
    "alone": ((ENDLESS, ("PING",)), SCRIPT),
    "in a transaction": ((MULTI, ("SET", "a", "1"), ENDLESS, ("INCR", "a"), EXEC, ("GET", "a")), SCRIPT),
    "at a transaction's end": ((MULTI, ("RPUSH", "a", "x"), ENDLESS, EXEC), SCRIPT),
    "as a function in a transaction": ((MULTI, ENDLESS_FUNCTION, ("SET", "b", "1"), EXEC), IS_FUNCTION),
    "having written in a transaction": ((MULTI, WRITES, ("APPEND", "a", "!"), EXEC), SCRIPT),
}


def said(one: Piped, *words: str) -> bytes:
    one.send([words])
    return one.answer()


def wait_until_busy(other: Piped) -> None:
    while said(other, "PING") == b"+PONG\r\n":
        pass


def scene(port: int, requests: tuple[tuple[str, ...], ...], kills: tuple[str, str]) -> list[bytes]:
    """What a caller is told, and another that asks meanwhile and stops the script, if it can be stopped."""
    with contextlib.closing(Piped(port)) as caller, contextlib.closing(Piped(port)) as other:
        for words in BEFORE:
            said(other, *words)
        caller.send(requests)
        wait_until_busy(other)
        told = [said(other, *words) for words in MEANWHILE]
        told += [said(other, container, "KILL") for container in kills]
        told += [caller.answer() for _ in requests]
        return told + [said(other, *words) for words in AFTER]


@pytest.mark.parametrize(("requests", "kills"), CASES.values(), ids=CASES.keys())
def test_others_and_the_caller_are_told_what_redis_tells_them(
    reference: Reference, penstock_port: int, requests: Any, kills: Any
) -> None:
    assert scene(penstock_port, requests, kills) == scene(reference.port, requests, kills)
