"""What happened in a world, in lines with their virtual times."""

from typing import Final

from tests.world.loop import WorldLoop

KEPT: Final = 100_000  # lines


class Story:
    """Lines of a world. Nothing is kept of worlds that are not told."""

    def __init__(self, loop: WorldLoop, is_told: bool) -> None:
        self._loop = loop
        self._is_told = is_told
        self.lines: list[str] = []

    def tell(self, name: str, what: str) -> None:
        """name: of an actor, a machine, a fault."""
        if self._is_told and len(self.lines) < KEPT:
            self.lines.append(f"{self._loop.time():12.6f}  {name}: {what}")
