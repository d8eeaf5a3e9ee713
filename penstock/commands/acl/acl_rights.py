"""ACL CAT and DRYRUN: what rules can name, and what they allow (Redis 8.6.3).

Tests: transcripts acl_rights; cases commands/test_acl; law against_redis/test_access_beside_redis.
"""

from typing import Final

from penstock.engine import refusals
from penstock.engine.access.selector import Reason
from penstock.engine.context import Context
from penstock.engine.table.acl_categories import categories
from penstock.engine.table.command_table import command
from penstock.engine.table.row import Row
from penstock.errors import ReplyError
from penstock.protocol import reply

CATEGORIES: Final = (  # in the order in which ACL CAT lists them (Redis 8.6.3)
    "keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap", "hyperloglog", "geo", "stream",
    "pubsub", "admin", "fast", "slow", "blocking", "dangerous", "connection", "transaction", "scripting",
)  # fmt: skip


@command(
    "ACL|CAT [category]",
    "6.0.0 noscript loading stale",
    "Lists the categories of commands, or the commands of one.",
    "O(1) since the categories and commands are a fixed set.",
)
def acl_cat(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) > 3:
        raise refusals.unknown_or_wrong(args[1], args[0])
    if len(args) == 2:
        return reply.bulks([category.encode() for category in CATEGORIES])
    wanted = args[2].decode(errors="replace").lower()
    if wanted not in CATEGORIES:
        raise ReplyError(b"ERR Unknown category '%b'" % refusals.c_string(args[2])[:128])
    rows = [row for top in ctx.commands.rows.values() for row in (top, *top.subcommands.values())]
    return reply.bulks([row.label for row in rows if wanted in categories(row)])


@command(
    "ACL|DRYRUN username command [arg [arg ...]]",
    "7.0.0 admin noscript loading stale",
    "Tests whether a user may run a command, without running it.",
    "O(1).",
)
def acl_dryrun(ctx: Context, args: list[bytes]) -> bytes:
    user = ctx.access.users.get(args[2])
    if user is None:
        raise ReplyError(b"ERR User '%b' not found" % refusals.c_string(args[2]))
    request = args[3:]
    row = _row_called(ctx, request)
    if row is None:
        raise ReplyError(b"ERR Command '%b' not found" % refusals.c_string(request[0]))
    ctx.commands.fitting(request)  # refuses a wrong number of arguments
    denial = user.denial(row, request, ctx.db_index)
    if denial is None:
        return reply.OK
    if denial.reason is Reason.COMMAND:
        return reply.bulk(b"User %b has no permissions to run the '%b' command" % (user.name, row.label))
    if denial.reason is Reason.DATABASE:
        return reply.bulk(b"User %b has no permissions to access database %b" % (user.name, request[denial.position]))
    kind = b"key" if denial.reason is Reason.KEY else b"channel"
    return reply.bulk(b"User %b has no permissions to access the '%b' %b" % (user.name, request[denial.position], kind))


def _row_called(ctx: Context, request: list[bytes]) -> Row | None:
    row = ctx.commands.rows.get(request[0].upper())
    if row is not None and row.subcommands and len(request) > 1:
        return row.subcommands.get(request[1].upper())
    return row
