"""MONITOR: shows every request that the server runs to the client.

Tests: transcripts monitor; cases commands/test_monitor.
"""

from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply


@command(
    "MONITOR",
    "1.0.0 admin noscript loading stale | traits feeds_monitors",
    "Shows every request that the server runs from now on.",
    "",
)
def monitor(ctx: Context, args: list[bytes]) -> bytes:
    if not ctx.waits:
        raise ReplyError(b"ERR MONITOR isn't allowed for DENY BLOCKING client")
    session = ctx.session
    if session.monitors:
        return reply.NO_REPLY  # Redis sends no reply the second time (8.6.3)
    ctx.clients.monitor(session, True)
    return reply.OK
