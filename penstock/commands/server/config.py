"""CONFIG: read and change the server's directives while it runs.

Tests: transcripts config; cases commands/test_config; law test_settings.
"""

from typing import Final

from penstock.commands.common.help import declare_help
from penstock.config import config_file, directives
from penstock.engine import protected_commands, refusals
from penstock.engine.context import Context
from penstock.engine.matching import globs
from penstock.engine.table.command_table import command, container
from penstock.engine.telemetry import redaction
from penstock.errors import ReplyError
from penstock.protocol import reply

HELP: Final = (
    ("GET <pattern>", "Show the directives whose names match the glob-style <pattern>, and their values."),
    ("SET <directive> <value>", "Change the value of a <directive>."),
    ("RESETSTAT", "Reset the counters of INFO."),
    ("REWRITE", "Write changed directives into the configuration file."),
)

container("CONFIG", group="server", since="2.0.0", summary="Reads and changes the server's directives.")


@command(
    "CONFIG|GET parameter [parameter ...]",
    "2.0.0 admin noscript loading stale",
    "Returns the directives with names that match a pattern, and their values.",
    "O(N) when N is the number of configuration parameters provided",
    history=(("7.0.0", "Added the ability to pass multiple pattern parameters in one call"),),
)
def config_get(ctx: Context, args: list[bytes]) -> bytes:
    settings = ctx.settings
    requested: dict[str, bytes] = {}  # each directive once, under the name that was sent first
    for pattern in args[2:]:
        if globs.is_plain(pattern):
            name = _decoded(pattern)
            if settings.seen(name) is not None:
                requested.setdefault(name.lower(), pattern)
            continue
        glob = globs.Glob(pattern, ignore_case=True, compile_after=globs.NEVER)
        for name in settings.names():
            if glob.matches(name.encode()):
                requested.setdefault(name, name.encode())
    values = [(shown, reply.bulk(_encoded(settings.canonical(name)))) for name, shown in requested.items()]
    return reply.fields(values, ctx.resp3)


def _without_secrets(request: list[bytes]) -> list[bytes]:
    """Hide the values of secret directives; if the arguments are no pairs, each word after such a name."""
    is_pairs = len(request) % 2 == 0
    return [
        redaction.HIDDEN
        if at >= 3 and (at % 2 or not is_pairs) and request[at - 1].lower() in directives.SECRETS
        else word
        for at, word in enumerate(request)
    ]


@command(
    "CONFIG|SET data:(parameter value) [parameter value ...]",
    "2.0.0 admin noscript loading stale | tips request_policy:all_nodes response_policy:all_succeeded",
    "Changes directives: all that are given, or none.",
    "O(N) when N is the number of configuration parameters provided",
    hide=_without_secrets,
    history=(("7.0.0", "Added the ability to set multiple parameters in one call."),),
)
def config_set(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) % 2:
        raise refusals.syntax()
    settings = ctx.settings
    pairs = [(_decoded(args[at]), _decoded(args[at + 1])) for at in range(2, len(args), 2)]
    protected_too = protected_commands.allows(settings.text("enable-protected-configs"), ctx.session)
    settings.set_pairs(pairs, protected_too)
    return reply.OK


@command(
    "CONFIG|RESETSTAT",
    "2.0.0 admin noscript loading stale | tips request_policy:all_nodes response_policy:all_succeeded",
    "Resets the counters of INFO.",
)
def config_resetstat(ctx: Context, args: list[bytes]) -> bytes:
    ctx.statistics.reset()
    return reply.OK


@command(
    "CONFIG|REWRITE",
    "2.8.0 admin noscript loading stale | tips request_policy:all_nodes response_policy:all_succeeded",
    "Writes the directives that CONFIG SET changed into the configuration file.",
)
def config_rewrite(ctx: Context, args: list[bytes]) -> bytes:
    """Comments and the order of lines stay. The file is replaced as a whole."""
    settings = ctx.settings
    if settings.file is None:
        raise ReplyError(b"ERR The server is running without a config file")
    try:
        config_file.rewrite(settings, ctx.access.lines_for_configuration())
    except OSError as error:
        raise ReplyError(b"ERR Rewriting config file: " + _encoded(error.strerror or "")) from None
    return reply.OK


declare_help("CONFIG", "5.0.0", HELP)


def _decoded(word: bytes) -> str:
    return word.decode("utf-8", "surrogateescape")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
