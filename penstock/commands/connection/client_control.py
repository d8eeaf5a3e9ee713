"""CLIENT KILL, PAUSE, UNPAUSE and UNBLOCK: how one connection controls others (Redis 8.6.3).

Tests: transcripts client_kill, client, paused_writes; cases commands/test_clients.
"""

from typing import Final

from penstock.commands.common import timeouts
from penstock.commands.connection.client_filters import IN_VALKEY, ClientFilter
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.engine.waiting import pausing
from penstock.errors import ReplyError
from penstock.protocol import reply

OLD_FORM: Final = 3  # number of words in CLIENT KILL addr:port
UNBLOCKED: Final = b"UNBLOCKED client unblocked via CLIENT UNBLOCK"


# -- KILL -------------------------------------------------------------------------------------------------------------


@command(
    'CLIENT|KILL filter:<old-format:"ip:port"@-2.8.12|new-format:<[ID client-id@2.8.12]|[client-type:TYPE '
    "<NORMAL|MASTER@3.2.0|PRIMARY@valkey-8.0.0|SLAVE|REPLICA@5.0.0|PUBSUB>@2.8.12]|[USER username]|[addr:ADDR "
    '"ip:port"]|'
    '[laddr:LADDR "ip:port"@6.2.0]|[skipme:SKIPME <YES|NO>]|[MAXAGE maxage:integer@7.4.0]|'
    + "|".join(IN_VALKEY)
    + "> ...>",
    "2.4.0 admin noscript loading stale | arity -3",
    "Closes connections.",
    "O(N) where N is the number of client connections",
    history=(
        ("2.8.12", "Added new filter format."),
        ("2.8.12", "`ID` option."),
        ("3.2.0", "Added `master` type in for `TYPE` option."),
        ("5.0.0", "Replaced `slave` `TYPE` with `replica`. `slave` still supported for backward compatibility."),
        ("6.2.0", "`LADDR` option."),
        ("7.4.0", "`MAXAGE` option."),
    ),
)
def client_kill(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) == OLD_FORM:
        for session in ctx.clients.listed():
            if session.address.encode() == args[2]:
                ctx.close(session)
                return reply.OK
        raise ReplyError(b"ERR No such client")
    wanted = ClientFilter(skips_me=True)
    wanted.read(ctx, args)
    chosen = wanted.chosen(ctx)
    for session in chosen:
        ctx.close(session)
    return reply.integer(len(chosen))


# -- PAUSE ------------------------------------------------------------------------------------------------------------


@command(
    "CLIENT|PAUSE timeout:integer mode:[WRITE|ALL]@6.2.0",
    "3.0.0 admin noscript loading stale",
    "Delays the requests of clients for a time.",
    history=(("6.2.0", "`CLIENT PAUSE WRITE` mode added along with the `mode` option."),),
)
def client_pause(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) > 4:
        raise refusals.unknown_or_wrong(args[1], args[0])
    mode = args[3].upper() if len(args) == 4 else b"ALL"
    if mode not in (b"WRITE", b"ALL"):
        raise ReplyError(b"ERR CLIENT PAUSE mode must be WRITE or ALL")
    until_ms = timeouts.deadline(args[2], ctx.now_ms)
    pausing.pause(ctx.server, until_ms or ctx.now_ms, mode == b"ALL")
    return reply.OK


@command(
    "CLIENT|UNPAUSE",
    "6.2.0 admin noscript loading stale",
    "Ends a pause.",
    "O(N) Where N is the number of paused clients",
)
def client_unpause(ctx: Context, args: list[bytes]) -> bytes:
    ctx.conditions.paused_until_ms = min(
        ctx.conditions.paused_until_ms, ctx.now_ms
    )  # the next tick runs the delayed requests
    return reply.OK


# -- UNBLOCK ----------------------------------------------------------------------------------------------------------


@command(
    "CLIENT|UNBLOCK client-id unblock-type:[TIMEOUT|ERROR]",
    "5.0.0 admin noscript loading stale",
    "Ends the wait of a blocked client.",
    "O(log N) where N is the number of client connections",
)
def client_unblock(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) > 4:
        raise refusals.unknown_or_wrong(args[1], args[0])
    reason = args[3].upper() if len(args) == 4 else b"TIMEOUT"
    if reason not in (b"TIMEOUT", b"ERROR"):
        raise ReplyError(b"ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
    session = ctx.clients.sessions.get(arguments.integer(args[2]))
    blocked = session.blocked if session is not None else None
    if blocked is None or blocked.postponed or blocked.is_running:
        return reply.ZERO
    failure = UNBLOCKED if reason == b"ERROR" else None
    ctx.waiting.note_waited(blocked, failure)
    ctx.waiting.release(blocked, blocked.timeout_reply if failure is None else reply.error(failure))
    return reply.ONE
