"""The sections of INFO, each a list of (field, value) in Redis's order (8.6.3; fields added in 8.8 at the end).

Fields for features that Penstock does not have are 0, so that clients can parse them.
"""

from typing import Final

from penstock.commands.policies import policy_fields
from penstock.commands.replication import roles
from penstock.engine.context import Context
from penstock.engine.memory import process_memory, value_sizes
from penstock.engine.table.client_compat import Compatibility
from penstock.engine.telemetry.client_memory import memory_of
from penstock.engine.telemetry.statistics import RowStatistics
from penstock.engine.versions import BUILD, PENSTOCK_VERSION
from penstock.storage.keyspace import Database, type_name
from penstock.storage.streams.stream import Stream
from penstock.storage.types.arrays import Array

Fields = list[tuple[str, str]]

DAY_S: Final = 86_400
LRU_CLOCK_BITS: Final = 24
MOST_KEYS_MEASURED: Final = 10_000  # keysizes visits every key; it leaves out larger databases
SIZE_NAMES: Final = {  # keysizes: what is counted of each type, in Redis's order
    b"string": "strings_sizes",
    b"list": "lists_items",
    b"set": "sets_items",
    b"zset": "zsets_items",
    b"hash": "hashes_items",
}
TTLS_SAMPLED: Final = 100


def human(count: int) -> str:
    """A number of bytes with a unit, such as 811.89K."""
    if count < 1024:
        return f"{count}B"
    power = min((count.bit_length() - 1) // 10, 5)
    return f"{count / 1024**power:.2f}{'BKMGTP'[power]}"


def _pairs(**fields: int | str) -> Fields:
    return [(name, str(value)) for name, value in fields.items()]


def server(ctx: Context) -> Fields:
    engine, settings = ctx.engine, ctx.engine.settings
    identity = engine.identity
    uptime_s = max(ctx.now_ms - engine.statistics.started_ms, 0) // 1000
    fields = _versions(engine.compatibility) + _pairs(
        redis_git_sha1="00000000",
        redis_git_dirty=0,
        redis_build_id="0",
        redis_mode="standalone" if ctx.engine.cluster is None else "cluster",
        os=identity.system,
        arch_bits=identity.bits,
        monotonic_clock="POSIX clock_gettime",
        multiplexing_api=identity.event_loop,
        atomicvar_api="none",
        gcc_version="0.0.0",
        process_id=identity.process_id,
        process_supervised=settings.text("supervised"),
        run_id=identity.run_id,
        tcp_port=settings.number("port") or settings.number("tls-port"),
        server_time_usec=ctx.now_us,
        uptime_in_seconds=uptime_s,
        uptime_in_days=uptime_s // DAY_S,
        hz=settings.number("hz"),
        configured_hz=settings.number("hz"),
        lru_clock=ctx.now_ms // 1000 % (1 << LRU_CLOCK_BITS),
        executable=identity.executable,
        config_file=settings.file or "",
        io_threads_active=0,
    )
    fields += [(f"listener{at}", listener) for at, listener in enumerate(_listeners(ctx))]
    return fields + _pairs(
        penstock_version=PENSTOCK_VERSION,
        penstock_build=BUILD,
        python_version=identity.interpreter,
    )


def _versions(named: Compatibility) -> Fields:
    fields = _pairs(redis_version=named.redis_version)
    if named.is_valkey:
        fields += _pairs(server_name="valkey", valkey_version=named.version, valkey_release_stage="ga")
    return fields


def _listeners(ctx: Context) -> list[str]:
    settings = ctx.engine.settings
    port, path, tls_port = settings.number("port"), settings.text("unixsocket"), settings.number("tls-port")
    binds = "".join([f"bind={address}," for address in settings.text("bind").split()])
    return [
        *([f"name=tcp,{binds}port={port}"] if port else []),
        *([f"name=unix,bind={path}"] if path else []),
        *([f"name=tls,{binds}port={tls_port}"] if tls_port else []),
    ]


def clients(ctx: Context) -> Fields:
    engine = ctx.engine
    sessions = engine.sessions.values()
    blocked = [session.blocked for session in sessions if session.blocked is not None]
    return _pairs(
        connected_clients=len(sessions) - len(engine.replication.replicas),
        cluster_connections=0,
        maxclients=engine.settings.number("maxclients"),
        client_recent_max_input_buffer=engine.statistics.largest_query_buffer,
        client_recent_max_output_buffer=engine.statistics.largest_output_buffer,
        blocked_clients=len(blocked),
        tracking_clients=len(engine.tracking.sessions),
        pubsub_clients=sum(session.is_subscribed for session in sessions),
        watching_clients=sum(bool(session.watched) for session in sessions),
        clients_in_timeout_table=sum(bool(request.deadline_ms) for request in blocked),
        total_watched_keys=len(engine.watchers),
        total_blocking_keys=len({(request.db_index, key) for request in blocked for key in request.keys}),
        total_blocking_keys_on_nokey=len(
            {
                (blocked_request.db_index, key)
                for blocked_request in blocked
                if blocked_request.heeds_loss
                for key in blocked_request.keys
            }
        ),
    )


def memory(ctx: Context) -> Fields:
    engine, settings = ctx.engine, ctx.engine.settings
    used, resident = engine.memory.read(), process_memory.resident_bytes()
    peak, total = process_memory.peak_bytes(), process_memory.system_bytes()
    dataset = value_sizes.dataset_bytes(engine.keyspace)
    startup = engine.identity.startup_bytes
    maximum = settings.number("maxmemory")
    scripts = engine.scripts
    return _pairs(
        used_memory=used,
        used_memory_human=human(used),
        used_memory_rss=resident,
        used_memory_rss_human=human(resident),
        used_memory_peak=peak,
        used_memory_peak_human=human(peak),
        used_memory_peak_time=0,
        used_memory_peak_perc=_percent(used, peak),
        used_memory_overhead=max(used - dataset, 0),
        used_memory_startup=startup,
        used_memory_dataset=dataset,
        used_memory_dataset_perc=_percent(dataset, max(used - startup, dataset)),
        allocator_allocated=used,
        allocator_active=resident,
        allocator_resident=resident,
        allocator_muzzy=0,
        total_system_memory=total,
        total_system_memory_human=human(total),
        used_memory_lua=scripts.memory(),
        used_memory_vm_eval=scripts.memory(),
        used_memory_lua_human=human(scripts.memory()),
        used_memory_scripts_eval=0,
        number_of_cached_scripts=len(scripts.cached),
        number_of_functions=len(scripts.libraries.functions),
        number_of_libraries=len(scripts.libraries.by_name),
        used_memory_vm_functions=0,
        used_memory_vm_total=scripts.memory(),
        used_memory_vm_total_human=human(scripts.memory()),
        used_memory_functions=0,
        used_memory_scripts=0,
        used_memory_scripts_human="0B",
        maxmemory=maximum,
        maxmemory_human=human(maximum),
        maxmemory_policy=settings.text("maxmemory-policy"),
        allocator_frag_ratio="1.00",
        allocator_frag_bytes=0,
        allocator_rss_ratio="1.00",
        allocator_rss_bytes=0,
        rss_overhead_ratio="1.00",
        rss_overhead_bytes=0,
        mem_fragmentation_ratio=f"{resident / used if used else 1:.2f}",
        mem_fragmentation_bytes=0,
        mem_not_counted_for_evict=0,
        mem_replication_backlog=ctx.engine.replication.kept_bytes,
        mem_total_replication_buffers=ctx.engine.replication.kept_bytes,
        mem_replica_full_sync_buffer=0,
        mem_clients_slaves=0,
        mem_clients_normal=sum(memory_of(session) for session in engine.sessions.values() if not session.is_replica),
        mem_cluster_slot_migration_output_buffer=0,
        mem_cluster_slot_migration_input_buffer=0,
        mem_cluster_slot_migration_input_buffer_peak=0,
        mem_cluster_links=0,
        mem_aof_buffer=0,
        mem_allocator="python",
        mem_overhead_db_hashtable_rehashing=0,
        active_defrag_running=0,
        lazyfree_pending_objects=engine.lazy_free.pending(),
        lazyfreed_objects=engine.statistics.lazyfreed,
        used_memory_hash_templates=0,
    )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole if whole else 0:.2f}%"


def persistence(ctx: Context) -> Fields:
    return ctx.engine.persistence.fields()


def threads(ctx: Context) -> Fields:
    counted = ctx.engine.statistics
    return [("io_thread_0", f"clients={len(ctx.engine.sessions)},reads={counted.reads},writes={counted.writes}")]


def stats(ctx: Context) -> Fields:
    counted = ctx.engine.statistics
    counted.sample(ctx.now_ms)
    operations, input_rate, output_rate = counted.rates()
    found = _pairs(
        total_connections_received=counted.connections,
        total_commands_processed=counted.commands,
        instantaneous_ops_per_sec=int(operations),
        total_net_input_bytes=counted.input_bytes,
        total_net_output_bytes=counted.output_bytes,
        total_net_repl_input_bytes=0,
        total_net_repl_output_bytes=0,
        instantaneous_input_kbps=f"{input_rate / 1024:.2f}",
        instantaneous_output_kbps=f"{output_rate / 1024:.2f}",
        instantaneous_input_repl_kbps="0.00",
        instantaneous_output_repl_kbps="0.00",
        rejected_connections=counted.rejected_connections,
        sync_full=ctx.engine.replication.full_syncs,
        sync_partial_ok=ctx.engine.replication.partial_syncs,
        sync_partial_err=ctx.engine.replication.partial_syncs_refused,
        expired_subkeys=counted.expired_subkeys,
        expired_subkeys_active=counted.expired_subkeys_active,
        expired_keys=counted.expired,
        expired_keys_active=counted.expired_active,
        expired_stale_perc=_stale_percent(ctx),
        expired_time_cap_reached_count=counted.expiry_cuts,
        expire_cycle_cpu_milliseconds=counted.expiry_usec // 1000,
        evicted_keys=counted.evicted,
        evicted_clients=counted.evicted_clients,
        evicted_scripts=ctx.engine.scripts.evicted,
        total_eviction_exceeded_time=0,
        current_eviction_exceeded_time=0,
        keyspace_hits=counted.hits,
        keyspace_misses=counted.misses,
        pubsub_channels=len(ctx.engine.subscriptions.channels),
        pubsub_patterns=len(ctx.engine.subscriptions.patterns),
        pubsubshard_channels=len(ctx.engine.subscriptions.shard_channels),
        latest_fork_usec=ctx.engine.persistence.fork_us,
        total_forks=ctx.engine.persistence.forks,
        migrate_cached_sockets=0,
        slave_expires_tracked_keys=0,
        active_defrag_hits=0,
        active_defrag_misses=0,
        active_defrag_key_hits=0,
        active_defrag_key_misses=0,
        total_active_defrag_time=0,
        current_active_defrag_time=0,
        tracking_total_keys=len(ctx.engine.tracking.read),
        tracking_total_items=ctx.engine.tracking.read.pairs,
        tracking_total_prefixes=len(ctx.engine.tracking.prefixes),
        unexpected_error_replies=0,
        total_error_replies=counted.error_replies,
        dump_payload_sanitizations=0,
        total_reads_processed=counted.reads,
        total_writes_processed=counted.writes,
        io_threaded_reads_processed=0,
        io_threaded_writes_processed=0,
        io_threaded_total_prefetch_batches=0,
        io_threaded_total_prefetch_entries=0,
        client_query_buffer_limit_disconnections=counted.query_buffer_disconnections,
        client_output_buffer_limit_disconnections=counted.output_buffer_disconnections,
        reply_buffer_shrinks=0,
        reply_buffer_expands=0,
        eventloop_cycles=0,
        eventloop_duration_sum=0,
        eventloop_duration_cmd_sum=sum(row.usec for row in counted.rows.values()),
        instantaneous_eventloop_cycles_per_sec=0,
        instantaneous_eventloop_duration_usec=0,
        acl_access_denied_auth=counted.denied_auth,
        acl_access_denied_cmd=counted.denied_command,
        acl_access_denied_key=counted.denied_key,
        acl_access_denied_channel=counted.denied_channel,
        acl_access_denied_tls_cert=counted.denied_certificate,
        slowlog_commands_count=sum(row.slow_calls for row in counted.rows.values()),
        slowlog_commands_time_ms_sum=sum(row.slow_usec for row in counted.rows.values()) // 1000,
        slowlog_commands_time_ms_max=max((row.slow_max_usec for row in counted.rows.values()), default=0) // 1000,
        total_client_processing_events=counted.reads,
        eventloop_cycles_with_clients_processing=0,
        commands_per_parse_batch_sum=counted.commands,
        commands_per_parse_batch_cnt=counted.reads,
        commands_per_parse_batch_avg=f"{counted.commands / counted.reads if counted.reads else 0:.2f}",
        hash_templates=0,
        hash_template_keys=0,
    )
    return found + _pairs(**policy_fields.counters(ctx.engine)) if ctx.engine.policies.used else found


def _stale_percent(ctx: Context) -> str:
    """How many of the keys with a time of expiry are overdue, and still there. O(log n)."""
    databases = ctx.engine.keyspace.databases
    overdue = sum([db.expiries.count_overdue(ctx.now_ms) for db in databases])
    return _percent(overdue, sum([len(db.expires) for db in databases])).removesuffix("%")


def replication(ctx: Context) -> Fields:
    return roles.fields(ctx)


def cpu(ctx: Context) -> Fields:
    times = process_memory.CpuTimes()
    return [
        ("used_cpu_sys", f"{times.system:.6f}"),
        ("used_cpu_user", f"{times.user:.6f}"),
        ("used_cpu_sys_children", f"{times.children_system:.6f}"),
        ("used_cpu_user_children", f"{times.children_user:.6f}"),
        ("used_cpu_sys_main_thread", f"{times.system:.6f}"),
        ("used_cpu_user_main_thread", f"{times.user:.6f}"),
    ]


def hotkeys(ctx: Context) -> Fields:
    held = ctx.engine.hot_keys
    if held is None:
        return []
    is_active = "1" if held.is_active(ctx.now_ms) else "0"
    return [("hotkeys-tracking-active", is_active), ("hotkeys-cmd-cpu-time", f"{held.all_usec}")]


def modules(ctx: Context) -> Fields:
    return []


def commandstats(ctx: Context) -> Fields:
    return [
        (f"cmdstat_{name.lower()}", _calls(row))
        for name, row in ctx.engine.statistics.rows.items()
        if row.calls or row.rejected
    ]


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


def errorstats(ctx: Context) -> Fields:
    errors = ctx.engine.statistics.errors
    return [(f"errorstat_{code.decode(errors='surrogateescape')}", f"count={errors[code]}") for code in sorted(errors)]


def latencystats(ctx: Context) -> Fields:
    settings = ctx.engine.settings
    if not settings.yes("latency-tracking"):
        return []
    percents = settings.text("latency-tracking-info-percentiles").split()
    return [
        (
            f"latency_percentiles_usec_{name.lower()}",
            ",".join([f"p{percent}={row.times.percentile(float(percent)):.3f}" for percent in percents]),
        )
        for name, row in ctx.engine.statistics.rows.items()
        if row.calls
    ]


def cluster(ctx: Context) -> Fields:
    return [("cluster_enabled", "0" if ctx.engine.cluster is None else "1")]


def keyspace(ctx: Context) -> Fields:
    return [
        (f"db{index}", f"keys={len(db)},expires={len(db.expires)},{_expiry_of(db, ctx.now_ms)}")
        for index, db in enumerate(ctx.engine.keyspace.databases)
        if len(db)
    ]


def _expiry_of(db: Database, now_ms: int) -> str:
    return f"avg_ttl={mean_ttl(db, now_ms)},subexpiry={len(db.fields_due)}"


def mean_ttl(db: Database, now_ms: int) -> int:
    """The mean time to live in ms, of a sample from the whole database."""
    step = max(len(db.expires) // TTLS_SAMPLED, 1)
    lives = [max(db.expires[key] - now_ms, 0) for _, key in db.expiries.order.each(step)]
    return sum(lives) // len(lives) if lives else 0


def keysizes(ctx: Context) -> Fields:
    """How many values there are of each size, by type and powers of two. Databases with very many keys are left out."""
    fields = []
    for index, db in enumerate(ctx.engine.keyspace.databases):
        if len(db) > MOST_KEYS_MEASURED:
            continue
        for name, counts in _counted_sizes(db).items():
            text = ",".join([f"{_power(bits)}={counts[bits]}" for bits in sorted(counts)])
            if text:
                fields.append((f"db{index}_distrib_{name}", text))
    return fields


def _counted_sizes(db: Database) -> dict[str, dict[int, int]]:
    """By the names of Redis: how many values have a size of so many bits. Streams and arrays are not told. O(keys)."""
    sizes: dict[str, dict[int, int]] = {name: {} for name in SIZE_NAMES.values()}
    for value in db.values.values():
        if isinstance(value, Stream | Array):
            continue
        counts = sizes[SIZE_NAMES[type_name(value)]]
        bits = len(value).bit_length()
        counts[bits] = counts.get(bits, 0) + 1
    return sizes


def _power(bits: int) -> str:
    """The power of two at which numbers with so many bits start: 4, 1K, 64K, 2M."""
    size = 1 << bits - 1 if bits else 0
    for unit in ("", "K", "M", "G", "T"):
        if size < 1024:
            return f"{size}{unit}"
        size //= 1024
    return f"{size}P"
