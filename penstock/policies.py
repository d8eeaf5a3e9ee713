"""Policies by redis-py: writes the words of PENSTOCK.POLICY and of the other PENSTOCK.* commands, with types.

    >>> from datetime import timedelta
    >>> from penstock import policies
    >>> b" ".join(policies.set_group.words("jobs", "workers", ackwait=timedelta(seconds=30), key="tenant", fair="YES"))
    b'PENSTOCK.POLICY jobs GROUP workers ACKWAIT 30000 KEY tenant FAIR YES'

Each function takes a client before all else: `policies.set_group(client, "jobs", "workers", ackwait=30_000)`. With a
client of redis.asyncio it is awaited; a pipeline keeps the request. Replies and errors are the client's. An option's
keyword is its word in lower case, and `OPTIONS` has all of them. redis-py is not imported here.

Tests: law and cases policies/test_redis_py_helper; its page is docs/policies.md.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, ParamSpec, TypedDict, TypeVar, Unpack, overload

if TYPE_CHECKING:
    import redis
    import redis.asyncio

Name = str | bytes
Span = int | timedelta  # of time; a number is of ms
Moment = int | datetime  # a number is of unix ms; a datetime without a zone is local time
Text = str | bytes  # a reply, as the client decodes it

P = ParamSpec("P")
T = TypeVar("T")


# -- what may be named ------------------------------------------------------------------------------------------------


class StreamOptions(TypedDict, total=False):
    """Of a stream's policy. None unsets."""

    maxlen: int | None
    maxage: Span | None
    maxbytes: int | None
    keepref: bool
    delref: bool
    acked: bool
    idlegroup: Span | None
    forward: Name | None
    at: Name | None
    after: Span | None
    every: Name | None
    missed: Literal["ONCE", "ALL", "SKIP"] | None


class GroupOptions(TypedDict, total=False):
    """Of a group's policy. None unsets. A timedelta behind `pause` counts from now."""

    ackwait: Span | None
    backoff: tuple[Span, Span] | None
    jitter: int | None
    maxdeliver: int | None
    deadletter: Name | None
    reap: Span | None
    key: Name | None
    pause: Moment | timedelta | Literal["FOREVER"] | None
    rate: tuple[int, Span] | None
    inflight: int | None
    parallel: int | None
    fair: Literal["YES", "NO"] | None
    priority: Name | None
    aging: Span | None
    lookahead: int | None
    expire: Span | None
    expireat: Name | None
    ondisconnect: Literal["RELEASE"] | None


class NackOptions(TypedDict, total=False):
    """Of PENSTOCK.XNACK: the new delivery count, entries that are not pending, and how long the entries are held."""

    retrycount: int
    force: bool
    delay: Span
    until: Moment


class RedriveOptions(TypedDict, total=False):
    """Of PENSTOCK.REDRIVE: which dead letters, how many at most, and whether they become new entries."""

    group: Name
    reason: Name
    count: int
    new: bool


class PeekOptions(TypedDict, total=False):
    """Of PENSTOCK.PEEK."""

    count: int


class RangeOptions(TypedDict, total=False):
    """Of PENSTOCK.XCOUNT: how many entries are counted at most, and after each how many an id is returned."""

    count: int
    every: int


OPTIONS: Final[Mapping[str, frozenset[str]]] = {  # the keywords of each function
    "set_stream": StreamOptions.__optional_keys__,
    "set_group": GroupOptions.__optional_keys__,
    "nack": NackOptions.__optional_keys__,
    "redrive": RedriveOptions.__optional_keys__,
    "peek": PeekOptions.__optional_keys__,
    "count_range": RangeOptions.__optional_keys__,
}


# -- how it is written and sent ---------------------------------------------------------------------------------------


class Words(list[bytes], Generic[T]):
    """The words of a request that is answered by a T."""


class Request(Generic[P, T]):
    """A command as a function of a client and of what it says. `words`: what is sent, without a client."""

    def __init__(self, words: Callable[P, Words[T]]) -> None:
        self.words = words
        update_wrapper(self, words)

    @overload
    def __call__(self, client: "redis.Redis", /, *args: P.args, **options: P.kwargs) -> T: ...
    @overload
    def __call__(self, client: "redis.asyncio.Redis", /, *args: P.args, **options: P.kwargs) -> Awaitable[T]: ...
    def __call__(self, client: Any, /, *args: P.args, **options: P.kwargs) -> Any:
        return client.execute_command(*self.words(*args, **options))


def _word(value: object) -> bytes:
    """A name as it is, a number in digits, a span in ms, a moment in unix ms."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, timedelta):
        value = value // timedelta(milliseconds=1)
    elif isinstance(value, datetime):
        value = round(value.timestamp() * 1000)
    return str(value).encode()


def _written(function: str, options: Mapping[str, object]) -> list[bytes]:
    """The options' words, in the order in which they were named. TypeError for one that the function has not."""
    words: list[bytes] = []
    for name, value in options.items():
        if name not in OPTIONS[function]:
            raise TypeError(f"{function}() has no option {name!r}")
        if value is False:
            continue
        words.append(name.upper().encode())
        if value is None:
            words.append(b"NONE")
        elif name == "pause" and isinstance(value, timedelta):
            words.append(b"+" + _word(value))
        elif isinstance(value, tuple):
            words += map(_word, value)
        elif value is not True:
            words.append(_word(value))
    return words


# -- the commands -----------------------------------------------------------------------------------------------------


@Request
def set_stream(key: Name, /, **options: Unpack[StreamOptions]) -> Words[Text]:
    """Set what is named of a stream's policy."""
    return Words([b"PENSTOCK.POLICY", _word(key), *_written("set_stream", options)])


@Request
def set_group(key: Name, group: Name, /, **options: Unpack[GroupOptions]) -> Words[Text]:
    """Set what is named of a group's policy."""
    return Words([b"PENSTOCK.POLICY", _word(key), b"GROUP", _word(group), *_written("set_group", options)])


@Request
def reset(key: Name, group: Name | None = None, /) -> Words[Text]:
    """Unset a group's whole policy, or that of the stream."""
    return Words([b"PENSTOCK.POLICY", _word(key), *([] if group is None else [b"GROUP", _word(group)]), b"RESET"])


@Request
def nack(
    key: Name,
    group: Name,
    mode: Literal["SILENT", "FAIL", "FATAL"],
    ids: Iterable[Name],
    /,
    **options: Unpack[NackOptions],
) -> Words[int]:
    """Release pending entries, and hold them back. The reply is how many were released."""
    texts = [_word(one) for one in ids]
    words = [b"PENSTOCK.XNACK", _word(key), _word(group), _word(mode), b"IDS", _word(len(texts)), *texts]
    return Words(words + _written("nack", options))


@Request
def delete_consumer(key: Name, group: Name, consumer: Name, condition: Literal["IFEMPTY", "RELEASE"], /) -> Words[int]:
    """Delete a consumer if it has no pending entries, or give them back. The reply is how many it had."""
    return Words([b"PENSTOCK.DELCONSUMER", _word(key), _word(group), _word(consumer), _word(condition)])


@Request
def redrive(dead_letters: Name, target: Name, /, **options: Unpack[RedriveOptions]) -> Words[int]:
    """Give dead letters back to their groups, or add them anew. The reply is how many were moved."""
    return Words([b"PENSTOCK.REDRIVE", _word(dead_letters), _word(target), *_written("redrive", options)])


@Request
def peek(key: Name, group: Name, /, **options: Unpack[PeekOptions]) -> Words[list[list[Any]]]:
    """The entries that the group's next read would deliver: pairs of an id and a list of fields and values in turn."""
    return Words([b"PENSTOCK.PEEK", _word(key), _word(group), *_written("peek", options)])


@Request
def count_range(key: Name, start: Name, end: Name, /, **options: Unpack[RangeOptions]) -> Words[list[Any]]:
    """Count the entries of a range of ids: the reply is their number, and a list of ids."""
    return Words([b"PENSTOCK.XCOUNT", *map(_word, (key, start, end)), *_written("count_range", options)])


@Request
def move_clock(action: Literal["SET", "ADVANCE", "RUN"], by: Span | datetime | None = None, /) -> Words[Text]:
    """Stop the clock of a server with `penstock-test-clock`, move it, or let it go on."""
    return Words([b"PENSTOCK.CLOCK", _word(action), *([] if by is None else [_word(by)])])
