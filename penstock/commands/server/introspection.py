"""COMMAND: describes the command table to clients.

Tests: transcripts command_keys, info; cases commands/test_introspection; law commands/test_syntax.
"""

from collections.abc import Callable, Iterable, Iterator

from penstock.commands.common.help import declare_help
from penstock.commands.server import descriptions
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.matching import globs
from penstock.engine.table.acl_categories import categories
from penstock.engine.table.command_table import command
from penstock.engine.table.row import Row
from penstock.errors import ReplyError
from penstock.protocol import reply


@command(
    "COMMAND",
    "2.8.13 loading stale | acl connection | tips nondeterministic_output_order | arity -1",
    "Describes all commands.",
    "O(N) where N is the total number of Redis commands",
)
def command_all(ctx: Context, args: list[bytes]) -> bytes:
    return _whole(
        ctx, "info", lambda: reply.array([descriptions.info(row, ctx.resp3) for row in ctx.commands.rows.values()])
    )


def _whole(ctx: Context, name: str, made: Callable[[], bytes]) -> bytes:
    """A reply about all commands, which the engine keeps: every redis-cli asks for it when it starts (10 ms)."""
    kept, name = ctx.telemetry.descriptions, name + ("3" if ctx.resp3 else "2")
    if name not in kept:
        kept[name] = made()
    return kept[name]


def _docs(ctx: Context, rows: Iterable[Row]) -> bytes:
    return reply.fields([(row.label, descriptions.docs(row, ctx.resp3)) for row in rows], ctx.resp3)


@command(
    "COMMAND|COUNT", "2.8.13 loading stale | acl connection", "Returns the number of commands, without subcommands."
)
def command_count(ctx: Context, args: list[bytes]) -> bytes:
    return reply.integer(len(ctx.commands.rows))


@command(
    "COMMAND|INFO [command-name [command-name ...]]",
    "2.8.13 loading stale | acl connection | tips nondeterministic_output_order",
    "Describes the given commands: arity, flags, keys.",
    "O(N) where N is the number of commands to look up",
    history=(("7.0.0", "Allowed to be called with no argument to get info on all commands."),),
)
def command_info(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) == 2:
        return command_all(ctx, args)
    found = [_named(ctx, name) for name in args[2:]]
    return reply.array([reply.null(ctx.resp3) if row is None else descriptions.info(row, ctx.resp3) for row in found])


@command(
    "COMMAND|DOCS [command-name [command-name ...]]",
    "7.0.0 loading stale | acl connection | tips nondeterministic_output_order",
    "Returns the documentation of the given commands, or of all.",
    "O(N) where N is the number of commands to look up",
)
def command_docs(ctx: Context, args: list[bytes]) -> bytes:
    """Unknown names are left out."""
    if len(args) == 2:
        return _whole(ctx, "docs", lambda: _docs(ctx, ctx.commands.rows.values()))
    return _docs(ctx, [row for row in [_named(ctx, name) for name in args[2:]] if row is not None])


@command(
    "COMMAND|LIST [filterby:FILTERBY <MODULE module-name|ACLCAT category|PATTERN pattern>]",
    "7.0.0 loading stale | acl connection | tips nondeterministic_output_order",
    "Lists the names of commands and subcommands.",
    "O(N) where N is the total number of Redis commands",
)
def command_list(ctx: Context, args: list[bytes]) -> bytes:
    rows = _every(ctx.commands.rows.values())
    if len(args) > 2:
        if len(args) != 5 or args[2].upper() != b"FILTERBY":
            raise refusals.syntax()
        kind, wanted = args[3].upper(), args[4]
        if kind == b"MODULE":
            rows = iter(())  # no command here comes from a module
        elif kind == b"ACLCAT":
            category = wanted.lower().decode("utf-8", "replace")
            rows = (row for row in rows if category in categories(row))
        elif kind == b"PATTERN":
            glob = globs.Glob(wanted, ignore_case=True)
            rows = (row for row in rows if glob.matches(row.label))
        else:
            raise refusals.syntax()
    return reply.bulks([row.label for row in rows])


@command(
    "COMMAND|GETKEYS command [arg [arg ...]]",
    "2.8.13 loading stale | acl connection",
    "Returns the keys in a request.",
    "O(N) where N is the number of arguments to the command",
)
def command_getkeys(ctx: Context, args: list[bytes]) -> bytes:
    return reply.bulks([key for key, _ in _keys(ctx, args[2:])])


@command(
    "COMMAND|GETKEYSANDFLAGS command [arg [arg ...]]",
    "7.0.0 loading stale | acl connection",
    "Returns the keys in a request, and how each is used.",
    "O(N) where N is the number of arguments to the command",
)
def command_getkeysandflags(ctx: Context, args: list[bytes]) -> bytes:
    found = _keys(ctx, args[2:])
    return reply.array([reply.array([reply.bulk(key), descriptions.names(flags, ctx.resp3)]) for key, flags in found])


declare_help(
    "COMMAND",
    "5.0.0",
    [
        ("(no subcommand)", "Describe all commands: arity, flags, keys, categories."),
        ("COUNT", "Return the number of commands."),
        ("LIST [FILTERBY MODULE|ACLCAT|PATTERN <filter>]", "List the names of commands and subcommands."),
        ("INFO [<command-name> ...]", "Describe the given commands, or all."),
        ("DOCS [<command-name> ...]", "Return the documentation of the given commands, or of all."),
        ("GETKEYS <full-command>", "Return the keys in a request."),
        ("GETKEYSANDFLAGS <full-command>", "Return the keys in a request, and how each is used."),
    ],
    acl="connection",
)


def _every(rows: Iterable[Row]) -> Iterator[Row]:
    """Commands, each followed by its subcommands."""
    for row in rows:
        yield row
        yield from row.subcommands.values()


def _named(ctx: Context, name: bytes) -> Row | None:
    """The row with a name, in upper or lower case; subcommands are written `xgroup|create`."""
    word, bar, below = name.upper().partition(b"|")
    row = ctx.commands.rows.get(word)
    return row.subcommands.get(below) if row is not None and bar else row


def _keys(ctx: Context, request: list[bytes]) -> list[tuple[bytes, list[str]]]:
    """The keys of a request. Errors in Redis's order: unknown, without keys, wrong arity, malformed."""
    row = ctx.commands.rows.get(request[0].upper())
    if row is not None and row.subcommands and len(request) > 1:
        row = row.subcommands.get(request[1].upper())
    if row is None:
        raise ReplyError(b"ERR Invalid command specified")
    if not row.has_keys:
        raise ReplyError(b"ERR The command has no key arguments")
    if not row.fits(len(request)):
        raise ReplyError(b"ERR Invalid number of arguments specified for command")
    places = row.key_places(request)
    if not places and "no_mandatory_keys" not in row.flags:
        raise ReplyError(b"ERR Invalid arguments specified for command")
    return [(request[place.position], place.flags) for place in places]
