"""INFO: the server's state as lines of text, in sections (Redis 8.6.3).

Tests: transcripts info, keysizes; law commands/test_info.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from penstock.commands.server import info_sections
from penstock.engine.context import Context
from penstock.engine.table.client_compat import VALKEY_FIELDS
from penstock.engine.table.command_table import command
from penstock.protocol import reply

Section: TypeAlias = "Callable[[Context], info_sections.Text]"

SECTIONS: Final[tuple[tuple[str, Section], ...]] = (
    ("Server", info_sections.server),
    ("Clients", info_sections.clients),
    ("Memory", info_sections.memory),
    ("Persistence", info_sections.persistence),
    ("Threads", info_sections.threads),
    ("Stats", info_sections.stats),
    ("Replication", info_sections.replication),
    ("CPU", info_sections.cpu),
    ("Hotkeys", info_sections.hotkeys),
    ("Modules", info_sections.modules),
    ("Commandstats", info_sections.commandstats),
    ("Errorstats", info_sections.errorstats),
    ("Latencystats", info_sections.latencystats),
    ("Cluster", info_sections.cluster),
    ("Keyspace", info_sections.keyspace),
    ("Keysizes", info_sections.keysizes),
)
ON_REQUEST: Final = frozenset({"commandstats", "latencystats"})  # not in the default reply


@command(
    "INFO [section [section ...]]",
    "1.0.0 loading stale | acl dangerous | "
    "tips nondeterministic_output request_policy:all_shards response_policy:special",
    "Returns the server's state.",
    history=(("7.0.0", "Added support for taking multiple section arguments."),),
)
def info(ctx: Context, args: list[bytes]) -> bytes:
    shown = _shown(args[1:]) if len(args) > 1 else BY_DEFAULT
    assert ctx.row is not None, "a request that runs has a row"
    hidden = ctx.row.hidden
    if hidden:
        shown = tuple([(title, section) for title, section in shown if title.lower().encode() not in hidden])
    parts: list[str] = []
    for title, section in shown:
        parts.append("\r\n# " if parts else "# ")
        parts.append(title)
        parts.append("\r\n")
        parts.append(_as_known(section(ctx), hidden, ctx.compatibility.is_valkey))
    return reply.verbatim("".join(parts).encode(errors="surrogateescape"), ctx.resp3)


def _shown(names: list[bytes]) -> tuple[tuple[str, Section], ...]:
    """The sections that a request names."""
    wanted = {name.decode(errors="replace").lower() for name in names}
    if wanted & {"all", "everything"}:
        return SECTIONS
    return tuple(
        [
            (title, section)
            for title, section in SECTIONS
            if title.lower() in wanted or ("default" in wanted and title.lower() not in ON_REQUEST)
        ]
    )


BY_DEFAULT: Final = _shown([b"default"])


def _as_known(text: info_sections.Text, hidden: frozenset[bytes], is_valkey: bool) -> info_sections.Text:
    """The lines of a section but for those of hidden fields, under Valkey's names for a Valkey."""
    if not hidden:
        return text
    shown: list[str] = []
    for line in text.split("\r\n"):
        name, colon, value = line.partition(":")
        if is_valkey and name in VALKEY_FIELDS:
            shown.append(VALKEY_FIELDS[name] + colon + value)
        elif name.encode(errors="replace") not in hidden:
            shown.append(line)
    return "\r\n".join(shown)
