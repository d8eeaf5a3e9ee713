"""Random states of all types and encodings for RDB, and what can be seen of a state."""

import random
from typing import Final, TypeAlias

from tests.interchange.pictures import Ask

Request: TypeAlias = list[str]

FAR_MS: Final = 4_102_444_800_000  # 2100
# How a stream is divided is a server's own; Penstock forgets what was deleted within a node.
NOT_CARRIED: Final = frozenset({b"radix-tree-keys", b"radix-tree-nodes"})


class States:
    """Requests that make a state, from one seed. `field_times`, `producers`: whether the servers know these."""

    def __init__(self, seed: int, field_times: bool = True, producers: bool = True) -> None:
        self.chance = random.Random(seed)
        self.field_times = field_times
        self.producers = producers
        self.made: list[Request] = []

    def requests(self, keys: int = 30) -> list[Request]:
        makers = (self._string, self._list, self._set, self._hash, self._sorted_set, self._stream, self._stream)
        for number in range(keys):
            if self.chance.random() < 0.1:
                self.made.append(["SELECT", self.chance.choice("0123")])
            key = self.chance.choice((f"key:{number}", f"{number}", f"-{number}", f"k{number}" + "x" * 70))
            self.chance.choice(makers)(key)
            if self.chance.random() < 0.3:
                self.made.append(["PEXPIREAT", key, str(FAR_MS + self.chance.randrange(10**9))])
        return self.made

    # -- words ------------------------------------------------------------------------------------------------------

    def word(self) -> str:
        """A text, a number at an edge of its encoding, something that is nearly a number, or something long."""
        chance = self.chance
        edge = chance.choice((0, 12, 127, 128, 4095, 4096, 1 << 15, 1 << 23, 1 << 31, (1 << 63) - 1))
        return chance.choice((
            chance.choice(("a", "b", "field", "value", "", " ", "é", "\r\n")) + str(chance.randrange(1000)),
            str(chance.choice((-1, 1)) * max(edge + chance.randrange(-2, 1), 0)),
            chance.choice(("007", "+1", "-0", "1.5", "00", "9223372036854775808", "-9223372036854775809", " 1")),
            "abc" * chance.choice((1, 20, 21, 22, 100)),
            "".join(chance.choices("abcdefghijklmnop", k=chance.choice((3, 63, 64, 65, 200)))),
        ))  # fmt: skip

    def words(self, count: int) -> list[str]:
        """So many, all different."""
        found: dict[str, None] = {}
        while len(found) < count:
            found[self.word() + (str(len(found)) if self.chance.random() < 0.8 else "")] = None
        return list(found)

    def size(self) -> int:
        return self.chance.choice((1, 2, 5, 20, 127, 128, 129, 130, 513, 600))

    # -- values -----------------------------------------------------------------------------------------------------

    def _string(self, key: str) -> None:
        self.made.append(["SET", key, self.chance.choice((self.word(), "", self.word() * 200, "x" * 20000))])

    def _list(self, key: str) -> None:
        items = [self.word() for _ in range(self.size())]
        if self.chance.random() < 0.3:
            items.insert(self.chance.randrange(len(items)), "y" * self.chance.choice((5000, 8180, 8192, 9000)))
        self.made.append(["RPUSH", key, *items])

    def _set(self, key: str) -> None:
        if self.chance.random() < 0.4:
            widest = self.chance.choice((100, 1 << 14, 1 << 30, 1 << 62))
            self.made.append(["SADD", key, *{str(self.chance.randrange(-widest, widest)) for _ in range(self.size())}])
        else:
            self.made.append(["SADD", key, *self.words(self.size())])

    def _hash(self, key: str) -> None:
        fields = self.words(self.size())
        self.made.append(["HSET", key, *[word for field in fields for word in (field, self.word())]])
        if self.field_times and self.chance.random() < 0.5:
            some = self.chance.sample(fields, self.chance.randrange(1, len(fields) + 1))
            for field in some[:20]:
                when = str(FAR_MS + self.chance.randrange(10**6))
                self.made.append(["HPEXPIREAT", key, when, "FIELDS", "1", field])

    def _sorted_set(self, key: str) -> None:
        scores = ("1", "0", "-0", "inf", "-inf", "1.5", "0.1", "-1e-7", "1e20", "3.0", "123456789012345678", "2.5e-300")
        pairs = [word for member in self.words(self.size()) for word in (self.chance.choice(scores), member)]
        self.made.append(["ZADD", key, *pairs])

    def _stream(self, key: str) -> None:
        chance, made = self.chance, self.made
        names = self.words(chance.choice((1, 2, 5)))
        ms = chance.choice((0, 5, 1_700_000_000_000))
        ids: list[str] = []
        for _ in range(self.size()):
            ms += chance.choice((0, 0, 1, 200, 5000))
            entry_id = f"{ms}-{chance.randrange(3) + (10 * len(ids) if ids else 1)}"
            own = names if chance.random() < 0.9 else self.words(2)
            made.append(["XADD", key, entry_id, *[word for name in own for word in (name, self.word())]])
            ids.append(entry_id)
        if self.producers and chance.random() < 0.3:
            for iid in ("one", "two", "one"):
                made.append(["XADD", key, "IDMP", chance.choice("pq"), iid, "*", "f", "v"])
        for group in chance.sample(("g1", "g2", "g3"), chance.randrange(4)):
            made.append(["XGROUP", "CREATE", key, group, chance.choice(("0", "$", chance.choice(ids)))])
            made.append(["XGROUP", "CREATECONSUMER", key, group, "idle"])
            for consumer in chance.choices(("alice", "bob", "7"), k=chance.randrange(5)):
                count = str(chance.choice((1, 3, 150)))
                made.append(["XREADGROUP", "GROUP", group, consumer, "COUNT", count, "STREAMS", key, ">"])
            some = chance.sample(ids, min(len(ids), 4))
            when, tried = str(1_600_000_000_000 + chance.randrange(10**9)), str(chance.choice((1, 3, 200, 1 << 40)))
            made.append(["XCLAIM", key, group, "carol", "0", *some, "TIME", when, "RETRYCOUNT", tried])
            made.append(["XACK", key, group, *chance.sample(ids, min(len(ids), 3))])
        made.append(["XDEL", key, *chance.sample(ids, min(len(ids), chance.choice((1, 5, 60))))])
        if chance.random() < 0.3:
            made.append(["XTRIM", key, "MAXLEN", str(chance.choice((0, 1, len(ids) // 2)))])
        if chance.random() < 0.2:
            made.append(["XSETID", key, f"{ms + 10**9}-5", "ENTRIESADDED", "100000", "MAXDELETEDID", ids[-1]])


def shown(ask: Ask, databases: str = "0123") -> dict[tuple[str, str], object]:
    """All keys of a server with everything that can be seen of their values."""
    seen: dict[tuple[str, str], object] = {}
    for database in databases:
        ask("SELECT", database)
        keys = ask("KEYS", "*")
        assert isinstance(keys, list)
        for key in sorted(keys):
            name = key.decode()
            seen[database, name] = (ask("PEXPIRETIME", name), value(ask, name))
    return seen


def value(ask: Ask, key: str) -> object:
    kind = ask("TYPE", key)
    if kind == b"string":
        return ask("GET", key)
    if kind == b"list":
        return ask("LRANGE", key, "0", "-1")
    if kind == b"set":
        return sorted(ask("SMEMBERS", key))  # type: ignore[call-overload]  # of RESP3
    if kind == b"hash":
        fields = ask("HGETALL", key)
        assert isinstance(fields, dict)
        names = sorted(fields)
        times = ask("HPEXPIRETIME", key, "FIELDS", str(len(names)), *[name.decode() for name in names])
        return fields, times if isinstance(times, list) else None
    if kind == b"zset":
        return ask("ZRANGE", key, "0", "-1", "WITHSCORES")
    full = ask("XINFO", "STREAM", key, "FULL", "COUNT", "0")
    assert isinstance(full, dict)
    claimable = []
    for group in full[b"groups"]:
        claimable.append(ask("XPENDING", key, group[b"name"].decode(), "-", "+", "1000"))
    return without_structure(full), len(claimable)


def without_structure(full: dict[bytes, object]) -> dict[bytes, object]:
    kept = {name: one for name, one in full.items() if name not in NOT_CARRIED}
    for name in (b"groups", b"consumers"):
        listed = kept.get(name)
        if isinstance(listed, list):
            kept[name] = [{key: one for key, one in each.items() if key not in NOT_CARRIED} for each in listed]
    return kept
