"""`penstock doctor [URL]`: what a support person asks first, of this installation, or of a running server."""

import argparse
import platform
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.engine.versions import BUILD, PENSTOCK_VERSION
from penstock.errors import UsageError
from penstock.wire_client import WireClient, address, info_fields

if TYPE_CHECKING:
    from argparse import _SubParsersAction

FEW_FILES: Final = 10_032  # maxclients and the server's own
EXTRAS: Final = (  # and a module that each brings
    ("connect", "grpc"),
    ("console", "aiohttp"),
    ("lua", "lupa"),
    ("metrics", "prometheus_client"),
    ("payload", "fastavro"),
    ("spark", "pyspark"),
    ("testing", "redis"),
    ("top", "rich"),
)
HOUR_S: Final = 3600
DAY_S: Final = 24 * HOUR_S

Fields = Mapping[str, str]


class Finding(NamedTuple):
    """One line; `advice` is empty where nothing is wrong."""

    about: str
    found: str
    advice: str = ""


def add_parser(subcommands: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subcommands.add_parser("doctor", help="look for what is wrong with this installation, or with a server")
    parser.add_argument("url", nargs="?", help="a running server, as redis://[:password@]host[:port][/db]")


def main(parsed: argparse.Namespace) -> int:
    """Print the findings; 0 if there is nothing to do, else 1."""
    try:
        found = [*installation(), *(server(parsed.url) if parsed.url else ())]
    except UsageError as mistake:
        sys.stderr.write(f"{mistake}\n")
        return 1
    for one in found:
        sys.stdout.write(f"{'!' if one.advice else ' '} {one.about:<18} {one.found}\n")
        if one.advice:
            sys.stdout.write(f"{'':<21}{one.advice}\n")
    return int(any(one.advice for one in found))


def installation() -> Iterator[Finding]:
    """This machine's Penstock."""
    yield Finding("penstock", f"{PENSTOCK_VERSION}, {BUILD} build")
    yield Finding("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    has_uvloop = find_spec("uvloop") is not None
    yield Finding("event loop", "uvloop" if has_uvloop else "asyncio", "" if has_uvloop else "uvloop would be faster")
    there = [name for name, module in EXTRAS if find_spec(module) is not None]
    yield Finding("extras", ", ".join(there) or "none")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_low = hard != resource.RLIM_INFINITY and hard < FEW_FILES
    advice = f"allow {FEW_FILES} for 10,000 clients (ulimit -n)" if is_low else ""
    yield Finding("open files", f"{soft}, at most {'unlimited' if hard == resource.RLIM_INFINITY else hard}", advice)


def server(url: str) -> Iterator[Finding]:
    """A running server; UsageError where it cannot be asked."""
    client = WireClient(address(url))
    reply = client.ask(b"INFO", b"everything")
    if not isinstance(reply, bytes):
        raise UsageError(f"{url}: {reply}")
    slow = client.ask(b"SLOWLOG", b"GET", b"3")
    client.close()
    fields = info_fields(reply)
    for check in CHECKS:
        yield from check(fields)
    for one in slow if isinstance(slow, list) else ():
        words = b" ".join(one[3])[:60].decode(errors="replace")
        yield Finding("slow command", f"{one[2] / 1000:.1f} ms: {words}")


def of_server(fields: Fields) -> Iterator[Finding]:
    name = f"penstock {fields['penstock_version']}" if "penstock_version" in fields else "another server"
    hours = int(fields["uptime_in_seconds"]) / HOUR_S
    yield Finding("server", f"{name}, speaks as Redis {fields['redis_version']}, up {hours:.1f} hours")
    if fields.get("penstock_build") == "python":
        yield Finding("build", "plain Python", "a compiled build answers several times as many requests (README)")
    if fields.get("loading", "0") != "0":
        yield Finding("loading", "yes", "clients are refused until the log is loaded")


def of_memory(fields: Fields) -> Iterator[Finding]:
    used, most = int(fields["used_memory"]), int(fields["maxmemory"])
    shown = f"{used / 2**20:.0f} MB used, {int(fields['used_memory_rss']) / 2**20:.0f} MB resident"
    if not most:
        yield Finding("memory", shown, "maxmemory is not set: the system ends the server when memory runs out")
    elif used > most * 0.9:
        yield Finding("memory", shown, f"nearly all of maxmemory ({most / 2**20:.0f} MB)")
    else:
        yield Finding("memory", f"{shown}, at most {most / 2**20:.0f} MB")
    evicted = int(fields["evicted_keys"])
    if evicted:
        yield Finding("evicted keys", str(evicted), "maxmemory is too small for the keys, or the policy is unwanted")


def of_log(fields: Fields) -> Iterator[Finding]:
    if fields["aof_enabled"] == "0":
        saves = int(fields.get("rdb_last_save_time", "0"))
        yield Finding("log", "none", "" if saves else "nothing is kept: set appendonly yes, or save points")
        return
    works = fields["aof_last_write_status"] == "ok" and fields["aof_last_bgrewrite_status"] == "ok"
    size = int(fields.get("aof_current_size", "0")) / 2**20
    yield Finding(
        "log", f"{size:.0f} MB", "" if works else "it cannot be written or rewritten: see the server's messages"
    )


def of_clients(fields: Fields) -> Iterator[Finding]:
    count, most = int(fields["connected_clients"]), int(fields["maxclients"])
    advice = "nearly all that maxclients allows" if count > most * 0.9 else ""
    yield Finding("clients", f"{count} of {most}, {fields['blocked_clients']} blocked", advice)
    rejected = int(fields["rejected_connections"])
    if rejected:
        yield Finding("rejected clients", str(rejected), "raise maxclients, or look for clients that do not close")
    errors = int(fields.get("total_error_replies", "0"))
    commands = int(fields["total_commands_processed"])
    advice = "more than one request of ten fails: see INFO errorstats" if errors * 10 > commands else ""
    yield Finding("requests", f"{commands}, {errors} error replies", advice)


CHECKS: Final[tuple[Callable[[Fields], Iterator[Finding]], ...]] = (of_server, of_memory, of_log, of_clients)
