"""MODULE: no modules are loaded, and none can be (as in Redis 8.6.3 with enable-module-command `no`)."""

from typing import Final

from penstock.commands.common.help import help_reply
from penstock.engine.context import Context
from penstock.engine.table.command_table import command, container
from penstock.errors import ReplyError
from penstock.protocol import reply

NOT_ALLOWED: Final = (
    b'ERR MODULE command not allowed. If the enable-module-command option is set to "local", you can run it from a '
    b"local connection, otherwise you need to set this option in the configuration file, and then restart the server."
)

container("MODULE", group="server", since="4.0.0", summary="Commands for modules, of which there are none.")


@command(
    "MODULE|LIST",
    group="server",
    since="4.0.0",
    flags="admin noscript",
    complexity="O(N) where N is the number of loaded modules.",
    tips="nondeterministic_output_order",
    summary="Lists the modules; always empty here.",
)
def module_list(ctx: Context, args: list[bytes]) -> bytes:
    """Redis 8 lists its built-in `vectorset`, which Penstock does not have."""
    return reply.EMPTY_ARRAY


@command(
    "MODULE|LOAD",
    "path [arg [arg ...]]",
    group="server",
    since="4.0.0",
    flags="admin noscript no_async_loading",
    summary="Loads a module; always refused here.",
)
@command(
    "MODULE|LOADEX",
    "path [configs:CONFIG (name value) [CONFIG name value ...]] [args:ARGS args [args ...]]",
    group="server",
    since="7.0.0",
    flags="admin noscript no_async_loading",
    summary="Loads a module with its own settings; always refused here.",
)
@command(
    "MODULE|UNLOAD",
    "name",
    group="server",
    since="4.0.0",
    flags="admin noscript no_async_loading",
    summary="Unloads a module; always refused here.",
)
def module_change(ctx: Context, args: list[bytes]) -> bytes:
    raise ReplyError(NOT_ALLOWED)


@command("MODULE|HELP", group="server", since="5.0.0", flags="loading stale", summary="Lists the subcommands.")
def module_help(ctx: Context, args: list[bytes]) -> bytes:
    return help_reply(
        "MODULE",
        [
            ("LIST", "List the modules. There are none."),
            ("LOAD <path> [<arg> ...]", "Refused: modules cannot be loaded."),
            ("LOADEX <path> [[CONFIG NAME VALUE] [CONFIG NAME VALUE]] [ARGS ...]", "Refused, too."),
            ("UNLOAD <name>", "Refused, too."),
        ],
    )
