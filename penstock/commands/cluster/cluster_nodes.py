"""CLUSTER subcommands that read: the state of a cluster of one, its node, its slots (Redis 8.6.3).

Without `cluster-enabled yes` all of them are refused, even INFO and HELP; client libraries send them to find out
whether there is a cluster.

Tests: transcripts cluster_node, cluster_lost_slots; cases commands/test_cluster_of_one, server/test_cluster.
"""

from typing import Final

from penstock.commands.common.help import help_reply
from penstock.engine import arguments
from penstock.engine.cluster.cluster_map import Member
from penstock.engine.cluster.hash_slots import SLOTS, ranges, slot_of
from penstock.engine.cluster.node import Node, keys_in
from penstock.engine.context import Context
from penstock.engine.table.command_table import command, container
from penstock.errors import ReplyError
from penstock.protocol import reply

DISABLED: Final = b"ERR This instance has cluster support disabled"
READS_OTHERS: Final = "admin stale"
VARIES: Final = "nondeterministic_output"
BY_NODES: Final = "O(N) where N is the total number of Cluster nodes"
BY_REPLICAS: Final = "O(N) where N is the number of replicas."

container("CLUSTER", group="cluster", since="3.0.0", summary="Commands for a node of a cluster.")


def node_of(ctx: Context) -> Node:
    """This server's node; ReplyError without cluster-enabled."""
    cluster = ctx.cluster
    if cluster is None:
        raise ReplyError(DISABLED)
    return cluster.node


def unknown_node(id: bytes) -> ReplyError:
    return ReplyError(b"ERR Unknown node %b" % id.partition(b"\0")[0])


# -- the cluster ------------------------------------------------------------------------------------------------------


@command("CLUSTER|INFO", f"3.0.0 stale | tips {VARIES}", "Returns the state of the cluster.")
def cluster_info(ctx: Context, args: list[bytes]) -> bytes:
    """The counts of messages are those of a bus: nodes have none here."""
    node = node_of(ctx)
    view = node.view()
    assigned = [owner for owner in view.owners if owner is not None]
    failed = len([owner for owner in assigned if owner.is_failed])
    fields = [
        ("cluster_state", "ok" if node.is_up() else "fail"),
        ("cluster_slots_assigned", len(assigned)),
        ("cluster_slots_ok", len(assigned) - failed),
        ("cluster_slots_pfail", 0),
        ("cluster_slots_fail", failed),
        ("cluster_known_nodes", len(view.members)),
        ("cluster_size", len([one for one in view.members if any(one.slots)])),
        ("cluster_current_epoch", node.current_epoch),
        ("cluster_my_epoch", node.epoch),
        ("cluster_stats_messages_sent", 0),
        ("cluster_stats_messages_received", 0),
        ("total_cluster_links_buffer_limit_exceeded", 0),
        ("cluster_slot_migration_active_tasks", 0),
        ("cluster_slot_migration_active_trim_running", 0),
        ("cluster_slot_migration_active_trim_current_job_keys", 0),
        ("cluster_slot_migration_active_trim_current_job_trimmed", 0),
        ("cluster_slot_migration_stats_active_trim_started", 0),
        ("cluster_slot_migration_stats_active_trim_completed", 0),
        ("cluster_slot_migration_stats_active_trim_cancelled", 0),
    ]
    return reply.verbatim("".join([f"{name}:{value}\r\n" for name, value in fields]).encode(), ctx.resp3)


@command("CLUSTER|NODES", f"3.0.0 stale | tips {VARIES}", "Lists the nodes.", BY_NODES)
def cluster_nodes(ctx: Context, args: list[bytes]) -> bytes:
    node = node_of(ctx)
    lines = [_line(node, one) + "\n" for one in node.view().members]
    return reply.verbatim("".join(lines).encode(errors="surrogateescape"), ctx.resp3)


def _line(node: Node, one: Member) -> str:
    is_myself = one.id == node.id
    return one.line(is_myself, is_myself)


@command(
    "CLUSTER|SLOTS",
    f"3.0.0 loading stale | tips {VARIES}",
    "Lists slots and their nodes.",
    BY_NODES,
    history=(("4.0.0", "Added node IDs."), ("7.0.0", "Added additional networking metadata field.")),
    deprecated=("7.0.0", "`CLUSTER SHARDS`"),
)
def cluster_slots(ctx: Context, args: list[bytes]) -> bytes:
    """Replicas that have failed are left out (Redis 8.6.3)."""
    view = node_of(ctx).view()
    kind = ctx.settings.text("cluster-preferred-endpoint-type")
    runs = sorted([(first, last, one.id) for one in view.members for first, last in ranges(one.slots)])
    nodes = {
        one.id: [
            _described(ctx, kind, other)
            for other in (one, *view.replicas_of(one.id))
            if other is one or not other.is_failed
        ]
        for one in view.members
    }
    return reply.array(
        [reply.array([reply.integer(first), reply.integer(last), *nodes[owner]]) for first, last, owner in runs]
    )


def _described(ctx: Context, kind: str, one: Member) -> bytes:
    """A node in CLUSTER SLOTS: where to ask it, its port and ID, and its other names."""
    endpoint = reply.null(ctx.resp3) if kind == "unknown-endpoint" else _text(one.endpoint(kind))
    others = [("ip", one.ip)] if kind != "ip" and one.ip else []
    others += [("hostname", one.hostname)] if kind != "hostname" and one.hostname else []
    about = reply.mapping([(_text(name), _text(value)) for name, value in others], ctx.resp3)
    return reply.array([endpoint, reply.integer(one.port), _text(one.id), about])


@command(
    "CLUSTER|SHARDS",
    f"7.0.0 loading stale | tips {VARIES}",
    "Lists the shards and their slots.",
    "O(N) where N is the total number of cluster nodes",
)
def cluster_shards(ctx: Context, args: list[bytes]) -> bytes:
    """A shard whose master has failed has no slots (Redis 8.6.3)."""
    node = node_of(ctx)
    view = node.view()
    shards = []
    for master in view.members:
        if master.is_master:
            runs = [] if master.is_failed else ranges(master.slots)
            slots = [reply.integer(slot) for bounds in runs for slot in bounds]
            nodes = [_in_shard(ctx, node, one) for one in (master, *view.replicas_of(master.id))]
            shard = [(b"slots", reply.array(slots)), (b"nodes", reply.array(nodes))]
            shards.append(reply.fields(shard, ctx.resp3))
    return reply.array(shards)


def _in_shard(ctx: Context, node: Node, one: Member) -> bytes:
    """A node in CLUSTER SHARDS. How far the replication of others is, is not known here: 0."""
    endpoint = one.endpoint(ctx.settings.text("cluster-preferred-endpoint-type"))
    offset = ctx.replication.offset if one.id == node.id and node.map is not None else 0
    fields = [
        (b"id", _text(one.id)),
        (b"port", reply.integer(one.port)),
        *([(b"tls-port", reply.integer(one.tls_port))] if one.tls_port else []),
        (b"ip", _text(one.ip)),
        (b"endpoint", _text(endpoint)),
        *([(b"hostname", _text(one.hostname))] if one.hostname else []),
        (b"role", reply.bulk(b"master" if one.is_master else b"replica")),
        (b"replication-offset", reply.integer(offset)),
        (b"health", reply.bulk(b"fail" if one.is_failed else b"online")),
    ]
    return reply.fields(fields, ctx.resp3)


def _text(text: str) -> bytes:
    return reply.bulk(text.encode(errors="surrogateescape"))


@command("CLUSTER|LINKS", f"7.0.0 stale | tips {VARIES}", "Lists the links between nodes; there are none.", BY_NODES)
def cluster_links(ctx: Context, args: list[bytes]) -> bytes:
    node_of(ctx)
    return reply.EMPTY_ARRAY


# -- nodes ------------------------------------------------------------------------------------------------------------


@command("CLUSTER|MYID", "3.0.0 stale", "Returns the node's ID.")
def cluster_myid(ctx: Context, args: list[bytes]) -> bytes:
    return _text(node_of(ctx).id)


@command("CLUSTER|MYSHARDID", f"7.2.0 stale | tips {VARIES}", "Returns the ID of the node's shard.")
def cluster_myshardid(ctx: Context, args: list[bytes]) -> bytes:
    return _text(node_of(ctx).shard_id)


def known(node: Node, id: bytes) -> Member:
    """The node with an ID; ReplyError if the cluster has none."""
    one = node.view().member(id.decode("latin1"))
    if one is None:
        raise unknown_node(id)
    return one


def _replicas(ctx: Context, args: list[bytes]) -> bytes:
    node = node_of(ctx)
    master = known(node, args[2])
    if not master.is_master:
        raise ReplyError(b"ERR The specified node is not a master")
    return reply.array([_text(_line(node, one)) for one in node.view().replicas_of(master.id)])


command("CLUSTER|REPLICAS node-id", f"5.0.0 {READS_OTHERS} | tips {VARIES}", "Lists a master's replicas.", BY_REPLICAS)(
    _replicas
)

command(
    "CLUSTER|SLAVES node-id",
    f"3.0.0 {READS_OTHERS} | tips {VARIES}",
    "Lists a master's replicas.",
    BY_REPLICAS,
    deprecated=("5.0.0", "`CLUSTER REPLICAS`"),
)(_replicas)


@command(
    "CLUSTER|COUNT-FAILURE-REPORTS node-id",
    f"3.0.0 {READS_OTHERS} | tips {VARIES}",
    "Counts the nodes that report another as failed; there are none.",
    "O(N) where N is the number of failure reports",
)
def cluster_count_failure_reports(ctx: Context, args: list[bytes]) -> bytes:
    known(node_of(ctx), args[2])
    return reply.ZERO


# -- keys -------------------------------------------------------------------------------------------------------------


@command(
    "CLUSTER|KEYSLOT key:string",
    "3.0.0 stale",
    "Returns a key's slot.",
    "O(N) where N is the number of bytes in the key",
)
def cluster_keyslot(ctx: Context, args: list[bytes]) -> bytes:
    node_of(ctx)
    return reply.integer(slot_of(args[2]))


@command(
    "CLUSTER|COUNTKEYSINSLOT slot:integer",
    "3.0.0 stale",
    "Counts the keys of a slot.",
    "O(N) where N is the number of keys in the database",
)
def cluster_countkeysinslot(ctx: Context, args: list[bytes]) -> bytes:
    """A slot that this node does not own counts as empty, also if keys of it are left."""
    node = node_of(ctx)
    slot = arguments.integer(args[2])
    if not 0 <= slot < SLOTS:
        raise ReplyError(b"ERR Invalid slot")
    return reply.integer(len(keys_in(slot, list(ctx.db.values))) if node.owns(slot) else 0)


@command(
    "CLUSTER|GETKEYSINSLOT slot:integer count",
    f"3.0.0 stale | tips {VARIES}",
    "Returns keys of a slot.",
    "O(N) where N is the number of keys in the database",
)
def cluster_getkeysinslot(ctx: Context, args: list[bytes]) -> bytes:
    node = node_of(ctx)
    slot, count = arguments.integer(args[2]), arguments.integer(args[3])
    if not 0 <= slot < SLOTS or count < 0:
        raise ReplyError(b"ERR Invalid slot or number of keys")
    return reply.bulks(keys_in(slot, list(ctx.db.values))[:count] if node.owns(slot) else [])


# -- HELP -------------------------------------------------------------------------------------------------------------


@command("CLUSTER|HELP", "5.0.0 loading stale", "Lists the subcommands.")
def cluster_help(ctx: Context, args: list[bytes]) -> bytes:
    node_of(ctx)
    return help_reply(
        "CLUSTER",
        [
            ("ADDSLOTS <slot> [<slot> ...]", "Assign slots to this node."),
            ("ADDSLOTSRANGE <first> <last> [<first> <last> ...]", "Assign ranges of slots to this node."),
            ("BUMPEPOCH", "Advance the epoch."),
            ("COUNTKEYSINSLOT <slot>", "Count the keys of a slot."),
            ("DELSLOTS <slot> [<slot> ...]", "Take slots from this node."),
            ("DELSLOTSRANGE <first> <last> [<first> <last> ...]", "Take ranges of slots from this node."),
            ("FLUSHSLOTS", "Take all slots from this node, if there are no keys."),
            ("GETKEYSINSLOT <slot> <count>", "Return keys of a slot."),
            ("INFO", "Return the state of the cluster."),
            ("KEYSLOT <key>", "Return a key's slot."),
            ("LINKS", "List the links between nodes: none."),
            ("MYID", "Return this node's ID."),
            ("MYSHARDID", "Return the ID of this node's shard."),
            ("NODES", "List the nodes."),
            ("REPLICAS <node-id>", "List a node's replicas."),
            ("RESET [HARD|SOFT]", "Take all slots from this node, if there are no keys; HARD: give it another ID."),
            ("SAVECONFIG", "Write nodes.conf."),
            ("SHARDS", "List the shards and their slots."),
            ("SETSLOT <slot> (IMPORTING|MIGRATING|NODE <node-id>|STABLE)", "Begin or end to move a slot."),
            ("SLOTS", "List slots and their nodes."),
        ],
    )
