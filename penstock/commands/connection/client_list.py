"""CLIENT LIST and CLIENT INFO: one line for each connection (Redis 8.6.3).

Tests: transcripts client_kill, client; cases commands/test_clients.
"""

from penstock.commands.connection.client_filters import IN_VALKEY, ClientFilter, kind
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.session import Session
from penstock.engine.table.command_table import command
from penstock.engine.telemetry.client_line import kind_of, line
from penstock.protocol import reply


@command("CLIENT|INFO", "6.2.0 noscript loading stale | tips nondeterministic_output", "Describes this connection.")
def client_info(ctx: Context, args: list[bytes]) -> bytes:
    return reply.verbatim(_lines(ctx, [ctx.session]), ctx.resp3)


@command(
    "CLIENT|LIST [client-type:TYPE <NORMAL|MASTER|REPLICA|PUBSUB>@5.0.0] [ID client-id@6.2.0 [client-id ...]] "
    '[USER username@valkey-8.1.0] [addr:ADDR "ip:port"@valkey-8.1.0] [laddr:LADDR "ip:port"@valkey-8.1.0] '
    "[skipme:SKIPME <YES|NO>@valkey-8.1.0] [MAXAGE maxage:integer@valkey-8.1.0] " + " ".join(IN_VALKEY),
    "2.4.0 admin noscript loading stale | tips nondeterministic_output",
    "Describes connections, one in each line.",
    "O(N) where N is the number of client connections",
    history=(
        ("2.8.12", "Added unique client `id` field."),
        ("5.0.0", "Added optional `TYPE` filter."),
        ("6.0.0", "Added `user` field."),
        ("6.2.0", "Added `argv-mem`, `tot-mem`, `laddr` and `redir` fields and the optional `ID` filter."),
        ("7.0.0", "Added `resp`, `multi-mem`, `rbs` and `rbp` fields."),
        ("7.0.3", "Added `ssub` field."),
        ("7.2.0", "Added `lib-name` and `lib-ver` fields."),
        ("7.4.0", "Added `watch` field."),
        ("8.0.0", "Added `io-thread` field."),
    ),
)
def client_list(ctx: Context, args: list[bytes]) -> bytes:
    if ctx.compatibility.is_valkey:
        conditions = ClientFilter(skips_me=False)
        conditions.read(ctx, args)
        return reply.verbatim(_lines(ctx, conditions.chosen(ctx)), ctx.resp3)
    chosen = ctx.clients.listed()
    if len(args) > 2:
        option = args[2].upper()
        if option == b"TYPE" and len(args) == 4:
            wanted = kind(args[3])
            chosen = [session for session in chosen if kind_of(session) == wanted]
        elif option == b"ID" and len(args) > 3:
            ids = [arguments.integer_or(word, b"ERR Invalid client ID") for word in args[3:]]
            sessions = {session.id: session for session in chosen}
            chosen = [sessions[id] for id in ids if id in sessions]
        else:
            raise refusals.syntax()
    return reply.verbatim(_lines(ctx, chosen), ctx.resp3)


def _lines(ctx: Context, sessions: list[Session]) -> bytes:
    assert ctx.row is not None, "a request that runs has a row"
    hidden = ctx.row.hidden
    return "".join([line(session, ctx.now_ms, hidden) + "\n" for session in sessions]).encode(errors="surrogateescape")
