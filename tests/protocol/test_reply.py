"""Replies as bytes, read back by the tests' own client."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.protocol import reply
from tests.support import wire
from tests.support.wire import Error, Integer, Simple

BOTH = [
    (lambda resp3: reply.simple(b"OK"), wire.Simple(b"OK"), wire.Simple(b"OK")),
    (lambda resp3: reply.error(b"ERR no\r\nway"), wire.Error(b"ERR no  way"), wire.Error(b"ERR no  way")),
    (lambda resp3: reply.integer(0), wire.Integer(0), wire.Integer(0)),
    (lambda resp3: reply.integer(1023), wire.Integer(1023), wire.Integer(1023)),
    (lambda resp3: reply.integer(1024), wire.Integer(1024), wire.Integer(1024)),
    (lambda resp3: reply.integer(-1), wire.Integer(-1), wire.Integer(-1)),
    (lambda resp3: reply.integer(2**63 - 1), wire.Integer(2**63 - 1), wire.Integer(2**63 - 1)),
    (lambda resp3: reply.bulk(b"a\r\nb"), wire.Bulk(b"a\r\nb"), wire.Bulk(b"a\r\nb")),
    (
        lambda resp3: reply.bulks([b"a", b""]),
        wire.Array((wire.Bulk(b"a"), wire.Bulk(b""))),
        wire.Array((wire.Bulk(b"a"), wire.Bulk(b""))),
    ),
    (
        lambda resp3: reply.array([reply.ONE, reply.EMPTY_ARRAY]),
        wire.Array((wire.Integer(1), wire.Array(()))),
        wire.Array((wire.Integer(1), wire.Array(()))),
    ),
    (reply.null, wire.NullBulk(), wire.Null()),
    (reply.null_array, wire.NullArray(), wire.Null()),
    (
        lambda resp3: reply.fields([(b"n", reply.ONE)], resp3),
        wire.Array((wire.Bulk(b"n"), wire.Integer(1))),
        wire.Map(((wire.Bulk(b"n"), wire.Integer(1)),)),
    ),
    (lambda resp3: reply.mapping([], resp3), wire.Array(()), wire.Map(())),
    (lambda resp3: reply.set_of([reply.OK], resp3), wire.Array((wire.Simple(b"OK"),)), wire.Set((wire.Simple(b"OK"),))),
    (
        lambda resp3: reply.push([reply.PONG], resp3),
        wire.Array((wire.Simple(b"PONG"),)),
        wire.Push((wire.Simple(b"PONG"),)),
    ),
    (lambda resp3: reply.verbatim(b"text", resp3), wire.Bulk(b"text"), wire.Verbatim(b"txt", b"text")),
    (lambda resp3: reply.boolean(True, resp3), wire.Integer(1), wire.Boolean(True)),
    (lambda resp3: reply.boolean(False, resp3), wire.Integer(0), wire.Boolean(False)),
    (lambda resp3: reply.double(b"3.1", resp3), wire.Bulk(b"3.1"), wire.Double(b"3.1")),
]


@pytest.mark.parametrize(("build", "resp2", "resp3"), BOTH)
def test_a_reply_is_of_its_type_in_both_protocols(
    build: Callable[..., Any], resp2: Error | Integer | Simple, resp3: Error | Integer | Simple
) -> None:
    assert wire.parse(build(False)) == (resp2, len(build(False)))
    assert wire.parse(build(True)) == (resp3, len(build(True)))


@pytest.mark.parametrize(
    "constant", [reply.OK, reply.PONG, reply.QUEUED, reply.EMPTY_ARRAY, reply.EMPTY_BULK, reply.ZERO, reply.ONE]
)
def test_a_ready_reply_is_whole(constant: bytes) -> None:
    assert wire.parse(constant)[1] == len(constant)
