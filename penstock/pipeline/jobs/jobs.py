"""The jobs: functions of DataFrames about streams, groups and logs. `penstock pipeline JOB` runs them.

from penstock.pipeline.jobs import jobs

jobs.poison(pending).show()
jobs.redelivery_latency(log).show()
"""

from penstock.pipeline.aof.log_table import filled as log
from penstock.pipeline.jobs.backfill import backfill
from penstock.pipeline.jobs.log_jobs import (
    acknowledgements,
    attempts_at_ack,
    deliveries,
    entries,
    history,
    redelivery_latency,
    releases,
    time_to_ack,
)
from penstock.pipeline.jobs.pending_jobs import (
    LETTERS,
    dead_letters,
    delivery_histogram,
    lag,
    move_to_dead_letter,
    oldest_pending,
    poison,
    redrive,
    stuck,
)

__all__ = [
    "LETTERS",
    "acknowledgements",
    "attempts_at_ack",
    "backfill",
    "dead_letters",
    "deliveries",
    "delivery_histogram",
    "entries",
    "history",
    "lag",
    "log",
    "move_to_dead_letter",
    "oldest_pending",
    "poison",
    "redelivery_latency",
    "redrive",
    "releases",
    "stuck",
    "time_to_ack",
]
