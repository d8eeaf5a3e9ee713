"""FUNCTION and FCALL: libraries of functions in Lua, which are data: they are logged and stand in a fresh base.

Tests: transcripts functions, script_corners; cases commands/test_scripts; law commands/test_functions_in_place.
"""

from penstock.commands.common.help import declare_help
from penstock.commands.scripting.scripting import ANY_KEYS, READ_KEYS, keys_and_args
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.matching import globs
from penstock.engine.scripting import function_payload
from penstock.engine.scripting.function_libraries import LOAD_LIMIT_MS, REPLAY_LIMIT_MS, Library
from penstock.engine.scripting.shebang import FLAGS
from penstock.engine.table.command_table import command, container
from penstock.errors import ReplyError
from penstock.protocol import reply


@command(
    "FCALL function numkeys [key [key ...]] [arg [arg ...]]",
    f"7.0.0 noscript stale skip_monitor no_mandatory_keys movablekeys | keys {ANY_KEYS} | traits runs_function spreads",
    "Runs a function of a library.",
    "Depends on the function that is executed.",
)
def fcall(ctx: Context, args: list[bytes]) -> bytes:
    return _call(ctx, args, False)


@command(
    "FCALL_RO function numkeys [key [key ...]] [arg [arg ...]]",
    f"7.0.0 readonly noscript stale skip_monitor no_mandatory_keys movablekeys | keys {READ_KEYS} | "
    "traits runs_function",
    "Runs a function of a library that only reads.",
    "Depends on the function that is executed.",
)
def fcall_ro(ctx: Context, args: list[bytes]) -> bytes:
    return _call(ctx, args, True)


def _call(ctx: Context, args: list[bytes], read_only: bool) -> bytes:
    ctx.show_script()
    scripts = ctx.scripts
    function = scripts.libraries.function(args[1])
    keys = keys_and_args(args, b"ERR Bad number of keys provided")
    return scripts.call(ctx, function, keys, args[3:], read_only)


container("FUNCTION", group="scripting", since="7.0.0", summary="Looks at libraries of functions and changes them.")


@command(
    "FUNCTION|LOAD [REPLACE] function-code",
    "7.0.0 write denyoom noscript | tips request_policy:all_shards response_policy:all_succeeded",
    "Makes a library of its code.",
    "O(1) (considering compilation time is redundant)",
)
def function_load(ctx: Context, args: list[bytes]) -> bytes:
    replaces = ctx.session.privileged  # a log that is loaded has the last word
    for option in args[2:-1]:
        if option.upper() != b"REPLACE":
            raise ReplyError(b"ERR Unknown option given: " + refusals.c_string(option))
        replaces = True
    libraries = ctx.scripts.libraries
    try:
        name = libraries.load(args[-1], replaces, _limit_ms(ctx))
    except ReplyError as refusal:
        if not _is_only_kept(ctx, refusal):
            raise
        libraries.keep(args[-1])
        return reply.OK
    ctx.log_request(args)
    ctx.dirty += 1
    return reply.bulk(name)


def _limit_ms(ctx: Context) -> int:
    """How long a library's code may run."""
    return REPLAY_LIMIT_MS if ctx.session.privileged else LOAD_LIMIT_MS


def _is_only_kept(ctx: Context, refusal: ReplyError) -> bool:
    """Whether a library is kept as code, for the next base: a log brings it, and there is no Lua to compile it."""
    return refusal.text == refusals.NO_LUA and ctx.session.privileged


@command(
    "FUNCTION|DELETE library-name",
    "7.0.0 write noscript | tips request_policy:all_shards response_policy:all_succeeded",
    "Removes a library.",
)
def function_delete(ctx: Context, args: list[bytes]) -> bytes:
    ctx.scripts.libraries.delete(args[2])
    ctx.log_request(args)
    ctx.dirty += 1
    return reply.OK


@command(
    "FUNCTION|FLUSH flush-type:[ASYNC|SYNC]",
    "7.0.0 write noscript | tips request_policy:all_shards response_policy:all_succeeded",
    "Removes all libraries.",
    "O(N) where N is the number of functions deleted",
)
def function_flush(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) > 3:
        raise refusals.unknown_or_wrong(args[1], args[0])
    if len(args) == 3 and args[2].upper() not in (b"ASYNC", b"SYNC"):
        raise ReplyError(b"ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
    ctx.scripts.libraries.flush()
    ctx.log_request(args)
    ctx.dirty += 1
    return reply.OK


@command(
    "FUNCTION|LIST [LIBRARYNAME library-name-pattern] [WITHCODE]",
    "7.0.0 noscript | tips nondeterministic_output_order",
    "Lists libraries and their functions.",
    "O(N) where N is the number of functions",
)
def function_list(ctx: Context, args: list[bytes]) -> bytes:
    pattern: bytes | None = None
    with_code = False
    at = 2
    while at < len(args):
        option = args[at].upper()
        if option == b"WITHCODE" and not with_code:
            with_code = True
        elif option == b"LIBRARYNAME" and pattern is None:
            at += 1
            if at == len(args):
                raise ReplyError(b"ERR library name argument was not given")
            pattern = args[at]
        else:
            raise ReplyError(b"ERR Unknown argument " + reply.flat(refusals.c_string(args[at])))
        at += 1
    glob = None if pattern is None else globs.Glob(pattern, ignore_case=True)
    return reply.array(
        [
            _described(library, with_code, ctx.resp3)
            for library in ctx.scripts.libraries.by_name.values()
            if glob is None or glob.matches(library.name)
        ]
    )


def _described(library: Library, with_code: bool, resp3: bool) -> bytes:
    functions = [
        reply.fields(
            [
                (b"name", reply.bulk(function.name)),
                (
                    b"description",
                    reply.null(resp3) if function.description is None else reply.bulk(function.description),
                ),
                (b"flags", reply.set_of([reply.simple(flag) for flag in FLAGS if flag in function.flags], resp3)),
            ],
            resp3,
        )
        for function in library.functions
    ]
    shown = [
        (b"library_name", reply.bulk(library.name)),
        (b"engine", reply.bulk(b"LUA")),
        (b"functions", reply.array(functions)),
    ]
    if with_code:
        shown.append((b"library_code", reply.bulk(library.code)))
    return reply.fields(shown, resp3)


@command(
    "FUNCTION|STATS",
    "7.0.0 noscript allow_busy | tips nondeterministic_output request_policy:all_shards response_policy:special",
    "Says which function runs, and how many there are.",
)
def function_stats(ctx: Context, args: list[bytes]) -> bytes:
    scripts, resp3 = ctx.scripts, ctx.resp3
    running = scripts.running
    shown = reply.null(resp3)
    if running is not None:
        if not running.is_function:
            raise ReplyError(scripts.busy_text())
        duration_ms = max(ctx.now_us - running.began_us, 0) // 1000
        shown = reply.fields(
            [
                (b"name", reply.bulk(running.name)),
                (b"command", reply.bulks(running.args)),
                (b"duration_ms", reply.integer(duration_ms)),
            ],
            resp3,
        )
    counts = [
        (b"libraries_count", reply.integer(len(scripts.libraries.by_name))),
        (b"functions_count", reply.integer(len(scripts.libraries.functions))),
    ]
    engines = reply.fields([(b"LUA", reply.fields(counts, resp3))], resp3)
    return reply.fields([(b"running_script", shown), (b"engines", engines)], resp3)


@command(
    "FUNCTION|DUMP",
    "7.0.0 noscript",
    "Answers all libraries in one text, for FUNCTION RESTORE.",
    "O(N) where N is the number of functions",
)
def function_dump(ctx: Context, args: list[bytes]) -> bytes:
    return reply.bulk(function_payload.written(list(ctx.scripts.libraries.codes())))


@command(
    "FUNCTION|RESTORE serialized-value policy:[FLUSH|APPEND|REPLACE]",
    "7.0.0 write denyoom noscript | tips request_policy:all_shards response_policy:all_succeeded",
    "Brings the libraries of FUNCTION DUMP back.",
    "O(N) where N is the number of functions on the payload",
)
def function_restore(ctx: Context, args: list[bytes]) -> bytes:
    """All libraries, or none."""
    if len(args) > 4:
        raise refusals.unknown_or_wrong(args[1], args[0])
    policy = args[3].upper() if len(args) == 4 else b"APPEND"
    if policy not in (b"FLUSH", b"APPEND", b"REPLACE"):
        raise ReplyError(b"ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")
    codes = function_payload.read(args[2])
    libraries = ctx.scripts.libraries
    try:
        libraries.restore(codes, policy == b"FLUSH", policy == b"REPLACE", _limit_ms(ctx))
    except ReplyError as refusal:
        if not _is_only_kept(ctx, refusal):
            raise
        if policy == b"FLUSH":
            libraries.flush()
        for code in codes:
            libraries.keep(code)
        return reply.OK
    ctx.log_request(args)
    ctx.dirty += 1
    return reply.OK


@command(
    "FUNCTION|KILL",
    "7.0.0 noscript allow_busy | tips request_policy:all_shards response_policy:one_succeeded",
    "Stops the function that runs, if it has written nothing.",
)
def function_kill(ctx: Context, args: list[bytes]) -> bytes:
    return ctx.scripts.kill(True)


declare_help(
    "FUNCTION",
    "7.0.0",
    [
        ("LOAD [REPLACE] <FUNCTION CODE>", "Make a library of its code."),
        ("DELETE <LIBRARY NAME>", "Remove a library."),
        ("LIST [LIBRARYNAME PATTERN] [WITHCODE]", "List libraries and their functions."),
        ("STATS", "Say which function runs, and how many there are."),
        ("KILL", "Stop the function that runs, if it has written nothing."),
        ("FLUSH [ASYNC|SYNC]", "Remove all libraries."),
        ("DUMP", "Answer all libraries in one text."),
        ("RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]", "Bring the libraries of such a text back."),
    ],
    summary="Explains the subcommands.",
)
