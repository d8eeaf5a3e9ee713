"""The table of stream commands and options names tests that exist."""

from pathlib import Path

from penstock.commands import registry
from penstock.engine.table import option_versions

ROOT = Path(__file__).parent.parent.parent


def test_every_stream_command_is_in_the_table_with_a_test_that_exists() -> None:
    rows = [one for row in registry.table().values() for one in (row, *row.subcommands.values())]
    leaves = [row for row in rows if not row.is_container]
    lines = option_versions.table(leaves).splitlines()[7:]
    shown = {line.split("|")[1].strip().strip("`") for line in lines}

    assert {leaf.name.replace("|", " ") for leaf in leaves if leaf.group == "stream" and "." not in leaf.name} <= shown
    assert len(lines) > 90
    assert all((ROOT / line.split("|")[4].strip().strip("`")).exists() for line in lines)
