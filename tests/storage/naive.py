"""A stream and its groups as plain dicts and lists: what storage/ must be equal to, written to be obviously right."""

RELEASED = ""


class NaiveGroup:
    """Pending entries by id, and their order in time as one list, as Redis's documentation tells it."""

    def __init__(self, last_id: int) -> None:
        self.last_id = last_id
        self.pending: dict[int, tuple[str, int, int]] = {}  # id -> owner, delivery time, count
        self.nack_zone: list[int] = []
        self.timed: list[int] = []

    def put(self, entry_id: int, owner: str, time_ms: int, count: int) -> None:
        """Set a pending entry and move it to its place in time: behind all of an equal or earlier time."""
        self.drop_from_order(entry_id)
        self.pending[entry_id] = (owner, time_ms, count)
        if owner == RELEASED:
            self.nack_zone.append(entry_id)
            return
        at = len(self.timed)
        while at and self.pending[self.timed[at - 1]][1] > time_ms:
            at -= 1
        self.timed.insert(at, entry_id)

    def drop_from_order(self, entry_id: int) -> None:
        for order in (self.nack_zone, self.timed):
            if entry_id in order:
                order.remove(entry_id)

    def drop(self, entry_id: int) -> bool:
        self.drop_from_order(entry_id)
        return self.pending.pop(entry_id, None) is not None

    def order(self) -> list[int]:
        return self.nack_zone + self.timed


class NaiveStream:
    """Live entries by id, and the groups."""

    def __init__(self) -> None:
        self.entries: dict[int, bytes] = {}
        self.last_id = 0
        self.groups: dict[str, NaiveGroup] = {}

    def after(self, entry_id: int, most: int) -> list[int]:
        return sorted(one for one in self.entries if one > entry_id)[:most]

    def claimable(self, group: NaiveGroup, min_idle_ms: int, now_ms: int, most: int) -> list[int]:
        found: list[int] = []
        for entry_id in group.order():
            if entry_id not in self.entries:
                continue
            if len(found) == most or (now_ms - group.pending[entry_id][1]) % 2**64 < min_idle_ms:
                break
            found.append(entry_id)
        return found
