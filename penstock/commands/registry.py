"""All commands: the family modules, imported so that they declare their rows, and the engine that is handed them."""

import random
from typing import Final

from penstock.clock import Clock

# One name a line, sorted; each stands in FAMILIES too.
from penstock.commands.acl import acl_files, acl_help, acl_log, acl_rights, acl_users
from penstock.commands.arrays import array_cursor, array_items, array_queries
from penstock.commands.cluster import cluster_changes, cluster_connection, cluster_nodes
from penstock.commands.connection import (
    client_control,
    client_list,
    client_tracking,
    clients,
    connection,
    transactions,
)
from penstock.commands.geo import geo_members, geo_search
from penstock.commands.hashes import (
    hash_batches,
    hash_counters,
    hash_expiry,
    hash_field_options,
    hash_fields,
    hash_import,
    hash_scans,
)
from penstock.commands.hyperloglog import hll_debug, hyperloglog
from penstock.commands.keys import (
    databases,
    deletion_batches,
    dumping,
    expiry,
    expiry_batches,
    keys,
    migrating,
    objects,
    scanning,
    sorting,
)
from penstock.commands.lists import list_batches, list_block_moves, list_ends, list_middle, list_moves
from penstock.commands.policies import delayed_nack, policy, server_clock
from penstock.commands.pubsub import pubsub
from penstock.commands.replication import failover, following, roles, syncing, waiting
from penstock.commands.scripting import functions, scripting
from penstock.commands.server import (
    config,
    debug,
    hot_keys,
    info,
    introspection,
    latency,
    memory,
    modules,
    monitor,
    persistence,
    server_admin,
    slowlog,
)
from penstock.commands.sets import set_algebra, set_batches, set_members, set_random
from penstock.commands.sorted_sets import (
    zset_adding,
    zset_batches,
    zset_combining,
    zset_lookup,
    zset_popping,
    zset_range,
    zset_removing,
    zset_sampling,
)
from penstock.commands.streams import replay_batches
from penstock.commands.streams.changing import xadd, xadd_batch, xdel, xsetid
from penstock.commands.streams.groups import xack, xack_batch, xclaim, xgroup, xinfo, xpending
from penstock.commands.streams.reading import xrange, xread, xreadgroup, xreadgroup_batch
from penstock.commands.strings import (
    bit_fields,
    bit_operations,
    bit_search,
    bit_single,
    bounded_counters,
    set_command,
    string_batches,
    string_conditions,
    string_lcs,
    string_ranges,
    strings,
)
from penstock.config.settings import Settings
from penstock.engine.effects import EffectLog
from penstock.engine.engine import Engine
from penstock.engine.table import client_compat, command_table
from penstock.engine.table.client_compat import Compatibility
from penstock.engine.table.command_lookup import CommandLookup
from penstock.engine.table.command_table import Command
from penstock.storage.keyspace import Keyspace

FAMILIES: Final = (
    acl_files,
    acl_help,
    acl_log,
    acl_rights,
    acl_users,
    array_cursor,
    array_items,
    array_queries,
    bit_fields,
    bit_operations,
    bit_search,
    bit_single,
    bounded_counters,
    client_control,
    client_list,
    client_tracking,
    clients,
    cluster_changes,
    cluster_connection,
    cluster_nodes,
    config,
    connection,
    databases,
    debug,
    delayed_nack,
    deletion_batches,
    dumping,
    expiry,
    expiry_batches,
    failover,
    following,
    functions,
    geo_members,
    geo_search,
    hash_batches,
    hash_counters,
    hash_expiry,
    hash_fields,
    hash_field_options,
    hash_import,
    hash_scans,
    hll_debug,
    hot_keys,
    hyperloglog,
    info,
    introspection,
    keys,
    latency,
    list_batches,
    list_block_moves,
    list_ends,
    list_middle,
    list_moves,
    memory,
    migrating,
    modules,
    monitor,
    objects,
    persistence,
    policy,
    pubsub,
    roles,
    scanning,
    scripting,
    server_admin,
    server_clock,
    set_algebra,
    set_batches,
    set_random,
    set_members,
    slowlog,
    sorting,
    set_command,
    string_conditions,
    string_batches,
    string_lcs,
    string_ranges,
    strings,
    syncing,
    transactions,
    waiting,
    xack,
    replay_batches,
    xack_batch,
    xadd,
    xadd_batch,
    xclaim,
    xdel,
    xgroup,
    xinfo,
    xpending,
    xrange,
    xread,
    xreadgroup,
    xreadgroup_batch,
    xsetid,
    zset_adding,
    zset_batches,
    zset_lookup,
    zset_combining,
    zset_popping,
    zset_range,
    zset_removing,
    zset_sampling,
)  # named, so that the imports are seen to serve something


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
