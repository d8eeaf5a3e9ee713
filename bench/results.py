"""What was measured, kept as one JSON file a part beside the scripts, with the date, the commit and the machine."""

import json
import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
FOLDER: Final = Path(__file__).parent / "results"
PARTS: Final = ("loads", "tail", "wakeups", "stalls", "steady", "memory", "growth")

Figures = dict[str, Any]


def keep(part: str, figures: Figures, entries: int) -> None:
    """Replace what was kept of a part; `entries` are how many a stream had where that is one number."""
    FOLDER.mkdir(exist_ok=True)
    kept = {"about": about() | {"entries": f"{entries:,}"}, "figures": figures}
    (FOLDER / f"{part}.json").write_text(json.dumps(kept, indent=1) + "\n")


def kept(part: str) -> tuple[dict[str, str], Figures] | None:
    """When and on what a part was measured, and its figures."""
    file = FOLDER / f"{part}.json"
    if not file.exists():
        return None
    read = json.loads(file.read_text())
    return read["about"], read["figures"]


def about() -> dict[str, str]:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "penstock"], cwd=ROOT).returncode
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": commit.stdout.strip() + (" with changes" if changed else ""),
        "machine": f"{os.cpu_count()} cores, {processor()}, {platform.system()} {platform.release()}",
        "load": f"{os.getloadavg()[1]:.1f}",
    }


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()
