"""CLIENT: the names and settings of the client's own connection (Redis 8.6.3).

Tests: transcripts client; cases commands/test_clients.
"""

from typing import Final

from penstock.commands.common.help import declare_help
from penstock.commands.connection.client_names import attribute_of_client, name_of_client
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command, container
from penstock.errors import ReplyError
from penstock.protocol import reply

REDIRECT: Final = b"redirect"  # the capability to follow a replica's answer to its master

container("CLIENT", group="connection", since="2.4.0", summary="Commands for client connections.")


# -- names ------------------------------------------------------------------------------------------------------------


@command("CLIENT|ID", "5.0.0 noscript loading stale", "Returns the connection's ID, which is never used again.")
def client_id(ctx: Context, args: list[bytes]) -> bytes:
    return reply.integer(ctx.session.id)


@command("CLIENT|GETNAME", "2.6.9 noscript loading stale", "Returns the connection's name.")
def client_getname(ctx: Context, args: list[bytes]) -> bytes:
    name = ctx.session.name
    return reply.bulk(name) if name else reply.null(ctx.resp3)


@command(
    "CLIENT|SETNAME connection-name",
    "2.6.9 noscript loading stale | tips request_policy:all_nodes response_policy:all_succeeded",
    "Sets the connection's name.",
)
def client_setname(ctx: Context, args: list[bytes]) -> bytes:
    ctx.session.name = name_of_client(args[2])
    return reply.OK


@command(
    "CLIENT|SETINFO attr:<LIB-NAME libname|LIB-VER libver>",
    "7.2.0 noscript loading stale | tips request_policy:all_nodes response_policy:all_succeeded",
    "Sets the name or version of the client's library.",
)
def client_setinfo(ctx: Context, args: list[bytes]) -> bytes:
    option = args[2].upper()
    if option not in (b"LIB-NAME", b"LIB-VER"):
        raise ReplyError(b"ERR Unrecognized option '%b'" % refusals.c_string(args[2]))
    text = attribute_of_client(args[2], args[3])
    if option == b"LIB-NAME":
        ctx.session.library_name = text
    else:
        ctx.session.library_version = text
    return reply.OK


# -- replies, eviction, last use --------------------------------------------------------------------------------------


@command(
    "CLIENT|REPLY action:<ON|OFF|SKIP>",
    "3.2.0 noscript loading stale",
    "Switches the replies to the connection on or off.",
)
def client_reply(ctx: Context, args: list[bytes]) -> bytes:
    session = ctx.session
    mode = args[2].upper()
    if mode == b"ON":
        session.is_silent = False
        session.reply_skip = 0
        return reply.OK
    if mode == b"OFF":
        session.is_silent = True
        return reply.NO_REPLY
    if mode == b"SKIP":
        if not session.is_silent:
            session.reply_skip = 2  # the replies to this request and the next one
        return reply.NO_REPLY
    raise refusals.syntax()


@command(
    "CLIENT|NO-EVICT enabled:<ON|OFF>",
    "7.0.0 admin noscript loading stale",
    "Exempts the connection from being closed when memory is short.",
)
def client_no_evict(ctx: Context, args: list[bytes]) -> bytes:
    ctx.session.no_evict = _switch(args[2])
    return reply.OK


@command(
    "CLIENT|NO-TOUCH enabled:<ON|OFF>",
    "7.2.0 noscript loading stale",
    "Makes the connection's requests not count as a use of keys.",
)
def client_no_touch(ctx: Context, args: list[bytes]) -> bytes:
    ctx.session.no_touch = _switch(args[2])
    return reply.OK


@command(
    "CLIENT|IMPORT-SOURCE enabled:<ON|OFF>",
    "8.1.0 noscript loading stale | only_in valkey",
    "Makes the connection see expired keys in import-mode.",
)
def client_import_source(ctx: Context, args: list[bytes]) -> bytes:
    """It can be turned off whatever the mode is; a client keeps it when the mode ends (Valkey 9.1.2)."""
    if not ctx.conditions.imports and args[2].upper() != b"OFF":
        raise ReplyError(b"ERR Server is not in import mode")
    ctx.session.imports = _switch(args[2])
    return reply.OK


@command(
    "CLIENT|CAPA capability [capability ...]",
    "8.0.0 noscript loading stale allow_busy | only_in valkey",
    "Tells what the client can do; others than `redirect` are taken and mean nothing.",
)
def client_capa(ctx: Context, args: list[bytes]) -> bytes:
    """RESET does not take it back (Valkey 9.1.2)."""
    if REDIRECT in [word.lower() for word in args[2:]]:
        ctx.session.redirects = True
    return reply.OK


def _switch(word: bytes) -> bool:
    if word.upper() not in (b"ON", b"OFF"):
        raise refusals.syntax()
    return word.upper() == b"ON"


# -- HELP -------------------------------------------------------------------------------------------------------------


declare_help(
    "CLIENT",
    "5.0.0",
    [
        ("CACHING (YES|NO)", "Choose whether the next request's keys are tracked."),
        ("GETREDIR", "Return the connection that gets the messages about changed keys."),
        ("GETNAME", "Return this connection's name."),
        ("ID", "Return this connection's ID."),
        ("INFO", "Describe this connection, as LIST does."),
        ("KILL <ip:port>", "Close the connection from <ip:port>."),
        (
            "KILL <option> <value> [<option> <value> [...]]",
            "Close the connections that meet all conditions:\n"
            "* ADDR <ip:port>: the client's address.\n"
            "* LADDR <ip:port>: the server's address.\n"
            "* TYPE (NORMAL|MASTER|REPLICA|PUBSUB): the type of the client.\n"
            "* USER <username>: the user.\n"
            "* SKIPME (YES|NO): whether to keep this connection (default: yes).\n"
            "* ID <client-id>: the ID.\n"
            "* MAXAGE <seconds>: the connection is at least this old.",
        ),
        (
            "LIST [TYPE (NORMAL|MASTER|REPLICA|PUBSUB) | ID <client-id> [<client-id> ...]]",
            "Describe all connections, those of a type, or those with these IDs.",
        ),
        ("UNPAUSE", "End a pause."),
        ("PAUSE <milliseconds> [WRITE|ALL]", "Delay the requests of all clients, or only writes."),
        ("REPLY (ON|OFF|SKIP)", "Switch the replies to this connection on or off."),
        ("SETNAME <name>", "Set this connection's name."),
        ("SETINFO (LIB-NAME|LIB-VER) <text>", "Set the name or version of this client's library."),
        ("UNBLOCK <client-id> [TIMEOUT|ERROR]", "End the wait of a blocked client, as at a timeout or with an error."),
        (
            "TRACKING (ON|OFF) [REDIRECT <client-id>] [BCAST] [PREFIX <prefix> [...]] [OPTIN] [OPTOUT] [NOLOOP]",
            "Switch messages about changed keys on or off.",
        ),
        ("TRACKINGINFO", "Return the state of tracking."),
        ("NO-EVICT (ON|OFF)", "Keep this connection when memory is short."),
        ("NO-TOUCH (ON|OFF)", "Make requests not count as a use of keys."),
    ],
)
