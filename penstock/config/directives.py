"""The directives that Penstock obeys: each a row, which gives the line in a file, the flag, CONFIG GET and SET.

Defaults are Redis's, except where the sentence says why not. The directives that Redis has and Penstock does not
need are in `accepted.py`.
"""

from dataclasses import dataclass
from typing import Final

from penstock.config.directive_types import (
    INT,
    LONG,
    ULONG,
    Addresses,
    BufferLimits,
    Choice,
    EventClasses,
    FileName,
    Folder,
    Kind,
    Memory,
    Number,
    Octal,
    Percentiles,
    Text,
    YesNo,
)


@dataclass(frozen=True, slots=True)
class Directive:
    """One row. `alias` is an older name with the same value.

    immutable: fixed once the server runs. protected: CONFIG SET needs enable-protected-configs. hidden: CONFIG
    GET shows it by its exact name alone.
    """

    name: str
    default: str
    kind: Kind
    about: str
    alias: str = ""
    immutable: bool = False
    protected: bool = False
    hidden: bool = False


USED: Final = (
    # The network
    Directive("port", "6379", Number(0, 65535), "TCP port; 0 listens on none."),
    Directive(
        "bind",
        "127.0.0.1",
        Addresses(),
        "Addresses to listen on; `*` and `-::*` mean all, a leading `-` that a missing address is no error.",
    ),
    Directive("unixsocket", "", Text(), "Path of a unix socket to listen on as well.", immutable=True),
    Directive(
        "unixsocketperm",
        "0",
        Octal(),
        "Permission bits of the unix socket; 0 leaves them to the umask.",
        immutable=True,
    ),
    Directive("tcp-backlog", "511", Number(0, INT), "Connections that may wait to be accepted.", immutable=True),
    Directive("tcp-keepalive", "300", Number(0, INT), "Seconds after which a silent peer is probed; 0 never."),
    Directive("timeout", "0", Number(0, INT), "Seconds after which an idle client is closed; 0 never."),
    Directive("protected-mode", "yes", YesNo(), "Refuse clients from elsewhere while there is no password."),
    Directive("maxclients", "10000", Number(1, 2**32 - 1), "Clients at a time."),
    Directive("proto-max-bulk-len", "536870912", Memory(2**20), "Bytes that one word of a request may have."),
    Directive("client-query-buffer-limit", "1073741824", Memory(2**20), "Bytes of a client's requests that may wait."),
    Directive(
        "client-output-buffer-limit",
        "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
        BufferLimits(),
        "Bytes of replies that may wait for a client, by class: hard limit, soft limit, its seconds.",
    ),
    # Who may do what
    Directive("requirepass", "", Text(), "Password of the default user; empty lets everybody in."),
    Directive(
        "enable-protected-configs",
        "no",
        Choice("no yes local"),
        "Who may CONFIG SET protected directives: nobody, everybody, or local clients.",
        immutable=True,
    ),
    Directive("enable-debug-command", "no", Choice("no yes local"), "Who may use DEBUG.", immutable=True),
    Directive("hide-user-data-from-log", "no", YesNo(), "Keep what users sent out of what the server says."),
    Directive("acllog-max-len", "128", Number(0, LONG), "Refusals that ACL LOG keeps."),
    # The server's process
    Directive("databases", "16", Number(1, INT), "Numbered databases.", immutable=True),
    Directive("dir", ".", Folder(), "Directory of the log's files.", protected=True),
    Directive(
        "hz", "10", Number(0, INT, least=1, cap=500), "Turns a second of the server's own chores, as INFO shows it."
    ),
    Directive("pidfile", "", Text(), "File that the process id is written to.", immutable=True),
    Directive(
        "loglevel",
        "notice",
        Choice("debug verbose notice warning nothing"),
        "How much is said on the console or in the log file.",
    ),
    Directive("logfile", "", Text(), "File that is written instead of the console.", immutable=True),
    Directive(
        "supervised",
        "no",
        Choice("upstart systemd auto no"),
        "Who watches over the process, and is told when it is ready.",
        immutable=True,
    ),
    Directive(
        "busy-reply-threshold",
        "5000",
        Number(0, LONG),
        "Milliseconds after which a script is called slow.",
        alias="lua-time-limit",
    ),
    # The log
    Directive(
        "dbfilename",
        "dump.rdb",
        FileName("dbfilename"),
        "Name of an RDB file that a start does not pass over.",
        protected=True,
    ),
    Directive(
        "appendonly", "yes", YesNo(), "Keep a log of every change (Redis: no; it has snapshots to fall back on)."
    ),
    Directive(
        "appendfilename",
        "appendonly.aof",
        FileName("appendfilename"),
        "What the names of the log's files begin with.",
        immutable=True,
    ),
    Directive(
        "appenddirname",
        "appendonlydir",
        FileName("appenddirname", "dirname"),
        "Directory of the log's files, inside dir.",
        immutable=True,
    ),
    Directive(
        "appendfsync",
        "everysec",
        Choice("everysec always no"),
        "When the log is synced: after every turn before its replies, each second, or as the system likes.",
    ),
    Directive("no-appendfsync-on-rewrite", "no", YesNo(), "Do not sync while the log is rewritten."),
    Directive(
        "auto-aof-rewrite-percentage",
        "100",
        Number(0, INT),
        "Growth since the last rewrite that brings the next one; 0 never.",
    ),
    Directive("auto-aof-rewrite-min-size", "67108864", Memory(), "A smaller log is not rewritten of itself."),
    Directive("aof-load-truncated", "yes", YesNo(), "Cut a torn tail off and start, rather than refuse."),
    Directive("aof-load-corrupt-tail-max-size", "0", Number(0, LONG), "Bytes of damaged tail that may be cut off."),
    Directive("aof-timestamp-enabled", "no", YesNo(), "Write the time into the log once a second."),
    Directive("aof-rewrite-incremental-fsync", "yes", YesNo(), "Sync a rewrite as it goes."),
    Directive("aof-disable-auto-gc", "no", YesNo(), "Keep log files that are no longer needed.", hidden=True),
    # What is kept
    Directive(
        "stream-node-max-bytes",
        "4096",
        Memory(),
        "Bytes of a node of a stream, which approximate trimming cuts at; 0 without limit.",
    ),
    Directive("stream-node-max-entries", "100", Number(0, LONG), "Entries of a node; 0 without limit."),
    Directive("stream-idmp-duration", "100", Number(1, 86400), "Seconds that a new stream remembers idempotent ids."),
    Directive(
        "stream-idmp-maxsize", "100", Number(1, 10000), "Idempotent ids that a new stream remembers for each producer."
    ),
    Directive(
        "hash-max-listpack-entries",
        "512",
        Number(0, LONG),
        "Fields of a compact hash.",
        alias="hash-max-ziplist-entries",
    ),
    Directive(
        "hash-max-listpack-value", "64", Memory(), "Longest value of a compact hash.", alias="hash-max-ziplist-value"
    ),
    Directive(
        "list-max-listpack-size", "-2", Number(-INT - 1, INT), "Size of a list's node.", alias="list-max-ziplist-size"
    ),
    Directive("set-max-intset-entries", "512", Number(0, LONG), "Members of a set of integers."),
    Directive("set-max-listpack-entries", "128", Number(0, LONG), "Members of a compact set."),
    Directive("set-max-listpack-value", "64", Number(0, LONG), "Longest member of a compact set."),
    Directive(
        "zset-max-listpack-entries",
        "128",
        Number(0, LONG),
        "Members of a compact sorted set.",
        alias="zset-max-ziplist-entries",
    ),
    Directive(
        "zset-max-listpack-value",
        "64",
        Memory(),
        "Longest member of a compact sorted set.",
        alias="zset-max-ziplist-value",
    ),
    # How much memory
    Directive("maxmemory", "0", Memory(0, ULONG), "Bytes of memory from which on keys are evicted, or writes refused."),
    Directive(
        "maxmemory-policy",
        "noeviction",
        Choice(
            "volatile-lru volatile-lfu volatile-random volatile-ttl volatile-lrm"
            " allkeys-lru allkeys-lfu allkeys-random allkeys-lrm noeviction"
        ),
        "Which keys are evicted: any or those that expire; least used, least changed, by chance, or first to expire.",
    ),
    Directive("maxmemory-samples", "5", Number(1, 64), "Keys looked at for one eviction."),
    Directive("lfu-log-factor", "10", Number(0, INT), "How fast counters of use rise."),
    Directive("lfu-decay-time", "1", Number(0, INT), "Minutes after which a counter of use falls."),
    # What is told about it
    Directive(
        "notify-keyspace-events",
        "",
        EventClasses(),
        "Which events of keys are published: K by key, E by event, then letters of classes.",
    ),
    Directive(
        "slowlog-log-slower-than", "10000", Number(-1, LONG), "Microseconds from which a request is slow; -1 never."
    ),
    Directive("slowlog-entry-max-argc", "32", Number(2, INT), "Words of a slow request that are kept."),
    Directive("slowlog-entry-max-string-len", "128", Number(1, INT), "Bytes of each word that are kept."),
    Directive("slowlog-max-len", "128", Number(0, LONG), "Slow requests that are kept."),
    Directive(
        "latency-monitor-threshold", "0", Number(0, LONG), "Milliseconds from which LATENCY notes an event; 0 never."
    ),
    Directive("latency-tracking", "yes", YesNo(), "Keep a histogram of each command's times."),
    Directive("latency-tracking-info-percentiles", "50 99 99.9", Percentiles(), "What INFO latencystats shows of it."),
    # Penstock's own
    Directive(
        "compat-version",
        "newest",
        Choice("newest 8.10 8.8 8.6 8.4 8.2 8.0 7.2 valkey-9.1"),
        "The server whose commands, options and reply fields clients are shown; what it does not have is hidden.",
        immutable=True,
    ),
    Directive(
        "aof-compat-version",
        "newest",
        Choice("newest 8.8 8.6 8.4 8.2 8.0 7.4 7.2 7.0"),
        "The oldest Redis that must be able to load the log (8.6: from 8.6.2 on); a change writes a fresh base.",
    ),
    Directive(
        "aof-compat-consumer",
        "released",
        Text(),
        "Consumer that holds released entries in a log for a Redis before 8.8, which knows no XNACK.",
    ),
)
