"""All commands: the table made of what the modules of this folder declare, and the engine that is handed it."""

import pkgutil
import random
from importlib import import_module
from typing import Final

from penstock import commands
from penstock.clock import Clock
from penstock.config.settings import Settings
from penstock.engine.effects import EffectLog
from penstock.engine.engine import Engine
from penstock.engine.table import client_compat, command_table
from penstock.engine.table.client_compat import Compatibility
from penstock.engine.table.command_lookup import CommandLookup
from penstock.engine.table.command_table import Command


def _declare() -> None:
    """Import every module below this folder: those with commands, batch or replay functions declare them."""
    for module in pkgutil.walk_packages(commands.__path__, "penstock.commands."):
        if module.name != __name__:  # a compiled module is not known as imported while it is
            import_module(module.name)


_declare()
TABLE: Final = command_table.build(command_table.DECLARED)  # once: rows do not change, and are every engine's
COMMANDS: Final = CommandLookup(TABLE, Compatibility(), ())  # of every engine with the newest, and none renamed


def table() -> dict[bytes, Command]:
    """The command table by upper-case name, without what only Valkey has."""
    return dict(COMMANDS.table)


def new_engine(settings: Settings, clock: Clock, chance: random.Random, log: EffectLog | None = None) -> Engine:
    """An engine that knows every command."""
    compatibility = client_compat.of(settings)
    lookup = COMMANDS
    if settings.renamed or not compatibility.is_newest:
        lookup = CommandLookup(TABLE, compatibility, settings.renamed)
    return Engine(settings, clock, chance, lookup, log)
