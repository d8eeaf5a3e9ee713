"""A log in memory."""


class UnitLog:
    """Keeps the units that an engine logs, each as its bytes."""

    def __init__(self) -> None:
        self.units: list[bytes] = []

    def append(self, unit: bytes) -> None:
        self.units.append(unit)

    @property
    def text(self) -> bytes:
        """All units, one behind the other."""
        return b"".join(self.units)

    def clear(self) -> None:
        self.units.clear()
