"""Commands for the whole server: TIME, LOLWUT, SHUTDOWN (Redis 8.6.3).

Tests: transcripts info; cases commands/test_server_admin.
"""

from typing import Final

from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.engine.versions import PENSTOCK_VERSION
from penstock.errors import ReplyError
from penstock.protocol import reply

NOT_SAVED: Final = b"ERR Errors trying to SHUTDOWN. Check logs."
SHUTDOWN_OPTIONS: Final = (b"SAVE", b"NOSAVE", b"NOW", b"FORCE", b"ABORT")
DRAWING: Final = """\
        ___________
       |           |        what is held back
   ~~~~|~~~~~~     |~~~~~
       |      | | |         is let out
       |______|_|_|_____
               \\_\\_\\______   in measured amounts
"""


@command("TIME", "2.6.0 loading stale fast | tips nondeterministic_output", "Returns the server's time.")
def time_(ctx: Context, args: list[bytes]) -> bytes:
    """In a transaction or a script time stands still, until the script has made the server busy (Redis 8.6.3)."""
    now_us = ctx.clock.now_us() if ctx.conditions.busy else ctx.now_us
    seconds = now_us // 1_000_000  # compiled, divmod makes objects
    return reply.bulks([b"%d" % seconds, b"%d" % (now_us - seconds * 1_000_000)])


@command("LOLWUT [VERSION version:integer]", "5.0.0 readonly fast", "Draws a picture, with the version.", "")
def lolwut(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) > 2 and args[1].upper() == b"VERSION":
        arguments.integer(args[2])
    compatibility = ctx.compatibility
    text = f"{DRAWING}\nPenstock {PENSTOCK_VERSION}. {compatibility.server.title()} ver. {compatibility.version}\n"
    return reply.verbatim(text.encode(), ctx.resp3)


# -- SHUTDOWN ---------------------------------------------------------------------------------------------------------


@command(
    "SHUTDOWN save-selector:[NOSAVE|SAVE] [NOW@7.0.0] [FORCE@7.0.0] [ABORT@7.0.0]",
    "1.0.0 admin noscript loading stale no_multi allow_busy",
    "Stops the server after all acknowledged writes, or an RDB file, are on disk.",
    "O(N) when saving, where N is the total number of keys in all databases when saving data, otherwise O(1)",
    history=(("7.0.0", "Added the `NOW`, `FORCE` and `ABORT` modifiers."),),
)
def shutdown(ctx: Context, args: list[bytes]) -> bytes:
    """In the log's replay it is refused, even with NOW. (Redis 8.6.3 refuses it there only without NOW.)"""
    options = [word.upper() for word in args[1:]]
    if not all(option in SHUTDOWN_OPTIONS for option in options):
        raise refusals.syntax()
    chosen = set(options)
    if {b"SAVE", b"NOSAVE"} <= chosen or (b"ABORT" in chosen and len(chosen) > 1):
        raise refusals.syntax()
    if b"ABORT" in chosen:
        raise ReplyError(
            b"ERR No shutdown in progress."
        )  # a shutdown does not wait for replicas, so it cannot be aborted
    if not ctx.waits:
        raise ReplyError(b"ERR SHUTDOWN without NOW or ABORT isn't allowed for DENY BLOCKING client")
    if not ctx.persistence.may_end(b"FORCE" in chosen):
        raise ReplyError(NOT_SAVED)
    saves = ctx.persistence.saves
    is_wanted = b"NOSAVE" not in chosen and (b"SAVE" in chosen or saves.points()) and not ctx.conditions.loading
    if is_wanted and (saves.save is None or saves.save()) and b"FORCE" not in chosen:
        raise ReplyError(NOT_SAVED)
    ctx.persistence.wanted_shutdown = True
    ctx.session.closing = True
    return reply.NO_REPLY
