"""ACL LOG: the requests and logins that were refused (Redis 8.6.3).

Tests: transcripts acl_log; cases commands/test_acl.
"""

from typing import Final

from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.protocol import reply

LOG_SHOWN: Final = 10


@command(
    "ACL|LOG operation:[count|RESET]",
    "6.0.0 admin noscript loading stale",
    "Lists refused logins and requests, newest first.",
    "O(N) with N being the number of entries shown.",
    history=(("7.2.0", "Added entry ID, timestamp created, and timestamp last updated."),),
)
def acl_log(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) > 3:
        raise refusals.unknown_or_wrong(args[1], args[0])
    log = ctx.access.log
    count = LOG_SHOWN
    if len(args) == 3:
        if args[2].lower() == b"reset":
            log.refusals.clear()
            return reply.OK
        count = max(arguments.integer(args[2]), 0)
    assert ctx.row is not None, "a request that runs has a row"
    hidden = ctx.row.hidden
    return reply.array([refusal.as_reply(ctx.now_ms, ctx.resp3, hidden) for refusal in list(log.refusals)[:count]])
