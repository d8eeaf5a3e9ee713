"""The directives that Redis has and Penstock does not need.

They are read, checked, stored and shown like the others, so that a redis.conf can be used and clients find what they
look for; nothing heeds them. A start that sets one says so in a line. Values that it would do harm to ignore are
refused: `harmless.py` has a line about each.
"""

from typing import Final

from penstock.config.directive_types import (
    INT,
    LONG,
    ULONG,
    Choice,
    Integers,
    Memory,
    MemoryOrPercent,
    Number,
    SavePoints,
    ShutdownOptions,
    Text,
    Words,
    YesNo,
)
from penstock.config.directives import Directive

ACCEPTED: Final = (
    # The network
    Directive("bind-source-addr", "", Text(), "Address that outgoing connections come from."),
    Directive("max-new-connections-per-cycle", "10", Number(1, 1000), "Connections accepted in one turn of the loop."),
    Directive(
        "max-new-tls-connections-per-cycle", "1", Number(1, 1000), "TLS connections accepted in one turn of the loop."
    ),
    Directive("socket-mark-id", "0", Number(0, 2**32 - 1), "Mark on the packets of listening sockets.", immutable=True),
    Directive("lookahead", "16", Number(1, INT), "Requests of one client that are parsed ahead."),
    Directive("io-threads", "1", Number(1, 128), "Threads that read and write.", immutable=True),
    # Who may do what
    Directive("enable-module-command", "no", Choice("no yes local"), "Who may use MODULE.", immutable=True),
    Directive("aclfile", "", Text(), "File of users.", immutable=True),
    Directive(
        "acl-pubsub-default",
        "resetchannels",
        Choice("allchannels resetchannels"),
        "Whether a new user may use all channels.",
    ),
    # The server's process
    Directive("dynamic-hz", "yes", YesNo(), "More turns with more clients."),
    Directive("daemonize", "no", YesNo(), "Go into the background; Penstock stays in the foreground.", immutable=True),
    Directive("always-show-logo", "no", YesNo(), "A picture at the start.", immutable=True),
    Directive("set-proc-title", "yes", YesNo(), "Show the server's state as the process's title.", immutable=True),
    Directive("proc-title-template", "{title} {listen-addr} {server-mode}", Text(), "How the process's title looks."),
    Directive("locale-collate", "", Text(), "Locale that strings are compared in."),
    Directive("ignore-warnings", "", Text(), "Warnings that do not stop a start."),
    Directive("syslog-enabled", "no", YesNo(), "Write to the system log.", immutable=True),
    Directive("syslog-ident", "redis", Text(), "Name in the system log.", immutable=True),
    Directive(
        "syslog-facility",
        "local0",
        Choice("user local0 local1 local2 local3 local4 local5 local6 local7"),
        "Facility in the system log.",
        immutable=True,
    ),
    Directive("crash-log-enabled", "yes", YesNo(), "Write a report at a crash."),
    Directive("crash-memcheck-enabled", "yes", YesNo(), "Test memory at a crash."),
    Directive("use-exit-on-panic", "no", YesNo(), "Exit rather than abort at a failed assertion.", hidden=True),
    Directive("shutdown-on-sigint", "default", ShutdownOptions("default save nosave now force"), "What SIGINT does."),
    Directive("shutdown-on-sigterm", "default", ShutdownOptions("default save nosave now force"), "What SIGTERM does."),
    Directive(
        "oom-score-adj", "no", Choice("no yes relative absolute"), "Tell the kernel which process to kill first."
    ),
    Directive(
        "oom-score-adj-values",
        "0 200 800",
        Integers("oom-score-adj-values", 3, -2000, 2000),
        "What is told for a master, a replica and a child.",
    ),
    Directive("disable-thp", "yes", YesNo(), "Switch transparent huge pages off.", immutable=True),
    Directive("server-cpulist", "", Text(), "Processors of the server.", alias="server_cpulist", immutable=True),
    Directive("bio-cpulist", "", Text(), "Processors of background threads.", alias="bio_cpulist", immutable=True),
    Directive(
        "aof-rewrite-cpulist",
        "",
        Text(),
        "Processors of a child that rewrites the log.",
        alias="aof_rewrite_cpulist",
        immutable=True,
    ),
    Directive(
        "bgsave-cpulist", "", Text(), "Processors of a child that saves.", alias="bgsave_cpulist", immutable=True
    ),
    Directive("jemalloc-bg-thread", "yes", YesNo(), "A thread that gives memory back."),
    Directive("activerehashing", "yes", YesNo(), "Rehash tables while idle."),
    # The log
    Directive("aof-use-rdb-preamble", "no", YesNo(), "Write the log's base as an RDB file; Penstock writes requests."),
    # Snapshots
    Directive("save", "", SavePoints(), "When to write an RDB file; Penstock has none, the log keeps everything."),
    Directive("rdbcompression", "yes", YesNo(), "Compress strings in it."),
    Directive("rdbchecksum", "yes", YesNo(), "A checksum at its end.", immutable=True),
    Directive("rdb-del-sync-files", "no", YesNo(), "Delete files left by replication."),
    Directive("rdb-save-incremental-fsync", "yes", YesNo(), "Sync it as it is written."),
    Directive(
        "rdb-key-save-delay",
        "0",
        Number(-INT - 1, INT),
        "Microseconds to wait after each key that is saved.",
        hidden=True,
    ),
    Directive(
        "key-load-delay", "0", Number(-INT - 1, INT), "Microseconds to wait after each key that is loaded.", hidden=True
    ),
    Directive(
        "loading-process-events-interval-bytes",
        "524288",
        Number(1024, INT),
        "Bytes loaded between two looks at clients.",
        hidden=True,
    ),
    Directive("stop-writes-on-bgsave-error", "yes", YesNo(), "Refuse writes after a save that failed."),
    Directive("sanitize-dump-payload", "no", Choice("no yes clients"), "Check RESTORE's payload thoroughly."),
    # What is kept
    Directive("maxmemory-clients", "0", MemoryOrPercent(), "Memory of all clients together."),
    Directive("maxmemory-eviction-tenacity", "10", Number(0, 100), "How hard eviction tries."),
    Directive("active-expire-effort", "1", Number(1, 10), "How hard overdue keys are looked for."),
    Directive("lazyfree-lazy-eviction", "no", YesNo(), "Free evicted values in the background."),
    Directive("lazyfree-lazy-expire", "no", YesNo(), "Free expired values in the background."),
    Directive("lazyfree-lazy-server-del", "no", YesNo(), "Free overwritten values in the background."),
    Directive("lazyfree-lazy-user-del", "no", YesNo(), "DEL frees in the background."),
    Directive("lazyfree-lazy-user-flush", "no", YesNo(), "FLUSHALL frees in the background."),
    Directive("list-compress-depth", "0", Number(0, INT), "Nodes at a list's ends that stay uncompressed."),
    Directive("hll-sparse-max-bytes", "3000", Memory(), "Size at which a sparse HyperLogLog becomes dense."),
    Directive("vset-force-single-threaded-execution", "no", YesNo(), "One thread for vector sets."),
    Directive("activedefrag", "no", YesNo(), "Move values together in memory."),
    Directive("active-defrag-cycle-max", "25", Number(1, 99), "Most share of a processor for that."),
    Directive("active-defrag-cycle-min", "1", Number(1, 99), "Least share of a processor for that."),
    Directive("active-defrag-ignore-bytes", "104857600", Memory(1), "Waste that is not worth it."),
    Directive("active-defrag-max-scan-fields", "1000", Number(1, LONG), "Fields of one key looked at in one go."),
    Directive("active-defrag-threshold-lower", "10", Number(0, 1000), "Percentage of waste that begins it."),
    Directive("active-defrag-threshold-upper", "100", Number(0, 1000), "Percentage of waste for full effort."),
    # What is told about it
    Directive("key-memory-histograms", "no", YesNo(), "Histograms of keys' memory."),
    Directive("tracking-table-max-keys", "1000000", Number(0, LONG), "Keys remembered for client-side caching."),
    Directive("lua-enable-deprecated-api", "no", YesNo(), "Old names in scripts.", hidden=True),
    # Other servers: Penstock is alone
    Directive("shutdown-timeout", "10", Number(0, INT), "Seconds that a shutdown waits for replicas."),
    Directive("replicaof", "", Words(2), "The master to copy.", alias="slaveof", immutable=True),
    Directive("masterauth", "", Text(), "The master's password."),
    Directive("masteruser", "", Text(), "The user to be at the master."),
    Directive(
        "replica-serve-stale-data",
        "yes",
        YesNo(),
        "Answer while not in touch with the master.",
        alias="slave-serve-stale-data",
    ),
    Directive("replica-read-only", "yes", YesNo(), "Refuse writes as a replica.", alias="slave-read-only"),
    Directive("replica-priority", "100", Number(0, INT), "Rank among replicas.", alias="slave-priority"),
    Directive("replica-announced", "yes", YesNo(), "Whether sentinels tell of this replica."),
    Directive("replica-announce-ip", "", Text(), "Address told to the master.", alias="slave-announce-ip"),
    Directive("replica-announce-port", "0", Number(0, 65535), "Port told to the master.", alias="slave-announce-port"),
    Directive(
        "replica-ignore-maxmemory", "yes", YesNo(), "Leave eviction to the master.", alias="slave-ignore-maxmemory"
    ),
    Directive("replica-ignore-disk-write-errors", "no", YesNo(), "Go on without a disk."),
    Directive("replica-lazy-flush", "no", YesNo(), "Drop old keys in the background.", alias="slave-lazy-flush"),
    Directive("replica-full-sync-buffer-limit", "0", Memory(), "Changes kept during a full copy."),
    Directive("repl-backlog-size", "1048576", Memory(1), "Changes kept for replicas that come back."),
    Directive("repl-backlog-ttl", "3600", Number(0, LONG), "Seconds without replicas that they are kept."),
    Directive("repl-timeout", "60", Number(1, INT), "Seconds of silence after which the other side is gone."),
    Directive(
        "repl-ping-replica-period", "10", Number(1, INT), "Seconds between pings.", alias="repl-ping-slave-period"
    ),
    Directive("repl-disable-tcp-nodelay", "no", YesNo(), "Fewer packets, later."),
    Directive("repl-diskless-sync", "yes", YesNo(), "Send a copy without a file."),
    Directive("repl-diskless-sync-delay", "5", Number(0, INT), "Seconds to wait for more replicas."),
    Directive("repl-diskless-sync-max-replicas", "0", Number(0, INT), "Replicas that end the wait."),
    Directive(
        "repl-diskless-load", "disabled", Choice("disabled on-empty-db swapdb flushdb"), "Load a copy without a file."
    ),
    Directive("repl-rdb-channel", "yes", YesNo(), "A second connection for copies.", hidden=True),
    Directive(
        "min-replicas-to-write",
        "0",
        Number(0, INT),
        "Replicas without which writes are refused.",
        alias="min-slaves-to-write",
    ),
    Directive(
        "min-replicas-max-lag", "10", Number(0, INT), "Seconds that those may be behind.", alias="min-slaves-max-lag"
    ),
    Directive(
        "propagation-error-behavior",
        "ignore",
        Choice("ignore panic panic-on-replicas"),
        "What a replica does where a change fails.",
    ),
    Directive("cluster-enabled", "no", YesNo(), "Be a node of a cluster.", immutable=True),
    Directive("cluster-config-file", "nodes.conf", Text(), "The node's own file.", immutable=True),
    Directive("cluster-node-timeout", "15000", Number(0, LONG), "Milliseconds of silence after which a node is gone."),
    Directive("cluster-port", "0", Number(0, 65535), "Port of the cluster's bus.", immutable=True),
    Directive("cluster-announce-ip", "", Text(), "Address told to others."),
    Directive("cluster-announce-port", "0", Number(0, 65535), "Port told to others."),
    Directive("cluster-announce-tls-port", "0", Number(0, 65535), "TLS port told to others."),
    Directive("cluster-announce-bus-port", "0", Number(0, 65535), "Bus port told to others."),
    Directive("cluster-announce-hostname", "", Text(), "Name told to others."),
    Directive("cluster-announce-human-nodename", "", Text(), "Name in messages."),
    Directive(
        "cluster-preferred-endpoint-type", "ip", Choice("ip hostname unknown-endpoint"), "What redirections name."
    ),
    Directive("cluster-allow-pubsubshard-when-down", "yes", YesNo(), "Publish while the cluster is down."),
    Directive("cluster-allow-reads-when-down", "no", YesNo(), "Read while the cluster is down."),
    Directive("cluster-allow-replica-migration", "yes", YesNo(), "Let replicas change masters."),
    Directive("cluster-compatibility-sample-ratio", "0", Number(0, 100), "Share of requests checked for cluster use."),
    Directive("cluster-link-sendbuf-limit", "0", Memory(0, ULONG), "Bytes that may wait for another node."),
    Directive("cluster-migration-barrier", "1", Number(0, INT), "Replicas that a master keeps."),
    Directive("cluster-replica-no-failover", "no", YesNo(), "Never become master.", alias="cluster-slave-no-failover"),
    Directive(
        "cluster-replica-validity-factor",
        "10",
        Number(0, INT),
        "How old a replica's data may be.",
        alias="cluster-slave-validity-factor",
    ),
    Directive("cluster-require-full-coverage", "yes", YesNo(), "Stop where slots are missing."),
    Directive(
        "cluster-slot-migration-handoff-max-lag-bytes", "1048576", Memory(), "Lag at which a slot is handed over."
    ),
    Directive(
        "cluster-slot-migration-write-pause-timeout", "10000", Number(0, LONG), "Milliseconds that writes pause for it."
    ),
    Directive("cluster-slot-stats-enabled", "no", Choice("no yes cpu net mem"), "What is counted for each slot."),
    # TLS: not spoken here
    Directive("tls-port", "0", Number(0, 65535), "Port."),
    Directive("tls-cert-file", "", Text(), "Certificate."),
    Directive("tls-key-file", "", Text(), "Its key."),
    Directive("tls-key-file-pass", "", Text(), "The key's password."),
    Directive("tls-client-cert-file", "", Text(), "Certificate as a client."),
    Directive("tls-client-key-file", "", Text(), "Its key."),
    Directive("tls-client-key-file-pass", "", Text(), "The key's password."),
    Directive("tls-dh-params-file", "", Text(), "Parameters of key exchange."),
    Directive("tls-ca-cert-file", "", Text(), "Authorities."),
    Directive("tls-ca-cert-dir", "", Text(), "Authorities, as a directory."),
    Directive("tls-auth-clients", "yes", Choice("no yes optional"), "Whether clients need a certificate."),
    Directive("tls-auth-clients-user", "off", Choice("CN off"), "Whether it names their user."),
    Directive("tls-replication", "no", YesNo(), "TLS between servers."),
    Directive("tls-cluster", "no", YesNo(), "TLS on the cluster's bus."),
    Directive("tls-protocols", "", Text(), "Versions."),
    Directive("tls-ciphers", "", Text(), "Ciphers."),
    Directive("tls-ciphersuites", "", Text(), "Ciphers of TLS 1.3."),
    Directive("tls-prefer-server-ciphers", "no", YesNo(), "Whose order of ciphers counts."),
    Directive("tls-session-caching", "yes", YesNo(), "Remember sessions."),
    Directive("tls-session-cache-size", "20480", Number(0, INT), "Sessions remembered."),
    Directive("tls-session-cache-timeout", "300", Number(0, INT), "Seconds that they are."),
)
