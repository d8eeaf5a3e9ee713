"""The family modules, imported so that their commands are declared."""

from typing import Final

# One name a line, sorted; each stands in FAMILIES too.
from penstock.commands import (
    acl,
    client_control,
    client_list,
    clients,
    config,
    connection,
    databases,
    debug,
    expiry,
    info,
    introspection,
    keys,
    latency,
    list_ends,
    list_middle,
    list_moves,
    memory,
    monitor,
    objects,
    persistence,
    pubsub,
    scanning,
    server_admin,
    slowlog,
    storing,
    strings,
    transactions,
    xack,
    xack_runs,
    xadd,
    xadd_runs,
    xclaim,
    xdel,
    xgroup,
    xinfo,
    xpending,
    xrange,
    xread,
    xreadgroup,
    xsetid,
)
from penstock.commands import table as command_table
from penstock.commands.session import Session
from penstock.commands.table import Row

FAMILIES: Final = (
    acl,
    client_control,
    client_list,
    clients,
    config,
    connection,
    databases,
    debug,
    expiry,
    info,
    introspection,
    keys,
    latency,
    list_ends,
    list_middle,
    list_moves,
    memory,
    monitor,
    objects,
    persistence,
    pubsub,
    scanning,
    server_admin,
    slowlog,
    storing,
    strings,
    transactions,
    xack,
    xack_runs,
    xadd,
    xadd_runs,
    xclaim,
    xdel,
    xgroup,
    xinfo,
    xpending,
    xrange,
    xread,
    xreadgroup,
    xsetid,
)  # named, so that the imports are seen to serve something

NOBODY: Final = Session(0)  # in whose name the engine itself acts: expiry


def table() -> dict[bytes, Row]:
    """The command table by upper-case name."""
    return command_table.build(command_table.DECLARED)
