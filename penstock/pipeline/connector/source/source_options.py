"""Every option of the reading side, as one frozen row a role; the connection's are shared by all roles.

`docs/pipeline.md` explains them to users; the defaults are here.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from penstock.pipeline.connector.connection.client import Access, Endpoint
from penstock.pipeline.connector.connection.option_reader import Given
from penstock.pipeline.errors import OptionError
from penstock.storage import ids

DEFAULT_PORT: Final = 6379
TABLES: Final = ("entries", "pending", "groups", "consumers", "streams", "aof")
EARLIEST, LATEST, GROUP = "earliest", "latest", "group"
CURSOR, SHARED = "cursor", "shared"


@dataclass(frozen=True, slots=True)
class Servers:
    """The endpoints, in the order given, and how to speak to them."""

    endpoints: tuple[Endpoint, ...]
    access: Access

    def by_name(self) -> dict[str, Endpoint]:
        return {endpoint.name: endpoint for endpoint in self.endpoints}


def read_servers(given: Given) -> Servers:
    """The connection's options, of every role."""
    endpoints = tuple(read_endpoint(word) for word in given.names("endpoints") or [f"127.0.0.1:{DEFAULT_PORT}"])
    if len({endpoint.name for endpoint in endpoints}) < len(endpoints):
        raise given.mistake("endpoints", "is to name every endpoint once")
    access = Access(
        username=given.text("username"),
        password=given.text("password"),
        db=given.integer("db", 0),
        tls=given.flag("tls", False),
        tls_ca=given.text("tlsCa"),
        tls_cert=given.text("tlsCert"),
        tls_key=given.text("tlsKey"),
        connect_s=given.duration_ms("connectTimeout", "5s") / 1000,
        read_s=given.duration_ms("readTimeout", "30s") / 1000,
        retry_s=given.duration_ms("retryTimeout", "60s") / 1000,
    )
    if access.username is not None and access.password is None:
        raise OptionError("option 'username' needs 'password' beside it")
    return Servers(endpoints, access)


def read_endpoint(word: str) -> Endpoint:
    """`host`, `host:port` or `name=host:port`; an IPv6 address stands in brackets.

    >>> read_endpoint("a=[::1]:7000")
    Endpoint(name='a', host='::1', port=7000)
    >>> read_endpoint("db1").name
    'db1:6379'
    """
    name, equals, address = word.rpartition("=")
    host, colon, port = address.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = address, str(DEFAULT_PORT)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise OptionError(f"endpoint {word!r} is to be host:port; an IPv6 address stands in brackets: [::1]:6379")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536 or (equals and not name):
        raise OptionError(f"endpoint {word!r} is to be host:port or name=host:port")
    return Endpoint(name or f"{host}:{int(port)}", host, int(port))


@dataclass(frozen=True, slots=True)
class Keys:
    """Which streams: `names`, or those that `pattern` matches (then names is empty)."""

    names: tuple[str, ...]
    pattern: str | None
    discovery_ms: int


def read_keys(given: Given) -> Keys:
    names, pattern = given.names("stream"), given.text("streamPattern")
    return Keys(tuple(dict.fromkeys(names)), pattern, given.duration_ms("discoveryInterval", "10s"))


@dataclass(frozen=True, slots=True)
class Sizing:
    """How a batch becomes tasks, and a task requests."""

    entries_per_partition: int
    min_partitions: int
    max_partitions: int
    fetch: int  # entries a request


def read_sizing(given: Given, per_partition: int = 50_000, fetch: int = 5_000) -> Sizing:
    sizing = Sizing(
        entries_per_partition=given.integer("entriesPerPartition", per_partition, 1),
        min_partitions=given.integer("minPartitions", 1, 1),
        max_partitions=given.integer("maxPartitions", 64, 1),
        fetch=given.integer("fetchSize", fetch, 1, 1_000_000),
    )
    if sizing.min_partitions > sizing.max_partitions:
        if given.has("maxPartitions"):
            raise given.mistake("minPartitions", "is to be at most maxPartitions")
        return Sizing(sizing.entries_per_partition, sizing.min_partitions, sizing.min_partitions, sizing.fetch)
    return sizing


@dataclass(frozen=True, slots=True)
class Start:
    """Where a new query begins: `at` is EARLIEST, LATEST, GROUP or an id's text, and `by_key` overrules it."""

    at: str
    by_key: tuple[tuple[str, str], ...] = ()

    def of(self, key: str) -> str:
        return dict(self.by_key).get(key, self.at)


def read_start(given: Given, default: str) -> Start:
    """`startingId` or `startingTimestamp`. Ids are exclusive when they begin a range: see `after`."""
    moment_ms = given.timestamp_ms("startingTimestamp")
    word = given.text("startingId")
    if word is not None and moment_ms is not None:
        raise OptionError("give only one of the options 'startingId' and 'startingTimestamp'")
    if moment_ms is not None:
        return Start(f"{moment_ms}-0")
    if word is None:
        return Start(default)
    if not word.lstrip().startswith("{"):
        return Start(_place(given, "startingId", word))
    try:
        by_key = json.loads(word)
    except ValueError:
        raise given.mistake("startingId", "is no JSON") from None
    return Start(default, tuple((key, _place(given, "startingId", str(by_key[key]))) for key in sorted(by_key)))


def _place(given: Given, name: str, word: str) -> str:
    if word.lower() in (EARLIEST, LATEST, GROUP):
        return word.lower()
    try:
        return ids.text(ids.parse(word.encode())).decode()
    except ValueError:
        raise given.mistake(name, "is to be earliest, latest, group or an id (1700000000000-0)") from None


@dataclass(frozen=True, slots=True)
class Entries:
    """The options of the table `entries`, batch and streaming."""

    servers: Servers
    keys: Keys
    sizing: Sizing
    start: Start
    end: int  # an id, inclusive; ids.MAX: whatever there is
    max_per_trigger: int | None
    min_per_trigger: int | None
    max_delay_ms: int
    poll_ms: int
    fail_on_loss: bool
    group: str | None
    group_mode: str
    group_force: bool
    consumer: str | None
    claim_min_idle_ms: int | None
    fail_fast: bool
    replace_bad_text: bool
    push_filters: bool


def read_entries(options: Mapping[str, str], streaming: bool) -> Entries:
    """The options of the table `entries`; OptionError for a mistake."""
    given = Given(options, "streaming source" if streaming else "batch source")
    given.choice("table", "entries", TABLES)
    found = Entries(
        servers=read_servers(given),
        keys=read_keys(given),
        sizing=read_sizing(given),
        start=read_start(given, LATEST if streaming else EARLIEST),
        end=_read_end(given, streaming),
        max_per_trigger=given.integer("maxEntriesPerTrigger", None, 1),
        min_per_trigger=given.integer("minEntriesPerTrigger", None, 1),
        max_delay_ms=given.duration_ms("maxTriggerDelay", "15m"),
        poll_ms=given.duration_ms("pollTimeout", "500ms"),
        fail_on_loss=given.flag("failOnDataLoss", True),
        group=given.text("group"),
        group_mode=given.choice("groupMode", CURSOR, (CURSOR, SHARED)),
        group_force=given.flag("groupForce", False),
        consumer=given.text("consumer"),
        claim_min_idle_ms=given.duration_ms("claimMinIdle", None),
        fail_fast=given.choice("mode", "PERMISSIVE", ("PERMISSIVE", "FAILFAST")) == "FAILFAST",
        replace_bad_text=given.choice("decodeErrors", "strict", ("strict", "replace")) == "replace",
        push_filters=given.flag("pushFilters", False),
    )
    given.end()
    _check(found, streaming)
    return found


def _read_end(given: Given, streaming: bool) -> int:
    """`endingId` (inclusive, as XRANGE has it) or `endingTimestamp` (exclusive, so that hours do not overlap)."""
    word, moment_ms = given.text("endingId"), given.timestamp_ms("endingTimestamp")
    if streaming and (word or moment_ms is not None):
        raise OptionError("a streaming query has no end: 'endingId' and 'endingTimestamp' are the batch source's")
    if word is not None and moment_ms is not None:
        raise OptionError("give only one of the options 'endingId' and 'endingTimestamp'")
    if moment_ms is not None:
        return (moment_ms << 64) - 1 if moment_ms else ids.ZERO
    if word is None or word.lower() == LATEST:
        return ids.MAX
    try:
        return ids.parse(word.encode(), ids.HALF)
    except ValueError:
        raise given.mistake("endingId", "is to be latest or an id (1700000000000-0)") from None


def _check(found: Entries, streaming: bool) -> None:
    """What does not go together. After `end`: a mistyped name is the better explanation for what is missing."""
    if bool(found.keys.names) == (found.keys.pattern is not None):
        raise OptionError("give exactly one of the options 'stream' (keys) and 'streamPattern' (a glob for SCAN)")
    shared = found.group_mode == SHARED
    places = [found.start.at, *(place for _, place in found.start.by_key)]
    if found.group is None and (shared or found.consumer or GROUP in places):
        raise OptionError("'groupMode' shared, 'consumer' and 'startingId' group need the option 'group'")
    if (shared or found.group_force) and not streaming:
        raise OptionError("'groupMode' shared and 'groupForce' are the streaming source's")
    if not shared and (found.consumer or found.claim_min_idle_ms is not None):
        raise OptionError("'consumer' and 'claimMinIdle' need 'groupMode' shared")
    if shared and (found.min_per_trigger or GROUP in places):
        raise OptionError(
            "in 'groupMode' shared 'startingId' is where a group begins that is not there yet, and there is no "
            "'minEntriesPerTrigger'"
        )
