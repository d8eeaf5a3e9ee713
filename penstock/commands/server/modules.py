"""MODULE: no modules are loaded, and none can be.

Tests: cases commands/test_cluster.
"""

from typing import Final

from penstock.commands.common.help import declare_help
from penstock.engine import protected_commands
from penstock.engine.context import Context
from penstock.engine.table.command_table import command, container
from penstock.errors import ReplyError
from penstock.protocol import reply

CANNOT_LOAD: Final = b"ERR Error loading the extension. Please check the server logs."
NOT_LOADED: Final = b"ERR Error unloading module: no such module with that name"

container("MODULE", group="server", since="4.0.0", summary="Commands for modules, of which there are none.")


@command(
    "MODULE|LIST",
    "4.0.0 admin noscript | tips nondeterministic_output_order",
    "Lists the modules; always empty here.",
    "O(N) where N is the number of loaded modules.",
)
def module_list(ctx: Context, args: list[bytes]) -> bytes:
    """Redis 8 lists its built-in `vectorset`, which Penstock does not have."""
    return reply.EMPTY_ARRAY


@command(
    "MODULE|LOAD path [arg [arg ...]]",
    "4.0.0 admin noscript no_async_loading | traits guarded_by_module",
    "Loads a module; always refused here.",
)
@command(
    "MODULE|LOADEX path [configs:CONFIG (name value) [CONFIG name value ...]] [args:ARGS args [args ...]]",
    "7.0.0 admin noscript no_async_loading | traits guarded_by_module",
    "Loads a module with its own settings; always refused here.",
)
@command(
    "MODULE|UNLOAD name",
    "4.0.0 admin noscript no_async_loading | traits guarded_by_module",
    "Unloads a module; always refused here.",
)
def module_change(ctx: Context, args: list[bytes]) -> bytes:
    """Refused in any case: modules are written for Redis's own process."""
    assert ctx.row is not None, "the engine names the row that it runs"
    protected_commands.require_allowed(ctx.settings, ctx.session, ctx.row)
    raise ReplyError(NOT_LOADED if ctx.row.name == "MODULE|UNLOAD" else CANNOT_LOAD)


declare_help(
    "MODULE",
    "5.0.0",
    [
        ("LIST", "List the modules. There are none."),
        ("LOAD <path> [<arg> ...]", "Refused: modules cannot be loaded."),
        ("LOADEX <path> [[CONFIG NAME VALUE] [CONFIG NAME VALUE]] [ARGS ...]", "Refused, too."),
        ("UNLOAD <name>", "Refused, too."),
    ],
)
