"""examples/monitoring: the rules and the dashboard ask for metrics that there are."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from penstock.observe import exporter_names
from penstock.observe.stream_text import CONSUMER_METRICS, GROUP_METRICS, STREAM_METRICS

FOLDER = Path(__file__).parents[2] / "examples" / "monitoring"
KNOWN = {name for name, _, _ in (*STREAM_METRICS, *GROUP_METRICS, *CONSUMER_METRICS)}
KNOWN |= {f"redis_{name}" for name in exporter_names.METRICS.values()} | {
    "redis_up",
    "redis_commands_total",
    "redis_instance_info",
    "penstock_metrics_left_out",
    "penstock_replicas_good",
    "penstock_replicas_needed",
}
with_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    dashboard = json.loads((FOLDER / "grafana" / "penstock.json").read_text())
    asked = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])

    assert set(re.findall(r"\b(?:redis|penstock)_\w+", asked)) <= KNOWN


def test_the_alerts_ask_for_metrics_that_there_are() -> None:
    asked = re.findall(r"\b(?:redis|penstock)_\w+", (FOLDER / "alerts.yml").read_text())

    assert asked and set(asked) <= KNOWN


@with_promtool
@pytest.mark.parametrize("verb_and_file", ["check alerts.yml", "test alerts_test.yml"])
def test_promtool_accepts_the_alerts(verb_and_file: str) -> None:
    verb, file = verb_and_file.split()
    ran = subprocess.run(["promtool", verb, "rules", file], cwd=FOLDER, capture_output=True, text=True, timeout=60)

    assert ran.returncode == 0, ran.stdout + ran.stderr


@with_promtool
def test_promtool_accepts_the_configuration() -> None:
    ran = subprocess.run(
        ["promtool", "check", "config", "--syntax-only", "prometheus.yml"], cwd=FOLDER, capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stdout + ran.stderr
