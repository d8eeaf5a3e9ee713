"""ACL LOAD and SAVE: the file that `aclfile` names (Redis 8.6.3).

Tests: cases commands/test_acl.
"""

from typing import Final

from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply

SAVE_FAILED: Final = (
    b"ERR There was an error trying to save the ACLs. Please check the server logs for more information"
)


@command(
    "ACL|LOAD",
    "6.0.0 admin noscript loading stale",
    "Replaces all users by those in the ACL file.",
    "O(N). Where N is the number of configured users.",
)
def acl_load(ctx: Context, args: list[bytes]) -> bytes:
    """If a line is wrong, no user changes."""
    ctx.access.load()
    return reply.OK


@command(
    "ACL|SAVE",
    "6.0.0 admin noscript loading stale | tips request_policy:all_nodes response_policy:all_succeeded",
    "Writes all users into the ACL file.",
    "O(N). Where N is the number of configured users.",
)
def acl_save(ctx: Context, args: list[bytes]) -> bytes:
    try:
        ctx.access.save()
    except OSError as problem:
        ctx.access.report(f"Saving the ACL file: {problem.strerror}")
        raise ReplyError(SAVE_FAILED) from None
    return reply.OK
