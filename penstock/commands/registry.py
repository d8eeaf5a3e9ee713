"""All commands: the modules that declare them, the table that is made of them, and the engine that is handed it."""

import random
from importlib import import_module
from typing import Final

from penstock.clock import Clock
from penstock.config.settings import Settings
from penstock.engine.effects import EffectLog
from penstock.engine.engine import Engine
from penstock.engine.table import client_compat, command_table
from penstock.engine.table.client_compat import Compatibility
from penstock.engine.table.command_lookup import CommandLookup
from penstock.engine.table.command_table import Command
from penstock.storage.keyspace import Keyspace

MODULES: Final = (  # each declares commands, or batch and replay functions of commands; a line a module, sorted
    "acl.acl_files",
    "acl.acl_help",
    "acl.acl_log",
    "acl.acl_rights",
    "acl.acl_users",
    "arrays.array_cursor",
    "arrays.array_items",
    "arrays.array_queries",
    "cluster.cluster_changes",
    "cluster.cluster_connection",
    "cluster.cluster_nodes",
    "connection.client_control",
    "connection.client_list",
    "connection.client_tracking",
    "connection.clients",
    "connection.connection",
    "connection.transactions",
    "geo.geo_members",
    "geo.geo_search",
    "hashes.hash_batches",
    "hashes.hash_counters",
    "hashes.hash_expiry",
    "hashes.hash_field_options",
    "hashes.hash_fields",
    "hashes.hash_import",
    "hashes.hash_scans",
    "hyperloglog.hll_debug",
    "hyperloglog.hyperloglog",
    "keys.databases",
    "keys.deletion_batches",
    "keys.dumping",
    "keys.expiry",
    "keys.expiry_batches",
    "keys.keys",
    "keys.migrating",
    "keys.objects",
    "keys.scanning",
    "keys.sorting",
    "lists.list_batches",
    "lists.list_block_moves",
    "lists.list_ends",
    "lists.list_middle",
    "lists.list_moves",
    "policies.delayed_nack",
    "policies.policy",
    "policies.server_clock",
    "pubsub.pubsub",
    "replication.failover",
    "replication.following",
    "replication.roles",
    "replication.syncing",
    "replication.waiting",
    "scripting.functions",
    "scripting.scripting",
    "server.config",
    "server.debug",
    "server.hot_keys",
    "server.info",
    "server.introspection",
    "server.latency",
    "server.memory",
    "server.modules",
    "server.monitor",
    "server.persistence",
    "server.server_admin",
    "server.slowlog",
    "sets.set_algebra",
    "sets.set_batches",
    "sets.set_members",
    "sets.set_random",
    "sorted_sets.zset_adding",
    "sorted_sets.zset_batches",
    "sorted_sets.zset_combining",
    "sorted_sets.zset_lookup",
    "sorted_sets.zset_popping",
    "sorted_sets.zset_range",
    "sorted_sets.zset_removing",
    "sorted_sets.zset_sampling",
    "streams.changing.xadd",
    "streams.changing.xadd_batch",
    "streams.changing.xdel",
    "streams.changing.xsetid",
    "streams.groups.xack",
    "streams.groups.xack_batch",
    "streams.groups.xclaim",
    "streams.groups.xgroup",
    "streams.groups.xinfo",
    "streams.groups.xpending",
    "streams.reading.peek",
    "streams.reading.xrange",
    "streams.reading.xread",
    "streams.reading.xreadgroup",
    "streams.reading.xreadgroup_batch",
    "streams.replay_batches",
    "strings.bit_fields",
    "strings.bit_operations",
    "strings.bit_search",
    "strings.bit_single",
    "strings.bounded_counters",
    "strings.set_command",
    "strings.string_batches",
    "strings.string_conditions",
    "strings.string_lcs",
    "strings.string_ranges",
    "strings.strings",
)


def _declare() -> None:
    """Import the modules, so that they declare their rows."""
    for name in MODULES:
        import_module(f"penstock.commands.{name}")


_declare()
TABLE: Final = command_table.build(command_table.DECLARED)  # once: rows do not change, and are every engine's
COMMANDS: Final = CommandLookup(TABLE, Compatibility(), ())  # of every engine that hides and renames none


def table() -> dict[bytes, Command]:
    """The command table by upper-case name."""
    return dict(TABLE)


def new_engine(
    settings: Settings,
    clock: Clock,
    chance: random.Random,
    keyspace: Keyspace | None = None,
    log: EffectLog | None = None,
) -> Engine:
    """An engine that knows every command."""
    compatibility = client_compat.of(settings)
    commands = COMMANDS
    if settings.renamed or not compatibility.is_newest:
        commands = CommandLookup(TABLE, compatibility, settings.renamed)
    return Engine(settings, clock, chance, commands, keyspace, log)
