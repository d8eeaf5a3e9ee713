"""ACL SETUSER, GETUSER, DELUSER, LIST, USERS, WHOAMI and GENPASS: users and their rules (Redis 8.6.3).

Tests: transcripts acl_rules, acl_rights; law against_redis/test_access_beside_redis; cases
commands/test_rights_by_database; model commands/test_access_model.
"""

from typing import Final

from penstock.engine import arguments, refusals
from penstock.engine.access import users
from penstock.engine.access.selector import Selector
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.engine.telemetry import redaction
from penstock.errors import ReplyError
from penstock.protocol import reply

DEFAULT_BITS: Final = 256
MOST_BITS: Final = 4096


@command("ACL|WHOAMI", "6.0.0 noscript loading stale", "Returns the name of the connection's user.")
def acl_whoami(ctx: Context, args: list[bytes]) -> bytes:
    return reply.bulk(ctx.session.user.name)


@command(
    "ACL|USERS",
    "6.0.0 admin noscript loading stale",
    "Lists the users' names.",
    "O(N). Where N is the number of configured users.",
)
def acl_users(ctx: Context, args: list[bytes]) -> bytes:
    return reply.bulks(ctx.access.names())


@command(
    "ACL|LIST",
    "6.0.0 admin noscript loading stale",
    "Lists the users with their rules, in the format of a configuration file.",
    "O(N). Where N is the number of configured users.",
)
def acl_list(ctx: Context, args: list[bytes]) -> bytes:
    return reply.bulks(ctx.access.descriptions())


@command(
    "ACL|GETUSER username",
    "6.0.0 admin noscript loading stale",
    "Describes a user.",
    "O(N). Where N is the number of password, command and pattern rules that the user has.",
    hide=redaction.subcommand_arguments_hidden,
    history=(
        ("6.2.0", "Added Pub/Sub channel patterns."),
        (
            "7.0.0",
            (
                "Added selectors and changed the format of key and channel patterns from a list "
                "to their rule representation."
            ),
        ),
    ),
)
def acl_getuser(ctx: Context, args: list[bytes]) -> bytes:
    user = ctx.access.users.get(args[2])
    if user is None:
        return reply.null(ctx.resp3)
    is_valkey = ctx.compatibility.is_valkey
    root, *others = user.selectors
    selectors = [reply.fields(_rights(selector, is_valkey), ctx.resp3) for selector in others]
    return reply.fields(
        [
            (b"flags", reply.set_of([reply.bulk(flag) for flag in user.flags(is_valkey)], ctx.resp3)),
            (b"passwords", reply.bulks([kept.encode() for kept in user.hashes])),
            *_rights(root, is_valkey),
            (b"selectors", reply.array(selectors)),
        ],
        ctx.resp3,
    )


def _rights(selector: Selector, is_valkey: bool) -> list[tuple[bytes, bytes]]:
    databases = b"" if selector.databases.numbers == frozenset() else selector.databases.text()
    return [
        (b"commands", reply.bulk(selector.command_text())),
        (b"keys", reply.bulk(selector.key_text())),
        (b"channels", reply.bulk(selector.channel_text())),
        *([(b"databases", reply.bulk(databases))] if is_valkey else []),
    ]


@command(
    "ACL|SETUSER username [rule [rule ...]]",
    "6.0.0 admin noscript loading stale | tips request_policy:all_nodes response_policy:all_succeeded",
    "Creates a user, or changes its rules.",
    "O(N). Where N is the number of rules provided.",
    hide=redaction.subcommand_arguments_hidden,
    history=(("6.2.0", "Added Pub/Sub channel patterns."), ("7.0.0", "Added selectors and key based permissions.")),
)
def acl_setuser(ctx: Context, args: list[bytes]) -> bytes:
    """The rules hold for the next request of each connection of the user."""
    ctx.access.change(args[2], args[3:])
    return reply.OK


@command(
    "ACL|DELUSER username [username ...]",
    "6.0.0 admin noscript loading stale | tips request_policy:all_nodes response_policy:all_succeeded",
    "Removes users, and closes their connections.",
    "O(1) amortized time considering the typical user.",
    hide=redaction.subcommand_arguments_hidden,
)
def acl_deluser(ctx: Context, args: list[bytes]) -> bytes:
    return reply.integer(ctx.access.delete(args[2:]))


@command("ACL|GENPASS [bits:integer]", "6.0.0 noscript loading stale", "Generates a password.")
def acl_genpass(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) > 3:
        raise refusals.unknown_or_wrong(args[1], args[0])
    bits = arguments.integer(args[2]) if len(args) == 3 else DEFAULT_BITS
    if not 0 < bits <= MOST_BITS:
        raise ReplyError(
            b"ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096"
        )
    return reply.bulk(users.new_password((bits + 3) // 4).encode())
