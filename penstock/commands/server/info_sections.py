"""The sections of INFO, each the text of its lines in Redis's order (8.6.3; fields added in 8.8 at the end).

The long ones are an f-string each: a list of fields would take four times as long (2,000 instructions a field).

Fields for features that Penstock does not have are 0, so that clients can parse them.
"""

from itertools import islice
from typing import Final

from penstock.commands.policies import policy_fields
from penstock.commands.replication import roles
from penstock.engine.context import Context
from penstock.engine.memory import value_sizes
from penstock.engine.table.client_compat import VALKEY_FIELDS, Compatibility
from penstock.engine.telemetry.client_memory import memory_of
from penstock.engine.telemetry.decimals import six_decimals, two_decimals
from penstock.engine.telemetry.statistics import RowStatistics
from penstock.engine.versions import BUILD, PENSTOCK_VERSION
from penstock.storage.keyspace import Database

Fields = list[tuple[str, str]]
Text = str  # lines of name:value, each ended by CR LF

DAY_S: Final = 86_400
LRU_CLOCK_BITS: Final = 24
SIZE_NAMES: Final = ("strings_sizes", "lists_items", "sets_items", "zsets_items", "hashes_items")  # TypeSizes.by_type
TTLS_SAMPLED: Final = 100
CLIENTS_SAMPLED: Final = 100  # at each end


def human(count: int) -> str:
    """A number of bytes with a unit, such as 811.89K."""
    if count < 1024:
        return f"{count}B"
    power = min((count.bit_length() - 1) // 10, 5)
    return two_decimals(count / (1 << 10 * power)) + "BKMGTP"[power]


def text_of(fields: Fields) -> Text:
    return "".join([f"{name}:{value}\r\n" for name, value in fields])


def fields_of(text: Text) -> Fields:
    lines = [line.partition(":") for line in text.split("\r\n") if line]
    return [(name, value) for name, _, value in lines]


def server(ctx: Context) -> Text:
    settings = ctx.settings
    identity = ctx.telemetry.identity
    uptime_s = max(ctx.now_ms - ctx.statistics.started_ms, 0) // 1000
    config_file = settings.file or ""
    supervised, hz = settings.text("supervised"), settings.number("hz")
    mode = "standalone" if ctx.cluster is None else "cluster"
    port = settings.number("port") or settings.number("tls-port")
    zone = f"availability_zone:{settings.text('availability-zone')}\r\n" if ctx.compatibility.is_valkey else ""
    listeners = "".join([f"listener{at}:{listener}\r\n" for at, listener in enumerate(_listeners(ctx))])
    return _versions(ctx.compatibility) + (
        "redis_git_sha1:00000000\r\n"
        "redis_git_dirty:0\r\n"
        "redis_build_id:0\r\n"
        f"redis_mode:{mode}\r\n"
        f"os:{identity.system}\r\n"
        f"arch_bits:{identity.bits}\r\n"
        "monotonic_clock:POSIX clock_gettime\r\n"
        f"multiplexing_api:{identity.event_loop}\r\n"
        "atomicvar_api:none\r\n"
        "gcc_version:0.0.0\r\n"
        f"process_id:{identity.process_id}\r\n"
        f"process_supervised:{supervised}\r\n"
        f"run_id:{identity.run_id}\r\n"
        f"tcp_port:{port}\r\n"
        f"server_time_usec:{ctx.now_us}\r\n"
        f"uptime_in_seconds:{uptime_s}\r\n"
        f"uptime_in_days:{uptime_s // DAY_S}\r\n"
        f"hz:{hz}\r\n"
        f"configured_hz:{hz}\r\n"
        f"lru_clock:{ctx.now_ms // 1000 % (1 << LRU_CLOCK_BITS)}\r\n"
        f"executable:{identity.executable}\r\n"
        f"config_file:{config_file}\r\n"
        "io_threads_active:0\r\n"
        f"{zone}{listeners}"
        f"penstock_version:{PENSTOCK_VERSION}\r\n"
        f"penstock_build:{BUILD}\r\n"
        f"python_version:{identity.interpreter}\r\n"
    )


def _versions(named: Compatibility) -> Text:
    text = f"redis_version:{named.redis_version}\r\n"
    if named.is_valkey:
        text += f"server_name:valkey\r\nvalkey_version:{named.version}\r\nvalkey_release_stage:ga\r\n"
    return text


def _listeners(ctx: Context) -> list[str]:
    settings = ctx.settings
    port, path, tls_port = settings.number("port"), settings.text("unixsocket"), settings.number("tls-port")
    binds = "".join([f"bind={address}," for address in settings.text("bind").split()])
    listeners: list[str] = []
    if port:
        listeners.append(f"name=tcp,{binds}port={port}")
    if path:
        listeners.append(f"name=unix,bind={path}")
    if tls_port:
        listeners.append(f"name=tls,{binds}port={tls_port}")
    return listeners


def clients(ctx: Context) -> Text:
    sessions = ctx.clients.sessions.values()
    blocked = [session.blocked for session in sessions if session.blocked is not None]
    awaited_keys = {(request.db_index, key) for request in blocked for key in request.keys}
    waking_on_loss = [request for request in blocked if request.wakes_on_loss]
    keys_not_to_be_lost = {(request.db_index, key) for request in waking_on_loss for key in request.keys}
    maxclients = ctx.settings.number("maxclients")
    subscriptions = ctx.subscriptions
    has_listeners = subscriptions.channels or subscriptions.patterns or subscriptions.shard_channels
    listening = [session for session in sessions if session.is_subscribed] if has_listeners else []
    watching = [session for session in sessions if session.watched] if ctx.clients.watchers else []
    return (
        f"connected_clients:{len(ctx.clients.listed()) - len(ctx.replication.replicas)}\r\n"
        "cluster_connections:0\r\n"
        f"maxclients:{maxclients}\r\n"
        f"client_recent_max_input_buffer:{ctx.statistics.largest_query_buffer}\r\n"
        f"client_recent_max_output_buffer:{ctx.statistics.largest_output_buffer}\r\n"
        f"blocked_clients:{len(blocked)}\r\n"
        f"tracking_clients:{len(ctx.clients.tracking.sessions)}\r\n"
        f"pubsub_clients:{len(listening)}\r\n"
        f"watching_clients:{len(watching)}\r\n"
        f"clients_in_timeout_table:{sum(bool(request.deadline_ms) for request in blocked)}\r\n"
        f"total_watched_keys:{len(ctx.clients.watchers)}\r\n"
        f"total_blocking_keys:{len(awaited_keys)}\r\n"
        f"total_blocking_keys_on_nokey:{len(keys_not_to_be_lost)}\r\n"
    )


def memory(ctx: Context) -> Text:
    settings = ctx.settings
    used, resident = ctx.memory.read(), ctx.memory.resident
    identity = ctx.telemetry.identity
    peak, total = identity.usage.peak(), identity.usage.total()
    dataset = value_sizes.dataset_bytes(ctx.keyspace)
    startup = identity.startup_bytes
    maximum = settings.number("maxmemory")
    policy = settings.text("maxmemory-policy")
    return (
        f"used_memory:{used}\r\n"
        f"used_memory_human:{human(used)}\r\n"
        f"used_memory_rss:{resident}\r\n"
        f"used_memory_rss_human:{human(resident)}\r\n"
        f"used_memory_peak:{peak}\r\n"
        f"used_memory_peak_human:{human(peak)}\r\n"
        f"used_memory_peak_time:{ctx.memory.peak_s}\r\n"
        f"used_memory_peak_perc:{_percent(used, peak)}\r\n"
        f"used_memory_overhead:{max(used - dataset, 0)}\r\n"
        f"used_memory_startup:{startup}\r\n"
        f"used_memory_dataset:{dataset}\r\n"
        f"used_memory_dataset_perc:{_percent(dataset, max(used - startup, dataset))}\r\n"
        f"allocator_allocated:{used}\r\n"
        f"allocator_active:{resident}\r\n"
        f"allocator_resident:{resident}\r\n"
        "allocator_muzzy:0\r\n"
        f"total_system_memory:{total}\r\n"
        f"total_system_memory_human:{human(total)}\r\n" + _script_memory(ctx) + f"maxmemory:{maximum}\r\n"
        f"maxmemory_human:{human(maximum)}\r\n"
        f"maxmemory_policy:{policy}\r\n"
        "allocator_frag_ratio:1.00\r\n"
        "allocator_frag_bytes:0\r\n"
        "allocator_rss_ratio:1.00\r\n"
        "allocator_rss_bytes:0\r\n"
        "rss_overhead_ratio:1.00\r\n"
        "rss_overhead_bytes:0\r\n"
        f"mem_fragmentation_ratio:{two_decimals(resident / used if used else 1.0)}\r\n"
        "mem_fragmentation_bytes:0\r\n"
        "mem_not_counted_for_evict:0\r\n"
        f"mem_replication_backlog:{ctx.replication.kept_bytes}\r\n"
        f"mem_total_replication_buffers:{ctx.replication.kept_bytes}\r\n"
        "mem_replica_full_sync_buffer:0\r\n"
        "mem_clients_slaves:0\r\n"
        f"mem_clients_normal:{_client_memory(ctx)}\r\n"
        "mem_cluster_slot_migration_output_buffer:0\r\n"
        "mem_cluster_slot_migration_input_buffer:0\r\n"
        "mem_cluster_slot_migration_input_buffer_peak:0\r\n"
        "mem_cluster_links:0\r\n"
        "mem_aof_buffer:0\r\n"
        "mem_allocator:python\r\n"
        "mem_overhead_db_hashtable_rehashing:0\r\n"
        "active_defrag_running:0\r\n"
        f"lazyfree_pending_objects:{ctx.lazy_free.pending()}\r\n"
        f"lazyfreed_objects:{ctx.statistics.lazyfreed}\r\n"
        "used_memory_hash_templates:0\r\n"
    )


def _client_memory(ctx: Context) -> int:
    """The memory of clients; of many, an estimate from the first and the last of them. O(CLIENTS_SAMPLED)."""
    sessions = ctx.clients.sessions.values()
    sampled = list(islice(sessions, CLIENTS_SAMPLED))
    if len(sessions) > CLIENTS_SAMPLED:
        sampled += islice(reversed(sessions), min(len(sessions) - CLIENTS_SAMPLED, CLIENTS_SAMPLED))
    size = sum([memory_of(session) for session in sampled if not session.is_replica])
    return size * len(sessions) // max(len(sampled), 1)


def _script_memory(ctx: Context) -> Text:
    """Of INFO memory: what scripts and functions take."""
    scripts = ctx.scripts
    of_lua = scripts.memory()
    of_lua_text = human(of_lua)
    return (
        f"used_memory_lua:{of_lua}\r\n"
        f"used_memory_vm_eval:{of_lua}\r\n"
        f"used_memory_lua_human:{of_lua_text}\r\n"
        "used_memory_scripts_eval:0\r\n"
        f"number_of_cached_scripts:{len(scripts.cached)}\r\n"
        f"number_of_functions:{len(scripts.libraries.functions)}\r\n"
        f"number_of_libraries:{len(scripts.libraries.by_name)}\r\n"
        "used_memory_vm_functions:0\r\n"
        f"used_memory_vm_total:{of_lua}\r\n"
        f"used_memory_vm_total_human:{of_lua_text}\r\n"
        "used_memory_functions:0\r\n"
        "used_memory_scripts:0\r\n"
        "used_memory_scripts_human:0B\r\n"
    )


def _percent(part: int, whole: int) -> str:
    return _share(part, whole) + "%"


def _share(part: int, whole: int) -> str:
    """Of a hundred."""
    return two_decimals(100 * part / whole if whole else 0.0)


def persistence(ctx: Context) -> Text:
    return ctx.persistence.info()


def threads(ctx: Context) -> Text:
    counted = ctx.statistics
    return f"io_thread_0:clients={len(ctx.clients.sessions)},reads={counted.reads},writes={counted.writes}\r\n"


def stats(ctx: Context) -> Text:
    ctx.statistics.sample(ctx.now_ms)
    text = _traffic(ctx) + _key_events(ctx) + _tables(ctx) + _requests(ctx) + _times(ctx)
    if ctx.policies.used:
        text += "".join([f"{name}:{count}\r\n" for name, count in policy_fields.counters(ctx).items()])
    return text


def _traffic(ctx: Context) -> Text:
    """Of INFO stats: connections, requests, bytes, and what replicas asked for."""
    counted = ctx.statistics
    operations, input_rate, output_rate = counted.rates()
    return (
        f"total_connections_received:{counted.connections}\r\n"
        f"total_commands_processed:{counted.commands}\r\n"
        f"instantaneous_ops_per_sec:{int(operations)}\r\n"
        f"total_net_input_bytes:{counted.input_bytes}\r\n"
        f"total_net_output_bytes:{counted.output_bytes}\r\n"
        "total_net_repl_input_bytes:0\r\n"
        "total_net_repl_output_bytes:0\r\n"
        f"instantaneous_input_kbps:{two_decimals(input_rate / 1024)}\r\n"
        f"instantaneous_output_kbps:{two_decimals(output_rate / 1024)}\r\n"
        "instantaneous_input_repl_kbps:0.00\r\n"
        "instantaneous_output_repl_kbps:0.00\r\n"
        f"rejected_connections:{counted.rejected_connections}\r\n"
        f"sync_full:{ctx.replication.full_syncs}\r\n"
        f"sync_partial_ok:{ctx.replication.partial_syncs}\r\n"
        f"sync_partial_err:{ctx.replication.partial_syncs_refused}\r\n"
    )


def _key_events(ctx: Context) -> Text:
    """Of INFO stats: what expired or was evicted, hits and misses."""
    counted = ctx.statistics
    return (
        f"expired_subkeys:{counted.expired_subkeys}\r\n"
        f"expired_subkeys_active:{counted.expired_subkeys_active}\r\n"
        f"expired_keys:{counted.expired}\r\n"
        f"expired_keys_active:{counted.expired_active}\r\n"
        f"expired_stale_perc:{_stale_percent(ctx)}\r\n"
        f"expired_time_cap_reached_count:{counted.expiry_cuts}\r\n"
        f"expire_cycle_cpu_milliseconds:{counted.expiry_usec // 1000}\r\n"
        f"evicted_keys:{counted.evicted}\r\n"
        f"evicted_clients:{counted.evicted_clients}\r\n"
        f"evicted_scripts:{ctx.scripts.evicted}\r\n"
        "total_eviction_exceeded_time:0\r\n"
        "current_eviction_exceeded_time:0\r\n"
        f"keyspace_hits:{counted.hits}\r\n"
        f"keyspace_misses:{counted.misses}\r\n"
    )


def _tables(ctx: Context) -> Text:
    """Of INFO stats: channels, forks, and what Redis has besides."""
    return (
        f"pubsub_channels:{len(ctx.subscriptions.channels)}\r\n"
        f"pubsub_patterns:{len(ctx.subscriptions.patterns)}\r\n"
        f"pubsubshard_channels:{len(ctx.subscriptions.shard_channels)}\r\n"
        f"latest_fork_usec:{ctx.persistence.fork_us}\r\n"
        f"total_forks:{ctx.persistence.forks}\r\n"
        "migrate_cached_sockets:0\r\n"
        "slave_expires_tracked_keys:0\r\n"
        "active_defrag_hits:0\r\n"
        "active_defrag_misses:0\r\n"
        "active_defrag_key_hits:0\r\n"
        "active_defrag_key_misses:0\r\n"
        "total_active_defrag_time:0\r\n"
        "current_active_defrag_time:0\r\n"
    )


def _requests(ctx: Context) -> Text:
    """Of INFO stats: tracked keys, errors, reads and writes, limits that closed clients."""
    counted = ctx.statistics
    return (
        f"tracking_total_keys:{len(ctx.clients.tracking.read)}\r\n"
        f"tracking_total_items:{ctx.clients.tracking.read.pairs}\r\n"
        f"tracking_total_prefixes:{len(ctx.clients.tracking.prefixes)}\r\n"
        "unexpected_error_replies:0\r\n"
        f"total_error_replies:{counted.error_replies}\r\n"
        "dump_payload_sanitizations:0\r\n"
        f"total_reads_processed:{counted.reads}\r\n"
        f"total_writes_processed:{counted.writes}\r\n"
        "io_threaded_reads_processed:0\r\n"
        "io_threaded_writes_processed:0\r\n"
        "io_threaded_total_prefetch_batches:0\r\n"
        "io_threaded_total_prefetch_entries:0\r\n"
        f"client_query_buffer_limit_disconnections:{counted.query_buffer_disconnections}\r\n"
        f"client_output_buffer_limit_disconnections:{counted.output_buffer_disconnections}\r\n"
        "reply_buffer_shrinks:0\r\n"
        "reply_buffer_expands:0\r\n"
    )


def _times(ctx: Context) -> Text:
    """Of INFO stats: what requests took, refusals of users, slow requests, requests that came together."""
    counted = ctx.statistics
    usec = slow_calls = slow_usec = slow_max_usec = 0
    for row in counted.rows.values():
        usec += row.usec
        slow_calls += row.slow_calls
        slow_usec += row.slow_usec
        slow_max_usec = max(slow_max_usec, row.slow_max_usec)
    a_batch = two_decimals(counted.commands / counted.reads if counted.reads else 0.0)
    return (
        "eventloop_cycles:0\r\n"
        "eventloop_duration_sum:0\r\n"
        f"eventloop_duration_cmd_sum:{usec}\r\n"
        "instantaneous_eventloop_cycles_per_sec:0\r\n"
        "instantaneous_eventloop_duration_usec:0\r\n"
        f"acl_access_denied_auth:{counted.denied_auth}\r\n"
        f"acl_access_denied_cmd:{counted.denied_command}\r\n"
        f"acl_access_denied_key:{counted.denied_key}\r\n"
        f"acl_access_denied_channel:{counted.denied_channel}\r\n"
        f"acl_access_denied_tls_cert:{counted.denied_certificate}\r\n"
        + (f"acl_access_denied_db:{counted.denied_database}\r\n" if ctx.compatibility.is_valkey else "")
        + f"slowlog_commands_count:{slow_calls}\r\n"
        f"slowlog_commands_time_ms_sum:{slow_usec // 1000}\r\n"
        f"slowlog_commands_time_ms_max:{slow_max_usec // 1000}\r\n"
        f"total_client_processing_events:{counted.reads}\r\n"
        "eventloop_cycles_with_clients_processing:0\r\n"
        f"commands_per_parse_batch_sum:{counted.commands}\r\n"
        f"commands_per_parse_batch_cnt:{counted.reads}\r\n"
        f"commands_per_parse_batch_avg:{a_batch}\r\n"
        "hash_templates:0\r\n"
        "hash_template_keys:0\r\n"
        f"blessed_keys:{sum([len(db.blessed) for db in ctx.keyspace.databases])}\r\n"
    )


def _stale_percent(ctx: Context) -> str:
    """How many of the keys with a time of expiry are overdue, and still there. O(log n)."""
    overdue = expiring = 0
    for db in ctx.keyspace.databases:
        if db.expires:
            overdue += db.expiries.count_overdue(ctx.now_ms)
            expiring += len(db.expires)
    return _share(overdue, expiring)


def replication(ctx: Context) -> Text:
    return roles.info(ctx)


def cpu(ctx: Context) -> Text:
    times = ctx.telemetry.identity.usage.cpu()
    system, user = six_decimals(times.system), six_decimals(times.user)
    return (
        f"used_cpu_sys:{system}\r\n"
        f"used_cpu_user:{user}\r\n"
        f"used_cpu_sys_children:{six_decimals(times.children_system)}\r\n"
        f"used_cpu_user_children:{six_decimals(times.children_user)}\r\n"
        f"used_cpu_sys_main_thread:{system}\r\n"
        f"used_cpu_user_main_thread:{user}\r\n"
    )


def hotkeys(ctx: Context) -> Text:
    held = ctx.telemetry.hot_keys
    if held is None:
        return ""
    is_active = "1" if held.is_active(ctx.now_ms) else "0"
    return text_of([("hotkeys-tracking-active", is_active), ("hotkeys-cmd-cpu-time", f"{held.all_usec}")])


def modules(ctx: Context) -> Text:
    return ""


def commandstats(ctx: Context) -> Text:
    return text_of(
        [
            (f"cmdstat_{name.lower()}", _calls(row))
            for name, row in ctx.statistics.rows.items()
            if row.calls or row.rejected
        ]
    )


def _calls(row: RowStatistics) -> str:
    each = row.usec / row.calls if row.calls else 0
    text = (
        f"calls={row.calls},usec={row.usec},usec_per_call={each:.2f}"
        f",rejected_calls={row.rejected},failed_calls={row.failed}"
    )
    if row.slow_calls:
        text += (
            f",slowlog_count={row.slow_calls},slowlog_time_ms_sum={row.slow_usec // 1000}"
            f",slowlog_time_ms_max={row.slow_max_usec // 1000}"
        )
    return text


def errorstats(ctx: Context) -> Text:
    errors = ctx.statistics.errors
    return text_of(
        [(f"errorstat_{code.decode(errors='surrogateescape')}", f"count={errors[code]}") for code in sorted(errors)]
    )


def latencystats(ctx: Context) -> Text:
    settings = ctx.settings
    if not settings.yes("latency-tracking"):
        return ""
    percents = settings.text("latency-tracking-info-percentiles").split()
    return text_of(
        [
            (
                f"latency_percentiles_usec_{name.lower()}",
                ",".join([f"p{percent}={row.times.percentile(float(percent)):.3f}" for percent in percents]),
            )
            for name, row in ctx.statistics.rows.items()
            if row.calls
        ]
    )


def cluster(ctx: Context) -> Text:
    return "cluster_enabled:0\r\n" if ctx.cluster is None else "cluster_enabled:1\r\n"


def keyspace(ctx: Context) -> Text:
    return text_of(
        [
            (f"db{index}", f"keys={len(db)},expires={len(db.expires)},{_expiry_of(ctx, db)}")
            for index, db in enumerate(ctx.keyspace.databases)
            if len(db)
        ]
    )


def _expiry_of(ctx: Context, db: Database) -> str:
    """The last field's name is Redis's since 7.4, or Valkey's (9.1.2)."""
    text = f"avg_ttl={mean_ttl(db, ctx.now_ms)}"
    name = "subexpiry"
    if ctx.hides(name.encode()):
        if not ctx.compatibility.is_valkey:
            return text
        name = VALKEY_FIELDS[name]
    return f"{text},{name}={len(db.parts_due)}"


def mean_ttl(db: Database, now_ms: int) -> int:
    """The mean time to live in ms, of a sample from the whole database."""
    lives = [max(db.expires[key] - now_ms, 0) for _, key in db.expiries.order.sample(TTLS_SAMPLED)]
    return sum(lives) // len(lives) if lives else 0


def keysizes(ctx: Context) -> Text:
    """How many values there are of each size, by type and powers of two."""
    fields = []
    for index, db in enumerate(ctx.keyspace.databases):
        if not len(db):
            continue
        for name, counts in zip(SIZE_NAMES, db.values.sizes.by_type(), strict=True):
            text = ",".join([f"{_power(bits)}={count}" for bits, count in enumerate(counts) if count])
            if text:
                fields.append((f"db{index}_distrib_{name}", text))
    return text_of(fields)


def _power(bits: int) -> str:
    """The power of two at which numbers with so many bits start: 4, 1K, 64K, 2M."""
    size = 1 << bits - 1 if bits else 0
    for unit in ("", "K", "M", "G", "T"):
        if size < 1024:
            return f"{size}{unit}"
        size //= 1024
    return f"{size}P"
