"""CLUSTER subcommands that change the node: its slots, its epoch, its name; what needs other nodes (Redis 8.6.3).

Changes of the map that a node of `penstock cluster` is asked for go to the launcher, which owns the map.

Tests: transcripts cluster_node, cluster_slots, cluster_lost_slots; cases commands/test_cluster_of_one,
launching/test_cluster_beside_redis.
"""

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Final

from penstock.commands.cluster.cluster_nodes import VARIES, known, node_of, unknown_node
from penstock.engine import arguments, refusals
from penstock.engine.cluster import following_map
from penstock.engine.cluster.hash_slots import SLOTS
from penstock.engine.cluster.node import ASSIGNED, BUS_PORT_OFFSET, NOT_OWNED, Node, keys_in
from penstock.engine.context import BLOCKED, Context
from penstock.engine.table.command_table import command
from penstock.engine.waiting.blocked_request import BlockedRequest
from penstock.errors import ReplyError
from penstock.protocol import reply

CHANGES: Final = "admin stale no_async_loading"
BY_SLOTS: Final = "O(N) where N is the total number of hash slot arguments"
BY_RANGES: Final = "O(N) where N is the total number of the slots between the start slot and end slot arguments."
RANGES: Final = "range:(start-slot:integer end-slot:integer) [start-slot:integer end-slot:integer ...]"
LARGEST_PORT: Final = 65535
MOST_UNANSWERED: Final = 1000  # changes that the launcher was asked for, beyond which a transaction asks for no more
TOO_MANY: Final = b"ERR Too many changes of the cluster's map wait to be made, try again later"


def _fixed() -> ReplyError:
    """A refusal of what would add a node, or take one away."""
    return ReplyError(b"ERR The nodes of this cluster are those that its launcher has started")


def _hand_over(ctx: Context, node: Node, words: list[bytes]) -> bytes:
    """The request waits until every node that lives knows of the change; in a transaction it is only sent.

    So a transaction or a script could ask for any number of changes, which the launcher makes one after the other.
    """
    assert node.map_owner is not None, "a node with a map has its owner"
    if not ctx.waits and node.unanswered >= MOST_UNANSWERED:
        raise ReplyError(TOO_MANY)
    node.unanswered += 1
    number = node.map_owner.ask(words)
    if not ctx.waits:
        return reply.OK
    assert ctx.row is not None, "a request that runs has a row"
    blocked = BlockedRequest(ctx.session, ctx.row, ctx.args, ctx.db_index, [], 0, b"")
    blocked.is_running = True
    ctx.blocking.block(blocked)
    node.waiting[number] = blocked
    return BLOCKED


# -- slots ------------------------------------------------------------------------------------------------------------


@command("CLUSTER|ADDSLOTS slot:integer ...", f"3.0.0 {CHANGES}", "Assigns slots to the node.", BY_SLOTS)
def cluster_addslots(ctx: Context, args: list[bytes]) -> bytes:
    return _add(ctx, node_of(ctx), _single(args))


@command(f"CLUSTER|ADDSLOTSRANGE {RANGES}", f"7.0.0 {CHANGES}", "Assigns ranges of slots to the node.", BY_RANGES)
def cluster_addslotsrange(ctx: Context, args: list[bytes]) -> bytes:
    node = node_of(ctx)
    return _add(ctx, node, _in_ranges(args))


@command("CLUSTER|DELSLOTS slot:integer ...", f"3.0.0 {CHANGES}", "Removes slots from the node.", BY_SLOTS)
def cluster_delslots(ctx: Context, args: list[bytes]) -> bytes:
    return _delete(ctx, node_of(ctx), _single(args))


@command(f"CLUSTER|DELSLOTSRANGE {RANGES}", f"7.0.0 {CHANGES}", "Removes ranges of slots from the node.", BY_RANGES)
def cluster_delslotsrange(ctx: Context, args: list[bytes]) -> bytes:
    node = node_of(ctx)
    return _delete(ctx, node, _in_ranges(args))


def _single(args: list[bytes]) -> list[int]:
    return [arguments.slot(word) for word in args[2:]]


def _in_ranges(args: list[bytes]) -> Iterator[int]:
    """The slots of one range after the other: an error of one is reported before the next is read (Redis 8.6.3)."""
    if len(args) % 2:
        raise refusals.arity(b"|".join([word.lower() for word in args[:2]]))
    for at in range(2, len(args), 2):
        first, last = arguments.slot(args[at]), arguments.slot(args[at + 1])
        if first > last:
            raise ReplyError(b"ERR start slot number %d is greater than end slot number %d" % (first, last))
        yield from range(first, last + 1)


def _add(ctx: Context, node: Node, slots: Iterable[int]) -> bytes:
    """A slot that the node was given at its first start may still be added, as to a Redis that begins without slots."""
    seen: set[int] = set()
    found = node.map
    for slot in slots:
        is_busy = node.owned[slot] == ASSIGNED if found is None else found.owners[slot] is not None
        if is_busy:
            raise ReplyError(b"ERR Slot %d is already busy" % slot)
        _note(slot, seen)
    if found is not None:
        return _hand_over(ctx, node, [b"ADDSLOTS", *_numbers(seen)])
    for slot in seen:
        node.owned[slot] = ASSIGNED
    node.keep()
    return reply.OK


def _delete(ctx: Context, node: Node, slots: Iterable[int]) -> bytes:
    """Of several nodes' slots only the node's own become free: of others the map would say so again at once."""
    seen: set[int] = set()
    found = node.map
    for slot in slots:
        is_assigned = node.owns(slot) if found is None else found.owners[slot] is not None
        if not is_assigned:
            raise ReplyError(b"ERR Slot %d is already unassigned" % slot)
        _note(slot, seen)
    if found is not None:
        return _hand_over(ctx, node, [b"DELSLOTS", *_numbers(seen)])
    for slot in seen:
        node.owned[slot] = NOT_OWNED
    _give_up(ctx, node)
    return reply.OK


def _give_up(ctx: Context, node: Node) -> None:
    """The node has fewer slots than before: it is kept so, and subscribers of their channels are unsubscribed."""
    node.keep()
    following_map.close_channels(ctx.server, node)


def _numbers(slots: Iterable[int]) -> list[bytes]:
    return [b"%d" % slot for slot in slots]


def _note(slot: int, seen: set[int]) -> None:
    if slot in seen:
        raise ReplyError(b"ERR Slot %d specified multiple times" % slot)
    seen.add(slot)


@command("CLUSTER|FLUSHSLOTS", f"3.0.0 {CHANGES}", "Removes all slots from the node.")
def cluster_flushslots(ctx: Context, args: list[bytes]) -> bytes:
    node = node_of(ctx)
    if len(ctx.db):
        raise ReplyError(b"ERR DB must be empty to perform CLUSTER FLUSHSLOTS.")
    if node.map is not None:
        return _hand_over(ctx, node, [b"DELSLOTS", *_numbers(range(SLOTS))])
    node.owned = bytearray(SLOTS)
    _give_up(ctx, node)
    return reply.OK


@command(
    "CLUSTER|SETSLOT slot:integer subcommand:<importing:IMPORTING node-id | migrating:MIGRATING node-id | node:NODE "
    "node-id | STABLE>",
    f"3.0.0 {CHANGES}",
    "Sets the state of a slot that moves from one node to another, or its node.",
)
def cluster_setslot(ctx: Context, args: list[bytes]) -> bytes:
    node = node_of(ctx)
    view = node.view()
    own = view.own()
    if not own.is_master:
        raise ReplyError(b"ERR Please use SETSLOT only with masters.")
    slot, action = arguments.slot(args[2]), args[3].upper()
    if action == b"STABLE" and len(args) == 4:
        return reply.OK if node.map is None else _hand_over(ctx, node, [b"SETSLOT", args[2], action, b""])
    if len(args) != 5 or action not in (b"MIGRATING", b"IMPORTING", b"NODE"):
        raise ReplyError(b"ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP")
    is_owner = view.owners[slot] is own
    if action == b"MIGRATING" and not is_owner:
        raise ReplyError(b"ERR I'm not the owner of hash slot %d" % slot)
    if action == b"IMPORTING" and is_owner:
        raise ReplyError(b"ERR I'm already the owner of hash slot %d" % slot)
    to = view.member(args[4].decode("latin1"))
    if to is None and action == b"NODE":
        raise unknown_node(args[4])
    if to is None:
        raise ReplyError(b"ERR I don't know about node %b" % refusals.c_string(args[4]))
    if not to.is_master:
        raise ReplyError(b"ERR Target node is not a master")
    if action == b"NODE" and is_owner and to is not own and keys_in(slot, list(ctx.db.values)):
        raise ReplyError(
            b"ERR Can't assign hashslot %d to a different node while I still hold keys for this hash slot." % slot
        )
    if node.map is not None:
        return _hand_over(ctx, node, [b"SETSLOT", args[2], action, args[4]])
    if action == b"NODE":
        node.owned[slot] = ASSIGNED
        node.keep()
    return reply.OK


# -- the node ---------------------------------------------------------------------------------------------------------


@command(
    "CLUSTER|RESET reset-type:[HARD|SOFT]",
    "3.0.0 admin noscript stale",
    "Removes all slots from the node; HARD gives it another ID.",
    "O(N) where N is the number of known nodes. The command may execute a FLUSHALL as a side effect.",
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
    if node.map is not None:
        raise _fixed()
    node.renew(kind == b"HARD")
    _give_up(ctx, node)
    return reply.OK


@command("CLUSTER|BUMPEPOCH", f"3.0.0 {CHANGES} | tips {VARIES}", "Advances the epoch.")
def cluster_bumpepoch(ctx: Context, args: list[bytes]) -> bytes:
    node = node_of(ctx)
    if node.map is not None:
        return _hand_over(ctx, node, [b"BUMPEPOCH"])
    if node.epoch:
        return reply.simple(b"STILL %d" % node.epoch)
    node.current_epoch += 1
    node.epoch = node.current_epoch
    node.keep()
    return reply.simple(b"BUMPED %d" % node.epoch)


@command("CLUSTER|SET-CONFIG-EPOCH config-epoch:integer", f"3.0.0 {CHANGES}", "Sets a new node's epoch.")
def cluster_set_config_epoch(ctx: Context, args: list[bytes]) -> bytes:
    node = node_of(ctx)
    epoch = arguments.integer(args[2])
    if epoch < 0:
        raise ReplyError(b"ERR Invalid config epoch specified: %d" % epoch)
    if node.map is not None:
        raise ReplyError(b"ERR The user can assign a config epoch only when the node does not know any other node.")
    if node.epoch:
        raise ReplyError(b"ERR Node config epoch is already non-zero")
    node.epoch = epoch
    node.current_epoch = max(node.current_epoch, epoch)
    node.keep()
    return reply.OK


@command("CLUSTER|SAVECONFIG", f"3.0.0 {CHANGES}", "Writes the node's state to its file.")
def cluster_saveconfig(ctx: Context, args: list[bytes]) -> bytes:
    node_of(ctx).keep()
    return reply.OK


# -- other nodes ------------------------------------------------------------------------------------------------------


@command(
    "CLUSTER|MEET ip port:integer [cluster-bus-port:integer@4.0.0]",
    f"3.0.0 {CHANGES}",
    "Connects two nodes. Without effect here: a cluster has the nodes that it was started with.",
    history=(("4.0.0", "Added the optional `cluster_bus_port` argument."),),
)
def cluster_meet(ctx: Context, args: list[bytes]) -> bytes:
    node = node_of(ctx)
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
    if node.map is not None and not any(one.port == port for one in node.map.members):
        raise _fixed()
    return reply.OK


@command("CLUSTER|FORGET node-id", f"3.0.0 {CHANGES}", "Removes a node from the table. Refused here.")
def cluster_forget(ctx: Context, args: list[bytes]) -> bytes:
    node = node_of(ctx)
    one = known(node, args[2])
    if one.id == node.id:
        raise ReplyError(b"ERR I tried hard but I can't forget myself...")
    if one.id == node.member().master_id:
        raise ReplyError(b"ERR Can't forget my master!")
    raise _fixed()


@command("CLUSTER|REPLICATE node-id", f"3.0.0 {CHANGES}", "Makes the node the replica of another. Refused here.")
def cluster_replicate(ctx: Context, args: list[bytes]) -> bytes:
    node = node_of(ctx)
    one = known(node, args[2])
    if one.id == node.id:
        raise ReplyError(b"ERR Can't replicate myself")
    own = node.member()
    if own.is_master and (any(own.slots) or len(ctx.db)):
        raise ReplyError(b"ERR To set a master the node must be empty and without assigned slots.")
    raise _fixed()


@command("CLUSTER|FAILOVER options:[FORCE|TAKEOVER]", f"3.0.0 {CHANGES}", "Makes a replica the master.")
def cluster_failover(ctx: Context, args: list[bytes]) -> bytes:
    """Without FORCE or TAKEOVER Redis has the master hold its writes until the replica has all; refused here."""
    node = node_of(ctx)
    if len(args) > 3:
        raise refusals.unknown_or_wrong(args[1], args[0])
    if len(args) == 3 and args[2].upper() not in (b"FORCE", b"TAKEOVER"):
        raise refusals.syntax()
    if node.member().is_master:
        raise ReplyError(b"ERR You should send CLUSTER FAILOVER to a replica")
    if len(args) < 3:
        raise ReplyError(b"ERR This server takes CLUSTER FAILOVER with FORCE or TAKEOVER only")
    return _hand_over(ctx, node, [b"FAILOVER"])


def not_moved(ctx: Context, args: list[bytes]) -> bytes:
    node_of(ctx)
    raise ReplyError(b"ERR This server moves slots by CLUSTER SETSLOT and MIGRATE only")


command(
    "CLUSTER|MIGRATION subcommand:<import:IMPORT (start-slot:integer end-slot:integer) "
    "[start-slot:integer end-slot:integer ...] | cancel:CANCEL <task-id:ID task-id | ALL> "
    "| status:STATUS <[task-id:ID task-id] | [ALL]>>",
    f"8.4.0 {CHANGES} | arity -4",
    "Moves slots between nodes. Refused here.",
    BY_RANGES,
)(not_moved)

command(
    "CLUSTER|SYNCSLOTS subcommand:<sync:SYNC (task-id slot-range:(start-slot:integer end-slot:integer)"
    " [start-slot:integer end-slot:integer ...]) | task-id:RDBCHANNEL task-id | SNAPSHOT-EOF | STREAM-EOF"
    " | ack:ACK (state offset) | error:FAIL error | conf:CONF (option ... value ...)>",
    f"8.4.0 {CHANGES} | tips {VARIES}",
    "Used by nodes to migrate slots. Refused here.",
)(not_moved)
