"""The pages' blocks of code are run as a reader types them, by tools/doc_blocks.py."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.doc_blocks import CANNOT, PAGES, ROOT, SEARCHED, Block, blocks_of, run_page

PROGRAMS = ("bash", "curl", "redis-cli")
MISSING = [name for name in PROGRAMS if shutil.which(name, path=SEARCHED) is None]


def is_known(block: Block) -> bool:
    """Whether the tool can run the block, or it is marked."""
    return bool(block.reason) or block.language in ("sh", "python") or block.text.startswith("> ")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_a_page_is_run_or_says_why_not(page: Path) -> None:
    text = page.read_text("utf-8")
    blocks = blocks_of(text)

    assert 2 * len(blocks) == len(re.findall("^```", text, re.MULTILINE))
    assert [f"{page.name}:{block.line}" for block in blocks if not is_known(block)] == []


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```" in page.read_text("utf-8")], ids=lambda page: page.name
)
def test_every_block_of_a_page_runs_in_an_empty_folder(page: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tools.doc_blocks", str(page)], cwd=ROOT, capture_output=True, text=True, timeout=300
    )

    if ran.returncode == CANNOT:
        pytest.skip(ran.stderr)
    assert ran.returncode == 0, ran.stdout + ran.stderr


WRONG = {
    "a command that fails": "```sh\nfalse\n```",
    "a server that does not start": "```sh\npenstock serve --port no\n```",
    "a program that fails": "```python\nimport nowhere\n```",
    "a test that fails": "```python\ndef test_it():\n    assert False\n```",
    "a block of no kind": "```\nwords\n```",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_a_wrong_block_is_found(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.doc_blocks.ROOT", tmp_path)
    (tmp_path / "page.md").write_text(f"# Page\n\n{text}\n")

    run, failed = run_page(tmp_path / "page.md")

    assert (run, len(failed)) == (1, 1)
    assert failed[0].startswith("page.md:3: ")


def test_a_block_that_is_marked_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("<!-- not run: needs Docker -->\n```sh\nfalse\n```\n")

    assert run_page(tmp_path / "page.md") == (0, [])
