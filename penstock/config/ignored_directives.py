"""The directives that Redis has and Penstock does not need.

They are read, checked, stored and shown like the others, so that a redis.conf can be used and clients find the names
they ask for, but they have no effect. A start that sets one prints a line that says so. Values that would be harmful to
ignore are refused: see `harmless_values.py`.
"""

from typing import Final

from penstock.config.directive_types import INT, LONG, ULONG, Choice, Integers, Memory, Number, Text, YesNo
from penstock.config.directives import row

ACCEPTED: Final = (
    # The network
    row("max-new-connections-per-cycle 10", Number(1, 1000), "Connections accepted in one turn of the event loop."),
    row(
        "max-new-tls-connections-per-cycle 1",
        Number(1, 1000),
        "TLS connections accepted in one turn of the event loop.",
    ),
    row("socket-mark-id 0", Number(0, 2**32 - 1), "Mark on the packets of listening sockets.", "immutable"),
    row("lookahead 16", Number(1, INT), "Requests of one client that are parsed ahead."),
    row("io-threads 1", Number(1, 128), "Threads that read and write.", "immutable"),
    # The server's process
    row("dynamic-hz yes", YesNo(), "Run the cron more often with more clients."),
    row("daemonize no", YesNo(), "Run in the background; Penstock stays in the foreground.", "immutable"),
    row("always-show-logo no", YesNo(), "Show a logo at the start.", "immutable"),
    row("set-proc-title yes", YesNo(), "Show the server's state as the process's title.", "immutable"),
    row("proc-title-template {title} {listen-addr} {server-mode}", Text(), "Format of the process's title."),
    row("locale-collate", Text(), "Locale for comparing strings."),
    row("ignore-warnings", Text(), "Names of warnings to ignore at the start."),
    row("syslog-enabled no", YesNo(), "Write to the system log.", "immutable"),
    row("syslog-ident redis", Text(), "Name in the system log.", "immutable"),
    row(
        "syslog-facility local0",
        Choice("user local0 local1 local2 local3 local4 local5 local6 local7"),
        "Facility in the system log.",
        "immutable",
    ),
    row("crash-log-enabled yes", YesNo(), "Write a report at a crash."),
    row("crash-memcheck-enabled yes", YesNo(), "Test memory at a crash."),
    row("use-exit-on-panic no", YesNo(), "Exit rather than abort at a failed assertion.", "hidden"),
    row("oom-score-adj no", Choice("no yes relative absolute"), "Tell the kernel which process to kill first."),
    row(
        "oom-score-adj-values 0 200 800",
        Integers("oom-score-adj-values", 3, -2000, 2000),
        "Scores for a master, a replica and a child process.",
    ),
    row("disable-thp yes", YesNo(), "Switch transparent huge pages off.", "immutable"),
    row("server-cpulist", Text(), "Processors of the server.", "immutable alias=server_cpulist"),
    row("bio-cpulist", Text(), "Processors of background threads.", "immutable alias=bio_cpulist"),
    row(
        "aof-rewrite-cpulist",
        Text(),
        "Processors of the child process that rewrites the log.",
        "immutable alias=aof_rewrite_cpulist",
    ),
    row("bgsave-cpulist", Text(), "Processors of the child process that saves.", "immutable alias=bgsave_cpulist"),
    row("jemalloc-bg-thread yes", YesNo(), "Return memory in a background thread."),
    row("activerehashing yes", YesNo(), "Rehash tables while idle."),
    # Snapshots
    row("rdb-del-sync-files no", YesNo(), "Delete files left by replication."),
    row("rdb-save-incremental-fsync yes", YesNo(), "Sync the RDB file in parts."),
    row(
        "loading-process-events-interval-bytes 524288",
        Number(1024, INT),
        "Bytes loaded before clients are served again.",
        "hidden",
    ),
    row("sanitize-dump-payload no", Choice("no yes clients"), "Check RESTORE's payload thoroughly."),
    # Memory and values
    row("maxmemory-eviction-tenacity 10", Number(0, 100), "Effort spent on eviction."),
    row("active-expire-effort 1", Number(1, 10), "Effort spent on finding expired keys."),
    row("lazyfree-lazy-eviction no", YesNo(), "Free evicted values in the background."),
    row("lazyfree-lazy-expire no", YesNo(), "Free expired values in the background."),
    row("lazyfree-lazy-server-del no", YesNo(), "Free overwritten values in the background."),
    row("lazyfree-lazy-user-del no", YesNo(), "DEL frees in the background."),
    row("lazyfree-lazy-user-flush no", YesNo(), "FLUSHALL frees in the background."),
    row("list-compress-depth 0", Number(0, INT), "Nodes at a list's ends that stay uncompressed."),
    row("vset-force-single-threaded-execution no", YesNo(), "Use one thread for vector sets."),
    row("activedefrag no", YesNo(), "Defragment memory while running."),
    row("active-defrag-cycle-max 25", Number(1, 99), "Maximum share of a processor for defragmentation, in percent."),
    row("active-defrag-cycle-min 1", Number(1, 99), "Minimum share of a processor for defragmentation, in percent."),
    row("active-defrag-ignore-bytes 104857600", Memory(1), "Wasted bytes below which it does not start."),
    row("active-defrag-max-scan-fields 1000", Number(1, LONG), "Fields of one key handled in one step."),
    row("active-defrag-threshold-lower 10", Number(0, 1000), "Percentage of waste at which it starts."),
    row("active-defrag-threshold-upper 100", Number(0, 1000), "Percentage of waste at which it uses full effort."),
    row("array-slice-size 4096", Number(256, 65536), "Indexes of an array's slice."),
    row("array-sparse-kmax 10", Number(1, 65536), "Items with which a slice of an array becomes dense."),
    row("array-sparse-kmin 5", Number(0, 65536), "Items with which a slice of an array becomes sparse."),
    # Observation and scripts
    row("key-memory-histograms no", YesNo(), "Keep histograms of the memory of keys."),
    row("lua-enable-deprecated-api no", YesNo(), "Offer deprecated names to scripts.", "hidden"),
    # Replication, and the cluster that Penstock does not have
    row("shutdown-timeout 10", Number(0, INT), "Seconds that a shutdown waits for replicas."),
    row("replica-ignore-disk-write-errors no", YesNo(), "Continue after a failed write to disk."),
    row("replica-lazy-flush no", YesNo(), "Free old keys in the background.", "alias=slave-lazy-flush"),
    row("replica-full-sync-buffer-limit 0", Memory(), "Bytes of changes kept during a full synchronization."),
    row("repl-disable-tcp-nodelay no", YesNo(), "Send fewer packets, with more delay."),
    row(
        "repl-diskless-load disabled",
        Choice("disabled on-empty-db swapdb flushdb"),
        "Load a full copy without writing a file.",
    ),
    row("repl-rdb-channel yes", YesNo(), "Use a second connection for a full copy.", "hidden"),
    row(
        "propagation-error-behavior ignore",
        Choice("ignore panic panic-on-replicas"),
        "What a replica does if a change fails.",
    ),
    row(
        "cluster-bus-port-protected-mode no",
        YesNo(),
        "Start a node only if TLS authenticates the bus, which there is none of.",
        "immutable",
    ),
    row("cluster-node-timeout 15000", Number(0, LONG), "Milliseconds of silence after which a node counts as failed."),
    row("cluster-allow-replica-migration yes", YesNo(), "Let replicas change masters."),
    row("cluster-compatibility-sample-ratio 0", Number(0, 100), "Share of requests checked for cluster use."),
    row("cluster-link-sendbuf-limit 0", Memory(0, ULONG), "Maximum bytes waiting for another node."),
    row("cluster-migration-barrier 1", Number(0, INT), "Replicas that a master keeps."),
    row("cluster-replica-no-failover no", YesNo(), "Never become master.", "alias=cluster-slave-no-failover"),
    row(
        "cluster-replica-validity-factor 10",
        Number(0, INT),
        "Maximum age of the data of a replica that becomes master.",
        "alias=cluster-slave-validity-factor",
    ),
    row("cluster-slot-migration-handoff-max-lag-bytes 1048576", Memory(), "Lag at which a slot is handed over."),
    row(
        "cluster-slot-migration-write-pause-timeout 10000",
        Number(0, LONG),
        "Maximum milliseconds that writes pause for it.",
    ),
    row("cluster-slot-stats-enabled no", Choice("no yes cpu net mem"), "What is counted for each slot."),
    # TLS: OpenSSL decides on its sessions
    row("tls-session-cache-size 20480", Number(0, INT), "Maximum number of cached TLS sessions."),
    row("tls-session-cache-timeout 300", Number(0, INT), "Seconds that a TLS session is cached."),
)
