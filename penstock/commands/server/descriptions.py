"""The replies of COMMAND INFO and COMMAND DOCS for one row of the command table."""

from collections.abc import Iterable
from typing import Final, TypeAlias

from penstock.engine.table import argument_tree, command_syntax, key_specs
from penstock.engine.table.acl_categories import categories
from penstock.engine.table.argument_tree import Argument
from penstock.engine.table.key_specs import KeySpec
from penstock.engine.table.row import Row
from penstock.protocol import reply

FLAGS: Final = (  # in the order of COMMAND INFO (Redis 8.6.3)
    "readonly", "write", "denyoom", "admin", "asking", "blocking", "module", "pubsub", "noscript", "loading", "stale",
    "fast", "no_async_loading", "no_auth", "no_multi", "allow_busy", "skip_monitor", "no_mandatory_keys",
    "movablekeys", "skip_slowlog",
)  # fmt: skip

Fields: TypeAlias = list[tuple[bytes, bytes]]


def text(words: str) -> bytes:
    return reply.bulk(words.encode())


def names(words: Iterable[str], resp3: bool) -> bytes:
    """A set of simple strings."""
    return reply.set_of([reply.simple(word.encode()) for word in words], resp3)


# -- COMMAND INFO ----------------------------------------------------------------------------------------------------


def info(row: Row, resp3: bool) -> bytes:
    """The ten elements of COMMAND INFO for one command."""
    first, last, step = key_specs.fixed_range(row.key_specs)
    subcommands = [info(subcommand, resp3) for subcommand in row.subcommands.values()]
    return reply.array(
        [
            reply.bulk(row.label),
            reply.integer(row.arity),
            names([flag for flag in FLAGS if flag in row.flags], resp3),
            reply.integer(first),
            reply.integer(last),
            reply.integer(step),
            names(["@" + category for category in categories(row)], resp3),
            reply.set_of([text(tip) for tip in row.declared.tips.split()], resp3),
            reply.set_of([_key_spec(spec, resp3) for spec in row.key_specs], resp3),
            reply.array(subcommands) if subcommands else reply.set_of([], resp3),
        ]
    )


def _key_spec(spec: KeySpec, resp3: bool) -> bytes:
    fields: Fields = [(b"notes", text(spec.note))] if spec.note else []
    fields.append((b"flags", names(spec.flags, resp3)))
    if spec.unknown:
        begin = find = _search("unknown", [], resp3)
    else:
        if spec.keyword:
            wanted: Fields = [(b"keyword", text(spec.keyword)), (b"startfrom", reply.integer(spec.index))]
            begin = _search("keyword", wanted, resp3)
        else:
            begin = _search("index", [(b"index", reply.integer(spec.index))], resp3)
        step = (b"keystep", reply.integer(spec.step))
        if spec.counted:
            find = _search("keynum", [(b"keynumidx", reply.ZERO), (b"firstkey", reply.ONE), step], resp3)
        else:
            last = (b"lastkey", reply.integer(spec.last))
            find = _search("range", [last, step, (b"limit", reply.integer(spec.limit))], resp3)
    fields += [(b"begin_search", begin), (b"find_keys", find)]
    return reply.fields(fields, resp3)


def _search(type: str, spec: Fields, resp3: bool) -> bytes:
    return reply.fields([(b"type", text(type)), (b"spec", reply.fields(spec, resp3))], resp3)


# -- COMMAND DOCS ----------------------------------------------------------------------------------------------------


def docs(row: Row, resp3: bool) -> bytes:
    """The documentation of one command and its subcommands."""
    fields: Fields = [
        (b"summary", text(row.declared.summary)),
        (b"since", text(row.declared.since)),
        (b"group", text(row.group)),
    ]
    if row.declared.complexity:
        fields.append((b"complexity", text(row.declared.complexity)))
    flags = row.declared.doc_flags.split()
    if row.declared.deprecated is not None:
        flags.append("deprecated")
    if flags:
        fields.append((b"doc_flags", names(flags, resp3)))
    if row.declared.deprecated is not None:
        since, instead = row.declared.deprecated
        fields += [(b"deprecated_since", text(since)), (b"replaced_by", text(instead))]
    if row.declared.history:
        changes = [reply.array([text(version), text(change)]) for version, change in row.declared.history]
        fields.append((b"history", reply.set_of(changes, resp3)))
    shown = argument_tree.without(command_syntax.parse(row.syntax), row.hidden) if row.syntax else []
    if shown:
        fields.append((b"arguments", _arguments(shown, resp3)))
    if row.subcommands:
        subcommands = [(subcommand.label, docs(subcommand, resp3)) for subcommand in row.subcommands.values()]
        fields.append((b"subcommands", reply.fields(subcommands, resp3)))
    return reply.fields(fields, resp3)


def _arguments(shown: list[Argument], resp3: bool) -> bytes:
    return reply.array([_argument(argument, resp3) for argument in shown])


def _argument(argument: Argument, resp3: bool) -> bytes:
    fields: Fields = [(b"name", text(argument.name)), (b"type", text(argument.type))]
    if argument.display:
        fields.append((b"display_text", text(argument.display)))
    if argument.key_spec >= 0:
        fields.append((b"key_spec_index", reply.integer(argument.key_spec)))
    if argument.token is not None:
        fields.append((b"token", text(argument.token)))
    if argument.since:
        fields.append((b"since", text(argument.since)))
    if argument.deprecated:
        fields.append((b"deprecated_since", text(argument.deprecated)))
    flags = _flags(argument)
    if flags:
        fields.append((b"flags", names(flags, resp3)))
    if argument.arguments:
        fields.append((b"arguments", _arguments(argument.arguments, resp3)))
    return reply.fields(fields, resp3)


def _flags(argument: Argument) -> list[str]:
    flags: list[str] = []
    if argument.optional:
        flags.append("optional")
    if argument.multiple:
        flags.append("multiple")
    if argument.multiple_token:
        flags.append("multiple_token")
    return flags
