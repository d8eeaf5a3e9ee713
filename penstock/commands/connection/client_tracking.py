"""CLIENT TRACKING and its kin: messages about changed keys, for caches that clients keep (Redis 8.6.3).

Tests: transcripts tracking, tracking_broadcast, tracking_redirect; law commands/test_tracking,
commands/test_tracking_rights.
"""

from typing import Final

from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.engine.tracking.tracking_options import NO_REDIRECT, TrackingOptions
from penstock.errors import ReplyError
from penstock.protocol import reply

OVERLAP: Final = (
    b"ERR Prefix '%b' overlaps with %b prefix '%b'. Prefixes for a single client must not overlap."  # new, which, other
)


@command(
    "CLIENT|TRACKING status:<ON|OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] "
    "[OPTOUT] [NOLOOP]",
    "6.0.0 noscript loading stale",
    "Switches messages about changed keys on or off.",
    "O(1). Some options may introduce additional complexity.",
)
def client_tracking(ctx: Context, args: list[bytes]) -> bytes:
    """Nothing is changed if anything is refused."""
    session = ctx.session
    options = TrackingOptions()
    prefixes = _read_options(ctx, args, options)
    if args[2].upper() == b"ON":
        _refuse_contradictions(session.tracking, options, prefixes)
        if options.by_prefix:
            _refuse_overlaps(session.tracking, prefixes)
        ctx.clients.tracking.begin(session, options, prefixes or [b""] if options.by_prefix else [])
    elif args[2].upper() == b"OFF":
        ctx.clients.tracking.end(session)
    else:
        raise refusals.syntax()
    ctx.clients.note_tracking()
    return reply.OK


def _read_options(ctx: Context, args: list[bytes], options: TrackingOptions) -> list[bytes]:
    """Read what follows ON or OFF; the prefixes."""
    prefixes: list[bytes] = []
    at = 3
    while at < len(args):
        word = args[at].upper()
        has_value = at + 1 < len(args)
        if word == b"REDIRECT" and has_value:
            at += 1
            id = arguments.integer(args[at])
            if id not in ctx.clients.sessions:
                raise ReplyError(b"ERR The client ID you want redirect to does not exist")
            if options.redirect != NO_REDIRECT:
                raise ReplyError(b"ERR A client can only redirect to a single other client")
            options.redirect = id
        elif word == b"BCAST":
            options.by_prefix = True
        elif word == b"OPTIN":
            options.opt_in = True
        elif word == b"OPTOUT":
            options.opt_out = True
        elif word == b"NOLOOP":
            options.no_loop = True
        elif word == b"PREFIX" and has_value:
            at += 1
            prefixes.append(args[at])
        else:
            raise refusals.syntax()
        at += 1
    return prefixes


def _refuse_contradictions(before: TrackingOptions | None, options: TrackingOptions, prefixes: list[bytes]) -> None:
    if prefixes and not options.by_prefix:
        raise ReplyError(b"ERR PREFIX option requires BCAST mode to be enabled")
    if before is not None and before.by_prefix is not options.by_prefix:
        raise ReplyError(
            b"ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling"
            b" it with a different mode."
        )
    if options.by_prefix and (options.opt_in or options.opt_out):
        raise ReplyError(b"ERR OPTIN and OPTOUT are not compatible with BCAST")
    if options.opt_in and options.opt_out:
        raise ReplyError(b"ERR You can't specify both OPTIN mode and OPTOUT mode")
    if before is not None and ((options.opt_in and before.opt_out) or (options.opt_out and before.opt_in)):
        raise ReplyError(
            b"ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling"
            b" it with a different mode."
        )


def _refuse_overlaps(before: TrackingOptions | None, prefixes: list[bytes]) -> None:
    """No prefix may begin with another of the same connection. O(prefixes squared)."""
    for at, prefix in enumerate(prefixes):
        for old in before.prefixes if before is not None else ():
            _refuse_overlap(prefix, old, b"an existing")
        for other in prefixes[at + 1 :]:
            _refuse_overlap(prefix, other, b"another provided")


def _refuse_overlap(prefix: bytes, other: bytes, which: bytes) -> None:
    if prefix.startswith(other) or other.startswith(prefix):
        raise ReplyError(OVERLAP % (prefix, which, other))


@command(
    "CLIENT|CACHING mode:<YES|NO>",
    "6.0.0 noscript loading stale",
    "Chooses whether the keys of the next request are tracked.",
)
def client_caching(ctx: Context, args: list[bytes]) -> bytes:
    options = ctx.session.tracking
    if options is None:
        raise ReplyError(
            b"ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode"
            b" enabled"
        )
    word = args[2].upper()
    if word == b"YES" and not options.opt_in:
        raise ReplyError(b"ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
    if word == b"NO" and not options.opt_out:
        raise ReplyError(b"ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
    if word not in (b"YES", b"NO"):
        raise refusals.syntax()
    ctx.session.choose_caching(True)
    return reply.OK


@command(
    "CLIENT|GETREDIR",
    "6.0.0 noscript loading stale",
    "Returns the connection that gets this connection's messages about changed keys.",
)
def client_getredir(ctx: Context, args: list[bytes]) -> bytes:
    options = ctx.session.tracking
    return reply.integer(-1 if options is None else options.redirect)


@command("CLIENT|TRACKINGINFO", "6.2.0 noscript loading stale", "Returns the state of tracking.")
def client_trackinginfo(ctx: Context, args: list[bytes]) -> bytes:
    options = ctx.session.tracking
    names = [b"off"] if options is None else _flags(options)
    return reply.fields(
        [
            (b"flags", reply.set_of([reply.bulk(name) for name in names], ctx.resp3)),
            (b"redirect", reply.integer(-1 if options is None else options.redirect)),
            (b"prefixes", reply.bulks([] if options is None else options.prefixes)),
        ],
        ctx.resp3,
    )


def _flags(options: TrackingOptions) -> list[bytes]:
    flags = [
        (b"on", True),
        (b"bcast", options.by_prefix),
        (b"optin", options.opt_in),
        (b"caching-yes", options.opt_in and options.is_chosen),
        (b"optout", options.opt_out),
        (b"caching-no", options.opt_out and options.is_chosen),
        (b"noloop", options.no_loop),
        (b"broken_redirect", options.is_broken),
    ]
    return [name for name, holds in flags if holds]
