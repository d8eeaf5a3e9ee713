"""CLIENT: what a connection says of itself, and how it is to be treated (Redis 8.6.3)."""

from penstock.commands.common.help import help_reply
from penstock.commands.connection.client_names import attribute_of_client, name_of_client
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command, container
from penstock.errors import ReplyError
from penstock.protocol import reply

NO_CACHING = b"ERR Client side caching is not offered by this server"


container("CLIENT", group="connection", since="2.4.0", summary="Looks at connections and changes them.")


# -- names ------------------------------------------------------------------------------------------------------------


@command(
    "CLIENT|ID",
    group="connection",
    since="5.0.0",
    flags="noscript loading stale",
    summary="Returns the connection's number, which is never used again.",
)
def client_id(ctx: Context, args: list[bytes]) -> bytes:
    return reply.integer(ctx.session.id)


@command(
    "CLIENT|GETNAME",
    group="connection",
    since="2.6.9",
    flags="noscript loading stale",
    summary="Returns the connection's name.",
)
def client_getname(ctx: Context, args: list[bytes]) -> bytes:
    name = ctx.session.name
    return reply.bulk(name) if name else reply.null(ctx.resp3)


@command(
    "CLIENT|SETNAME",
    "connection-name",
    group="connection",
    since="2.6.9",
    flags="noscript loading stale",
    tips="request_policy:all_nodes response_policy:all_succeeded",
    summary="Names the connection.",
)
def client_setname(ctx: Context, args: list[bytes]) -> bytes:
    ctx.session.name = name_of_client(args[2])
    return reply.OK


@command(
    "CLIENT|SETINFO",
    "attr:<LIB-NAME libname|LIB-VER libver>",
    group="connection",
    since="7.2.0",
    flags="noscript loading stale",
    tips="request_policy:all_nodes response_policy:all_succeeded",
    summary="Says which library the client uses.",
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
    "CLIENT|REPLY",
    "action:<ON|OFF|SKIP>",
    group="connection",
    since="3.2.0",
    flags="noscript loading stale",
    summary="Says whether the connection wants replies.",
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
            session.reply_skip = 2  # this one and the next
        return reply.NO_REPLY
    raise refusals.syntax()


@command(
    "CLIENT|NO-EVICT",
    "enabled:<ON|OFF>",
    group="connection",
    since="7.0.0",
    flags="admin noscript loading stale",
    summary="Keeps the connection when connections must go for want of memory.",
)
def client_no_evict(ctx: Context, args: list[bytes]) -> bytes:
    ctx.session.no_evict = _switch(args[2])
    return reply.OK


@command(
    "CLIENT|NO-TOUCH",
    "enabled:<ON|OFF>",
    group="connection",
    since="7.2.0",
    flags="noscript loading stale",
    summary="Lets the connection's commands leave no trace in the keys' times of last use.",
)
def client_no_touch(ctx: Context, args: list[bytes]) -> bytes:
    ctx.session.no_touch = _switch(args[2])
    return reply.OK


def _switch(word: bytes) -> bool:
    if word.upper() not in (b"ON", b"OFF"):
        raise refusals.syntax()
    return word.upper() == b"ON"


# -- client side caching, which is not offered ------------------------------------------------------------------------


@command(
    "CLIENT|TRACKING",
    "status:<ON|OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]",
    group="connection",
    since="6.0.0",
    flags="noscript loading stale",
    complexity="O(1). Some options may introduce additional complexity.",
    summary="Asks for messages on changed keys, which this server does not send; OFF is accepted.",
)
def client_tracking(ctx: Context, args: list[bytes]) -> bytes:
    if args[2].upper() == b"ON":
        raise ReplyError(NO_CACHING)
    if args[2].upper() != b"OFF":
        raise refusals.syntax()
    return reply.OK


@command(
    "CLIENT|CACHING",
    "mode:<YES|NO>",
    group="connection",
    since="6.0.0",
    flags="noscript loading stale",
    summary="Marks the next command's keys for tracking, which is never on.",
)
def client_caching(ctx: Context, args: list[bytes]) -> bytes:
    raise ReplyError(
        b"ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled"
    )


@command(
    "CLIENT|GETREDIR",
    group="connection",
    since="6.0.0",
    flags="noscript loading stale",
    summary="Returns where tracking messages go: nowhere.",
)
def client_getredir(ctx: Context, args: list[bytes]) -> bytes:
    return reply.integer(-1)


@command(
    "CLIENT|TRACKINGINFO",
    group="connection",
    since="6.2.0",
    flags="noscript loading stale",
    summary="Returns the state of tracking: off.",
)
def client_trackinginfo(ctx: Context, args: list[bytes]) -> bytes:
    return reply.fields(
        [
            (b"flags", reply.set_of([reply.bulk(b"off")], ctx.resp3)),
            (b"redirect", reply.integer(-1)),
            (b"prefixes", reply.EMPTY_ARRAY),
        ],
        ctx.resp3,
    )


# -- HELP -------------------------------------------------------------------------------------------------------------


@command(
    "CLIENT|HELP",
    group="connection",
    since="5.0.0",
    flags="loading stale",
    summary="Explains the subcommands.",
)
def client_help(ctx: Context, args: list[bytes]) -> bytes:
    return help_reply(
        "CLIENT",
        [
            ("CACHING (YES|NO)", "Mark the next command's keys for tracking. Tracking is not offered here."),
            ("GETREDIR", "Answer where tracking messages go: -1, nowhere."),
            ("GETNAME", "Answer this connection's name."),
            ("ID", "Answer this connection's number."),
            ("INFO", "Describe this connection, as LIST does."),
            ("KILL <ip:port>", "Close the connection that comes from <ip:port>."),
            (
                "KILL <option> <value> [<option> <value> [...]]",
                "Close the connections that fit all of:\n"
                "* ADDR <ip:port>: come from there.\n"
                "* LADDR <ip:port>: arrived there.\n"
                "* TYPE (NORMAL|MASTER|REPLICA|PUBSUB): are of this kind.\n"
                "* USER <username>: act as this user.\n"
                "* SKIPME (YES|NO): whether this connection stays (yes, if not said).\n"
                "* ID <client-id>: have this number.\n"
                "* MAXAGE <seconds>: are older than this.",
            ),
            (
                "LIST [TYPE (NORMAL|MASTER|REPLICA|PUBSUB) | ID <client-id> [<client-id> ...]]",
                "Describe all connections, those of a kind, or those with these numbers.",
            ),
            ("UNPAUSE", "End a pause."),
            ("PAUSE <milliseconds> [WRITE|ALL]", "Hold back everybody's requests, or those that write."),
            ("REPLY (ON|OFF|SKIP)", "Say whether this connection wants replies."),
            ("SETNAME <name>", "Name this connection."),
            ("SETINFO (LIB-NAME|LIB-VER) <text>", "Say which library this connection uses."),
            (
                "UNBLOCK <client-id> [TIMEOUT|ERROR]",
                "End a connection's wait, as if its time were up or with an error.",
            ),
            ("TRACKING (ON|OFF) [...]", "Ask for messages on changed keys. Not offered here."),
            ("TRACKINGINFO", "Answer the state of tracking: off."),
            ("NO-EVICT (ON|OFF)", "Keep this connection when memory is short."),
            ("NO-TOUCH (ON|OFF)", "Leave no trace in the keys' times of last use."),
        ],
    )
