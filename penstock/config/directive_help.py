"""The directives in `penstock serve --help`: their names by group, and one of them in full."""

import textwrap
from collections.abc import Iterator
from typing import Final

from penstock.config.cluster_directives import CLUSTER
from penstock.config.directives import USED, Directive
from penstock.config.settings import DIRECTIVES, nearest
from penstock.errors import UsageError

WIDTH: Final = 100
FIRST_OF_GROUP: Final = {  # in the order of the table: the first directive of each group
    "port": "network",
    "tls-port": "TLS",
    "requirepass": "access",
    "databases": "process",
    "dbfilename": "log",
    "stream-node-max-bytes": "values",
    "maxmemory": "memory",
    "notify-keyspace-events": "observation",
    "metrics-port": "Penstock's own",
    "save": "snapshots",
    "replicaof": "replication",
    "cluster-enabled": "cluster",
}


def groups() -> Iterator[tuple[str, list[str]]]:
    """Each group with the names of its directives, without those that are accepted and have no effect."""
    title, names = "", list[str]()
    for name in [row.name for row in (*USED, *CLUSTER)]:
        if name in FIRST_OF_GROUP:
            if names:
                yield title, names
            title, names = FIRST_OF_GROUP[name], []
        names.append(name)
    yield title, names


def overview() -> str:
    """The names of all directives, by group."""
    lines = []
    for title, names in groups():
        lines.append(f"{title}:")
        lines += textwrap.wrap(
            " ".join(names), WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
        )
    return "\n".join(lines) + "\n"


def described(name: str) -> str:
    """One directive with its default. UsageError for an unknown one, with the most similar name."""
    row: Directive | None = DIRECTIVES.get(name.removeprefix("--").lower())
    if row is None:
        near = "".join([f" Did you mean {one}?" for one in nearest(name)])
        raise UsageError(f"There is no directive {name}.{near}")
    fixed = " It is set at the start only." if row.immutable else ""
    return f"{row.name} (default: {row.default or 'empty'})\n  {row.about}{fixed}\n"
