"""Builds the documentation as a site, in build/site: README, the pages of docs/, and the API of penstock.testing.

    python -m tools.docs_site

mkdocs makes it, with a search, from a copy of the pages in which README's links lead into the site. A link that leads
to no page, or to no heading, fails (mkdocs build --strict). Links to other files of the repository become plain text.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
SOURCE: Final = ROOT / "build" / "site-source"  # what mkdocs.yml names as docs_dir
ABOVE: Final = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md",
                "SECURITY.md": "security-policy.md"}  # fmt: skip
LINK: Final = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
API: Final = {
    "Server": "penstock.testing.embedded.Server",
    "The clock": "penstock.testing.loops.turned_clock.TurnedClock",
}


def main() -> int:
    """Copy the pages, and run mkdocs; returns its exit code."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(ROOT / "docs", SOURCE)
    for path in sorted((ROOT / "docs").glob("*.md")):
        (SOURCE / path.name).write_text(rewritten(path), "utf-8")
    for name, target in ABOVE.items():
        (SOURCE / target).write_text(rewritten(ROOT / name), "utf-8")
    (SOURCE / "api.md").write_text(api_page(), "utf-8")
    mkdocs = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "--site-dir", "build/site"]
    return subprocess.run(mkdocs, cwd=ROOT, check=False).returncode


def rewritten(path: Path) -> str:
    """A page whose links hold in the copy."""
    return LINK.sub(lambda link: _link(path.parent, *link.groups()), path.read_text("utf-8"))


def _link(folder: Path, mark: str, text: str, target: str) -> str:
    name, hash_sign, anchor = target.partition("#")
    if re.match(r"[a-z]+:", target) or not name:
        return f"{mark}[{text}]({target})"
    file = (folder / name).resolve()
    if file.is_relative_to(ROOT / "docs") and file.is_file():
        return f"{mark}[{text}]({file.relative_to(ROOT / 'docs')}{hash_sign}{anchor})"
    if file.parent == ROOT and file.name in ABOVE:
        return f"{mark}[{text}]({ABOVE[file.name]}{hash_sign}{anchor})"
    # A file of the repository that is no page stays as text; a link to nothing stays for mkdocs to complain of.
    return text if file.exists() else f"{mark}[{text}]({target})"


def api_page() -> str:
    """The page that mkdocstrings fills from docstrings."""
    parts = ["# API of penstock.testing\n"]
    for title, name in API.items():
        parts.append(
            f"## {title}\n\n::: {name}\n    options:\n      show_root_heading: true\n      show_source: false\n"
        )
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())
