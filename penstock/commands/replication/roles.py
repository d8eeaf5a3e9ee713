"""ROLE, and the replication section of INFO (Redis 8.6.3).

Tests: transcripts info; cases replication/test_replica_of_engine, commands/test_server_admin.
"""

from penstock.config.settings import Settings
from penstock.engine.context import Context
from penstock.engine.replication import master as links
from penstock.engine.replication import replica as states
from penstock.engine.replication.master import Master
from penstock.engine.replication.replica import Replica
from penstock.engine.replication.replication import Replication
from penstock.engine.session import Session
from penstock.engine.table.command_table import command
from penstock.protocol import reply


@command(
    "ROLE",
    "2.8.12 noscript loading stale fast | acl admin dangerous",
    "Returns the server's role: a master with its replicas, or a replica with its master.",
)
def role(ctx: Context, args: list[bytes]) -> bytes:
    replication = ctx.replication
    master = replication.master
    if master is not None:
        where = [reply.bulk(b"slave"), reply.bulk(master.host.encode()), reply.integer(master.port)]
        offset = replication.offset if master.is_up else -1
        return reply.array([*where, reply.bulk(master.link.encode()), reply.integer(offset)])
    replicas = []
    for session, found in _attached(replication):
        if found.state == states.ONLINE:
            host, port = replication.place_of(session, found)
            replicas.append(reply.bulks([host.encode(), b"%d" % port, b"%d" % max(found.acked, 0)]))
    return reply.array([reply.bulk(b"master"), reply.integer(replication.offset), reply.array(replicas)])


def info(ctx: Context) -> str:
    """INFO replication: its lines, each ended by CR LF."""
    replication, settings = ctx.replication, ctx.settings
    attached = _attached(replication)
    master = replication.master
    text = "role:master\r\n" if master is None else "role:slave\r\n"
    if master is not None:
        fields = _of_master(master, replication, settings, replication.now_ms())
        text += "".join([f"{name}:{number}\r\n" for name, number in fields])
    text += f"connected_slaves:{len(attached)}\r\n"
    if replication.needed():
        text += f"min_slaves_good_slaves:{replication.good()}\r\n"
    for number, (session, found) in enumerate(attached):
        host, port = replication.place_of(session, found)
        text += f"slave{number}:{_line(host, port, found, replication.now_ms())}\r\n"
    stream = replication.stream
    kept = 0 if stream is None else min(stream.backlog.end - stream.backlog.start, stream.backlog.limit)
    first_offset = 0 if stream is None else stream.backlog.end - kept + 1
    backlog_size = settings.number("repl-backlog-size")
    return text + (
        f"master_failover_state:{replication.failover.state}\r\n"
        f"master_replid:{replication.id}\r\n"
        f"master_replid2:{replication.second_id}\r\n"
        f"master_repl_offset:{replication.offset}\r\n"
        f"second_repl_offset:{replication.second_offset}\r\n"
        f"repl_backlog_active:{int(stream is not None)}\r\n"
        f"repl_backlog_size:{backlog_size}\r\n"
        f"repl_backlog_first_byte_offset:{first_offset}\r\n"
        f"repl_backlog_histlen:{kept}\r\n"
    )


def _of_master(
    master: Master, replication: Replication, settings: Settings, now_ms: int
) -> list[tuple[str, int | str]]:
    """The fields of INFO about the master, on a replica."""
    lasted_s = max(0, now_ms - master.since_ms) // 1000
    return [
        ("master_host", master.host),
        ("master_port", master.port),
        ("master_link_status", "up" if master.is_up else "down"),
        ("master_last_io_seconds_ago", max(0, now_ms - master.heard_ms) // 1000 if master.is_up else -1),
        ("master_sync_in_progress", int(master.link == links.SYNCING)),
        *_of_copy(master, now_ms),
        ("slave_read_repl_offset", replication.offset),
        ("slave_repl_offset", replication.offset),
        ("replica_full_sync_buffer_size", 0),
        ("replica_full_sync_buffer_peak", 0),
        ("master_current_sync_attempts", master.attempts),
        ("master_total_sync_attempts", master.attempts),
        ("master_link_up_since_seconds" if master.is_up else "master_link_down_since_seconds", lasted_s),
        ("master_client_io_thread", 0),
        ("total_disconnect_time_sec", (master.down_ms + (0 if master.is_up else now_ms - master.since_ms)) // 1000),
        ("slave_priority", settings.number("replica-priority")),
        ("slave_read_only", int(settings.yes("replica-read-only"))),
        ("replica_announced", int(settings.yes("replica-announced"))),
        *([("penstock_master_link_problem", master.problem)] if master.problem else []),
    ]


def _of_copy(master: Master, now_ms: int) -> list[tuple[str, int | str]]:
    """How far the snapshot is that comes from the master; nothing while none comes."""
    if master.link != links.SYNCING:
        return []
    total, done = max(master.copy_bytes, 0), master.copied_bytes
    return [
        ("master_sync_total_bytes", total),
        ("master_sync_read_bytes", done),
        ("master_sync_left_bytes", total - done),
        ("master_sync_perc", f"{100 * done / total if total else 0:.2f}"),
        ("master_sync_last_io_seconds_ago", max(0, now_ms - master.heard_ms) // 1000),
    ]


def _attached(replication: Replication) -> list[tuple[Session, Replica]]:
    return [(session, session.replica) for session in replication.replicas if session.replica is not None]


def _line(host: str, port: int, found: Replica, now_ms: int) -> str:
    """A replica, as INFO shows it."""
    is_online = found.state == states.ONLINE
    parts = {
        "ip": host,
        "port": port,
        "state": found.state,
        "offset": max(found.acked, 0),
        "lag": found.lag_s(now_ms) if is_online and found.sends_acks else 0,
        "io-thread": 0,
    }
    return ",".join([f"{name}={value}" for name, value in parts.items()])
