"""Random requests for one client's own keys: what they lead to depends on no other client and on no clock."""

import random
from collections.abc import Callable

STREAM = "s"
STRINGS = ("a", "b", "n")
GROUPS = ("g", "h")
CONSUMERS = ("alice", "bob", "carol")
LONGEST_BATCH = 20

Request = list[bytes]


class Requests:
    """Batches of requests; `prefix` goes before the names of its keys.

    Left out is what no log carries: the counts that a read of history raises.
    """

    def __init__(self, chance: random.Random, prefix: str) -> None:
        self._chance = chance
        self._prefix = prefix
        self._last = 0  # id of the newest entry, its first part
        self._makers: list[Callable[[], str]] = [
            self.add, self.add, self.add, self.add, self.add, self.read, self.read, self.acknowledge,
            self.acknowledge, self.release, self.claim, self.claim, self.delete, self.trim, self.group, self.string,
            self.string,
        ]  # fmt: skip

    @property
    def key(self) -> str:
        return self._prefix + STREAM

    def opening(self) -> list[Request]:
        """The first batch."""
        lines = [f"XGROUP CREATE {self.key} {group} 0 MKSTREAM" for group in GROUPS]
        return [line.encode().split() for line in lines]

    def batch(self) -> list[Request]:
        lines = []
        for _ in range(self._chance.randint(1, LONGEST_BATCH)):
            if self._chance.random() < 0.1:
                lines += ["MULTI", *[self._line() for _ in range(self._chance.randint(1, 5))]]
                lines.append("EXEC" if self._chance.random() < 0.8 else "DISCARD")
            else:
                lines.append(self._line())
        return [line.encode().split() for line in lines]

    def _line(self) -> str:
        return self._chance.choice(self._makers)()

    def _ids(self) -> list[str]:
        newest = max(self._last, 1)
        count = self._chance.choice((1, 1, 2, 5, 20))
        return [f"{self._chance.randint(max(1, newest - 60), newest)}-1" for _ in range(count)]

    def _group(self) -> str:
        return self._chance.choice(GROUPS)

    def _consumer(self) -> str:
        return self._chance.choice(CONSUMERS)

    def _trimming(self) -> str:
        sign = self._chance.choice(("", "= ", "~ "))
        what = self._chance.choice(
            (f"MAXLEN {sign}{self._chance.choice((0, 50, 100, 300, 300))}", f"MINID {sign}{self._last - 100}")
        )
        return f" {self._chance.choice(('', 'KEEPREF ', 'DELREF ', 'ACKED '))}{what}" if self._last > 100 else ""

    def add(self) -> str:
        self._last += self._chance.choice((1, 1, 1, 3))
        trimming = self._trimming() if self._chance.random() < 0.2 else ""
        value = "v" * self._chance.choice((1, 1, 10, 100, 3000))
        return f"XADD {self.key}{trimming} {self._last}-1 field {value}"

    def read(self) -> str:
        noack = self._chance.choice(("", "", "", "NOACK "))
        count = self._chance.choice((1, 5, 100))
        return f"XREADGROUP GROUP {self._group()} {self._consumer()} COUNT {count} {noack}STREAMS {self.key} >"

    def acknowledge(self) -> str:
        ids = self._ids()
        if self._chance.random() < 0.3:
            mode = self._chance.choice(("KEEPREF", "DELREF", "ACKED"))
            return f"XACKDEL {self.key} {self._group()} {mode} IDS {len(ids)} {' '.join(ids)}"
        return f"XACK {self.key} {self._group()} {' '.join(ids)}"

    def release(self) -> str:
        ids = self._ids()
        mode = self._chance.choice(("SILENT", "FAIL", "FATAL"))
        count = self._chance.choice(("", "", " RETRYCOUNT 7"))
        return f"XNACK {self.key} {self._group()} {mode} IDS {len(ids)} {' '.join(ids)}{count}"

    def claim(self) -> str:
        who = f"{self.key} {self._group()} {self._consumer()} 0"
        if self._chance.random() < 0.3:
            return f"XAUTOCLAIM {who} 0 COUNT {self._chance.choice((1, 10))}"
        options = self._chance.choice(("", "", " JUSTID", " RETRYCOUNT 9", " FORCE"))
        return f"XCLAIM {who} {' '.join(self._ids())}{options}"

    def delete(self) -> str:
        return f"XDEL {self.key} {' '.join(self._ids())}"

    def trim(self) -> str:
        return f"XTRIM {self.key}{self._trimming() or ' MAXLEN 1000'}"

    def group(self) -> str:
        group, consumer = self._group(), self._consumer()
        made = (
            f"XGROUP SETID {self.key} {group} {self._chance.randint(0, max(self._last, 1))}-1",
            f"XSETID {self.key} {self._last + 1}-0",
            f"XGROUP CREATECONSUMER {self.key} {group} {consumer}",
            f"XGROUP DELCONSUMER {self.key} {group} {consumer}",
        )
        return self._chance.choice(made)

    def string(self) -> str:
        key = self._prefix + self._chance.choice(STRINGS)
        made = (f"SET {key} {self._last}", f"APPEND {key} x", f"INCR {key}", f"DEL {key}", f"GET {key}")
        return self._chance.choice(made)
