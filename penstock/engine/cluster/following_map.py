"""Applies the launcher's map to a node: its role, its channels, the requests that are blocked at its keys."""

from penstock.engine.cluster.cluster_map import ClusterMap
from penstock.engine.cluster.hash_slots import slot_of
from penstock.engine.cluster.node import Node
from penstock.engine.replication import role
from penstock.engine.server_state import ServerState
from penstock.protocol import reply


def follow(server: ServerState, found: ClusterMap) -> None:
    """Take over a map. While the log or a master's copy is loaded the role stays: `take_role` is called afterwards."""
    cluster = server.cluster
    assert cluster is not None, "a server with a map is a node"
    node = cluster.node
    node.adopt(found)
    if not server.conditions.loading:
        take_role(server)
    close_channels(server, node)
    for blocked in sorted(server.blocking.blocked, key=lambda one: one.serial):
        if blocked.keys and not blocked.postponed:
            refusal = cluster.refusal_of_waiting(blocked.session, blocked.row, blocked.args)
            if refusal:
                server.waiting.note_waited(blocked, refusal)
                server.waiting.release(blocked, reply.error(refusal))


def take_role(server: ServerState) -> None:
    """Follow the master that the map says, or lead."""
    cluster = server.cluster
    if cluster is None or cluster.node.map is None:
        return
    own = cluster.node.member()
    if own.is_master:
        role.lead(server)
        return
    master = cluster.node.map.master_of(own)
    followed = server.replication.master
    if followed is None or (followed.host, followed.port) != (master.ip, master.port):
        role.follow(server, master.ip, master.port)


def close_channels(server: ServerState, node: Node) -> None:
    """Subscribers of the channels of slots that the node has no more are unsubscribed, slot by slot."""
    subscriptions = server.subscriptions
    lost = [(slot_of(channel), channel) for channel in subscriptions.shard_channels]
    for slot, channel in sorted(lost):
        if not node.owns(slot):
            subscriptions.close_shard_channel(channel, server.clients.outgoing)
