"""The machine's unix time was set: intervals that began at a request's time do not become longer or shorter by that.

For each request one reading of unix time is made, no second one. What waits or is counted from there is moved by what
the clock has jumped: BLOCK and WAIT, CLIENT PAUSE, the spans of RATE and IDLEGROUP, how long clients are idle or
connected, the uptime, HOTKEYS. What is stored, or compared with what is stored (ids, expiry, idle times of entries,
leases, delays), is not.
"""

from penstock.engine.policies import policy_tick
from penstock.engine.server_state import ServerState


def follow(server: ServerState) -> int:
    """Move what began at a request's time by what unix time has jumped since the last call: how far, in us."""
    jumped_us = server.clock_jumps.take_us()
    if not jumped_us:
        return 0
    by_ms = jumped_us // 1000
    for session in server.clients.sessions.values():
        session.last_ms += by_ms
        session.connected_ms += by_ms
    server.statistics.started_ms += by_ms
    policies, conditions = server.policies, server.conditions
    if conditions.loaded_ms:
        conditions.loaded_ms += by_ms
    policies.retry_ms += by_ms if policies.retry_ms else 0
    if policies.used:
        policy_tick.follow_jump(server, by_ms)
    server.blocking.move_deadlines(by_ms)
    if conditions.paused_until_ms:
        conditions.paused_until_ms = max(conditions.paused_until_ms + by_ms, 1)
    if server.telemetry.hot_keys is not None:
        server.telemetry.hot_keys.move(by_ms)
    for database in server.keyspace.databases:
        if database.order is not None:
            database.order.used_ms += by_ms
    return jumped_us


def without_jump(server: ServerState, usec: int) -> int:
    """The time of a request in microseconds, by two readings of unix time, which may have jumped between them."""
    return max(usec - follow(server), 0)
