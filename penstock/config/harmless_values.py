"""Which values of the ignored directives are harmless, and why it is safe to ignore them.

The rule: a directive that protects a server, or that says where and what it is, is obeyed or refused, never silently
ignored. A start that sets it to a value that is not harmless is refused with one sentence; so is CONFIG SET.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

ANY: Final[tuple[str, ...]] = ()


class Ignored(NamedTuple):
    """Why a directive may be ignored if it has one of the `harmless` values (ANY: with any value).

    instead: the error for other values, with what to do.
    """

    why: str
    harmless: tuple[str, ...] = ANY
    instead: str = ""


def _any(why: str, names: str) -> dict[str, Ignored]:
    """Directives of which any value is harmless, for one reason."""
    return {name: Ignored(why) for name in names.split()}


NO_PROCESSORS: Final = Ignored(
    "The operating system chooses the processors.",
    ("",),
    "Penstock does not choose its processors: remove the line, and start the server with `taskset -c`",
)
SAME_ADDRESS: Final = "All clients are told the same address."
INSTEAD_OF_ADDRESS: Final = "Penstock tells all clients the same address: remove the line, and set cluster-announce-"
NO_OTHER_ADDRESS: Final = Ignored(SAME_ADDRESS, ("",), INSTEAD_OF_ADDRESS + "ip")
NO_OTHER_PORT: Final = Ignored(SAME_ADDRESS, ("0",), INSTEAD_OF_ADDRESS + "port")
NO_MULTIPATH: Final = Ignored(
    "TCP is used with one path.", ("no",), "Penstock does not use several paths of TCP: set mptcp and repl-mptcp no"
)
IGNORED: Final[dict[str, Ignored]] = {
    # The network
    **_any(
        "It only affects speed.",
        "max-new-connections-per-cycle max-new-tls-connections-per-cycle lookahead io-threads dynamic-hz"
        " jemalloc-bg-thread activerehashing disable-thp",
    ),
    "socket-mark-id": Ignored(
        "No mark is wanted.",
        ("0",),
        "Penstock does not mark its packets: remove the line, and have the firewall match the port",
    ),
    # The server's process
    **_any("The server stays in the foreground, and prints that at the start.", "daemonize"),
    **_any("It only affects what is displayed.", "always-show-logo set-proc-title proc-title-template"),
    **_any("Strings are always compared byte by byte.", "locale-collate"),
    **_any("Warnings never stop a start.", "ignore-warnings"),
    "syslog-enabled": Ignored(
        "No messages are wanted there.",
        ("no",),
        "Penstock does not write to the system log: set syslog-enabled no, and let the service manager take its output",
    ),
    **_any("Nothing is written to the system log.", "syslog-ident syslog-facility"),
    **_any("Python reports a crash.", "crash-log-enabled crash-memcheck-enabled use-exit-on-panic"),
    "oom-score-adj": Ignored(
        "The operating system's score stays.",
        ("no",),
        "Penstock does not set the process's OOM score: set oom-score-adj no, and OOMScoreAdjust in the service",
    ),
    **_any("oom-score-adj is no.", "oom-score-adj-values"),
    "server-cpulist": NO_PROCESSORS,
    "bio-cpulist": NO_PROCESSORS,
    "aof-rewrite-cpulist": NO_PROCESSORS,
    "bgsave-cpulist": NO_PROCESSORS,
    # The log and snapshots
    **_any("The files of replication are always removed.", "rdb-del-sync-files"),
    **_any("It only affects speed.", "rdb-save-incremental-fsync"),
    **_any("Loading serves clients after each time slice.", "loading-process-events-interval-bytes"),
    **_any("RESTORE always checks everything.", "sanitize-dump-payload"),
    # Memory
    **_any(
        "It only affects speed and memory use.",
        "maxmemory-eviction-tenacity active-expire-effort lazyfree-lazy-eviction lazyfree-lazy-expire"
        " lazyfree-lazy-server-del lazyfree-lazy-user-del lazyfree-lazy-user-flush list-compress-depth"
        " vset-force-single-threaded-execution"
        " activedefrag active-defrag-cycle-max active-defrag-cycle-min active-defrag-ignore-bytes"
        " active-defrag-max-scan-fields active-defrag-threshold-lower active-defrag-threshold-upper"
        " array-slice-size array-sparse-kmax array-sparse-kmin",
    ),
    # Observation and scripts
    **_any("INFO has no such histograms.", "key-memory-histograms"),
    **_any("Scripts do not have the deprecated names.", "lua-enable-deprecated-api"),
    **_any("A shutdown sends what there is, and does not wait for replicas.", "shutdown-timeout"),
    # Replication, and clusters of several nodes, which Penstock does not have
    **_any("A replica that cannot write its log serves its clients.", "replica-ignore-disk-write-errors"),
    **_any("Old keys are freed in small steps.", "replica-lazy-flush"),
    **_any("A full copy is written into a file before it is loaded.", "repl-diskless-load"),
    **_any("A change that fails on a replica is told in its messages.", "propagation-error-behavior"),
    **_any("What a replica does not take in time is kept in memory.", "replica-full-sync-buffer-limit"),
    **_any("It only affects speed.", "repl-disable-tcp-nodelay"),
    **_any("A full copy comes on the one connection.", "repl-rdb-channel"),
    **_any(
        "There is no other node.",
        "cluster-bus-port-protected-mode cluster-node-timeout cluster-allow-replica-migration"
        " cluster-compatibility-sample-ratio"
        " cluster-link-sendbuf-limit cluster-migration-barrier cluster-replica-no-failover"
        " cluster-replica-validity-factor cluster-slot-migration-handoff-max-lag-bytes"
        " cluster-slot-migration-write-pause-timeout cluster-slot-stats-enabled",
    ),
    # Of Valkey
    **_any("It only affects speed.", "active-defrag-cycle-us prefetch-batch-max-size"),
    **_any("A full copy comes on the one connection.", "dual-channel-replication-enabled"),
    **_any(
        "Slots move by CLUSTER SETSLOT, and there is no bus.",
        "cluster-blacklist-ttl cluster-manual-failover-timeout cluster-slot-migration-log-max-len"
        " slot-migration-max-failover-repl-bytes",
    ),
    **_any("There is no RDMA.", "rdma-completion-vector rdma-rx-size"),
    "cluster-announce-client-ipv4": NO_OTHER_ADDRESS,
    "cluster-announce-client-ipv6": NO_OTHER_ADDRESS,
    "cluster-announce-client-port": NO_OTHER_PORT,
    "cluster-announce-client-tls-port": NO_OTHER_PORT,
    "cluster-config-save-behavior": Ignored(
        "A change of the node is answered when its file is saved.",
        ("sync",),
        "Penstock does not answer before the node's file is saved: set cluster-config-save-behavior sync",
    ),
    "cluster-databases": Ignored(
        "A cluster has one database.", ("1",), "Penstock has one database in a cluster: set cluster-databases 1"
    ),
    "extended-redis-compatibility": Ignored(
        "The server has the name that compat-version gives.",
        ("no",),
        "Penstock does not have this directive: set extended-redis-compatibility no, and compat-version 7.2",
    ),
    "hash-seed": Ignored(
        "The order of keys is that of this server.",
        ("",),
        "Penstock does not choose the order of keys: remove the line",
    ),
    "log-format": Ignored(
        "Messages have this format.",
        ("legacy",),
        "Penstock does not write messages in other formats: set log-format legacy",
    ),
    "log-timestamp-format": Ignored(
        "Messages have this format.",
        ("legacy",),
        "Penstock does not write times in other formats: set log-timestamp-format legacy",
    ),
    "mptcp": NO_MULTIPATH,
    "repl-mptcp": NO_MULTIPATH,
    "rdb-version-check": Ignored(
        "A file of a later version is refused.",
        ("strict",),
        "Penstock does not load files of versions that it does not know: set rdb-version-check strict",
    ),
    "rdma-bind": Ignored("There is no RDMA.", ("",), "Penstock does not have RDMA: remove the line"),
    "rdma-port": Ignored("There is no RDMA.", ("0",), "Penstock does not have RDMA: set rdma-port 0"),
    "tls-auto-reload-interval": Ignored(
        "Certificates are read at CONFIG SET.",
        ("0",),
        "Penstock does not read its certificates again by itself: set it to 0, and send CONFIG SET tls-cert-file",
    ),
    "unixsocketgroup": Ignored(
        "The socket has the group of the process.",
        ("",),
        "Penstock does not set the socket's group: remove the line, and set the group of its directory",
    ),
    # TLS
    **_any("It only affects speed: OpenSSL decides on it.", "tls-session-cache-size tls-session-cache-timeout"),
}


def problem(names: Iterable[str], value_of: Callable[[str], str]) -> tuple[str, str]:
    """The first of these directives with a value that must not be ignored, and what to do instead; ("", "") if none."""
    for name in names:
        ignored = IGNORED.get(name)
        if ignored is not None and ignored.harmless and value_of(name) not in ignored.harmless:
            return name, ignored.instead
    return "", ""
