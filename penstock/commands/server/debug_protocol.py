"""DEBUG PROTOCOL: one reply of each type, for the tests of client libraries."""

from penstock.errors import ReplyError
from penstock.protocol import reply


def sample(kind: bytes, resp3: bool) -> bytes:
    """The reply of a type, as in Redis 8.6.3."""
    numbers = [reply.integer(number) for number in range(3)]
    match kind:
        case b"string":
            return reply.bulk(b"Hello World")
        case b"integer":
            return reply.integer(12345)
        case b"double":
            return reply.double(b"3.141", resp3)
        case b"null":
            return reply.null(resp3)
        case b"array":
            return reply.array(numbers)
        case b"set":
            return reply.set_of(numbers, resp3)
        case b"map":
            return reply.mapping([(number, reply.boolean(at == 1, resp3)) for at, number in enumerate(numbers)], resp3)
        case b"attrib":
            return _attributed(resp3)
        case b"push":
            return _pushed(resp3)
        case b"verbatim":
            return reply.verbatim(b"This is a verbatim\nstring", resp3)
        case b"true":
            return reply.boolean(True, resp3)
        case b"false":
            return reply.boolean(False, resp3)
        case b"bignum":
            number = b"1234567999999999999999999999999999999"
            return b"(%b\r\n" % number if resp3 else reply.bulk(number)
    raise ReplyError(
        b"ERR Wrong protocol type name. Please use one of the following:"
        b" string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false"
    )


def _attributed(resp3: bool) -> bytes:
    text = reply.bulk(b"Some real reply following the attribute")
    if not resp3:
        return text
    popularity = reply.array([reply.bulk(b"key:123"), reply.integer(90)])
    return b"|1\r\n" + reply.bulk(b"key-popularity") + popularity + text


def _pushed(resp3: bool) -> bytes:
    if not resp3:
        raise ReplyError(b"ERR RESP2 is not supported by this command")
    text = reply.bulk(b"Some real reply following the push reply")
    return text + reply.push([reply.bulk(b"server-cpu-usage"), reply.integer(42)], resp3)
