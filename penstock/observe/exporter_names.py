"""The names that redis_exporter gives to the fields of INFO, so that dashboards made for it work.

Taken from the output of redis_exporter 1.45 beside Penstock, and for newer fields from its documentation.
"""

from typing import Final

# Fields of INFO; behind `=` the metric, without `redis_`, if its name is another. With _total: a counter, else a gauge.
FIELDS: Final = """
    uptime_in_seconds process_id io_threads_active
    connected_clients blocked_clients tracking_clients pubsub_clients watching_clients clients_in_timeout_table
    client_recent_max_input_buffer=client_recent_max_input_buffer_bytes
    client_recent_max_output_buffer=client_recent_max_output_buffer_bytes cluster_connections total_watched_keys
    total_blocking_keys total_blocking_keys_on_nokey maxclients=max_clients
    allocator_active=allocator_active_bytes allocator_allocated=allocator_allocated_bytes
    allocator_resident=allocator_resident_bytes allocator_frag_bytes allocator_frag_ratio allocator_rss_bytes
    allocator_rss_ratio used_memory=memory_used_bytes used_memory_rss=memory_used_rss_bytes
    used_memory_peak=memory_used_peak_bytes used_memory_overhead=memory_used_overhead_bytes
    used_memory_startup=memory_used_startup_bytes used_memory_dataset=memory_used_dataset_bytes
    used_memory_lua=memory_used_lua_bytes used_memory_scripts=memory_used_scripts_bytes maxmemory=memory_max_bytes
    mem_clients_normal mem_clients_slaves mem_fragmentation_bytes mem_fragmentation_ratio
    mem_not_counted_for_evict=mem_not_counted_for_eviction_bytes lazyfree_pending_objects number_of_cached_scripts
    number_of_functions number_of_libraries active_defrag_running
    loading=loading_dump_file rdb_changes_since_last_save rdb_bgsave_in_progress
    rdb_last_save_time=rdb_last_save_timestamp_seconds rdb_last_bgsave_status
    rdb_last_bgsave_time_sec=rdb_last_bgsave_duration_sec
    rdb_current_bgsave_time_sec=rdb_current_bgsave_duration_sec rdb_last_cow_size=rdb_last_cow_size_bytes
    rdb_saves=rdb_saves_total aof_enabled aof_rewrite_in_progress aof_rewrite_scheduled
    aof_last_rewrite_time_sec=aof_last_rewrite_duration_sec
    aof_current_rewrite_time_sec=aof_current_rewrite_duration_sec aof_last_bgrewrite_status aof_last_write_status
    aof_last_cow_size=aof_last_cow_size_bytes aof_current_size=aof_current_size_bytes
    aof_base_size=aof_base_size_bytes aof_pending_rewrite aof_buffer_length aof_pending_bio_fsync
    aof_delayed_fsync module_fork_in_progress module_fork_last_cow_size
    total_connections_received=connections_received_total total_commands_processed=commands_processed_total
    total_net_input_bytes=net_input_bytes_total total_net_output_bytes=net_output_bytes_total
    total_net_repl_input_bytes=net_repl_input_bytes_total total_net_repl_output_bytes=net_repl_output_bytes_total
    rejected_connections=rejected_connections_total expired_keys=expired_keys_total
    expired_subkeys=expired_subkeys_total expired_stale_perc=expired_stale_percentage
    expired_time_cap_reached_count=expired_time_cap_reached_total evicted_keys=evicted_keys_total
    evicted_clients=evicted_clients_total evicted_scripts=evicted_scripts_total keyspace_hits=keyspace_hits_total
    keyspace_misses=keyspace_misses_total pubsub_channels pubsub_patterns pubsubshard_channels
    latest_fork_usec=latest_fork_seconds migrate_cached_sockets=migrate_cached_sockets_total
    slave_expires_tracked_keys active_defrag_hits=defrag_hits active_defrag_misses=defrag_misses
    active_defrag_key_hits=defrag_key_hits active_defrag_key_misses=defrag_key_misses tracking_total_keys
    tracking_total_items tracking_total_prefixes unexpected_error_replies total_error_replies
    dump_payload_sanitizations total_reads_processed total_writes_processed io_threaded_reads_processed
    io_threaded_writes_processed acl_access_denied_auth=acl_access_denied_auth_total
    acl_access_denied_cmd=acl_access_denied_cmd_total acl_access_denied_key=acl_access_denied_key_total
    acl_access_denied_channel=acl_access_denied_channel_total
    connected_slaves master_repl_offset second_repl_offset master_link_status=master_link_up
    master_last_io_seconds_ago master_sync_in_progress slave_repl_offset slave_priority
    repl_backlog_active=repl_backlog_is_active repl_backlog_size=replication_backlog_bytes
    repl_backlog_first_byte_offset repl_backlog_histlen=repl_backlog_history_bytes sync_full=replica_resyncs_full
    sync_partial_ok=replica_partial_resync_accepted sync_partial_err=replica_partial_resync_denied
    used_cpu_sys=cpu_sys_seconds_total used_cpu_user=cpu_user_seconds_total
    used_cpu_sys_children=cpu_sys_children_seconds_total used_cpu_user_children=cpu_user_children_seconds_total
    used_cpu_sys_main_thread=cpu_sys_main_thread_seconds_total
    used_cpu_user_main_thread=cpu_user_main_thread_seconds_total
    cluster_enabled
"""
METRICS: Final = {field: name or field for field, _, name in [pair.partition("=") for pair in FIELDS.split()]}
WORDS: Final = {"ok": 1.0, "up": 1.0, "err": 0.0, "fail": 0.0, "down": 0.0}  # values that are no numbers
UNITS: Final = {"latest_fork_usec": 1e-6}  # what a field is multiplied with, where the metric has another unit
INSTANCE: Final = ("role", "redis_version", "redis_build_id", "redis_mode", "os", "maxmemory_policy", "run_id")


def number(field: str, text: str) -> float | None:
    """The value of a field as a number; None if it is none.

    >>> number("latest_fork_usec", "250"), number("rdb_last_bgsave_status", "ok"), number("os", "Linux")
    (0.00025, 1.0, None)
    """
    found = WORDS.get(text)
    if found is None:
        try:
            found = float(text)
        except ValueError:
            return None
    return found * UNITS.get(field, 1)
