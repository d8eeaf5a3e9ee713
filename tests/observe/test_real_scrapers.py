"""A real Prometheus scrapes the server; redis_exporter says the same of it. Skipped where they are not installed."""

import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import redis

from tests.support.scraping import free_port, scraped, serving_metrics, values_of

PATIENCE_S: Final = 60.0
PASSWORD: Final = "scrape me"
LOGINS: Final = (
    f"basic_auth: {{ username: prometheus, password: {PASSWORD} }}",
    f"authorization: {{ credentials: {PASSWORD} }}",
)
EXPORTER: Final = "prometheus-redis-exporter"
ITS_OWN: Final = ("redis_exporter_", "redis_target_", "redis_last_key_groups", "go_", "process_", "promhttp_")
UNKNOWN_HERE: Final = {"redis_config_io_threads", "redis_db0_distrib_strings_sizes", "redis_db_keys_cached"}
STEADY: Final = {
    "redis_stream_length", "redis_stream_groups", "redis_stream_radix_tree_keys", "redis_stream_group_consumers",
    "redis_stream_group_messages_pending", "redis_stream_group_last_delivered_id", "redis_db_keys", "redis_up",
    "redis_stream_group_consumer_messages_pending", "redis_stream_last_generated_id", "redis_memory_max_bytes",
    "redis_aof_enabled", "redis_connected_slaves",
}  # fmt: skip


@contextmanager
def process(*words: str) -> Iterator[None]:
    running = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        running.kill()
        running.wait()


def answer(url: str, contents: str = "") -> str:
    """What is answered, once something is and has these contents."""
    until_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as reply:
                text: str = reply.read().decode()
        except (urllib.error.URLError, ConnectionError):
            text = ""
        if (text and contents in text) or time.monotonic() > until_s:
            return text
        time.sleep(0.1)


def names_of(text: str) -> set[str]:
    """The names of the samples, as they are written."""
    return {re.split("[{ ]", line)[0] for line in text.splitlines() if not line.startswith("#")}


@pytest.fixture(scope="module")
def ports() -> Iterator[tuple[int, int]]:
    """The port of a server with a stream and a group, and the port of its metrics, which need a password."""
    with ExitStack() as stack:
        server, port = serving_metrics(stack, "--metrics-password", PASSWORD)
        client = redis.Redis(port=server.port)
        for at in range(5):
            client.xadd("s", {"n": at})
        client.xgroup_create("s", "g", "0")
        client.xreadgroup("g", "alice", {"s": ">"}, count=2)
        client.set("k", "v", ex=1000)
        yield server.port, port


@pytest.mark.slow
@pytest.mark.skipif(shutil.which(EXPORTER) is None, reason="redis_exporter is not installed")
def test_redis_exporter_says_the_same_of_the_server(ports: tuple[int, int]) -> None:
    listening = free_port()
    with process(
        EXPORTER, "-redis.addr", f"redis://127.0.0.1:{ports[0]}", "-check-streams", "*",
        "-web.listen-address", f"127.0.0.1:{listening}",
    ):  # fmt: skip
        text = answer(f"http://127.0.0.1:{listening}/metrics", "redis_up 1")
    own_text = scraped(ports[1], PASSWORD)
    theirs, ours = values_of(text), values_of(own_text)

    names = {name for name in names_of(text) if not name.startswith(ITS_OWN)} - UNKNOWN_HERE
    assert names - names_of(own_text) == set()
    assert {name[0] for name in theirs} >= STEADY
    assert {name: theirs[name] for name in theirs if name[0] in STEADY} == {
        name: ours[name] for name in theirs if name[0] in STEADY
    }


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Prometheus is not installed")
@pytest.mark.parametrize("login", LOGINS)
def test_prometheus_scrapes_the_server_and_knows_its_streams(
    login: str, ports: tuple[int, int], tmp_path: Path
) -> None:
    listening = free_port()
    (tmp_path / "prometheus.yml").write_text(
        "scrape_configs:\n  - job_name: penstock\n    scrape_interval: 1s\n"
        f"    static_configs: [{{ targets: ['localhost:{ports[1]}'] }}]\n    {login}\n"
    )
    with process(
        "prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
        f"--web.listen-address=127.0.0.1:{listening}",
    ):  # fmt: skip
        query = f"http://127.0.0.1:{listening}/api/v1/query?query="
        told: Any = json.loads(answer(query + "redis_stream_group_messages_pending", '"stream"'))

    (found,) = told["data"]["result"]
    assert (found["metric"]["stream"], found["metric"]["group"], found["value"][1]) == ("s", "g", "2")
