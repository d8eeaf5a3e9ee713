"""Pub/sub: SUBSCRIBE and related commands, PUBLISH, PUBSUB (https://redis.io/docs/latest/develop/pubsub/).

One request may have several replies, one for each channel: the handler returns them joined.

Tests: transcripts pubsub; cases commands/test_pubsub; law against_redis/test_dialogues_beside_redis.
"""

from collections.abc import Callable, Iterable
from typing import Final

from penstock.commands.common.help import declare_help
from penstock.engine import refusals
from penstock.engine.cluster.node import TO_ALL, TO_SHARD
from penstock.engine.context import Context
from penstock.engine.matching.globs import Glob
from penstock.engine.pubsub.subscriptions import Listeners
from penstock.engine.session import Session
from penstock.engine.table.command_table import command, container
from penstock.errors import ReplyError
from penstock.protocol import reply

HELP: Final = (
    ("CHANNELS [<pattern>]", "List the channels with subscribers, or those of them that match the pattern."),
    ("NUMPAT", "Return the number of different patterns with subscribers."),
    ("NUMSUB [<channel> ...]", "Return the number of subscribers of each channel,\nnot counting patterns."),
    ("SHARDCHANNELS [<pattern>]", "As CHANNELS, for shard channels."),
    ("SHARDNUMSUB [<shardchannel> ...]", "As NUMSUB, for shard channels."),
)


# -- SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE --------------------------------------------------------------------------------


@command(
    "SUBSCRIBE channel [channel ...]",
    "2.0.0 denyoom pubsub noscript loading stale | traits while_subscribed | channels 1..-1",
    "Subscribes to channels.",
    "O(N) where N is the number of channels to subscribe to.",
)
def subscribe(ctx: Context, args: list[bytes]) -> bytes:
    _refuse_in_log(ctx.session, b"SUBSCRIBE")
    return _changed(ctx, b"subscribe", args[1:], ctx.subscriptions.subscribe, _count)


@command(
    "PSUBSCRIBE pattern [pattern ...]",
    "2.0.0 denyoom pubsub noscript loading stale | traits while_subscribed | channels 1..-1 patterns",
    "Subscribes to all channels with names that match one of the patterns.",
    "O(N) where N is the number of patterns to subscribe to.",
)
def psubscribe(ctx: Context, args: list[bytes]) -> bytes:
    _refuse_in_log(ctx.session, b"PSUBSCRIBE")
    return _changed(ctx, b"psubscribe", args[1:], ctx.subscriptions.subscribe_pattern, _count)


@command(
    "SSUBSCRIBE shardchannel [shardchannel ...]",
    "7.0.0 denyoom pubsub noscript loading stale | keys 1..-1 not_key | traits while_subscribed | channels 1..-1",
    "Subscribes to shard channels, which are separate from other channels.",
    "O(N) where N is the number of shard channels to subscribe to.",
)
def ssubscribe(ctx: Context, args: list[bytes]) -> bytes:
    if not ctx.waits:  # unlike SUBSCRIBE, not inside EXEC (Redis 8.6.3)
        raise _denied(b"SSUBSCRIBE")
    return _changed(ctx, b"ssubscribe", args[1:], ctx.subscriptions.subscribe_shard, _count_shard)


# -- UNSUBSCRIBE, PUNSUBSCRIBE, SUNSUBSCRIBE --------------------------------------------------------------------------


@command(
    "UNSUBSCRIBE [channel [channel ...]]",
    "2.0.0 pubsub noscript loading stale | traits while_subscribed",
    "Unsubscribes from these channels, or from all.",
    "O(N) where N is the number of channels to unsubscribe.",
)
def unsubscribe(ctx: Context, args: list[bytes]) -> bytes:
    channels = args[1:] or list(ctx.session.channels)
    return _changed(ctx, b"unsubscribe", channels, ctx.subscriptions.unsubscribe, _count)


@command(
    "PUNSUBSCRIBE [pattern [pattern ...]]",
    "2.0.0 pubsub noscript loading stale | traits while_subscribed",
    "Unsubscribes from these patterns, or from all.",
    "O(N) where N is the number of patterns to unsubscribe.",
)
def punsubscribe(ctx: Context, args: list[bytes]) -> bytes:
    patterns = args[1:] or list(ctx.session.patterns)
    return _changed(ctx, b"punsubscribe", patterns, ctx.subscriptions.unsubscribe_pattern, _count)


@command(
    "SUNSUBSCRIBE [shardchannel [shardchannel ...]]",
    "7.0.0 pubsub noscript loading stale | keys 1..-1 not_key | traits while_subscribed",
    "Unsubscribes from these shard channels, or from all.",
    "O(N) where N is the number of shard channels to unsubscribe.",
)
def sunsubscribe(ctx: Context, args: list[bytes]) -> bytes:
    channels = args[1:] or list(ctx.session.shard_channels)
    return _changed(ctx, b"sunsubscribe", channels, ctx.subscriptions.unsubscribe_shard, _count_shard)


def _refuse_in_log(session: Session, name: bytes) -> None:
    """Refuse a subscription in the log's replay, where there is no client (Redis 8.6.3)."""
    if session.privileged:
        raise _denied(name)


def _denied(name: bytes) -> ReplyError:
    return ReplyError(b"ERR %b isn't allowed for a DENY BLOCKING client" % name)


def _count(session: Session) -> int:
    """The number of channels and patterns together. Shard channels are counted separately."""
    return len(session.channels) + len(session.patterns)


def _count_shard(session: Session) -> int:
    return len(session.shard_channels)


def _changed(
    ctx: Context,
    kind: bytes,
    names: list[bytes],
    change: Callable[[Session, bytes], object],
    count: Callable[[Session], int],
) -> bytes:
    """Change the subscription to each name. One confirmation each, with the count after it; one for no name at all."""
    session = ctx.session
    replies: list[bytes] = []
    for name in names:
        change(session, name)
        replies.append(_confirmation(ctx, kind, name, count(session)))
    return _deliver(ctx, replies or [_confirmation(ctx, kind, None, count(session))])


def _confirmation(ctx: Context, kind: bytes, name: bytes | None, count: int) -> bytes:
    """The confirmation of a change; `name` is None if there was nothing to unsubscribe from."""
    shown = reply.null(ctx.resp3) if name is None else reply.bulk(name)
    return reply.push([reply.bulk(kind), shown, reply.integer(count)], ctx.resp3)


def _deliver(ctx: Context, confirmations: list[bytes]) -> bytes:
    """The confirmations as the reply. A client gets them even after CLIENT REPLY OFF or SKIP (Redis 8.6.3)."""
    session = ctx.session
    joined = b"".join(confirmations)
    if not session.is_silent and not session.reply_skip:
        return joined
    ctx.clients.outgoing.append((session, joined))
    return reply.NO_REPLY


# -- PUBLISH, SPUBLISH ------------------------------------------------------------------------------------------------


@command(
    "PUBLISH channel message",
    "2.0.0 pubsub loading stale fast | traits may_replicate spreads | channels 1",
    "Sends a message to the present subscribers of a channel.",
    "O(N+M) where N is the number of clients subscribed to the receiving channel and M is "
    "the total number of subscribed patterns (by any client).",
)
def publish(ctx: Context, args: list[bytes]) -> bytes:
    _spread(ctx, TO_ALL, args)
    return reply.integer(ctx.subscriptions.publish(args[1], args[2], ctx.clients.outgoing))


@command(
    "SPUBLISH shardchannel message",
    "7.0.0 pubsub loading stale fast | keys 1 not_key | traits may_replicate spreads | channels 1",
    "Sends a message to the present subscribers of a shard channel.",
    "O(N) where N is the number of clients subscribed to the receiving shard channel.",
)
def spublish(ctx: Context, args: list[bytes]) -> bytes:
    _spread(ctx, TO_SHARD, args)
    return reply.integer(ctx.subscriptions.publish_to_shard(args[1], args[2], ctx.clients.outgoing))


def _spread(ctx: Context, kind: bytes, args: list[bytes]) -> None:
    """Have a message reach the subscribers of replicas, or in a cluster of its other nodes."""
    owner = None if ctx.cluster is None else ctx.cluster.node.map_owner
    if owner is None:
        ctx.replication.spread(args)
    else:
        owner.publish(kind, args[1], args[2])


# -- PUBSUB -----------------------------------------------------------------------------------------------------------

container("PUBSUB", group="pubsub", since="2.8.0", summary="Commands that describe subscriptions.")


@command(
    "PUBSUB|CHANNELS [pattern]",
    "2.8.0 pubsub loading stale",
    "Lists the channels with subscribers.",
    "O(N) where N is the number of active channels, and assuming constant time pattern "
    "matching (relatively short channels and patterns)",
)
def pubsub_channels(ctx: Context, args: list[bytes]) -> bytes:
    return _names(ctx.subscriptions.channels, args)


@command(
    "PUBSUB|SHARDCHANNELS [pattern]",
    "7.0.0 pubsub loading stale",
    "Lists the shard channels with subscribers.",
    "O(N) where N is the number of active shard channels, and assuming constant time pattern "
    "matching (relatively short shard channels).",
)
def pubsub_shardchannels(ctx: Context, args: list[bytes]) -> bytes:
    return _names(ctx.subscriptions.shard_channels, args)


def _names(names: Iterable[bytes], args: list[bytes]) -> bytes:
    """The names that match the pattern. `*` does not match the channel with the empty name (Redis 8.6.3)."""
    if len(args) > 3:
        raise refusals.unknown_or_wrong(args[1], args[0])
    if len(args) == 2:
        return reply.bulks(list(names))
    glob = Glob(args[2])
    return reply.bulks([name for name in names if glob.matches(name)])


@command(
    "PUBSUB|NUMSUB [channel [channel ...]]",
    "2.8.0 pubsub loading stale",
    "Returns the number of subscribers of each given channel.",
    "O(N) for the NUMSUB subcommand, where N is the number of requested channels",
)
def pubsub_numsub(ctx: Context, args: list[bytes]) -> bytes:
    return _counts(ctx.subscriptions.channels, args[2:])


@command(
    "PUBSUB|SHARDNUMSUB [shardchannel [shardchannel ...]]",
    "7.0.0 pubsub loading stale",
    "Returns the number of subscribers of each given shard channel.",
    "O(N) for the SHARDNUMSUB subcommand, where N is the number of requested shard channels",
)
def pubsub_shardnumsub(ctx: Context, args: list[bytes]) -> bytes:
    return _counts(ctx.subscriptions.shard_channels, args[2:])


def _counts(listeners: dict[bytes, Listeners], names: list[bytes]) -> bytes:
    """Names and counts in turn, as a flat array in RESP3, too."""
    pairs = [(reply.bulk(name), reply.integer(len(listeners.get(name, ())))) for name in names]
    return reply.mapping(pairs, resp3=False)


@command("PUBSUB|NUMPAT", "2.8.0 pubsub loading stale", "Returns the number of different patterns with subscribers.")
def pubsub_numpat(ctx: Context, args: list[bytes]) -> bytes:
    return reply.integer(len(ctx.subscriptions.patterns))


declare_help("PUBSUB", "6.2.0", HELP)
