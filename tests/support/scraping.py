"""A server process that tells its metrics, and what a scrape of it says."""

import socket
import urllib.request
from contextlib import ExitStack, suppress
from typing import TypeAlias

from prometheus_client.parser import text_string_to_metric_families

from tests.support.server_process import ServerProcess, running_server

Values: TypeAlias = dict[tuple[str, ...], float]
"""Each sample's value by its name and the values of its labels, in the order of the labels' names."""


def free_port() -> int:
    """A TCP port that is free at this moment; another process may take it."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def serving_metrics(stack: ExitStack, *flags: str) -> tuple[ServerProcess, int]:
    """A server process, and the port of its metrics. Another process may take a port that was free a moment ago."""
    for _ in range(9):
        port = free_port()
        with suppress(AssertionError):
            return stack.enter_context(running_server("--metrics-port", str(port), *flags)), port
    raise AssertionError("no port stays free")


def scraped(port: int, password: str = "") -> str:
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/metrics")
    if password:
        asked.add_header("Authorization", f"Bearer {password}")
    with urllib.request.urlopen(asked, timeout=60) as answer:
        text: str = answer.read().decode()
        return text


def values_of(text: str) -> Values:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
