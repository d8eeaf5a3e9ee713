"""PENSTOCK.XNACK: XNACK, and how long the entries are to be held back.

Tests: transcripts policies_leases; cases policies/test_leases; law policies/test_policy_laws; model
policies/test_beside_naive_queue.
"""

from penstock.commands.streams.groups.xack import nack
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.engine.versions import PENSTOCK_VERSION


@command(
    "PENSTOCK.XNACK key group mode:<SILENT|FAIL|FATAL> ids:IDS (numids id [id ...]) [RETRYCOUNT count] [FORCE] "
    "[DELAY milliseconds|UNTIL unix-time-milliseconds]",
    f"{PENSTOCK_VERSION} write fast | keys 1 RW update",
    "Releases pending entries, and holds them back for a while.",
    "O(log N) for each message ID processed, with N being the number of released entries.",
)
def penstock_xnack(ctx: Context, args: list[bytes]) -> bytes:
    return nack(ctx, args, True)
