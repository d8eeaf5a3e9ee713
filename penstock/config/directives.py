"""The directives that Penstock obeys. One row defines the line in a file, the flag, and CONFIG GET and SET.

Defaults are Redis's; where one differs, its description says why. The directives that Redis has and Penstock does not
need are in `ignored_directives.py`.
"""

from typing import Final, NamedTuple

from penstock.config.directive_types import (
    INT,
    LONG,
    ULONG,
    Addresses,
    BufferLimits,
    Choice,
    EventClasses,
    FileName,
    FilePath,
    Folder,
    Kind,
    MasterAddress,
    Memory,
    MemoryOrPercent,
    Number,
    Octal,
    Percentiles,
    SavePoints,
    ShutdownOptions,
    Text,
    YesNo,
)


class Directive(NamedTuple):
    """One row. `about` describes the directive; `alias` is an older name for it.

    immutable: cannot change while the server runs. protected: CONFIG SET needs enable-protected-configs. hidden: CONFIG
    GET shows it only by its exact name, not by a pattern. secret: MONITOR, SLOWLOG and the list of processes do not
    show its value. only_in: "valkey" if Redis does not have it. valkey_name: what Valkey calls it, too.
    """

    name: str
    default: str
    kind: Kind
    about: str
    alias: str = ""
    immutable: bool = False
    protected: bool = False
    hidden: bool = False
    secret: bool = False
    only_in: str = ""
    valkey_name: str = ""


def row(line: str, kind: Kind, about: str, traits: str = "") -> Directive:
    """A row. line: the name and the default, as in a file. traits: fields that are true, and others with `=`."""
    name, _, default = line.partition(" ")
    given = {field: text for field, _, text in [trait.partition("=") for trait in traits.split()]}
    assert given.keys() <= set(Directive._fields), traits
    return Directive(
        name, default, kind, about, given.get("alias", ""), "immutable" in given, "protected" in given,
        "hidden" in given, "secret" in given, given.get("only_in", ""), given.get("valkey_name", ""),
    )  # fmt: skip


USED: Final = (
    # The network
    row("port 6379", Number(0, 65535), "TCP port to listen on; 0 for none."),
    row(
        "bind 127.0.0.1",
        Addresses(),
        "Addresses to listen on; `*` and `-::*` mean all; with a leading `-`, a missing address is not an error.",
    ),
    row("bind-source-addr", Text(), "Address from which to connect to the master and to targets of MIGRATE."),
    row("unixsocket", FilePath(), "Path of a unix socket to listen on, too.", "immutable"),
    row("unixsocketperm 0", Octal(), "Permission bits of the unix socket; 0 leaves them to the umask.", "immutable"),
    row("tcp-backlog 511", Number(0, INT), "Connections that may wait to be accepted.", "immutable"),
    row("tcp-keepalive 300", Number(0, INT), "Seconds of silence after which a peer is probed; 0 for never."),
    row("timeout 0", Number(0, INT), "Idle seconds after which a client is closed; 0 for never."),
    row("protected-mode yes", YesNo(), "Refuse clients from other machines while there is no password."),
    row("maxclients 10000", Number(1, 2**32 - 1), "Maximum number of clients."),
    row("proto-max-bulk-len 536870912", Memory(2**20), "Maximum bytes of one argument."),
    row("client-query-buffer-limit 1073741824", Memory(2**20), "Maximum bytes of requests waiting for one client."),
    row(
        "client-output-buffer-limit normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
        BufferLimits(),
        "Maximum bytes of replies waiting for a client, by class: hard limit, soft limit, seconds above it.",
    ),
    # TLS
    row("tls-port 0", Number(0, 65535), "TCP port for TLS; 0 for none."),
    row("tls-cert-file", FilePath(), "The server's certificate (PEM), and those that lead to its authority."),
    row("tls-key-file", FilePath(), "The certificate's private key (PEM)."),
    row("tls-key-file-pass", Text(), "The key's password.", "secret"),
    row("tls-client-cert-file", FilePath(), "Certificate for the link to a master, if it is another one."),
    row("tls-client-key-file", FilePath(), "That certificate's private key."),
    row("tls-client-key-file-pass", Text(), "The key's password.", "secret"),
    row("tls-replication no", YesNo(), "Use TLS for the link to a master."),
    row("tls-cluster no", YesNo(), "Use TLS for MIGRATE; there is no cluster bus."),
    row("tls-dh-params-file", FilePath(), "Diffie-Hellman parameters for TLS 1.2."),
    row("tls-ca-cert-file", FilePath(), "Authorities that vouch for clients (PEM)."),
    row("tls-ca-cert-dir", FilePath(), "Directory of such authorities."),
    row("tls-auth-clients yes", Choice("no yes optional"), "Whether clients must show a certificate."),
    row("tls-auth-clients-user off", Choice("CN off"), "CN: a client acts as the user that its certificate names."),
    row("tls-protocols", Text(), "TLS versions; empty for 1.2 and 1.3."),
    row("tls-ciphers", Text(), "Ciphers of TLS 1.2, in OpenSSL's notation."),
    row("tls-ciphersuites", Text(), "Ciphers of TLS 1.3 (Python 3.15 or newer)."),
    row("tls-groups", Text(), "Groups for the exchange of keys; more than one: Python 3.15 or newer."),
    row("tls-prefer-server-ciphers no", YesNo(), "Prefer the server's order of ciphers."),
    row("tls-session-caching yes", YesNo(), "Let clients continue TLS sessions."),
    # Access
    row("requirepass", Text(), "Password of the default user; if empty, none is needed.", "secret"),
    row(
        "enable-protected-configs no",
        Choice("no yes local"),
        "Clients that may CONFIG SET protected directives: none, all, or local ones.",
        "immutable",
    ),
    row("enable-debug-command no", Choice("no yes local"), "Clients that may use DEBUG.", "immutable"),
    row("enable-module-command no", Choice("no yes local"), "Clients that may use MODULE LOAD.", "immutable"),
    row("hide-user-data-from-log no", YesNo(), "Do not write users' data into the server's messages."),
    row("aclfile", FilePath(), "File with the users; ACL LOAD reads it, ACL SAVE writes it.", "immutable"),
    row(
        "acl-pubsub-default resetchannels", Choice("allchannels resetchannels"), "Channels of a new user: all, or none."
    ),
    row("acllog-max-len 128", Number(0, LONG), "Maximum number of entries in ACL LOG."),
    # The server's process
    row("databases 16", Number(1, INT), "Number of databases.", "immutable"),
    row("dir .", Folder(), "Directory of the log's files.", "protected"),
    row("hz 10", Number(0, INT, least=1, cap=500), "How often the server's cron runs in a second, as INFO shows it."),
    row("pidfile", FilePath(), "File to write the process id to.", "immutable"),
    row(
        "loglevel notice",
        Choice("debug verbose notice warning nothing"),
        "The least important messages that are written to the console or the log file.",
    ),
    row("logfile", FilePath(), "File for messages, instead of the console.", "immutable"),
    row(
        "supervised no",
        Choice("upstart systemd auto no"),
        "The supervisor that is notified when the server is ready.",
        "immutable",
    ),
    row(
        "busy-reply-threshold 5000",
        Number(0, LONG),
        "Milliseconds after which other clients get BUSY while a script runs.",
        "alias=lua-time-limit",
    ),
    # The log
    row(
        "dbfilename dump.rdb",
        FileName("dbfilename"),
        "Name of the RDB file: saved, and loaded at a start without a log.",
        "protected",
    ),
    row("appendonly yes", YesNo(), "Log every change (Redis: no, because it also has snapshots)."),
    row(
        "appendfilename appendonly.aof",
        FileName("appendfilename"),
        "Prefix of the names of the log's files.",
        "immutable",
    ),
    row(
        "appenddirname appendonlydir",
        FileName("appenddirname", "dirname"),
        "Directory of the log's files, inside dir.",
        "immutable",
    ),
    row(
        "appendfsync everysec",
        Choice("everysec always no"),
        "When the log is synced: before every reply, once a second, or when the operating system decides.",
    ),
    row("no-appendfsync-on-rewrite no", YesNo(), "Do not sync while the log is rewritten."),
    row(
        "auto-aof-rewrite-percentage 100",
        Number(0, INT),
        "Growth in percent since the last rewrite that starts the next one; 0 for never.",
    ),
    row("auto-aof-rewrite-min-size 67108864", Memory(), "A smaller log is not rewritten automatically."),
    row("aof-load-truncated yes", YesNo(), "Start with a torn tail: cut it off."),
    row("aof-load-corrupt-tail-max-size 0", Number(0, LONG), "Maximum bytes of a damaged tail to cut off."),
    row("aof-timestamp-enabled no", YesNo(), "Write the time into the log once a second."),
    row("aof-rewrite-incremental-fsync yes", YesNo(), "Sync a new base file in parts."),
    row("aof-disable-auto-gc no", YesNo(), "Keep log files that are no longer needed.", "hidden"),
    # Values
    row(
        "stream-node-max-bytes 4096",
        Memory(),
        "Maximum bytes of a stream's listpack node, where approximate trims stop; 0 for no limit.",
    ),
    row("stream-node-max-entries 100", Number(0, LONG), "Maximum entries of such a node; 0 for no limit."),
    row(
        "stream-compress-after 16384",
        Number(0, LONG),
        "Newest entries of a growing stream that are kept as they are sent; others are compressed. 0: none is.",
    ),
    row("stream-idmp-duration 100", Number(1, 86400), "Seconds that a new stream remembers idempotent ids."),
    row("stream-idmp-maxsize 100", Number(1, 10000), "Idempotent ids that a new stream remembers for each producer."),
    row(
        "hash-max-listpack-entries 512",
        Number(0, LONG),
        "Maximum fields of a compact hash.",
        "alias=hash-max-ziplist-entries",
    ),
    row("hash-max-listpack-value 64", Memory(), "Longest value of a compact hash.", "alias=hash-max-ziplist-value"),
    row("list-max-listpack-size -2", Number(-INT - 1, INT), "Size of a list's node.", "alias=list-max-ziplist-size"),
    row("set-max-intset-entries 512", Number(0, LONG), "Maximum members of a compact set of integers."),
    row("set-max-listpack-entries 128", Number(0, LONG), "Maximum members of a compact set."),
    row("set-max-listpack-value 64", Number(0, LONG), "Longest member of a compact set."),
    row("hll-sparse-max-bytes 3000", Memory(), "Size at which a sparse HyperLogLog becomes dense."),
    row(
        "zset-max-listpack-entries 128",
        Number(0, LONG),
        "Maximum members of a compact sorted set.",
        "alias=zset-max-ziplist-entries",
    ),
    row(
        "zset-max-listpack-value 64",
        Memory(),
        "Longest member of a compact sorted set.",
        "alias=zset-max-ziplist-value",
    ),
    # Memory
    row("maxmemory 0", Memory(0, ULONG), "Bytes of memory above which keys are evicted or writes refused."),
    row("maxmemory-clients 0", MemoryOrPercent(), "Maximum memory of all clients together."),
    row(
        "maxmemory-policy noeviction",
        Choice(
            "volatile-lru volatile-lfu volatile-random volatile-ttl volatile-lrm"
            " allkeys-lru allkeys-lfu allkeys-random allkeys-lrm noeviction"
        ),
        "Which keys are evicted: all or those that expire; least used, least changed, random, or first to expire.",
    ),
    row("maxmemory-samples 5", Number(1, 64), "Keys compared for one eviction."),
    row("lfu-log-factor 10", Number(0, INT), "How slowly usage counters rise."),
    row("lfu-decay-time 1", Number(0, INT), "Minutes after which a usage counter falls."),
    row("bitmap-default-roaring no", YesNo(), "SETBIT, BITFIELD and BITOP make native bitmaps, which are compressed."),
    row(
        "lazyexpire-nested-arbitrary-keys yes",
        YesNo(),
        "SCAN and RANDOMKEY in a transaction or a script remove expired keys.",
        "hidden",
    ),
    # Observation
    row(
        "notify-keyspace-events",
        EventClasses(),
        "Keyspace events to publish: K by key, E by event, S, T, I and V with fields, then letters of event classes.",
    ),
    row(
        "slowlog-log-slower-than 10000",
        Number(-1, LONG),
        "Microseconds from which a request is slow; -1 for never.",
        "valkey_name=commandlog-execution-slower-than",
    ),
    row("slowlog-entry-max-argc 32", Number(2, INT), "Maximum arguments kept of a slow request."),
    row("slowlog-entry-max-string-len 128", Number(1, INT), "Maximum bytes kept of each argument."),
    row(
        "slowlog-max-len 128",
        Number(0, LONG),
        "Maximum number of slow requests kept.",
        "valkey_name=commandlog-slow-execution-max-len",
    ),
    row(
        "import-mode no",
        YesNo(),
        "Whether keys neither expire nor are evicted; CLIENT IMPORT-SOURCE sees what has expired.",
        "only_in=valkey",
    ),
    row("availability-zone", Text(), "Where the server is: a word that HELLO and INFO show.", "only_in=valkey"),
    row(
        "commandlog-request-larger-than 1048576",
        Number(-1, LONG),
        "Bytes from which a request is large; -1 for never.",
        "only_in=valkey",
    ),
    row(
        "commandlog-large-request-max-len 128",
        Number(0, LONG),
        "Maximum number of large requests kept.",
        "only_in=valkey",
    ),
    row(
        "commandlog-reply-larger-than 1048576",
        Number(-1, LONG),
        "Bytes from which a reply is large; -1 for never.",
        "only_in=valkey",
    ),
    row(
        "commandlog-large-reply-max-len 128",
        Number(0, LONG),
        "Maximum number of requests with large replies kept.",
        "only_in=valkey",
    ),
    row(
        "latency-monitor-threshold 0", Number(0, LONG), "Milliseconds from which LATENCY records an event; 0 for never."
    ),
    row("latency-tracking yes", YesNo(), "Keep a histogram of each command's times."),
    row("latency-tracking-info-percentiles 50 99 99.9", Percentiles(), "Percentiles that INFO latencystats shows."),
    row(
        "watch-group-changes no",
        YesNo(),
        "Changes of a stream's groups make transactions that watch it fail, and are told to clients that track it.",
    ),
    row(
        "tracking-table-max-keys 1000000",
        Number(0, LONG),
        "Keys remembered for client-side caching; above, some are dropped at random; 0 for no limit.",
    ),
    # Penstock's own
    row("metrics-port 0", Number(0, 65535), "Port for Prometheus's scrapes over HTTP; 0 for none.", "immutable"),
    row("metrics-bind 127.0.0.1", Text(), "Address that metrics-port listens on.", "immutable"),
    row("metrics-password", Text(), "Password that a scrape must have; if empty, none is needed.", "secret"),
    row("metrics-streams *", Text(), "Pattern of the streams that the metrics show one by one."),
    row("metrics-max-streams 500", Number(0, INT), "Maximum number of them; those with trouble come first."),
    row("console-port 0", Number(0, 65535), "Port of the console over HTTP; 0 for none.", "immutable"),
    row("console-bind 127.0.0.1", Text(), "Address that console-port listens on.", "immutable"),
    row(
        "compat-version newest",
        Choice("newest 8.12 8.10 8.8 8.6 8.4 8.2 8.0 7.2 valkey-9.1 valkey-9.2"),
        "Clients see the commands, options and reply fields of this server; others are hidden.",
        "immutable",
    ),
    row(
        "penstock-test-clock no",
        YesNo(),
        "PENSTOCK.CLOCK may stop and move the server's clock: for tests of what takes minutes.",
        "immutable",
    ),
    row(
        "aof-skip-unknown no",
        YesNo(),
        "Leave out lines of the log that name no command, instead of refusing to start; they are counted and named.",
    ),
    # Snapshots
    row("save", SavePoints(), "When to save an RDB file: after so many seconds, if there were so many changes."),
    row("rdbcompression yes", YesNo(), "Compress strings in it, and in DUMP; plain Python only in DUMP."),
    row("rdbchecksum yes", YesNo(), "A checksum at its end.", "immutable"),
    row(
        "rdb-key-save-delay 0",
        Number(-INT - 1, INT),
        "Microseconds to wait for each key that is saved; below 0, keys for which one is waited.",
        "hidden",
    ),
    row(
        "key-load-delay 0",
        Number(-INT - 1, INT),
        "Microseconds to wait for each key that is loaded; below 0, keys for which one is waited.",
        "hidden",
    ),
    row(
        "stop-writes-on-bgsave-error yes",
        YesNo(),
        "Refuse writes after a save that failed, if there are save points and there is no log.",
    ),
    row("shutdown-on-sigint default", ShutdownOptions("default save nosave now force"), "What SIGINT does."),
    row("shutdown-on-sigterm default", ShutdownOptions("default save nosave now force"), "What SIGTERM does."),
    row(
        "rdb-compat-version 7.2",
        Choice("5.0 6.0 6.2 7.0 7.2 7.4 8.0 8.2 8.4 8.6 8.8 8.10 8.12"),
        "The oldest Redis that must read RDB files and DUMP's payloads; what needs a later one is written for that.",
    ),
    row(
        "aof-compat-version newest",
        Choice("newest 8.12 8.10 8.8 8.6 8.4 8.2 8.0 7.4 7.2 7.0"),
        "The oldest Redis that must be able to load the log (8.6: from 8.6.2 on); a change starts a rewrite.",
    ),
    row(
        "aof-use-rdb-preamble no",
        YesNo(),
        "A rewrite writes an RDB file, as Redis does; of requests where aof-compat-version could not read that.",
    ),
    row(
        "aof-compat-consumer released",
        Text(),
        "Consumer that owns released entries in a log for a Redis before 8.8, which does not have XNACK.",
    ),
    # Replication
    row("replicaof", MasterAddress(), "Host and port of the master.", "immutable alias=slaveof"),
    row("masterauth", Text(), "The master's password.", "secret valkey_name=primaryauth"),
    row("masteruser", Text(), "User name at the master.", "secret valkey_name=primaryuser"),
    row(
        "replica-serve-stale-data yes",
        YesNo(),
        "Serve clients without a connection to the master.",
        "alias=slave-serve-stale-data",
    ),
    row("replica-read-only yes", YesNo(), "Refuse writes on a replica.", "alias=slave-read-only"),
    row("replica-priority 100", Number(0, INT), "Priority in a failover.", "alias=slave-priority"),
    row("replica-announced yes", YesNo(), "Whether sentinels report this replica."),
    row("replica-announce-ip", Text(), "Address announced to the master.", "alias=slave-announce-ip"),
    row("replica-announce-port 0", Number(0, 65535), "Port announced to the master.", "alias=slave-announce-port"),
    row("replica-ignore-maxmemory yes", YesNo(), "Leave eviction to the master.", "alias=slave-ignore-maxmemory"),
    row("repl-backlog-size 1048576", Memory(1, least=16384), "Bytes of changes kept for replicas that reconnect."),
    row("repl-backlog-ttl 3600", Number(0, LONG), "Seconds without replicas after which the backlog is freed."),
    row("repl-timeout 60", Number(1, INT), "Seconds of silence after which a link is closed."),
    row("repl-ping-replica-period 10", Number(1, INT), "Seconds between pings.", "alias=repl-ping-slave-period"),
    row("repl-diskless-sync yes", YesNo(), "Send a full copy without writing a file."),
    row("repl-diskless-sync-delay 5", Number(0, INT), "Seconds to wait for more replicas."),
    row("repl-diskless-sync-max-replicas 0", Number(0, INT), "Number of replicas that end the wait."),
    row(
        "min-replicas-to-write 0",
        Number(0, INT),
        "With fewer replicas, writes are refused.",
        "alias=min-slaves-to-write",
    ),
    row(
        "min-replicas-max-lag 10",
        Number(0, INT),
        "Maximum lag of those replicas in seconds.",
        "alias=min-slaves-max-lag",
    ),
)

SECRETS: Final = frozenset(
    name.encode()
    for directive in USED
    if directive.secret
    for name in (directive.name, directive.alias, directive.valkey_name)
    if name
)  # by each of their names
