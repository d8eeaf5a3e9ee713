"""Pub/sub: SUBSCRIBE and its kin, PUBLISH, PUBSUB (https://redis.io/docs/latest/develop/pubsub/).

One request may have several replies, one for each channel: the handler returns them joined.
"""

from collections.abc import Iterable
from typing import Final

from penstock.commands.common.help import help_reply
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.globs import Glob
from penstock.engine.session import Session
from penstock.engine.subscriptions import Listeners
from penstock.engine.table.command_table import command, container
from penstock.errors import ReplyError
from penstock.protocol import reply

HELP: Final = (
    ("CHANNELS [<pattern>]", "The channels that somebody is subscribed to, or those of them that fit the pattern."),
    ("NUMPAT", "How many different patterns somebody is subscribed to."),
    ("NUMSUB [<channel> ...]", "How many are subscribed to each of these channels,\nnot counting patterns."),
    ("SHARDCHANNELS [<pattern>]", "As CHANNELS, of shard channels."),
    ("SHARDNUMSUB [<shardchannel> ...]", "As NUMSUB, of shard channels."),
)


# -- SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE --------------------------------------------------------------------------------


@command(
    "SUBSCRIBE",
    "channel [channel ...]",
    group="pubsub",
    since="2.0.0",
    flags="denyoom pubsub noscript loading stale",
    complexity="O(N) where N is the number of channels to subscribe to.",
    summary="Listens to channels.",
)
def subscribe(ctx: Context, args: list[bytes]) -> bytes:
    session = ctx.session
    _refuse_in_log(session, b"SUBSCRIBE")
    answers: list[bytes] = []
    for channel in args[1:]:
        ctx.engine.subscriptions.subscribe(session, channel)
        answers.append(_confirmation(ctx, b"subscribe", channel, _count(session)))
    return _told(ctx, answers)


@command(
    "PSUBSCRIBE",
    "pattern [pattern ...]",
    group="pubsub",
    since="2.0.0",
    flags="denyoom pubsub noscript loading stale",
    complexity="O(N) where N is the number of patterns to subscribe to.",
    summary="Listens to every channel whose name fits one of the patterns.",
)
def psubscribe(ctx: Context, args: list[bytes]) -> bytes:
    session = ctx.session
    _refuse_in_log(session, b"PSUBSCRIBE")
    answers: list[bytes] = []
    for pattern in args[1:]:
        ctx.engine.subscriptions.subscribe_pattern(session, pattern)
        answers.append(_confirmation(ctx, b"psubscribe", pattern, _count(session)))
    return _told(ctx, answers)


@command(
    "SSUBSCRIBE",
    "shardchannel [shardchannel ...]",
    group="pubsub",
    since="7.0.0",
    flags="denyoom pubsub noscript loading stale",
    keys="1..-1 not_key",
    complexity="O(N) where N is the number of shard channels to subscribe to.",
    summary="Listens to shard channels, which are apart from the others.",
)
def ssubscribe(ctx: Context, args: list[bytes]) -> bytes:
    session = ctx.session
    _refuse_in_log(session, b"SSUBSCRIBE")
    answers: list[bytes] = []
    for channel in args[1:]:
        ctx.engine.subscriptions.subscribe_shard(session, channel)
        answers.append(_confirmation(ctx, b"ssubscribe", channel, len(session.shard_channels)))
    return _told(ctx, answers)


# -- UNSUBSCRIBE, PUNSUBSCRIBE, SUNSUBSCRIBE --------------------------------------------------------------------------


@command(
    "UNSUBSCRIBE",
    "[channel [channel ...]]",
    group="pubsub",
    since="2.0.0",
    flags="pubsub noscript loading stale",
    complexity="O(N) where N is the number of channels to unsubscribe.",
    summary="Listens no more to these channels, or to any.",
)
def unsubscribe(ctx: Context, args: list[bytes]) -> bytes:
    session = ctx.session
    answers: list[bytes] = []
    for channel in args[1:] or list(session.channels):
        ctx.engine.subscriptions.unsubscribe(session, channel)
        answers.append(_confirmation(ctx, b"unsubscribe", channel, _count(session)))
    return _told(ctx, answers or [_confirmation(ctx, b"unsubscribe", None, _count(session))])


@command(
    "PUNSUBSCRIBE",
    "[pattern [pattern ...]]",
    group="pubsub",
    since="2.0.0",
    flags="pubsub noscript loading stale",
    complexity="O(N) where N is the number of patterns to unsubscribe.",
    summary="Listens no more to what fits these patterns, or any.",
)
def punsubscribe(ctx: Context, args: list[bytes]) -> bytes:
    session = ctx.session
    answers: list[bytes] = []
    for pattern in args[1:] or list(session.patterns):
        ctx.engine.subscriptions.unsubscribe_pattern(session, pattern)
        answers.append(_confirmation(ctx, b"punsubscribe", pattern, _count(session)))
    return _told(ctx, answers or [_confirmation(ctx, b"punsubscribe", None, _count(session))])


@command(
    "SUNSUBSCRIBE",
    "[shardchannel [shardchannel ...]]",
    group="pubsub",
    since="7.0.0",
    flags="pubsub noscript loading stale",
    keys="1..-1 not_key",
    complexity="O(N) where N is the number of shard channels to unsubscribe.",
    summary="Listens no more to these shard channels, or to any.",
)
def sunsubscribe(ctx: Context, args: list[bytes]) -> bytes:
    session = ctx.session
    answers: list[bytes] = []
    for channel in args[1:] or list(session.shard_channels):
        ctx.engine.subscriptions.unsubscribe_shard(session, channel)
        answers.append(_confirmation(ctx, b"sunsubscribe", channel, len(session.shard_channels)))
    return _told(ctx, answers or [_confirmation(ctx, b"sunsubscribe", None, len(session.shard_channels))])


def _refuse_in_log(session: Session, name: bytes) -> None:
    """A line of the log listens to nothing: nobody is there (Redis 8.6.3)."""
    if session.privileged:
        raise ReplyError(b"ERR %b isn't allowed for a DENY BLOCKING client" % name)


def _count(session: Session) -> int:
    """What SUBSCRIBE and PSUBSCRIBE count together; shard channels are counted by themselves."""
    return len(session.channels) + len(session.patterns)


def _confirmation(ctx: Context, kind: bytes, name: bytes | None, count: int) -> bytes:
    """What the session listens to has changed, or there was nothing to leave (no name)."""
    shown = reply.null(ctx.resp3) if name is None else reply.bulk(name)
    return reply.push([reply.bulk(kind), shown, reply.integer(count)], ctx.resp3)


def _told(ctx: Context, confirmations: list[bytes]) -> bytes:
    """Confirmations reach a client that wants no replies too (CLIENT REPLY OFF and SKIP, Redis 8.6.3)."""
    session = ctx.session
    joined = b"".join(confirmations)
    if not session.is_silent and not session.reply_skip:
        return joined
    ctx.engine.outgoing.append((session, joined))
    return reply.NO_REPLY


# -- PUBLISH, SPUBLISH ------------------------------------------------------------------------------------------------


@command(
    "PUBLISH",
    "channel message",
    group="pubsub",
    since="2.0.0",
    flags="pubsub loading stale fast",
    complexity=(
        "O(N+M) where N is the number of clients subscribed to the receiving channel and M is "
        "the total number of subscribed patterns (by any client)."
    ),
    summary="Sends a message to whoever listens to a channel now.",
)
def publish(ctx: Context, args: list[bytes]) -> bytes:
    return reply.integer(ctx.engine.subscriptions.publish(args[1], args[2], ctx.engine.outgoing))


@command(
    "SPUBLISH",
    "shardchannel message",
    group="pubsub",
    since="7.0.0",
    flags="pubsub loading stale fast",
    keys="1 not_key",
    complexity="O(N) where N is the number of clients subscribed to the receiving shard channel.",
    summary="Sends a message to whoever listens to a shard channel now.",
)
def spublish(ctx: Context, args: list[bytes]) -> bytes:
    return reply.integer(ctx.engine.subscriptions.publish_to_shard(args[1], args[2], ctx.engine.outgoing))


# -- PUBSUB -----------------------------------------------------------------------------------------------------------

container("PUBSUB", group="pubsub", since="2.8.0", summary="Commands that tell who listens to what.")


@command(
    "PUBSUB|CHANNELS",
    "[pattern]",
    group="pubsub",
    since="2.8.0",
    flags="pubsub loading stale",
    complexity=(
        "O(N) where N is the number of active channels, and assuming constant time pattern "
        "matching (relatively short channels and patterns)"
    ),
    summary="The channels that somebody listens to.",
)
def pubsub_channels(ctx: Context, args: list[bytes]) -> bytes:
    return _names(ctx.engine.subscriptions.channels, args)


@command(
    "PUBSUB|SHARDCHANNELS",
    "[pattern]",
    group="pubsub",
    since="7.0.0",
    flags="pubsub loading stale",
    complexity=(
        "O(N) where N is the number of active shard channels, and assuming constant time pattern "
        "matching (relatively short shard channels)."
    ),
    summary="The shard channels that somebody listens to.",
)
def pubsub_shardchannels(ctx: Context, args: list[bytes]) -> bytes:
    return _names(ctx.engine.subscriptions.shard_channels, args)


def _names(names: Iterable[bytes], args: list[bytes]) -> bytes:
    """Unlike no pattern, `*` leaves out the channel whose name is empty (Redis 8.6.3)."""
    if len(args) > 3:
        raise refusals.unknown_or_wrong(args[1], args[0])
    if len(args) == 2:
        return reply.bulks(list(names))
    glob = Glob(args[2])
    return reply.bulks([name for name in names if glob.matches(name)])


@command(
    "PUBSUB|NUMSUB",
    "[channel [channel ...]]",
    group="pubsub",
    since="2.8.0",
    flags="pubsub loading stale",
    complexity="O(N) for the NUMSUB subcommand, where N is the number of requested channels",
    summary="How many listen to each of some channels.",
)
def pubsub_numsub(ctx: Context, args: list[bytes]) -> bytes:
    return _counts(ctx.engine.subscriptions.channels, args[2:])


@command(
    "PUBSUB|SHARDNUMSUB",
    "[shardchannel [shardchannel ...]]",
    group="pubsub",
    since="7.0.0",
    flags="pubsub loading stale",
    complexity="O(N) for the SHARDNUMSUB subcommand, where N is the number of requested shard channels",
    summary="How many listen to each of some shard channels.",
)
def pubsub_shardnumsub(ctx: Context, args: list[bytes]) -> bytes:
    return _counts(ctx.engine.subscriptions.shard_channels, args[2:])


def _counts(listeners: dict[bytes, Listeners], names: list[bytes]) -> bytes:
    """Names and counts by turns, a flat array in RESP3 too."""
    pairs = [(reply.bulk(name), reply.integer(len(listeners.get(name, ())))) for name in names]
    return reply.mapping(pairs, resp3=False)


@command(
    "PUBSUB|NUMPAT",
    group="pubsub",
    since="2.8.0",
    flags="pubsub loading stale",
    summary="How many different patterns somebody listens to.",
)
def pubsub_numpat(ctx: Context, args: list[bytes]) -> bytes:
    return reply.integer(len(ctx.engine.subscriptions.patterns))


@command("PUBSUB|HELP", group="pubsub", since="6.2.0", flags="loading stale", summary="What PUBSUB's subcommands do.")
def pubsub_help(ctx: Context, args: list[bytes]) -> bytes:
    return help_reply("PUBSUB", HELP)
