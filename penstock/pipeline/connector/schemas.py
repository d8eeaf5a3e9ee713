"""The columns of every table, as Spark's DDL; a user's schema may choose among them."""

from typing import Final

ENTRIES: Final = "_stream string, _id string, _timestamp timestamp, fields map<string,string>"

# What a schema of `entries` may also ask for; every other name is a field of the entries.
METADATA: Final = ("_stream", "_id", "_timestamp", "_endpoint", "_ms", "_seq", "_deliveries")
FIELDS: Final = "fields"
CORRUPT: Final = "_corrupt"  # with the option `payload`: the text that could not be decoded

MARKERS: Final = "__spark"  # the sink's own streams are `__spark:<query>:<partition>`; see sink/ledger.py

PENDING: Final = (
    "endpoint string, stream string, `group` string, consumer string, id string, timestamp timestamp, "
    "idle_ms bigint, delivered_at timestamp, deliveries bigint, nacked boolean, fatal boolean"
)
GROUPS: Final = (
    "endpoint string, stream string, `group` string, consumers bigint, pending bigint, last_delivered_id string, "
    "entries_read bigint, lag bigint, length bigint, last_generated_id string, entries_added bigint, "
    "policy string"
)
CONSUMERS: Final = (
    "endpoint string, stream string, `group` string, consumer string, pending bigint, idle_ms bigint, "
    "inactive_ms bigint"
)
STREAMS: Final = (
    "endpoint string, stream string, length bigint, first_id string, last_id string, entries_added bigint, "
    "max_deleted_id string, groups bigint, bytes bigint, policy string"
)
AOF: Final = (
    "file string, file_seq int, offset bigint, ts timestamp, db int, command string, key binary, "
    "args array<binary>, in_multi boolean"
)

DEFAULT: Final = {
    "entries": ENTRIES,
    "pending": PENDING,
    "groups": GROUPS,
    "consumers": CONSUMERS,
    "streams": STREAMS,
    "aof": AOF,
}

TABLES: Final = tuple(DEFAULT)  # the values of the option `table`
