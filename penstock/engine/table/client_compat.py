"""The commands, options and reply fields that clients may see: those of the server named by `compat-version`.

What that server does not have is hidden: a command is unknown, an option is refused as any other word would be in its
place, a field is left out. So what passes here passes there. `newest` hides only what no Redis has (`@valkey-9.1.0` in
a syntax, `only_in` of a command). A version's table is made once, at the start, of rows that name what is hidden
(`Row.hidden`); that of a named version has none of Penstock's own commands. The log is not touched: what stands in it
is always understood, and what may stand in it is `aof_compat.py`'s to say.
"""

from typing import Final

from penstock.config.settings import Settings, is_of_valkey
from penstock.engine.table import argument_tree, command_syntax
from penstock.engine.table.row import Declaration, Row
from penstock.engine.versions import REDIS_VERSION

VALUES: Final = {("XREAD", "+"): "7.4.0"}  # values that mean something since a version
DESCRIBES_CLIENTS: Final = ("CLIENT|LIST", "CLIENT|INFO", "ACL|LOG")
FIELDS: Final = {  # of replies, and sections of INFO
    ("XINFO|STREAM", "idmp-duration"): "8.6.0", ("XINFO|STREAM", "idmp-maxsize"): "8.6.0",
    ("XINFO|STREAM", "pids-tracked"): "8.6.0", ("XINFO|STREAM", "iids-tracked"): "8.6.0",
    ("XINFO|STREAM", "iids-added"): "8.6.0", ("XINFO|STREAM", "iids-duplicates"): "8.6.0",
    ("XINFO|STREAM", "nacked-count"): "8.8.0",
    ("INFO", "subexpiry"): "7.4.0", ("INFO", "expired_subkeys"): "7.4.0", ("INFO", "expired_subkeys_active"): "7.4.0",
    ("INFO", "threads"): "8.0.0", ("INFO", "keysizes"): "8.0.0", ("INFO", "hotkeys"): "8.6.0",
    ("INFO", "slowlog_commands_count"): "8.8.0", ("INFO", "slowlog_commands_time_ms_sum"): "8.8.0",
    ("INFO", "slowlog_commands_time_ms_max"): "8.8.0", ("INFO", "total_client_processing_events"): "8.8.0",
    ("INFO", "eventloop_cycles_with_clients_processing"): "8.8.0",
    ("INFO", "commands_per_parse_batch_sum"): "8.8.0", ("INFO", "commands_per_parse_batch_cnt"): "8.8.0",
    ("INFO", "commands_per_parse_batch_avg"): "8.8.0", ("INFO", "hash_templates"): "8.10.0",
    ("INFO", "hash_template_keys"): "8.10.0", ("INFO", "used_memory_hash_templates"): "8.10.0",
    ("INFO", "backup_in_progress"): "8.10.0", ("INFO", "blessed_keys"): "8.12.0",
    ("SLOWLOG|GET", "word-count"): "8.10.0", ("COMMANDLOG|GET", "word-count"): "8.10.0",
    ("MEMORY|STATS", "overhead.hashtable.blessed"): "8.12.0",
} | {
    (name, field): since
    for name in DESCRIBES_CLIENTS
    for field, since in (
        ("watch", "7.4.0"), ("io-thread", "8.0.0"), ("tot-net-in", "8.2.0"), ("tot-net-out", "8.2.0"),
        ("capa", "valkey-8.0.0"),
        ("tot-cmds", "8.2.0"), ("read-events", "8.8.0"), ("parse-batch-cmd-sum", "8.8.0"), ("parse-batch-cnt", "8.8.0"),
    )
}  # fmt: skip

# What Valkey has of what Redis brought after 7.2, where the two parted, and since when (Valkey 9.1.2, COMMAND DOCS).
VALKEY_COMMANDS: Final = {
    "HEXPIRE": "9.0.0", "HPEXPIRE": "9.0.0", "HEXPIREAT": "9.0.0", "HPEXPIREAT": "9.0.0", "HTTL": "9.0.0",
    "HPTTL": "9.0.0", "HEXPIRETIME": "9.0.0", "HPEXPIRETIME": "9.0.0", "HPERSIST": "9.0.0", "HGETEX": "9.0.0",
    "HSETEX": "9.0.0", "HGETDEL": "9.1.0", "MSETEX": "9.1.0", "XDELEX": "9.2.0", "XACKDEL": "9.2.0",
    "DELEX": "9.2.0", "INCREX": "9.2.0", "CLUSTER|SLOT-STATS": "8.0.0",
}  # fmt: skip
VALKEY_WORDS: Final = {
    ("CLIENT|KILL", "MAXAGE"): "8.0.0", ("HSCAN", "NOVALUES"): "8.0.0", ("SET", "IFEQ"): "8.1.0",
    ("SET", "IFNE"): "9.2.0",
    ("XREAD", "+"): "8.0.0",
} | {
    (name, field): "8.0.0"
    for name in DESCRIBES_CLIENTS
    for field in ("watch", "tot-net-in", "tot-net-out", "tot-cmds")
}  # fmt: skip
ONLY_VALKEY: Final = "valkey-"  # begins the version of a word that no Redis has

VALKEY_FIELDS: Final = {  # fields of INFO that have another name there (9.1.2)
    "redis_mode": "server_mode", "expired_subkeys": "expired_fields", "subexpiry": "keys_with_volatile_items",
}  # fmt: skip
REDIS_FIELDS: Final = (  # fields of INFO that Valkey does not have (9.1.2), whenever Redis brought them
    b"atomicvar_api", b"expired_keys_active", b"mem_cluster_slot_migration_input_buffer",
    b"mem_cluster_slot_migration_input_buffer_peak", b"mem_cluster_slot_migration_output_buffer",
    b"mem_replica_full_sync_buffer", b"rdb_saves_consecutive_failures", b"used_memory_peak_time",
)  # fmt: skip
VALKEY_TYPES: Final = frozenset((b"string", b"list", b"set", b"zset", b"hash", b"stream"))  # that SCAN takes
# Flags that commands have in Valkey only (9.1.2, COMMAND INFO).
VALKEY_FLAGS: Final = {"MULTI": " no_multi", "WATCH": " no_multi", "CLIENT|REPLY": " no_multi"}

ONLY_LOGGED: Final = "log"  # `only_in` of a command that no client may use
OWN_PREFIX: Final = "PENSTOCK."  # of commands that no Redis has
PARTED: Final = (7, 2)
VERSIONS: Final = {  # what INFO and HELLO name
    "7.2": "7.2.0", "8.0": "8.0.0", "8.2": "8.2.0", "8.4": "8.4.0", "8.6": "8.6.3", "8.8": "8.8.0", "8.10": "8.10.0",
    "8.12": "8.12.0",
    "valkey-9.1": "7.2.4", "valkey-9.2": "7.2.4",
}  # fmt: skip
VALKEY_VERSIONS: Final = {"valkey-9.1": "9.1.2", "valkey-9.2": "9.2.0"}
NO_VALKEY: Final = (0, 0)


class Compatibility:
    """The server that this one passes for. redis_version: as INFO names it. server, version: as HELLO does."""

    __slots__ = ("_known", "_known_valkey", "is_newest", "is_valkey", "redis_version", "server", "version")

    def __init__(self, name: str = "newest") -> None:
        self.is_newest = name == "newest"
        self.is_valkey = is_of_valkey(name)
        self.redis_version = REDIS_VERSION if self.is_newest else VERSIONS[name]
        self.server = "valkey" if self.is_valkey else "redis"
        self.version = VALKEY_VERSIONS[name] if self.is_valkey else self.redis_version
        self._known = PARTED if self.is_valkey else numbers(self.redis_version)
        self._known_valkey = numbers(self.version) if self.is_valkey else NO_VALKEY

    def has_command(self, row: Row) -> bool:
        if row.name.startswith(OWN_PREFIX):
            return self.is_newest
        if row.declared.only_in == ONLY_LOGGED:
            return False
        if row.declared.only_in:
            return self.is_valkey and numbers(row.declared.since) <= self._known_valkey
        return self._has(row.declared.since, VALKEY_COMMANDS.get(row.name, ""))

    def has_word(self, name: str, word: str, since: str) -> bool:
        """Whether it has an option or a reply field of a command, which came with a version."""
        if since.startswith(ONLY_VALKEY):
            return numbers(since.removeprefix(ONLY_VALKEY)) <= self._known_valkey
        return self._has(since, VALKEY_WORDS.get((name, word), ""))

    def _has(self, since: str, in_valkey: str) -> bool:
        """Whether it has what came to Redis and to Valkey with these versions; "": it has not come to Valkey."""
        return numbers(since) <= self._known or (in_valkey != "" and numbers(in_valkey) <= self._known_valkey)

    def knows_whole(self, row: Row) -> bool:
        """Whether nothing is hidden of a command or of what stands below it; said without its tree, at a start."""
        if not self.is_newest or row.declared.only_in or row.name in DESCRIBES_CLIENTS:
            return False
        return f"@{ONLY_VALKEY}" not in row.syntax and all(map(self.knows_whole, row.subcommands.values()))

    def is_valkey_since(self, version: str) -> bool:
        """Whether it is a Valkey of this version or a later one."""
        return numbers(version) <= self._known_valkey

    def declaration(self, row: Row) -> Declaration:
        """A command as this server has it: what it lacks is hidden, and its flags and its history are its own."""
        flags = row.declared.flags + (VALKEY_FLAGS.get(row.name, "") if self.is_valkey else "")
        history = tuple([change for change in row.declared.history if numbers(change[0]) <= self._known])
        return row.declared._replace(hidden=self._hidden_words(row), history=history, flags=flags)

    def _hidden_words(self, row: Row) -> frozenset[bytes]:
        """The options and reply fields of a command that it does not have."""
        named = [(word, since) for (name, word), since in (VALUES | FIELDS).items() if name == row.name]
        declared = (
            [pair for pair in argument_tree.dated_tokens(command_syntax.parse(row.syntax)) if pair[1]]
            if row.syntax
            else []
        )
        came = dict(declared + named)
        hidden = frozenset(word.encode() for word, since in came.items() if not self.has_word(row.name, word, since))
        return hidden.union(REDIS_FIELDS) if self.is_valkey and row.name == "INFO" else hidden


def of(settings: Settings) -> Compatibility:
    """The compatibility that the settings ask for."""
    return Compatibility(settings.text("compat-version"))


def numbers(version: str) -> tuple[int, int]:
    """The two numbers that decide; what a patch brought, its version has.

    >>> numbers("8.10.0") > numbers("8.6.2")
    True
    """
    major, minor = version.split(".")[:2]
    return int(major), int(minor)
