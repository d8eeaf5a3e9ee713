"""CLUSTER subcommands that change the node: its slots, its epoch, its name; what needs other nodes (Redis 8.6.3).

Tests: transcripts cluster_node, cluster_slots, cluster_lost_slots; cases commands/test_cluster_of_one.
"""

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Final

from penstock.commands.cluster.cluster_nodes import VARIES, node_of, unknown_node
from penstock.engine import arguments, refusals
from penstock.engine.cluster.hash_slots import SLOTS, slot_of
from penstock.engine.cluster.node import ASSIGNED, BUS_PORT_OFFSET, NOT_OWNED, Node
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply

CHANGES: Final = "admin stale no_async_loading"
BY_SLOTS: Final = "O(N) where N is the total number of hash slot arguments"
BY_RANGES: Final = "O(N) where N is the total number of the slots between the start slot and end slot arguments."
RANGES: Final = "range:(start-slot:integer end-slot:integer) [start-slot:integer end-slot:integer ...]"
LARGEST_PORT: Final = 65535


# -- slots ------------------------------------------------------------------------------------------------------------


@command(
    "CLUSTER|ADDSLOTS", "slot:integer ...", group="cluster", since="3.0.0", flags=CHANGES, complexity=BY_SLOTS,
    summary="Assigns slots to the node.",
)  # fmt: skip
def cluster_addslots(ctx: Context, args: list[bytes]) -> bytes:
    return _add(node_of(ctx), _single(args))


@command(
    "CLUSTER|ADDSLOTSRANGE", RANGES, group="cluster", since="7.0.0", flags=CHANGES, complexity=BY_RANGES,
    summary="Assigns ranges of slots to the node.",
)  # fmt: skip
def cluster_addslotsrange(ctx: Context, args: list[bytes]) -> bytes:
    node = node_of(ctx)
    return _add(node, _in_ranges(args))


@command(
    "CLUSTER|DELSLOTS", "slot:integer ...", group="cluster", since="3.0.0", flags=CHANGES, complexity=BY_SLOTS,
    summary="Removes slots from the node.",
)  # fmt: skip
def cluster_delslots(ctx: Context, args: list[bytes]) -> bytes:
    return _delete(ctx, node_of(ctx), _single(args))


@command(
    "CLUSTER|DELSLOTSRANGE", RANGES, group="cluster", since="7.0.0", flags=CHANGES, complexity=BY_RANGES,
    summary="Removes ranges of slots from the node.",
)  # fmt: skip
def cluster_delslotsrange(ctx: Context, args: list[bytes]) -> bytes:
    node = node_of(ctx)
    return _delete(ctx, node, _in_ranges(args))


def _slot(word: bytes) -> int:
    refusal = b"ERR Invalid or out of range slot"
    slot = arguments.integer_or(word, refusal)
    if not 0 <= slot < SLOTS:
        raise ReplyError(refusal)
    return slot


def _single(args: list[bytes]) -> list[int]:
    return [_slot(word) for word in args[2:]]


def _in_ranges(args: list[bytes]) -> Iterator[int]:
    """The slots of one range after the other: an error of one is reported before the next is read (Redis 8.6.3)."""
    if len(args) % 2:
        raise refusals.arity(b"|".join([word.lower() for word in args[:2]]))
    for at in range(2, len(args), 2):
        first, last = _slot(args[at]), _slot(args[at + 1])
        if first > last:
            raise ReplyError(b"ERR start slot number %d is greater than end slot number %d" % (first, last))
        yield from range(first, last + 1)


def _add(node: Node, slots: Iterable[int]) -> bytes:
    """A slot that the node was given at its first start may still be added, as to a Redis that begins without slots."""
    seen: set[int] = set()
    for slot in slots:
        if node.owned[slot] == ASSIGNED:
            raise ReplyError(b"ERR Slot %d is already busy" % slot)
        _note(slot, seen)
    for slot in seen:
        node.owned[slot] = ASSIGNED
    node.keep()
    return reply.OK


def _delete(ctx: Context, node: Node, slots: Iterable[int]) -> bytes:
    seen: set[int] = set()
    for slot in slots:
        if not node.owns(slot):
            raise ReplyError(b"ERR Slot %d is already unassigned" % slot)
        _note(slot, seen)
    for slot in seen:
        node.owned[slot] = NOT_OWNED
    _give_up(ctx, node)
    return reply.OK


def _give_up(ctx: Context, node: Node) -> None:
    """The node has fewer slots than before: it is kept so, and subscribers of their channels are unsubscribed."""
    subscriptions = ctx.subscriptions
    lost = [(slot_of(channel), channel) for channel in subscriptions.shard_channels]
    for slot, channel in sorted(lost):
        if not node.owns(slot):
            subscriptions.close_shard_channel(channel, ctx.clients.outgoing)
    node.keep()


def _note(slot: int, seen: set[int]) -> None:
    if slot in seen:
        raise ReplyError(b"ERR Slot %d specified multiple times" % slot)
    seen.add(slot)


@command(
    "CLUSTER|FLUSHSLOTS", group="cluster", since="3.0.0", flags=CHANGES, complexity="O(1)",
    summary="Removes all slots from the node.",
)  # fmt: skip
def cluster_flushslots(ctx: Context, args: list[bytes]) -> bytes:
    node = node_of(ctx)
    if len(ctx.db):
        raise ReplyError(b"ERR DB must be empty to perform CLUSTER FLUSHSLOTS.")
    node.owned = bytearray(SLOTS)
    _give_up(ctx, node)
    return reply.OK


@command(
    "CLUSTER|SETSLOT",
    "slot:integer subcommand:<importing:IMPORTING node-id | migrating:MIGRATING node-id | node:NODE node-id | STABLE>",
    group="cluster",
    since="3.0.0",
    flags=CHANGES,
    complexity="O(1)",
    summary="Sets the state of a slot. There is no node to move it to.",
)
def cluster_setslot(ctx: Context, args: list[bytes]) -> bytes:
    node = node_of(ctx)
    slot, action, own_id = _slot(args[2]), args[3].upper(), node.id.encode()
    if action == b"STABLE" and len(args) == 4:
        return reply.OK
    if len(args) != 5 or action not in (b"MIGRATING", b"IMPORTING", b"NODE"):
        raise ReplyError(b"ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP")
    is_own = args[4] == own_id
    if action == b"NODE":
        if not is_own:
            raise unknown_node(args[4])
        node.owned[slot] = ASSIGNED
        node.keep()
        return reply.OK
    if action == b"MIGRATING" and not node.owns(slot):
        raise ReplyError(b"ERR I'm not the owner of hash slot %d" % slot)
    if action == b"IMPORTING" and node.owns(slot):
        raise ReplyError(b"ERR I'm already the owner of hash slot %d" % slot)
    if not is_own:
        raise ReplyError(b"ERR I don't know about node %b" % refusals.c_string(args[4]))
    return reply.OK


# -- the node ---------------------------------------------------------------------------------------------------------


@command(
    "CLUSTER|RESET",
    "reset-type:[HARD|SOFT]",
    group="cluster",
    since="3.0.0",
    flags="admin noscript stale",
    complexity="O(N) where N is the number of known nodes. The command may execute a FLUSHALL as a side effect.",
    summary="Removes all slots from the node; HARD gives it another ID.",
)
def cluster_reset(ctx: Context, args: list[bytes]) -> bytes:
    node = node_of(ctx)
    if len(args) > 3:
        raise refusals.unknown_or_wrong(args[1], args[0])
    kind = args[2].upper() if len(args) == 3 else b"SOFT"
    if kind not in (b"HARD", b"SOFT"):
        raise refusals.syntax()
    if len(ctx.db):
        raise ReplyError(b"ERR CLUSTER RESET can't be called with master nodes containing keys")
    node.renew(kind == b"HARD")
    _give_up(ctx, node)
    return reply.OK


@command(
    "CLUSTER|BUMPEPOCH", group="cluster", since="3.0.0", flags=CHANGES, tips=VARIES, complexity="O(1)",
    summary="Advances the epoch.",
)  # fmt: skip
def cluster_bumpepoch(ctx: Context, args: list[bytes]) -> bytes:
    node = node_of(ctx)
    if node.epoch:
        return reply.simple(b"STILL %d" % node.epoch)
    node.current_epoch += 1
    node.epoch = node.current_epoch
    node.keep()
    return reply.simple(b"BUMPED %d" % node.epoch)


@command(
    "CLUSTER|SET-CONFIG-EPOCH", "config-epoch:integer", group="cluster", since="3.0.0", flags=CHANGES,
    complexity="O(1)", summary="Sets a new node's epoch.",
)  # fmt: skip
def cluster_set_config_epoch(ctx: Context, args: list[bytes]) -> bytes:
    node = node_of(ctx)
    epoch = arguments.integer(args[2])
    if epoch < 0:
        raise ReplyError(b"ERR Invalid config epoch specified: %d" % epoch)
    if node.epoch:
        raise ReplyError(b"ERR Node config epoch is already non-zero")
    node.epoch = epoch
    node.current_epoch = max(node.current_epoch, epoch)
    node.keep()
    return reply.OK


@command(
    "CLUSTER|SAVECONFIG", group="cluster", since="3.0.0", flags=CHANGES, complexity="O(1)",
    summary="Writes the node's state to its file.",
)  # fmt: skip
def cluster_saveconfig(ctx: Context, args: list[bytes]) -> bytes:
    node_of(ctx).keep()
    return reply.OK


# -- other nodes ------------------------------------------------------------------------------------------------------


@command(
    "CLUSTER|MEET",
    "ip port:integer [cluster-bus-port:integer@4.0.0]",
    group="cluster",
    since="3.0.0",
    flags=CHANGES,
    history=(("4.0.0", "Added the optional `cluster_bus_port` argument."),),
    summary="Connects two nodes. Taken here, without effect.",
)
def cluster_meet(ctx: Context, args: list[bytes]) -> bytes:
    node_of(ctx)
    port = arguments.integer_or(args[3], b"ERR Invalid base port specified: %b" % refusals.c_string(args[3]))
    bus_port = port + BUS_PORT_OFFSET
    if len(args) > 4:
        bus_port = arguments.integer_or(args[4], b"ERR Invalid bus port specified: %b" % refusals.c_string(args[4]))
    try:
        ipaddress.ip_address(args[2].decode("latin1"))
    except ValueError:
        port = 0
    if not (0 < port <= LARGEST_PORT and 0 < bus_port <= LARGEST_PORT):
        place = b"%b:%b" % (refusals.c_string(args[2]), refusals.c_string(args[3]))
        raise ReplyError(b"ERR Invalid node address specified: " + place)
    return reply.OK


@command(
    "CLUSTER|FORGET", "node-id", group="cluster", since="3.0.0", flags=CHANGES, complexity="O(1)",
    summary="Removes a node from the table. There is no other node.",
)  # fmt: skip
def cluster_forget(ctx: Context, args: list[bytes]) -> bytes:
    if args[2] == node_of(ctx).id.encode():
        raise ReplyError(b"ERR I tried hard but I can't forget myself...")
    raise unknown_node(args[2])


@command(
    "CLUSTER|REPLICATE", "node-id", group="cluster", since="3.0.0", flags=CHANGES, complexity="O(1)",
    summary="Makes the node the replica of another. There is no other node.",
)  # fmt: skip
def cluster_replicate(ctx: Context, args: list[bytes]) -> bytes:
    if args[2] == node_of(ctx).id.encode():
        raise ReplyError(b"ERR Can't replicate myself")
    raise unknown_node(args[2])


@command(
    "CLUSTER|FAILOVER", "options:[FORCE|TAKEOVER]", group="cluster", since="3.0.0", flags=CHANGES, complexity="O(1)",
    summary="Makes a replica the master; the node is one.",
)  # fmt: skip
def cluster_failover(ctx: Context, args: list[bytes]) -> bytes:
    node_of(ctx)
    if len(args) > 3:
        raise refusals.unknown_or_wrong(args[1], args[0])
    if len(args) == 3 and args[2].upper() not in (b"FORCE", b"TAKEOVER"):
        raise refusals.syntax()
    raise ReplyError(b"ERR You should send CLUSTER FAILOVER to a replica")


def _not_moved(ctx: Context, args: list[bytes]) -> bytes:
    node_of(ctx)
    raise ReplyError(b"ERR This server is the only node of its cluster: no slot can move")


command(
    "CLUSTER|MIGRATION",
    "subcommand:<import:IMPORT (start-slot:integer end-slot:integer) [start-slot:integer end-slot:integer ...]"
    " | cancel:CANCEL <task-id:ID task-id | ALL> | status:STATUS <[task-id:ID task-id] | [ALL]>>",
    group="cluster",
    since="8.4.0",
    flags=CHANGES,
    complexity=BY_RANGES,
    arity=-4,
    summary="Moves slots between nodes. Refused here.",
)(_not_moved)

command(
    "CLUSTER|SYNCSLOTS",
    "subcommand:<sync:SYNC (task-id slot-range:(start-slot:integer end-slot:integer)"
    " [start-slot:integer end-slot:integer ...]) | task-id:RDBCHANNEL task-id | SNAPSHOT-EOF | STREAM-EOF"
    " | ack:ACK (state offset) | error:FAIL error | conf:CONF (option ... value ...)>",
    group="cluster",
    since="8.4.0",
    flags=CHANGES,
    tips=VARIES,
    complexity="O(1)",
    summary="Used by nodes to migrate slots. Refused here.",
)(_not_moved)
