"""The identity of a server: its run id, its process, and the system that it runs on."""

import os
import random
import sys
from typing import Final

from penstock.engine.memory import process_memory

HEX: Final = "0123456789abcdef"
ID_LENGTH: Final = 40
NO_ID: Final = "0" * ID_LENGTH


def new_id(chance: random.Random) -> str:
    """Forty hexadecimal digits."""
    return "".join(chance.choices(HEX, k=ID_LENGTH))


class Identity:
    """Made once at the start; the server fills in what only it knows."""

    def __init__(self, chance: random.Random) -> None:
        self.run_id = new_id(chance)
        self.process_id = os.getpid()
        self.executable = sys.executable
        self.startup_bytes = process_memory.resident_bytes()
        self.usage = process_memory.ProcessUsage()
        self.event_loop = "asyncio"
        system = os.uname()
        self.system = f"{system.sysname} {system.release} {system.machine}"
        name = "CPython" if sys.implementation.name == "cpython" else sys.implementation.name
        self.interpreter = f"{name} {sys.version.split()[0]}"
        self.bits = 64 if sys.maxsize > 2**32 else 32
