"""The checks of `penstock doctor URL`: a running server, a Redis, a Valkey or a Sentinel as well as a Penstock."""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from heapq import nlargest
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, NamedTuple

from penstock.errors import UsageError
from penstock.observe import stream_survey, urgency
from penstock.observe.console.names import request_line
from penstock.observe.finding import Finding
from penstock.observe.stream_survey import GroupState, Survey, text_of
from penstock.observe.top_screen import span
from penstock.wire_client import Address, WireClient, address, info_fields

HOUR_S: Final = 3600
GROUPS_SHOWN: Final = 10  # of each kind
LARGE_LAG: Final = 1_000
LARGE_STREAM: Final = 10_000  # entries, of a stream from which none was ever deleted
LARGE_LOOKED: Final = 50
TRIMS: Final = (b"maxlen", b"maxage", b"maxbytes")  # fields of a stream's policy
FULL: Final = 0.9  # of memory, of the disk, of maxclients
FEW_SENTINELS: Final = 3
TOO_FEW: Final = "with fewer than three, one machine that is lost takes the majority with it"
ASKED_CONFIG: Final = (
    b"appendfsync", b"dir", b"masterauth", b"min-replicas-to-write", b"requirepass", b"stop-writes-on-bgsave-error",
)  # fmt: skip
SENTINELS_CHANNEL: Final = b"__sentinel__:hello"  # each Sentinel that watches a server is subscribed to it
REFUSALS_LOOKED: Final = b"50"

Fields = Mapping[str, str]


class Asked(NamedTuple):
    """The answers of a server. `config` lacks what it refuses to say; `old_ms`: pending for longer is a problem."""

    where: Address
    fields: Fields
    config: dict[str, str]
    survey: Survey
    large: list[tuple[bytes, int]]  # streams of which nothing was deleted, with their lengths
    slow: list[Any]
    old_ms: int
    sentinels: int  # how many watch it
    refused: list[str]  # the commands and channels that their user may not use, as rules of users name them

    @property
    def is_local(self) -> bool:
        """Whether the URL leads to this machine."""
        if self.where.path or self.where.host == "localhost":
            return True
        try:
            return ip_address(self.where.host).is_loopback
        except ValueError:
            return False


def findings(url: str, old_ms: int, between_s: float) -> Iterator[Finding]:
    """Of a running server; UsageError where it cannot be asked."""
    where = address(url)
    client = WireClient(where)
    reply = client.ask(b"INFO", b"everything")
    if not isinstance(reply, bytes):
        raise UsageError(f"{where.shown}: {reply}")
    fields = info_fields(reply)
    if fields.get("redis_mode") == "sentinel":
        yield from of_sentinel(fields)
        return
    slow = stream_survey.elements(client.ask(b"SLOWLOG", b"GET", b"3"))
    config: dict[str, str] = {}
    for name in ASKED_CONFIG:
        pair = stream_survey.elements(client.ask(b"CONFIG", b"GET", name))
        config.update({text_of(pair[0]): text_of(pair[1])} if pair else {})
    watch = stream_survey.Watch()
    stream_survey.take(client, watch)
    time.sleep(between_s)
    survey = stream_survey.take(client, watch)
    large = _large(client, list(watch.keys)[: stream_survey.FIRST_ASKED])
    subscribed = stream_survey.elements(client.ask(b"PUBSUB", b"NUMSUB", SENTINELS_CHANNEL))
    sentinels = subscribed[1] if subscribed else 0
    asked = Asked(where, fields, config, survey, large, slow, old_ms, sentinels, _refused_to_sentinels(client))
    client.close()
    for check in CHECKS:
        yield from check(asked)


def _refused_to_sentinels(client: WireClient) -> list[str]:
    """The requests that the log of users says were refused to clients with names as Sentinels have them."""
    found = set()
    for entry in stream_survey.elements(client.ask(b"ACL", b"LOG", REFUSALS_LOOKED)):
        one = stream_survey.fields_of(entry)
        if b" name=sentinel-" in one[b"client-info"] and one[b"reason"] in (b"command", b"channel"):
            found.add(("+" if one[b"reason"] == b"command" else "&") + text_of(one[b"object"]))
    return sorted(found)


def _large(client: WireClient, keys: list[bytes]) -> list[tuple[bytes, int]]:
    """The largest streams from which nothing was ever deleted, with their lengths; none that a policy trims."""
    lengths: list[int] = []
    for start in range(0, len(keys), stream_survey.AT_ONCE):
        asked = client.ask_all([[b"XLEN", key] for key in keys[start : start + stream_survey.AT_ONCE]])
        lengths += [length if isinstance(length, int) else 0 for length in asked]
    large = [pair for pair in zip(keys, lengths, strict=True) if pair[1] >= LARGE_STREAM]
    found = []
    for key, length in nlargest(LARGE_LOOKED, large, key=lambda pair: pair[1]):
        about = stream_survey.fields_of(client.ask(b"XINFO", b"STREAM", key))
        policy = stream_survey.fields_of(about.get(b"penstock-policy"))
        if about.get(b"entries-added", length) == length and all(policy.get(limit) is None for limit in TRIMS):
            found.append((key, length))
    return found


# -- the server -------------------------------------------------------------------------------------------------------


def of_server(asked: Asked) -> Iterator[Finding]:
    fields = asked.fields
    name = f"penstock {fields['penstock_version']}" if "penstock_version" in fields else "another server"
    hours = int(fields["uptime_in_seconds"]) / HOUR_S
    yield Finding("server", f"{name}, speaks as Redis {fields['redis_version']}, up {hours:.1f} hours")
    if fields.get("penstock_build") == "python":
        advice = "a compiled build answers several times as many requests (docs/installing.md)"
        yield Finding.hint("build", "plain Python", advice)
    if fields.get("loading", "0") != "0":
        yield Finding.problem("loading", "yes", "clients are refused until the log is loaded", "INFO persistence")


def of_memory(asked: Asked) -> Iterator[Finding]:
    fields = asked.fields
    used, most = int(fields["used_memory"]), int(fields["maxmemory"])
    shown = f"{used / 2**20:.0f} MB used, {int(fields['used_memory_rss']) / 2**20:.0f} MB resident"
    if not most:
        advice = "maxmemory is not set: the system ends the server when memory runs out"
        yield Finding.problem("memory", shown, advice, "CONFIG SET maxmemory 2gb")
    else:
        is_full = used > most * FULL
        shown = f"{shown}, at most {most / 2**20:.0f} MB"
        yield Finding.judged(is_full, "memory", shown, "nearly all of maxmemory", f"CONFIG SET maxmemory {2 * most}")
    policy = fields.get("maxmemory_policy", "noeviction")
    if most and policy.startswith("allkeys") and asked.survey.keys:
        advice = "when memory is short, whole streams are deleted, with entries that no consumer has read"
        yield Finding.problem("eviction", policy, advice, "CONFIG SET maxmemory-policy noeviction")
    evicted = int(fields["evicted_keys"])
    if evicted:
        advice = "maxmemory is too small for the keys, or the policy is unwanted"
        yield Finding.problem("evicted keys", str(evicted), advice, "CONFIG SET maxmemory-policy noeviction")


def of_log(asked: Asked) -> Iterator[Finding]:
    fields = asked.fields
    if fields.get("rdb_last_bgsave_status", "ok") != "ok":
        yield Finding.problem("snapshot", "failed", "the last RDB file could not be written: see the log", "BGSAVE")
    if fields["aof_enabled"] == "0":
        keeps = int(fields.get("rdb_last_save_time", "0")) > 0
        yield Finding.judged(not keeps, "log", "none", "nothing is kept", "CONFIG SET appendonly yes")
        return
    works = fields["aof_last_write_status"] == "ok" and fields["aof_last_bgrewrite_status"] == "ok"
    size = int(fields.get("aof_current_size", "0")) / 2**20
    advice = "it cannot be written or rewritten: make room on the disk, see the server's log"
    yield Finding.judged(not works, "log", f"{size:.0f} MB", advice, "BGREWRITEAOF")
    if asked.config.get("appendfsync") == "no":
        advice = "what is acknowledged may be lost when the machine stops: some 30 seconds of it"
        yield Finding.problem("appendfsync", "no", advice, "CONFIG SET appendfsync everysec")


def of_disk(asked: Asked) -> Iterator[Finding]:
    """Only of a server on this machine."""
    folder = Path(asked.config.get("dir", ""))
    if not asked.is_local or not folder.is_absolute() or not folder.is_dir():
        return
    disk = shutil.disk_usage(folder)
    shown = f"{disk.free / 2**30:.1f} GB of {disk.total / 2**30:.1f} GB free"
    needed = 2 * int(asked.fields.get("aof_current_size", "0"))
    is_full = disk.free < disk.total * (1 - FULL) or disk.free < needed
    yield Finding.judged(is_full, "disk", shown, "a rewrite of the log needs as much again", f"df -h {folder}")


def _errors(fields: Fields) -> int:
    """Error replies, without one for each connection to a command that the server does not have.

    redis-py 8 sends CLIENT MAINT_NOTIFICATIONS when it connects, which only Redis Cloud answers. A command that is not
    known has no cmdstat.
    """
    ofs = [_pairs(value) for name, value in fields.items() if name.startswith("cmdstat_")]
    known = sum(int(one.get("failed_calls", "0")) + int(one.get("rejected_calls", "0")) for one in ofs)
    unknown = int(fields.get("total_error_replies", "0")) - known
    return known + max(unknown - int(fields.get("total_connections_received", "0")), 0)


def of_clients(asked: Asked) -> Iterator[Finding]:
    fields = asked.fields
    count, most = int(fields["connected_clients"]), int(fields["maxclients"])
    shown = f"{count} of {most}, {fields['blocked_clients']} blocked"
    advice = "nearly all that maxclients allows"
    yield Finding.judged(count > most * FULL, "clients", shown, advice, f"CONFIG SET maxclients {2 * most}")
    rejected = int(fields["rejected_connections"])
    if rejected:
        advice = "raise maxclients, or look for clients that do not close"
        yield Finding.problem("rejected clients", str(rejected), advice, "CLIENT LIST")
    errors, commands = _errors(fields), int(fields["total_commands_processed"])
    shown = f"{commands}, {errors} error replies"
    advice = "more than one request of ten fails"
    yield Finding.judged(errors * 10 > commands, "requests", shown, advice, "INFO errorstats")
    if not asked.is_local and asked.where.tls is None:
        advice = "passwords and entries can be read on the way: see tls-port (SECURITY.md)"
        yield Finding.problem("encryption", "none", advice, "CONFIG SET tls-port 6380")
    if not asked.is_local and asked.config.get("requirepass") == "" and not asked.where.password:
        advice = "every machine that reaches the port may read and change everything"
        yield Finding.problem("password", "none", advice, "CONFIG SET requirepass PASSWORD")
    for one in asked.slow:
        words = b" ".join(one[3])[:60].decode(errors="replace")
        yield Finding("slow command", f"{one[2] / 1000:.1f} ms: {words}")


def of_replication(asked: Asked) -> Iterator[Finding]:
    fields = asked.fields
    if fields.get("role") == "slave":
        shown = f"of {fields.get('master_host', '?')}:{fields.get('master_port', '?')}"
        is_down = fields.get("master_link_status") != "up"
        yield Finding.judged(is_down, "replica", shown, "the link to the master is down", "INFO replication")
        return
    replicas = [_pairs(value) for name, value in fields.items() if name.removeprefix("slave").isdecimal()]
    if not replicas:
        advice = "when this machine is lost, so is what it holds (docs/high-availability.md)"
        yield Finding.hint("replicas", "none", advice, "REPLICAOF MASTER-HOST MASTER-PORT")
    places = [f"{one.get('ip', '?')}:{one.get('port', '?')}" for one in replicas]
    for one, place in zip(replicas, places, strict=True):
        is_down = one.get("state") != "online"
        advice = "it does not follow yet, or no longer"
        yield Finding.judged(is_down, "replica", f"{place}, {one.get('state', '?')}", advice, "INFO replication")
    for place in sorted({place for place in places if places.count(place) > 1}):
        advice = "replicas announce one address: others, and Sentinels, can reach one of them only"
        yield Finding.problem("address", place, advice, "CONFIG SET replica-announce-ip ADDRESS")
    if replicas and asked.config.get("min-replicas-to-write") == "0":
        advice = "a master that is cut off goes on to take writes, which are lost when another one is promoted"
        yield Finding.hint("lost writes", "min-replicas-to-write 0", advice, "CONFIG SET min-replicas-to-write 1")


def of_watched(asked: Asked) -> Iterator[Finding]:
    """Check what Sentinels need of a server that they watch (docs/high-availability.md)."""
    if not asked.sentinels:
        return
    few = asked.sentinels < FEW_SENTINELS
    yield Finding.judged(few, "watched", f"by {asked.sentinels} Sentinels", TOO_FEW, "SENTINEL SENTINELS NAME")
    if not asked.fields.get("config_file"):
        advice = "a role that Sentinels give is kept in the server's file: started again, it has the role of before"
        yield Finding.problem("role", "no configuration file", advice)
    if asked.config.get("requirepass") and asked.config.get("masterauth") == "":
        advice = "every server may become a replica, and must log in to the new master"
        yield Finding.problem("masterauth", "none", advice, "CONFIG SET masterauth PASSWORD")
    if asked.refused:
        advice = "the user of the Sentinels lacks rights: they see a server that is down, or cannot promote one"
        shown = " ".join(asked.refused)
        yield Finding.problem(
            "sentinel's user", shown, advice, request_line([b"ACL", b"SETUSER", b"NAME", shown.encode()])
        )


def of_sentinel(fields: Fields) -> Iterator[Finding]:
    """A Sentinel says of each master how it is."""
    yield Finding("server", f"a Sentinel of Redis {fields.get('redis_version', '?')}")
    for name, value in fields.items():
        if not name.removeprefix("master").isdecimal():
            continue
        one = _pairs(value)
        shown = f"{one.get('name', '?')} at {one.get('address', '?')}: {one.get('status', '?')}"
        look = f"SENTINEL MASTER {one.get('name', '?')}"
        yield Finding.judged(one.get("status") != "ok", "master", shown, "the Sentinel does not reach it", look)
        replicas, sentinels = int(one.get("slaves", "0")), int(one.get("sentinels", "0"))
        yield Finding.judged(not replicas, "replicas", str(replicas), "none can take the master's place", look)
        yield Finding.judged(sentinels < FEW_SENTINELS, "sentinels", str(sentinels), TOO_FEW, look)


def _pairs(value: str) -> dict[str, str]:
    """The pairs of one line of INFO: `ip=127.0.0.1,port=7001,state=online`."""
    return {name: word for name, _, word in (pair.partition("=") for pair in value.split(","))}


# -- streams and groups -----------------------------------------------------------------------------------------------


def of_groups(asked: Asked) -> Iterator[Finding]:
    """Groups by kinds of trouble, the most urgent first."""
    survey = asked.survey
    yield Finding("streams", f"{survey.keys}, {survey.asked} of them looked at, {len(survey.groups)} groups")
    old = [one for one in survey.groups if (one.oldest_idle_ms or 0) >= asked.old_ms]
    advice = "a consumer neither acknowledged it nor gave it back: let another one claim it"
    yield from _kind("pending", old, advice, _pending_words, lambda one: _claim(one, asked.old_ms))
    late = [one for one in survey.groups if (one.lag or 0) >= LARGE_LAG and one.growth >= 0]
    advice = "it reads no faster than entries come: start more consumers"
    yield from _kind("lag", late, advice, lambda one: f"{one.lag} entries to read", _look_at_consumers)
    gone = [one for one in survey.groups if one.gone]
    advice = f"no sign for {urgency.OLD_MS // 1000} s, and there is work: start them, or claim what they hold"
    yield from _kind("consumers", gone, advice, lambda one: f"{one.gone} of {one.consumers} gone", _look_at_consumers)
    for one in [one for one in survey.groups if one.dead_letters][:GROUPS_SHOWN]:
        shown = f"{_name(one)}: {one.dead_letters} moved"
        advice = "mend what could not be handled, and give them back by PENSTOCK.REDRIVE"
        redrive = [b"PENSTOCK.REDRIVE", one.dead_letter, one.key, b"GROUP", one.name]
        request = redrive if one.dead_letter else [b"XINFO", b"GROUPS", one.key]  # else the policy has none any more
        yield Finding.hint("dead letters", shown, advice, request_line(request))
    for one in [one for one in survey.groups if one.limits][:GROUPS_SHOWN]:
        shown = f"{_name(one)}: {one.limits}"
        if one.is_blocked:
            advice = "what may not be delivered again waits: free the key of the dead letters, or name another"
            yield Finding.problem("blocked", shown, advice, request_line([b"TYPE", one.dead_letter]))
        elif one.is_paused:
            advice = "its readers get nothing until the pause ends: PAUSE NONE ends it now"
            request = [b"PENSTOCK.POLICY", one.key, b"GROUP", one.name, b"PAUSE", b"NONE"]
            yield Finding.hint("paused", shown, advice, request_line(request))
        else:
            yield Finding("limits", shown)
    for key, length in asked.large[:GROUPS_SHOWN]:
        shown = f"{text_of(key)}: {length} entries, none was ever deleted"
        advice = "it grows until memory is full: trim it, and with every XADD"
        yield Finding.problem("no limit", shown, advice, request_line([b"XTRIM", key, b"MAXLEN", b"~", b"LENGTH"]))


def _kind(
    about: str,
    groups: list[GroupState],
    advice: str,
    words: Callable[[GroupState], str],
    command: Callable[[GroupState], str],
) -> Iterator[Finding]:
    """The first groups that have a trouble, and how many others have it."""
    for one in groups[:GROUPS_SHOWN]:
        yield Finding.problem(about, f"{_name(one)}: {words(one)}", advice, command(one))
    if len(groups) > GROUPS_SHOWN:
        more = f"{len(groups) - GROUPS_SHOWN} more groups"
        yield Finding.problem(about, more, "see them in `penstock top`", "penstock top URL")


def _name(one: GroupState) -> str:
    return f"{text_of(one.key)}, group {text_of(one.name)}"


def _pending_words(one: GroupState) -> str:
    return f"{one.pending} pending, the first for {span(one.oldest_idle_ms or 0)}"


def _claim(one: GroupState, old_ms: int) -> str:
    return request_line([b"XAUTOCLAIM", one.key, one.name, b"CONSUMER", b"%d" % old_ms, b"0", b"COUNT", b"100"])


def _look_at_consumers(one: GroupState) -> str:
    return request_line([b"XINFO", b"CONSUMERS", one.key, one.name])


CHECKS: Final[tuple[Callable[[Asked], Iterator[Finding]], ...]] = (
    of_server,
    of_memory,
    of_log,
    of_disk,
    of_clients,
    of_replication,
    of_watched,
    of_groups,
)
