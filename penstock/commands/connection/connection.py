"""Connection commands: HELLO, AUTH, PING, ECHO, SELECT, QUIT, RESET (Redis 8.6.3).

Tests: transcripts hello; cases commands/test_connection.
"""

from typing import Final

from penstock.commands.connection.client_names import name_of_client
from penstock.engine import arguments, refusals
from penstock.engine.access import users
from penstock.engine.arguments import MAX_INT32, MIN_INT32
from penstock.engine.context import Context
from penstock.engine.state import SUBSCRIBED
from penstock.engine.table.command_table import command
from penstock.engine.telemetry import redaction
from penstock.errors import ReplyError
from penstock.protocol import reply

NO_LOGIN: Final = (
    b"NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass>"
    b" option can be used to authenticate the client and select the RESP protocol version at the same time"
)


# -- HELLO ------------------------------------------------------------------------------------------------------------


def _without_secrets(request: list[bytes]) -> list[bytes]:
    """The words that HELLO takes for a user and a password; where it takes none, all that is behind an AUTH."""
    shown = list(request)
    at = 2
    if len(request) > 1 and request[1] not in (b"2", b"3"):
        return redaction.hidden_behind_auth(shown, 1)
    while at < len(request):
        option = request[at].upper()
        if option == b"AUTH" and at + 2 < len(request):
            shown[at + 1] = shown[at + 2] = redaction.HIDDEN
            at += 3
        elif option == b"SETNAME" and at + 1 < len(request):
            at += 2
        else:
            return redaction.hidden_behind_auth(shown, 2)
    return shown


@command(
    "HELLO arguments:[protover:integer [auth:AUTH (username password)] [SETNAME clientname]]",
    "6.0.0 noscript loading stale fast no_auth allow_busy",
    "Chooses the protocol version; can also authenticate and name the connection.",
    hide=_without_secrets,
    history=(
        (
            "6.2.0",
            (
                "`protover` made optional; when called without arguments the command reports the "
                "current connection's context."
            ),
        ),
    ),
)
def hello(ctx: Context, args: list[bytes]) -> bytes:
    session = ctx.session
    version = session.resp
    if len(args) > 1:
        version = arguments.integer_or(args[1], b"ERR Protocol version is not an integer or out of range")
        if version not in (2, 3):
            raise ReplyError(b"NOPROTO unsupported protocol version")
    login: tuple[bytes, bytes] | None = None
    name: bytes | None = None
    at = 2
    while at < len(args):
        option = args[at].upper()
        if option == b"AUTH" and at + 2 < len(args):
            login = (args[at + 1], args[at + 2])
            at += 3
        elif option == b"SETNAME" and at + 1 < len(args):
            name = name_of_client(args[at + 1])
            at += 2
        else:
            raise ReplyError(b"ERR Syntax error in HELLO option '%b'" % refusals.c_string(args[at]))
    if login is not None:
        log_in(ctx, *login)
    elif not session.authenticated:
        raise ReplyError(NO_LOGIN)
    if name is not None:
        session.name = name
    session.resp = version
    ctx.resp3 = session.resp3  # inside EXEC, the following requests use it at once
    compatibility = ctx.compatibility
    zone = ctx.settings.text("availability-zone").encode(errors="surrogateescape") if compatibility.is_valkey else b""
    return reply.fields(
        [
            (b"server", reply.bulk(compatibility.server.encode())),
            (b"version", reply.bulk(compatibility.version.encode())),
            (b"proto", reply.integer(version)),
            (b"id", reply.integer(session.id)),
            (b"mode", reply.bulk(b"standalone" if ctx.cluster is None else b"cluster")),
            (b"role", reply.bulk(b"master" if ctx.replication.master is None else b"replica")),
            (b"modules", reply.EMPTY_ARRAY),
            *([(b"availability_zone", reply.bulk(zone))] if zone else []),
        ],
        session.resp3,
    )


# -- AUTH -------------------------------------------------------------------------------------------------------------


@command(
    "AUTH [username@6.0.0] password",
    "1.0.0 noscript loading stale fast no_auth allow_busy",
    "Authenticates the connection.",
    "O(N) where N is the number of passwords defined for the user",
    hide=redaction.arguments_hidden,
    history=(("6.0.0", "Added ACL style (username and password)."),),
)
def auth(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) > 3:
        raise refusals.syntax()
    if len(args) == 3:
        log_in(ctx, args[1], args[2])
        return reply.OK
    if ctx.access.default.open_to_all:
        raise ReplyError(
            b"ERR AUTH <password> called without any password configured for the default user."
            b" Are you sure your configuration is correct?"
        )
    log_in(ctx, users.DEFAULT, args[1])
    return reply.OK


def log_in(ctx: Context, name: bytes, password: bytes) -> None:
    """Authenticate the session as a user; ReplyError WRONGPASS if that fails."""
    ctx.access.log_in(ctx.session, name, password, ctx.args[0], ctx.now_ms)


# -- PING, ECHO, SELECT -----------------------------------------------------------------------------------------------


@command(
    "PING [message]",
    "1.0.0 fast | traits for_replicas touches_nothing while_subscribed | "
    "tips request_policy:all_shards response_policy:all_succeeded",
    "Returns PONG, or its argument.",
)
def ping(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) > 2:
        raise refusals.arity(b"ping")
    session = ctx.session
    if session.state & SUBSCRIBED and session.resp == 2:
        return reply.bulks([b"pong", args[1] if len(args) == 2 else b""])
    return reply.bulk(args[1]) if len(args) == 2 else reply.PONG


@command("ECHO message", "1.0.0 loading stale fast", "Returns its argument.")
def echo(ctx: Context, args: list[bytes]) -> bytes:
    return reply.bulk(args[1])


def _selected(args: list[bytes]) -> list[int]:
    return [1]


@command(
    "SELECT index",
    "1.0.0 loading stale fast | traits may_replicate selects_database",
    "Selects another database for the connection.",
    databases=_selected,
)
def select(ctx: Context, args: list[bytes]) -> bytes:
    db_index = arguments.integer(args[1])
    if not MIN_INT32 <= db_index <= MAX_INT32:
        raise ReplyError(b"ERR value is out of range, value must between -2147483648 and 2147483647")
    if ctx.cluster is not None and db_index:
        raise ReplyError(b"ERR SELECT is not allowed in cluster mode")
    if not 0 <= db_index < len(ctx.keyspace.databases):
        raise ReplyError(b"ERR DB index is out of range")
    ctx.session.db_index = db_index
    ctx.select(db_index)
    return reply.OK


# -- QUIT, RESET ------------------------------------------------------------------------------------------------------


@command(
    "QUIT",
    "1.0.0 noscript loading stale fast no_auth allow_busy | traits for_replicas never_queued while_subscribed | "
    "arity -1",
    "Closes the connection.",
    deprecated=("7.2.0", "just closing the connection"),
)
def quit_(ctx: Context, args: list[bytes]) -> bytes:
    ctx.session.closing = True
    return reply.OK


@command(
    "RESET",
    "6.2.0 noscript loading stale fast no_auth allow_busy | traits never_queued while_subscribed",
    "Resets the connection to its initial state.",
)
def reset(ctx: Context, args: list[bytes]) -> bytes:
    session = ctx.session
    session.queue = None
    session.queue_failed = False
    ctx.clients.unwatch(session)
    ctx.clients.monitor(session, False)
    ctx.clients.tracking.end(session)
    ctx.clients.note_tracking()
    ctx.subscriptions.forget(session)
    session.is_silent = False  # a reply that CLIENT REPLY SKIP withholds is this one's (Redis 8.6.3)
    session.name = b""
    session.forget_fieldsets()
    session.no_evict = session.no_touch = session.imports = session.reads_replicas = False
    session.resp = 2
    session.db_index = 0
    ctx.select(0)
    ctx.access.begin(session)
    return reply.simple(b"RESET")
