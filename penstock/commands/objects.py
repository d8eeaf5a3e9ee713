"""OBJECT: how a value is kept. Of what Redis tells here, Penstock knows little and says which."""

from typing import Final

from penstock.commands import encodings, words
from penstock.commands.context import Context
from penstock.commands.help import help_reply
from penstock.commands.table import command, container
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.settings import Settings
from penstock.storage.keyspace import Value
from penstock.storage.streams import Stream

EMBEDDED: Final = 41  # bytes of key and string together that Redis 8.6.3 keeps in one piece ("embstr")

HELP: Final = (
    ("ENCODING <key>", "Name the form in which the value of <key> is kept."),
    ("FREQ <key>", "Answer how often <key> is used; not tracked here."),
    ("IDLETIME <key>", "Answer for how many seconds <key> has not been used; not tracked here, always 0."),
    ("REFCOUNT <key>", "Answer how many references the value of <key> has; always 1."),
)

container("OBJECT", group="generic", since="2.2.3", summary="Holds the commands that look at how a value is kept.")


def _look(ctx: Context, key: bytes) -> Value | None:
    """The value of a key, counted as a hit or a miss without the event of a miss (Redis 8.6.3)."""
    value = ctx.value(key)
    if value is None:
        ctx.engine.statistics.misses += 1
    else:
        ctx.engine.statistics.hits += 1
    return value


@command(
    "OBJECT|ENCODING",
    "key",
    group="generic",
    since="2.2.3",
    flags="readonly",
    keys="2 RO",
    tips="nondeterministic_output",
    summary="Names the form in which a value is kept.",
)
def encoding(ctx: Context, args: list[bytes]) -> bytes:
    """Strings are all kept alike here; answered is what Redis would have chosen for a string set as it stands.

    (There APPEND to a string makes it "raw", however short.)
    """
    key = args[2]
    value = _look(ctx, key)
    if value is None:
        return reply.null(ctx.resp3)
    return reply.bulk(encoding_of(key, value, ctx.engine.settings))


def encoding_of(key: bytes, value: Value, settings: Settings) -> bytes:
    """The form's name."""
    if not isinstance(value, bytes):
        return b"stream" if isinstance(value, Stream) else encodings.of_collection(value, settings)
    if words.is_integer(value):
        return b"int"
    return b"embstr" if len(key) + len(value) <= EMBEDDED else b"raw"


@command(
    "OBJECT|FREQ",
    "key",
    group="generic",
    since="4.0.0",
    flags="readonly",
    keys="2 RO",
    tips="nondeterministic_output",
    summary="Refuses: how often a key is used is not tracked.",
)
def freq(ctx: Context, args: list[bytes]) -> bytes:
    if _look(ctx, args[2]) is None:
        return reply.null(ctx.resp3)
    raise ReplyError(
        b"ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching"
        b" between policies at runtime LRU and LFU data will take some time to adjust."
    )


@command(
    "OBJECT|IDLETIME",
    "key",
    group="generic",
    since="2.2.3",
    flags="readonly",
    keys="2 RO",
    tips="nondeterministic_output",
    summary="Answers 0: times of access are not kept.",
)
def idletime(ctx: Context, args: list[bytes]) -> bytes:
    """Redis keeps a time of access in each value, to evict by it. Nothing is evicted here, so nothing is kept."""
    return reply.null(ctx.resp3) if _look(ctx, args[2]) is None else reply.ZERO


@command(
    "OBJECT|REFCOUNT",
    "key",
    group="generic",
    since="2.2.3",
    flags="readonly",
    keys="2 RO",
    tips="nondeterministic_output",
    summary="Answers 1, as Redis does for any value.",
)
def refcount(ctx: Context, args: list[bytes]) -> bytes:
    return reply.null(ctx.resp3) if _look(ctx, args[2]) is None else reply.ONE


@command(
    "OBJECT|HELP",
    group="generic",
    since="6.2.0",
    flags="loading stale",
    summary="Lists the subcommands.",
)
def help_(ctx: Context, args: list[bytes]) -> bytes:
    return help_reply("OBJECT", HELP)
