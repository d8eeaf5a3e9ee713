"""ACL for the default user, the only one (Redis 8.6.3). Other users cannot be created."""

from typing import Final

from penstock.commands.common.help import help_reply
from penstock.engine import arguments, refusals
from penstock.engine.access import users
from penstock.engine.access.user_rules import ONLY_DEFAULT, apply_rule
from penstock.engine.context import Context
from penstock.engine.table.acl_categories import categories
from penstock.engine.table.command_table import command, container
from penstock.engine.table.row import Row
from penstock.errors import ReplyError
from penstock.protocol import reply

NO_FILE: Final = (
    b"ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER"
    b" command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store"
    b" users in the Redis configuration."
)
CATEGORIES: Final = (  # in the order in which ACL CAT lists them (Redis 8.6.3)
    "keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap", "hyperloglog", "geo", "stream",
    "pubsub", "admin", "fast", "slow", "blocking", "dangerous", "connection", "transaction", "scripting",
)  # fmt: skip
DEFAULT_BITS: Final = 256
MOST_BITS: Final = 4096
LOG_SHOWN: Final = 10


container("ACL", group="server", since="6.0.0", summary="Commands for users and their rights.")


# -- users ------------------------------------------------------------------------------------------------------------


@command(
    "ACL|WHOAMI",
    group="server",
    since="6.0.0",
    flags="noscript loading stale",
    summary="Returns the name of the connection's user.",
)
def acl_whoami(ctx: Context, args: list[bytes]) -> bytes:
    return reply.bulk(ctx.session.user)


@command(
    "ACL|USERS",
    group="server",
    since="6.0.0",
    flags="admin noscript loading stale",
    complexity="O(N). Where N is the number of configured users.",
    summary="Lists the users' names.",
)
def acl_users(ctx: Context, args: list[bytes]) -> bytes:
    return reply.bulks([users.NAME])


@command(
    "ACL|LIST",
    group="server",
    since="6.0.0",
    flags="admin noscript loading stale",
    complexity="O(N). Where N is the number of configured users.",
    summary="Lists the users with their rules, in the format of a configuration file.",
)
def acl_list(ctx: Context, args: list[bytes]) -> bytes:
    return reply.bulks([ctx.engine.default_user().description().encode()])


@command(
    "ACL|GETUSER",
    "username",
    group="server",
    since="6.0.0",
    flags="admin noscript loading stale",
    complexity="O(N). Where N is the number of password, command and pattern rules that the user has.",
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
    summary="Describes a user.",
)
def acl_getuser(ctx: Context, args: list[bytes]) -> bytes:
    if args[2] != users.NAME:
        return reply.null(ctx.resp3)
    user = ctx.engine.default_user()
    return reply.fields(
        [
            (b"flags", reply.set_of([reply.bulk(flag.encode()) for flag in user.flags()], ctx.resp3)),
            (b"passwords", reply.bulks([kept.encode() for kept in user.hashes])),
            (b"commands", reply.bulk(b"+@all")),
            (b"keys", reply.bulk(b"~*")),
            (b"channels", reply.bulk(b"&*")),
            (b"selectors", reply.EMPTY_ARRAY),
        ],
        ctx.resp3,
    )


# -- changing the user ------------------------------------------------------------------------------------------------


@command(
    "ACL|SETUSER",
    "username [rule [rule ...]]",
    group="server",
    since="6.0.0",
    flags="admin noscript loading stale",
    tips="request_policy:all_nodes response_policy:all_succeeded",
    complexity="O(N). Where N is the number of rules provided.",
    history=(
        ("6.2.0", "Added Pub/Sub channel patterns."),
        ("7.0.0", "Added selectors and key based permissions."),
    ),
    summary="Changes a user.",
)
def acl_setuser(ctx: Context, args: list[bytes]) -> bytes:
    if args[2] != users.NAME:
        raise ReplyError(ONLY_DEFAULT)
    changed = ctx.engine.default_user().copy()
    for rule in args[3:]:
        apply_rule(changed, rule)
    ctx.engine.user = changed
    return reply.OK


@command(
    "ACL|DELUSER",
    "username [username ...]",
    group="server",
    since="6.0.0",
    flags="admin noscript loading stale",
    tips="request_policy:all_nodes response_policy:all_succeeded",
    complexity="O(1) amortized time considering the typical user.",
    summary="Removes users; here there is only the default user, who cannot be removed.",
)
def acl_deluser(ctx: Context, args: list[bytes]) -> bytes:
    if users.NAME in args[2:]:
        raise ReplyError(b"ERR The 'default' user cannot be removed")
    return reply.ZERO


@command(
    "ACL|LOAD",
    group="server",
    since="6.0.0",
    flags="admin noscript loading stale",
    complexity="O(N). Where N is the number of configured users.",
    summary="Reads the ACL file; always refused here, because there is none.",
)
def acl_load(ctx: Context, args: list[bytes]) -> bytes:
    raise ReplyError(NO_FILE)


@command(
    "ACL|SAVE",
    group="server",
    since="6.0.0",
    flags="admin noscript loading stale",
    tips="request_policy:all_nodes response_policy:all_succeeded",
    complexity="O(N). Where N is the number of configured users.",
    summary="Writes the ACL file; always refused here, because there is none.",
)
def acl_save(ctx: Context, args: list[bytes]) -> bytes:
    raise ReplyError(NO_FILE)


# -- rights -----------------------------------------------------------------------------------------------------------


@command(
    "ACL|CAT",
    "[category]",
    group="server",
    since="6.0.0",
    flags="noscript loading stale",
    complexity="O(1) since the categories and commands are a fixed set.",
    summary="Lists the categories of commands, or the commands of one.",
)
def acl_cat(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) > 3:
        raise refusals.unknown_or_wrong(args[1], args[0])
    if len(args) == 2:
        return reply.bulks([category.encode() for category in CATEGORIES])
    wanted = args[2].decode(errors="replace").lower()
    if wanted not in CATEGORIES:
        raise ReplyError(b"ERR Unknown category '%b'" % refusals.c_string(args[2]))
    rows = [row for top in ctx.engine.rows.values() for row in (top, *top.subcommands.values())]
    return reply.bulks([row.label for row in rows if not row.is_container and wanted in categories(row)])


@command(
    "ACL|DRYRUN",
    "username command [arg [arg ...]]",
    group="server",
    since="7.0.0",
    flags="admin noscript loading stale",
    complexity="O(1).",
    summary="Tests whether a user may run a command, without running it.",
)
def acl_dryrun(ctx: Context, args: list[bytes]) -> bytes:
    if args[2] != users.NAME:
        raise ReplyError(b"ERR User '%b' not found" % refusals.c_string(args[2]))
    request = args[3:]
    if _row_called(ctx, request) is None:
        raise ReplyError(b"ERR Command '%b' not found" % refusals.c_string(request[0]))
    ctx.engine.row_of(request)  # refuses a wrong number of arguments
    return reply.OK


def _row_called(ctx: Context, request: list[bytes]) -> Row | None:
    row = ctx.engine.rows.get(request[0].upper())
    if row is not None and row.subcommands and len(request) > 1:
        return row.subcommands.get(request[1].upper())
    return row


@command(
    "ACL|LOG",
    "operation:[count|RESET]",
    group="server",
    since="6.0.0",
    flags="admin noscript loading stale",
    complexity="O(N) with N being the number of entries shown.",
    history=(("7.2.0", "Added entry ID, timestamp created, and timestamp last updated."),),
    summary="Lists refused logins, newest first.",
)
def acl_log(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) > 3:
        raise refusals.unknown_or_wrong(args[1], args[0])
    log = ctx.engine.access_log
    count = LOG_SHOWN
    if len(args) == 3:
        if args[2].lower() == b"reset":
            log.refusals.clear()
            return reply.OK
        count = max(arguments.integer(args[2]), 0)
    return reply.array([refusal.as_reply(ctx.now_ms, ctx.resp3) for refusal in list(log.refusals)[:count]])


@command(
    "ACL|GENPASS",
    "[bits:integer]",
    group="server",
    since="6.0.0",
    flags="noscript loading stale",
    summary="Generates a password.",
)
def acl_genpass(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) > 3:
        raise refusals.unknown_or_wrong(args[1], args[0])
    bits = arguments.integer(args[2]) if len(args) == 3 else DEFAULT_BITS
    if not 0 < bits <= MOST_BITS:
        raise ReplyError(
            b"ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096"
        )
    return reply.bulk(users.new_password((bits + 3) // 4).encode())


@command(
    "ACL|HELP",
    group="server",
    since="6.0.0",
    flags="loading stale",
    summary="Lists the subcommands.",
)
def acl_help(ctx: Context, args: list[bytes]) -> bytes:
    return help_reply(
        "ACL",
        [
            ("CAT [<category>]", "List the categories, or the commands of <category>."),
            ("DELUSER <username> [<username> ...]", "Remove users. There is only the default one, which stays."),
            (
                "DRYRUN <username> <command> [<arg> ...]",
                "Test whether <username> may run a command, without running it.",
            ),
            ("GETUSER <username>", "Describe a user."),
            ("GENPASS [<bits>]", "Generate a password of 256 bits, or of <bits>."),
            ("LIST", "List the users with their rules."),
            ("LOAD", "Read the ACL file. There is none."),
            ("LOG [<count> | RESET]", "List refused logins, or clear the list."),
            ("SAVE", "Write the ACL file. There is none."),
            (
                "SETUSER default <rule> [<rule> ...]",
                "Change the default user. Rules: on, off, nopass, resetpass,\n"
                "><password>, <<password>, #<hash>, !<hash>.",
            ),
            ("USERS", "List the users' names."),
            ("WHOAMI", "Return the name of this connection's user."),
        ],
    )
