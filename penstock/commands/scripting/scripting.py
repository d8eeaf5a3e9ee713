"""EVAL and its like, and SCRIPT: scripts in Lua, run as one, with no other request between.

Tests: transcripts scripts, script_corners; cases commands/test_scripts; law against_redis/test_scripts_beside_redis.
"""

from typing import Final

from penstock.commands.common.help import declare_help
from penstock.engine import arguments
from penstock.engine.context import Context
from penstock.engine.table.command_table import command, container
from penstock.errors import ReplyError
from penstock.protocol import reply

NO_SCRIPT: Final = b"NOSCRIPT No matching script."
SHA_LENGTH: Final = 40
ANY_KEYS: Final = (
    "numkeys@2 RW access update # We cannot tell how the keys will be used so we assume the worst, RW and UPDATE"
)
READ_KEYS: Final = (
    "numkeys@2 RO access # We cannot tell how the keys will be used so we assume the worst, RO and ACCESS"
)


def keys_and_args(args: list[bytes], refusal: bytes = b"ERR value is not an integer or out of range") -> int:
    """How many of the words from args[3] on are keys."""
    count = arguments.integer_or(args[2], refusal)
    if count > len(args) - 3:
        raise ReplyError(b"ERR Number of keys can't be greater than number of args")
    if count < 0:
        raise ReplyError(b"ERR Number of keys can't be negative")
    return count


@command(
    "EVAL script numkeys [key [key ...]] [arg [arg ...]]",
    f"2.6.0 noscript stale skip_monitor no_mandatory_keys movablekeys | keys {ANY_KEYS} | traits runs_text spreads",
    "Runs a script.",
    "Depends on the script that is executed.",
)
def eval_(ctx: Context, args: list[bytes]) -> bytes:
    return _evaluate(ctx, args, False)


@command(
    "EVAL_RO script numkeys [key [key ...]] [arg [arg ...]]",
    f"7.0.0 readonly noscript stale skip_monitor no_mandatory_keys movablekeys | keys {READ_KEYS} | traits runs_text",
    "Runs a script that only reads.",
    "Depends on the script that is executed.",
)
def eval_ro(ctx: Context, args: list[bytes]) -> bytes:
    return _evaluate(ctx, args, True)


def _evaluate(ctx: Context, args: list[bytes], read_only: bool) -> bytes:
    ctx.show_script()
    keys = keys_and_args(args)
    scripts = ctx.scripts
    sha = scripts.add(args[1], False)
    return scripts.run(ctx, sha, scripts.cached[sha], keys, args[3:], read_only)


@command(
    "EVALSHA sha1 numkeys [key [key ...]] [arg [arg ...]]",
    "2.6.0 noscript stale skip_monitor no_mandatory_keys movablekeys | keys numkeys@2 RW access update | "
    "traits runs_digest spreads",
    "Runs a script that the server has kept, by the SHA-1 of its text.",
    "Depends on the script that is executed.",
)
def evalsha(ctx: Context, args: list[bytes]) -> bytes:
    return _evaluate_kept(ctx, args, False)


@command(
    "EVALSHA_RO sha1 numkeys [key [key ...]] [arg [arg ...]]",
    "7.0.0 readonly noscript stale skip_monitor no_mandatory_keys movablekeys | keys numkeys@2 RO access | "
    "traits runs_digest",
    "Runs a script that the server has kept and that only reads.",
    "Depends on the script that is executed.",
)
def evalsha_ro(ctx: Context, args: list[bytes]) -> bytes:
    return _evaluate_kept(ctx, args, True)


def _evaluate_kept(ctx: Context, args: list[bytes], read_only: bool) -> bytes:
    ctx.show_script()
    if len(args[1]) != SHA_LENGTH:
        raise _missing(ctx)
    keys = keys_and_args(args)
    scripts, sha = ctx.scripts, args[1]
    script = scripts.cached.get(sha)
    if script is None:
        sha = sha.lower()
        script = scripts.cached.get(sha)
        if script is None:
            raise _missing(ctx)
    return scripts.run(ctx, sha, script, keys, args[3:], read_only)


def _missing(ctx: Context) -> ReplyError:
    return ReplyError(NO_SCRIPT if ctx.compatibility.is_valkey else NO_SCRIPT + b" Please use EVAL.")


# -- SCRIPT -----------------------------------------------------------------------------------------------------------

container("SCRIPT", group="scripting", since="2.6.0", summary="Keeps scripts, forgets them, stops one.")


@command(
    "SCRIPT|LOAD script",
    "2.6.0 noscript stale | traits may_replicate | tips request_policy:all_nodes response_policy:all_succeeded",
    "Keeps a script without running it.",
    "O(N) with N being the length in bytes of the script body.",
)
def script_load(ctx: Context, args: list[bytes]) -> bytes:
    return reply.bulk(ctx.scripts.add(args[2], True))


@command(
    "SCRIPT|EXISTS sha1 [sha1 ...]",
    "2.6.0 noscript | tips request_policy:all_shards response_policy:agg_logical_and",
    "Says which scripts the server has kept.",
    "O(N) with N being the number of scripts to check (so checking a single script is an O(1) operation).",
)
def script_exists(ctx: Context, args: list[bytes]) -> bytes:
    cached = ctx.scripts.cached
    return reply.array([reply.integer(int(sha.lower() in cached)) for sha in args[2:]])


@command(
    "SCRIPT|SHOW sha1",
    "8.0.0 noscript stale | only_in valkey",
    "Returns the text of a script that the server has kept.",
)
def script_show(ctx: Context, args: list[bytes]) -> bytes:
    script = ctx.scripts.cached.get(args[2].lower())
    if script is None:
        raise ReplyError(NO_SCRIPT)
    return reply.bulk(script.code)


@command(
    "SCRIPT|FLUSH flush-type:[ASYNC|SYNC]@6.2.0",
    "2.6.0 noscript | traits may_replicate | tips request_policy:all_nodes response_policy:all_succeeded",
    "Forgets all scripts.",
    "O(N) with N being the number of scripts in cache",
    history=(("6.2.0", "Added the `ASYNC` and `SYNC` flushing mode modifiers."),),
)
def script_flush(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) > 3 or (len(args) == 3 and args[2].upper() not in (b"ASYNC", b"SYNC")):
        raise ReplyError(b"ERR SCRIPT FLUSH only support SYNC|ASYNC option")
    ctx.scripts.flush()
    return reply.OK


@command(
    "SCRIPT|KILL",
    "2.6.0 noscript allow_busy | tips request_policy:all_shards response_policy:one_succeeded",
    "Stops the script that runs, if it has written nothing.",
)
def script_kill(ctx: Context, args: list[bytes]) -> bytes:
    return ctx.scripts.kill(False)


@command("SCRIPT|DEBUG mode:<YES|SYNC|NO>", "3.2.0 noscript", "Turns the debugger off, which there is not.")
def script_debug(ctx: Context, args: list[bytes]) -> bytes:
    mode = args[2].upper()
    if mode == b"NO":
        return reply.OK
    if mode in (b"YES", b"SYNC"):
        raise ReplyError(b"ERR this server has no debugger for scripts")
    raise ReplyError(b"ERR Use SCRIPT DEBUG YES/SYNC/NO")


declare_help(
    "SCRIPT",
    "5.0.0",
    [
        ("DEBUG (YES|SYNC|NO)", "Turn the debugger off. There is none."),
        ("EXISTS <sha1> [<sha1> ...]", "Say which scripts are kept."),
        ("FLUSH [ASYNC|SYNC]", "Forget all scripts."),
        ("KILL", "Stop the script that runs, if it has written nothing."),
        ("LOAD <script>", "Keep <script> without running it."),
    ],
    summary="Explains the subcommands.",
)
