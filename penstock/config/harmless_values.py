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
