"""The views of the page, as JSON: each is read anew for each update, with a bounded number of requests and rows."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from penstock.observe.console import keys, names, stream_list
from penstock.observe.console.catalogue import Catalogue
from penstock.observe.console.engine_client import EngineClient, Words
from penstock.observe.console.replies import RefusedByServer, checked, fields_of, info_of
from penstock.observe.console.stream_list import StreamList

Shown: TypeAlias = dict[str, Any]

STREAMS: Final = 25  # rows of a page
GROUPS: Final = 50
CONSUMERS: Final = 200
PENDING: Final = 50
ENTRIES: Final = 25
SLOW: Final = 50
FIELDS: Final = 100
STEPS: Final = 20  # of SCAN a turn, until all keys have been met once
STEP_PAUSE_S: Final = 0.01
MOST_START: Final = 10_000
INFO: Final = [b"INFO", b"server", b"clients", b"memory", b"stats", b"persistence", b"replication"]


class BadQuestion(Exception):
    """The address of the view is wrong."""


class View:
    """One open view: what was asked for. `read` asks the server; RefusedByServer, Gone."""

    def __init__(self, client: EngineClient, asked: Mapping[str, str]) -> None:
        """BadQuestion for parameters that no page sends."""
        self._client = client
        self._asked = asked
        self._db = self._number("db", 15)
        self._start = self._number("start", MOST_START)
        kind = b"stream" if asked.get("view", "overview") == "overview" else self._bytes("type")
        self._catalogue = Catalogue(self._db, pattern_of(self._bytes("pattern")), kind)
        order = asked.get("sort", stream_list.NAME)
        if not StreamList.is_order(order):
            raise BadQuestion("there is no such order")
        self._list = StreamList(order, asked.get("only", "") == "pending")
        self._read = self._kinds().get(asked.get("view", "overview"))
        if self._read is None:
            raise BadQuestion("there is no such view")

    def _kinds(self) -> dict[str, Callable[[], Awaitable[Shown]]]:
        return {
            "overview": self._overview,
            "stream": self._stream,
            "group": self._group,
            "entry": self._entry,
            "keys": self._keys,
            "key": self._one_key,
            "slow": self._slow,
        }

    def _number(self, name: str, most: int) -> int:
        text = self._asked.get(name, "0")
        if not text.isdecimal() or len(text) > len(str(most)) or int(text) > most:
            raise BadQuestion(f"{name} is a number from 0 to {most}")
        return int(text)

    def _bytes(self, name: str) -> bytes:
        return names.of_token(self._asked.get(name, ""))

    async def read(self) -> Shown:
        """The view as it is now; `at_ms` is a time from which rates can be computed."""
        assert self._read is not None, "the constructor has refused it"
        try:
            shown = await self._read()
        except RefusedByServer as refusal:
            return {"error": str(refusal)}
        return shown | {"at_ms": round(asyncio.get_running_loop().time() * 1000)}

    async def _ask(self, requests: list[Words]) -> list[Any]:
        return await self._client.pipeline(requests, self._db)

    # -- overview -----------------------------------------------------------------------------------------------------

    async def _scan(self) -> Catalogue:
        """The names of the keys, as far as they are known after this turn."""
        catalogue = self._catalogue
        await catalogue.step(self._client)
        for _ in range(STEPS):
            if catalogue.is_complete:
                break
            await asyncio.sleep(STEP_PAUSE_S)
            await catalogue.step(self._client)
        return catalogue

    async def _overview(self) -> Shown:
        catalogue = await self._scan()
        await self._list.look(self._ask, catalogue.found)
        chosen = self._list.ordered(catalogue.found)
        page = chosen[self._start : self._start + STREAMS]
        questions: list[Words] = [INFO, [b"DBSIZE"]]
        for key in page:
            questions += [[b"XINFO", b"STREAM", key], [b"XINFO", b"GROUPS", key]]
        info, size, *answers = await self._ask(questions)
        rows = []
        for at, key in enumerate(page):
            try:
                rows.append(stream_row(key, answers[2 * at], answers[2 * at + 1]))
            except RefusedByServer as refusal:
                rows.append({"key": names.token(key), "error": str(refusal)})
        return (
            catalogue.shown()
            | self._list.shown()
            | {
                "chosen": len(chosen),
                "server": server_of(info),
                "keys": size if isinstance(size, int) else None,
                "start": self._start,
                "page": STREAMS,
                "streams": rows,
            }
        )

    # -- one stream ---------------------------------------------------------------------------------------------------

    async def _stream(self) -> Shown:
        key = self._bytes("key")
        before = self._asked.get("before", "")
        newest = b"(" + names.of_token(before) if before else b"+"
        questions: list[Words] = [
            [b"XINFO", b"STREAM", key],
            [b"XINFO", b"GROUPS", key],
            [b"MEMORY", b"USAGE", key],
            [b"XREVRANGE", key, newest, b"-", b"COUNT", b"%d" % ENTRIES],
        ]
        stream, groups, memory, entries = await self._ask(questions)
        row = stream_row(key, stream, groups)
        about = fields_of(stream)
        listed = [group_row(one) for one in checked(groups)[:GROUPS]]
        oldest = await self._ask([[b"XPENDING", key, names.of_token(one["name"]), b"-", b"+", b"1"] for one in listed])
        for one, found in zip(listed, oldest, strict=True):
            one["oldest_idle_ms"] = checked(found)[0][2] if isinstance(found, list) and found else None
        return row | {
            "last_id": about[b"last-generated-id"].decode(),
            "memory": memory if isinstance(memory, int) else None,
            "policy": policy_of(about),
            "group_rows": listed,
            "entries": [entry_row(entry, names.SHORT) for entry in checked(entries)],
            "page": ENTRIES,
        }

    # -- one group ----------------------------------------------------------------------------------------------------

    async def _group(self) -> Shown:
        key, name, consumer = self._bytes("key"), self._bytes("group"), self._bytes("consumer")
        after = self._asked.get("after", "")
        first = b"(" + names.of_token(after) if after else b"-"
        idle_ms = b"%d" % self._number("idle_ms", 10**9 - 1)
        questions: list[Words] = [
            [b"XINFO", b"GROUPS", key],
            [b"XINFO", b"CONSUMERS", key, name],
            [b"XPENDING", key, name, b"IDLE", idle_ms, first, b"+", b"%d" % PENDING, *([consumer] if consumer else [])],
        ]
        groups, consumers, pending = await self._ask(questions)
        found = [one for one in checked(groups) if fields_of(one)[b"name"] == name]
        if not found:
            raise RefusedByServer("The group is not there.")
        shown = checked(consumers)
        return group_row(found[0]) | {
            "key": names.token(key),
            "policy": policy_of(fields_of(found[0])),
            "consumer_total": len(shown),
            "consumer_rows": [consumer_row(one) for one in shown[:CONSUMERS]],
            "pending_rows": [pending_row(one) for one in checked(pending)],
            "page": PENDING,
        }

    # -- one entry ----------------------------------------------------------------------------------------------------

    async def _entry(self) -> Shown:
        key, entry_id = self._bytes("key"), self._bytes("id")
        found, groups = await self._ask(
            [[b"XRANGE", key, entry_id, entry_id, b"COUNT", b"1"], [b"XINFO", b"GROUPS", key]]
        )
        if not checked(found):
            raise RefusedByServer("The entry is not there: it was deleted or trimmed.")
        listed = [fields_of(one)[b"name"] for one in checked(groups)[:GROUPS]]
        asked = await self._ask([[b"XPENDING", key, name, entry_id, entry_id, b"1"] for name in listed])
        held = [
            {"group": names.token(name), **pending_row(one[0])}
            for name, one in zip(listed, asked, strict=True)
            if isinstance(one, list) and one
        ]
        fields = found[0][1]
        return entry_row(found[0], names.LONG) | {
            "key": names.token(key),
            "groups": len(checked(groups)),
            "held": held,
            "is_dead_letter": b"_stream" in fields[::2],
        }

    # -- keys of every type, the slow log -----------------------------------------------------------------------------

    async def _keys(self) -> Shown:
        catalogue = await self._scan()
        page = catalogue.found[self._start : self._start + STREAMS]
        answers = await self._ask([words for key in page for words in keys.about_requests(key)])
        rows = []
        for at, key in enumerate(page):
            try:
                rows.append(keys.about_row(key, *answers[3 * at : 3 * at + 3]))
            except RefusedByServer as refusal:
                rows.append({"key": names.token(key), "error": str(refusal)})
        return catalogue.shown() | {"start": self._start, "page": STREAMS, "rows": rows}

    async def _one_key(self) -> Shown:
        key, place = self._bytes("key"), self._number("place", keys.LAST_CURSOR)
        answers = await self._ask([*keys.about_requests(key), [b"OBJECT", b"ENCODING", key]])
        about = keys.about_row(key, *answers[:3])
        kind: bytes = checked(answers[0])
        requests = keys.value_requests(key, kind, place)
        shown = keys.value_shown(kind, place, await self._ask(requests) if requests else [])
        return about | shown | {"encoding": answers[3].decode() if isinstance(answers[3], bytes) else ""}

    async def _slow(self) -> Shown:
        (found,) = await self._ask([[b"SLOWLOG", b"GET", b"%d" % SLOW]])
        return {"rows": [keys.slow_row(one) for one in checked(found)]}


# -- rows -------------------------------------------------------------------------------------------------------------


def pattern_of(words: bytes) -> bytes:
    """A pattern of names for what was typed: a part of a name, unless it is a pattern.

    >>> pattern_of(b"orders"), pattern_of(b"orders:*"), pattern_of(b"")
    (b'*orders*', b'orders:*', b'*')
    """
    if not words or any(special in words for special in b"*?[\\"):
        return words or b"*"
    return b"*" + words + b"*"


def server_of(info: Any) -> Shown:
    """The server in some numbers; empty if the user may not ask for INFO."""
    try:
        server_info = info_of(info)
    except RefusedByServer:
        return {}
    return {
        "version": server_info.get("penstock_version", ""),
        "speaks": server_info.get("redis_version", ""),
        "build": server_info.get("penstock_build", ""),
        "uptime_s": int(server_info.get("uptime_in_seconds", 0)),
        "memory": int(server_info.get("used_memory", 0)),
        "clients": int(server_info.get("connected_clients", 0)),
        "blocked": int(server_info.get("blocked_clients", 0)),
        "commands": int(server_info.get("total_commands_processed", 0)),
        "role": server_info.get("role", ""),
        "log": "failing" if server_info.get("aof_last_write_status", "ok") != "ok" else "ok",
    }


def stream_row(key: bytes, stream: Any, groups: Any) -> Shown:
    """A stream in the overview; RefusedByServer, also where it is gone. `lag` is None if no group knows its lag."""
    about = fields_of(stream)
    counts = [fields_of(one) for one in checked(groups)]
    lags = [one[b"lag"] for one in counts if one.get(b"lag") is not None]
    return {
        "key": names.token(key),
        "length": about[b"length"],
        "added": about.get(b"entries-added", about[b"length"]),
        "groups": len(counts),
        "consumers": sum(one[b"consumers"] for one in counts),
        "pending": sum(one[b"pending"] for one in counts),
        "lag": max(lags) if lags else None,
    }


def group_row(group: Any) -> Shown:
    about = fields_of(group)
    return {
        "name": names.token(about[b"name"]),
        "consumers": about[b"consumers"],
        "pending": about[b"pending"],
        "lag": about.get(b"lag"),
        "last_id": about[b"last-delivered-id"].decode(),
        "read": about.get(b"entries-read"),
        "has_policy": b"penstock-policy" in about,
    }


def consumer_row(consumer: Any) -> Shown:
    """`inactive_ms` is None for a consumer that never got an entry."""
    about = fields_of(consumer)
    inactive_ms = about.get(b"inactive", -1)
    return {
        "name": names.token(about[b"name"]),
        "pending": about[b"pending"],
        "idle_ms": about[b"idle"],
        "inactive_ms": inactive_ms if inactive_ms >= 0 else None,
    }


def pending_row(pending: Any) -> Shown:
    """A pending entry; `consumer` is empty and `idle_ms` None for one that was released."""
    entry_id, consumer, idle_ms, deliveries = pending
    return {
        "id": entry_id.decode(),
        "consumer": names.token(consumer),
        "idle_ms": idle_ms if idle_ms >= 0 else None,
        "deliveries": deliveries,
    }


def entry_row(entry: Any, most: int) -> Shown:
    """An entry with its fields, each shortened to so many bytes; at most FIELDS of them."""
    entry_id, fields = entry
    pairs = list(zip(fields[::2], fields[1::2], strict=True))
    return {
        "id": entry_id.decode(),
        "fields": [
            [names.shortened(name, names.SHORT), names.shortened(value, most)] for name, value in pairs[:FIELDS]
        ],
        "more": max(len(pairs) - FIELDS, 0),
    }


def policy_of(about: dict[bytes, Any]) -> Shown:
    """The policy's options and counters that are set, by name; empty without a policy."""
    if b"penstock-policy" not in about:
        return {}
    policy_fields = fields_of(about[b"penstock-policy"])
    return {
        name.decode(): names.token(value) if isinstance(value, bytes) else value
        for name, value in policy_fields.items()
        if value is not None
    }
