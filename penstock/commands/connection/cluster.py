"""CLUSTER, READONLY, READWRITE and ASKING, as a server replies to them that is not part of a cluster (Redis 8.6.3).

All are refused, even CLUSTER INFO and CLUSTER HELP. They are in the command table with their arguments because client
libraries and dashboards send them to find out whether there is a cluster.
"""

from typing import Final

from penstock.engine.context import Context
from penstock.engine.table.command_table import command, container
from penstock.errors import ReplyError

DISABLED: Final = b"ERR This instance has cluster support disabled"

CHANGES_NODE: Final = "admin stale no_async_loading"
READS_NODE: Final = "admin stale"
VARIES: Final = "nondeterministic_output"
BY_NODES: Final = "O(N) where N is the total number of Cluster nodes"
BY_SLOTS: Final = "O(N) where N is the total number of hash slot arguments"
BY_RANGES: Final = "O(N) where N is the total number of the slots between the start slot and end slot arguments."
BY_REPLICAS: Final = "O(N) where N is the number of replicas."
RANGES: Final = "range:(start-slot:integer end-slot:integer) [start-slot:integer end-slot:integer ...]"
STEPS: Final = (
    "subcommand:<sync:SYNC (task-id slot-range:(start-slot:integer end-slot:integer)"
    " [start-slot:integer end-slot:integer ...]) | task-id:RDBCHANNEL task-id | SNAPSHOT-EOF | STREAM-EOF"
    " | ack:ACK (state offset) | error:FAIL error | conf:CONF (option ... value ...)>"
)

container("CLUSTER", group="cluster", since="3.0.0", summary="Commands for a node of a cluster; refused here.")

# Name, arguments, since, flags, tips, complexity, and what it does on a node.
SUBCOMMANDS: Final = (
    ("ADDSLOTS", "slot:integer ...", "3.0.0", CHANGES_NODE, "", BY_SLOTS, "Assigns slots to a node."),
    ("ADDSLOTSRANGE", RANGES, "7.0.0", CHANGES_NODE, "", BY_RANGES, "Assigns ranges of slots to a node."),
    ("BUMPEPOCH", "", "3.0.0", CHANGES_NODE, VARIES, "O(1)", "Advances the epoch."),
    (
        "COUNT-FAILURE-REPORTS", "node-id", "3.0.0", READS_NODE, VARIES,
        "O(N) where N is the number of failure reports", "Counts the nodes that report another as failed.",
    ),
    ("COUNTKEYSINSLOT", "slot:integer", "3.0.0", "stale", "", "O(1)", "Counts the keys of a slot."),
    ("DELSLOTS", "slot:integer ...", "3.0.0", CHANGES_NODE, "", BY_SLOTS, "Removes slots from a node."),
    ("DELSLOTSRANGE", RANGES, "7.0.0", CHANGES_NODE, "", BY_RANGES, "Removes ranges of slots from a node."),
    ("FAILOVER", "options:[FORCE|TAKEOVER]", "3.0.0", CHANGES_NODE, "", "O(1)", "Makes a replica the master."),
    ("FLUSHSLOTS", "", "3.0.0", CHANGES_NODE, "", "O(1)", "Removes all slots from a node."),
    ("FORGET", "node-id", "3.0.0", CHANGES_NODE, "", "O(1)", "Removes a node from the table."),
    (
        "GETKEYSINSLOT", "slot:integer count", "3.0.0", "stale", VARIES, "O(N) where N is the number of requested keys",
        "Returns keys of a slot.",
    ),
    ("HELP", "", "5.0.0", "loading stale", "", "O(1)", "Lists the subcommands."),
    ("INFO", "", "3.0.0", "stale", VARIES, "O(1)", "Returns a node's state."),
    (
        "KEYSLOT", "key:string", "3.0.0", "stale", "", "O(N) where N is the number of bytes in the key",
        "Returns a key's slot.",
    ),
    ("LINKS", "", "7.0.0", "stale", VARIES, BY_NODES, "Lists the links between nodes."),
    ("MYID", "", "3.0.0", "stale", "", "O(1)", "Returns a node's ID."),
    ("MYSHARDID", "", "7.2.0", "stale", VARIES, "O(1)", "Returns the ID of a node's shard."),
    ("NODES", "", "3.0.0", "stale", VARIES, BY_NODES, "Lists the nodes."),
    ("REPLICAS", "node-id", "5.0.0", READS_NODE, VARIES, BY_REPLICAS, "Lists a master's replicas."),
    ("REPLICATE", "node-id", "3.0.0", CHANGES_NODE, "", "O(1)", "Makes a node the replica of another."),
    (
        "RESET", "reset-type:[HARD|SOFT]", "3.0.0", "admin noscript stale", "",
        "O(N) where N is the number of known nodes. The command may execute a FLUSHALL as a side effect.",
        "Resets a node.",
    ),
    ("SAVECONFIG", "", "3.0.0", CHANGES_NODE, "", "O(1)", "Writes a node's settings to disk."),
    ("SET-CONFIG-EPOCH", "config-epoch:integer", "3.0.0", CHANGES_NODE, "", "O(1)", "Sets a new node's epoch."),
    (
        "SETSLOT",
        "slot:integer subcommand:<importing:IMPORTING node-id | migrating:MIGRATING node-id | node:NODE node-id"
        " | STABLE>",
        "3.0.0", CHANGES_NODE, "", "O(1)", "Sets the state of a slot.",
    ),
    (
        "SHARDS", "", "7.0.0", "loading stale", VARIES, "O(N) where N is the total number of cluster nodes",
        "Lists the shards and their slots.",
    ),
    ("SYNCSLOTS", STEPS, "8.4.0", CHANGES_NODE, VARIES, "O(1)", "Used by nodes to migrate slots."),
)  # fmt: skip


def disabled(ctx: Context, args: list[bytes]) -> bytes:
    raise ReplyError(DISABLED)


for _name, _words, _since, _flags, _tips, _complexity, _summary in SUBCOMMANDS:
    command(
        f"CLUSTER|{_name}",
        _words,
        group="cluster",
        since=_since,
        flags=_flags,
        tips=_tips,
        complexity=_complexity,
        summary=f"{_summary} Refused here.",
    )(disabled)

command(
    "CLUSTER|MEET",
    "ip port:integer [cluster-bus-port:integer@4.0.0]",
    group="cluster",
    since="3.0.0",
    flags=CHANGES_NODE,
    history=(("4.0.0", "Added the optional `cluster_bus_port` argument."),),
    summary="Connects two nodes. Refused here.",
)(disabled)

command(
    "CLUSTER|MIGRATION",
    "subcommand:<import:IMPORT (start-slot:integer end-slot:integer) [start-slot:integer end-slot:integer ...]"
    " | cancel:CANCEL <task-id:ID task-id | ALL> | status:STATUS <[task-id:ID task-id] | [ALL]>>",
    group="cluster",
    since="8.4.0",
    flags=CHANGES_NODE,
    complexity=BY_RANGES,
    arity=-4,
    summary="Moves slots between nodes. Refused here.",
)(disabled)

command(
    "CLUSTER|SLAVES",
    "node-id",
    group="cluster",
    since="3.0.0",
    flags=READS_NODE,
    tips=VARIES,
    complexity=BY_REPLICAS,
    deprecated=("5.0.0", "`CLUSTER REPLICAS`"),
    summary="Lists a master's replicas. Refused here.",
)(disabled)

command(
    "CLUSTER|SLOTS",
    group="cluster",
    since="3.0.0",
    flags="loading stale",
    tips=VARIES,
    complexity=BY_NODES,
    history=(("4.0.0", "Added node IDs."), ("7.0.0", "Added additional networking metadata field.")),
    deprecated=("7.0.0", "`CLUSTER SHARDS`"),
    summary="Lists slots and their nodes. Refused here.",
)(disabled)

command(
    "CLUSTER|SLOT-STATS",
    "filter:<slotsrange:SLOTSRANGE (start-slot:integer end-slot:integer)"
    " | orderby:ORDERBY (metric [limit:LIMIT limit] order:[ASC|DESC])>",
    group="cluster",
    since="8.2.0",
    flags="loading stale",
    tips=f"{VARIES} request_policy:all_shards",
    complexity="O(N) where N is the total number of slots based on arguments. O(N*log(N)) with ORDERBY subcommand.",
    summary="Returns usage statistics of slots. Refused here.",
)(disabled)

for _name, _flags, _summary in (
    ("READONLY", "loading stale fast", "Allows a connection to read from a replica in a cluster."),
    ("READWRITE", "loading stale fast", "Ends READONLY."),
    ("ASKING", "fast", "Announces that the next request follows an ASK redirection."),
):
    command(
        _name,
        group="cluster",
        since="3.0.0",
        flags=_flags,
        acl="connection",
        summary=f"{_summary} Refused here.",
    )(disabled)
